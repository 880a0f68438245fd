//! Amounts of money that a text speaks of and does not mean: what a sum was, and what only a part of it is meant of.

use super::{text::Word, typed::Near};

/// Say right before a sum that it is one of before.
const OLD: [&str; 26] = [
    "old",
    "previous",
    "former",
    "original",
    "alte",
    "alten",
    "bisherige",
    "bisherigen",
    "vorherige",
    "früher",
    "ancien",
    "ancienne",
    "précédent",
    "vecchio",
    "vecchia",
    "precedente",
    "antiguo",
    "antigua",
    "anterior",
    "antigo",
    "antiga",
    "oude",
    "vorige",
    "stary",
    "stara",
    "poprzedni",
];
/// Say that it was one, if another is said to be now.
const WAS: [&str; 14] =
    ["was", "were", "war", "waren", "était", "etait", "era", "fue", "eram", "foi", "was", "waren", "był", "była"];
/// Say what is now.
const NOW: [&str; 19] = [
    "now",
    "new",
    "is",
    "are",
    "jetzt",
    "nun",
    "neu",
    "ist",
    "sind",
    "maintenant",
    "est",
    "ora",
    "adesso",
    "ahora",
    "es",
    "agora",
    "nu",
    "teraz",
    "jest",
];
/// Stand before the first and the second of what is changed.
const FROM: [&str; 8] = ["from", "von", "de", "da", "van", "z", "od", "du"];
const TO: [&str; 9] = ["to", "auf", "à", "a", "naar", "na", "para", "do", "op"];
/// Parts of a sum.
const PARTS: [&str; 33] = [
    "half", "third", "quarter", "fifth", "tenth", "percent", "hälfte", "drittel", "viertel", "prozent", "moitié",
    "tiers", "quart", "metà", "terzo", "quarto", "mitad", "tercio", "cuarto", "metade", "terço", "helft", "derde",
    "kwart", "procent", "połowę", "połowa", "thirds", "quarters", "cent", "cento", "ciento", "połowy",
];
/// Stand between a part and its sum.
const OF: [&str; 15] = ["of", "von", "der", "des", "de", "di", "do", "da", "dos", "van", "z", "ze", "d", "den", "dem"];
/// Stand between those and the sum.
const FILLS: [&str; 17] = [
    "the", "my", "our", "all", "those", "these", "den", "dem", "meinen", "los", "les", "mes", "mis", "dei", "i", "os",
    "de",
];
/// Stand before what is weighed, and behind it.
const WEIGHS: [&str; 6] = ["weighs", "weigh", "weighing", "weighed", "weight", "wiegt"];
/// So far before a sum such a word may stand.
const REACH: usize = 4;

/// Whether the number at `at` is that of a sum of which only a part is meant: half of the 200.
pub(super) fn is_part(near: Near<'_, '_>, at: usize) -> bool {
    let word = |back: usize| at.checked_sub(back).map_or("", |at| near.get(at, 0));
    let mut back = 1;
    while back < REACH
        && FILLS.contains(&word(back))
        && !(OF.contains(&word(back)) && is_a_part(word(back.saturating_add(1))))
    {
        back = back.saturating_add(1);
    }
    (OF.contains(&word(back)) && is_a_part(word(back.saturating_add(1)))) || (word(back) == "half" && back > 1)
}

fn is_a_part(word: &str) -> bool {
    PARTS.contains(&word) || (word.ends_with('%') && word.len() > 1)
}

/// Whether what looks like a currency at `at` is a weight: 50 pounds of flour. `first` is the place of the number.
pub(super) fn is_weight(near: Near<'_, '_>, first: usize, at: usize) -> bool {
    let pounds = matches!(near.get(at, 0), "pound" | "pounds" | "libras");
    // Of my savings, of our budget: money again.
    let owned = matches!(near.get(at, 2), "my" | "our" | "the" | "your" | "mine" | "it" | "that");
    let of = matches!(near.get(at, 1), "of" | "de" | "heavier" | "lighter") && !owned;
    pounds && (of || WEIGHS.contains(&near.get(first, -1)))
}

/// Whether any word of a text may say of a sum that it is one of before.
pub(super) fn may_be_old(words: &[Word<'_>]) -> bool {
    let says = |word: &Word<'_>| OLD.contains(&word.core) || WAS.contains(&word.core) || FROM.contains(&word.core);
    words.iter().any(says)
}

/// Whether the sum that begins at the word `at`, of several at `others`, is one of before.
pub(super) fn is_old(words: &[Word<'_>], at: usize, others: &[usize]) -> bool {
    let near = Near::of(words);
    let within = |at: usize, list: &[&str]| {
        (1..=REACH).filter_map(|back| at.checked_sub(back)).any(|at| list.contains(&near.get(at, 0)))
    };
    let before = |at: usize, list: &[&str]| at.checked_sub(1).is_some_and(|at| list.contains(&near.get(at, 0)));
    // From 500 euros to 700, whatever the currency takes.
    let goes_to = || {
        before(at, &FROM)
            && others.iter().any(|other| *other > at && other.saturating_sub(at) <= REACH && before(*other, &TO))
    };
    let second = |other: &usize| within(*other, &NOW) || within(*other, &TO);
    within(at, &OLD) || goes_to() || (within(at, &WAS) && !within(at, &NOW) && others.iter().any(second))
}
