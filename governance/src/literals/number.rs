//! Numbers as they are compared: exact decimals, whatever they were written as.

use std::{cmp::Ordering, fmt};

/// A decimal number: `coefficient` × 10^`exponent`, without zeros at the end of the coefficient.
///
/// It has at most 38 significant digits. What has more is no number here, so that nothing is equal to it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Number {
    negative: bool,
    coefficient: u128,
    exponent: i32,
}

/// Ten to this fits a coefficient.
const MAX_DIGITS: u32 = 38;
/// A greater exponent is refused, on either side.
const MAX_EXPONENT: i32 = 10_000;

impl Number {
    /// A whole number of at most 38 digits.
    #[must_use]
    pub fn whole(value: i128) -> Option<Self> {
        Self { negative: value < 0, coefficient: value.unsigned_abs(), exponent: 0 }.normal()
    }

    /// A finite number, exactly as its shortest decimal form says: that form is what a tool is given.
    #[must_use]
    pub fn of(value: f64) -> Option<Self> {
        Self::json(&format!("{value:e}"))
    }

    /// A number as JSON writes it (RFC 8259, section 6), and nothing else.
    #[must_use]
    pub fn json(text: &str) -> Option<Self> {
        let (negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = match rest.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent_of(exponent)?),
            None => (rest, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, figures(fraction)?),
            None => (mantissa, ""),
        };
        if figures(whole)?.len() > 1 && whole.starts_with('0') {
            return None;
        }
        let fraction = fraction.trim_end_matches('0');
        let mut digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit.wrapping_sub(b'0'));
        // Most numbers fit a word, which is added up in a fraction of the time.
        let coefficient = if whole.len().saturating_add(fraction.len()) < 19 {
            digits.fold(0_u64, |sum, digit| sum * 10 + u64::from(digit)).into()
        } else {
            digits.try_fold(0_u128, |sum, digit| sum.checked_mul(10)?.checked_add(digit.into()))?
        };
        let exponent = exponent.checked_sub(i32::try_from(fraction.len()).ok()?)?;
        Self { negative, coefficient, exponent }.normal()
    }

    /// A number as people write it: `1200`, `1,200.50`, `1'200.50`, `1.200,50`, `-3`; none if it can be read two ways, or begins
    /// with a needless zero, as the name of an account may.
    #[must_use]
    pub fn written(text: &str) -> Option<Self> {
        let (sign, body) = text.strip_prefix('-').map_or(("", text), |body| ("-", body));
        let plain = match (body.rfind(','), body.rfind('.')) {
            _ if body.contains(['\'', '’']) => grouped(&body.replace('’', "'"), '\'', '.')?,
            (None, None) => body.to_owned(),
            (Some(comma), Some(point)) if comma < point => grouped(body, ',', '.')?,
            (Some(_), Some(_)) => grouped(body, '.', ',')?,
            (None, Some(_)) if body.matches('.').count() > 1 => grouped(body, '.', ',')?,
            // Of 1.200 it is not known whether it is one and a fifth.
            (None, Some(point)) if may_be_grouped(body, point) => return None,
            (None, Some(_)) => body.to_owned(),
            (Some(comma), None) => match body.len().checked_sub(comma)? {
                2 | 3 if body.matches(',').count() == 1 => body.replace(',', "."),
                _ => grouped(body, ',', '.')?,
            },
        };
        if plain.contains(['e', 'E']) { None } else { Self::json(&format!("{sign}{plain}")) }
    }

    /// Whether it is more than `units`.
    #[must_use]
    pub fn exceeds(&self, units: u64) -> bool {
        Self::whole(units.into()).is_some_and(|units| self.cmp(&units) == Ordering::Greater)
    }

    /// As a whole number, if it is one that fits.
    #[must_use]
    pub fn to_u64(self) -> Option<u64> {
        let factor = 10_u128.checked_pow(u32::try_from(self.exponent).ok()?)?;
        let value = self.coefficient.checked_mul(factor)?;
        if self.negative { None } else { u64::try_from(value).ok() }
    }

    /// Coefficient with its sign, and exponent of ten.
    pub(crate) fn parts(self) -> Option<(i128, i32)> {
        let coefficient = i128::try_from(self.coefficient).ok()?;
        Some((if self.negative { coefficient.checked_neg()? } else { coefficient }, self.exponent))
    }

    /// What [`Number::parts`] gave.
    pub(crate) fn from_parts(coefficient: i128, exponent: i32) -> Option<Self> {
        let number = Self { negative: coefficient < 0, coefficient: coefficient.unsigned_abs(), exponent };
        number.normal().filter(|normal| *normal == number)
    }

    fn normal(mut self) -> Option<Self> {
        if self.coefficient == 0 {
            return Some(Self { negative: false, coefficient: 0, exponent: 0 });
        }
        while self.coefficient.is_multiple_of(10) {
            self.coefficient /= 10;
            self.exponent = self.exponent.checked_add(1)?;
        }
        let fits = digits(self.coefficient) <= MAX_DIGITS && (-MAX_EXPONENT..=MAX_EXPONENT).contains(&self.exponent);
        fits.then_some(self)
    }

    /// Compares the sizes of two numbers that are not zero.
    fn compare_sizes(&self, other: &Self) -> Ordering {
        let place = |one: &Self| i64::from(digits(one.coefficient)) + i64::from(one.exponent);
        // Of equally many places the one with fewer digits is filled up with zeros, and has no more digits then than the other.
        let filled = |one: &Self, other: &Self| {
            let missing = digits(other.coefficient).saturating_sub(digits(one.coefficient));
            one.coefficient.checked_mul(10_u128.checked_pow(missing)?)
        };
        place(self).cmp(&place(other)).then_with(|| filled(self, other).cmp(&filled(other, self)))
    }
}

impl fmt::Display for Number {
    /// `-4126e-1`: the same text for the same number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.negative { "-" } else { "" };
        match self.exponent {
            0 => write!(f, "{sign}{}", self.coefficient),
            exponent => write!(f, "{sign}{}e{exponent}", self.coefficient),
        }
    }
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |one: &Self| {
            if one.coefficient == 0 {
                0
            } else if one.negative {
                -1
            } else {
                1
            }
        };
        let by_sign = sign(self).cmp(&sign(other));
        by_sign.then_with(|| match sign(self) {
            0 => Ordering::Equal,
            1 => self.compare_sizes(other),
            _ => other.compare_sizes(self),
        })
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn digits(coefficient: u128) -> u32 {
    coefficient.checked_ilog10().unwrap_or(0) + 1
}

fn figures(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())).then_some(text)
}

fn exponent_of(text: &str) -> Option<i32> {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    let value: i32 = figures(bare)?.parse().ok()?;
    Some(if text.starts_with('-') { -value } else { value })
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
