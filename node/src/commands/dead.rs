//! `ephor dead`: messages that could not be delivered.

use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use ephor_base::{MessageId, PartKind};
use ephor_chain::state::Dead as Letter;
use ephor_record::{Unanswered, Undelivered};
use serde_json::json;

use super::{
    run::{self, Replay},
    runtime,
    sessions::{json_lines, short},
};
use crate::{
    cli::{Dead, DeadCommand},
    client::{Client, NodeGone},
    failure,
    home::Home,
    operation::{Done, Operation},
    projections::{Answering, Found, Question},
    terminal,
};

pub(crate) fn dead(home: &Home, args: Dead) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(home, args.all, args.json),
        Some(DeadCommand::Show { message, json }) => runtime(1)?.block_on(show(home, MessageId(message), json)),
        Some(DeadCommand::Drop { message, note, json }) => {
            runtime(1)?.block_on(bury(home, MessageId(message), note, json))
        }
        Some(DeadCommand::Replay { message, all: _, session: Some(session), json, .. }) => {
            let runtime = runtime(1)?;
            let mut client = runtime.block_on(Client::reach(home))?;
            each(meant(home, message)?, |message| {
                let done = runtime.block_on(client.operate(Operation::Replay { message, session }))?;
                tell(&done, json, |done| match done {
                    Done::Replayed { message: again } => Some(format!("{message} replayed as message {again}\n")),
                    _ => None,
                })?;
                Ok(ExitCode::SUCCESS)
            })
        }
        Some(DeadCommand::Replay { message, directory, model, agent, json, .. }) => {
            each(meant(home, message)?, |message| {
                let (directory, model, agent) = (directory.clone(), model.clone(), agent.clone());
                let replay = Replay { message, directory, model, agent, json };
                runtime(1)?.block_on(run::replay(home, replay))
            })
        }
    }
}

/// Replays each; one that cannot be does not keep the others from it.
fn each(
    messages: Vec<MessageId>,
    mut replay: impl FnMut(MessageId) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let (all, mut failed, mut status) = (messages.len(), 0usize, ExitCode::SUCCESS);
    for message in messages {
        match replay(message) {
            Ok(ended) if ended == ExitCode::SUCCESS => {}
            Ok(ended) => status = ended,
            Err(error) if error.is::<NodeGone>() => return Err(error),
            Err(error) => {
                failed = failed.saturating_add(1);
                let error = error.context(format!("message {message} was not replayed"));
                let error = anyhow!("{error:#}; if it is a dead letter still, `ephor dead drop {message}` drops it");
                if all == 1 {
                    return Err(error);
                }
                failure::tell(&error);
            }
        }
    }
    if failed > 0 {
        bail!("{failed} of {all} dead letters were not replayed");
    }
    Ok(status)
}

/// The letter that is named, or all there are.
fn meant(home: &Home, message: Option<u64>) -> anyhow::Result<Vec<MessageId>> {
    if let Some(message) = message {
        return Ok(vec![MessageId(message)]);
    }
    // A node that begins finds out what the one before left unanswered.
    let _node = if home.exists() {
        let runtime = runtime(1)?;
        let client = runtime.block_on(Client::reach(home))?;
        Some((client, runtime))
    } else {
        None
    };
    let mut letters: Vec<MessageId> =
        letters(&mut Answering::find(home)?, false)?.into_iter().map(|letter| letter.message).collect();
    letters.sort();
    Ok(letters)
}

fn letters(answering: &mut Answering, all: bool) -> anyhow::Result<Vec<Letter>> {
    answering.pages(
        usize::MAX,
        |behind, most| Question::Dead { behind, most, all },
        |found| match found {
            Found::Dead { letters } => Some(letters),
            _ => None,
        },
        |letter: &Letter| letter.message.0,
    )
}

fn list(home: &Home, all: bool, json: bool) -> anyhow::Result<ExitCode> {
    let mut answering = Answering::find(home)?;
    let (letters, unanswered) = (letters(&mut answering, all)?, answering.unanswered()?);
    let text = if json {
        let open = |Unanswered { message, accepted, session }| json!({"message": message, "accepted": accepted, "session": session, "unanswered": true});
        json_lines(&letters)? + &json_lines(&unanswered.into_iter().map(open).collect::<Vec<_>>())?
    } else {
        table(&letters) + &open(&unanswered)
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn table(letters: &[Letter]) -> String {
    let mut text = format!("{:>8}  {:<19}  {:<32}  {:<38}  BECAME\n", "MESSAGE", "DIED (UTC)", "SESSION", "WHY");
    for letter in letters {
        let session = letter.session.map_or_else(|| "-".to_owned(), |session| session.to_string());
        let became = match letter.became.map(|became| became.replayed) {
            None => String::new(),
            Some(Some(message)) => format!("message {message}"),
            Some(None) => "dropped".to_owned(),
        };
        let (died, why) = (short(letter.died.time), why(letter.why));
        let line = format!("{:>8}  {died}  {session:<32}  {why:<38}  {became}", letter.message.0);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// What a node left that ended in the middle of it. The next one finds out what becomes of it.
fn open(unanswered: &[Unanswered]) -> String {
    let row = |Unanswered { message, session, .. }: &Unanswered| {
        format!("{:>8}  {:<19}  {session:<32}  not answered; the node is not running\n", message.0, "-")
    };
    let rows: String = unanswered.iter().map(row).collect();
    if rows.is_empty() { rows } else { rows + "`ephor up` starts a node, which sees to what was not answered\n" }
}

const fn why(why: Undelivered) -> &'static str {
    match why {
        Undelivered::Full => "the mailbox was full",
        Undelivered::Nobody => "nobody was there to take it",
        Undelivered::GaveUp => "its agent crashed too often",
        Undelivered::Stopped => "its agent was stopped",
        Undelivered::NodeEnded => "the node ended before it was answered",
    }
}

async fn show(home: &Home, message: MessageId, json: bool) -> anyhow::Result<ExitCode> {
    let done = Client::reach(home).await?.operate(Operation::Letter { message }).await?;
    tell(&done, json, |done| {
        let Done::Letter { parts, .. } = done else { return None };
        let part = |part: &ephor_base::Part| match part.kind {
            PartKind::Typed | PartKind::Vouched => part.text.clone(),
            PartKind::Piped => format!("(piped)\n{}", part.text),
            PartKind::Plan => format!("(plan)\n{}", part.text),
            PartKind::Errand => format!("(errand)\n{}", part.text),
            PartKind::Pasted => format!("(pasted)\n{}", part.text),
        };
        Some(parts.iter().map(part).collect::<Vec<_>>().join("\n") + "\n")
    })?;
    Ok(ExitCode::SUCCESS)
}

async fn bury(home: &Home, message: MessageId, note: String, json: bool) -> anyhow::Result<ExitCode> {
    let done = Client::reach(home).await?.operate(Operation::Bury { message, note }).await?;
    tell(&done, json, |done| match done {
        Done::Recorded { seq } => Some(format!("dropped, entry {seq}\n")),
        _ => None,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn tell(done: &Done, json: bool, words: impl Fn(&Done) -> Option<String>) -> anyhow::Result<()> {
    let text = if json { Some(serde_json::to_string(done)? + "\n") } else { words(done) };
    let Some(text) = text else { bail!("the node answered something else") };
    terminal::write(&text).context(terminal::UNWRITTEN)
}
