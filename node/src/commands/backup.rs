//! `ephor backup` and `ephor restore`: a copy of the home, and a home from a copy.
//!
//! A backup reads beside a node that runs. What is published never changes, the journal only grows, and the copy ends at
//! the head that the node had pinned when it began; so nothing has to be asked of the node, and nothing waits for the copy.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use anyhow::{Context, bail};
use ephor_base::files::Files;
use ephor_chain::{Config, Step, backup as copy, disk::Disk};
use serde_json::json;

use crate::{
    cli::{Backup, Restore},
    failure::NoChain,
    files,
    home::Home,
    passphrase,
    progress::Bar,
    serving::{self, Restored},
    terminal,
};

pub(crate) fn backup(home: &Home, args: &Backup) -> anyhow::Result<ExitCode> {
    if !home.exists() {
        bail!(NoChain(home.path().to_owned()));
    }
    let disk: Arc<dyn Files> = Arc::new(Disk);
    let (keys, extras) = (files::public_keys(&home.public_keys())?, extras(home));
    let (from, to) = (real(home.path())?, real(&args.folder)?);
    let mut bar = Bar::new("entries");
    let done =
        copy::backup(&Config::in_home(&from), &extras, &home.below(&home.public_keys()), &to, &keys, &disk, |step| {
            show(&mut bar, step)
        });
    drop(bar);
    let done = done?;
    let text = if args.json {
        json!({ "folder": to, "backup": done }).to_string()
    } else {
        let new = done.head.size.saturating_sub(done.before);
        let done_to_it = if done.verified { "backed up and verified" } else { "up to date, nothing was copied" };
        format!(
            "{done_to_it}: {} entries, {new} of them new, in `{}`\n  log     {}\n  root    {}\n\
             It holds the keys that open what the sessions said: keep it as safe as the home.",
            done.head.size,
            to.display(),
            done.origin,
            done.head.root
        )
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn restore(home: &Home, args: &Restore) -> anyhow::Result<ExitCode> {
    let copy = real(&args.folder)?;
    let words = home.passphrase_file().map(Path::to_owned);
    let source = Home::find(Some(copy.clone().into()))?.with_passphrase_file(words);
    let keys = files::public_keys(&source.public_keys())?;
    // As the vault key in the copy is locked, so are the new keys.
    let protection = passphrase::unlock(&source)?.protection;
    let mut bar = Bar::new("entries");
    let done = serving::restore(home, &source, &keys, &protection, |step| show(&mut bar, step));
    drop(bar);
    let Restored { accepted: done, keys: public, left } = done?;
    let text = if args.json {
        let (origin, follows) = (public.origin(), &done.follows);
        json!({ "origin": origin, "follows": follows, "old": done.moved_to, "not_taken": left }).to_string()
    } else {
        format!(
            "restored {} entries into `{}`\n  They lie in `{}`; a new chain begins, which names them.\n  \
             Its public keys are new as well: `ephor chain key`.",
            done.follows.size,
            home.path().display(),
            done.moved_to.display()
        )
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    if !args.json && !left.is_empty() {
        let left = left.join("`, `");
        let why = "the record does not vouch for it, and whoever had the copy could have changed it";
        terminal::write(&format!("  Not taken from the copy: `{left}`; {why}. Read it, then put it in place.\n"))
            .context(terminal::UNWRITTEN)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is copied beside the record: the configuration, the constitution, the vault key and the first owner's credential. A
/// restored home signs under keys of its own.
fn extras(home: &Home) -> Vec<PathBuf> {
    let all = [home.constitution(), home.config(), home.vault_key(), home.operator_key()];
    all.into_iter().map(|path| home.below(&path)).collect()
}

/// The path without links and detours, of as much of it as there is.
fn real(path: &Path) -> anyhow::Result<PathBuf> {
    let path = std::path::absolute(path).with_context(|| format!("`{}` is no path", path.display()))?;
    for there in path.ancestors() {
        if let Ok(real) = there.canonicalize() {
            let rest = path.strip_prefix(there).unwrap_or(Path::new(""));
            return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
        }
    }
    Ok(path)
}

/// How far it is.
fn show(bar: &mut Bar, step: Step) {
    match step {
        Step::Copied { entries, total } => bar.show_of("entries copied", entries, total),
        Step::Verified { entries, total } => bar.show_of("entries verified", entries, total),
    }
}
