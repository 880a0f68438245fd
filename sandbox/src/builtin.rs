//! The file tools that come with Ephor: the component, and what the host knows about its tools.

use crate::call::{Access, Description, GuestFailure};
use crate::component::{Component, ComponentDigest, ComponentError, InvalidDigest};
use crate::engine::Engine;
use crate::{CompiledCache, Limits};
use thiserror::Error;

/// The component with `fs.read`, `fs.list`, `fs.search` and `fs.write`, built from `guests/` by `guests/build.sh`.
pub const FILES: &[u8] = include_bytes!("../components/files.wasm");

const DIGESTS: &str = include_str!("../components/digests.txt");

/// What the host holds about each tool. It does not come from the guest: what a tool may do is not the tool's to say.
const FACTS: [Facts; 4] = [
    Facts { name: "fs.read", writes: false, paths: &["path"] },
    Facts { name: "fs.list", writes: false, paths: &["path"] },
    Facts { name: "fs.search", writes: false, paths: &["path"] },
    Facts { name: "fs.write", writes: true, paths: &["path"] },
];

struct Facts {
    name: &'static str,
    writes: bool,
    paths: &'static [&'static str],
}

/// All that is needed to register one built-in tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinTool {
    /// For instance `fs.read`.
    pub name: String,
    /// What it does, for a model, in the guest's words.
    pub description: String,
    /// The JSON Schema of its arguments, as text, in the guest's words.
    pub input: String,
    /// Whether it changes its workspace.
    pub writes: bool,
    /// The arguments that are paths relative to the workspace.
    pub paths: &'static [&'static str],
    /// What a call of it may use.
    pub limits: Limits,
    /// The component it is part of, by digest: with another, the registration does not hold.
    pub component: ComponentDigest,
}

impl BuiltinTool {
    /// What its calls may do with the workspace.
    pub fn access(&self) -> Access {
        if self.writes { Access::ReadWrite } else { Access::ReadOnly }
    }
}

/// Loads the built-in component, pinned by the digest that was kept with it, and asks it for its tools. Compiles, which
/// takes seconds, where `cache` does not hold the code.
pub async fn builtin(
    engine: &Engine,
    cache: Option<CompiledCache>,
) -> Result<(Component, Vec<BuiltinTool>), BuiltinError> {
    let pinned = pinned()?;
    let own = engine.clone();
    let component = tokio::task::spawn_blocking(move || own.load(FILES, Some(pinned), cache.as_ref()))
        .await
        .map_err(|error| BuiltinError::Interrupted(error.to_string()))??;
    let described = engine.describe(&component).await?;
    let tools = FACTS.iter().map(|facts| tool(facts, &described, &component)).collect::<Result<_, _>>()?;
    Ok((component, tools))
}

fn tool(facts: &Facts, described: &[Description], component: &Component) -> Result<BuiltinTool, BuiltinError> {
    let description = described.iter().find(|description| description.name == facts.name);
    let description = description.ok_or(BuiltinError::Missing(facts.name))?.clone();
    Ok(BuiltinTool {
        name: description.name,
        description: description.description,
        input: description.input,
        writes: facts.writes,
        paths: facts.paths,
        limits: Limits::default(),
        component: component.digest(),
    })
}

/// The first word of the line that ends in the component's name, as sha256sum writes it.
fn pinned() -> Result<ComponentDigest, InvalidDigest> {
    let line = DIGESTS.lines().find(|line| line.ends_with(" files.wasm")).unwrap_or_default();
    line.split(' ').next().unwrap_or_default().parse()
}

/// The built-in tools are not usable. The build's fault, unless the engine says otherwise. Nothing was started.
#[derive(Debug, Error)]
pub enum BuiltinError {
    /// The kept digest is not one.
    #[error(transparent)]
    Digest(#[from] InvalidDigest),
    /// The component does not load.
    #[error(transparent)]
    Component(#[from] ComponentError),
    /// It does not say what its tools are.
    #[error("the built-in tools do not describe themselves: {0}")]
    Describe(#[from] GuestFailure),
    /// It lacks a tool.
    #[error("the built-in tools lack `{0}`")]
    Missing(&'static str),
    /// The runtime went away meanwhile.
    #[error("loading the built-in tools was interrupted: {0}")]
    Interrupted(String),
}
