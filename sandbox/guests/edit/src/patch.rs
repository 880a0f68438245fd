//! A unified patch, as it was parsed.

/// The most hunks of a patch, and the most files.
pub(crate) const MOST_HUNKS: usize = 1000;

/// A unified patch: changes of one file or several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Patch(pub(crate) Vec<Section>);

/// What a patch does to one file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Section {
    /// The file before.
    pub(crate) old: Name,
    /// The file afterwards.
    pub(crate) new: Name,
    pub(crate) hunks: Vec<Hunk>,
}

/// What a patch calls a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Name {
    /// It has no name there.
    Unsaid,
    /// `/dev/null`: there is no file.
    Nothing,
    /// Its name, without the `a/` or `b/` that git puts before it.
    File(String),
}

/// One change with the lines around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hunk {
    /// The line of the file before at which it begins, from 1, as the patch has it; none where it does not say.
    pub(crate) at: Option<usize>,
    pub(crate) lines: Vec<Line>,
}

/// A line of a hunk, with its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Line {
    pub(crate) kind: Kind,
    pub(crate) text: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Context,
    Removed,
    Added,
}

impl Patch {
    /// What it does to each file, in its order.
    #[must_use]
    pub fn sections(&self) -> &[Section] {
        &self.0
    }
}

impl Section {
    /// What it calls the file before.
    #[must_use]
    pub const fn before(&self) -> &Name {
        &self.old
    }

    /// What it calls the file afterwards.
    #[must_use]
    pub const fn after(&self) -> &Name {
        &self.new
    }

    /// Whether each name that it says can stand for the file `path`: they are the same, or the one ends with the other.
    #[must_use]
    pub fn is_of(&self, path: &str) -> bool {
        let ends =
            |one: &str, other: &str| one.strip_suffix(other).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'));
        let can = |name: &Name| match name {
            Name::File(name) => ends(path, name.trim_start_matches("./")) || ends(name, path),
            Name::Unsaid | Name::Nothing => true,
        };
        can(&self.old) && can(&self.new)
    }

    /// Its changes, in their order.
    #[must_use]
    pub fn hunks(&self) -> &[Hunk] {
        &self.hunks
    }
}

impl Hunk {
    /// The lines that it takes: what stands at its place before.
    pub(crate) fn before(&self) -> Vec<&str> {
        self.of(Kind::Added)
    }

    /// The lines that it leaves.
    pub(crate) fn after(&self) -> Vec<&str> {
        self.of(Kind::Removed)
    }

    fn of(&self, not: Kind) -> Vec<&str> {
        self.lines.iter().filter(|line| line.kind != not).map(|line| line.text.as_str()).collect()
    }

    pub(crate) fn changes(&self) -> bool {
        self.lines.iter().any(|line| line.kind != Kind::Context)
    }
}
