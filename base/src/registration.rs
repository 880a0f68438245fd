//! What the operator has said of a tool.

use std::{collections::BTreeMap, fmt, str::FromStr, sync::Arc, time::Duration};

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

/// What a tool or a model may take and reach that no argument names. The default is nothing, which is left out where it
/// is encoded last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Reach {
    /// The secrets that it may lease, by name.
    pub secrets: Vec<String>,
    /// The base URLs that it may connect to, as they are configured.
    pub origins: Vec<String>,
}

impl<C> Encode<C> for Reach {
    fn encode<W: minicbor::encode::Write>(
        &self,
        to: &mut minicbor::Encoder<W>,
        context: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        (&self.secrets, &self.origins).encode(to, context)
    }
    fn is_nil(&self) -> bool {
        self.is_nothing()
    }
}

impl<'b, C> Decode<'b, C> for Reach {
    fn decode(from: &mut minicbor::Decoder<'b>, context: &mut C) -> Result<Self, minicbor::decode::Error> {
        let (secrets, origins) = Decode::decode(from, context)?;
        Ok(Self { secrets, origins })
    }
    fn nil() -> Option<Self> {
        Some(Self::default())
    }
}

impl Reach {
    /// Whether it is nothing.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.secrets.is_empty() && self.origins.is_empty()
    }

    /// What is `owner`'s: its name stands before the others, with a blank between.
    #[must_use]
    pub fn of(&self, owner: &str) -> Self {
        let own = |all: &[String]| all.iter().filter(|name| name.split(' ').next() == Some(owner)).cloned().collect();
        Self { secrets: own(&self.secrets), origins: own(&self.origins) }
    }
}

/// What may reach a tool, what its arguments do, and what its results may steer. The default is the strictest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Whether a call changes or sends anything, so that its critical arguments must come from a trusted source.
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
    /// What a second run of a call does whose first one was cut off.
    #[cbor(n(4), with = "sparse", has_nil)]
    #[serde(default)]
    pub repeat: Repeat,
    /// The arguments that name one of the operator's own things, which a record of an untrusted answer may pick.
    #[cbor(n(5), with = "sparse", has_nil)]
    #[serde(default)]
    pub identifies: Vec<String>,
    /// The arguments that say where something goes.
    #[cbor(n(6), with = "sparse", has_nil)]
    #[serde(default)]
    pub destinations: Destinations,
    /// How its answers are written.
    #[cbor(n(7), with = "sparse", has_nil)]
    #[serde(default)]
    pub format: Format,
    /// How it answers in pages.
    #[cbor(n(8), with = "sparse", has_nil)]
    #[serde(default)]
    pub paging: Paging,
    /// Whether its driver keeps what a call replaced, so that the call can be undone.
    #[cbor(n(9), with = "sparse", has_nil)]
    #[serde(default)]
    pub reversible: bool,
    /// The keys of the records in its answers. A planner is told them; nothing else depends on them.
    #[cbor(n(10), with = "sparse", has_nil)]
    #[serde(default)]
    pub keys: Vec<String>,
}

/// The arguments that say where something goes: a value that a plan has for one has to stand in trusted text.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[serde(from = "Option<Vec<String>>", into = "Option<Vec<String>>")]
pub enum Destinations {
    /// Every critical argument.
    #[n(0)]
    #[default]
    Critical,
    /// These.
    #[n(1)]
    Of(#[n(0)] Vec<String>),
}

impl Destinations {
    /// Whether a critical argument of this name is one.
    #[must_use]
    pub fn have(&self, name: &str) -> bool {
        match self {
            Self::Critical => true,
            Self::Of(names) => names.iter().any(|own| own == name || own == "*"),
        }
    }
}

impl From<Option<Vec<String>>> for Destinations {
    fn from(names: Option<Vec<String>>) -> Self {
        names.map_or(Self::Critical, Self::Of)
    }
}

impl From<Destinations> for Option<Vec<String>> {
    fn from(destinations: Destinations) -> Self {
        match destinations {
            Destinations::Critical => None,
            Destinations::Of(names) => Some(names),
        }
    }
}

/// How the answers of a tool are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// In no form that a value could be taken from.
    #[n(0)]
    #[default]
    None,
    /// JSON (RFC 8259), without duplicate keys.
    #[n(1)]
    Json,
    /// One YAML document, without anchors, aliases, tags and duplicate keys.
    #[n(2)]
    Yaml,
    /// CSV (RFC 4180), with its keys in the first row.
    #[n(3)]
    Csv,
    /// Plain text.
    #[n(4)]
    Text,
}

/// How a tool answers in pages. By default it does not: each answer is all that there is.
///
/// A tool of which nothing is said here has no page that could be left unread. Of one of which something is, answers count once
/// they were read from the first page to the last.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[serde(try_from = "BTreeMap<String, Option<PagingEntry>>")]
pub struct Paging {
    /// The argument that says how many records a page has at most.
    #[n(0)]
    pub size: Option<String>,
    /// The argument that says which page: a number, or what the page before gave as `next`. Without it: the first.
    #[n(1)]
    pub page: Option<String>,
    /// The number of the first page, where a call may give it.
    #[n(2)]
    pub first: Option<u64>,
    /// The key of an answer that says which page is next; absent, null or empty on the last.
    #[n(3)]
    pub next: Option<String>,
}

/// What a second run of a call does. Of one that was cut off it is not known whether it took effect, so only what is harmless twice
/// is made again by itself; of any other the model is told, and decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Repeat {
    /// Perhaps the same once more, or something else by now. It is not made again.
    #[n(0)]
    #[default]
    Unsafe,
    /// Nothing that the first has not done, whatever happened in between.
    #[n(1)]
    Idempotent,
    /// Nothing but to look once more.
    #[n(2)]
    ReadOnly,
}

/// A field that is absent where it is the default, so that what does not have it is encoded as it was before the field was added.
mod sparse {
    use minicbor::{
        Decode, Decoder, Encode, Encoder,
        decode::Error as Malformed,
        encode::{Error as Unwritten, Write},
    };

    pub(super) fn encode<T: Encode<C>, C, W: Write>(
        value: &T,
        to: &mut Encoder<W>,
        context: &mut C,
    ) -> Result<(), Unwritten<W::Error>> {
        value.encode(to, context)
    }

    pub(super) fn decode<'b, T: Decode<'b, C>, C>(from: &mut Decoder<'b>, context: &mut C) -> Result<T, Malformed> {
        T::decode(from, context)
    }

    #[expect(clippy::unnecessary_wraps, reason = "the encoding asks for it")]
    pub(super) fn nil<T: Default>() -> Option<T> {
        Some(T::default())
    }

    pub(super) fn is_nil<T: Default + PartialEq>(value: &T) -> bool {
        *value == T::default()
    }
}

/// A value of [`Paging`] as it is written. A derived reader would take a list of names for the fields in their order.
#[derive(Deserialize)]
#[serde(untagged)]
enum PagingEntry {
    Name(String),
    Number(u64),
}

impl TryFrom<BTreeMap<String, Option<PagingEntry>>> for Paging {
    type Error = String;

    fn try_from(entries: BTreeMap<String, Option<PagingEntry>>) -> Result<Self, String> {
        let mut paging = Self::default();
        for (key, entry) in entries {
            match (key.as_str(), entry) {
                ("size", Some(PagingEntry::Name(name))) => paging.size = Some(name),
                ("page", Some(PagingEntry::Name(name))) => paging.page = Some(name),
                ("first", Some(PagingEntry::Number(number))) => paging.first = Some(number),
                ("next", Some(PagingEntry::Name(name))) => paging.next = Some(name),
                ("size" | "page" | "first" | "next", None) => {}
                _ => {
                    return Err(format!(
                        "`paging` has size, page and next, which are names, and first, a number; not `{key}`"
                    ));
                }
            }
        }
        Ok(paging)
    }
}

impl Flow {
    /// A tool that only looks, and may be called from any context.
    #[must_use]
    pub fn looks() -> Self {
        Self {
            consequential: false,
            clearance: Confidentiality::Confidential,
            trusted_for: Vec::new(),
            rules: Vec::new(),
            repeat: Repeat::ReadOnly,
            identifies: Vec::new(),
            destinations: Destinations::Critical,
            format: Format::None,
            paging: Paging::default(),
            reversible: false,
            keys: Vec::new(),
        }
    }

    /// A tool that acts, and may be called from any context.
    #[must_use]
    pub fn acts() -> Self {
        Self { consequential: true, repeat: Repeat::Unsafe, ..Self::looks() }
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
    /// What it does, for the model. Empty: it is for other tools, and no model is offered it.
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
    /// What its runs may lease and where they may connect to.
    #[n(13)]
    #[serde(default)]
    pub reach: Reach,
}

impl Registration {
    /// SHA-256 of the canonical CBOR of the whole registration.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}

#[cfg(test)]
mod tests {
    use super::{Destinations, Flow, Format, Paging};
    use crate::cbor;

    #[test]
    fn what_a_registration_leaves_out_is_not_encoded() {
        let bare = Flow::looks();
        let bytes = cbor::to_vec(&bare);
        assert_eq!(bytes.first(), Some(&0x85), "five fields, as before there were more");
        assert_eq!(cbor::from_slice::<Flow>(&bytes).unwrap(), bare);
        let paging = Paging { size: Some("n".into()), first: Some(1), ..Paging::default() };
        let full = [
            Flow { identifies: vec!["id".into()], ..Flow::looks() },
            Flow { destinations: Destinations::Of(Vec::new()), ..Flow::acts() },
            Flow { destinations: Destinations::Of(vec!["to".into()]), ..Flow::acts() },
            Flow { format: Format::Yaml, ..Flow::looks() },
            Flow { paging, ..Flow::looks() },
            Flow { reversible: true, ..Flow::acts() },
        ];
        for flow in full {
            let bytes = cbor::to_vec(&flow);
            assert_eq!(cbor::from_slice::<Flow>(&bytes).unwrap(), flow);
            assert_ne!(bytes, cbor::to_vec(&Flow { repeat: flow.repeat, ..Flow::acts() }));
            let json = serde_json::to_string(&flow).unwrap();
            assert_eq!(serde_json::from_str::<Flow>(&json).unwrap(), flow);
        }
    }

    #[test]
    fn pages_are_named_by_what_they_are() {
        let read = |text: &str| serde_json::from_str::<Paging>(text);
        assert!(read(r#"{"size":"n","page":"p","first":0,"next":null}"#).is_ok());
        for bad in [r#"["n","p"]"#, r#"{"size":1}"#, r#"{"first":"p"}"#, r#"{"offset":"p"}"#, "\"p\""] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
