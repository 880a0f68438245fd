//! `ephor ps`: the processes of the running node, as a tree.

use std::{collections::BTreeMap, io::IsTerminal, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use ephor_base::{Pid, Seat};
use ephor_chain::Space;
use ephor_kernel::{Appointments, Posted};
use ephor_record::{Hold, HoldKind};
use serde::Serialize;
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
        let found = Standing { survey: survey(&mut client).await?, room: room(&mut client).await? };
        let text = match (args.json, args.watch) {
            (false, _) => told(&found),
            // One line a look.
            (true, true) => serde_json::to_string(&found)? + "\n",
            (true, false) => serde_json::to_string_pretty(&found)? + "\n",
        };
        // From the top of the screen, and nothing of the last look below.
        let text = if args.watch && !args.json && std::io::stdout().is_terminal() {
            format!("\x1b[H\x1b[J{text}")
        } else {
            text
        };
        terminal::write(&text).context(terminal::UNWRITTEN)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// How a node stands.
#[derive(Serialize)]
struct Standing {
    #[serde(flatten)]
    survey: Survey,
    #[serde(flatten)]
    room: Room,
}

/// How the record of a node that runs stands.
#[derive(Serialize)]
pub(super) struct Room {
    /// How much of the quota is used; nothing where there is none.
    quota: Option<Space>,
    /// Why the chain cannot be published; nothing while it can.
    pub(super) trouble: Option<String>,
}

pub(super) async fn room(client: &mut Client) -> anyhow::Result<Room> {
    match client.ask(&Request::Space {}).await? {
        Answer::Space { space, trouble } => Ok(Room { quota: space, trouble }),
        _ => bail!("the node answered something else"),
    }
}

/// The tree, and below it what holds agents, how much of the quota is used, and what is wrong with the chain.
fn told(Standing { survey, room }: &Standing) -> String {
    let quota = room.quota.map(|space| format!("\nquota   {}\n", bytes::of_quota(space)));
    let trouble = room.trouble.as_deref().map(unpublished).map(|told| format!("\nchain   {told}\n"));
    tree(&survey.processes) + &held(&survey.holds) + &quota.unwrap_or_default() + &trouble.unwrap_or_default()
}

/// What an operator holds, and what ends that.
fn held(holds: &[Hold]) -> String {
    let line = |Hold { seat, kind, tree: _ }: &Hold| {
        let (who, target) = match *seat == Seat::root("node") {
            true => ("every agent".to_owned(), "--all".to_owned()),
            false => (plain(seat.as_str()), plain(seat.as_str())),
        };
        match kind {
            HoldKind::Stopped => format!("{who} is stopped; `ephor resume {target}` lets it begin again\n"),
            HoldKind::Suspended => format!("{who} is suspended; `ephor resume {target}` lets it go on\n"),
            HoldKind::Spent => {
                format!("the budget of {who} is spent; `ephor budget {target}` shows of what, and gives more\n")
            }
        }
    };
    holds.iter().map(line).map(|line| format!("\nheld    {line}")).collect()
}

/// What is wrong with a chain that cannot be published.
pub(super) fn unpublished(why: &str) -> String {
    format!("cannot be published: {}. What was acknowledged is in its journal; see to the disk.", plain(why))
}

/// Everything that runs, page by page.
pub(super) async fn survey(client: &mut Client) -> anyhow::Result<Survey> {
    let mut whole: Option<Survey> = None;
    loop {
        let behind = whole.as_ref().and_then(|survey| survey.processes.last()).map(|last| last.info.pid);
        let Done::Survey { survey: page } = client.operate(Operation::Survey { behind }).await? else {
            bail!("the node answered something else");
        };
        let is_last = !page.more || page.processes.is_empty();
        match &mut whole {
            Some(whole) => {
                whole.processes.extend(page.processes);
                whole.flights.extend(page.flights);
            }
            None => whole = Some(page),
        }
        match whole {
            Some(whole) if is_last => return Ok(Survey { more: false, ..whole }),
            more => whole = more,
        }
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
        let state = state(process);
        let up = format!("{} s", info.uptime_ms / 1000);
        let used = process.account.as_ref().map_or_else(|| "-".to_owned(), |account| used(budget::fullest(account)));
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

/// What a process does, or what holds it from doing anything.
pub(super) fn state(process: &ProcessView) -> String {
    let state = process.held.map_or_else(|| format!("{:?}", process.info.state), |held| format!("{held:?}"));
    state.to_lowercase()
}

/// How much of a budget is used, of a hundred.
pub(super) fn used(percent: u64) -> String {
    if percent < 100 { format!("{percent}%") } else { "spent".to_owned() }
}

/// What agent it is, where the configuration names one.
fn posted(agent: &Posted) -> String {
    let Posted { name, role, namespace } = agent;
    if name == Appointments::DEFAULT && role == Appointments::ROLE && namespace == Appointments::NAMESPACE {
        return String::new();
    }
    format!("  ({}: {} in {})", plain(name), plain(role), plain(namespace))
}
