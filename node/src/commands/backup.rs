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
use ephor_chain::{Config, Step, VerifierKeys, backup as copy, disk::Disk};
use serde_json::json;

use crate::{
    cli::{Backup, Restore},
    home::Home,
    passphrase,
    progress::Bar,
    serving, terminal,
};

pub(crate) fn backup(home: &Home, args: &Backup) -> anyhow::Result<ExitCode> {
    if !home.exists() {
        bail!("there is nothing to back up on `{}`; `ephor run` begins a record", home.path().display());
    }
    let files: Arc<dyn Files> = Arc::new(Disk);
    let (keys, extras) = (public_keys(home)?, extras(home)?);
    let (from, to) = (real(home.path())?, real(&args.folder)?);
    let mut bar = Bar::new("entries");
    let done =
        copy::backup(&Config::in_home(&from), &extras, &public(home), &to, &keys, &files, |step| show(&mut bar, step));
    drop(bar);
    let done = done?;
    let text = if args.json {
        json!({ "folder": to, "backup": done }).to_string()
    } else {
        let new = done.head.size.saturating_sub(done.before);
        format!(
            "backed up and verified: {} entries, {new} of them new, in `{}`\n  log     {}\n  root    {}\n\
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
    let keys = public_keys(&source)?;
    // As the vault key in the copy is locked, so are the new keys.
    let protection = passphrase::unlock(&source)?.protection;
    let mut bar = Bar::new("entries");
    let done = serving::restore(home, &copy, &keys, &protection, |step| show(&mut bar, step));
    drop(bar);
    let (done, public) = done?;
    let text = if args.json {
        let (origin, follows) = (public.origin(), &done.follows);
        json!({ "origin": origin, "follows": follows, "old": done.moved_to }).to_string()
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
    Ok(ExitCode::SUCCESS)
}

/// The public keys in a home, or in a copy of one.
fn public_keys(home: &Home) -> anyhow::Result<VerifierKeys> {
    let path = home.public_keys();
    let text = std::fs::read_to_string(&path).with_context(|| format!("`{}` cannot be read", path.display()))?;
    text.parse().with_context(|| format!("`{}` does not hold the public keys of a log", path.display()))
}

/// Where the public keys lie in a home.
fn public(home: &Home) -> PathBuf {
    let path = home.public_keys();
    path.strip_prefix(home.path()).unwrap_or(&path).to_owned()
}

/// What is copied beside the record: the configuration, the constitution, and all keys but those that sign the chain, or say
/// who does. A restored home signs under keys of its own.
fn extras(home: &Home) -> anyhow::Result<Vec<PathBuf>> {
    let keys = home.keys();
    let mut extras = vec![PathBuf::from("constitution.cedar"), PathBuf::from("ephor.toml")];
    for entry in std::fs::read_dir(&keys).with_context(|| format!("`{}` cannot be read", keys.display()))? {
        let entry = entry?;
        let name = entry.file_name();
        let signs = name.to_str().is_none_or(|name| name.starts_with("log"));
        let draft = name.to_str().is_none_or(|name| name.ends_with(".tmp") || name.ends_with(".new"));
        if !signs && !draft && entry.file_type()?.is_file() {
            extras.push(Path::new("keys").join(name));
        }
    }
    extras.sort();
    Ok(extras)
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
