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
    /// Look at something outside the workspace, through a registered tool, without changing it.
    #[n(4)]
    #[serde(rename = "outside.read")]
    OutsideRead,
    /// Change something outside the workspace, or send something there, through a registered tool.
    #[n(5)]
    #[serde(rename = "outside.act")]
    OutsideAct,
}

impl Capability {
    /// All of them, in a fixed order.
    pub const ALL: [Self; 6] =
        [Self::Model, Self::Reply, Self::FsRead, Self::FsWrite, Self::OutsideRead, Self::OutsideAct];

    /// Its name in configuration, constitution and record.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Reply => "reply",
            Self::FsRead => "fs.read",
            Self::FsWrite => "fs.write",
            Self::OutsideRead => "outside.read",
            Self::OutsideAct => "outside.act",
        }
    }
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

/// What may reach a tool, what its arguments do, and what its results may steer. The default is the strictest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Whether a call changes or sends anything, so that its critical arguments must come from someone trusted.
    #[n(0)]
    pub consequential: bool,
    /// The most confidential context from which it may be called.
    #[n(1)]
    pub clearance: Confidentiality,
    /// The arguments that its results may fill, as `argument` or `tool.argument`: it is a source trusted for those.
    #[n(2)]
    pub trusted_for: Vec<String>,
    /// What certain values of its arguments add to its effects.
    #[n(3)]
    pub rules: Vec<ArgumentRule>,
}

impl Flow {
    /// A tool that only looks, and may be called from any context.
    #[must_use]
    pub const fn looks() -> Self {
        Self {
            consequential: false,
            clearance: Confidentiality::Confidential,
            trusted_for: Vec::new(),
            rules: Vec::new(),
        }
    }

    /// A tool that acts, and may be called from any context.
    #[must_use]
    pub fn acts() -> Self {
        Self { consequential: true, ..Self::looks() }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self { clearance: Confidentiality::Public, ..Self::acts() }
    }
}

/// A declared rule: where `argument` matches, `effects` are joined to the vector of the call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct ArgumentRule {
    /// The argument it looks at; every text and number within it.
    #[n(0)]
    pub argument: String,
    /// When it holds.
    #[n(1)]
    pub when: Match,
    /// What it adds.
    #[n(2)]
    pub effects: EffectVector,
}

/// What a rule on an argument looks for. A value of another kind than the rule expects matches.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Match {
    /// A component of the path, compared as the most forgiving file system does: `.git`, or `*.pem` for an ending.
    #[n(0)]
    Path(#[n(0)] String),
    /// The host of an address or URL is none of these; a leading dot stands for every host below.
    #[n(1)]
    HostOutside(#[n(0)] Vec<String>),
    /// The program of a command line, or any word of it.
    #[n(2)]
    Command(#[n(0)] String),
    /// A number over this many units.
    #[n(3)]
    AmountOver(#[n(0)] u64),
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
    /// The critical arguments: those that decide what is changed or where something goes.
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
    /// What may reach it, and what its results may steer.
    #[n(12)]
    pub flow: Flow,
}

impl Registration {
    /// SHA-256 of the canonical CBOR of the whole registration.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}
