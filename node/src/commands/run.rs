//! `ephor run`: one message, one turn, one answer.

pub(crate) mod message;
mod screen;
mod undo;

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context, bail};
use ephor_base::{ActionKind, Decision, Digest, EndReason, MessageId, ModelRef, Reply, SessionId, ToolName};
use ephor_governance::gate::PLAN_IS_LOOKED_AT;
use ephor_kernel::{Question, Seen, Statement};
use ephor_models::{ModelChoice, parse_model, script_model};
use ephor_record::RulingOn;
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::screen::{NOBODY, SUSPENDED, Screen};
use super::plan;
use crate::{
    bytes,
    cli::Run,
    client::Client,
    failure::Refused,
    files,
    home::Home,
    host,
    operation::Operation,
    protocol::{Answer, Request},
    terminal,
    undo::PutBack,
};

pub(crate) use self::undo::undo;

/// The exit status behind SIGTERM, as shells have it.
const TERMINATED: u8 = 143;

/// The exit status after an answer that was cut off.
const CUT_OFF: u8 = 3;

/// The exit status after an answer that the model, or its provider, refused.
const MODEL_REFUSED: u8 = 4;

/// The exit status after a turn in which a call was refused because nobody was there to be asked.
const NOBODY_ASKED: u8 = 5;

pub(crate) async fn run(home: &Home, args: Run) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(args.json);
    let turn = Turn::prepare(home, &args, &mut screen).await;
    shown(turn, screen).await
}

/// A dead letter that is to be answered in a session of its own.
pub(crate) struct Replay {
    pub(crate) message: MessageId,
    pub(crate) directory: Option<PathBuf>,
    pub(crate) model: Option<String>,
    pub(crate) agent: Option<String>,
    pub(crate) json: bool,
}

/// Replays a dead letter: one turn, one answer.
pub(crate) async fn replay(home: &Home, replay: Replay) -> anyhow::Result<ExitCode> {
    let mut screen = Screen::new(replay.json);
    let turn = Turn::replay(home, &replay, &mut screen).await;
    shown(turn, screen).await
}

/// Shows a turn to its end, or why there is none.
async fn shown(turn: anyhow::Result<Turn<'_>>, mut screen: Screen) -> anyhow::Result<ExitCode> {
    let ended = match turn {
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
struct Turn<'a> {
    home: &'a Home,
    client: Client,
    session: SessionId,
    stops: Stops,
    /// The question that waits for the person at the terminal.
    question: Option<Question>,
    /// What was said to the node and not answered yet, oldest first.
    said: VecDeque<Said>,
    cancelled: bool,
    /// Whether a call was refused because the conduct of the agent has suspended it.
    suspended: bool,
    /// Whether a call was refused because nobody was there to be asked.
    unasked: bool,
    end: Option<EndReason>,
    /// How many turns end before this is over.
    ends: usize,
    /// Of one who came back into a turn: how the one before ended. The reply may have been said before he came.
    before: Option<Before>,
    kind: Kind,
}

/// What a turn is for.
enum Kind {
    /// An answer.
    Answers,
    /// To put back what was written: whether all of it is, so far; whether each write is permitted unasked; and the files that are not
    /// done yet, in order.
    Undoes { all: bool, allow: bool, files: VecDeque<PutBack> },
}

impl Kind {
    /// The files that this says were not put back, each with why.
    fn stays(&mut self, seen: &Seen) -> Vec<(String, String)> {
        let Self::Undoes { all, files, .. } = self else { return Vec::new() };
        let why = match seen {
            Seen::Ended { action: ActionKind::Tool, end, text, .. } if end != "done" => text.clone(),
            Seen::Ended { action: ActionKind::Tool, .. } => {
                drop(files.pop_front());
                return Vec::new();
            }
            Seen::Refused { why, .. } => why.clone(),
            _ => return Vec::new(),
        };
        *all = false;
        let Some(file) = files.pop_front() else { return Vec::new() };
        let because = format!("it may be all that there is of `{}`, which was not put back", file.path);
        let mut stay = vec![(file.path, why)];
        if !file.then {
            let waits = |other: &PutBack| other.then && other.chain == file.chain;
            stay.extend(files.iter().filter(|other| waits(other)).map(|other| (other.path.clone(), because.clone())));
            files.retain(|other| !waits(other));
        }
        stay
    }
}

/// The signals that end a run, from here on as something to be told. Before there is a turn, they end this process.
struct Stops {
    interrupt: Signal,
    terminate: Signal,
}

/// What a signal asks for.
enum Stop {
    /// Ctrl-C: the turn is cancelled.
    Cancel,
    /// SIGTERM: this process ends, and the turn goes on.
    Leave,
}

impl Stops {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("signals cannot be handled");
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// The next of them. Safe to drop while it waits.
    async fn next(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Cancel,
            _ = self.terminate.recv() => Stop::Leave,
        }
    }
}

/// What was said in a session before its operator came back to it.
struct Before(Option<Box<Reply>>);

/// What an answer of the node may be to.
enum Said {
    Message,
    Ruling,
    Cancel,
}

impl<'a> Turn<'a> {
    async fn prepare(home: &'a Home, args: &Run, screen: &mut Screen) -> anyhow::Result<Self> {
        if args.show_plan && !args.wait && !terminal::has_terminal() {
            bail!(
                "--show-plan asks at the terminal, and there is none; use `--wait` and answer with `ephor approve`, or give your own plan \
                 with `--plan FILE`"
            );
        }
        if let Some(session) = args.session {
            return Self::come_back(home, args, session, screen).await;
        }
        let parts = message::read(&args.message, args.into())?;
        message::unread(&args.message, screen);
        let model = args.model.as_deref().map(model).transpose()?;
        let workspace = workspace(args.directory.as_deref(), home)?;
        let mut client = Client::reach(home).await?;
        if let Answer::Space { space: Some(space), .. } = client.ask(&Request::Space {}).await?
            && space.is_short()
        {
            screen.note(&format!("the chain and the vault have used {}", bytes::of_quota(space)));
        }
        let answers = args.wait || terminal::has_terminal();
        let agent = args.agent.clone();
        let pins = args.scope.iter().flatten().map(|pin| pin.tool.clone()).collect();
        let (workspace, letter, allow) = (Some(workspace), None, args.allow.clone());
        let opened = client.ask(&Request::Open { workspace, model, agent, letter, allow, pins, answers }).await?;
        screen.opened(&opened);
        let Answer::Opened { session, policy, model, .. } = opened else { bail!("the node answered something else") };
        screen.mention_found_key(&model);
        if !args.allow.is_empty() {
            permit(&mut client, session, &args.allow, policy).await?;
        }
        let stops = Stops::listen()?;
        message::pasted(&parts).iter().for_each(|note| screen.note(note));
        client.say(&Request::Send { session, parts, scope: args.scope.clone(), looks: args.show_plan }).await?;
        let said = VecDeque::from([Said::Message]);
        Ok(Self { said, ..Self::new(home, client, session, stops) })
    }

    /// Comes back to a session: to go on with what is said, or for the answer that came, or comes, meanwhile.
    async fn come_back(home: &'a Home, args: &Run, session: SessionId, screen: &mut Screen) -> anyhow::Result<Self> {
        let parts = message::read_any(&args.message, args.into(), message::Unnamed::Leave)?;
        if parts.is_none() && (args.scope.is_some() || args.plan.is_some() || args.vouch || args.show_plan) {
            bail!("--scope, --plan, --show-plan and --vouch say more of a message, and there is none; add one");
        }
        let mut client = Client::reach(home).await?;
        let answers = args.wait || terminal::has_terminal();
        let attached = client.ask(&Request::Attach { session, answers }).await?;
        screen.attached(&attached);
        let Answer::Attached { works, last, policy, .. } = attached else { bail!("the node answered something else") };
        if !args.allow.is_empty() {
            permit(&mut client, session, &args.allow, policy).await?;
        }
        let mut turn = Self::new(home, client, session, Stops::listen()?);
        match (parts, works, last) {
            (Some(parts), _, _) => {
                // What was under way is answered first, and told of as it comes.
                turn.ends = 1 + usize::from(works);
                message::pasted(&parts).iter().for_each(|note| screen.note(note));
                turn.client
                    .say(&Request::Send { session, parts, scope: args.scope.clone(), looks: args.show_plan })
                    .await?;
                turn.said.push_back(Said::Message);
            }
            (None, true, last) => turn.before = Some(Before(last)),
            (None, false, Some(last)) => {
                screen.seen(&Seen::Reply(last.clone()));
                turn.end = Some(last.end);
                turn.ends = 0;
            }
            (None, false, None) => bail!("nothing was said in session {session} yet; add a message"),
        }
        Ok(turn)
    }

    fn new(home: &'a Home, client: Client, session: SessionId, stops: Stops) -> Self {
        let said = VecDeque::new();
        let (question, cancelled, suspended, unasked, end, ends, before) = (None, false, false, false, None, 1, None);
        let kind = Kind::Answers;
        Self { home, client, session, stops, question, said, cancelled, suspended, unasked, end, ends, before, kind }
    }

    async fn replay(home: &'a Home, replay: &Replay, screen: &mut Screen) -> anyhow::Result<Self> {
        let model = replay.model.as_deref().map(model).transpose()?;
        let named = replay.directory.as_deref();
        let workspace = named.map(|folder| workspace(Some(folder), home)).transpose()?;
        let mut client = Client::reach(home).await?;
        // No session is opened for one that is no dead letter, or cannot be read.
        client.operate(Operation::Letter { message: replay.message }).await?;
        let answers = terminal::has_terminal();
        let agent = replay.agent.clone();
        let (letter, allow, pins) = (Some(replay.message), Vec::new(), Vec::new());
        let opened = client.ask(&Request::Open { workspace, model, agent, letter, allow, pins, answers }).await?;
        screen.opened(&opened);
        let Answer::Opened { session, .. } = opened else { bail!("the node answered something else") };
        let stops = Stops::listen()?;
        let operation = Operation::Replay { message: replay.message, session };
        client.say(&Request::Operate { operation }).await?;
        let said = VecDeque::from([Said::Message]);
        Ok(Self { said, ..Self::new(home, client, session, stops) })
    }

    async fn carry_through(mut self, screen: &mut Screen) -> anyhow::Result<ExitCode> {
        if self.ends == 0 {
            return Ok(self.status());
        }
        loop {
            let question = self.question.clone();
            if question.is_some() && matches!(self.kind, Kind::Undoes { allow: true, .. }) {
                self.rule(Some(true)).await?;
                continue;
            }
            tokio::select! {
                answer = self.client.hear() => {
                    if let Some(status) = self.take(answer?, screen)? {
                        return match self.before.take().filter(|_| self.end.is_none()) {
                            Some(before) => self.catch_up(before, screen).await,
                            None => Ok(status),
                        };
                    }
                }
                said = put(question) => self.rule(said).await?,
                stop = self.stops.next() => {
                    if self.cancelled || matches!(stop, Stop::Leave) {
                        let session = self.session;
                        screen.note(&format!("the node goes on with the turn; `ephor run --session {session}` comes back to it"));
                        let status = if self.cancelled { terminal::INTERRUPTED } else { TERMINATED };
                        return Ok(ExitCode::from(status));
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

    /// The turn ended, and nobody heard its reply: it was said before this one came. The record has it.
    async fn catch_up(self, Before(before): Before, screen: &mut Screen) -> anyhow::Result<ExitCode> {
        let Self { home, session, client, .. } = self;
        drop(client);
        let mut client = Client::reach(home).await?;
        let attached = client.ask(&Request::Attach { session, answers: false }).await?;
        let Answer::Attached { last, .. } = attached else { bail!("the node answered something else") };
        match last.filter(|last| before.as_ref() != Some(last)) {
            Some(last) => {
                let end = last.end;
                screen.seen(&Seen::Reply(last));
                Ok(status(Some(end)))
            }
            None => bail!("the turn ended without a reply; `ephor chain log --session {session}` has what it did"),
        }
    }

    /// Takes in what the node says; the status to exit with, once the turn is over.
    fn take(&mut self, answer: Answer, screen: &mut Screen) -> anyhow::Result<Option<ExitCode>> {
        let seen = match answer {
            Answer::Seen { seen } => seen,
            Answer::Refused { why } | Answer::Stopping { why } => return self.refused(why, screen),
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
        for (path, why) in self.kind.stays(&seen) {
            screen.note(&format!("{}: stays as it is: {}", terminal::plain(&path), terminal::plain(why.trim_end())));
        }
        match seen {
            Seen::Deferred(question) => {
                if shows_plan(&question) {
                    screen.plan(plan::last(self.home, self.session));
                }
                self.question = Some(*question);
            }
            Seen::Refused { reasons, .. } => {
                self.question = None;
                self.suspended |= reasons.iter().any(|code| code == SUSPENDED);
                self.unasked |= reasons.iter().any(|code| code == NOBODY);
            }
            Seen::Started { .. } => self.question = None,
            Seen::Reply(reply) => self.end = Some(reply.end),
            Seen::Over { why } => bail!("{why}"),
            // The end of a turn that was over when this one came: the node takes a message before it tells how its turn ends.
            Seen::TurnEnded { .. } if self.ends == 1 && self.said.iter().any(|said| matches!(said, Said::Message)) => {}
            Seen::TurnEnded { .. } => {
                self.ends = self.ends.saturating_sub(1);
                return Ok((self.ends == 0).then(|| self.status()));
            }
            _ => {}
        }
        Ok(None)
    }

    /// A reply does not make up for work that the agent was kept from.
    fn status(&self) -> ExitCode {
        match self.end {
            Some(EndReason::Replied) if self.suspended => ExitCode::FAILURE,
            Some(EndReason::Replied) if matches!(self.kind, Kind::Undoes { all: false, .. }) => ExitCode::FAILURE,
            Some(EndReason::Replied) if self.unasked => ExitCode::from(NOBODY_ASKED),
            end => status(end),
        }
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
            Some(Said::Cancel) => Ok(Some(ExitCode::from(terminal::INTERRUPTED))),
            Some(Said::Message) | None => bail!(Refused(why)),
        }
    }

    /// Signs what the person said. Silence is not signed: the node refuses by itself when the time is over.
    async fn rule(&mut self, said: Option<bool>) -> anyhow::Result<()> {
        let (Some(asked), Some(permit)) = (self.question.take(), said) else { return Ok(()) };
        if !permit && shows_plan(&asked) {
            // Nothing of it is to go on, so that what asked is withdrawn with its turn.
            self.cancelled = true;
            self.said.push_back(Said::Cancel);
            return self.client.say(&Request::Cancel { session: self.session }).await;
        }
        let decision = if permit { Decision::Permit } else { Decision::Deny };
        self.said.push_back(Said::Ruling);
        let ruling = self.client.ruling(Statement::on_ticket(&asked, decision));
        self.client.say(&ruling).await
    }
}

/// Whether a question is asked to show the plan before anything acts.
fn shows_plan(question: &Question) -> bool {
    question.verdict.reasons.iter().any(|reason| reason.code == PLAN_IS_LOOKED_AT)
}

/// Lets these tools run in a session without asking.
async fn permit(client: &mut Client, session: SessionId, tools: &[ToolName], policy: Digest) -> anyhow::Result<()> {
    let (on, arguments) = (RulingOn::Tools(tools.to_vec()), Digest::of(&[]));
    let (decision, call, registration) = (Decision::Permit, None, None);
    let (always, note, shown) = (None, None, None);
    let ruling =
        client.ruling(Statement { session, on, decision, arguments, policy, call, registration, always, note, shown });
    client.ask(&ruling).await.context("--allow").map(drop)
}

/// Asks the person at the terminal; waits for ever if there is nothing to ask.
async fn put(question: Option<Question>) -> Option<bool> {
    match question {
        // An answer comes from elsewhere.
        Some(_) if !terminal::has_terminal() => std::future::pending().await,
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
        Some(EndReason::Cancelled) => ExitCode::from(terminal::INTERRUPTED),
        Some(EndReason::CutOff) => ExitCode::from(CUT_OFF),
        Some(EndReason::ModelRefused) => ExitCode::from(MODEL_REFUSED),
        Some(_) | None => ExitCode::FAILURE,
    }
}

/// The model that was typed. A script is read here, relative to where the client stands.
fn model(text: &str) -> anyhow::Result<ModelRef> {
    match parse_model(text)? {
        ModelChoice::Ready(model) => Ok(model),
        ModelChoice::Script(file) => {
            let lines = files::named(&file, files::MOST_SCRIPT).context("the script")?;
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
    let path = std::path::absolute(path).context("the current folder is gone; name one with -C")?;
    let path = ephor_sandbox::OpenWorkspace::resolve(&path)?;
    let opened = ephor_sandbox::OpenWorkspace::open(&path)?;
    opened.keep_apart_from(home.path()).context("choose a folder apart from Ephor's home, with -C")?;
    Ok(path)
}
