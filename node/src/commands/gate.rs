//! `ephor gate`: asks the gate without running anything.

use std::{path::Path, process::ExitCode};

use anyhow::Context;
use ephor_governance::{Environment, OperatorPolicy, replay::Replay};

use crate::{cli::Gate, constitution, files, terminal};

pub(crate) fn gate(args: Gate) -> anyhow::Result<ExitCode> {
    match args {
        Gate::Replay { trace, environment, policy } => {
            let mut replay = replay(environment.into(), policy.as_deref())?;
            for line in files::named(&trace, files::MOST_SCRIPT)?.lines() {
                if let Some(answer) = replay.take(line).with_context(|| format!("`{}`", trace.display()))? {
                    let text = serde_json::to_string(&answer).context("the answer cannot be written")?;
                    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// A replay under the constitution in a file, or the default one of the environment.
pub(crate) fn replay(environment: Environment, policy: Option<&Path>) -> anyhow::Result<Replay> {
    let constitution = match policy {
        Some(path) => constitution::of_file(path)?,
        None => constitution::default_of(environment)?,
    };
    Ok(Replay::new(constitution, OperatorPolicy { environment, ..OperatorPolicy::default() }))
}
