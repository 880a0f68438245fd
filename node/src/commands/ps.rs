//! `ephor ps`: the processes of the running node, as a tree.

use std::{collections::BTreeMap, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use ephor_base::Pid;
use ephor_kernel::{Appointments, Posted};
use tokio::signal::unix::{SignalKind, signal};

use super::{budget, no_node};
use crate::{
    bytes,
    cli::Ps,
    client::Client,
    home::Home,
    operation::{Done, Operation, ProcessView, Survey},
    protocol::{Answer, Request},
    terminal::{self, plain},
};

/// Between two looks of `--watch`.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn ps(home: &Home, args: &Ps) -> anyhow::Result<ExitCode> {
    if !args.watch {
        return look(home, args).await;
    }
    // Once it is asked for, the signal comes only this way: it is waited for beside whatever else is.
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be handled")?;
    tokio::select! {
        looked = look(home, args) => looked,
        _ = interrupt.recv() => Ok(ExitCode::SUCCESS),
    }
}

async fn look(home: &Home, args: &Ps) -> anyhow::Result<ExitCode> {
    let mut client = Client::reach_running(home).await?.with_context(|| no_node(home))?;
    loop {
        let survey = survey(&mut client).await?;
        let text = if !args.json {
            tree(&survey.processes) + &quota(&mut client).await?
        } else if args.watch {
            // One line a look.
            serde_json::to_string(&survey.processes)? + "\n"
        } else {
            serde_json::to_string_pretty(&survey.processes)? + "\n"
        };
        // From the top of the screen, and nothing of the last look below.
        let text = if args.watch && !args.json { format!("\x1b[H\x1b[J{text}") } else { text };
        terminal::write(&text).context(terminal::UNWRITTEN)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How much of the quota is used; nothing where there is none.
async fn quota(client: &mut Client) -> anyhow::Result<String> {
    let Answer::Space { space } = client.ask(&Request::Space {}).await? else {
        bail!("the node answered something else");
    };
    Ok(space.map(|space| format!("\nquota   {}\n", bytes::of_quota(space))).unwrap_or_default())
}

/// Everything that runs.
pub(super) async fn survey(client: &mut Client) -> anyhow::Result<Survey> {
    match client.operate(Operation::Survey {}).await? {
        Done::Survey { survey } => Ok(survey),
        _ => bail!("the node answered something else"),
    }
}

/// One line a process, each below its supervisor.
pub(super) fn tree(processes: &[ProcessView]) -> String {
    let heads = ("PID", "STATE", "RESTARTS", "UP", "BUDGET", "WAITS FOR", "SEAT");
    let (pid, state, restarts, up, budget, waits, seat) = heads;
    let mut text = format!("{pid:>6}  {state:<9} {restarts:>8} {up:>8}  {budget:>6}  {waits:<22}  {seat}\n");
    let mut below: BTreeMap<Option<Pid>, Vec<&ProcessView>> = BTreeMap::new();
    processes.iter().for_each(|process| below.entry(process.info.parent).or_default().push(process));
    branch(&below, None, "", &mut text);
    text
}

fn branch(all: &BTreeMap<Option<Pid>, Vec<&ProcessView>>, parent: Option<Pid>, lead: &str, text: &mut String) {
    let mut children = all.get(&parent).into_iter().flatten().peekable();
    while let Some(process) = children.next() {
        let is_last = children.peek().is_none();
        let (twig, below) = match (parent, is_last) {
            (None, _) => ("", ""),
            (Some(_), true) => ("└─ ", "   "),
            (Some(_), false) => ("├─ ", "│  "),
        };
        let info = &process.info;
        let state = format!("{:?}", info.state).to_lowercase();
        let up = format!("{} s", info.uptime_ms / 1000);
        let used =
            process.account.as_ref().map_or_else(|| "-".to_owned(), |account| format!("{}%", budget::fullest(account)));
        let idle = if process.suspended.is_some() { "reinstate: its conduct" } else { "-" };
        let waits: String = plain(process.waiting_for.as_deref().unwrap_or(idle)).chars().take(22).collect();
        let agent = info.agent.as_ref().map_or_else(String::new, posted);
        text.push_str(&format!(
            "{:>6}  {state:<9} {:>8} {up:>8}  {used:>6}  {waits:<22}  {lead}{twig}{}{agent}\n",
            info.pid.0,
            info.restarts,
            plain(&process.name)
        ));
        branch(all, Some(info.pid), &format!("{lead}{below}"), text);
    }
}

/// What agent it is, where the configuration names one.
fn posted(agent: &Posted) -> String {
    let Posted { name, role, namespace } = agent;
    if name == Appointments::DEFAULT && role == Appointments::ROLE && namespace == Appointments::NAMESPACE {
        return String::new();
    }
    format!("  ({}: {} in {})", plain(name), plain(role), plain(namespace))
}
