//! The passphrases for the secret keys of a home and for an operator's credential: from a file, from systemd, or from the
//! person at the terminal.
//!
//! Never from the environment or the command line, which other processes can see, and which children inherit.

use std::{
    io::Read,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use ephor_chain::{
    KeyError, Protection, SigningKeys, VaultKey,
    disk::{self, Disk, Whose},
    protection::is_locked,
};
use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::{home::Home, operator::Operator, terminal};

/// The name of the credential, as in `LoadCredentialEncrypted=` of a systemd unit.
const CREDENTIAL: &str = "ephor-passphrase";
/// How often a person may try.
const TRIES: u32 = 3;
/// The longest passphrase, in bytes.
const MOST: u64 = 4096;

/// How the keys of a home open.
pub(crate) struct Unlocked {
    pub(crate) protection: Arc<Protection>,
    /// The passphrase itself, if they are locked: for a node that is started here.
    pub(crate) words: Option<Zeroizing<Vec<u8>>>,
}

/// The key files of a home that a passphrase locks, of those that are there.
pub(crate) fn key_files(home: &Home) -> Vec<PathBuf> {
    let next = home.signing_keys().with_extension("next");
    let all = [home.signing_keys(), home.unused_signing_keys(), next, home.vault_key()];
    all.into_iter().filter(|path| path.exists()).collect()
}

/// Whether the keys of a home need a passphrase. What cannot be read is told where it is needed.
pub(crate) fn is_needed(home: &Home) -> bool {
    key_files(home).iter().any(|path| matches!(is_locked(path, &Disk), Ok(true)))
}

/// Finds out how the keys of `home` open; asks for the passphrase if they need one.
pub(crate) fn unlock(home: &Home) -> anyhow::Result<Unlocked> {
    let given = given(home)?;
    if !is_needed(home) {
        // New keys are locked from the first moment if a passphrase comes with the first start.
        let first = given.filter(|_| key_files(home).is_empty());
        return first.map_or_else(|| Ok(Unlocked { protection: Arc::default(), words: None }), by);
    }
    if let Some(words) = given {
        let unlocked = by(words)?;
        check(home, &unlocked.protection)?;
        return Ok(unlocked);
    }
    for _ in 0..TRIES {
        let asked = terminal::ask_secret("Passphrase for the keys of Ephor").context("the terminal cannot be used")?;
        let Some(words) = asked else { bail!(no_terminal(home)) };
        let Ok(unlocked) = by(words) else { continue };
        match check(home, &unlocked.protection) {
            Ok(()) => return Ok(unlocked),
            Err(error) if matches!(error.downcast_ref(), Some(KeyError::WrongPassphrase(_))) => {
                terminal::tell("ephor: that is not the passphrase\n");
            }
            Err(error) => return Err(error),
        }
    }
    bail!("the passphrase was wrong {TRIES} times; nothing was changed")
}

/// The credential that the operator uses in a home; asks for its passphrase if it needs one.
pub(crate) fn credential(home: &Home) -> anyhow::Result<Operator> {
    let path = home.credential();
    Operator::load(&path, &of_credential(home, &path)?)
}

/// How a credential opens.
pub(crate) fn of_credential(home: &Home, path: &Path) -> anyhow::Result<Protection> {
    if !matches!(is_locked(path, &Disk), Ok(true)) {
        return Ok(Protection::none());
    }
    if let Some(file) = home.credential_passphrase_file() {
        return Protection::passphrase(&read(file)?).context("the passphrase is empty");
    }
    for _ in 0..TRIES {
        let words = format!("Passphrase for the credential `{}`", path.display());
        let asked = terminal::ask_secret(&words).context("the terminal cannot be used")?;
        let Some(words) = asked else { break };
        let Some(protection) = Protection::passphrase(&words) else { continue };
        if Operator::load(path, &protection).is_ok() {
            return Ok(protection);
        }
        terminal::tell("ephor: that is not the passphrase\n");
    }
    bail!(
        "the credential `{}` is locked: name a file that holds its passphrase with --as-passphrase-file FILE, or use another \
         credential with --as NAME",
        path.display()
    )
}

/// A new passphrase: from a file, or typed twice.
pub(crate) fn new(file: Option<&Path>) -> anyhow::Result<Protection> {
    let words = match file {
        Some(file) => read(file)?,
        None => {
            let ask = |words| terminal::ask_secret(words).context("the terminal cannot be used");
            let Some(first) = ask("New passphrase")? else {
                bail!("there is no terminal to ask for the new passphrase at: name a file with --new-file FILE")
            };
            if Some(&first) != ask("The same again")?.as_ref() {
                bail!("the two were not the same; nothing was changed");
            }
            first
        }
    };
    Protection::passphrase(&words).context("an empty passphrase protects nothing; to take it away, use --remove")
}

fn by(words: Zeroizing<Vec<u8>>) -> anyhow::Result<Unlocked> {
    let protection = Protection::passphrase(&words).context("the passphrase is empty")?;
    Ok(Unlocked { protection: Arc::new(protection), words: Some(words) })
}

/// The passphrase, where nobody has to be asked.
fn given(home: &Home) -> anyhow::Result<Option<Zeroizing<Vec<u8>>>> {
    if let Some(file) = home.passphrase_file() {
        return read(file).map(Some);
    }
    // systemd names the folder of the credentials; the passphrase itself is in a file there.
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    match folder.map(|folder| folder.join(CREDENTIAL)).filter(|file| file.exists()) {
        Some(file) => read(&file).map(Some),
        None => Ok(None),
    }
}

/// The first line of a file; `/dev/stdin` is standard input, whatever that is.
fn read(file: &Path) -> anyhow::Result<Zeroizing<Vec<u8>>> {
    let mut words = Zeroizing::new(Vec::with_capacity(8192));
    let opened = if file == Path::new("/dev/stdin") {
        std::io::stdin().as_fd().try_clone_to_owned().map(std::fs::File::from)
    } else {
        disk::open(file, Whose::Named, OFlags::RDONLY)
    };
    // Not through a buffer that stays in memory.
    let read = opened.and_then(|opened| opened.take(MOST).read_to_end(&mut words));
    read.with_context(|| format!("the passphrase cannot be read from `{}`", file.display()))?;
    let end = words.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(words.len());
    words.truncate(end);
    Ok(words)
}

/// Whether the keys open. A wrong passphrase is said here and not in the log of a node.
fn check(home: &Home, protection: &Protection) -> anyhow::Result<()> {
    for path in key_files(home) {
        let opened = if path == home.vault_key() {
            VaultKey::load_with(&path, &Disk, protection).map(drop)
        } else {
            SigningKeys::load_with(&path, &Disk, protection).map(drop)
        };
        match opened {
            // Damage is told, with what to do, where the home is opened.
            Ok(()) | Err(KeyError::Damaged(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

fn no_terminal(home: &Home) -> String {
    format!(
        "the keys of `{}` are locked, and there is no terminal to ask for the passphrase at: name a file that holds it with \
         --passphrase-file FILE, or give systemd's credential `{CREDENTIAL}`",
        home.path().display()
    )
}
