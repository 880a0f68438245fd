//! The models' driver, asked without a permit.

use ephor_base::{Budget, Purpose, Usage};
use ephor_egress::{Egress, Policy};
use ephor_kernel::{Driver, Estimate};

use super::Models;
use crate::{Kind, Named, Price, Prices, Provider, testing::task};

fn models(base: &str) -> Models {
    with_prices(base, Prices::default())
}

fn with_prices(base: &str, prices: Prices) -> Models {
    let named = Named {
        name: "openai".to_owned(),
        kind: Kind::OpenAi,
        base_url: base.parse().unwrap(),
        keys: vec!["openai".to_owned()],
        key_hint: "set a key".to_owned(),
        headers: Vec::new(),
        prices,
        configured_as: "providers.openai".to_owned(),
    };
    Models::new(vec![Provider::new(named, Egress::new(Policy::default()))])
}

fn usage(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

fn asks<'a>(provider: &'a str, name: &'a str, shown_bytes: usize) -> Estimate<'a> {
    Estimate::Model { provider, name, shown_bytes, max_output_tokens: 4096, purpose: Purpose::Converse }
}

#[test]
fn an_estimate_covers_the_prompt_and_the_longest_answer() {
    let models = models("https://api.openai.com/v1");
    let estimate = models.estimate(&asks("openai", "gpt-4.1", 3000));
    assert_eq!(estimate.tokens, 1000 + 4096);
    assert_eq!(estimate.micro_usd, Price::listed("gpt-4.1").of(&usage(1000, 4096)));
    for (provider, name) in [("builtin", "scout"), ("script", "x")] {
        let estimate = models.estimate(&asks(provider, name, 3000));
        assert_eq!(estimate, Budget { tokens: 5096, ..Budget::ZERO });
    }
}

#[test]
fn a_model_whose_price_is_not_known_is_dear_wherever_it_runs_and_free_where_the_operator_says_so() {
    let hello = asks("openai", "llama", 5);
    for base in ["http://127.0.0.1:11434/v1", "https://gateway.example.com/v1"] {
        assert_eq!(models(base).estimate(&hello).micro_usd, Price::highest().of(&usage(2, 4096)));
        let free = with_prices(base, Prices([("llama".to_owned(), Price::FREE)].into()));
        assert_eq!(free.estimate(&hello).micro_usd, 0);
    }
}

#[test]
fn the_first_line_names_model_provider_and_host() {
    let served = |base: &str, provider: &str, name: &str| {
        models(base).served(&task(provider, name, "", 0).model).unwrap().to_string()
    };
    assert_eq!(served("https://api.openai.com/v1", "openai", "gpt-x"), "openai/gpt-x at api.openai.com");
    assert_eq!(served("http://localhost:8080/v1", "openai", "llama"), "openai/llama at localhost:8080");
    assert_eq!(served("https://api.openai.com/v1", "builtin", "scout"), "builtin/scout (built in, no network)");
    assert_eq!(served("https://api.openai.com/v1", "script", "a.jsonl"), "script:a.jsonl (scripted, no network)");
}

#[test]
fn a_provider_that_is_not_there_is_told_with_those_that_are() {
    let error = models("https://api.openai.com/v1").served(&task("nobody", "x", "", 0).model).unwrap_err().to_string();
    assert!(error.contains("`nobody`") && error.contains("`openai`") && error.contains("[providers.NAME]"), "{error}");
}
