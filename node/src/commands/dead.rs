//! `ephor dead`: messages that could not be delivered.

use std::process::ExitCode;

use anyhow::{Context, bail};
use ephor_base::{MessageId, PartKind};
use ephor_chain::{Undelivered, state::Dead as Letter};

use super::{
    run::{self, Replay},
    runtime,
    sessions::{json_lines, short},
};
use crate::{
    cli::{Dead, DeadCommand},
    client::Client,
    home::Home,
    operation::{Done, Operation},
    projections::{Answering, Found, Question},
    terminal::{self, plain},
};

pub(crate) fn dead(home: &Home, args: Dead) -> anyhow::Result<ExitCode> {
    match args.command {
        None => list(home, args.all, args.json),
        Some(DeadCommand::Show { message, json }) => runtime(1)?.block_on(show(home, MessageId(message), json)),
        Some(DeadCommand::Drop { message, note, json }) => {
            runtime(1)?.block_on(bury(home, MessageId(message), note, json))
        }
        Some(DeadCommand::Replay { message, all: _, session: Some(session), json, .. }) => {
            let messages = meant(home, message)?;
            runtime(1)?.block_on(async {
                let mut client = Client::reach(home).await?;
                for message in messages {
                    let done = client.operate(Operation::Replay { message, session }).await?;
                    tell(&done, json, |done| match done {
                        Done::Replayed { message: again } => Some(format!("{message} replayed as message {again}\n")),
                        _ => None,
                    })?;
                }
                Ok(ExitCode::SUCCESS)
            })
        }
        Some(DeadCommand::Replay { message, directory, model, json, .. }) => {
            let mut status = ExitCode::SUCCESS;
            for message in meant(home, message)? {
                let replay = Replay { message, directory: directory.clone(), model: model.clone(), json };
                let ended = runtime(1)?.block_on(run::replay(home, replay))?;
                if ended != ExitCode::SUCCESS {
                    status = ended;
                }
            }
            Ok(status)
        }
    }
}

/// The letter that is named, or all there are.
fn meant(home: &Home, message: Option<u64>) -> anyhow::Result<Vec<MessageId>> {
    if let Some(message) = message {
        return Ok(vec![MessageId(message)]);
    }
    let mut letters: Vec<MessageId> = letters(home, false)?.into_iter().map(|letter| letter.message).collect();
    letters.sort();
    Ok(letters)
}

fn letters(home: &Home, all: bool) -> anyhow::Result<Vec<Letter>> {
    Answering::find(home)?.pages(
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
    let letters = letters(home, all)?;
    let text = if json { json_lines(&letters)? } else { table(&letters) };
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
            PartKind::Typed => plain(&part.text),
            PartKind::Piped => format!("(piped)\n{}", plain(&part.text)),
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
