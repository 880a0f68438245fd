//! The message of a run: what was typed, and what is piped in where `-` asks for it.
//!
//! Standard input is not read unless it is asked for: the loop of a shell that starts a run for each line of a list has that list
//! on its standard input, and so has the run.

use std::{
    io::{IsTerminal, Read},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use anyhow::{Context, bail};
use ephor_base::{Part, PartKind};
use ephor_governance::pasted::{divided, grouped};

use super::screen::Screen;
use crate::{cli::Run, files};

/// The most that is taken from standard input, in bytes.
const MAX_PIPED: u64 = 8 * 1024 * 1024;
/// The word that stands for standard input.
const INPUT: &str = "-";

/// What standard input is, where no word of the message names it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unnamed {
    /// The message, if nothing was typed.
    Message,
    /// Nothing of ours.
    Leave,
}

/// What an operator says of a message besides its words.
#[derive(Clone, Copy)]
pub(crate) struct Given<'a> {
    /// All of what is typed is theirs.
    pub(crate) vouch: bool,
    /// The file of their own plan for its turn.
    pub(crate) plan: Option<&'a Path>,
}

impl<'a> From<&'a Run> for Given<'a> {
    fn from(args: &'a Run) -> Self {
        Self { vouch: args.vouch, plan: args.plan.as_deref() }
    }
}

impl Given<'_> {
    /// What was typed, and the plan beside it.
    pub(crate) fn parts(self, typed: String) -> anyhow::Result<Vec<Part>> {
        let kind = if self.vouch { PartKind::Vouched } else { PartKind::Typed };
        let words = Some(Part { kind, text: typed }).filter(|part| !part.text.trim().is_empty());
        Ok(words.into_iter().chain(self.plan.map(plan).transpose()?).collect())
    }
}

/// The most bytes of a plan.
const MOST_PLAN: u64 = 256 << 10;

fn plan(file: &Path) -> anyhow::Result<Part> {
    let text = files::named(file, MOST_PLAN).context("the plan of --plan")?;
    Ok(Part { kind: PartKind::Plan, text })
}

/// What a person is told of a message that the node does not take for typed throughout.
pub(crate) fn pasted(parts: &[Part]) -> Option<String> {
    let divided = divided(parts.to_vec());
    let pasted = || divided.iter().filter(|part| part.kind == PartKind::Pasted);
    let (pieces, characters) = (pasted().count(), pasted().map(|part| part.text.chars().count()).sum());
    let (were, say) =
        if pieces == 1 { ("1 piece was", "it says") } else { (&*format!("{pieces} pieces were"), "they say") };
    let characters = grouped(characters);
    (pieces > 0).then(|| {
        format!(
            "{were} taken as pasted ({characters} characters): what {say} is not an instruction. --vouch makes it one."
        )
    })
}

/// The parts of the message, at least one.
pub(super) fn read(words: &[String], given: Given<'_>) -> anyhow::Result<Vec<Part>> {
    let parts = read_any(words, given, Unnamed::Message)?;
    parts.context("there is no message; for example: ephor run \"Find my TODOs and summarize them\"")
}

/// The parts of the message, if there is one.
pub(super) fn read_any(words: &[String], given: Given<'_>, unnamed: Unnamed) -> anyhow::Result<Option<Vec<Part>>> {
    let typed = words.iter().filter(|word| *word != INPUT).map(String::as_str).collect::<Vec<_>>().join(" ");
    let is_typed = !typed.trim().is_empty();
    let piped_in = if asks_for_input(words) || (!is_typed && unnamed == Unnamed::Message && is_piped()) {
        piped()?.map(|text| Part { kind: PartKind::Piped, text })
    } else {
        None
    };
    if !is_typed && piped_in.is_none() {
        return Ok(None);
    }
    let mut parts = given.parts(typed)?;
    parts.extend(piped_in);
    Ok(Some(parts))
}

/// Says so where something is piped in that the message does not ask for.
pub(super) fn unread(words: &[String], screen: &mut Screen) {
    if !asks_for_input(words) && is_pipe() && words.iter().any(|word| !word.trim().is_empty()) {
        screen.note("what is piped in is not read; add `-` to the message to send it along");
    }
}

fn asks_for_input(words: &[String]) -> bool {
    words.iter().any(|word| word == INPUT)
}

/// Whether standard input is something to read: no terminal and no other device.
fn is_piped() -> bool {
    let kind = std::fs::metadata("/dev/stdin").map(|metadata| metadata.file_type());
    !std::io::stdin().is_terminal() && kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file() || kind.is_socket())
}

fn is_pipe() -> bool {
    std::fs::metadata("/dev/stdin").is_ok_and(|metadata| metadata.file_type().is_fifo())
}

fn piped() -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    let input = std::io::stdin().lock();
    input.take(MAX_PIPED + 1).read_to_end(&mut bytes).context("standard input cannot be read")?;
    if bytes.len() as u64 > MAX_PIPED {
        bail!("more than {} MiB are piped in; name a file in the workspace instead", MAX_PIPED >> 20);
    }
    let text = String::from_utf8(bytes).context("what is piped in is not text (UTF-8)")?;
    Ok((!text.trim().is_empty()).then_some(text))
}
