//! The message of a run: what was typed, and what was piped in.

use std::{
    io::{IsTerminal, Read},
    os::unix::fs::FileTypeExt,
};

use anyhow::{Context, bail};
use ephor_base::{Part, PartKind};

/// The most that is taken from standard input, in bytes.
const MAX_PIPED: u64 = 8 * 1024 * 1024;

/// The parts of the message, at least one.
pub(super) fn read(words: &[String]) -> anyhow::Result<Vec<Part>> {
    read_any(words)?.context("there is no message; for example: ephor run \"Find my TODOs and summarize them\"")
}

/// The parts of the message, if there is one.
pub(super) fn read_any(words: &[String]) -> anyhow::Result<Option<Vec<Part>>> {
    let typed = words.join(" ");
    let mut parts = Vec::new();
    if !typed.trim().is_empty() {
        parts.push(Part { kind: PartKind::Typed, text: typed });
    }
    if let Some(text) = piped()? {
        parts.push(Part { kind: PartKind::Piped, text });
    }
    Ok(Some(parts).filter(|parts| !parts.is_empty()))
}

/// What is piped in. A terminal or another device is not read.
fn piped() -> anyhow::Result<Option<String>> {
    let mut input = std::io::stdin().lock();
    let kind = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    let is_piped = kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket());
    if input.is_terminal() || !is_piped {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    input.by_ref().take(MAX_PIPED + 1).read_to_end(&mut bytes).context("standard input cannot be read")?;
    if bytes.len() as u64 > MAX_PIPED {
        bail!("more than {} MiB are piped in; name a file in the workspace instead", MAX_PIPED >> 20);
    }
    let text = String::from_utf8(bytes).context("what is piped in is not text (UTF-8)")?;
    Ok((!text.trim().is_empty()).then_some(text))
}
