//! `ephor precedents` and `reinstate`: answers that are used again, and seats that their conduct suspended.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_base::Seq;
use ephor_kernel::Suspended;
use ephor_record::Judgment;
use serde_json::json;

use super::sessions::{json_lines, short};
use crate::{
    cli::{Precedent, Precedents, Reinstated},
    client::Client,
    home::Home,
    operation::{Done, Operation, PAGE, PrecedentView},
    terminal::{self, bounded, plain},
};

pub(crate) async fn precedents(home: &Home, args: Precedents) -> anyhow::Result<ExitCode> {
    let mut client = Client::reach(home).await?;
    let (origin, precedents) = standing(&mut client).await?;
    let text = match args.act {
        None if args.json => json_lines(&precedents)?,
        None => told(&precedents),
        Some(Precedent::Revoke { ruling, note, json }) => {
            let ruling = Seq(ruling);
            if !precedents.iter().any(|one| one.precedent == ruling) {
                bail!("No standing approval {ruling}. `ephor precedents` lists those that stand.");
            }
            let seq = client.judge(&origin, Judgment::Revoke { ruling }, note).await?;
            if json {
                json!({"precedent": ruling, "seq": seq}).to_string() + "\n"
            } else {
                format!("Standing approval {ruling} is revoked (entry {seq}).\n")
            }
        }
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// The name of the log, and all answers that are used again.
async fn standing(client: &mut Client) -> anyhow::Result<(String, Vec<PrecedentView>)> {
    let mut all: Vec<PrecedentView> = Vec::new();
    loop {
        let behind = all.last().map(|one| one.precedent);
        let Done::Precedents { origin, precedents } = client.operate(Operation::Precedents { behind }).await? else {
            bail!("the node answered something else");
        };
        let is_last = precedents.len() < PAGE;
        all.extend(precedents);
        if is_last {
            return Ok((origin, all));
        }
    }
}

pub(crate) async fn reinstate(home: &Home, args: Reinstated) -> anyhow::Result<ExitCode> {
    let Reinstated { target, note, json } = args;
    let mut client = Client::reach(home).await?;
    let (origin, suspended) = suspended(&mut client, target.parse().ok()).await?;
    let is_meant = |one: &&Suspended| {
        let seat = one.seat.as_str();
        let group = seat.strip_suffix("/loop").unwrap_or(seat);
        let begins = target.len() >= 4 && one.session.to_string().starts_with(&target);
        begins || seat == target || group == target || group.ends_with(&format!("/{target}"))
    };
    let found: Vec<&Suspended> = suspended.iter().filter(is_meant).collect();
    let [Suspended { session, seat, since, .. }] = found.as_slice() else {
        bail!(
            "no seat `{}` is suspended for its conduct, or more than one; `ephor approvals` shows those of open sessions, and a session that \
             is not open is named whole",
            plain(&target)
        );
    };
    let seq = client.judge(&origin, Judgment::Lift { session: *session, since: *since }, note).await?;
    let text = if json {
        json!({"session": session, "seat": seat, "since": since, "seq": seq}).to_string() + "\n"
    } else {
        format!("{seat} may act again, and its conduct counts anew (entry {seq})\n")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// The seats that their conduct suspended, and the name of the log.
pub(super) async fn suspended(
    client: &mut Client,
    session: Option<ephor_base::SessionId>,
) -> anyhow::Result<(String, Vec<Suspended>)> {
    match client.operate(Operation::Suspended { session }).await? {
        Done::Suspended { origin, suspended } => Ok((origin, suspended)),
        _ => bail!("the node answered something else"),
    }
}

/// A line for each seat that its conduct suspended.
pub(super) fn suspensions(suspended: &[Suspended]) -> String {
    let line = |Suspended { session, seat, since, calls, bad }: &Suspended| {
        format!(
            "{seat} is suspended for its conduct since entry {since}: of {calls} tool calls {bad} were refused; \
             ephor reinstate {session}\n"
        )
    };
    suspended.iter().map(line).collect()
}

fn told(precedents: &[PrecedentView]) -> String {
    if precedents.is_empty() {
        return "No standing approvals.\n".to_owned();
    }
    precedents.iter().map(one).collect()
}

fn one(view: &PrecedentView) -> String {
    let PrecedentView {
        precedent, permits, tool, arguments, free, seat, reasons, until, by, operator, note, idle, ..
    } = view;
    let answer = if *permits { "permits" } else { "refuses" };
    let arguments =
        arguments.as_ref().map_or_else(|| "cannot be read any more".to_owned(), |same| bounded(&same.to_json()));
    let free = if free.is_empty() { String::new() } else { format!(", whatever {} is", plain(&free.join(", "))) };
    let by = by.clone().unwrap_or_else(|| operator.to_string());
    let note = note.as_ref().map(|note| format!("\n  note       {}", plain(note))).unwrap_or_default();
    let idle = idle.as_ref().map(|why| format!("\n  idle       {}", plain(why))).unwrap_or_default();
    format!(
        "precedent {precedent} {answer} {tool}, until {}\n  for        {seat} and below\n  arguments  {arguments}{free}\n  asked for  {}\n  \
         given by   {}{note}{idle}\n  ephor precedents revoke {precedent} ends it\n",
        short(*until),
        plain(&reasons.join(", ")),
        plain(&by),
    )
}
