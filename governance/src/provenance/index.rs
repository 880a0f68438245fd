//! The span index: built once, when a span enters, so that a decision never reads a text again.

use std::{
    collections::HashMap,
    hash::{BuildHasher, DefaultHasher},
};

use super::{
    date::TurnTime,
    moments::{Said, When},
    phrases::JOINS,
    text::{stands_alone, words},
    tongues::UNTIL,
    typed::{Mention, Typed, scan},
};

/// Hashes that are the same on every machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Fixed;

impl BuildHasher for Fixed {
    type Hasher = DefaultHasher;
    fn build_hasher(&self) -> DefaultHasher {
        DefaultHasher::new()
    }
}

/// How many places of one word are kept. A value that is only found beyond them is untrusted.
const MOST_PLACES: usize = 256;

/// So many days and times of one span are kept in order.
const MOST_MOMENTS: usize = 64;
/// And so many values.
const MOST_VALUES: usize = 128;

/// Where a word stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Which span.
    pub(super) span: u32,
    /// At which byte of its folded text.
    pub(super) at: u32,
}

/// Where a typed value stands, and what stands beside it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct TypedPlace {
    pub(super) span: u32,
    pub(super) money: bool,
    pub(super) sentence: u32,
    /// At which word it begins, and the one behind it.
    pub(super) at: usize,
    pub(super) end: usize,
    /// At which byte of the folded text it begins.
    pub(super) byte: u32,
    pub(super) before: Box<str>,
    pub(super) after: Box<str>,
}

impl TypedPlace {
    pub(super) const fn place(&self) -> Place {
        Place { span: self.span, at: self.byte }
    }
}

/// What a text speaks of.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds {
    /// Amounts with their currencies: each with the word it begins at, the one behind it, and its first byte.
    pub(super) amounts: Vec<(usize, usize, usize, Typed)>,
    /// Days: the sentences that do, in order.
    pub(super) days: Vec<u32>,
    /// The days and the times, in order.
    pub(super) moments: Vec<Said>,
    /// The days, the times, the sums and the other numbers, each with its first byte.
    pub(super) values: Vec<(Typed, usize)>,
}

/// The words and typed values of some spans.
#[derive(Clone, Debug, Default)]
pub(super) struct Index {
    words: HashMap<Box<str>, Vec<Place>, Fixed>,
    typed: HashMap<Typed, Vec<TypedPlace>, Fixed>,
}

impl Index {
    /// Takes in the folded text of span number `span`, and says what it speaks of.
    pub(super) fn take_in(&mut self, span: u32, text: &str, now: Option<TurnTime>) -> Holds {
        for word in words(text) {
            let Ok(at) = u32::try_from(word.at) else { break };
            let place = Place { span, at };
            match self.words.get_mut(word.core) {
                Some(places) if places.len() < MOST_PLACES => places.push(place),
                Some(_) => {}
                None => {
                    self.words.insert(word.core.into(), vec![place]);
                }
            }
        }
        let mut holds = Holds::default();
        scan(text, now, |Mention { typed, money, sentence, at, end, byte, before, after }| {
            if matches!(typed, Typed::Amount(..)) {
                holds.amounts.push((at, end, byte, typed));
            }
            if matches!(typed, Typed::Date(_)) && holds.days.last() != Some(&sentence) {
                holds.days.push(sentence);
            }
            let kept = matches!(typed, Typed::Date(_) | Typed::Time(_) | Typed::Amount(..))
                || matches!(typed, Typed::Number(_) if !money);
            if kept && holds.values.len() < MOST_VALUES {
                holds.values.push((typed, byte));
            }
            let when = match typed {
                Typed::Date(day) => Some(When::Day(day)),
                Typed::Time(time) => Some(When::Time(time)),
                Typed::Left => Some(When::Left),
                _ => None,
            };
            if holds.moments.len() < MOST_MOMENTS {
                // Of 10:00-11:00, both stand at one word.
                let here = |said: &Said| said.at == at && matches!(said.when, When::Time(_));
                // The à of 10:30 à 11:00 stands before many an hour.
                let close = || holds.moments.last().is_some_and(|said| said.at.saturating_add(2) == at);
                let until = UNTIL.contains(&before) && !JOINS.contains(&before)
                    || matches!(before, "à" | "às" | "alle") && close();
                let ends = until || holds.moments.last().is_some_and(here);
                holds.moments.extend(when.map(|when| Said { sentence, at, when, ends }));
            }
            let places = self.typed.entry(typed).or_default();
            if places.len() < MOST_PLACES {
                let byte = u32::try_from(byte).unwrap_or(u32::MAX);
                places.push(TypedPlace {
                    span,
                    money,
                    sentence,
                    at,
                    end,
                    byte,
                    before: before.into(),
                    after: after.into(),
                });
            }
        });
        holds
    }

    /// The places where the whole of the folded `value` stands as tokens of a span whose text `text` gives.
    pub(super) fn places<'a>(
        &'a self,
        value: &'a str,
        text: impl Fn(u32) -> &'a str + 'a,
    ) -> impl Iterator<Item = Place> + 'a {
        let mut rarest: Option<(usize, &[Place])> = None;
        for word in words(value) {
            let places = self.words.get(word.core).map_or(&[][..], Vec::as_slice);
            if rarest.is_none_or(|(_, fewest)| places.len() < fewest.len()) {
                rarest = Some((word.at, places));
            }
            if places.is_empty() {
                break;
            }
        }
        let (offset, places) = rarest.unwrap_or((0, &[]));
        places.iter().filter_map(move |place| {
            let start = usize::try_from(place.at).ok()?.checked_sub(offset)?;
            let (text, end) = (text(place.span), start.checked_add(value.len())?);
            let whole = text.get(start..end) == Some(value) && stands_alone(text, start, end);
            whole.then_some(Place { span: place.span, at: u32::try_from(start).ok()? })
        })
    }

    /// The places of a typed value.
    pub(super) fn typed(&self, typed: Typed) -> &[TypedPlace] {
        self.typed.get(&typed).map_or(&[], Vec::as_slice)
    }
}
