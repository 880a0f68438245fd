//! What the tick has kept: the vectors that it asked for, so that a rebuild asks for none of them again.
//!
//! A part holds numbers and no text: labels and vectors, each text's by its place in the log and its leaf. But a vector tells of its text.
//! So a part is of one session, and its caller seals it with that session's key: an erasure reaches it. It is a record of answers and
//! nothing more: without it the same is asked again.

use ephor_base::{Digest, Label, Seq, SessionId, cbor};
use minicbor::{Decode, Encode};

use crate::{
    chunks::MOST_PIECES,
    entry::{EntryRef, Origin},
    index::{embed::EmbedderName, vectors::Vector},
};

/// The most texts of one part.
pub const MOST_TEXTS: usize = 256;

/// What was found out about one text.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
pub struct Resolved {
    /// The place of the entry that brought it.
    #[n(0)]
    pub seq: Seq,
    /// The hash of that entry's leaf.
    #[n(1)]
    pub leaf: Digest,
    /// The label that it was given: its own, joined with that of what it took the place of.
    #[n(2)]
    pub label: Label,
    /// The vectors of its pieces, in order: at most [`MOST_PIECES`].
    #[n(3)]
    pub vectors: Vec<Option<Vector>>,
}

/// What was found out about texts of one session.
#[derive(Clone, PartialEq, Eq, Debug, Encode)]
pub struct Part {
    /// The last entry that the tick had taken in when it made this: in what log, where, and with what leaf.
    #[n(0)]
    pub made_at: EntryRef,
    /// Who made the vectors.
    #[n(1)]
    pub embedder: EmbedderName,
    /// The session, with whose key it is to be sealed.
    #[n(2)]
    pub session: SessionId,
    /// The texts: 1 to [`MOST_TEXTS`], ascending by place, none behind `made_at`.
    #[n(3)]
    pub texts: Vec<Resolved>,
}

impl Part {
    /// The canonical bytes. They tell of the texts: they are to be sealed with the key of the session.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        cbor::to_vec(self)
    }

    /// The part of these bytes.
    ///
    /// # Errors
    /// [`cbor::NotCanonical`] if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, cbor::NotCanonical> {
        cbor::from_slice(bytes)
    }

    /// The log that it was made of.
    #[must_use]
    pub const fn log(&self) -> Origin {
        self.made_at.origin
    }
}

/// A list of at most so many; a longer one is refused before it is read.
fn bounded<'b, C, T: Decode<'b, C>>(
    from: &mut minicbor::Decoder<'b>,
    ctx: &mut C,
    most: usize,
) -> Result<Vec<T>, minicbor::decode::Error> {
    let length = from.array()?.and_then(|length| usize::try_from(length).ok()).filter(|length| *length <= most);
    let length = length.ok_or_else(|| minicbor::decode::Error::message("a list that is too long"))?;
    (0..length).map(|_| T::decode(from, ctx)).collect()
}

/// A record of so many fields.
fn fields(from: &mut minicbor::Decoder<'_>, fields: u64) -> Result<(), minicbor::decode::Error> {
    let is_ours = from.array()? == Some(fields);
    is_ours.then_some(()).ok_or_else(|| minicbor::decode::Error::message("another number of fields"))
}

impl<'b, C> Decode<'b, C> for Resolved {
    fn decode(from: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        fields(from, 4)?;
        let (seq, leaf) = (Decode::decode(from, ctx)?, Decode::decode(from, ctx)?);
        let (label, vectors) = (Decode::decode(from, ctx)?, bounded(from, ctx, MOST_PIECES)?);
        Ok(Self { seq, leaf, label, vectors })
    }
}

impl<'b, C> Decode<'b, C> for Part {
    fn decode(from: &mut minicbor::Decoder<'b>, ctx: &mut C) -> Result<Self, minicbor::decode::Error> {
        fields(from, 4)?;
        let made_at: EntryRef = Decode::decode(from, ctx)?;
        let (embedder, session) = (Decode::decode(from, ctx)?, Decode::decode(from, ctx)?);
        let texts: Vec<Resolved> = bounded(from, ctx, MOST_TEXTS)?;
        let is_ascending = texts.is_sorted_by(|a, b| a.seq < b.seq);
        if !is_ascending || texts.last().is_none_or(|last| last.seq > made_at.seq) {
            return Err(minicbor::decode::Error::message("texts that are not in order"));
        }
        Ok(Self { made_at, embedder, session, texts })
    }
}
