//! `ephor restore`: takes of a copy what its record vouches for, and says what it left.
//!
//! The record is signed, and names the vault key and the operators. Nothing vouches for anything else that lies in a copy: a
//! file of it may say where models are reached, what is permitted, or what is run.

use std::{path::PathBuf, sync::Arc};

use anyhow::Context;
use ephor_base::{Clock, Digest, Random, files::Files};
use ephor_chain::{
    Accepted, Config, KeyError, KeyFile, Protection, Step, disk::Disk, read, restore::Taken, what_stands,
};
use ephor_record::Fact;
use ephor_tlog::VerifierKeys;

use super::keys;
use crate::{
    files,
    home::Home,
    host::{SystemClock, SystemRandom},
    operator::Operator,
};

/// A home that was restored.
pub(crate) struct Restored {
    pub(crate) accepted: Accepted,
    /// The public keys of the new chain.
    pub(crate) keys: VerifierKeys,
    /// What lies in the copy and was not taken.
    pub(crate) left: Vec<String>,
}

/// Restores a backup into an empty home, and begins a new chain there.
pub(crate) fn restore(
    home: &Home,
    copy: &Home,
    keys: &VerifierKeys,
    protection: &Arc<Protection>,
    progress: impl FnMut(Step),
) -> anyhow::Result<Restored> {
    let (disk, random): (Arc<dyn Files>, Arc<dyn Random>) = (Arc::new(Disk), Arc::new(SystemRandom));
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    disk.create_folder(home.path()).with_context(|| format!("`{}` cannot be made", home.path().display()))?;
    let _lock = home.lock()?;
    let (config, version) = (Config::in_home(home.path()), env!("CARGO_PKG_VERSION"));
    let file = KeyFile { path: home.signing_keys(), protection: protection.clone() };
    let (signing, vault) = (file.clone(), home.below(&home.vault_key()));
    // The record that these are held against is verified before anything is written.
    let Beside { vouched, left } = beside(copy, keys)?;
    let taken = Taken { signing, vault: &vault, also: &vouched };
    let done =
        ephor_chain::restore(copy.path(), &config, taken, keys, &disk, clock, random.clone(), version, progress)?;
    let new = file.load(&*disk)?.verifier().clone();
    keys::keep_restored(home, &done.moved_to, keys)?;
    keys::settle(home, &*disk, &*random, protection, &new, false)?;
    Ok(Restored { accepted: done, keys: new, left })
}

/// What lies beside the record of a copy.
struct Beside {
    /// Files that the record vouches for, each with its place below a home.
    vouched: Vec<(PathBuf, Vec<u8>)>,
    /// Where those lie that it does not.
    left: Vec<String>,
}

/// Tells the files of a copy that its record vouches for from the others.
fn beside(copy: &Home, keys: &VerifierKeys) -> anyhow::Result<Beside> {
    let (mut vouched, mut left) = (Vec::new(), Vec::new());
    let credential = (copy.operator_key(), names_credential(copy, keys)?);
    let constitution = (copy.constitution(), names_constitution(copy)?);
    for (path, is_named) in [credential, constitution, (copy.config(), false)] {
        if is_named {
            vouched.push((copy.below(&path), files::named_bytes(&path, files::MOST_TEXT)?));
        } else if path.symlink_metadata().is_ok() {
            left.push(path.display().to_string());
        }
    }
    Ok(Beside { vouched, left })
}

/// Whether the record has the holder of the credential in a copy in office. One that is locked says so only when it is used, and
/// counts only then.
fn names_credential(copy: &Home, keys: &VerifierKeys) -> anyhow::Result<bool> {
    let disk: Arc<dyn Files> = Arc::new(Disk);
    let standing = what_stands(&Config::in_home(copy.path()), &disk, keys).context("the record of the copy")?;
    if standing.operators().is_empty() {
        return Ok(false);
    }
    match Operator::load(&copy.operator_key(), &Protection::none()) {
        Ok(operator) => Ok(standing.operators().role(operator.id()).is_some()),
        Err(error) => Ok(matches!(error.downcast_ref(), Some(KeyError::Locked(_)))),
    }
}

/// Whether the constitution in a copy is the one that the record says was last in force.
fn names_constitution(copy: &Home) -> anyhow::Result<bool> {
    let Some(text) = files::of_home(&copy.constitution())? else { return Ok(false) };
    let disk: Arc<dyn Files> = Arc::new(Disk);
    let mut last = None;
    for stored in read(&copy.chain(), &disk) {
        match stored.context("the record of the copy")?.entry.fact {
            Fact::Policy { terms: Some(terms), .. } | Fact::Enacted { terms, .. } => last = Some(terms.constitution),
            _ => {}
        }
    }
    Ok(last == Some(Digest::of(text.as_bytes())))
}
