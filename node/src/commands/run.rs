//! `ephor run`: one message, one turn, one answer.

mod message;
mod screen;

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use ephor_base::{Digest, EndReason, MessageId, ModelRef, SessionId};
use ephor_chain::record::RulingOn;
use ephor_kernel::{Question, Seen};
use ephor_models::{ModelChoice, parse_model, script_model};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::screen::Screen;
use crate::{
    bytes,
    cli::Run,
    client::Client,
    home::Home,
    host,
    operation::Operation,
    protocol::{Answer, Request},
    terminal,
};

/// The exit status after Ctrl-C, as shells have it.
const CANCELLED: u8 = 130;

pub(crate) async fn run(home: &Home, args: Run) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(args.json);
    let ended = match Turn::prepare(home, &args, &mut screen).await {
        Ok(turn) => turn.carry_through(&mut screen).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &ended {
        screen.error(error);
    }
    let status = ended?;
    screen.written()?;
    Ok(status)
}

/// A dead letter that is to be answered in a session of its own.
pub(crate) struct Replay {
    pub(crate) message: MessageId,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) json: bool,
}

/// Replays a dead letter: one turn, one answer.
pub(crate) async fn replay(home: &Home, replay: Replay) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(replay.json);
    let ended = match Turn::replay(home, &replay, &mut screen).await {
        Ok(turn) => turn.carry_through(&mut screen).await,
        Err(error) => Err(error),
    };
    if let Err(error) = &ended {
        screen.error(error);
    }
    let status = ended?;
    screen.written()?;
    Ok(status)
}

/// A turn, from the client's side.
struct Turn {
    client: Client,
    session: SessionId,
    interrupt: Signal,
    /// The question that waits for the person at the terminal.
    question: Option<Question>,
    /// What was said to the node and not answered yet, oldest first.
    said: VecDeque<Said>,
    cancelled: bool,
    end: Option<EndReason>,
}

/// What an answer of the node may be to.
enum Said {
    Message,
    Ruling,
    Cancel,
}

impl Turn {
    async fn prepare(home: &Home, args: &Run, screen: &mut Screen) -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("signals cannot be handled")?;
        let parts = message::read(&args.message)?;
        let model = args.model.as_deref().map(model).transpose()?;
        let workspace = workspace(args.directory.as_deref(), home)?;
        screen.mention_found_key(model.as_ref());
        let mut client = Client::reach(home).await?;
        if let Answer::Space { space: Some(space) } = client.ask(&Request::Space {}).await?
            && space.is_short()
        {
            screen.note(&format!("the chain and the vault have used {}", bytes::of_quota(space)));
        }
        let answers = terminal::has_terminal();
        let opened = client.ask(&Request::Open { workspace, model, answers }).await?;
        screen.opened(&opened);
        let Answer::Opened { session, policy, .. } = opened else { bail!("the node answered something else") };
        if !args.allow.is_empty() {
            let on = RulingOn::Tools(args.allow.clone());
            let ruling = client.ruling(session, on, true, Digest::of(&[]), policy);
            client.ask(&ruling).await.context("--allow")?;
        }
        client.say(&Request::Send { session, parts, scope: args.scope.clone() }).await?;
        let said = VecDeque::from([Said::Message]);
        Ok(Self { client, session, interrupt, question: None, said, cancelled: false, end: None })
    }

    async fn replay(home: &Home, replay: &Replay, screen: &mut Screen) -> anyhow::Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("signals cannot be handled")?;
        let model = replay.model.as_deref().map(model).transpose()?;
        let workspace = workspace(replay.directory.as_deref(), home)?;
        let mut client = Client::reach(home).await?;
        // No session is opened for one that is no dead letter, or cannot be read.
        client.operate(Operation::Letter { message: replay.message }).await?;
        let answers = terminal::has_terminal();
        let opened = client.ask(&Request::Open { workspace, model, answers }).await?;
        screen.opened(&opened);
        let Answer::Opened { session, .. } = opened else { bail!("the node answered something else") };
        let operation = Operation::Replay { message: replay.message, session };
        client.say(&Request::Operate { operation }).await?;
        let said = VecDeque::from([Said::Message]);
        Ok(Self { client, session, interrupt, question: None, said, cancelled: false, end: None })
    }

    async fn carry_through(mut self, screen: &mut Screen) -> anyhow::Result<ExitCode> {
        loop {
            let question = self.question.clone();
            tokio::select! {
                answer = self.client.hear() => {
                    if let Some(status) = self.take(answer?, screen)? {
                        return Ok(status);
                    }
                }
                said = put(question) => self.rule(said).await?,
                _ = self.interrupt.recv() => {
                    if self.cancelled {
                        return Ok(ExitCode::from(CANCELLED));
                    }
                    self.cancelled = true;
                    self.question = None;
                    screen.note("cancelling; Ctrl-C again leaves at once");
                    self.said.push_back(Said::Cancel);
                    self.client.say(&Request::Cancel { session: self.session }).await?;
                }
            }
        }
    }

    /// Takes in what the node says; the status to exit with, once the turn is over.
    fn take(&mut self, answer: Answer, screen: &mut Screen) -> anyhow::Result<Option<ExitCode>> {
        let seen = match answer {
            Answer::Seen { seen } => seen,
            Answer::Refused { why } => return self.refused(why, screen),
            Answer::Ruled { missing: missing @ 1.. } => {
                self.said.pop_front();
                let people =
                    if missing == 1 { "one more person has".to_owned() } else { format!("{missing} more people have") };
                screen.note(&format!("{people} to permit it"));
                return Ok(None);
            }
            other => {
                self.said.pop_front();
                screen.other(&other);
                return Ok(None);
            }
        };
        screen.seen(&seen);
        match seen {
            Seen::Deferred(question) => self.question = Some(*question),
            Seen::Refused { .. } | Seen::Started { .. } => self.question = None,
            Seen::Reply(reply) => self.end = Some(reply.end),
            Seen::TurnEnded { .. } => return Ok(Some(status(self.end))),
            _ => {}
        }
        Ok(None)
    }

    /// Something the node would not do. Only a message that was not taken, or a node that stops, ends the run.
    fn refused(&mut self, why: String, screen: &mut Screen) -> anyhow::Result<Option<ExitCode>> {
        match self.said.pop_front() {
            Some(Said::Ruling) => {
                // It came too late, say. The turn goes on without it.
                screen.note(&format!("your answer does not count: {why}"));
                Ok(None)
            }
            // There is no turn yet, or no more. Leaving ends whatever there is.
            Some(Said::Cancel) => Ok(Some(ExitCode::from(CANCELLED))),
            Some(Said::Message) | None => bail!("{why}"),
        }
    }

    /// Signs what the person said. Silence is not signed: the node refuses by itself when the time is over.
    async fn rule(&mut self, said: Option<bool>) -> anyhow::Result<()> {
        let (Some(asked), Some(permit)) = (self.question.take(), said) else { return Ok(()) };
        let on = RulingOn::Ticket(asked.ticket);
        self.said.push_back(Said::Ruling);
        let ruling = self.client.ruling(self.session, on, permit, asked.digest, asked.verdict.policy);
        self.client.say(&ruling).await
    }
}

/// Asks the person at the terminal; waits for ever if there is nothing to ask.
async fn put(question: Option<Question>) -> Option<bool> {
    match question {
        Some(question) => {
            let time = question.expires.since(host::now());
            terminal::ask(question, time).await
        }
        None => std::future::pending().await,
    }
}

fn status(end: Option<EndReason>) -> ExitCode {
    match end {
        Some(EndReason::Replied) => ExitCode::SUCCESS,
        Some(EndReason::Cancelled) => ExitCode::from(CANCELLED),
        Some(_) | None => ExitCode::FAILURE,
    }
}

/// The model that was typed. A script is read here, relative to where the client stands.
fn model(text: &str) -> anyhow::Result<ModelRef> {
    match parse_model(text)? {
        ModelChoice::Ready(model) => Ok(model),
        ModelChoice::Script(file) => {
            let lines = std::fs::read_to_string(&file).with_context(|| format!("the script `{}`", file.display()))?;
            Ok(script_model(&file, &lines)?)
        }
    }
}

/// The folder to work in. It is checked here for a quick answer, and by the node because that is what counts.
pub(super) fn workspace(directory: Option<&Path>, home: &Home) -> anyhow::Result<PathBuf> {
    let path = match directory {
        Some(path) => path.to_owned(),
        None => std::env::current_dir().context("the current folder is gone; name one with -C")?,
    };
    let path = ephor_sandbox::OpenWorkspace::resolve(&path)?;
    let opened = ephor_sandbox::OpenWorkspace::open(&path)?;
    opened.keep_apart_from(home.path()).context("choose a folder apart from Ephor's home, with -C")?;
    Ok(path)
}
