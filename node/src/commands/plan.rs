//! `ephor plan`: what the plan of a turn said, from the record alone.

use std::{fmt::Write, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::{Seq, SessionId};
use ephor_chain::{Entries, ReadError, Stored};
use ephor_kernel::{Retrial, TheirPlan, TurnPlan};
use ephor_record::Fact;
use serde_json::{Value, json};

use super::{
    chain::{entries, used},
    policy::explain::{UNREADABLE, rests_on},
    sessions::json_lines,
};
use crate::{
    cli::PlanOf,
    home::Home,
    progress::Bar,
    terminal::{self, plain},
};

/// A turn, and the entry from which on its plan was in force.
struct Turn {
    turn: TurnPlan,
    made: Option<Seq>,
}

pub(crate) fn plan(home: &Home, args: &PlanOf) -> anyhow::Result<ExitCode> {
    let of = |all: Entries| -> Box<dyn Iterator<Item = _>> {
        match rests_on(home, args.session, Seq(u64::MAX)) {
            Some(places) => Box::new(all.at(places)),
            None => Box::new(all),
        }
    };
    let mut turns = turns(of(entries(used(home)?, true)?), args.session)?;
    if turns.is_empty() {
        bail!("no turn of session {} can be read; `ephor sessions` lists the sessions of this record", args.session);
    }
    if !args.all {
        turns.drain(..turns.len().saturating_sub(1));
    }
    let text = if args.json {
        json_lines(&turns.iter().map(as_json).collect::<Vec<_>>())?
    } else {
        turns.iter().map(as_text).collect::<Result<Vec<_>, _>>()?.join("\n")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// The plan of the last turn of a session, in words: also where the index is behind the record.
pub(super) fn last(home: &Home, session: SessionId) -> anyhow::Result<String> {
    let turns = turns(entries(home, true)?, session)?;
    let last = turns.last().context("nothing of its turn is on the record yet")?;
    Ok(as_text(last)?)
}

/// The turns of a session, oldest first, from what its decisions rest on.
fn turns(all: impl Iterator<Item = Result<Stored, ReadError>>, session: SessionId) -> anyhow::Result<Vec<Turn>> {
    let (mut bar, mut retrial) = (Bar::new("entries read"), Retrial::default());
    let (mut turns, mut now): (Vec<Turn>, Option<Turn>) = (Vec::new(), None);
    for stored in all {
        let stored = stored.context(UNREADABLE)?;
        let seq = stored.entry.seq;
        bar.show(seq.0, seq.0.saturating_add(1));
        retrial.take(&stored);
        if stored.entry.subject.session != Some(session) {
            continue;
        }
        if matches!(stored.entry.fact, Fact::TurnEnd { .. }) {
            turns.extend(now.take());
        }
        now = match (retrial.turn_plan(session), now) {
            (Some(turn), last) => {
                let last = last.filter(|last| last.turn.message == turn.message).and_then(|last| last.made);
                let given = turn.plan.as_ref().is_some_and(|plan| plan.given).then_some(turn.accepted);
                let made = turn.plan.as_ref().and(last.or(given).or(Some(seq)));
                Some(Turn { turn, made })
            }
            (None, last) => last,
        };
    }
    turns.extend(now);
    Ok(turns)
}

fn as_json(Turn { turn, made }: &Turn) -> Value {
    let steps = |own: &TheirPlan| -> Vec<Value> {
        let written: Value = serde_json::from_str(&own.json).unwrap_or_default();
        let step = |at: usize| written.get("steps").and_then(|steps| steps.get(at)).cloned().unwrap_or_default();
        own.used.iter().enumerate().map(|(at, used)| json!({"step": step(at), "used": used})).collect()
    };
    json!({
        "message": turn.message,
        "accepted": turn.accepted,
        "asked": turn.asked,
        "entry": made,
        "by": turn.plan.as_ref().map(|plan| if plan.given { "operator" } else { "planner" }),
        "steps": turn.plan.as_ref().map(steps),
    })
}

fn as_text(Turn { turn, made }: &Turn) -> Result<String, std::fmt::Error> {
    let mut text = format!("message {} (entry {}): ", turn.message, turn.accepted);
    let Some(plan) = &turn.plan else {
        text.push_str(match turn.asked {
            true => "a plan was asked for, and what came is none; what acted was put before a person\n",
            false => "no plan was asked for\n",
        });
        return Ok(text);
    };
    let by = if plan.given { "given by the operator" } else { "made from what was typed" };
    let place = made.map_or_else(String::new, |made| format!(", entry {made}"));
    writeln!(text, "a plan {by}{place}")?;
    if plan.used.is_empty() {
        writeln!(text, "  it has no step: nothing may act unasked")?;
    }
    for (at, (step, used)) in plan.plan.steps().iter().zip(&plan.used).enumerate() {
        let (tool, times, arguments) = step.words();
        let of = if times == "-" { String::new() } else { format!("  used {used} of {times}") };
        writeln!(text, "  {}. {}{of}", at.saturating_add(1), plain(&tool))?;
        for (name, origin) in arguments {
            writeln!(text, "     {}: {}", plain(&name), plain(&origin))?;
        }
    }
    Ok(text)
}
