//! `ephor suspend`, `resume`, `stop`, `kill`: what is done to processes.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_chain::Signal;

use crate::{
    cli::Signalled,
    client::Client,
    home::Home,
    operation::{Done, Operation},
    terminal,
};

pub(crate) async fn signal(home: &Home, signal: Signal, args: Signalled) -> anyhow::Result<ExitCode> {
    let Signalled { target, tree, all: _, note, json } = args;
    let mut client = Client::reach(home).await?;
    let done = client.operate(Operation::Signal { signal, target, tree, note }).await?;
    let Done::Signalled { seat, seq, unrecorded, sessions } = &done else { bail!("the node answered something else") };
    let text = if json {
        serde_json::to_string(&done)? + "\n"
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
    match unrecorded {
        // It took effect, and whoever relies on the record has to know.
        Some(why) => bail!("it took effect and is not on the record, so it ends with this node: {why}"),
        None => Ok(ExitCode::SUCCESS),
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
