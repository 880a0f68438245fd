//! `ephor chain`: the signed record, for an operator and an auditor.

mod check;
mod export;
mod keep;
mod keys;
mod log;
mod place;
mod prove;
mod prune;
mod stat;
mod verify;
mod web;

use std::{process::ExitCode, sync::Arc};

use anyhow::{Context, bail};
use ephor_base::files::Files;
use ephor_chain::disk::Disk;
use ephor_verify::Folder;
use ephor_verify::{Change, lineage};
use serde_json::json;

pub(crate) use check::check;
pub(crate) use log::entries;

use self::keep::Erasure;
use super::runtime;
use crate::{cli::Chain, failure::NoChain, files, home::Home, passphrase, serving, terminal};

pub(crate) fn chain(home: &Home, args: Chain) -> anyhow::Result<ExitCode> {
    match args {
        Chain::Log(args) => log::log(home, &args),
        Chain::Verify(args) => verify::verify(home, args),
        Chain::Prove(args) => prove::prove(home, &args),
        Chain::Check(args) => check(&args),
        Chain::Export(args) => export::export(home, &args),
        Chain::Stat { json } => stat::stat(home, json),
        Chain::Key { changes: true, .. } => changes(home),
        Chain::Key { changes: false, json } => key(home, json),
        Chain::Erase { session, derived, reason, yes, json } => {
            runtime(1)?.block_on(keep::erase(home, Erasure { session, derived, reason, yes, json }))
        }
        Chain::Prune(args) => runtime(1)?.block_on(prune::prune(home, &args)),
        Chain::Rotate { yes, json } => runtime(1)?.block_on(keep::rotate(home, yes, json)),
        Chain::Passphrase { new_file, remove } => keep::passphrase(home, new_file.as_deref(), remove),
        Chain::Accept { yes } => accept(home, yes),
    }
}

/// A home that was used, or what to do.
pub(crate) fn used(home: &Home) -> anyhow::Result<&Home> {
    if !home.exists() {
        bail!(NoChain(home.path().to_owned()));
    }
    Ok(home)
}

fn key(home: &Home, json: bool) -> anyhow::Result<ExitCode> {
    let path = used(home)?.public_keys();
    let keys = files::of_home(&path)?.with_context(|| format!("`{}` is not there", path.display()))?;
    let text = if json { format!("{}\n", json!({ "keys": keys.lines().collect::<Vec<_>>() })) } else { keys };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// The changes of keys that are published, each as a proof under the keys before it.
fn changes(home: &Home) -> anyhow::Result<ExitCode> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let changes = lineage::changes(&Folder::source(&used(home)?.chain(), &files));
    let changes = changes.context("the chain cannot be read; see `ephor chain verify`")?;
    let bytes: Vec<u8> = changes.iter().flat_map(Change::to_bytes).collect();
    terminal::write(&String::from_utf8_lossy(&bytes)).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn accept(home: &Home, yes: bool) -> anyhow::Result<ExitCode> {
    let home = used(home)?;
    let _lock = home.lock()?;
    let why = "The chain of this home is quarantined. Accepting the loss keeps it aside, unchanged, and begins a new chain \
               with new keys, whose first entry names the old one.";
    if !yes && !terminal::confirm(why)? {
        bail!("nothing was changed; answer `yes` at a terminal, or pass --yes");
    }
    let accepted = serving::accept_loss(home, &passphrase::unlock(home)?.protection)?;
    let text = format!(
        "The old chain lies in `{}`.\nA new one begins, after {} entries that could be trusted: {}.\nIts public keys are new \
         as well: `ephor chain key`.\n",
        accepted.moved_to.display(),
        accepted.follows.size,
        accepted.follows.reason
    );
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}
