//! What a provider wants back with the next request, kept beside its answer.
//!
//! The record has an answer's text in one, and its calls in one. What the provider wants back (a thinking block with its signature, encrypted
//! reasoning, a thought signature) stands between parts of them. So the order of all parts is kept with it: an answer goes back as it came.

use ephor_base::{ModelAnswer, ModelRef};
use ephor_wire::{Grammar, Part, State};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::scrub::Scrub;

/// What is kept, as JSON in [`ModelAnswer::state`].
#[derive(Serialize, Deserialize)]
struct Kept {
    /// The model that it belongs to, as `provider/name`. To any other it says nothing.
    model: String,
    /// The grammar.
    grammar: String,
    /// The parts of the answer, in order.
    parts: Vec<Piece>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Piece {
    /// So many bytes of the text.
    Text(usize),
    /// The next of the calls.
    Call,
    /// What the provider wants back, byte for byte.
    State(Box<RawValue>),
}

/// The text of `parts`, without the key, and what has to be kept of them: nothing, where there is no state among them. A state in which
/// the key stands could not go back as it came, and is left out.
pub(super) fn kept(parts: &[Part], model: &ModelRef, scrub: &Scrub) -> (String, Option<String>) {
    let (mut text, mut pieces, mut grammar) = (String::new(), Vec::new(), None);
    let (mut clean, mut told) = (scrub.pieces(), 0);
    for part in parts {
        match part {
            Part::Text(more) => {
                text.push_str(&clean.push(more));
                // As if nothing came behind it: what is held back belongs to this part, unless a key goes over its end.
                let end = text.len() + clean.clone().finish().len();
                pieces.push(Piece::Text(end.saturating_sub(told)));
                told = told.max(end);
            }
            Part::Thinking(_) => {}
            Part::Call(_) => pieces.push(Piece::Call),
            Part::State(state) => {
                let raw = RawValue::from_string(state.json().to_owned()).ok();
                if let Some(raw) = raw.filter(|_| scrub.clean(state.json()) == state.json()) {
                    grammar = Some(state.grammar());
                    pieces.push(Piece::State(raw));
                }
            }
        }
    }
    text.push_str(&clean.finish());
    let kept = grammar.and_then(|grammar| {
        let kept = Kept { model: model.to_string(), grammar: grammar.name().to_owned(), parts: pieces };
        serde_json::to_string(&kept).ok()
    });
    (text, kept)
}

/// The parts of `answer`, for a request to `model`.
pub(super) fn parts(answer: &ModelAnswer, model: &ModelRef) -> Vec<Part> {
    let kept = answer.state.as_deref().and_then(|state| serde_json::from_str::<Kept>(state).ok());
    let own = kept.filter(|kept| kept.model == model.to_string());
    let grammar = own.as_ref().and_then(|kept| Grammar::named(&kept.grammar));
    let (mut text, mut calls, mut parts) = (answer.text.as_str(), answer.tool_uses.iter(), Vec::new());
    for piece in own.map(|kept| kept.parts).unwrap_or_default() {
        match piece {
            Piece::Text(length) => {
                let (head, rest) = text.split_at(text.floor_char_boundary(length));
                parts.extend((!head.is_empty()).then(|| Part::Text(head.to_owned())));
                text = rest;
            }
            Piece::Call => parts.extend(calls.next().cloned().map(Part::Call)),
            Piece::State(raw) => {
                let state = grammar.and_then(|grammar| State::new(grammar, String::from(Box::<str>::from(raw))).ok());
                parts.extend(state.map(Part::State));
            }
        }
    }
    // What the record has and no piece speaks of: all of it, where nothing is kept.
    parts.extend((!text.is_empty()).then(|| Part::Text(text.to_owned())));
    parts.extend(calls.cloned().map(Part::Call));
    parts
}

#[cfg(test)]
mod tests {
    use ephor_base::{ModelAnswer, Secret, ToolUse};
    use ephor_wire::{Grammar, Part, State};

    use super::{kept, parts};
    use crate::{scrub::Scrub, testing::task};

    fn state(json: &str) -> Part {
        Part::State(State::new(Grammar::Anthropic, json).unwrap())
    }

    fn call(id: &str) -> Part {
        Part::Call(ToolUse { id: id.to_owned(), name: "fs.read".to_owned(), arguments: "{}".to_owned() })
    }

    fn answer(all: &[Part], scrub: &Scrub) -> ModelAnswer {
        let (text, state) = kept(all, &task("anthropic", "c", "", 0).model, scrub);
        let of = |part: &Part| if let Part::Call(call) = part { Some(call.clone()) } else { None };
        ModelAnswer { text, tool_uses: all.iter().filter_map(of).collect(), state, ..ModelAnswer::default() }
    }

    #[test]
    fn an_answer_goes_back_in_its_order_and_byte_for_byte() {
        let all = [
            state(r#"{"type":"thinking", "signature" : "ä\u00e4=="}"#),
            Part::Text("é one".to_owned()),
            call("a"),
            state(r#"{"b":1.0}"#),
            call("b"),
            Part::Text("two".to_owned()),
        ];
        let answer = answer(&all, &Scrub::default());
        assert_eq!(parts(&answer, &task("anthropic", "c", "", 0).model), all);
    }

    #[test]
    fn what_may_become_a_key_stays_in_its_part() {
        let scrub = Scrub::new([&Secret::new("sk-0123456789abcdefghij".to_owned())]);
        let all = [state("{}"), Part::Text("tasks".to_owned()), call("a"), Part::Text("sk-0".to_owned())];
        assert_eq!(parts(&answer(&all, &scrub), &task("anthropic", "c", "", 0).model), all);
    }

    #[test]
    fn what_one_model_keeps_is_given_to_no_other() {
        let answer = answer(&[state("{}"), Part::Text("x".to_owned()), call("a")], &Scrub::default());
        for (provider, name) in [("anthropic", "d"), ("other", "c")] {
            let model = task(provider, name, "", 0).model;
            assert_eq!(parts(&answer, &model), [Part::Text("x".to_owned()), call("a")]);
        }
    }

    #[test]
    fn an_answer_without_state_keeps_nothing_besides() {
        let answer = answer(&[Part::Thinking("hm".to_owned()), Part::Text("x".to_owned())], &Scrub::default());
        assert_eq!(answer.state, None);
    }

    #[test]
    fn a_state_with_the_key_in_it_is_left_out_and_a_key_over_two_texts_is_found() {
        let key = "sk-0123456789abcdefghij";
        let scrub = Scrub::new([&Secret::new(key.to_owned())]);
        let (head, tail) = key.split_at(9);
        let all = [
            state(&format!("{{\"s\":\"{key}\"}}")),
            Part::Text(head.to_owned()),
            state("{\"t\":1}"),
            Part::Text(tail.to_owned()),
        ];
        let answer = answer(&all, &scrub);
        assert_eq!(answer.text, "[key]");
        assert!(!answer.state.unwrap().contains("0123456789"));
    }

    #[test]
    fn what_is_no_state_of_ours_costs_nothing_of_the_answer() {
        for state in ["", "nonsense", r#"{"model":"anthropic/c","grammar":"x","parts":[{"text":99},"call","call"]}"#] {
            let told = ModelAnswer { text: "é".to_owned(), state: Some(state.to_owned()), ..ModelAnswer::default() };
            assert_eq!(parts(&told, &task("anthropic", "c", "", 0).model), [Part::Text("é".to_owned())], "{state}");
        }
    }
}
