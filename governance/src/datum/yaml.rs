//! YAML 1.2, by `saphyr-parser`: one document, in the core schema, without anchors, aliases and tags.

use saphyr_parser::{Event, Parser, ScalarStyle};

use super::{Datum, Unreadable, build::Builder};
use crate::literals::Number;

pub(super) fn read(text: &str) -> Result<Datum, Unreadable> {
    let mut built = Builder::default();
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| Unreadable(format!("it is not YAML: {error}")))?;
        match event {
            Event::Alias(_) => return Err(refused("an alias")),
            Event::Scalar(_, _, 1.., _) | Event::SequenceStart(1.., _) | Event::MappingStart(1.., _) => {
                return Err(refused("an anchor"));
            }
            Event::Scalar(_, _, _, Some(_)) | Event::SequenceStart(_, Some(_)) | Event::MappingStart(_, Some(_)) => {
                return Err(refused("a tag"));
            }
            Event::SequenceStart(..) => built.begin(false)?,
            Event::MappingStart(..) => built.begin(true)?,
            Event::SequenceEnd | Event::MappingEnd => built.end()?,
            // It would bring in keys that a reader does not see.
            Event::Scalar(text, ScalarStyle::Plain, ..) if text == "<<" => return Err(refused("a merge key")),
            Event::Scalar(text, ..) if built.wants_a_key() => built.key(&text),
            Event::Scalar(text, ScalarStyle::Plain, ..) => built.value(scalar(&text))?,
            Event::Scalar(text, ..) => built.value(Datum::text(&text))?,
            _ => {}
        }
    }
    built.finish()
}

fn refused(what: &str) -> Unreadable {
    Unreadable(format!("it has {what}"))
}

/// A scalar in the core schema (YAML 1.2.2, section 10.3). Octal, hexadecimal and not finite numbers are left as texts.
fn scalar(text: &str) -> Datum {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Datum::Null,
        "true" | "True" | "TRUE" => Datum::Bool(true),
        "false" | "False" | "FALSE" => Datum::Bool(false),
        text => match Number::json(text) {
            Some(number) => Datum::Number(number),
            None if is_wide(text) => Datum::Wide,
            None => Datum::text(text),
        },
    }
}

/// Whether it is a number of too many figures.
fn is_wide(text: &str) -> bool {
    let bare = text.strip_prefix('-').unwrap_or(text);
    bare.len() > 38 && bare.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
