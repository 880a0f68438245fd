//! One function for each decoder. Each takes any bytes, and panics if something does not hold that must hold for all: above all that how a
//! response is cut changes nothing, and that whatever was read can be sent back.

use std::collections::BTreeSet;

use ephor_wire::{Answer, Decoder, Dialect, End, Event, Grammar, Limits, Message, ModelName, Part, Request, encode};

/// One decoder, and what must hold for all bytes.
pub(crate) struct Target {
    /// As the folder in the corpus of the fuzzer.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

/// All of them.
pub(crate) const TARGETS: [Target; 5] = [
    Target { name: "wire_anthropic", run: |bytes| read(Grammar::Anthropic, bytes) },
    Target { name: "wire_chat", run: |bytes| read(Grammar::Chat, bytes) },
    Target { name: "wire_responses", run: |bytes| read(Grammar::Responses, bytes) },
    Target { name: "wire_gemini", run: |bytes| read(Grammar::Gemini, bytes) },
    Target { name: "wire_ollama", run: |bytes| read(Grammar::Ollama, bytes) },
];

fn decode<'a>(grammar: Grammar, limits: Limits, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Event>, Answer) {
    let (mut decoder, mut events) = (Decoder::new(grammar, limits, 1), Vec::new());
    for piece in pieces {
        let _ = decoder.push(piece, &mut events);
    }
    let answer = decoder.finish(&mut events);
    (events, answer)
}

/// The first byte says how the others are cut.
fn read(grammar: Grammar, bytes: &[u8]) {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let limits = Limits::of_request(16, 0).with_event(2000).with_answer(500).with_calls(4);
    let whole = decode(grammar, limits, std::iter::once(bytes));
    assert_eq!(decode(grammar, limits, bytes.chunks(usize::from(*size) + 1)), whole);
    let (_, answer) = whole;
    assert!(answer.end == End::Complete || answer.calls().is_empty());
    let written: usize = answer
        .parts
        .iter()
        .map(|part| if let Part::Text(text) | Part::Thinking(text) = part { text.len() } else { 0 })
        .sum();
    assert!(written <= 500);
    let ids: Vec<_> = answer
        .parts
        .iter()
        .filter_map(|part| if let Part::Call(call) = part { Some(&call.id) } else { None })
        .collect();
    assert!(ids.len() <= 4 && ids.iter().all(|id| !id.is_empty()));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "every call can be answered");
    send_back(answer);
}

fn send_back(answer: Answer) {
    let request = Request::new(ModelName::new("m").unwrap(), vec![Message::Assistant(answer.parts)], 1).unwrap();
    for grammar in Grammar::ALL {
        let body = encode(grammar, Dialect::NATIVE, &request).body;
        assert!(
            serde_json::from_slice::<serde_json::Value>(&body).is_ok(),
            "{grammar}: {}",
            String::from_utf8_lossy(&body)
        );
    }
}
