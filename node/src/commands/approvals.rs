//! `ephor approvals`, `approve` and `refuse`: what waits for a person, and what they say.

use std::{process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use ephor_base::{Decision, SessionId, TicketId};
use ephor_kernel::{Question, Statement, Suspended, all_agents};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    precedents::{suspended, suspensions},
    resting, runtime,
    sessions::short,
    waits::Waits,
};
use crate::{
    cli::{Answered, Approvals},
    client::{Client, NodeGone},
    home::Home,
    host,
    operation::{AnswerView, Approval, Done, Operation, PAGE},
    protocol::Answer,
    terminal::{self, plain},
};

/// How many tickets a message names.
const FEW: usize = 20;
/// Between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// Shows what waits. Where no node runs, what the record says: to look starts none.
pub(crate) fn approvals(home: &Home, args: &Approvals) -> anyhow::Result<ExitCode> {
    if let Some(waiting) = resting::waiting(home)? {
        let text = if args.json { Waits::resting(waiting).line()? } else { resting::told(&waiting) };
        terminal::write(&text).context(terminal::UNWRITTEN)?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
    }
    runtime(1)?.block_on(async {
        if !args.watch {
            return watched(home, args).await;
        }
        // Also where it was started with interrupts ignored, as scripts start what runs beside them.
        let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be handled")?;
        tokio::select! {
            ended = watched(home, args) => ended,
            _ = interrupt.recv() => Ok(ExitCode::SUCCESS),
        }
    })
}

async fn watched(home: &Home, args: &Approvals) -> anyhow::Result<ExitCode> {
    let mut shown = None;
    loop {
        let (approvals, held) = match look(home).await {
            Ok(Some(found)) => found,
            Err(error) if !error.is::<NodeGone>() => return Err(error),
            Ok(None) | Err(_) => {
                tokio::time::sleep(LOOK).await;
                continue;
            }
        };
        let state = |one: &Approval| (one.question.ticket, one.answers.len());
        let tickets: (Vec<_>, Vec<_>) = (approvals.iter().map(state).collect(), held.clone());
        if shown.as_ref() != Some(&tickets) {
            let text = match args.json {
                true => Waits::running(approvals, held).line()?,
                false => told(&approvals) + &suspensions(&held),
            };
            terminal::write(&text).context(terminal::UNWRITTEN)?;
            shown = Some(tickets);
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// What waits, and who is suspended, on the node that runs. A connection that stays would keep a node from ending that was started
/// for another client.
async fn look(home: &Home) -> anyhow::Result<Option<(Vec<Approval>, Vec<Suspended>)>> {
    let Some(mut client) = Client::reach_running(home).await? else { return Ok(None) };
    let approvals = open(&mut client).await?;
    let (_, held) = suspended(&mut client, None).await?;
    Ok(Some((approvals, held)))
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
        // The clock of this machine may lie behind the time of the record.
        question.always(seat, free.clone(), host::now().max(question.asked).plus(args.time))
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
        let whom = if args.all_agents { "every agent of this node" } else { "this session alone" };
        let again = until.map(|until| {
            format!(
                "The answer stands for {whom} until {} UTC: the same call, asked for the same reasons, is answered likewise. \
                 `ephor precedents` lists it and ends it.\n",
                short(until)
            )
        });
        question.text.as_str().to_owned() + &answered(question, decision, missing) + &again.unwrap_or_default()
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
    let mut all: Vec<Approval> = Vec::new();
    loop {
        let behind = all.last().map(|one| one.question.ticket);
        let Done::Approvals { approvals } = client.operate(Operation::Approvals { behind }).await? else {
            bail!("the node answered something else");
        };
        let is_last = approvals.len() < PAGE;
        all.extend(approvals);
        if is_last {
            return Ok(all);
        }
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
    let mut numbers: Vec<String> = open.iter().take(FEW).map(|(ticket, _)| ticket.to_string()).collect();
    numbers.extend(open.len().checked_sub(FEW).filter(|more| *more > 0).map(|more| format!("and {more} more")));
    let waits = match open.len() {
        0 => "Nothing waits for an answer.".to_owned(),
        1 => format!("Ticket {} is open.", numbers.join("")),
        _ => format!("Tickets {} are open.", numbers.join(", ")),
    };
    match found.as_slice() {
        [(ticket, _)] => Ok(*ticket),
        [] => bail!("Ticket {} is not open. {waits} `ephor tickets` shows what became of others.", plain(text)),
        more => bail!("Session {} asks {} things: name the ticket. {waits}", plain(text), more.len()),
    }
}

fn told(approvals: &[Approval]) -> String {
    if approvals.is_empty() {
        return "Nothing waits for an answer.\n".to_owned();
    }
    approvals.iter().map(one).collect()
}

/// Who has answered, and who may still.
fn people(answers: &[AnswerView], may: &[String]) -> String {
    let said = |AnswerView { name, operator, permits, note }: &AnswerView| {
        let name = name.as_ref().map_or_else(|| format!("{operator}, no approver any more"), |name| plain(name));
        let note = note.as_ref().map(|note| format!(": {}", plain(note))).unwrap_or_default();
        format!("{name} {}{note}.\n", if *permits { "permits it" } else { "refuses it" })
    };
    let answered: String = answers.iter().map(said).collect();
    let may = if may.is_empty() { "nobody".to_owned() } else { plain(&may.join(", ")) };
    format!("{answered}Who may still answer: {may}.\n")
}

fn one(Approval { question, left_ms, answers, may }: &Approval) -> String {
    let Question { ticket, text, quorum, .. } = question;
    let people = if *quorum > 1 { people(answers, may) } else { String::new() };
    format!(
        "{people}{}Run exactly this, once: ephor approve {ticket}. Refuse it: ephor refuse {ticket}. With --always the answer stands \
         for 8 h, for this session alone. {} s are left.\n\n",
        text.as_str(),
        left_ms.div_ceil(1000),
    )
}
