//! `ephor schedule`: messages that are sent at certain times.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_models::{ModelChoice, parse_model};
use ephor_record::Missed;

use super::{
    no_node,
    run::{
        message::{Given, pasted},
        workspace,
    },
    sessions::{json_lines, short},
};
use crate::{
    cli,
    client::Client,
    home::Home,
    host,
    operation::{Done, Operation, ScheduleView},
    terminal::{self, plain},
};

pub(crate) async fn schedule(home: &Home, args: cli::Schedule) -> anyhow::Result<ExitCode> {
    let adds = matches!(args, cli::Schedule::Add { .. });
    let looks = matches!(args, cli::Schedule::List { .. });
    let (operation, json) = operation(home, args)?;
    let mut client = if looks {
        // To look begins no record, and adds nothing to one.
        Client::reach_running(home).await?.with_context(|| no_node(home))?
    } else {
        Client::reach(home).await?
    };
    let text = match answer(&mut client, operation).await? {
        Done::Schedules { schedules, .. } if json => json_lines(&schedules)?,
        Done::Schedules { schedules, .. } => table(&schedules),
        done if json => serde_json::to_string(&done)? + "\n",
        Done::Recorded { seq } if adds => format!(
            "recorded as entry {seq}; messages are sent while `ephor up` runs. Each is answered in a session of its own: \
             `ephor sessions` lists it, `ephor chain log --session ID --content` has the answer\n"
        ),
        Done::Recorded { seq } => format!("recorded as entry {seq}\n"),
        _ => bail!("the node answered something else"),
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// What it answers; a list with all of its pages.
async fn answer(client: &mut Client, operation: Operation) -> anyhow::Result<Done> {
    let mut answer = client.operate(operation).await?;
    let Done::Schedules { schedules: all, more } = &mut answer else { return Ok(answer) };
    while *more {
        let behind = all.last().map(|last| last.name.clone());
        let Done::Schedules { schedules, more: further } = client.operate(Operation::Schedules { behind }).await?
        else {
            bail!("the node answered something else");
        };
        *more = further && !schedules.is_empty();
        all.extend(schedules);
    }
    Ok(answer)
}

fn operation(home: &Home, args: cli::Schedule) -> anyhow::Result<(Operation, bool)> {
    Ok(match args {
        cli::Schedule::Add { name, cron, message, zone, missed, directory, model, agent, scope, vouch, plan, json } => {
            let workspace = workspace(directory.as_deref(), home)?;
            let workspace = workspace.to_str().context("the name of the folder is not Unicode")?.to_owned();
            let missed = match missed {
                cli::Missed::Once => Missed::Once,
                cli::Missed::Skip => Missed::Skip,
            };
            let parts = Given { vouch, plan: plan.as_deref() }.parts(message.join(" "))?;
            if let Some(note) = pasted(&parts) {
                terminal::tell(&format!("{note}\n"));
            }
            let model = model.map(absolute).transpose()?;
            (Operation::Schedule { name, cron, zone, missed, parts, workspace, model, agent, scope }, json)
        }
        cli::Schedule::List { json } => (Operation::Schedules { behind: None }, json),
        cli::Schedule::Remove { name, json } => (Operation::Unschedule { name }, json),
    })
}

/// A script is read when it is due, by a node that stands elsewhere.
fn absolute(model: String) -> anyhow::Result<String> {
    match parse_model(&model)? {
        ModelChoice::Ready(_) => Ok(model),
        ModelChoice::Script(file) => {
            let file = file.canonicalize().with_context(|| format!("the script `{}`", file.display()))?;
            Ok(format!("script:{}", file.display()))
        }
    }
}

fn table(schedules: &[ScheduleView]) -> String {
    let mut text = format!("{:<20}  {:<18}  {:<18}  {:<19}  MESSAGE\n", "NAME", "WHEN", "ZONE", "NEXT (UTC)");
    for schedule in schedules {
        let next = schedule.next.map_or_else(|| "-".to_owned(), short);
        let message = plain(schedule.message.as_deref().unwrap_or("(erased)"));
        let message: String = message.lines().next().unwrap_or_default().chars().take(60).collect();
        let (name, cron, zone) = (plain(&schedule.name), plain(&schedule.cron), plain(&schedule.zone));
        text.push_str(&format!("{name:<20}  {cron:<18}  {zone:<18}  {next:<19}  {message}\n"));
        if let Some(why) = &schedule.last_error {
            let since = schedule.failing_since.map_or_else(String::new, |since| format!(" since {}", short(since)));
            text.push_str(&format!("  cannot be sent{since}: {}\n", plain(why).replace('\n', " ")));
        }
        if let Some(last) = schedule.last.filter(|last| *last > host::now()) {
            let last = short(last);
            text.push_str(&format!(
                "  was sent for {last}, ahead of the clock, and rests until then; to begin anew, remove and add it\n"
            ));
        }
    }
    text
}
