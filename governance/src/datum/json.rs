//! JSON (RFC 8259), by `json-event-parser`, which gives every number as it is written.

use json_event_parser::{JsonEvent, SliceJsonParser};

use super::{Datum, Unreadable, build::Builder};
use crate::literals::Number;

pub(super) fn read(text: &str) -> Result<Datum, Unreadable> {
    let (mut parser, mut built) = (SliceJsonParser::new(text.as_bytes()), Builder::default());
    loop {
        match parser.parse_next().map_err(|error| Unreadable(format!("it is not JSON: {error}")))? {
            JsonEvent::StartArray => built.begin(false)?,
            JsonEvent::StartObject => built.begin(true)?,
            JsonEvent::EndArray | JsonEvent::EndObject => built.end()?,
            JsonEvent::ObjectKey(key) => built.key(&key),
            JsonEvent::String(text) => built.value(Datum::text(&text))?,
            JsonEvent::Number(text) => built.value(Number::json(&text).map_or(Datum::Wide, Datum::Number))?,
            JsonEvent::Boolean(yes) => built.value(Datum::Bool(yes))?,
            JsonEvent::Null => built.value(Datum::Null)?,
            JsonEvent::Eof => return built.finish(),
        }
    }
}
