//! What the tick reads of the log.

use ephor_base::{Digest, Seq, Timestamp};

use crate::{
    chunks::{Ending, Material},
    entry::Entry,
    graph::Link,
};

/// The most edges that one entry shows, and the most entries of other logs that it is the first to name.
pub const MOST_LINKS: usize = 256;

/// Whether the tick itself brought an entry about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Author {
    /// Something else did.
    Other,
    /// The tick did: by keeping something, or by having a text embedded. It is not sensed, or the tick would follow itself.
    Tick,
}

/// What an entry says, sealed with its session: gone when that is erased.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Content {
    /// The node of the graph. The entries in `others` and the text are erased with its session.
    pub entry: Entry,
    /// The edges that the entry shows: at most [`MOST_LINKS`]. Entries of other logs that they name stand in `others`.
    pub links: Vec<Link>,
    /// Entries of other logs that this one is the first to name: at most [`MOST_LINKS`].
    pub others: Vec<Entry>,
    /// The text, if it has one to be recalled. If the entry ends a text, it takes that text's place.
    pub text: Option<Material>,
}

/// An entry of the node's own log, as the shell reads it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogEntry {
    /// Its place.
    pub seq: Seq,
    /// The hash of its leaf.
    pub leaf: Digest,
    /// The time of the record.
    pub time: Timestamp,
    /// Who brought it about.
    pub author: Author,
    /// What comes to an end with it. Not sealed with its session: what is over stays over when that is erased.
    pub ends: Option<Ending>,
    /// What it says; none for what says nothing to memory, or was erased.
    pub content: Option<Content>,
}

impl LogEntry {
    /// What memory takes in of it: nothing of what the tick caused.
    pub(super) fn sensed(&self) -> Option<&Content> {
        self.content.as_ref().filter(|_| self.author == Author::Other)
    }

    /// The text among that, and what it stands in.
    pub(super) fn text(&self) -> Option<(&Content, &Material)> {
        let content = self.sensed()?;
        Some((content, content.text.as_ref()?))
    }
}
