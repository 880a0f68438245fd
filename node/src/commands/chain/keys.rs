//! Public keys, as they are named on the command line.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use ephor_chain::disk::{self, Whose};
use ephor_tlog::{CosignerKey, VerifierKeys};
use ephor_verify::{Change, lineage::MAX_CHANGES_BYTES};

use crate::files;

/// The keys that lie in a home, or were copied beside a chain.
pub(super) fn beside(around: &Path) -> anyhow::Result<VerifierKeys> {
    let path = around.join("keys").join("log.pub");
    let text = files::named(&path, files::MOST_TEXT)
        .context("there are no public keys beside it; name them with --key, as `ephor chain key` prints them")?;
    text.parse().with_context(|| format!("`{}`", path.display()))
}

/// The one pair of keys that was named.
pub(super) fn pair(named: &[String]) -> anyhow::Result<VerifierKeys> {
    lines(named)?.join("\n").parse().context("--key")
}

/// All pairs of keys that were named: those of several logs, or of one log over time.
pub(super) fn pairs(named: &[String]) -> anyhow::Result<Vec<VerifierKeys>> {
    let lines = lines(named)?;
    ensure!(!lines.is_empty(), "--key: there is no key in it; `ephor chain key` prints the two of a log");
    let what = "--key: the keys of a log are two lines, Ed25519 and ML-DSA-65, as `ephor chain key` prints them; both are \
                needed, since both have signed";
    let pair = |pair: &[String]| pair.join("\n").parse().context(what);
    lines.chunks(2).map(pair).collect()
}

/// The changes of keys in a file.
pub(super) fn changes(path: &Path) -> anyhow::Result<Vec<Change>> {
    let show = path.display();
    let bytes = files::named_bytes(path, MAX_CHANGES_BYTES as u64).context("the changes of keys cannot be read")?;
    Change::parse_all(&bytes)
        .with_context(|| format!("`{show}` does not hold changes of keys, as `ephor chain key --changes` prints them"))
}

/// The witnesses that were named.
pub(super) fn witnesses(named: &[String]) -> anyhow::Result<Vec<CosignerKey>> {
    let key = |line: &String| line.parse().with_context(|| format!("--witness: `{}`", short(line)));
    lines(named)?.iter().map(key).collect()
}

/// The lines of files, and what is a key itself.
fn lines(named: &[String]) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    for name in named {
        let text = match disk::read(Path::new(name), Whose::Named, files::MOST_TEXT) {
            Ok(bytes) => {
                String::from_utf8(bytes).with_context(|| format!("the keys `{}` cannot be read", short(name)))?
            }
            Err(_) if name.contains('+') => name.clone(),
            Err(error) => bail!("`{}` is neither a key nor a file of keys that can be read: {error}", short(name)),
        };
        lines.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
    }
    Ok(lines)
}

/// Keys are long, and the beginning says which.
fn short(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
