//! `ephor suspend`, `resume`, `stop`, `kill`: what is done to processes.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_base::Seat;
use ephor_record::{Hold, HoldKind, Signal};

use super::no_node;
use crate::{
    cli::Signalled,
    client::Client,
    home::Home,
    operation::{Done, Operation},
    terminal,
};

pub(crate) async fn signal(home: &Home, signal: Signal, args: Signalled) -> anyhow::Result<ExitCode> {
    let Signalled { target, tree, all: _, note, json } = args;
    let mut client = match target {
        // Only what is for every agent to come has a meaning where nobody is.
        None => Client::reach(home).await?,
        Some(_) => Client::reach_running(home).await?.with_context(|| no_node(home))?,
    };
    let done = client.operate(Operation::Signal { signal, target, tree, note }).await?;
    let Done::Signalled { seat, seq, unrecorded, sessions, held } = &done else {
        bail!("the node answered something else")
    };
    let text = if json {
        serde_json::to_string(&done)? + "\n"
    } else if held.is_some() {
        String::new()
    } else {
        let (past, place) = (past(signal), seq.map_or_else(String::new, |seq| format!(", entry {seq}")));
        let of = match sessions.len() {
            0 => String::new(),
            1 => ", 1 session".to_owned(),
            more => format!(", {more} sessions"),
        };
        format!("{seat} {past}{of}{place}\n")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    match (unrecorded, held) {
        // It took effect, and a reader of the record has to know.
        (Some(why), _) => bail!("it took effect and is not on the record, so it ends with this node: {why}"),
        (None, Some(hold)) => bail!("`{seat}` does not go on: {}", still(hold)),
        (None, None) => Ok(ExitCode::SUCCESS),
    }
}

/// What holds a seat still, and what ends that.
fn still(hold: &Hold) -> String {
    let Hold { seat, kind, tree: _ } = hold;
    match kind {
        HoldKind::Spent => {
            format!("the budget of `{seat}` is spent; `ephor budget {seat}` shows of what, and gives more")
        }
        _ if *seat == Seat::root("node") => format!("it is still held by `{seat}`; `ephor resume --all`"),
        _ => format!("it is still held by `{seat}`; `ephor resume {seat}`"),
    }
}

const fn past(signal: Signal) -> &'static str {
    match signal {
        Signal::Suspend => "suspended",
        Signal::Resume => "resumed",
        Signal::Stop => "stopped",
        Signal::Kill => "killed",
    }
}
