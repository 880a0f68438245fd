//! The models' driver, asked without a permit.

use ephor_base::{Budget, Message, Task};
use ephor_egress::{Egress, Policy};
use ephor_kernel::Driver;

use super::Models;
use crate::{
    OpenAi, Price,
    testing::{said, task},
};

fn models(base: &str) -> Models {
    Models::new(OpenAi::at(base.parse().unwrap(), "set a key"), Egress::new(Policy::default()))
}

#[test]
fn an_estimate_covers_the_prompt_and_the_longest_answer() {
    let models = models("https://api.openai.com/v1");
    let mut task = task("openai", "gpt-4.1", "", 0);
    task.messages = vec![Message::User(vec![said(&"x".repeat(3000))])];
    let estimate = models.estimate(&Task::Model(task.clone()));
    assert_eq!(estimate.tokens, 1000 + 4096);
    assert_eq!(estimate.micro_usd, Price::listed("gpt-4.1").of(1000, 4096));

    for (provider, name) in [("builtin", "scout"), ("script", "x")] {
        task.model.provider = provider.to_owned();
        task.model.name = name.to_owned();
        let estimate = models.estimate(&Task::Model(task.clone()));
        assert_eq!(estimate, Budget { tokens: 5096, ..Budget::ZERO });
    }
}

#[test]
fn a_model_on_this_machine_is_free_and_an_unknown_server_is_dear() {
    let mut task = task("openai", "llama", "", 0);
    task.messages = vec![Message::User(vec![said("hello")])];
    assert_eq!(models("http://127.0.0.1:11434/v1").estimate(&Task::Model(task.clone())).micro_usd, 0);
    let dear = models("https://gateway.example.com/v1").estimate(&Task::Model(task)).micro_usd;
    assert_eq!(dear, Price::highest().of(2, 4096));
}

#[test]
fn the_first_line_names_model_provider_and_host() {
    let served =
        |base: &str, provider: &str, name: &str| models(base).served(&task(provider, name, "", 0).model).to_string();
    assert_eq!(served("https://api.openai.com/v1", "openai", "gpt-x"), "openai/gpt-x at api.openai.com");
    assert_eq!(served("http://localhost:8080/v1", "openai", "llama"), "openai/llama at localhost:8080");
    assert_eq!(served("https://api.openai.com/v1", "builtin", "scout"), "builtin/scout (built in, no network)");
    assert_eq!(served("https://api.openai.com/v1", "script", "a.jsonl"), "script:a.jsonl (scripted, no network)");
}
