//! Where text came from, how far it is trusted, and who may see it.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Digest, SpanId};

/// Who first wrote a span.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The person who runs the node.
    #[n(0)]
    Operator,
    /// The person who talks to an agent.
    #[n(1)]
    User,
    /// A tool's result.
    #[n(2)]
    Tool,
    /// Something recalled.
    #[n(3)]
    Memory,
    /// Another node, or another session of this one.
    #[n(4)]
    Peer,
    /// A model.
    #[n(5)]
    Model,
    /// The door itself: refusals and notices.
    #[n(6)]
    Kernel,
}

/// Whether a span may steer a consequential argument.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// Anyone may have written it.
    #[n(0)]
    Untrusted,
    /// The operator or the user wrote it on purpose.
    #[n(1)]
    Trusted,
}

/// Who may see a span. Ordered: a later one is seen by fewer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Confidentiality {
    /// Everyone.
    #[n(0)]
    Public,
    /// The operator, the user, and the models and tools they chose.
    #[n(1)]
    Internal,
    /// Sinks cleared for it by name.
    #[n(2)]
    Confidential,
}

/// The three together. Only the door makes labels for spans in a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Label {
    /// Who wrote it.
    #[n(0)]
    pub source: Source,
    /// How far it is trusted.
    #[n(1)]
    pub integrity: Integrity,
    /// Who may see it.
    #[n(2)]
    pub confidentiality: Confidentiality,
}

impl Label {
    /// A label from its three parts.
    #[must_use]
    pub const fn new(source: Source, integrity: Integrity, confidentiality: Confidentiality) -> Self {
        Self { source, integrity, confidentiality }
    }
}

/// A piece of text with the label the door gave it when it entered its session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Span {
    /// Its number within the session.
    #[n(0)]
    pub id: SpanId,
    /// Its label.
    #[n(1)]
    pub label: Label,
    /// The text, valid UTF-8.
    #[n(2)]
    pub text: String,
}

impl Span {
    /// SHA-256 of the text's bytes.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.text.as_bytes())
    }
}
