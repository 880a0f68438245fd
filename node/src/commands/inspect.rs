//! `ephor inspect`: all that is known of one process.

use std::{fmt::Write as _, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::{Pid, ToolName};
use ephor_kernel::{Posted, Suspended};

use super::{budget, no_node, ps::state};
use crate::{
    cli::Inspect,
    client::Client,
    home::Home,
    operation::{Done, Inspection, Operation},
    terminal::{self, plain},
};

pub(crate) async fn inspect(home: &Home, args: &Inspect) -> anyhow::Result<ExitCode> {
    let mut client = Client::reach_running(home).await?.with_context(|| no_node(home))?;
    let Done::Inspected { inspection } = client.operate(Operation::Inspect { target: args.target.clone() }).await?
    else {
        bail!("the node answered something else");
    };
    let text = if args.json { serde_json::to_string_pretty(&inspection)? + "\n" } else { told(&inspection)? };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn told(found: &Inspection) -> Result<String, std::fmt::Error> {
    let (info, mut text) = (&found.process.info, String::new());
    writeln!(text, "process {}  {}", info.pid, info.seat)?;
    let state = state(&found.process);
    writeln!(text, "  state        {state}, up {} s, {} restarts", info.uptime_ms / 1000, info.restarts)?;
    if let Some(parent) = info.parent {
        writeln!(text, "  supervised   by {parent}")?;
    }
    if let Some(session) = info.session {
        let turn = if found.in_turn { "in a turn" } else { "between turns" };
        writeln!(text, "  session      {session}, {turn}")?;
    }
    if let Some(Posted { name, role, namespace }) = &info.agent {
        let of = found.tools.as_ref().map_or_else(String::new, |tools| format!(", with {}", names(tools)));
        writeln!(text, "  agent        {}, {} in {}{of}", plain(name), plain(role), plain(namespace))?;
    }
    // What holds it is its state.
    if let Some(waiting_for) = found.process.waiting_for.as_ref().filter(|_| found.process.held.is_none()) {
        writeln!(text, "  waits for    {}", plain(waiting_for))?;
    }
    if let Some(Suspended { session, since, calls, bad, .. }) = &found.process.suspended {
        writeln!(text, "  suspended    for its conduct since entry {since}: of {calls} tool calls {bad} were refused")?;
        writeln!(text, "               `ephor reinstate {session}` lets it act again")?;
    }
    writeln!(text, "  mailbox      {} waiting", info.waiting)?;
    writeln!(text, "  links        {}", pids(&found.links))?;
    writeln!(text, "  monitors     {}", pids(&found.monitors))?;
    if !found.rights.is_empty() {
        let rights: Vec<String> = found.rights.iter().map(|right| format!("{right:?}").to_lowercase()).collect();
        writeln!(text, "  rights       {}", rights.join(", "))?;
    }
    if let Some(account) = &found.process.account {
        text.push_str(&budget::table(account));
    }
    calls(found, &mut text)?;
    if let Some(life) = &found.life {
        writeln!(text, "  on record    {} starts, {} failures", life.starts, life.failures)?;
    }
    for exit in &found.exits {
        let pid = exit.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        writeln!(text, "  exit         process {pid} {} {}, entry {}", exit.time, plain(&exit.reason), exit.seq)?;
    }
    Ok(text)
}

fn calls(found: &Inspection, text: &mut String) -> std::fmt::Result {
    for flight in &found.flights {
        let target = plain(&flight.target);
        writeln!(
            text,
            "  in flight    call {} {target}, {} ms, intent {}",
            flight.call, flight.running_ms, flight.intent
        )?;
    }
    for landed in found.calls.iter().rev().take(8) {
        let (target, end) = (plain(&landed.target), plain(&landed.end));
        writeln!(text, "  call         {} {target}: {end}, entry {}", landed.call, landed.receipt.seq)?;
    }
    Ok(())
}

fn names(tools: &[ToolName]) -> String {
    if tools.is_empty() {
        return "no tool".to_owned();
    }
    tools.iter().map(ToolName::as_str).collect::<Vec<_>>().join(", ")
}

fn pids(pids: &[Pid]) -> String {
    if pids.is_empty() {
        return "none".to_owned();
    }
    pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
