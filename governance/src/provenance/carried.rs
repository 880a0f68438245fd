//! What a call could have put into its own result.
//!
//! A tool that repeats what it was told would make anything trusted. So a result vouches for no value that stands in an
//! untrusted argument of its call, or holds a word of one that no person has said; and a result that is trusted throughout vouches only for
//! values with more letters or more figures than those arguments could have carried in, in whatever encoding.

use std::collections::BTreeSet;

use ephor_base::{Arguments, arguments::Value};

use super::{
    text::folded,
    typed::{Typed, Whole, scan, whole},
};

/// A shorter word of an argument is found in too many values to mean anything.
const MIN_CHARS: usize = 3;

/// The untrusted arguments of a call. Empty: its result is nobody's words but the tool's.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    texts: Vec<String>,
    /// The words of them that no person has said, and all.
    words: Vec<String>,
    all: BTreeSet<String>,
    typed: Vec<Typed>,
    letters: usize,
    figures: usize,
}

impl Carried {
    /// Takes in an untrusted value with everything in it.
    pub(super) fn take_in(&mut self, value: &Value, is_said: &impl Fn(&str) -> bool) {
        leaves(value, &mut |text| {
            let text = folded(text);
            // A day or a time selects; it carries no other text.
            let selects = whole(&text)
                .iter()
                .any(|way| matches!(way, Whole::Moment(..) | Whole::One(Typed::Date(_) | Typed::Time(_))));
            let (letters, figures) = if selects { (0, 0) } else { weigh(&text) };
            self.letters = self.letters.saturating_add(letters);
            self.figures = self.figures.saturating_add(figures);
            scan(&text, None, |mention| self.typed.push(mention.typed));
            let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= MIN_CHARS);
            self.words.extend(words.filter(|word| !is_said(word)).map(str::to_owned));
            self.all.extend(parts(&text).map(str::to_owned));
            self.texts.push(text);
        });
    }

    /// Whether the tool itself must have known the folded `value`. `all` is whether its result is trusted throughout.
    pub(super) fn leaves_out(&self, value: &str, typed: Option<Typed>, all: bool) -> bool {
        let repeats = self.texts.iter().any(|text| text.contains(value))
            || self.words.iter().any(|word| value.contains(word.as_str()))
            // Said words in another order are other words.
            || parts(value).all(|part| self.all.contains(part));
        let (letters, figures) = weigh(value);
        let could_carry = letters <= self.letters && figures <= self.figures && self.letters.max(self.figures) > 0;
        let means = typed.is_some_and(|typed| self.typed.contains(&typed));
        self.texts.is_empty() || !(repeats || means || (all && could_carry))
    }
}

/// The words of a text without any sign in them.
fn parts(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty())
}

/// How many letters and how many figures a text has.
fn weigh(text: &str) -> (usize, usize) {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    (letters, text.chars().filter(|c| c.is_numeric()).count())
}

/// Every text, number and key in a value, as text.
fn leaves(value: &Value, each: &mut impl FnMut(&str)) {
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Integer(number) => each(&number.to_string()),
        Value::Float(number) => each(&number.to_string()),
        Value::Text(text) => each(text),
        Value::List(values) => values.iter().for_each(|value| leaves(value, each)),
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            each(key);
            leaves(value, each);
        }),
    }
}

/// The arguments of a call that are not `trusted`.
/// `is_said` is whether a person has said a word.
pub(super) fn of(
    arguments: &Arguments,
    trusted: impl Fn(&str, &Value) -> bool,
    is_said: impl Fn(&str) -> bool,
) -> Carried {
    let mut carried = Carried::default();
    arguments
        .iter()
        .filter(|(name, value)| !trusted(name, value))
        .for_each(|(_, value)| carried.take_in(value, &is_said));
    carried
}
