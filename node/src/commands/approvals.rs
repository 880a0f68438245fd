//! `ephor approvals`, `approve` and `refuse`: what waits for a person, and what they say.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use ephor_base::{Decision, SessionId, TicketId};
use ephor_kernel::{Question, Statement, all_agents};
use serde_json::json;

use super::{
    precedents::{suspended, suspensions},
    resting, runtime,
    sessions::{json_lines, short},
};
use crate::{
    cli::{Answered, Approvals},
    client::Client,
    home::Home,
    host,
    operation::{AnswerView, Approval, Done, Operation},
    protocol::Answer,
    terminal::{self, plain},
};

/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Shows what waits. Where no node runs, what the record says: to look starts none.
pub(crate) fn approvals(home: &Home, args: &Approvals) -> anyhow::Result<ExitCode> {
    if let Some(waiting) = resting::waiting(home)? {
        let text = if args.json { json_lines(&waiting)? } else { resting::told(&waiting) };
        terminal::write(&text).context(terminal::UNWRITTEN)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
    }
    runtime(1)?.block_on(watched(home, args))
}

async fn watched(home: &Home, args: &Approvals) -> anyhow::Result<ExitCode> {
    let mut client = loop {
        match Client::reach_running(home).await? {
            Some(client) => break client,
            None => tokio::time::sleep(LOOK).await,
        }
    };
    let mut shown = None;
    loop {
        let approvals = open(&mut client).await?;
        let (_, held) = suspended(&mut client, None).await?;
        let state = |one: &Approval| (one.question.ticket, one.answers.len());
        let tickets: (Vec<_>, Vec<_>) = (approvals.iter().map(state).collect(), held.clone());
        if shown.as_ref() != Some(&tickets) {
            let text = if args.json { json_lines(&approvals)? } else { told(&approvals) + &suspensions(&held) };
            terminal::write(&text).context(terminal::UNWRITTEN)?;
            shown = Some(tickets);
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Answers. Only what waits, or may, is worth a node.
pub(crate) fn answer(home: &Home, args: &Answered, decision: Decision) -> anyhow::Result<ExitCode> {
    if let Some(waiting) = resting::waiting(home)? {
        let known = waiting.iter().map(|one| (one.ticket, one.session));
        named(&args.ticket, &known.collect::<Vec<_>>())?;
    }
    runtime(1)?.block_on(said(home, args, decision))
}

async fn said(home: &Home, args: &Answered, decision: Decision) -> anyhow::Result<ExitCode> {
    let mut client = Client::reach(home).await?;
    let approvals = open(&mut client).await?;
    let question = &meant(&args.ticket, &approvals)?.question;
    let always = args.always.as_ref().map(|free| {
        let seat = if args.all_agents { all_agents() } else { question.seat.clone() };
        question.always(seat, free.clone(), host::now().plus(args.time))
    });
    let until = always.as_ref().map(|always| always.until);
    let said = Statement { always, note: args.note.clone(), ..Statement::on_ticket(question, decision) };
    let ruling = client.ruling(said);
    let Answer::Ruled { missing } = client.ask(&ruling).await? else { bail!("the node answered something else") };
    let text = if args.json {
        let permitted = decision == Decision::Permit;
        let (ticket, session) = (question.ticket, question.session);
        let said = json!({
            "ticket": ticket, "session": session, "permitted": permitted, "missing": missing, "always_until": until
        });
        said.to_string() + "\n"
    } else {
        let again = until.map(|until| format!("it is used again until {}; `ephor precedents`\n", short(until)));
        answered(question, decision, missing) + &again.unwrap_or_default()
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn answered(question: &Question, decision: Decision, missing: u32) -> String {
    let Question { ticket, tool, session, .. } = question;
    match (decision, missing) {
        (Decision::Permit, 0) => {
            format!("ticket {ticket}: {tool} is permitted; the answer comes with `ephor run --session {session}`\n")
        }
        (Decision::Permit, 1) => {
            format!("ticket {ticket}: your yes counts, and one more person has to permit {tool}\n")
        }
        (Decision::Permit, more) => {
            format!("ticket {ticket}: your yes counts, and {more} more people have to permit {tool}\n")
        }
        _ => format!("ticket {ticket}: {tool} is refused; the answer comes with `ephor run --session {session}`\n"),
    }
}

async fn open(client: &mut Client) -> anyhow::Result<Vec<Approval>> {
    match client.operate(Operation::Approvals {}).await? {
        Done::Approvals { approvals } => Ok(approvals),
        _ => bail!("the node answered something else"),
    }
}

/// The ticket that is meant: by its number, or by the beginning of the session that asks, if it asks one thing only.
fn meant<'a>(text: &str, open: &'a [Approval]) -> anyhow::Result<&'a Approval> {
    let known: Vec<_> = open.iter().map(|one| (one.question.ticket, one.question.session)).collect();
    let ticket = named(text, &known)?;
    open.iter().find(|one| one.question.ticket == ticket).context("it was answered just now")
}

/// The same, of tickets and the sessions that ask them.
fn named(text: &str, open: &[(TicketId, SessionId)]) -> anyhow::Result<TicketId> {
    if let Some((exact, _)) = open.iter().find(|(ticket, _)| ticket.to_string() == text) {
        return Ok(*exact);
    }
    let begins = |(_, session): &&(TicketId, SessionId)| text.len() >= 4 && session.to_string().starts_with(text);
    let found: Vec<&(TicketId, SessionId)> = open.iter().filter(begins).collect();
    let numbers: Vec<String> = open.iter().map(|(ticket, _)| ticket.to_string()).collect();
    let open = if numbers.is_empty() { "nothing waits".to_owned() } else { format!("open are {}", numbers.join(", ")) };
    match found.as_slice() {
        [(ticket, _)] => Ok(*ticket),
        [] => bail!(
            "no ticket `{text}` is open, {open}: it was answered, its time is up, or it never was; `ephor tickets` tells"
        ),
        more => bail!("session `{text}` asks {} things; name the ticket: {open}", more.len()),
    }
}

fn told(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "nothing waits for an answer\n".to_owned();
    }
    approvals.iter().map(one).collect()
}

/// Who has answered, and who may still.
fn people(answers: &[AnswerView], may: &[String]) -> String {
    let said = |AnswerView { name, operator, permits, note }: &AnswerView| {
        let name = name.as_ref().map_or_else(|| format!("{operator}, no approver any more"), |name| plain(name));
        let note = note.as_ref().map(|note| format!(": {}", plain(note))).unwrap_or_default();
        format!("\n  answered   {name} {}{note}", if *permits { "permits it" } else { "refuses it" })
    };
    let answered: String = answers.iter().map(said).collect();
    format!(
        "{answered}\n  may answer {}",
        if may.is_empty() { "nobody else".to_owned() } else { plain(&may.join(", ")) }
    )
}

fn one(Approval { question, left_ms, answers, may }: &Approval) -> String {
    let Question { ticket, session, seat, tool, arguments, verdict, quorum, .. } = question;
    let people = if *quorum > 1 {
        format!("\n  takes      {quorum} different people{}", people(answers, may))
    } else {
        String::new()
    };
    let effects: Vec<String> =
        verdict.effects.components().iter().map(|(name, value)| format!("{name} {}", value.value())).collect();
    format!(
        "ticket {ticket}, {} s left: {tool}\n  asked by   {seat} in session {session}\n  arguments  {}\n  deferred   {}\n  \
         effects    {} (per mille){people}\n  a yes runs exactly this, once: ephor approve {ticket}; a no: ephor refuse {ticket}; either for good: --always\n",
        left_ms.div_ceil(1000),
        plain(arguments),
        plain(&verdict.why()),
        effects.join(", "),
    )
}
