//! What the operator has said of a tool.

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Confidentiality, Digest, EffectVector, Integrity, cbor};

/// The name of a tool: 1 to 64 of `a`–`z`, `0`–`9`, `.`, `_`, `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct ToolName(Arc<str>);

/// A text that cannot name a tool.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{0}` cannot name a tool: a name is 1 to 64 of a–z, 0–9, `.`, `_`, `-`")]
pub struct BadToolName(String);

impl ToolName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = BadToolName;
    fn from_str(text: &str) -> Result<Self, BadToolName> {
        let fits = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '_' | '-');
        if (1..=64).contains(&text.len()) && text.chars().all(fits) {
            Ok(Self(text.into()))
        } else {
            Err(BadToolName(text.chars().take(80).collect()))
        }
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl<C> Encode<C> for ToolName {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for ToolName {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        d.str()?.parse().map_err(|_| minicbor::decode::Error::message("not a tool name"))
    }
}

/// What a caller must be entitled to before an action of this kind is even weighed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
pub enum Capability {
    /// Ask a model.
    #[n(0)]
    #[serde(rename = "model")]
    Model,
    /// Send a reply to the person of the session.
    #[n(1)]
    #[serde(rename = "reply")]
    Reply,
    /// Read in the workspace.
    #[n(2)]
    #[serde(rename = "fs.read")]
    FsRead,
    /// Write in the workspace.
    #[n(3)]
    #[serde(rename = "fs.write")]
    FsWrite,
}

/// The caps on one run of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    /// Wasmtime fuel, about one unit an instruction.
    #[n(0)]
    pub fuel: u64,
    /// Wall time in milliseconds.
    #[n(1)]
    pub deadline_ms: u64,
    /// All memories and tables together, in bytes.
    #[n(2)]
    pub memory_bytes: u64,
    /// The answer, and separately whatever the guest prints, in bytes.
    #[n(3)]
    pub output_bytes: u64,
}

impl Limits {
    /// The deadline as a duration.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        Duration::from_millis(self.deadline_ms)
    }
}

/// A tool as the operator registered it: the only source of its effects and rights.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Registration {
    /// Its name.
    #[n(0)]
    pub name: ToolName,
    /// What it does, for the model.
    #[n(1)]
    pub description: String,
    /// JSON Schema of its arguments, as JSON text.
    #[n(2)]
    pub schema: String,
    /// SHA-256 of the code that runs.
    #[n(3)]
    pub code: Digest,
    /// What a caller needs to be entitled to.
    #[n(4)]
    pub capability: Capability,
    /// What a call does at least, before the arguments are looked at.
    #[n(5)]
    pub effects: EffectVector,
    /// The arguments that are paths in the workspace.
    #[n(6)]
    pub paths: Vec<String>,
    /// The arguments that decide what is changed or where something goes.
    #[n(7)]
    pub consequential: Vec<String>,
    /// How far its results are trusted.
    #[n(8)]
    pub integrity: Integrity,
    /// Who may see its results.
    #[n(9)]
    pub confidentiality: Confidentiality,
    /// The caps on each run.
    #[n(10)]
    pub limits: Limits,
    /// What its guest may itself ask of the door. Empty: nothing.
    #[n(11)]
    pub nested: Vec<Capability>,
}

impl Registration {
    /// SHA-256 of the canonical CBOR of the whole registration.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}
