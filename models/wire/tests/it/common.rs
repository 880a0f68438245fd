//! Streams of the corpus, and an answer as JSON to compare it by.

use std::{collections::BTreeMap, fs, path::Path};

use ephor_wire::{Answer, Cut, Decoder, End, Event, Grammar, Limits, Part, Recourse, Reported};
use serde_json::{Map, Value, json};

/// The number in the ids of calls that get one.
pub(crate) const TURN: u64 = 7;

/// A recorded stream and the turn that it is.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) grammar: Grammar,
    pub(crate) bytes: Vec<u8>,
    pub(crate) turn: Value,
    /// The status of a refusal.
    pub(crate) status: Option<u16>,
}

/// The corpus, of one grammar or of all.
pub(crate) fn streams(of: impl Fn(Grammar) -> bool) -> Vec<Stream> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams");
    let mut streams = Vec::new();
    for grammar in Grammar::ALL.into_iter().filter(|grammar| of(*grammar)) {
        let mut files: Vec<_> =
            fs::read_dir(root.join(grammar.name())).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().filter(|path| !path.to_str().unwrap().ends_with(".turn.json")) {
            let turn = fs::read_to_string(path.with_extension("turn.json")).unwrap();
            let mut turn: Value = serde_json::from_str(&turn).unwrap();
            turn.as_object_mut().unwrap().remove("sdk");
            let stem = path.file_stem().unwrap().to_str().unwrap();
            let status = stem.rsplit_once('.').and_then(|(_, status)| status.parse().ok());
            let name = format!("{grammar}/{stem}");
            streams.push(Stream { name, grammar, bytes: fs::read(path).unwrap(), turn, status });
        }
    }
    streams
}

/// Reads a response that comes in these pieces.
pub(crate) fn read<'a>(grammar: Grammar, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Event>, Answer) {
    read_within(grammar, limits(), pieces)
}

pub(crate) fn read_within<'a>(
    grammar: Grammar,
    limits: Limits,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Event>, Answer) {
    let (mut decoder, mut events) = (Decoder::new(grammar, limits, TURN), Vec::new());
    for piece in pieces {
        let _ = decoder.push(piece, &mut events);
    }
    let answer = decoder.finish(&mut events);
    (events, answer)
}

pub(crate) fn limits() -> Limits {
    Limits::of_request(4096, 10_000)
}

/// The answer, as the corpus has it.
pub(crate) fn turn(answer: &Answer) -> Value {
    let parts: Vec<Value> = answer.parts.iter().map(part).collect();
    json!({ "parts": parts, "end": end(&answer.end), "reported": reported(answer.reported) })
}

fn part(part: &Part) -> Value {
    match part {
        Part::Text(text) => json!({ "text": text }),
        Part::Thinking(text) => json!({ "thinking": text }),
        Part::Call(call) => json!({ "call": { "id": call.id, "name": call.name, "arguments": call.arguments } }),
        Part::State(state) => json!({ "state": state.json() }),
    }
}

pub(crate) fn end(end: &End) -> String {
    match end {
        End::Complete => "complete".into(),
        End::Refused => "refused".into(),
        End::CutOff(Cut::Tokens) => "cut_off:tokens".into(),
        End::CutOff(Cut::Stream) => "cut_off:stream".into(),
        End::CutOff(Cut::Bound) => "cut_off:bound".into(),
        End::CutOff(Cut::Other) => "cut_off:other".into(),
        End::Failed(why) if why.recourse() == Recourse::OtherModel => {
            format!("failed:{}:other_model", why.kind().code())
        }
        End::Failed(why) => format!("failed:{}", why.kind().code()),
    }
}

fn reported(reported: Reported) -> Value {
    let Reported { input, output, cached, cache_written, reasoning } = reported;
    let said = [
        ("input", input),
        ("output", output),
        ("cached", cached),
        ("cache_written", cache_written),
        ("reasoning", reasoning),
    ];
    let said = said.into_iter().filter_map(|(key, number)| Some((key.to_owned(), number?.into())));
    Value::Object(said.collect::<Map<_, _>>())
}

/// What the events add up to: text, thinking, and name and arguments of each call by its number.
pub(crate) fn summed(events: &[Event]) -> (String, String, BTreeMap<usize, (String, String)>) {
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), BTreeMap::new());
    for event in events {
        match event {
            Event::Text(more) => text.push_str(more),
            Event::Thinking(more) => thinking.push_str(more),
            Event::Call { at, name } => {
                assert_eq!(calls.insert(*at, (name.clone(), String::new())), None, "a call is announced once");
            }
            Event::Arguments { at, text } => calls.get_mut(at).expect("it was announced").1.push_str(text),
            Event::Reported(_) => {}
        }
    }
    (text, thinking, calls)
}
