//! `ephor policy`: reads, checks, compares and tests constitutions, and decides again what was decided. `apply` alone changes one.

mod apply;
mod backtest;
pub(super) mod explain;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use ephor_base::{Decision, Digest, Seq};
use ephor_governance::{Constitution, Environment};

use super::{chain::entries, gate};
use crate::{cli::Policy, config::Config, constitution, files, home::Home, terminal};

pub(crate) fn policy(home: &Home, args: Policy) -> anyhow::Result<ExitCode> {
    if let Policy::Apply { file, yes, json } = &args {
        return apply::apply(home, file, *yes, *json);
    }
    let (text, code) = match args {
        Policy::Apply { .. } => (String::new(), ExitCode::SUCCESS),
        Policy::Check { file } => (check(&constitution::of_file(&file)?), ExitCode::SUCCESS),
        Policy::Show { schema } => {
            let text = if schema { Constitution::schema_text().to_owned() } else { in_force(home)?.text().to_owned() };
            terminal::write_document(&text).context(terminal::UNWRITTEN)?;
            return Ok(ExitCode::SUCCESS);
        }
        Policy::Diff { file } => (diff(&in_force(home)?, &constitution::of_file(&file)?), ExitCode::SUCCESS),
        Policy::Explain { seq: Some(seq), json, .. } => (explain::one(home, Seq(seq), json)?, ExitCode::SUCCESS),
        Policy::Explain { seq: None, json, .. } => explain::all(home, json)?,
        Policy::Backtest { policy, environment, json } => {
            let environment = environment.map(Into::into);
            let table = backtest::backtest(home, constitution::of_file(&policy)?, environment)?;
            (if json { format!("{}\n", table.as_json()) } else { table.as_text() }, ExitCode::SUCCESS)
        }
        Policy::Test { table, environment, policy } => test(&table, environment.into(), policy.as_deref())?,
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(code)
}

fn in_force(home: &Home) -> anyhow::Result<Constitution> {
    let recorded = if home.chain().exists() { constitution::on_record(home, || entries(home, false))? } else { None };
    match recorded {
        Some(constitution) => Ok(constitution),
        None => constitution::of_home(home, Config::load(&home.config())?.environment),
    }
}

fn check(constitution: &Constitution) -> String {
    format!(
        "It is a constitution of {} articles; its digest is {}.\n",
        constitution.articles().count(),
        digest(constitution)
    )
}

/// The name of a constitution, as the record has it: the digest of its text.
fn digest(constitution: &Constitution) -> Digest {
    Digest::of(constitution.text().as_bytes())
}

/// The articles that come, go or change.
fn diff(old: &Constitution, new: &Constitution) -> String {
    let articles = |constitution: &Constitution| constitution.articles().collect::<BTreeMap<String, String>>();
    let (old, new) = (articles(old), articles(new));
    let marked = |mark: char, text: &str| text.lines().map(|line| format!("{mark} {line}\n")).collect::<String>();
    let mut out = String::new();
    for (name, text) in old.iter().filter(|(name, text)| new.get(*name) != Some(text)) {
        out.push_str(&marked('-', text));
        out.push_str(&new.get(name).map(|text| marked('+', text)).unwrap_or_default());
    }
    for (_, text) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
        out.push_str(&marked('+', text));
    }
    if out.is_empty() { "The articles are the same.\n".to_owned() } else { out }
}

/// Holds a table against the gate. A row is a trace, the id of a call in it and the decision that is wanted.
fn test(table: &Path, environment: Environment, policy: Option<&Path>) -> anyhow::Result<(String, ExitCode)> {
    let text = files::named(table, files::MOST_TEXT)?;
    let (mut out, mut failed, mut rows) = (String::new(), 0_usize, 0_usize);
    for row in text.lines().map(str::trim).filter(|row| !row.is_empty() && !row.starts_with('#')) {
        let cells: Vec<&str> = row.split_whitespace().collect();
        let [trace, id, wanted] = cells.as_slice() else {
            bail!("`{row}` is not a row: a trace, the id of a call, and permit, defer or deny");
        };
        let path = table.parent().map_or_else(|| PathBuf::from(trace), |folder| folder.join(trace));
        let got = decision(&path, id, environment, policy)?.map_or("no such call", name);
        rows = rows.saturating_add(1);
        if got != *wanted {
            failed = failed.saturating_add(1);
            out.push_str(&format!("{trace} {id}: {wanted} is wanted, and it is {got}\n"));
        }
    }
    out.push_str(&format!("{rows} cases, {failed} of them otherwise than wanted.\n"));
    Ok((out, if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }))
}

fn decision(
    trace: &Path,
    id: &str,
    environment: Environment,
    policy: Option<&Path>,
) -> anyhow::Result<Option<Decision>> {
    let text = files::named(trace, files::MOST_SCRIPT)?;
    let mut replay = gate::replay(environment, policy)?;
    for line in text.lines() {
        let answer = replay.take(line).with_context(|| format!("`{}`", trace.display()))?;
        if let Some(answer) = answer.filter(|answer| answer.id == id) {
            return Ok(Some(answer.decision));
        }
    }
    Ok(None)
}

const fn name(decision: Decision) -> &'static str {
    match decision {
        Decision::Permit => "permit",
        Decision::Defer => "defer",
        Decision::Deny => "deny",
    }
}
