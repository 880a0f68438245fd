//! How this program reads files: those of its home, and those that a person names.
//!
//! Both are opened by `ephor_chain::disk`: regular files only, never longer than a bound; a home's neither links nor writable by
//! other users. `tidy` sees to it that nothing else here opens a file to read it.

use std::{io, path::Path};

use anyhow::Context;
use ephor_chain::disk::{self, Whose};
use ephor_tlog::VerifierKeys;

/// The longest text that is read whole: configurations, constitutions, keys and tables are far shorter.
pub(crate) const MOST_TEXT: u64 = 4 << 20;
/// The longest script or trace.
pub(crate) const MOST_SCRIPT: u64 = 256 << 20;

/// The text in a file of a home; nothing if there is no such file.
pub(crate) fn of_home(path: &Path) -> anyhow::Result<Option<String>> {
    match disk::read(path, Whose::Home, MOST_TEXT) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        read => text(path, read).map(Some),
    }
}

/// The public keys that a home keeps, or a copy of one.
pub(crate) fn public_keys(path: &Path) -> anyhow::Result<VerifierKeys> {
    let text = of_home(path)?.with_context(|| format!("`{}` is not there", path.display()))?;
    text.parse().with_context(|| format!("`{}` does not hold the public keys of a log", path.display()))
}

/// The text in a file that a person named.
pub(crate) fn named(path: &Path, most: u64) -> anyhow::Result<String> {
    text(path, disk::read(path, Whose::Named, most))
}

/// The bytes of a file that a person named.
pub(crate) fn named_bytes(path: &Path, most: u64) -> anyhow::Result<Vec<u8>> {
    disk::read(path, Whose::Named, most).with_context(|| format!("`{}` cannot be read", path.display()))
}

fn text(path: &Path, read: io::Result<Vec<u8>>) -> anyhow::Result<String> {
    let bytes = read.with_context(|| format!("`{}` cannot be read", path.display()))?;
    String::from_utf8(bytes).with_context(|| format!("`{}` is not text", path.display()))
}
