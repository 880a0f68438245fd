//! `ephor sessions`: the conversations on the record.

use std::process::ExitCode;

use anyhow::Context;
use ephor_chain::state::Session;

use crate::{
    cli::Listing,
    home::Home,
    projections::{Answering, Found, Question},
    terminal,
};

/// How many rows a list has unless all of them are wanted.
pub(super) const FEW: usize = 20;

pub(crate) fn sessions(home: &Home, args: &Listing) -> anyhow::Result<ExitCode> {
    let most = if args.all { usize::MAX } else { FEW };
    let sessions = Answering::find(home)?.pages(
        most,
        |behind, most| Question::Sessions { behind, most },
        |found| match found {
            Found::Sessions { sessions } => Some(sessions),
            _ => None,
        },
        |session: &Session| session.first.seq.0,
    )?;
    let text = if args.json { json_lines(&sessions)? } else { table(&sessions) };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn json_lines<T: serde::Serialize>(rows: &[T]) -> anyhow::Result<String> {
    let lines = rows.iter().map(|row| serde_json::to_string(row).map(|line| line + "\n"));
    Ok(lines.collect::<Result<_, _>>()?)
}

fn table(sessions: &[Session]) -> String {
    let mut text = format!(
        "{:<32}  {:<19}  {:<19}  {:>8}  {:>10}  {:>7}  {:>9}  {:>9}\n",
        "SESSION", "STARTED (UTC)", "LAST ACTIVE", "MESSAGES", "TOOL CALLS", "REFUSED", "TOKENS", "COST"
    );
    for session in sessions {
        let [started, active] = [session.first, session.last].map(|moment| short(moment.time));
        let cost = format!("${:.4}", dollars(session.used.micro_usd));
        text.push_str(&format!(
            "{}  {started}  {active}  {:>8}  {:>10}  {:>7}  {:>9}  {cost:>9}\n",
            session.id, session.messages, session.tool_calls, session.verdicts.deny, session.used.tokens
        ));
    }
    text
}

/// A time to the second, without the marks a machine needs.
pub(super) fn short(time: ephor_base::Timestamp) -> String {
    time.to_string().chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people, with four digits")]
fn dollars(micro: u64) -> f64 {
    micro as f64 / 1e6
}
