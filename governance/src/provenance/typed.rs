//! What a text says in numbers, amounts of money, days and times.

use super::{
    date::{self, Date, Time, TurnTime},
    length::{self, Length, Recurrence},
    measures::{adjective, dimension, glued},
    number::{self, Currency, Number},
    numerals,
    phrases::{AGED, AND_HUNDREDTHS, HUNDREDS, HUNDREDTHS, JOINS, MULTIPLES, PARTIES, SMALL_WORDS, WE_ARE},
    sums,
    text::{Word, is_wide, words},
    tongues::{OF, Unit, meaning, unspaced},
    when::{Reading, is_of_a_day},
};

/// A value that two texts may write differently and mean alike.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Typed {
    Number(Number),
    Amount(Currency, Number),
    Currency(Currency),
    Date(Date),
    /// Says of a day or a time at the same word that something is moved away from it.
    Left,
    /// The day on which something ends, of its first day and a length.
    Until(Date),
    Time(Time),
    /// The number of an account, a card or a telephone, without the spaces in it: a digest of its letters and figures.
    Identifier(u64),
    /// How long something lasts.
    Length(Length),
    /// How long before a moment.
    Lead(Length),
    /// How often.
    Recurrence(Recurrence),
    /// A time of day from which another is counted, and that other.
    Base(Time),
    Reckoned(Time),
    /// The last part of the path of a link: a digest of it.
    Segment(u64),
    /// Two names with a stroke between, at the beginning of the path of a link or before the number of a thing in them: a
    /// digest.
    Path(u64),
}

impl Typed {
    /// How much, of an amount of money.
    pub(super) const fn number(&self) -> Option<Number> {
        match self {
            Self::Amount(_, number) => Some(*number),
            _ => None,
        }
    }
}

/// A typed value in a text, with the words directly beside it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mention<'a> {
    pub(super) typed: Typed,
    /// Whether it is written with a currency.
    pub(super) money: bool,
    /// Which sentence of the text it stands in.
    pub(super) sentence: u32,
    /// At which word of the text it begins, and the one behind it.
    pub(super) at: usize,
    pub(super) end: usize,
    /// At which byte it begins.
    pub(super) byte: usize,
    pub(super) before: &'a str,
    pub(super) after: &'a str,
}

/// Every typed value in a folded text. Days without a year, and such as "tomorrow", are counted from `now`; without it
/// they mean nothing.
pub(super) fn scan<'a>(text: &'a str, now: Option<TurnTime>, mut found: impl FnMut(Mention<'a>)) {
    let placed = placed(text);
    let near = Near(&placed);
    let mut reading = Reading { now, last: None, left: false, time: None, part: None };
    let (mut run_ends, mut number_ends, mut length_ends, mut sentence) = (0, 0, 0, 0_u32);
    for (at, Word { core: word, at: byte }) in placed.iter().enumerate() {
        if ends_a_sentence(text, at.checked_sub(1).and_then(|last| placed.get(last)), placed.get(at)) {
            sentence = sentence.saturating_add(1);
        }
        let (before, next) = (near.get(at, -1), at.saturating_add(1));
        let mention =
            |typed, Said { money, end, after }| Mention { typed, money, sentence, at, end, byte: *byte, before, after };
        let plain = |typed, end| mention(typed, Said { money: false, end, after: near.get(end, 0) });
        if at >= run_ends {
            let run = groups(&placed, at);
            let end = at.saturating_add(run.len());
            identifier(run.iter().map(|word| word.core)).into_iter().for_each(|typed| found(plain(typed, end)));
            run_ends = if run.len() >= GROUPS { end } else { 0 };
        }
        spaced(near, at).or_else(|| segment(word)).into_iter().for_each(|typed| found(plain(typed, next)));
        things(word, &mut |typed, before| found(Mention { before, ..plain(typed, next) }));
        if at < run_ends {
            continue;
        }
        let mut lasts = None;
        if at >= number_ends.max(length_ends) {
            lasts = length::said(near, at, &mut |typed| found(plain(typed, next)));
            length_ends = at.saturating_add(lasts.map_or(0, |(_, words)| words));
        }
        // A group of an account number is no number of its own, and neither is a part of a day.
        if at >= number_ends && reading.part != Some(at) && !is_of_a_day(near, at) {
            number_ends = numbers(near, at, &mut |typed, said| found(mention(typed, said)));
        }
        reading.word(near, at, lasts, &mut |typed| found(plain(typed, next)));
    }
}

/// A short name with its number set apart, such as that of a flight: `lx 318` is `lx318`.
fn spaced(near: Near<'_, '_>, at: usize) -> Option<Typed> {
    let (name, number) = (near.get(at, 0), near.get(at, 1));
    let fits = (2..=3).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (2..=5).contains(&number.len())
        && number.bytes().all(|byte| byte.is_ascii_digit());
    fits.then(|| Typed::Identifier(digest(&format!("{name}{number}"))))
}

/// The last part of the path of a link, where it names something: without a dot, and with a figure in it.
pub(super) fn segment(link: &str) -> Option<Typed> {
    let (_, path) = link.get(link.find(':')?..)?.strip_prefix("://")?.split_once('/')?;
    let path = path.split(['?', '#']).next()?.trim_end_matches('/');
    let last = path.rsplit('/').next()?;
    (has_figure(last) && !last.contains('.')).then(|| Typed::Segment(digest(last)))
}

/// What a link to a thing says, or a name such as `nordwind/charts#12`: in which two names it is, and its number with the
/// word before that.
fn things<'a>(word: &'a str, found: &mut impl FnMut(Typed, &'a str)) {
    let path = word.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map(|(_, path)| path);
    if let Some(path) = path {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut parts = path.split('/').filter(|part| !matches!(*part, "" | "-"));
        if let (Some(one), Some(other)) = (parts.next(), parts.next()) {
            found(path_of(one, other), "");
        }
        if let (Some(kind), Some(number)) = (parts.next(), parts.next().and_then(date::digits)) {
            found(Typed::Number(Number::whole(number.into())), kind.rsplit(['_', '-']).next().unwrap_or(kind));
        }
    } else if let Some((path, number)) = word.split_once(SIGNS)
        && let (Some((one, other)), Some(number)) = (path.split_once('/'), date::digits(number))
    {
        found(path_of(one, other), "");
        found(Typed::Number(Number::whole(number.into())), "number");
    }
}

/// Two names with a stroke between.
pub(super) fn path_of(one: &str, other: &str) -> Typed {
    Typed::Path(digest(&format!("{one}/{other}")))
}

/// The value as the last part of the path of a link.
pub(super) fn as_segment(value: &str) -> Option<Typed> {
    let fits = has_figure(value) && !value.contains(['/', '?', '#', '.', ' ']);
    fits.then(|| Typed::Segment(digest(value)))
}

/// A digest that is the same on every machine.
pub(super) fn digest(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    std::hash::Hash::hash(text, &mut hasher);
    std::hash::Hasher::finish(&hasher)
}

/// Whether a sentence ends between two words. A stop after a number or a short word may be no end.
fn ends_a_sentence(text: &str, one: Option<&Word<'_>>, next: Option<&Word<'_>>) -> bool {
    let (Some(one), Some(next)) = (one, next) else { return false };
    let end = one.at.saturating_add(one.core.len());
    let between = text.get(end..next.at).unwrap_or_default();
    let stop = between.contains('.')
        && !matches!(one.core, "a.m" | "p.m")
        && one.core.chars().count() > 2
        && (!has_figure(one.core) || one.core.contains(':') || Date::iso(one.core).is_some());
    stop || between.contains(['?', '!', '。', '？', '！', '؟'])
}

/// The words of a word: in a script without spaces, those that are known, and each character of the rest.
fn parts(word: Word<'_>) -> impl Iterator<Item = Word<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = word.core.get(at..).filter(|rest| !rest.is_empty())?;
        let wide = rest.starts_with(is_wide);
        let len = if wide { unspaced(rest) } else { rest.find(is_wide).unwrap_or(rest.len()) };
        let part = Word { at: word.at.saturating_add(at), core: rest.get(..len)? };
        at = at.saturating_add(len);
        Some(part)
    })
}

/// So many groups of figures in a row are one number with spaces in it.
const GROUPS: usize = 3;
/// An IBAN has no more groups than this behind its first.
const IBAN_GROUPS: usize = 8;
/// A shorter run of letters and figures is no identifier.
const IDENTIFIER: usize = 10;

fn has_figure(word: &str) -> bool {
    word.bytes().any(|byte| byte.is_ascii_digit())
}

/// The words from `at` on that are one number with spaces in it: groups with figures, or those of an IBAN, which may be
/// letters alone.
fn groups<'a, 'b>(placed: &'b [Word<'a>], at: usize) -> &'b [Word<'a>] {
    let rest = placed.get(at..).unwrap_or_default();
    let Some(first) = rest.first().filter(|first| has_figure(first.core)) else { return &[] };
    let end = |word: &Word<'_>| word.at.saturating_add(word.core.len()).saturating_add(1);
    let iban = is_iban_head(first.core);
    let fits = |word: &str| plain(word) && if iban { word.len() <= 4 } else { has_figure(word) };
    let joined = rest.windows(2).take_while(|pair| match pair {
        [one, next] => next.at == end(one) && fits(next.core) && plain(one.core) && (!iban || one.core.len() == 4),
        _ => false,
    });
    let joined = joined.take(if iban { IBAN_GROUPS } else { usize::MAX });
    let run = rest.get(..joined.count().saturating_add(1)).unwrap_or_default();
    // The next word may look like one more group: the check digits say where the number ends.
    let ends = |end: &usize| iban && checks(run.get(..*end).unwrap_or_default());
    let end = (1..=run.len()).find(ends).unwrap_or(run.len());
    run.get(..end).unwrap_or_default()
}

/// Whether the groups are an IBAN.
fn checks(groups: &[Word<'_>]) -> bool {
    is_checked(&groups.iter().map(|group| group.core).collect::<String>())
}

/// Whether a text is an IBAN by the check digits of ISO 13616, with or without spaces: 15 to 34 characters, and one modulo
/// 97.
pub(super) fn is_checked(text: &str) -> bool {
    let all: String = text.chars().filter(|c| *c != ' ').collect();
    let country = all.bytes().take(2).all(|byte| byte.is_ascii_alphabetic());
    let (head, tail) = all.split_at_checked(4).unwrap_or_default();
    let turned = tail.chars().chain(head.chars()).filter_map(|c| c.to_digit(36));
    let rest = turned.fold(0_u32, |rest, value| (rest * if value < 10 { 10 } else { 100 } + value) % 97);
    country && (15..=34).contains(&all.len()) && all.is_ascii() && rest == 1
}

/// The country and the check digits of ISO 13616, in a group of four.
fn is_iban_head(word: &str) -> bool {
    let bytes = word.as_bytes();
    bytes.len() == 4
        && bytes.iter().take(2).all(u8::is_ascii_alphabetic)
        && bytes.iter().skip(2).all(u8::is_ascii_digit)
}

/// Only letters and figures, and perhaps a sign before.
fn plain(word: &str) -> bool {
    word.trim_start_matches('+').chars().all(char::is_alphanumeric)
}

/// What the parts are together, if they are an identifier.
fn identifier<'a>(parts: impl Iterator<Item = &'a str>) -> Option<Typed> {
    let whole: String = parts.collect();
    let fits = whole.len() >= IDENTIFIER && has_figure(&whole) && plain(&whole);
    fits.then(|| Typed::Identifier(digest(&whole)))
}

/// The words of a folded text, those of scripts without spaces apart.
pub(super) fn placed(text: &str) -> Vec<Word<'_>> {
    words(text).flat_map(parts).collect()
}

/// The words around a word; empty where there is none.
#[derive(Clone, Copy)]
pub(super) struct Near<'a, 'b>(&'b [Word<'a>]);

impl<'a, 'b> Near<'a, 'b> {
    pub(super) const fn of(words: &'b [Word<'a>]) -> Self {
        Self(words)
    }

    /// Whether no noun can stand at `at`: a sign or the end of the text is before it, or it is a small word.
    pub(super) fn ends_a_phrase(self, at: usize) -> bool {
        let last = at.checked_sub(1).and_then(|last| self.0.get(last));
        let (Some(last), Some(next)) = (last, self.0.get(at)) else { return true };
        let behind = last.at.saturating_add(last.core.len()).saturating_add(1);
        next.at > behind || SMALL_WORDS.contains(&next.core)
    }

    pub(super) fn get(self, at: usize, step: isize) -> &'a str {
        at.checked_add_signed(step).and_then(|at| self.0.get(at)).map_or("", |word| word.core)
    }
}

/// Stand before the number of a thing: `#1184`, `!342`.
pub(super) const SIGNS: [char; 2] = ['#', '!'];

/// A number in a text: how it stands there.
#[derive(Clone, Copy)]
struct Said<'a> {
    money: bool,
    /// The place behind it.
    end: usize,
    /// The word for what it counts, or the word behind it.
    after: &'a str,
}

/// Numbers and amounts of money that begin at `at`. Answers the place behind them.
fn numbers<'a>(near: Near<'a, '_>, at: usize, found: &mut impl FnMut(Typed, Said<'a>)) -> usize {
    let (word, one) = (near.get(at, 0), at.saturating_add(1));
    if let Some((currency, number)) = number::amount(word) {
        if sums::is_part(near, at)
            || MULTIPLES.contains(&near.get(one, 0))
            || HUNDREDS.contains(&near.get(one, 0))
            || thousand(near, one).is_some()
        {
            return one;
        }
        money(near, currency, number, one, found);
        return one;
    }
    let percent = word.strip_suffix('%');
    let phrase = numerals::phrase(near, at).map(|(number, words)| (Number::whole(number.into()), words));
    // An ordinal is its number for whoever stands beside it: first class.
    if let Some(place) = meaning(word).ordinal {
        found(Typed::Number(Number::whole(place.into())), Said { money: false, end: one, after: near.get(at, 1) });
        return one;
    }
    let bare = || {
        let bare = percent.or_else(|| glued(word).map(|(number, _)| number)).unwrap_or(word);
        Number::parse(bare.strip_prefix(SIGNS).unwrap_or(bare)).or_else(|| number::in_words(bare))
    };
    let spaced = || thousands(near, at);
    let Some((number, words)) = phrase.or_else(spaced).or_else(|| Some((bare()?, 1))) else {
        // Of a few the name is no other word.
        let named = || matches!(word, "euros" | "dollars" | "francs" | "franken" | "yen" | "rupees" | "złoty");
        if let Some(currency) = Currency::parse(word).filter(|_| word.len() == 3 || named()) {
            found(Typed::Currency(currency), Said { money: true, end: one, after: near.get(at, 1) });
        }
        return one;
    };
    let end = at.saturating_add(words);
    if is_multiplied(near, at, end) || sums::is_part(near, at) || sums::is_weight(near, at, end) {
        return end;
    }
    if let Some(currency) = Currency::parse(near.get(end, 0)) {
        return money(near, currency, number, end.saturating_add(1), found);
    }
    if let Some(currency) = Currency::parse(near.get(at, -1)) {
        return money(near, currency, number, end, found);
    }
    let after = if percent.is_some() { "%" } else { noun(near, at, end) };
    found(Typed::Number(number), Said { money: false, end, after });
    end
}

/// Whether a number is a part of a greater one that is not read: the two of two million, and what is behind a million.
fn is_multiplied(near: Near<'_, '_>, at: usize, end: usize) -> bool {
    let (before, word, after) = (near.get(at, -1), near.get(at, 0), near.get(end, 0));
    let figures = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
    (MULTIPLES.contains(&after) && !is_in_metres(near, at, end))
        || (HUNDREDS.contains(&after) && !HUNDREDTHS.contains(&after) && figures(word))
        || MULTIPLES.contains(&before)
        || (HUNDREDS.contains(&word) && figures(before))
}

/// Whether the `m` at `end` is a metre: 6.99 m long, a height of 2.85 m.
fn is_in_metres(near: Near<'_, '_>, at: usize, end: usize) -> bool {
    let before = [near.get(at, -1), near.get(at, -2)];
    near.get(end, 0) == "m"
        && (adjective(near.get(end, 1)).is_some() || before.iter().any(|word| dimension(word).is_some()))
}

/// The group of three figures at `at`, where one space stands before it.
fn thousand<'a>(near: Near<'a, '_>, at: usize) -> Option<&'a str> {
    let (last, group) = (near.0.get(at.checked_sub(1)?)?, near.0.get(at)?);
    let joined = group.at == last.at.saturating_add(last.core.len()).saturating_add(1);
    let whole = group.core.split([',', '.']).next()?;
    (joined && whole.len() == 3 && date::digits(whole).is_some()).then_some(group.core)
}

/// `1 200 €`: an amount with a space before its last three figures. Only of money: else it may be two numbers.
fn thousands(near: Near<'_, '_>, at: usize) -> Option<(Number, usize)> {
    let word = near.get(at, 0);
    let group = thousand(near, at.saturating_add(1)).filter(|_| word.len() <= 3 && date::digits(word).is_some())?;
    let money = Currency::parse(near.get(at, 2)).or_else(|| Currency::parse(near.get(at, -1)));
    money?;
    Some((Number::parse(&format!("{word}{group}"))?, 2))
}

/// An amount of money; `end` is the place behind it. Hundredths behind it belong to it.
fn money<'a>(
    near: Near<'a, '_>,
    currency: Currency,
    number: Number,
    end: usize,
    found: &mut impl FnMut(Typed, Said<'a>),
) -> usize {
    let joins = AND_HUNDREDTHS.iter().position(|join| *join == near.get(end, 0));
    let more = joins.and_then(|join| {
        let at = end.saturating_add(1);
        let (count, words) = match numerals::phrase(near, at) {
            Some(said) => said,
            None => (date::digits(near.get(at, 0)).or_else(|| numerals::worth(near.get(at, 0)))?, 1),
        };
        let behind = at.saturating_add(words);
        let named = HUNDREDTHS.contains(&near.get(behind, 0));
        // Twenty con five may be five of something, and twenty and a half.
        let bare = join < 2 && count >= 10 && meaning(near.get(behind, 0)).unit.is_none();
        let whole = number.and_hundredths(count).filter(|_| named || bare)?;
        Some((whole, behind.saturating_add(usize::from(named))))
    });
    let (number, end) = more.unwrap_or((number, end));
    let said = Said { money: true, end, after: near.get(end, 0) };
    found(Typed::Amount(currency, number), said);
    found(Typed::Number(number), said);
    found(Typed::Currency(currency), said);
    end
}

/// What a number at `at`, with its end at `end`, counts; where a text says that in another way, the plain word for it.
fn noun<'a>(near: Near<'a, '_>, at: usize, end: usize) -> &'a str {
    match (near.get(end, 0), near.get(end, 1)) {
        // One of us is not how many we are.
        ("of", "us" | "them") if near.get(at, 0) != "one" => "people",
        _ if is_a_party(near, at, end) => "people",
        ("per" | "por" | "pour", "cento" | "ciento" | "cent") => "%",
        (after, _) if meaning(after).unit.is_none() && is_an_age(near, at) => "years",
        (after, _) => after,
    }
}

/// Whether a number is how many people there are: `we are 6`, `a party of 6`.
fn is_a_party(near: Near<'_, '_>, at: usize, end: usize) -> bool {
    let (before, first) = (near.get(at, -1), near.get(at, -2));
    let we_are = WE_ARE.iter().any(|(one, other)| *other == before && (one.is_empty() || *one == first));
    let party = OF.contains(&before) && PARTIES.contains(&first);
    (we_are || party) && near.ends_a_phrase(end)
}

/// Whether a number is how old somebody is: `aged 4`, `the kids are four and seven`.
fn is_an_age(near: Near<'_, '_>, at: usize) -> bool {
    let before = near.get(at, -1);
    if JOINS.contains(&before) {
        return at.checked_sub(2).is_some_and(|first| is_an_age(near, first));
    }
    let persons = |unit| matches!(unit, Unit::Person | Unit::Adult | Unit::Child);
    let nearby = || [-2, -3, -4].iter().any(|step| meaning(near.get(at, *step)).unit.is_some_and(persons));
    before == "aged" || (AGED.contains(&before) && nearby())
}

/// What the whole of a folded value is, and no part of it more than that.
pub(super) enum Whole {
    One(Typed),
    /// A day and a time of it, with the offset from UTC that is written.
    Moment(Date, Time, Option<i32>),
}

/// Reads the whole of a folded value in every way it can be read.
pub(super) fn whole(value: &str) -> Vec<Whole> {
    let mut ways = Vec::new();
    // No number, day or sum has such a sign.
    if value.contains('@') {
        return ways;
    }
    ways.extend(identifier(value.split(' ')).map(Whole::One));
    let one = |typed: Option<Typed>| typed.map(Whole::One);
    ways.extend(one(Number::parse(value).map(Typed::Number)));
    ways.extend(one(Date::figures(value).map(Typed::Date)));
    ways.extend(one(Time::parse(value).map(Typed::Time)));
    let code = if value.len() == 3 { Currency::parse(value) } else { None };
    ways.extend(one(code.map(Typed::Currency)));
    let amount = number::amount(value).or_else(|| {
        let (first, second) = value.split_once(' ')?;
        let (currency, number) = match Currency::parse(first) {
            Some(currency) => (currency, second),
            None => (Currency::parse(second)?, first),
        };
        Some((currency, Number::parse(number)?))
    });
    ways.extend(one(amount.map(|(currency, number)| Typed::Amount(currency, number))));
    if value.starts_with(['p', '-']) {
        ways.extend(one(Length::iso(value)));
    }
    ways.extend(one(Recurrence::parse(value).map(Typed::Recurrence)));
    // A flight and the like: letters, and figures behind them.
    let letters = value.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or_default();
    let figures = value.get(letters..).is_some_and(|rest| date::digits(rest).is_some() && rest.len() <= 5);
    if (2..=3).contains(&letters) && figures && value.len() > letters.saturating_add(1) {
        ways.push(Whole::One(Typed::Identifier(digest(value))));
    }
    if let Some((day, clock)) = value.split_once(['t', ' '])
        && let (Some(day), Some((clock, offset))) = (Date::figures(day), date::clock_and_offset(clock))
    {
        ways.push(Whole::Moment(day, clock, offset));
    }
    ways
}
