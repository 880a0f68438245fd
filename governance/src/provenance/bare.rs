//! A sum of money that is said without a currency: approve the 470.

use super::{
    derive::MIN_CHARS,
    phrases::{FROM_HOUR, SMALL_WORDS, SUMS_BEHIND, SUMS_BY},
    tongues::meaning,
    typed::{Near, Typed, placed, scan},
};

/// Numbers of a text, each with its word and its byte.
type Places = Vec<(usize, usize)>;

/// Where the numbers of a folded text stand that are said as a sum is: before nothing that they could count, and behind a
/// word of paying, or behind one that `named` knows, as whom the sum goes to. And where those stand that may be one too.
pub(super) fn sums(text: &str, named: impl Fn(&str) -> bool) -> (Places, Places) {
    let all = placed(text);
    let near = Near::of(&all);
    let (mut sums, mut others) = (Vec::new(), Vec::new());
    scan(text, None, |mention| {
        let Typed::Number(number) = mention.typed else { return };
        let (before, first) = (near.get(mention.at, -1), near.get(mention.at, -2));
        let pays =
            SUMS_BEHIND.contains(&before) || SUMS_BY.iter().any(|verb| before.starts_with(verb)) || named(before);
        let range = first.starts_with(|c: char| c.is_ascii_digit()) || FROM_HOUR.contains(&first);
        let ordinal = meaning(near.get(mention.at, 0)).ordinal.is_some();
        if mention.money || ordinal || range || !near.ends_a_phrase(mention.end) {
            return;
        }
        if pays {
            sums.push((mention.at, mention.byte));
        } else if number.length() < MIN_CHARS && !SMALL_WORDS.contains(&before) && !NUMBERED.contains(&before) {
            others.push((mention.at, mention.byte));
        }
    });
    (sums, others)
}

/// Where the numbers of a folded text stand that count something which is no length, no person and nothing else that is
/// known: the 12 of 12 shares. Each with its word and its byte.
pub(super) fn counts(text: &str) -> Places {
    let all = placed(text);
    let near = Near::of(&all);
    let (mut counts, mut several) = (Vec::new(), Vec::new());
    scan(text, None, |mention| {
        let (word, after) = (near.get(mention.at, 0), near.get(mention.end, 0));
        let own = meaning(after);
        let known = own.unit.is_some() || own.month.is_some() || own.half.is_some() || own.weekday.is_some();
        let noun = after.chars().count() >= NOUN && after.chars().all(char::is_alphabetic) && !known;
        let plain = matches!(mention.typed, Typed::Number(_)) && !mention.money && meaning(word).ordinal.is_none();
        let name = near.get(mention.at, -1);
        if plain && noun && !near.ends_a_phrase(mention.end) && !NUMBERED.contains(&name) {
            counts.push((mention.at, mention.byte));
            several.extend(after.ends_with('s').then_some((mention.at, mention.byte)));
        }
    });
    // The 4 of 4 Abbey Row counts no abbeys.
    if several.is_empty() { counts } else { several }
}

/// A shorter word names nothing that is counted.
const NOUN: usize = 3;
/// Stand before the number of a thing, or an hour.
const NUMBERED: [&str; 14] = [
    "room", "table", "gate", "flight", "number", "no", "nr", "order", "line", "platform", "at", "street", "seat",
    "version",
];
