//! `ephor chain prune`: takes away what is old enough and not needed any more.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_base::Seq;
use ephor_chain::{Plan, Wish};
use ephor_record::blockers::{Held, Why};
use serde_json::json;

use super::{
    keep::{Keeper, OTHER, patiently},
    used,
};
use crate::{
    bytes::amount,
    cli::Prune,
    home::Home,
    progress::Bar,
    protocol::{Answer, Request},
    terminal,
};

/// How many of the things that stay are named one by one.
const NAMED: usize = 5;

impl Keeper {
    /// What could be pruned.
    async fn plan(&mut self, args: &Prune) -> anyhow::Result<Plan> {
        match self {
            Self::Here { upkeep, .. } => {
                let mut bar = Bar::new("entries read");
                let wish = Wish { keep: args.keep, before: args.before, ..Wish::default() };
                upkeep.plan(wish, move |done, of| bar.show(done, of)).await
            }
            Self::Node(client) => match patiently("reading the record", client.ask(&request(args, true))).await? {
                Answer::Pruned { plan, .. } => Ok(plan),
                _ => bail!(OTHER),
            },
        }
    }

    /// Prunes; what that was, and where the record says so.
    async fn prune(&mut self, args: &Prune, plan: Plan) -> anyhow::Result<(Plan, Option<Seq>)> {
        match self {
            Self::Here { upkeep, operator, .. } => {
                let pruned = patiently("taking away", upkeep.prune(*operator, &plan)).await?;
                Ok((plan, Some(pruned.seq)))
            }
            Self::Node(client) => match patiently("taking away", client.ask(&request(args, false))).await? {
                Answer::Pruned { plan, seq } => Ok((plan, seq)),
                _ => bail!(OTHER),
            },
        }
    }
}

fn request(args: &Prune, dry_run: bool) -> Request {
    Request::Prune { keep_days: args.keep.map(|keep| keep.days()), before: args.before, dry_run }
}

pub(super) async fn prune(home: &Home, args: &Prune) -> anyhow::Result<ExitCode> {
    let mut keeper = Keeper::reach(used(home)?).await?;
    let done = prune_by(&mut keeper, args).await;
    keeper.leave().await?;
    terminal::write(&done?).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

async fn prune_by(keeper: &mut Keeper, args: &Prune) -> anyhow::Result<String> {
    let plan = keeper.plan(args).await?;
    if args.dry_run || plan.entries() == 0 {
        return answer(args, &plan, None);
    }
    let why =
        format!("{}Nobody will be able to read or prove those entries again. This cannot be undone.", would(&plan));
    if !args.yes && !terminal::confirm(&why)? {
        bail!("nothing was pruned; answer `yes` at a terminal, or pass --yes");
    }
    let (plan, seq) = keeper.prune(args, plan).await?;
    answer(args, &plan, seq)
}

fn answer(args: &Prune, plan: &Plan, seq: Option<Seq>) -> anyhow::Result<String> {
    if args.json {
        return Ok(format!(
            "{}\n",
            json!({ "pruned": seq, "entries": plan.entries(), "plan": serde_json::to_value(plan)? })
        ));
    }
    let done = match seq {
        Some(seq) => format!(
            "Pruned: {} entries are gone, and {} of files (entry {seq} says so). The log begins at entry {}.\n",
            plan.entries(),
            amount(plan.bytes),
            plan.minimum
        ),
        None if plan.entries() == 0 => {
            format!(
                "Nothing can be pruned: entries are kept for {} days of what the record lived through.\n",
                plan.keep_days
            )
        }
        None => would(plan),
    };
    Ok(done + &stays(plan))
}

/// What would go.
fn would(plan: &Plan) -> String {
    let day = |time: Option<ephor_base::Timestamp>| time.map_or_else(|| "-".to_owned(), super::super::sessions::short);
    format!(
        "{} entries would go, from entry {} to {} ({} to {} UTC), and {} of files.\n",
        plan.entries(),
        plan.from,
        plan.minimum.saturating_sub(1),
        day(plan.oldest),
        day(plan.newest),
        amount(plan.bytes)
    )
}

/// What stays though it is old enough, and why.
fn stays(plan: &Plan) -> String {
    let mut text = String::new();
    for Held { seq, since, why } in plan.held.iter().take(NAMED) {
        let since = super::super::sessions::short(*since);
        let what = match why {
            Why::Open { session } => format!("session {session} is open since {since}"),
            Why::Talked { session } => format!("session {session} began {since} and was talked in since"),
            Why::Unanswered { session, message } => format!(
                "message {message} of session {session} ({since}) has no answer; `ephor chain erase --session {session}` lets go \
                 of it"
            ),
            Why::Unfinished { intent } => format!("intent {intent} has no outcome, and belongs to what began {since}"),
            Why::Asked { ticket } => format!("ticket {ticket} waits for an answer, and belongs to what began {since}"),
            Why::Scheduled { made } => {
                format!("a schedule stands that entry {made} made, and belongs to what began {since}")
            }
            Why::Reused { ruling } => {
                format!("standing approval {ruling} belongs to what began {since}")
            }
            Why::InForce => format!("the policy, operators and tools in force were recorded from {since} on"),
        };
        text.push_str(&format!("What comes from entry {seq} on stays: {what}.\n"));
    }
    if let Some(more) = plan.held.len().checked_sub(NAMED).filter(|more| *more > 0) {
        text.push_str(&format!("{more} more stay as well; --json names them.\n"));
    }
    text
}
