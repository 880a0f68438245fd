//! Where the constitution of a node comes from.

use std::path::Path;

use anyhow::Context;
use ephor_governance::{Constitution, Environment};

use crate::home::Home;

/// The constitution of a home: `constitution.cedar`, or the default of its environment if there is no such file.
pub(crate) fn of_home(home: &Home, environment: Environment) -> anyhow::Result<Constitution> {
    let path = home.constitution();
    match std::fs::read_to_string(&path) {
        Ok(text) => parsed(&text, &path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => default_of(environment),
        Err(error) => Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    }
}

/// The constitution in a file.
pub(crate) fn of_file(path: &Path) -> anyhow::Result<Constitution> {
    let text = std::fs::read_to_string(path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    parsed(&text, path)
}

/// The one that comes with Ephor.
pub(crate) fn default_of(environment: Environment) -> anyhow::Result<Constitution> {
    let text = Constitution::default_text(environment);
    Constitution::parse(text).with_context(|| format!("the default constitution for {}", environment.name()))
}

fn parsed(text: &str, path: &Path) -> anyhow::Result<Constitution> {
    Constitution::parse(text)
        .with_context(|| format!("`{}` is not a constitution; nothing was changed", path.display()))
}
