//! `ephor doctor`: what this machine lacks that agents would need, and what to do about it.

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path, process::ExitCode};

use anyhow::Context;
use ephor_confine::{
    Mechanism, overlay,
    probe::{self, Found},
};
use serde_json::json;

use crate::{cli::Doctor, config::Config, home::Home, terminal};

/// One thing that was looked at.
struct Finding {
    mechanism: Mechanism,
    found: Found,
    /// Whether commands run without it, as it is configured.
    is_spared: bool,
}

pub(crate) async fn doctor(home: &Home, args: &Doctor) -> anyhow::Result<ExitCode> {
    let config = Config::load(&home.config())?;
    let folder =
        if home.path().is_dir() { home.path().canonicalize()? } else { std::env::temp_dir().canonicalize()? };
    let settings = config.shell.settings(&folder);
    let folder = folder.join(format!("doctor-{}", std::process::id()));
    let found = probed(&folder, settings.cgroup.as_deref()).await;
    let gone = overlay::discard(&folder).with_context(|| format!("`{}` cannot be removed", folder.display()));
    let spared = |mechanism: Mechanism| mechanism.lack().is_some_and(|lack| settings.without.contains(&lack));
    let found = found?.into_iter();
    let findings: Vec<Finding> =
        found.map(|(mechanism, found)| Finding { mechanism, found, is_spared: spared(mechanism) }).collect();
    gone?;
    let works = findings.iter().all(|finding| finding.found == Found::Works || finding.is_spared);
    let text = if args.json { as_json(&findings, works) } else { as_text(&findings, works) };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(if works { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn probed(folder: &Path, cgroup: Option<&Path>) -> anyhow::Result<std::collections::BTreeMap<Mechanism, Found>> {
    for path in [folder, &folder.join("workspace"), &folder.join("scratch")] {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.with_context(|| format!("`{}` cannot be made", path.display()))?;
    }
    Ok(probe::probe(&folder.join("workspace"), &folder.join("scratch"), cgroup).await?)
}

fn word(finding: &Finding) -> &'static str {
    match (&finding.found, finding.is_spared) {
        (Found::Works, _) => "works",
        (_, true) => "missing, and done without",
        (Found::Lacks(_), false) => "missing",
        (Found::Untried, false) => "not tried",
    }
}

fn as_text(findings: &[Finding], works: bool) -> String {
    let mut text = String::from("What confines the commands of agents (`shell`):\n");
    for finding in findings {
        text.push_str(&format!("  {:<11} {}\n", finding.mechanism.to_string(), word(finding)));
        if let (Found::Lacks(lacking), false) = (&finding.found, finding.is_spared) {
            text.push_str(&format!("              {lacking}\n"));
        }
    }
    text.push_str(if works { "Commands can run.\n" } else { "Commands cannot run.\n" });
    text
}

fn as_json(findings: &[Finding], works: bool) -> String {
    let one = |finding: &Finding| {
        let why = match &finding.found {
            Found::Lacks(lacking) => Some(lacking.to_string()),
            Found::Works | Found::Untried => None,
        };
        let found = match finding.found {
            Found::Works => "works",
            Found::Lacks(_) => "missing",
            Found::Untried => "untried",
        };
        json!({"mechanism": finding.mechanism.to_string(), "found": found, "without": finding.is_spared, "why": why})
    };
    let all: Vec<_> = findings.iter().map(one).collect();
    json!({"commands": works, "mechanisms": all}).to_string() + "\n"
}
