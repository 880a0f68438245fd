//! What a server says.

use ephor_base::legible;

/// Something that a server wrote. It may lie, and may hold instructions that are meant for a model.
///
/// The type keeps it from being taken for words of the operator by accident: what takes it out is named so that a review sees it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Untrusted<T>(T);

impl<T> Untrusted<T> {
    /// Marks `value` as the server's.
    #[must_use]
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// Looks at it.
    #[must_use]
    pub const fn as_untrusted(&self) -> &T {
        &self.0
    }

    /// Takes it out.
    #[must_use]
    pub fn into_untrusted(self) -> T {
        self.0
    }
}

impl<T: AsRef<str>> Untrusted<T> {
    /// It on one line, every character visible ([`legible::line`]).
    #[must_use]
    pub fn legible(&self) -> String {
        legible::line(self.0.as_ref())
    }
}

/// The beginning of `text`, at most `most` bytes; with an ellipsis where it was cut, if there is room for one.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let Some(room) = most.checked_sub('…'.len_utf8()) else {
        return text.split_at(text.floor_char_boundary(most)).0.to_owned();
    };
    let (kept, _) = text.split_at(text.floor_char_boundary(room));
    format!("{kept}…")
}
