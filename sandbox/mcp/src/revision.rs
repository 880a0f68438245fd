//! Revisions of the protocol, and what a server says of itself when one is agreed on.

use std::fmt;

use ephor_base::arguments::Value;

use crate::{
    limits::Limits,
    untrusted::{Untrusted, beginning},
    wire::{Fields, Lie, object},
};

/// A revision of the protocol that is spoken here.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Revision {
    /// The first.
    V2024_11_05,
    /// Streamable HTTP, batches.
    V2025_03_26,
    /// Structured content; no batches.
    V2025_06_18,
    /// The last that begins with a handshake.
    V2025_11_25,
    /// No handshake: each request says what it needs.
    V2026_07_28,
}

impl Revision {
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];

    /// The latest that can be agreed on by a handshake.
    pub const LATEST_WITH_HANDSHAKE: Self = Self::V2025_11_25;

    /// Its name, a date.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The one of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// Whether there is no handshake and no session.
    #[must_use]
    pub const fn is_stateless(self) -> bool {
        matches!(self, Self::V2026_07_28)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a server says of itself. Nothing is decided by it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ServerInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it wants to be used, in words for a model; cut to [`Limits::description_bytes`].
    pub instructions: Option<String>,
}

/// What was agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Agreed {
    pub(crate) revision: Revision,
    pub(crate) server: Untrusted<ServerInfo>,
    pub(crate) offers_tools: bool,
}

/// A server and this client have no revision in common, or its words are none.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Disagreement {
    /// It speaks these alone.
    #[error("the server speaks {}, and none of those is spoken here", names(offered))]
    Unsupported {
        /// The first few that it names.
        offered: Untrusted<Vec<String>>,
    },
    /// It says something else than the protocol has.
    #[error(transparent)]
    Lie(#[from] Lie),
}

fn names(offered: &Untrusted<Vec<String>>) -> String {
    let names: Vec<_> =
        offered.as_untrusted().iter().map(|name| format!("`{}`", ephor_base::legible::line(name))).collect();
    if names.is_empty() { "no revision".to_owned() } else { names.join(", ") }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// Who this client is.
fn client_info() -> Value {
    object([("name", text("ephor")), ("version", text(env!("CARGO_PKG_VERSION")))])
}

/// The parameters of `initialize`. No capability is declared: the server may ask for nothing.
pub(crate) fn initialize() -> Value {
    object([
        ("protocolVersion", text(Revision::LATEST_WITH_HANDSHAKE.as_str())),
        ("capabilities", object([])),
        ("clientInfo", client_info()),
    ])
}

/// What each request says of its sender where there is no handshake.
pub(crate) fn request_context(revision: Revision) -> [(&'static str, Value); 3] {
    [
        ("io.modelcontextprotocol/protocolVersion", text(revision.as_str())),
        ("io.modelcontextprotocol/clientInfo", client_info()),
        ("io.modelcontextprotocol/clientCapabilities", object([])),
    ]
}

/// Reads the result of `initialize`.
pub(crate) fn initialized(result: Value, limits: &Limits) -> Result<Agreed, Disagreement> {
    let mut fields = Fields::of(result, "result")?;
    let name = fields.required_text("protocolVersion")?;
    let revision = Revision::named(&name).filter(|revision| !revision.is_stateless());
    let revision = revision.ok_or_else(|| unsupported(vec![name]))?;
    let info = fields.fields("serverInfo")?;
    agreed(revision, fields, info, limits)
}

/// Reads the result of `server/discover`.
pub(crate) fn discovered(result: Value, limits: &Limits) -> Result<Agreed, Disagreement> {
    let mut fields = Fields::of(result, "result")?;
    let versions = fields.list("supportedVersions")?.ok_or_else(|| Lie::new("result.supportedVersions", "a list"))?;
    let versions =
        versions.into_iter().filter_map(|value| if let Value::Text(name) = value { Some(name) } else { None });
    let versions: Vec<String> = versions.collect();
    let spoken = versions.iter().filter_map(|name| Revision::named(name)).filter(|revision| revision.is_stateless());
    let revision = spoken.max().ok_or_else(|| unsupported(versions))?;
    let meta = fields.fields("_meta")?;
    let info = meta.map(|mut meta| meta.fields("io.modelcontextprotocol/serverInfo")).transpose()?.flatten();
    agreed(revision, fields, info, limits)
}

/// A disagreement that names the first few revisions, each cut short.
pub(crate) fn unsupported(offered: Vec<String>) -> Disagreement {
    let offered = offered.iter().take(16).map(|name| beginning(name, 32)).collect();
    Disagreement::Unsupported { offered: Untrusted::new(offered) }
}

fn agreed(
    revision: Revision,
    mut fields: Fields,
    info: Option<Fields>,
    limits: &Limits,
) -> Result<Agreed, Disagreement> {
    let mut server = ServerInfo::default();
    if let Some(mut info) = info {
        server.name = beginning(&info.text("name")?.unwrap_or_default(), limits.text_bytes);
        server.version = beginning(&info.text("version")?.unwrap_or_default(), limits.text_bytes);
    }
    server.instructions = fields.text("instructions")?.map(|text| beginning(&text, limits.description_bytes));
    let capabilities = fields.fields("capabilities")?.ok_or_else(|| Lie::new("result.capabilities", "an object"))?;
    let offers_tools = capabilities.has("tools");
    Ok(Agreed { revision, server: Untrusted::new(server), offers_tools })
}
