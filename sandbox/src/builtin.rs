//! The file tools that come with Ephor: the component, and what the host knows about its tools.

use crate::call::Description;
use crate::component::ComponentError;
use crate::limits::DEFAULT_LIMITS;
use ephor_base::{Capability, Digest, Limits, ToolName};
use thiserror::Error;

/// The component with `fs.read`, `fs.list`, `fs.search`, `fs.write`, `fs.edit`, `fs.move`, `fs.remove` and `todo`, built from `guests/` by `guests/build.sh`.
pub const FILES: &[u8] = include_bytes!("../components/files.wasm");

/// What it says of its tools, as JSON, kept so that nothing has to be compiled before a node can say what it offers.
const DESCRIPTIONS: &str = include_str!("../components/files.json");

const DIGESTS: &str = include_str!("../components/digests.txt");

/// What the host holds about each tool. It does not come from the guest: what a tool may do is not the tool's to say.
const FACTS: [Facts; 8] = [
    looks("fs.read"),
    looks("fs.list"),
    looks("fs.search"),
    changes("fs.write", &["path"], &["path", "content", "encoding", "mode"], Making::Writes),
    changes("fs.edit", &["path"], &["path", "edits", "patch"], Making::Edits),
    changes("fs.move", &["from", "to"], &["from", "to"], Making::Moves),
    changes("fs.remove", &["path"], &["path"], Making::Removes),
    // It touches no file; the least of the capabilities that tools have is to look.
    Facts { paths: &[], ..looks("todo") },
];

struct Facts {
    name: &'static str,
    capability: Capability,
    paths: &'static [&'static str],
    consequential: &'static [&'static str],
    makes: Making,
}

/// How what a call makes of its files follows from its arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Making {
    /// It leaves them as they are, or it is not known.
    Nothing,
    /// As `fs.write`.
    Writes,
    /// As `fs.edit`.
    Edits,
    /// As `fs.move`.
    Moves,
    /// As `fs.remove`.
    Removes,
}

const fn looks(name: &'static str) -> Facts {
    Facts { name, capability: Capability::FsRead, paths: &["path"], consequential: &[], makes: Making::Nothing }
}

const fn changes(
    name: &'static str,
    paths: &'static [&'static str],
    consequential: &'static [&'static str],
    makes: Making,
) -> Facts {
    Facts { name, capability: Capability::FsWrite, paths, consequential, makes }
}

/// What a call of the tool of this name makes of its files.
pub(crate) fn making(tool: &str) -> Making {
    FACTS.iter().find(|facts| facts.name == tool).map_or(Making::Nothing, |facts| facts.makes)
}

/// What is known of one built-in tool. Effects and labels are the operator's to say, and with them it is a registration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinTool {
    /// For instance `fs.read`.
    pub name: ToolName,
    /// What it does, for a model, in the guest's words.
    pub description: String,
    /// The JSON Schema of its arguments, as text, in the guest's words.
    pub schema: String,
    /// What a caller must be entitled to. Only [`Capability::FsWrite`] needs a workspace that may be changed.
    pub capability: Capability,
    /// The arguments that are paths relative to the workspace.
    pub paths: &'static [&'static str],
    /// The arguments that decide what is changed.
    pub consequential: &'static [&'static str],
    /// What a call of it may use.
    pub limits: Limits,
    /// The component it is part of, by digest: with another, a registration of it does not hold.
    pub code: Digest,
}

/// The built-in tools, from the descriptions that were kept with the component: nothing is compiled for it. A test holds
/// them against what the guest says of itself.
pub fn builtin_tools() -> Result<Vec<BuiltinTool>, BuiltinError> {
    let code = pinned()?;
    let described: Vec<Description> =
        serde_json::from_str(DESCRIPTIONS).map_err(|error| BuiltinError::Undescribed(error.to_string()))?;
    FACTS.iter().map(|facts| tool(facts, &described, code)).collect()
}

fn tool(facts: &Facts, described: &[Description], code: Digest) -> Result<BuiltinTool, BuiltinError> {
    let description = described.iter().find(|description| description.name == facts.name);
    let description = description.ok_or(BuiltinError::Missing(facts.name))?.clone();
    let name = description.name.parse().map_err(|_| BuiltinError::Name(description.name))?;
    Ok(BuiltinTool {
        name,
        description: description.description,
        schema: description.input,
        capability: facts.capability,
        paths: facts.paths,
        consequential: facts.consequential,
        limits: DEFAULT_LIMITS,
        code,
    })
}

/// The first word of the line that ends in the component's name, as sha256sum writes it.
pub(crate) fn pinned() -> Result<Digest, BuiltinError> {
    let line = DIGESTS.lines().find(|line| line.ends_with(" files.wasm")).unwrap_or_default();
    line.split(' ').next().and_then(|word| word.parse().ok()).ok_or(BuiltinError::Unpinned)
}

/// The built-in tools are not usable. The build's fault, unless the engine says otherwise. Nothing was started.
#[derive(Debug, Error)]
pub enum BuiltinError {
    /// No digest was kept with the component.
    #[error("the built-in tools are kept without their digest")]
    Unpinned,
    /// The component does not load.
    #[error(transparent)]
    Component(#[from] ComponentError),
    /// What was kept of its descriptions cannot be read.
    #[error("the built-in tools are kept without their descriptions: {0}")]
    Undescribed(String),
    /// It has a tool whose name is none.
    #[error("the built-in tools name one of themselves `{0}`, which cannot name a tool")]
    Name(String),
    /// It lacks a tool.
    #[error("the built-in tools lack `{0}`")]
    Missing(&'static str),
    /// The runtime went away meanwhile.
    #[error("loading the built-in tools was interrupted: {0}")]
    Interrupted(String),
}
