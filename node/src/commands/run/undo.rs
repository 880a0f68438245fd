//! `ephor undo`: puts back what a session has written.

use std::process::ExitCode;

use anyhow::bail;
use ephor_base::{EndReason, Seq};

use super::{Kind, Stops, Turn, screen::Screen, shown};
use crate::{
    bytes,
    cli::Undo,
    client::Client,
    failure::NoChain,
    home::Home,
    protocol::{Answer, Request},
    terminal::{self, plain},
    undo::{Left, PutBack},
};

pub(crate) async fn undo(home: &Home, args: Undo) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(args.json);
    let turn = begin(home, &args, &mut screen).await;
    shown(turn, screen).await
}

async fn begin<'a>(home: &'a Home, args: &Undo, screen: &mut Screen) -> anyhow::Result<Turn<'a>> {
    let Undo { session, to, dry_run, allow, json: _ } = *args;
    let to = to.map(Seq);
    // No home is made where there is nothing to put back.
    if !home.exists() {
        bail!(NoChain(home.path().to_owned()));
    }
    let mut client = Client::reach(home).await?;
    let answers = allow || terminal::has_terminal();
    let attached = client.ask(&Request::Attach { session, answers }).await?;
    screen.attached(&attached);
    let Answer::Attached { works, .. } = attached else { bail!("the node answered something else") };
    if works {
        bail!("session {session} is at work; wait until it has answered, or end its turn, and undo then");
    }
    let mut turn = Turn::new(home, client, session, Stops::listen()?);
    turn.client.say(&Request::Undo { session, to, dry_run }).await?;
    // What the turn shows comes behind the answer.
    let undoing = loop {
        match turn.client.hear().await? {
            Answer::Seen { .. } => {}
            Answer::Refused { why } => bail!(why),
            other => break other,
        }
    };
    let Answer::Undoing { files, left, message } = &undoing else { bail!("the node answered something else") };
    screen.undoing(&undoing);
    if files.is_empty() && left.is_empty() {
        screen.note(&format!("session {session} has written nothing that is to be put back"));
    }
    turn.kind = Kind::Undoes { all: left.is_empty(), allow, files: files.iter().cloned().collect() };
    if message.is_none() {
        turn.ends = 0;
        turn.end = Some(EndReason::Replied);
    }
    Ok(turn)
}

/// What is put back and what stays, a line each.
pub(super) fn lines(files: &[PutBack], left: &[Left]) -> Vec<String> {
    let back = |PutBack { path, bytes: held, first, last, .. }: &PutBack| {
        let what = held.map_or_else(|| "removed".to_owned(), |held| format!("put back, {}", bytes::amount(held)));
        let place = if first == last { format!("entry {first}") } else { format!("entries {first} to {last}") };
        format!("{}: {what}; undoes {place}", plain(path))
    };
    let stays = |Left { path, why }: &Left| format!("{}: stays as it is: {why}", plain(path));
    files.iter().map(back).chain(left.iter().map(stays)).collect()
}
