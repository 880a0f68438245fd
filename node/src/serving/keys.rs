//! The keys of a home: made at its first start, and never made anew beside a record that others signed.
//!
//! New signing keys lie under a name of their own until a chain has begun under them. So a start that was cut short is
//! told from a home whose chain was taken away: keys that have signed a chain do not begin another.

use std::{path::Path, sync::Arc};

use anyhow::Context;
use ephor_base::{Random, files::Files};
use ephor_chain::{AcceptError, KeyError, KeyFile, Protection, Signers, SigningKeys, VaultKey, accept};
use ephor_tlog::VerifierKeys;

use crate::{
    files,
    home::{Home, write_private},
};

/// The keys of a home.
pub(super) struct Keys {
    pub(super) signing: Signers,
    pub(super) vault: VaultKey,
    /// No chain is known to have begun under the signing keys.
    pub(super) unused: bool,
}

impl Keys {
    /// The keys of `home`; made at its first start.
    pub(super) fn open(
        home: &Home,
        files: &dyn Files,
        random: &dyn Random,
        protection: &Arc<Protection>,
    ) -> anyhow::Result<Self> {
        let (signing, unused) = match find_signing(home, files, protection)? {
            Some(found) => found,
            None if home.has_record() => return Err(signing_lost(home)),
            None => {
                let keys = SigningKeys::generate(random);
                keys.save_with(&home.unused_signing_keys(), files, protection, random)?;
                (keys.into(), true)
            }
        };
        let vault = open_vault(home, files, random, protection)?;
        // A node that is killed as soon as its chain begins leaves one that can be verified.
        if !home.public_keys().exists() {
            write_public(&home.public_keys(), signing.verifier())?;
        }
        Ok(Self { signing, vault, unused })
    }
}

/// The vault key of `home`; made if nothing of a record is there yet, which would name another.
fn open_vault(
    home: &Home,
    files: &dyn Files,
    random: &dyn Random,
    protection: &Protection,
) -> anyhow::Result<VaultKey> {
    match VaultKey::load_with(&home.vault_key(), files, protection) {
        Err(KeyError::Missing(_)) if home.has_record() => Err(vault_lost(home)),
        Err(KeyError::Missing(_)) => {
            let key = VaultKey::generate(random);
            key.save_with(&home.vault_key(), files, protection, random)?;
            Ok(key)
        }
        loaded => Ok(loaded?),
    }
}

/// The vault key for a chain that follows one that is given up, and whether it is a new one, which the caller has to save.
pub(super) fn succeeding_vault(
    home: &Home,
    files: &dyn Files,
    random: &dyn Random,
    protection: &Protection,
) -> anyhow::Result<(VaultKey, bool)> {
    match VaultKey::load_with(&home.vault_key(), files, protection) {
        Err(KeyError::Missing(_)) => Ok((VaultKey::generate(random), true)),
        loaded => Ok((loaded?, false)),
    }
}

/// Where the signing keys lie, or should; and whether they are unused.
pub(super) fn place(home: &Home, protection: &Arc<Protection>) -> (KeyFile, bool) {
    let (used, unused) = (home.signing_keys(), home.unused_signing_keys());
    let (path, is_unused) = if !used.exists() && unused.exists() { (unused, true) } else { (used, false) };
    (KeyFile { path, protection: protection.clone() }, is_unused)
}

/// The public keys, if they can be read.
pub(super) fn public(home: &Home) -> Option<VerifierKeys> {
    files::public_keys(&home.public_keys()).ok()
}

/// Why a loss was not accepted, with what to do.
pub(super) fn explain(home: &Home, error: AcceptError) -> anyhow::Error {
    match error {
        AcceptError::Key(KeyError::Missing(_) | KeyError::Damaged(_)) => signing_lost(home),
        error => error.into(),
    }
}

/// Makes the files say what the record says: that a chain has begun under its keys, and which are in force.
pub(super) fn settle(
    home: &Home,
    files: &dyn Files,
    random: &dyn Random,
    protection: &Arc<Protection>,
    public: &VerifierKeys,
    unused: bool,
) -> anyhow::Result<()> {
    if unused {
        let moved = files.rename(&home.unused_signing_keys(), &home.signing_keys());
        moved
            .and_then(|()| files.sync_folder(&home.keys()))
            .context("the signing keys cannot be put in their place")?;
    }
    KeyFile { path: home.signing_keys(), protection: protection.clone() }.settle(public, files, random)?;
    let path = home.public_keys();
    if files::of_home(&path)?.as_deref() != Some(&public.to_string()) {
        write_public(&path, public)?;
    }
    Ok(())
}

/// Puts the public keys beside a chain that was moved aside, where `ephor chain verify` looks for them.
pub(super) fn keep_public(home: &Home, moved_to: &Path) -> anyhow::Result<()> {
    let kept = files::of_home(&moved_to.join(accept::PUBLIC))?;
    let old = kept.and_then(|lines| lines.parse::<VerifierKeys>().ok());
    let Some(keys) = old.or_else(|| public(home)) else { return Ok(()) };
    let folder = Home::find(Some(moved_to.into()))?;
    let kept = std::fs::create_dir_all(folder.keys());
    kept.with_context(|| format!("`{}` cannot be made", folder.keys().display()))?;
    write_public(&folder.public_keys(), &keys)
}

/// Puts the public keys of a restored chain beside it, where `ephor chain verify` looks for them.
pub(super) fn keep_restored(home: &Home, moved_to: &Path, keys: &VerifierKeys) -> anyhow::Result<()> {
    let folder = Home::find(Some(moved_to.into()))?;
    let kept = std::fs::create_dir_all(folder.keys());
    kept.with_context(|| format!("`{}` cannot be made below `{}`", folder.keys().display(), home.path().display()))?;
    write_public(&folder.public_keys(), keys)
}

/// The signing keys, and whether they are unused.
fn find_signing(
    home: &Home,
    files: &dyn Files,
    protection: &Arc<Protection>,
) -> anyhow::Result<Option<(Signers, bool)>> {
    let (file, unused) = place(home, protection);
    match file.signers(files) {
        Err(KeyError::Missing(_)) => Ok(None),
        loaded => Ok(Some((loaded?, unused))),
    }
}

fn write_public(path: &Path, keys: &VerifierKeys) -> anyhow::Result<()> {
    write_private(path, keys.to_string().as_bytes()).with_context(|| format!("`{}` cannot be written", path.display()))
}

fn signing_lost(home: &Home) -> anyhow::Error {
    let (keys, show) = (home.signing_keys(), home.path().display());
    let other = if public(home).is_some() {
        "accept the loss with `ephor chain accept`, which keeps the chain aside and begins a new one that names it"
            .to_owned()
    } else {
        format!("move `chain`, `head`, `vault` and `keys` out of `{show}`, keep them, and start anew")
    };
    anyhow::anyhow!(
        "the signing keys `{}` are missing or damaged, and without them the chain of this home cannot go on. Nothing was \
         changed. Put back a copy of them; or {other}",
        keys.display()
    )
}

fn vault_lost(home: &Home) -> anyhow::Error {
    anyhow::anyhow!(
        "the vault key `{}` is missing, and without it nobody can read what the sessions of this home said. Nothing was \
         changed. Put back a copy of it; or accept the loss with `ephor chain accept`, which keeps the chain aside and begins \
         a new one under a new vault key",
        home.vault_key().display()
    )
}
