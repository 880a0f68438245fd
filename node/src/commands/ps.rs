//! `ephor ps`: the processes of the running node, as a tree.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_base::Pid;
use ephor_kernel::ProcessInfo;

use crate::{
    bytes,
    cli::Ps,
    client::Client,
    home::Home,
    protocol::{Answer, Request},
    terminal,
};

pub(crate) async fn ps(home: &Home, args: &Ps) -> anyhow::Result<ExitCode> {
    let Some(mut client) = Client::reach_running(home).await? else {
        bail!("no node runs on `{}`; `ephor up` starts one", home.path().display());
    };
    let Answer::Processes { processes } = client.ask(&Request::Processes {}).await? else {
        bail!("the node answered something else");
    };
    let text = if args.json {
        serde_json::to_string_pretty(&processes)? + "\n"
    } else {
        let Answer::Space { space } = client.ask(&Request::Space {}).await? else {
            bail!("the node answered something else");
        };
        tree(&processes) + &space.map(|space| format!("\nquota   {}\n", bytes::of_quota(space))).unwrap_or_default()
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// One line a process, each below its supervisor.
fn tree(processes: &[ProcessInfo]) -> String {
    let mut text = format!("{:>6}  {:<9} {:>8} {:>8}  {}\n", "PID", "STATE", "RESTARTS", "UP", "SEAT");
    branch(processes, None, "", &mut text);
    text
}

fn branch(processes: &[ProcessInfo], parent: Option<Pid>, lead: &str, text: &mut String) {
    let mut children = processes.iter().filter(|process| process.parent == parent).peekable();
    while let Some(process) = children.next() {
        let is_last = children.peek().is_none();
        let (twig, below) = match (parent, is_last) {
            (None, _) => ("", ""),
            (Some(_), true) => ("└─ ", "   "),
            (Some(_), false) => ("├─ ", "│  "),
        };
        let state = format!("{:?}", process.state).to_lowercase();
        let up = format!("{} s", process.uptime_ms / 1000);
        let seat = process.seat.name();
        text.push_str(&format!(
            "{:>6}  {state:<9} {:>8} {up:>8}  {lead}{twig}{seat}\n",
            process.pid.0, process.restarts
        ));
        branch(processes, Some(process.pid), &format!("{lead}{below}"), text);
    }
}
