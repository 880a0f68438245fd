//! Text as a model or a person reads it.

/// The name with its control characters written as escapes, so that a file name cannot pose as a line of the answer.
pub(crate) fn visible(name: &str) -> String {
    let mut shown = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    shown
}

/// `1 file`, `2 files`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The largest index up to `limit` that does not split a UTF-8 sequence of `bytes`, or `limit` where they are not UTF-8.
pub(crate) fn boundary(bytes: &[u8], limit: usize) -> usize {
    if limit >= bytes.len() {
        return bytes.len();
    }
    let is_start = |index: &usize| bytes.get(*index).is_none_or(|byte| byte & 0xC0 != 0x80);
    (limit.saturating_sub(3)..=limit).rev().find(is_start).unwrap_or(limit)
}

/// A few names and how many there were, so that a sentence stays a sentence.
#[derive(Default)]
pub(crate) struct Names {
    shown: Vec<String>,
    total: u64,
}

impl Names {
    const SHOWN: usize = 5;

    pub(crate) fn add(&mut self, path: &str) {
        self.total += 1;
        if self.shown.len() < Self::SHOWN {
            self.shown.push(format!("`{}`", visible(path)));
        }
    }

    /// "3 binary files were not searched: `a`, `b`, `c`", or nothing when there were none.
    pub(crate) fn sentence(&self, one: &str, many: &str) -> Option<String> {
        if self.total == 0 {
            return None;
        }
        let rest = self.total - self.shown.len() as u64;
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        Some(format!("{}: {}{more}.", count(self.total, one, many), self.shown.join(", ")))
    }
}
