//! Numbers and amounts of money, in one normal form.

use super::{
    numerals,
    tongues::{CODES, MONEY, meaning},
};

/// A decimal number: `mantissa` × 10^−`scale`, with no zero to spare at the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    mantissa: i128,
    scale: u8,
}

/// A currency by its ISO 4217 code, in lower case.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Currency([u8; 3]);

impl Number {
    /// A whole number.
    #[must_use]
    pub const fn whole(value: i128) -> Self {
        Self { mantissa: value, scale: 0 }.normal()
    }

    /// A finite JSON number, exactly as its shortest decimal form says.
    #[must_use]
    pub fn of(value: f64) -> Option<Self> {
        Self::plain(&format!("{value}"))
    }

    /// A number or an amount of money as people write it, without its currency; none if it is neither.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_lowercase();
        let bare = text.split_whitespace().find(|word| word.contains(|c: char| c.is_ascii_digit()))?;
        let others = text.split_whitespace().filter(|word| *word != bare);
        let known = others.map(Currency::parse).all(|currency| currency.is_some());
        if !known {
            return None;
        }
        Self::parse(bare).or_else(|| amount(bare).map(|(_, number)| number))
    }

    /// What people write: `1200`, `1,200.50`, `1'200.50`, `1.200,50`, `-3`; none if it can be read two ways.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (sign, body) = match text.strip_prefix('-') {
            Some(body) => ("-", body),
            None => ("", text.strip_prefix('+').unwrap_or(text)),
        };
        let plain = match (body.rfind(','), body.rfind('.')) {
            _ if body.contains(['\'', '’']) => grouped(&body.replace('’', "'"), '\'', '.')?,
            (None, None) => body.to_owned(),
            (Some(comma), Some(point)) if comma < point => grouped(body, ',', '.')?,
            (Some(_), Some(_)) => grouped(body, '.', ',')?,
            (None, Some(_)) if body.matches('.').count() > 1 => grouped(body, '.', ',')?,
            // Of 1.200 nobody knows whether it is one and a fifth.
            (None, Some(point)) if may_be_grouped(body, point) => return None,
            (None, Some(_)) => body.to_owned(),
            (Some(comma), None) => match body.len().saturating_sub(comma) {
                2 | 3 if body.matches(',').count() == 1 => body.replace(',', "."),
                _ => grouped(body, ',', '.')?,
            },
        };
        Self::plain(&format!("{sign}{plain}"))
    }

    /// Digits with at most one point.
    fn plain(text: &str) -> Option<Self> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let bare = whole.strip_prefix('-').unwrap_or(whole);
        let figures = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        let fits = !bare.is_empty() && figures(bare) && figures(fraction) && bare.len() + fraction.len() <= 30;
        // A number that begins with a needless zero is a name, such as that of an account.
        if !fits || text.ends_with('.') || (bare.len() > 1 && bare.starts_with('0')) {
            return None;
        }
        let mantissa = format!("{whole}{fraction}").parse().ok()?;
        Some(Self { mantissa, scale: u8::try_from(fraction.len()).ok()? }.normal())
    }

    const fn normal(mut self) -> Self {
        while self.scale > 0 && self.mantissa % 10 == 0 {
            self.mantissa /= 10;
            self.scale -= 1;
        }
        self
    }

    /// Which of two is more.
    pub(super) fn compare(&self, other: &Self) -> std::cmp::Ordering {
        let up = |one: &Self, other: &Self| {
            let places = u32::from(other.scale.saturating_sub(one.scale));
            one.mantissa.saturating_mul(10_i128.saturating_pow(places))
        };
        up(self, other).cmp(&up(other, self))
    }

    /// So many times as much, if that is a whole number that is not negative.
    pub(super) fn times(&self, factor: u32) -> Option<u32> {
        let unit = 10_i128.checked_pow(u32::from(self.scale))?;
        let all = self.mantissa.checked_mul(factor.into())?;
        if all % unit == 0 { u32::try_from(all / unit).ok() } else { None }
    }

    /// With the point `places` further to the left.
    pub(super) fn shifted(&self, places: u8) -> Option<Self> {
        Some(Self { mantissa: self.mantissa, scale: self.scale.checked_add(places)? }.normal())
    }

    /// This and so many hundredths more.
    pub(super) fn and_hundredths(&self, hundredths: u32) -> Option<Self> {
        let whole = self.scale == 0 && (1..100).contains(&hundredths);
        let mantissa = self.mantissa.checked_mul(100)?.checked_add(hundredths.into())?;
        whole.then(|| Self { mantissa, scale: 2 }.normal())
    }

    /// How many characters it takes, written plainly.
    pub(super) fn length(&self) -> usize {
        let digits = self.mantissa.unsigned_abs().to_string().len();
        digits + usize::from(self.scale > 0)
    }

    /// Whether it is more than `units`.
    #[must_use]
    pub fn exceeds(&self, units: u64) -> bool {
        let bound = 10_i128.checked_pow(u32::from(self.scale)).and_then(|unit| unit.checked_mul(units.into()));
        bound.is_some_and(|bound| self.mantissa > bound)
    }
}

impl Currency {
    /// How many figures its minor unit has.
    pub(super) fn places(self) -> u8 {
        if [*b"jpy", *b"krw", *b"isk"].contains(&self.0) { 0 } else { 2 }
    }

    /// Every currency that is read.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        CODES.iter().filter_map(|code| code.as_bytes().try_into().ok().map(Self))
    }

    /// By code, sign or English name, in lower case.
    pub(super) fn parse(word: &str) -> Option<Self> {
        let code = MONEY.iter().find(|(name, _)| *name == word).map_or(word, |(_, code)| code);
        let known = CODES.iter().find(|known| **known == code)?;
        known.as_bytes().try_into().ok().map(Self)
    }
}

/// A number with the currency before or behind it in the same word: `$50`, `50€`, `chf120`.
pub(super) fn amount(word: &str) -> Option<(Currency, Number)> {
    let first = word.find(|c: char| c.is_ascii_digit() || c == '-')?;
    let (before, rest) = word.split_at_checked(first)?;
    if !before.is_empty() {
        return Some((Currency::parse(before.trim_end_matches('.'))?, Number::parse(rest)?));
    }
    let last = word.rfind(|c: char| c.is_ascii_digit())?.saturating_add(1);
    let (number, after) = word.split_at_checked(last)?;
    Some((Currency::parse(after)?, Number::parse(number)?))
}

/// Numbers as people write them out in one word.
pub(super) fn in_words(word: &str) -> Option<Number> {
    match word {
        "zero" => Some(Number::whole(0)),
        // The article in other languages is left out; this one is none.
        "one" => Some(Number::whole(1)),
        _ => numerals::worth(word).or_else(|| meaning(word).number).map(|value| Number::whole(value.into())),
    }
}

/// Whether the one point of a number may be that of thousands.
fn may_be_grouped(text: &str, point: usize) -> bool {
    (1..=3).contains(&point) && !text.starts_with('0') && text.len().saturating_sub(point) == 4
}

/// Takes grouping out of a number: groups of exactly three, and `point` before the fraction.
fn grouped(text: &str, group: char, point: char) -> Option<String> {
    let (whole, fraction) = text.split_once(point).unwrap_or((text, ""));
    let mut groups = whole.split(group);
    let first = groups.next()?;
    let rest: Vec<&str> = groups.collect();
    let fits = (1..=3).contains(&first.len()) && rest.iter().all(|part| part.len() == 3) && !rest.is_empty();
    if !fits || fraction.contains(point) || (text.contains(point) && fraction.is_empty()) {
        return None;
    }
    let plain = format!("{first}{}", rest.concat());
    Some(if fraction.is_empty() { plain } else { format!("{plain}.{fraction}") })
}
