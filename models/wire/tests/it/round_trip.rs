//! Any answer that a server can send is read as that answer, and goes back as what it was.

use ephor_base::ToolUse;
use ephor_wire::{
    Answer, Cut, Dialect, End, Grammar, Message, ModelName, Part, Reported, Request, Shown, State, ToolEnd, ToolResult,
    encode, request::tool_of,
};
use proptest::{prelude::*, test_runner::Config};
use serde_json::{Value, json};

use crate::{
    common::read,
    server::{Ending, Said, reasoning_item, stream},
};

/// A text in pieces, none of them empty.
fn pieces() -> impl Strategy<Value = Vec<String>> {
    let piece =
        prop_oneof![any::<String>(), Just("data: x\n\n".to_owned()), Just("[DONE]".to_owned()), "[a-z{}\"\\\\ ]{1,9}"];
    prop::collection::vec(piece, 0..4).prop_map(|pieces| pieces.into_iter().filter(|piece| !piece.is_empty()).collect())
}

/// A JSON object, in pieces.
fn arguments() -> impl Strategy<Value = Vec<String>> {
    let value = prop_oneof![
        any::<String>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        Just(json!([1, { "a{": null }])),
        Just(json!(1.5)),
    ];
    let object = prop::collection::btree_map("[a-z\"é]{1,5}", value, 0..4).prop_map(|map| json!(map).to_string());
    (object, any::<prop::sample::Index>()).prop_map(|(object, at)| {
        let at = object.floor_char_boundary(at.index(object.len()));
        let (head, tail) = object.split_at(at);
        [head, tail].iter().filter(|piece| !piece.is_empty()).map(|piece| (*piece).to_owned()).collect()
    })
}

fn reported() -> impl Strategy<Value = Reported> {
    (0..1_000_000_u64, 0..1000_u64, 0..1000_u64, 0..1000_u64, 0..1000_u64).prop_map(
        |(fresh, cached, written, said, thought)| Reported {
            input: Some(fresh + cached + written),
            output: Some(said + thought),
            cached: Some(cached),
            cache_written: Some(written),
            reasoning: Some(thought),
        },
    )
}

fn said() -> impl Strategy<Value = Said> {
    let call = ("[a-z]{1,9}", arguments());
    let end = prop::sample::select(vec![Ending::Complete, Ending::Length, Ending::Filtered]);
    let calls = prop::collection::vec(call, 0..4);
    (pieces(), "[A-Za-z0-9+/]{0,30}", pieces(), calls, end, reported()).prop_map(
        |(thinking, signature, text, calls, end, reported)| Said {
            thinking,
            signature,
            text,
            calls: calls
                .into_iter()
                .enumerate()
                .map(|(at, (name, pieces))| (format!("call_{at}"), name, pieces))
                .collect(),
            end,
            reported,
        },
    )
}

/// The answer that `said` is.
fn expected(grammar: Grammar, said: &Said) -> Answer {
    let mut parts = Vec::new();
    let state = |json: Value| Part::State(State::new(grammar, json.to_string()).unwrap());
    let signed = !said.signature.is_empty();
    if !said.thinking.is_empty() {
        parts.push(Part::Thinking(said.thinking.concat()));
        match grammar {
            Grammar::Anthropic if signed => {
                let block =
                    [("type", "thinking"), ("thinking", &said.thinking.concat()), ("signature", &said.signature)];
                let fields: Vec<_> = block.iter().map(|(key, text)| format!("\"{key}\":{}", json!(text))).collect();
                parts.push(Part::State(State::new(grammar, format!("{{{}}}", fields.join(","))).unwrap()));
            }
            Grammar::Responses if signed => parts.push(state(reasoning_item(said))),
            _ => {}
        }
    }
    if !said.text.is_empty() {
        parts.push(Part::Text(said.text.concat()));
    }
    for (at, (id, name, arguments)) in said.calls.iter().enumerate() {
        if grammar == Grammar::Gemini && at == 0 && signed {
            parts.push(state(json!({ "thoughtSignature": said.signature })));
        }
        // What comes as an object comes as the server writes it.
        parts.push(Part::Call(ToolUse { id: id.clone(), name: tool_of(name), arguments: arguments.concat() }));
    }
    let end = match (said.end, grammar) {
        (Ending::Complete, _) | (Ending::Filtered, Grammar::Ollama) => End::Complete,
        (Ending::Length, _) => End::CutOff(Cut::Tokens),
        (Ending::Filtered, _) => End::Refused,
    };
    let reported = match grammar {
        Grammar::Ollama => Reported { cached: None, cache_written: None, reasoning: None, ..said.reported },
        Grammar::Gemini => Reported { cache_written: None, ..said.reported },
        _ => said.reported,
    };
    Answer { parts, end, reported }
}

/// The body of the request that goes on after `answer`.
fn body(grammar: Grammar, answer: &Answer) -> Value {
    let results = answer.parts.iter().filter_map(|part| {
        let Part::Call(call) = part else { return None };
        let shown = vec![Shown::Text("done".to_owned())];
        Some(ToolResult { id: call.id.clone(), name: call.name.clone(), end: ToolEnd::Done, shown })
    });
    let messages = vec![
        Message::User(vec![Shown::Text("go".to_owned())]),
        Message::Assistant(answer.parts.clone()),
        Message::Results(results.collect()),
    ];
    let request = Request::new(ModelName::new("m").unwrap(), messages, 100).unwrap();
    serde_json::from_slice(&encode(grammar, Dialect::NATIVE, &request).body).unwrap()
}

/// Every string of a JSON value.
fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(fields) => fields.values().for_each(|item| strings(item, into)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(Config { cases: 200, failure_persistence: None, ..Config::default() })]

    #[test]
    fn what_a_server_says_is_what_is_read(said in said()) {
        for grammar in Grammar::ALL {
            let bytes = stream(grammar, &said);
            let (_, answer) = read(grammar, [bytes.as_slice()]);
            prop_assert_eq!(&answer, &expected(grammar, &said), "{}", grammar);
            prop_assert_eq!(&read(grammar, bytes.chunks(5)).1, &answer, "{}", grammar);
        }
    }

    /// Text, calls and the provider's state go back as they came; each result names its call.
    #[test]
    fn what_was_read_goes_back(said in said()) {
        for grammar in Grammar::ALL {
            let answer = expected(grammar, &said);
            let body = body(grammar, &answer);
            let mut all = Vec::new();
            strings(&body, &mut all);
            if !said.text.is_empty() {
                prop_assert!(all.contains(&said.text.concat()), "{}: {}", grammar, body);
            }
            let signature_goes = match grammar {
                Grammar::Anthropic | Grammar::Responses => !said.thinking.is_empty(),
                Grammar::Gemini => !said.calls.is_empty(),
                Grammar::Chat | Grammar::Ollama => false,
            };
            if signature_goes && !said.signature.is_empty() {
                prop_assert!(all.contains(&said.signature), "{}: {}", grammar, body);
            }
            for (id, name, _) in &said.calls {
                let named = all.iter().filter(|text| *text == name).count();
                let identified = all.iter().filter(|text| *text == id).count();
                prop_assert!(named >= 1 && (identified == 2 || grammar == Grammar::Ollama), "{}: {}", grammar, body);
            }
        }
    }

    /// Any bytes at all: no panic, the same answer in whatever pieces, and nothing that is not complete calls a tool.
    #[test]
    fn any_bytes_are_survived(pieces in prop::collection::vec(prop_oneof![
        any::<Vec<u8>>(),
        "[\\[\\]{}\",:a-z\r\n ]{0,20}".prop_map(String::into_bytes),
        prop::sample::select(vec!["data: ", "\n\n", "{\"type\":", "{\"choices\":[{\"delta\":{", "\"content\":\"", "\"}}]}", "\u{feff}"])
            .prop_map(|text| text.as_bytes().to_vec()),
    ], 0..12)) {
        let bytes = pieces.concat();
        for grammar in Grammar::ALL {
            let whole = read(grammar, [bytes.as_slice()]);
            prop_assert_eq!(read(grammar, pieces.iter().map(Vec::as_slice)), whole.clone());
            prop_assert_eq!(read(grammar, bytes.chunks(1)), whole);
        }
    }
}

/// What the fuzzer runs, on the corpus and on what is near it.
#[test]
fn what_is_near_a_stream_breaks_nothing() {
    for stream in crate::common::streams(|_| true) {
        let target =
            crate::targets::TARGETS.iter().find(|target| target.name == format!("wire_{}", stream.grammar)).unwrap();
        for size in [0, 6, 255] {
            (target.run)(&[&[size], stream.bytes.as_slice()].concat());
        }
        for (at, with) in (0..stream.bytes.len()).step_by(17).zip(b"{}[]\",:0\\\r\n\xFFnt".iter().cycle()) {
            let mut bytes = [&[30], stream.bytes.as_slice()].concat();
            bytes[at + 1] = *with;
            (target.run)(&bytes);
            bytes.drain(at + 1..(at + 40).min(bytes.len()));
            (target.run)(&bytes);
        }
    }
}
