//! `ephor tickets`: what a person was asked, and what they said.

use std::process::ExitCode;

use anyhow::Context;
use ephor_base::{Clock, Decision, Timestamp};
use ephor_chain::state::Ticket;

use super::sessions::{FEW, json_lines, short};
use crate::{
    cli::Listing,
    home::Home,
    host::SystemClock,
    projections::{Answering, Found, Question},
    terminal::{self, plain},
};

pub(crate) fn tickets(home: &Home, args: &Listing) -> anyhow::Result<ExitCode> {
    let most = if args.all { usize::MAX } else { FEW };
    let tickets = Answering::find(home)?.pages(
        most,
        |behind, most| Question::Tickets { behind, most },
        |found| match found {
            Found::Tickets { tickets } => Some(tickets),
            _ => None,
        },
        |ticket: &Ticket| ticket.id.0,
    )?;
    let text = if args.json { json_lines(&tickets)? } else { table(&tickets, SystemClock::start().now()) };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn table(tickets: &[Ticket], now: Timestamp) -> String {
    let mut text = format!("{:>6}  {:<19}  {:<32}  {:<16}  ANSWER\n", "TICKET", "ASKED (UTC)", "SESSION", "ON");
    for ticket in tickets {
        let session = ticket.session.map_or_else(|| "-".to_owned(), |session| session.to_string());
        let (asked, on) = (short(ticket.asked.time), plain(&ticket.target));
        text.push_str(&format!("{:>6}  {asked}  {session:<32}  {on:<16}  {}\n", ticket.id.0, answer(ticket, now)));
    }
    text
}

fn answer(ticket: &Ticket, now: Timestamp) -> String {
    match &ticket.answer {
        Some(answer) => {
            let decision = if answer.decision == Decision::Permit { "permitted" } else { "refused" };
            let by = answer.by.map_or_else(String::new, |by| format!(" by {by}"));
            format!("{decision}: {}{by}", plain(&answer.how))
        }
        None if ticket.expires < now => "none before it expired".to_owned(),
        None => format!("open until {}", short(ticket.expires)),
    }
}
