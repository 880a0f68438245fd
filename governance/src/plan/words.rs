//! A plan in words, for people.

use std::fmt::{self, Display, Formatter, Write};

use super::{Origin, Pick, Source, Step, Times};
use crate::datum::Datum;

impl Display for Times {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Each => f.write_str("each"),
        }
    }
}

impl Display for Origin {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Is(value) => json(value, f),
            Self::In(values) => {
                f.write_str("one of ")?;
                joined(values, f, json)
            }
            Self::From(source) => source.fmt(f),
            Self::Text => f.write_str("the agent's own words"),
            Self::Ask => f.write_str("asked of a person"),
        }
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "`{field}` of what ")?,
            None => f.write_str("a text that ")?,
        }
        joined(&self.tools, f, |tool, f| tool.as_str().fmt(f))?;
        f.write_str(" answers")?;
        if let Some(given) = &self.given {
            f.write_str(", where ")?;
            joined(given, f, |(key, value), f| {
                write!(f, "`{key}` has ")?;
                json(value, f)
            })?;
        }
        match &self.pick {
            Pick::Only => f.write_str(", if it is the only one"),
            Pick::First => f.write_str(", the first"),
            Pick::Last => f.write_str(", the last"),
            Pick::All => f.write_str(", each of them"),
            Pick::Least(key) => write!(f, ", with the least `{key}`"),
            Pick::Most(key) => write!(f, ", with the most `{key}`"),
        }?;
        if self.with.is_empty() {
            return Ok(());
        }
        f.write_str(", asked with ")?;
        joined(&self.with, f, |(name, origin), f| write!(f, "{name}: ({origin})"))
    }
}

impl Step {
    /// Its tool, how often it may be done, and where each of its arguments comes from.
    #[must_use]
    pub fn words(&self) -> (String, String, Vec<(String, String)>) {
        match self {
            Self::Call { tool, times, arguments } => {
                let arguments = arguments.iter().map(|(name, origin)| (name.to_string(), origin.to_string()));
                (tool.to_string(), times.to_string(), arguments.collect())
            }
            Self::Anything { from } => {
                let names: Vec<&str> = from.iter().map(ephor_base::ToolName::as_str).collect();
                let why =
                    format!("what is to be done is only written in what {} answers: each call asks", names.join(", "));
                ("*".to_owned(), "-".to_owned(), vec![("*".to_owned(), why)])
            }
        }
    }
}

fn joined<T>(
    all: impl IntoIterator<Item = T>,
    f: &mut Formatter<'_>,
    one: impl Fn(T, &mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in all.into_iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        one(item, f)?;
    }
    Ok(())
}

/// A value, as JSON has it.
fn json(value: &Datum, f: &mut Formatter<'_>) -> fmt::Result {
    match value {
        Datum::Null | Datum::Wide => f.write_str("null"),
        Datum::Bool(yes) => yes.fmt(f),
        Datum::Number(number) => number.fmt(f),
        Datum::Text(text) | Datum::Cell(text) => write!(f, "{}", serde_json::Value::from(&**text)),
        Datum::List(values) => {
            f.write_char('[')?;
            joined(values, f, json)?;
            f.write_char(']')
        }
        Datum::Object(entries) => {
            f.write_char('{')?;
            joined(entries, f, |(key, value), f| {
                write!(f, "{}: ", serde_json::Value::from(&**key))?;
                json(value, f)
            })?;
            f.write_char('}')
        }
    }
}
