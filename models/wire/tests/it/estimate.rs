//! Estimates on a conversation of an agent with its tools, in five languages, with source code, tables, JSON and diffs.
//!
//! The tokens beside it were counted with the tokenizers `cl100k_base` and `o200k_base` (tiktoken) and the one that Anthropic published for Claude 2, each
//! text by itself; to that come 4 to 5 tokens for each message and 12 or, for the last, 340 for the request, as providers add them.

use std::path::Path;

use ephor_base::{ToolSpec, ToolUse};
use ephor_wire::{Estimator, Message, ModelName, Part, Request, Shown, Sizes, ToolEnd, ToolResult};
use serde_json::Value;

/// How far an estimate may be off once ten requests were reported, in hundredths.
const MOST_OFF: u64 = 10;

fn conversation() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/estimate/conversation.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn message(value: &Value) -> Message {
    if let Some(said) = value.get("user") {
        return Message::User(vec![Shown::Text(text(said))]);
    }
    if let Some(said) = value.get("assistant") {
        let mut parts = vec![Part::Text(text(said))];
        if let Some(call) = value.get("call") {
            parts.push(Part::Call(ToolUse { id: "a".into(), name: text(&call[0]), arguments: text(&call[1]) }));
        }
        return Message::Assistant(parts);
    }
    let shown = vec![Shown::Text(text(&value["text"]))];
    Message::Results(vec![ToolResult { id: "a".into(), name: text(&value["result"]), end: ToolEnd::Done, shown }])
}

/// The sizes of the request that shows these messages.
fn sizes(conversation: &Value, messages: std::ops::Range<usize>) -> Sizes {
    let tool = |tool: &Value| ToolSpec {
        name: text(&tool["name"]).parse().unwrap(),
        description: text(&tool["description"]),
        schema: text(&tool["schema"]),
    };
    let shown = conversation["messages"].as_array().unwrap()[messages].iter().map(message).collect();
    let request = Request::new(ModelName::new("m").unwrap(), shown, 4096).unwrap();
    let tools = conversation["tools"].as_array().unwrap().iter().map(tool).collect();
    Sizes::of(&request.instructed(text(&conversation["instructions"])).unwrap().offering(tools).unwrap())
}

fn numbers(value: &Value) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|number| usize::try_from(number.as_u64().unwrap()).unwrap()).collect()
}

fn off(estimate: u64, tokens: u64) -> u64 {
    estimate.abs_diff(tokens) * 100 / tokens
}

#[test]
fn estimates_are_within_a_tenth_after_ten_requests() {
    let all = conversation();
    let ends = numbers(&all["requests"]);
    for name in ["cl100k", "o200k", "claude"] {
        let mut estimator = Estimator::new();
        let mut worst = 0;
        for (at, (end, tokens)) in ends.iter().zip(numbers(&all["tokens"][name])).enumerate() {
            let (sizes, tokens) = (sizes(&all, 0..*end), tokens as u64);
            if at >= 10 {
                worst = worst.max(off(estimator.estimate(&sizes), tokens));
            }
            estimator.learn(&sizes, tokens).unwrap();
        }
        // Other conversations with the same model: the last messages alone, as after compaction.
        let window = usize::try_from(all["window"].as_u64().unwrap()).unwrap();
        let mut windowed = 0;
        for (end, tokens) in ends.iter().zip(numbers(&all["windowed"][name])) {
            let sizes = sizes(&all, end.saturating_sub(window)..*end);
            windowed = windowed.max(off(estimator.estimate(&sizes), tokens as u64));
        }
        println!("{name}: at most {worst} % off in the conversation, {windowed} % in parts of it");
        assert!(worst <= MOST_OFF && windowed <= MOST_OFF, "{name}: {worst} %, {windowed} %");
    }
}

#[test]
fn the_first_estimate_is_of_the_right_order() {
    let all = conversation();
    let first = sizes(&all, 0..1);
    for name in ["cl100k", "o200k", "claude"] {
        let tokens = numbers(&all["tokens"][name])[0] as u64;
        assert!(off(Estimator::new().estimate(&first), tokens) <= 25, "{name}");
    }
}

#[test]
fn a_report_that_cannot_be_true_teaches_nothing() {
    let sizes = Sizes::of_text(&"some words and more of them ".repeat(1000));
    let mut estimator = Estimator::new();
    let before = estimator;
    for reported in [0, 1, 1000, 1_000_000, u64::MAX] {
        assert!(estimator.learn(&sizes, reported).is_err(), "{reported}");
    }
    assert_eq!(estimator, before);
    estimator.learn(&sizes, 6000).unwrap();
    assert_eq!(estimator.estimate(&sizes), 6000);
}

#[test]
fn the_same_reports_give_the_same_estimates_and_no_report_is_needed() {
    let sizes: Vec<_> = (1..50).map(|count| Sizes::of_text(&"ein Wort, 12 мира\n".repeat(count * 7))).collect();
    let learnt = || {
        let mut estimator = Estimator::new();
        sizes.iter().zip(1..).for_each(|(sizes, at)| estimator.learn(sizes, 60 * at).unwrap());
        estimator
    };
    assert_eq!(learnt(), learnt());
    assert!(Estimator::new().estimate(&Sizes::default()) >= 1);
}

#[test]
fn a_picture_and_a_tool_count() {
    let image = ephor_wire::Image::new("image/png", vec![0; 10]).unwrap();
    let of = |shown: Vec<Shown>| {
        Sizes::of(&Request::new(ModelName::new("m").unwrap(), vec![Message::User(shown)], 1).unwrap())
    };
    let (with, without) = (of(vec![Shown::Image(image)]), of(Vec::new()));
    let estimator = Estimator::new();
    assert!(estimator.estimate(&with) > estimator.estimate(&without) + 1000);
}
