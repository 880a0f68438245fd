//! Values as sources and plans have them: exact numbers, texts in NFC, and nothing that could be read two ways.
//!
//! They are read by well-kept parsers within bounds of size, depth and number, in time that grows with the text alone. A key twice,
//! an anchor, an alias or a tag is an error: then nothing is taken from the whole text.

mod build;
mod csv;
mod json;
mod yaml;

use ephor_base::{Format, arguments::Value};

use crate::literals::{self, Number};

/// A value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Datum {
    /// Nothing.
    Null,
    /// Yes or no.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text, in NFC.
    Text(Box<str>),
    /// What a cell of a table has, which does not say whether it is a text or a number.
    Cell(Box<str>),
    /// Values in order.
    List(Vec<Self>),
    /// Values by key, in NFC, sorted by it without an underscore at its end.
    Object(Vec<(Box<str>, Self)>),
    /// A number of more figures than are compared. It is equal to nothing, itself included.
    Wide,
}

/// A text from which nothing is taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub(crate) String);

/// The longest text that is read, in bytes.
pub const MAX_BYTES: usize = 4 << 20;
/// How deep values nest at most.
pub const MAX_DEPTH: usize = 16;
/// How many values a text has at most.
pub const MAX_VALUES: usize = 200_000;

impl Datum {
    /// Reads a text in `format`.
    ///
    /// # Errors
    /// [`Unreadable`] says why nothing is taken from it.
    pub fn read(format: Format, text: &str) -> Result<Self, Unreadable> {
        if text.len() > MAX_BYTES {
            return Err(Unreadable(format!("it has {} bytes, and at most {MAX_BYTES} are read", text.len())));
        }
        match format {
            Format::Json => json::read(text),
            Format::Yaml => yaml::read(text),
            Format::Csv => csv::read(text),
            Format::Text => Ok(Self::text(text)),
            Format::None => Err(Unreadable("its registration declares no format".to_owned())),
        }
    }

    /// Reads JSON (RFC 8259).
    ///
    /// # Errors
    /// [`Unreadable`] says why nothing is taken from it.
    pub fn json(text: &str) -> Result<Self, Unreadable> {
        Self::read(Format::Json, text)
    }

    /// An argument.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        let number = |number: Option<Number>| number.map_or(Self::Wide, Self::Number);
        match value {
            Value::Null => Self::Null,
            Value::Bool(yes) => Self::Bool(*yes),
            Value::Integer(whole) => number(Number::whole(*whole)),
            Value::Float(float) => number(Number::of(*float)),
            Value::Text(text) => Self::text(text),
            Value::List(values) => Self::List(values.iter().map(Self::of).collect()),
            Value::Object(map) => {
                let mut entries: Vec<(Box<str>, Self)> =
                    map.iter().map(|(key, value)| (literals::nfc(key).into(), Self::of(value))).collect();
                entries.sort_by(|(one, _), (other, _)| bare(one).cmp(bare(other)));
                Self::Object(entries)
            }
        }
    }

    /// A text.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(literals::nfc(text).into())
    }

    /// Whether the two are the same: texts letter by letter, addresses without case, numbers by value, moments as moments, lists in
    /// any order.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(other)) => one == other,
            (Self::Number(one), Self::Number(other)) => one == other,
            (Self::Cell(cell), Self::Number(number)) | (Self::Number(number), Self::Cell(cell)) => {
                Number::json(cell) == Some(*number)
            }
            (Self::Text(one) | Self::Cell(one), Self::Text(other) | Self::Cell(other)) => {
                one == other || mean_the_same(one, other)
            }
            (Self::List(ones), Self::List(others)) => ones.len() == others.len() && are_same(ones, others),
            (Self::Object(ones), Self::Object(others)) => {
                let keys =
                    |entries: &[(Box<str>, Self)]| entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
                let mut values = ones.iter().zip(others).map(|((_, one), (_, other))| (one, other));
                ones.len() == others.len() && keys(ones) == keys(others) && values.all(|(one, other)| one.is(other))
            }
            _ => false,
        }
    }

    /// The value of a key of an object, with or without an underscore at the end of either.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Self> {
        let Self::Object(entries) = self else { return None };
        let at = entries.binary_search_by(|(own, _)| bare(own).cmp(bare(key))).ok()?;
        entries.get(at).map(|(_, value)| value)
    }

    /// The text, if it is one or the cell of a table.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Cell(text) => Some(text),
            _ => None,
        }
    }

    /// Every text and every number in it, as text.
    pub(crate) fn leaves(&self, each: &mut impl FnMut(&str)) {
        match self {
            Self::Text(text) | Self::Cell(text) => each(text),
            Self::Number(number) => each(&number.to_string()),
            Self::List(values) => values.iter().for_each(|value| value.leaves(each)),
            Self::Object(entries) => entries.iter().for_each(|(_, value)| value.leaves(each)),
            Self::Null | Self::Bool(_) | Self::Wide => {}
        }
    }

    /// The same bytes for all values that are the same, and other bytes for others.
    pub(crate) fn canonical(&self, into: &mut Vec<u8>) {
        let put = |into: &mut Vec<u8>, tag: u8, bytes: &[u8]| {
            into.push(tag);
            into.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
            into.extend_from_slice(bytes);
        };
        match self {
            Self::Null => put(into, 0, &[]),
            Self::Bool(yes) => put(into, 1, &[u8::from(*yes)]),
            Self::Number(number) => put(into, 2, number.to_string().as_bytes()),
            Self::Text(text) | Self::Cell(text) => match meaning(text) {
                Some(meaning) => put(into, 3, meaning.as_bytes()),
                None => put(into, 4, text.as_bytes()),
            },
            Self::List(values) => {
                let mut each: Vec<Vec<u8>> = values.iter().map(Self::to_canonical).collect();
                each.sort_unstable();
                put(into, 5, &each.concat());
            }
            Self::Object(entries) => {
                let mut all = Vec::new();
                for (key, value) in entries {
                    put(&mut all, 6, key.as_bytes());
                    value.canonical(&mut all);
                }
                put(into, 7, &all);
            }
            Self::Wide => put(into, 8, &[]),
        }
    }

    fn to_canonical(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.canonical(&mut bytes);
        bytes
    }
}

/// Whether there are as many of each. No list is compared that is longer than a plan's or an argument's values.
fn are_same(ones: &[Datum], others: &[Datum]) -> bool {
    let has_wide = |values: &[Datum]| values.iter().any(Datum::has_wide);
    if has_wide(ones) || has_wide(others) {
        return false;
    }
    let sorted = |values: &[Datum]| {
        let mut sorted: Vec<Vec<u8>> = values.iter().map(Datum::to_canonical).collect();
        sorted.sort_unstable();
        sorted
    };
    sorted(ones) == sorted(others)
}

impl Datum {
    fn has_wide(&self) -> bool {
        match self {
            Self::Wide => true,
            Self::List(values) => values.iter().any(Self::has_wide),
            Self::Object(entries) => entries.iter().any(|(_, value)| value.has_wide()),
            _ => false,
        }
    }
}

/// Whether two texts of different letters have the same meaning.
fn mean_the_same(one: &str, other: &str) -> bool {
    let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_digit());
    let may = (begins(one) && begins(other)) || one.eq_ignore_ascii_case(other);
    may && meaning(one).is_some_and(|one| meaning(other) == Some(one))
}

/// What a text is compared by in place of its letters: a moment, or an address without its case.
fn meaning(text: &str) -> Option<String> {
    let is_long = || text.len() > 512;
    if !text.contains(['@', ':']) || is_long() {
        return None;
    }
    match literals::moment(text) {
        Some(literals::Literal::Moment(nanoseconds)) => Some(format!("moment {nanoseconds}")),
        Some(literals::Literal::Local(local)) => Some(format!("local {local}")),
        _ => literals::address(text).map(|address| format!("address {address}")),
    }
}

/// A key as it is compared.
fn bare(key: &str) -> &str {
    key.strip_suffix('_').filter(|bare| !bare.is_empty()).unwrap_or(key)
}

/// An object of these entries, none of which has the key of another.
pub(crate) fn object(mut entries: Vec<(Box<str>, Datum)>) -> Result<Datum, Unreadable> {
    entries.sort_by(|(one, _), (other, _)| bare(one).cmp(bare(other)));
    let twice = entries.windows(2).find_map(|pair| match pair {
        [(one, _), (other, _)] if bare(one) == bare(other) => Some(one),
        _ => None,
    });
    match twice {
        Some(key) => Err(Unreadable(format!("the key `{}` appears twice", key.chars().take(64).collect::<String>()))),
        None => Ok(Datum::Object(entries)),
    }
}
