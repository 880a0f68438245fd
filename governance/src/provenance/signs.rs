//! What a message says that may mean a record of a list: words, names, sums, days and hours, each where it stands.

use std::collections::{BTreeSet, HashMap};

use super::{
    date::{Date, Time, TurnTime, digits},
    index::Fixed,
    number::Number,
    rows::{Row, is_code},
    slots::singular,
    text::{is_wide, weight, words},
    tongues::meaning,
    typed::{Near, Typed, digest, placed, scan},
};

/// A shorter word stands in too many records to mean one, and so does one of these.
const PICKS: usize = 3;
const NO_PICKS: [&str; 60] = [
    "the", "and", "for", "you", "not", "all", "any", "can", "has", "had", "was", "are", "but", "out", "our", "her",
    "his", "him", "she", "its", "new", "now", "one", "two", "via", "per", "let", "get", "who", "how", "der", "die",
    "das", "und", "ein", "den", "dem", "des", "für", "von", "mit", "les", "une", "est", "que", "por", "los", "las",
    "una", "con", "del", "che", "non", "per", "het", "een", "van", "dla", "nie", "jak",
];
/// So many letters of a word are its stem, if there are more.
const STEM: usize = 6;
/// Names of more words are not looked for.
pub(super) const MOST_WORDS: usize = 6;
/// So many figures make a number that means something.
const FIGURES: usize = 3;
/// Stand before a day, an hour or a sum that others come before or behind.
const COMPARES: [&str; 24] = [
    "since", "after", "before", "until", "till", "by", "under", "over", "above", "below", "seit", "nach", "vor", "bis",
    "unter", "über", "depuis", "après", "avant", "jusqu", "desde", "hasta", "sinds", "sous",
];
/// Stand before a month in which something was.
const WITHIN_A_MONTH: [&str; 9] = ["in", "during", "im", "en", "em", "nel", "w", "within", "since"];
/// So many minutes about an hour are still about it.
const ABOUT_AN_HOUR: u32 = 25;
/// What is said more often is no other sign.
const MOST_TIMES: usize = 8;
/// In a longer message no word means a record: it is more than a request.
const MOST_SAID: usize = 4096;

/// Something that a message says which may mean a record.
#[derive(Clone, Debug)]
pub(super) struct Sign {
    pub(super) what: What,
    /// At which byte of the folded text.
    pub(super) at: usize,
    /// Whether it is a name or has figures.
    pub(super) is_strong: bool,
    pub(super) is_excluded: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum What {
    Word(u64),
    /// The beginning of a word.
    Stem(u64),
    /// A word or a few, as a value has them.
    Value(u64),
    Day(Date),
    Weekday(i64),
    Month(u32),
    Time(Time),
    /// About an hour of the day, in minutes.
    About(u32),
    Sum(Number),
}

/// The signs of a message.
#[derive(Clone, Debug, Default)]
pub(super) struct Signs {
    all: Vec<Sign>,
    by_what: HashMap<What, Vec<usize>, Fixed>,
    /// The hours that are only said about.
    about: Vec<usize>,
    pub(super) is_too_long: bool,
}

/// Reads the signs of a message.
struct Reader<'t> {
    text: &'t str,
    names: &'t [Box<str>],
    excluded: &'t [(usize, usize)],
    signs: Signs,
}

impl Signs {
    /// What the folded text of a message says. `names` are the words that it writes as names, `excluded` the bytes that say
    /// what is not meant, and `now` is when its turn began.
    pub(super) fn of(text: &str, names: &[Box<str>], excluded: &[(usize, usize)], now: Option<TurnTime>) -> Self {
        let signs = Self { is_too_long: words(text).nth(MOST_SAID).is_some(), ..Self::default() };
        if signs.is_too_long {
            return signs;
        }
        let mut reader = Reader { text, names, excluded, signs };
        reader.words();
        reader.values();
        reader.typed(now);
        reader.loose();
        reader.signs
    }

    pub(super) fn get(&self, number: usize) -> Option<&Sign> {
        self.all.get(number)
    }

    /// At which bytes something stands that fits.
    pub(super) fn places(&self, fits: impl Fn(What) -> bool) -> BTreeSet<usize> {
        self.all.iter().filter(|sign| fits(sign.what)).map(|sign| sign.at).collect()
    }

    /// The signs that a record has.
    pub(super) fn of_row(&self, row: &Row) -> BTreeSet<usize> {
        let says = &row.says;
        let exact = (says.words.iter().map(|word| What::Word(*word)))
            .chain(says.stems.iter().map(|stem| What::Stem(*stem)))
            .chain(says.values.iter().map(|value| What::Value(*value)))
            .chain(says.days.iter().flat_map(|day| [What::Day(*day), What::Weekday(day.weekday())]))
            .chain(says.months.iter().map(|month| What::Month(*month)))
            .chain(says.times.iter().map(|time| What::Time(*time)))
            .chain(says.sums.iter().map(|sum| What::Sum(*sum)));
        let mut found: BTreeSet<usize> = exact.filter_map(|what| self.by_what.get(&what)).flatten().copied().collect();
        let about = |number: &&usize| match self.get(**number).map(|sign| sign.what) {
            Some(What::About(hour)) => says.times.iter().any(|time| time.minute().abs_diff(hour) <= ABOUT_AN_HOUR),
            _ => false,
        };
        found.extend(self.about.iter().filter(about));
        found
    }

    /// Whether something is said where it is meant.
    pub(super) fn says(&self, what: What) -> bool {
        self.that_are(what).any(|sign| !sign.is_excluded)
    }

    /// Whether a name is said, and only where it is not meant.
    pub(super) fn denies(&self, word: &str) -> bool {
        let what = What::Word(digest(word));
        self.that_are(what).any(|sign| sign.is_excluded && sign.is_strong) && !self.says(what)
    }

    fn that_are(&self, what: What) -> impl Iterator<Item = &Sign> {
        self.by_what.get(&what).into_iter().flatten().filter_map(|number| self.get(*number))
    }
}

impl Reader<'_> {
    fn push(&mut self, what: What, at: usize, is_strong: bool) {
        // A day that is said where something is denied is still the day that is spoken of.
        let is_of_a_day = matches!(what, What::Day(_) | What::Weekday(_) | What::Sum(_));
        let is_excluded = !is_of_a_day && self.excluded.iter().any(|(from, to)| (*from..*to).contains(&at));
        let number = self.signs.all.len();
        if self.signs.by_what.get(&what).is_some_and(|same| same.len() >= MOST_TIMES) {
            return;
        }
        if matches!(what, What::About(_)) {
            self.signs.about.push(number);
        }
        self.signs.by_what.entry(what).or_default().push(number);
        self.signs.all.push(Sign { what, at, is_strong, is_excluded });
    }

    fn is_name(&self, word: &str) -> bool {
        self.names.iter().any(|name| **name == *word)
    }

    /// Whether a word is a name, or has figures.
    fn names_one(&self, word: &str) -> bool {
        let figures = word.bytes().filter(u8::is_ascii_digit).count();
        self.is_name(word) || figures >= FIGURES || is_code(word)
    }

    fn fits(&self, word: &str) -> bool {
        (weight(word) >= PICKS && !NO_PICKS.contains(&word)) || self.names_one(word)
    }

    fn words(&mut self) {
        for (at, word) in picking(self.text, 2) {
            if self.fits(word) {
                self.push(What::Word(digest(word)), at, self.names_one(word));
            }
            if let Some(stem) = stem(word) {
                self.push(What::Stem(stem), at, self.is_name(word));
            }
        }
        for (at, pair) in numbered(self.text) {
            self.push(What::Word(pair), at, true);
        }
    }

    /// Every word, and every few words that stand together, as a value may have them.
    fn values(&mut self) {
        let said: Vec<_> = words(self.text).collect();
        for (from, first) in said.iter().enumerate() {
            let mut value = String::new();
            for (count, word) in said.iter().skip(from).take(MOST_WORDS).enumerate() {
                value.push_str(if count == 0 { "" } else { " " });
                value.push_str(bare(word.core));
                if self.fits(&value) {
                    let is_strong = count > 0 || self.names_one(&value) || value.contains(['@', '_']);
                    self.push(What::Value(digest(&value)), first.at, is_strong);
                }
            }
        }
    }

    fn typed(&mut self, now: Option<TurnTime>) {
        let text = self.text;
        scan(text, now, |mention| {
            let what = match mention.typed {
                Typed::Date(day) => What::Day(day),
                Typed::Time(time) => What::Time(time),
                Typed::Amount(_, sum) => What::Sum(sum),
                Typed::Number(sum) if sum.length() >= FIGURES => What::Sum(sum),
                _ => return,
            };
            if !COMPARES.contains(&mention.before) {
                self.push(what, mention.byte, false);
            }
        });
    }

    /// Days of the week, months, and hours that are only said about.
    fn loose(&mut self) {
        let list = placed(self.text);
        let near = Near::of(&list);
        for (at, word) in list.iter().enumerate() {
            let before = near.get(at, -1);
            if let Some(weekday) = meaning(word.core).weekday.filter(|_| !COMPARES.contains(&before)) {
                self.push(What::Weekday(weekday), word.at, false);
            }
            // What is of a month may have come in the next.
            if let Some(month) = meaning(word.core).month.filter(|_| WITHIN_A_MONTH.contains(&before)) {
                self.push(What::Month(month), word.at, false);
            }
            if let Some(hour) = about(near, at) {
                self.push(What::About(hour), word.at, false);
            }
        }
    }
}

/// The words of a text that can pick a row, each with where it begins.
pub(super) fn picking(text: &str, least: usize) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0_usize;
    text.split_inclusive(|c: char| !c.is_alphanumeric()).filter_map(move |part| {
        let begin = at;
        at = at.saturating_add(part.len());
        let word = part.trim_end_matches(|c: char| !c.is_alphanumeric());
        let year = word.len() == 4
            && word.bytes().all(|byte| byte.is_ascii_digit())
            && is_of_a_day(text.get(..begin).unwrap_or_default().chars().rev(), text.get(begin.saturating_add(4)..));
        (weight(word) >= least && !year).then(|| (begin, singular(word)))
    })
}

/// A word without the sign that says what it is, and without the ending that says whose something is.
pub(super) fn bare(word: &str) -> &str {
    let word = word.trim_start_matches(['#', '@', '!', '~']);
    word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word)
}

/// Whether figures stand beside a sign that joins those of a day: 2027-02-22, 22/2/2027.
fn is_of_a_day(before: impl Iterator<Item = char>, behind: Option<&str>) -> bool {
    let joins = |mut chars: std::iter::Take<&mut dyn Iterator<Item = char>>| {
        chars.next().is_some_and(|c| matches!(c, '-' | '/' | '.')) && chars.next().is_some_and(|c| c.is_ascii_digit())
    };
    let (mut before, mut behind) = (before, behind.unwrap_or_default().chars());
    let (before, behind): (&mut dyn Iterator<Item = char>, &mut dyn Iterator<Item = char>) = (&mut before, &mut behind);
    joins(before.take(2)) || joins(behind.take(2))
}

/// The beginning of a word that may have another ending elsewhere.
pub(super) fn stem(word: &str) -> Option<u64> {
    let letters = word.chars().all(char::is_alphabetic) && !word.contains(is_wide);
    let end = word.char_indices().nth(STEM).map(|(at, _)| at)?;
    letters.then(|| digest(word.get(..end).unwrap_or(word)))
}

/// The hour of `around 7` or `gegen 8`, in minutes.
fn about(near: Near<'_, '_>, at: usize) -> Option<u32> {
    const ABOUT: [&str; 10] = ["around", "about", "circa", "ca", "gegen", "vers", "verso", "sobre", "rond", "około"];
    let hour = near.get(at, 0).trim_end_matches(['h', 'u']);
    let hour = digits(hour).filter(|hour| ABOUT.contains(&near.get(at, -1)) && *hour < 24)?;
    hour.checked_mul(60)
}

/// Each word with a short number behind it, such as `terminal 2`, and where it begins.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, u64)> {
    let short = |word: &str| word.len() < FIGURES && word.bytes().all(|byte| byte.is_ascii_digit());
    let pairs = words(text).zip(words(text).skip(1));
    pairs
        .filter(move |(word, number)| short(number.core) && weight(word.core) >= PICKS && !short(word.core))
        .map(|(word, number)| (word.at, digest(&format!("{} {}", singular(word.core), number.core))))
}
