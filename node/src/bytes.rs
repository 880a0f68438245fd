//! Amounts of bytes, as a person writes them.

use std::str::FromStr;

use ephor_chain::Space;
use serde::{Deserialize, Deserializer, de::Error as _};

/// So many bytes: `20 GiB`, `500 MB`, or a number alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Bytes(pub(crate) u64);

/// Not an amount of bytes.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is no amount of bytes; write a whole number and B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as in `20 GiB`"
)]
pub(crate) struct NoBytes(String);

impl FromStr for Bytes {
    type Err = NoBytes;

    fn from_str(text: &str) -> Result<Self, NoBytes> {
        let wrong = || NoBytes(text.to_owned());
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let unit: u64 = match unit.trim() {
            "" | "B" => 1,
            "kB" => 1_000,
            "MB" => 1_000_000,
            "GB" => 1_000_000_000,
            "TB" => 1_000_000_000_000,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            "TiB" => 1 << 40,
            _ => return Err(wrong()),
        };
        number.checked_mul(unit).map(Self).ok_or_else(wrong)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

/// Bytes in the unit that a person would choose.
pub(crate) fn amount(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1000),
        10_000_000..=9_999_999_999 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{} GB", bytes / 1_000_000_000),
    }
}

/// How much of a quota is used, and what to do where that is much.
pub(crate) fn of_quota(space: Space) -> String {
    let Space { used, quota } = space;
    let hundredths = u128::from(used).saturating_mul(100).checked_div(u128::from(quota)).unwrap_or(100);
    let told = format!("{} of {}, {hundredths} %", amount(used), amount(quota));
    if space.is_short() {
        format!("{told}; raise `quota` under `[chain]` in ephor.toml: the node stops when it is reached")
    } else {
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_they_are_written() {
        for (text, bytes) in [("0", 0), ("20 GiB", 20 << 30), ("500MB", 500_000_000), ("1 kB", 1000), ("7 B", 7)] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)));
        }
        for text in ["", "GiB", "20 gib", "1.5 GiB", "-1", "20 GiB!", "99999999 TiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }
}
