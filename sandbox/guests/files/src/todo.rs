//! `todo`: the list that an agent keeps of what it has to do. It stands in the session, as the arguments and the answer of a call, and
//! nowhere else.

use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::text::count;
use serde::Deserialize;

pub(crate) const NAME: &str = "todo";

/// The most items of a list, and the most characters of one.
const ITEMS: usize = 100;
const CHARACTERS: usize = 500;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    items: Vec<Item>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Item {
    text: String,
    #[serde(default)]
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    #[default]
    Open,
    Active,
    Done,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Keeps the list of what you have to do: give the whole list each time, and it is answered as it stands. Use it for \
                      work of several steps. It changes nothing but what you see of it here."
            .to_owned(),
        input: r#"{"type":"object","properties":{"items":{"type":"array","maxItems":100,"items":{"type":"object","properties":{"text":{"type":"string","minLength":1,"maxLength":500,"description":"What is to be done, in a line."},"state":{"enum":["open","active","done"],"description":"Default `open`."}},"required":["text"],"additionalProperties":false},"description":"All items, in order."}},"required":["items"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(arguments: Arguments) -> Result<Answer, Failure> {
    let items = arguments.items;
    if items.len() > ITEMS {
        return Err(Failure::InvalidArguments(format!(
            "a list has at most {ITEMS} items, and this has {}",
            items.len()
        )));
    }
    let mut content = String::new();
    for (number, Item { text, state }) in (1..).zip(&items) {
        if text.trim().is_empty() || text.chars().count() > CHARACTERS || text.chars().any(char::is_control) {
            let why = format!("item {number} is to be one line of 1 to {CHARACTERS} characters");
            return Err(Failure::InvalidArguments(why));
        }
        let mark = match state {
            State::Open => ' ',
            State::Active => '>',
            State::Done => 'x',
        };
        content.push_str(&format!("{number}. [{mark}] {text}\n"));
    }
    let done = items.iter().filter(|item| item.state == State::Done).count();
    let summary = format!("{}, {done} done", count(items.len() as u64, "item", "items"));
    Ok(Answer { content, summary, omitted: Vec::new() })
}
