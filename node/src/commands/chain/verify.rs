//! `ephor chain verify`: needs nothing but the files and the public keys.

use std::{
    io::{ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use ephor_base::files::Files;
use ephor_chain::{
    Damage, Finding, PinnedHead, ScanError, VerifierKeys,
    disk::Disk,
    verify::{self as verifier, Against, Progress, Report},
};
use serde_json::json;

use crate::{home::Home, terminal};

/// What is verified against what.
struct Given {
    folder: PathBuf,
    /// Where the sealed contents are, if they were copied too.
    vault: Option<PathBuf>,
    keys: VerifierKeys,
    head: Option<PinnedHead>,
}

pub(crate) fn verify(
    home: &Home,
    directory: Option<PathBuf>,
    key: &[String],
    head: Option<PathBuf>,
    json: bool,
) -> anyhow::Result<ExitCode> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let verified = match given(home, directory, key, head, &*files)? {
        Ok(Given { folder, vault, keys, head }) => {
            let mut bar = Bar::new();
            let show = |progress| bar.show(progress);
            let against = Against { keys: &keys, head, vault: vault.as_deref(), from: None };
            let verified = verifier::verify(&folder, &files, against, show);
            bar.end();
            verified
        }
        Err(finding) => Err(finding.into()),
    };
    let status = if verified.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let text = match verified {
        Ok(report) if json => json!({"ok": true, "report": report}).to_string(),
        Ok(report) => told(&report).join("\n"),
        Err(ScanError::Damaged(finding)) if json => json!({"ok": false, "finding": finding}).to_string(),
        Err(ScanError::Damaged(finding)) => format!("NOT whole: {finding}"),
        Err(error) => return Err(error).context("nothing is known about the chain"),
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(status)
}

fn told(report: &Report) -> Vec<String> {
    let mut lines = vec![
        format!(
            "whole: {} entries under {} checkpoints, each with both signatures",
            report.head.size, report.checkpoints
        ),
        format!("  log     {}", report.origin),
        format!("  root    {}", report.head.root),
        format!(
            "  boots   {}{}",
            report.boots,
            if report.stopped { ", stopped cleanly" } else { ", running or crashed" }
        ),
    ];
    if report.open_intents > 0 {
        lines.push(format!("  intents {} without an outcome yet", report.open_intents));
    }
    if report.torn_bytes > 0 {
        let bytes = report.torn_bytes;
        lines.push(format!("  torn    {bytes} bytes of a batch that was never acknowledged; the next boot trims them"));
    }
    if !report.against_head {
        let what = "a log that was cut back to an older checkpoint looks like this too";
        lines.push(format!("  not held against a pinned head: {what}"));
    }
    lines
}

/// A home, or a copied folder of a chain with keys beside it or named. In a home, what is missing is a finding.
fn given(
    home: &Home,
    directory: Option<PathBuf>,
    key: &[String],
    head: Option<PathBuf>,
    files: &dyn Files,
) -> anyhow::Result<Result<Given, Finding>> {
    let root = directory.unwrap_or_else(|| home.path().to_owned());
    let home = Home::find(Some(root.clone().into()))?;
    let lacks = |file: &str, damage| Finding { file: file.into(), offset: 0, seq: None, damage };
    // Only a home has signing keys, and they are there before the chain is.
    let begun = home.signing_keys().exists();
    let (folder, around) = match home.chain() {
        chain if chain.is_dir() => (chain, root),
        _ if begun => return Ok(Err(lacks("journal", Damage::JournalMissing))),
        _ if home.exists() => bail!("there is no chain yet on `{}`; `ephor run` begins one", root.display()),
        _ => (root.clone(), root.parent().map(Path::to_owned).unwrap_or_default()),
    };
    if !folder.is_dir() {
        bail!("there is no chain in `{}`; `ephor run` begins one, and DIR names another", folder.display());
    }
    if begun && head.is_none() && !home.head().exists() {
        return Ok(Err(lacks("head", Damage::HeadMissing)));
    }
    let keys = if key.is_empty() { keys_beside(&around)? } else { keys_named(key)? };
    let beside = around.join("head");
    let head_file = match head {
        Some(named) => Some(named),
        None => beside.is_file().then_some(beside),
    };
    let head = match head_file {
        Some(file) => {
            let pinned = match PinnedHead::load(&file, files) {
                Err(error) if begun && error.kind() == ErrorKind::InvalidData => {
                    return Ok(Err(lacks("head", Damage::Head)));
                }
                pinned => pinned,
            };
            let pinned = pinned.with_context(|| format!("the head `{}`", file.display()))?;
            Some(pinned.with_context(|| format!("there is no head `{}`", file.display()))?)
        }
        None => None,
    };
    // Of a home, contents that are not there are missing.
    let vault = Some(around.join("vault")).filter(|vault| begun || vault.join("content").is_dir());
    Ok(Ok(Given { folder, vault, keys, head }))
}

fn keys_beside(around: &Path) -> anyhow::Result<VerifierKeys> {
    let path = around.join("keys").join("log.pub");
    let text = std::fs::read_to_string(&path).with_context(|| {
        format!(
            "the public keys `{}` are not there; name them with --key, as `ephor chain key` prints them",
            path.display()
        )
    })?;
    text.parse().with_context(|| format!("`{}`", path.display()))
}

fn keys_named(key: &[String]) -> anyhow::Result<VerifierKeys> {
    let mut lines = Vec::new();
    for name in key {
        match std::fs::read_to_string(name) {
            Ok(text) => lines.extend(text.lines().map(str::to_owned)),
            Err(_) => lines.push(name.clone()),
        }
    }
    lines.join("\n").parse().context("--key")
}

/// Shows how far it is, once it has taken a second.
struct Bar {
    began: Instant,
    shown: Option<Instant>,
}

impl Bar {
    fn new() -> Self {
        Self { began: Instant::now(), shown: None }
    }

    fn show(&mut self, progress: Progress) {
        let due = match self.shown {
            Some(shown) => shown.elapsed() > Duration::from_millis(200),
            None => self.began.elapsed() > Duration::from_secs(1) && std::io::stderr().is_terminal(),
        };
        if due {
            self.shown = Some(Instant::now());
            eprint!("\r{} of {} entries …", progress.entries, progress.total.max(progress.entries));
            let _unshown = std::io::stderr().flush();
        }
    }

    fn end(&self) {
        if self.shown.is_some() {
            eprintln!();
        }
    }
}
