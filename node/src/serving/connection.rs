//! One client's connection.

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use ephor_base::{Decision, MessageId, ModelRef, OperatorId, Part, SessionId, Timestamp, ToolName, outcome::tokens_of};
use ephor_chain::Wish;
use ephor_kernel::{Body, Life, Process, Seen, SignedRuling, Statement, Subscription, Whence};
use ephor_record::{Pin, Retention, RulingOn};
use ephor_tlog::VerifierKeys;
use futures_util::FutureExt;
use tokio::sync::mpsc;

use super::{
    Client,
    authority::{Anothers, Forbidden},
    boot::Node,
    rests,
};
use crate::{
    channel::{Admitted, Heard},
    projections::Question,
    protocol::{Answer, Request, from_hex},
};

/// The body of a connection's process. It runs once: a connection is not picked up again.
pub(crate) struct Connection {
    node: Arc<Node>,
    arrived: Mutex<Option<(Admitted, Client)>>,
}

impl Connection {
    pub(crate) fn new(node: Arc<Node>, admitted: Admitted, client: Client) -> Self {
        Self { node, arrived: Mutex::new(Some((admitted, client))) }
    }
}

impl Body for Connection {
    fn run(&self, process: Process) -> Life {
        let node = self.node.clone();
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).take();
        Life::new(async move {
            let Some((channel, _client)) = arrived else { return Ok(()) };
            let mut talk = Talk { node, channel, session: None };
            talk.serve(&process).await;
            talk.leave().await;
            Ok(())
        })
    }
}

/// A conversation with a client.
struct Talk {
    node: Arc<Node>,
    channel: Admitted,
    session: Option<Session>,
}

struct Session {
    id: SessionId,
    seen: Subscription,
}

/// A session that is to be opened.
struct Wanted {
    workspace: Option<PathBuf>,
    model: Option<ModelRef>,
    agent: Option<String>,
    letter: Option<MessageId>,
    /// Those that will be named in it: for one that there is not, nothing is opened.
    tools: Vec<ToolName>,
    /// Whether a person is there who can be asked.
    answers: bool,
}

/// What happens next on a connection.
enum Next {
    Stop,
    Left(Option<String>),
    Said(Request),
    Garbled(String),
    Seen(Seen),
}

impl Talk {
    async fn serve(&mut self, process: &Process) {
        let operator = self.channel.operator();
        // Only from here on something answers: a client that was not welcomed looks for the next node.
        if !self.say(process, &Answer::Welcome { version: env!("CARGO_PKG_VERSION").to_owned() }).await {
            return;
        }
        loop {
            let answer = match self.next(process).await {
                Next::Stop => {
                    self.say_at_once(&Answer::Stopping { why: self.node.stopping() });
                    return;
                }
                Next::Left(None) => return,
                Next::Left(Some(why)) => {
                    self.say(process, &Answer::Refused { why }).await;
                    return;
                }
                Next::Garbled(why) => Answer::Refused { why },
                Next::Seen(seen) => Answer::Seen { seen },
                Next::Said(request) => self.answer(process, operator, request).await,
            };
            if !self.say(process, &answer).await {
                return;
            }
        }
    }

    /// Leaves what the client began: what is unfinished goes on without it.
    async fn leave(&mut self) {
        if let Some(session) = self.session.take() {
            drop(session.seen);
            if self.node.kernel.leave(session.id).await {
                rests::look_after(&self.node.kernel, session.id).await;
            }
        }
    }

    async fn next(&mut self, process: &Process) -> Next {
        let seen = async {
            match &mut self.session {
                Some(session) => session.seen.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = process.stopping() => Next::Stop,
            seen = seen => seen.map_or(Next::Left(None), Next::Seen),
            heard = self.channel.hear(|operator, statement, signature| {
                self.node.kernel.is_signed_by(operator, statement, signature)
            }) => match heard {
                Heard::Request(request) => Next::Said(*request),
                Heard::Garbled(why) => Next::Garbled(why),
                Heard::Over(why) => Next::Left(why),
            },
        }
    }

    async fn answer(&mut self, process: &Process, operator: OperatorId, request: Request) -> Answer {
        // Roles change while a connection lasts, so each request is weighed by itself.
        if let Err(forbidden) = self.node.check(operator, &request).await {
            return self.refuse(operator, forbidden).await;
        }
        let done = match request {
            Request::Authenticate { .. } => Err("who speaks was said already".to_owned()),
            Request::Open { workspace, model, agent, letter, allow, pins, answers } => {
                let tools = allow.into_iter().chain(pins).collect();
                self.open(operator, Wanted { workspace, model, agent, letter, tools, answers }).await
            }
            Request::Attach { session, answers } => return self.attach(operator, session, answers).await,
            Request::Rule {
                session,
                on,
                permit,
                arguments,
                policy,
                call,
                registration,
                always,
                note,
                shown,
                signature,
            } => {
                let decision = if permit { Decision::Permit } else { Decision::Deny };
                let always = always.map(|always| *always);
                let statement =
                    Statement { session, on, decision, arguments, policy, call, registration, always, note, shown };
                let signature = from_hex(&signature).unwrap_or_default();
                self.rule(SignedRuling { statement, operator, signature }).await
            }
            Request::Undo { session, to, dry_run } => match self.own(session) {
                Ok(session) => self.node.undo(session, to, dry_run).await.map_err(|error| format!("{error:#}")),
                Err(why) => Err(why),
            },
            Request::Changes { session, behind } => {
                self.node.changes(session, behind).await.map_err(|error| format!("{error:#}"))
            }
            Request::Send { session, parts, scope, looks } => self.send(session, parts, (scope, looks)).await,
            Request::Cancel { session } => match self.own(session) {
                Ok(session) if self.node.kernel.cancel_turn(session) => return self.answer_later(),
                Ok(_) => Err("no turn is under way".to_owned()),
                Err(why) => Err(why),
            },
            Request::Ask { question } => self.ask(process, question).await,
            Request::Publish {} => self.node.publish().await.map(|size| Answer::Published { size }),
            Request::Derived { session } => {
                let derived = self.node.upkeep().derived(session).await;
                derived.map(|sessions| Answer::Derived { sessions }).map_err(|error| format!("{error:#}"))
            }
            Request::Erase { session, reason } => self.erase(operator, session, reason).await,
            Request::Prune { keep_days, before, dry_run } => self.prune(operator, keep_days, before, dry_run).await,
            Request::Rotate {} => {
                let rotated = self.node.rotate(operator).await;
                let answer = |(seq, keys): (_, VerifierKeys)| Answer::Rotated { seq, keys: keys.to_string() };
                rotated.map(answer).map_err(|error| format!("{error:#}"))
            }
            Request::Operate { operation } => {
                let done = Box::pin(self.node.operate(operator, operation)).await;
                done.map(|done| Answer::Operated { done }).map_err(|error| format!("{error:#}"))
            }
            Request::Space {} => Ok(Answer::Space { space: self.node.space(), trouble: self.node.trouble() }),
            Request::Processes {} => Ok(Answer::Processes { processes: self.node.kernel.processes() }),
        };
        done.unwrap_or_else(|why| Answer::Refused { why })
    }

    /// Refuses what this operator may not do, on the record.
    async fn refuse(&self, operator: OperatorId, Forbidden { act, why }: Forbidden) -> Answer {
        if let Some((act, number)) = act.and_then(|act| Some((act, self.node.refusals.number(operator)?))) {
            let said = if number == 1 { why.clone() } else { format!("{why}; refusal {number} within the hour") };
            if let Err(error) = self.node.kernel.forbid(operator, act, &said).await {
                tracing::warn!(%operator, act, %error, "a refusal could not be recorded");
            }
        }
        Answer::Refused { why }
    }

    async fn send(
        &self,
        session: SessionId,
        parts: Vec<Part>,
        (scope, looks): (Option<Vec<Pin>>, bool),
    ) -> Result<Answer, String> {
        let (session, kernel) = (self.own(session)?, &self.node.kernel);
        self.check_length(session, &parts)?;
        self.node.knows_pins(scope.as_deref())?;
        let accepted = match scope {
            scope if looks => kernel.send_looking(session, parts, scope).await,
            Some(pins) => kernel.send_pinned(session, parts, pins).await,
            None => kernel.send(session, parts).await,
        };
        accepted.map(|message| Answer::Accepted { message }).map_err(|error| error.to_string())
    }

    /// A message that no model could be shown within the budget of its session would only use that up.
    fn check_length(&self, session: SessionId, parts: &[Part]) -> Result<(), String> {
        let length = tokens_of(parts.iter().map(|part| part.text.len()).sum());
        let own = self.node.kernel.processes().into_iter().filter(|process| process.session == Some(session));
        let account = own.filter_map(|process| Some((self.node.kernel.account(&process.seat)?, process.seat))).next();
        let left = account
            .and_then(|(account, seat)| account.limit.tokens.checked_sub(account.used.tokens).map(|left| (left, seat)));
        match left.filter(|(left, _)| (1..=length).contains(left)) {
            Some((left, seat)) => Err(format!(
                "the message is about {length} tokens long, and session {session} has {left} left: send less of it, or give the session \
                 more, with `budget.tokens` in ephor.toml or with `ephor budget {seat} --tokens +N`"
            )),
            None => Ok(()),
        }
    }

    async fn rule(&self, ruling: SignedRuling) -> Result<Answer, String> {
        self.node.knows(&ruling.statement.on)?;
        self.node.kernel.rule(ruling).await.map(|missing| Answer::Ruled { missing }).map_err(|error| error.to_string())
    }

    /// Asks the projections on a thread that may block, and says how far they are meanwhile.
    async fn ask(&mut self, process: &Process, question: Question) -> Result<Answer, String> {
        let (node, (sender, mut progress)) = (self.node.clone(), mpsc::channel(1));
        let work = tokio::task::spawn_blocking(move || {
            // One that cannot be told at once is out of date by the time it could be.
            node.ask(&question, &mut |progress| {
                let _late = sender.try_send(progress);
            })
        });
        while let Some(progress) = progress.recv().await {
            self.say(process, &Answer::Progress { progress }).await;
        }
        match work.await {
            Ok(found) => found.map(|found| Answer::Found { found }).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// A session that is open goes on in memory, so only one that has ended can be forgotten.
    async fn erase(&self, operator: OperatorId, session: SessionId, reason: String) -> Result<Answer, String> {
        if self.node.kernel.processes().iter().any(|process| process.session == Some(session)) {
            return Err(format!("session {session} is open; end it first"));
        }
        let erased = self.node.upkeep().erase(operator, session, reason).await;
        erased.map(|seq| Answer::Erased { seq }).map_err(|error| format!("{error:#}"))
    }

    async fn prune(
        &self,
        operator: OperatorId,
        keep_days: Option<u64>,
        before: Option<Timestamp>,
        dry_run: bool,
    ) -> Result<Answer, String> {
        let keep = keep_days.map(Retention::of_days).transpose().map_err(|error| error.to_string())?;
        let open = self.node.kernel.processes().iter().filter_map(|process| process.session).collect();
        let (wish, upkeep) = (Wish { keep, before, open }, self.node.upkeep());
        let pruned = async {
            let plan = upkeep.plan(wish, |_, _| ()).await?;
            let done = !dry_run && plan.entries() > 0;
            let seq = if done { Some(upkeep.prune(operator, &plan).await?.seq) } else { None };
            Ok::<_, anyhow::Error>(Answer::Pruned { plan, seq })
        };
        pruned.await.map_err(|error| format!("{error:#}"))
    }

    /// A cancelled turn ends with a reply; until then there is nothing to say but that it was heard.
    fn answer_later(&self) -> Answer {
        Answer::Ruled { missing: 0 }
    }

    fn own(&self, session: SessionId) -> Result<SessionId, String> {
        match &self.session {
            Some(own) if own.id == session => Ok(session),
            _ => Err(format!("session {session} belongs to another connection")),
        }
    }

    async fn open(&mut self, operator: OperatorId, wanted: Wanted) -> Result<Answer, String> {
        if self.session.is_some() {
            return Err("this connection has a session already".to_owned());
        }
        let Wanted { workspace, model, agent, tools, answers, .. } = self.like_before(wanted).await?;
        self.node.knows(&RulingOn::Tools(tools))?;
        let workspace = workspace.ok_or("a session works in a folder, and none is named")?;
        let (model, served) = self.node.model(model).map_err(|error| format!("{error:#}"))?;
        let agent = self.node.agent(agent.as_deref()).map_err(|error| format!("{error:#}"))?;
        let opened = self.node.open_session(operator, &workspace, model, agent).await;
        let opened = opened.map_err(|error| format!("{error:#}"))?;
        let seen = self.node.kernel.watch(opened, answers);
        self.session = Some(Session { id: opened, seen });
        let of_session = |process: &ephor_kernel::ProcessInfo| process.session == Some(opened);
        let pid = self.node.kernel.processes().into_iter().filter(of_session).map(|process| process.pid).max();
        let policy = self.node.kernel.policy();
        Ok(Answer::Opened { session: opened, pid, model: served.to_string(), host: served.host, policy })
    }

    /// What is wanted, with what is not named as in the session of the dead letter that it is for.
    async fn like_before(&self, wanted: Wanted) -> Result<Wanted, String> {
        let Some(message) = wanted.letter else { return Ok(wanted) };
        match self.node.kernel.whence(message).await {
            Ok(Whence { workspace, model, agent }) => Ok(Wanted {
                workspace: wanted.workspace.or_else(|| Some(workspace.path().to_owned())),
                model: wanted.model.or(Some(model)),
                agent: wanted.agent.or(Some(agent)),
                ..wanted
            }),
            Err(_) if wanted.workspace.is_some() && wanted.model.is_some() => Ok(wanted),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Comes back to a session. What was said in it last is shown, and what it asks.
    async fn attach(&mut self, operator: OperatorId, session: SessionId, answers: bool) -> Answer {
        if self.session.is_some() {
            return Answer::Refused { why: "this connection has a session already".to_owned() };
        }
        if let Err(error) = self.node.attach(operator, session).await {
            let why = format!("{error:#}");
            return match error.is::<Anothers>() {
                true => self.refuse(operator, Forbidden { act: Some("attach"), why }).await,
                false => Answer::Refused { why },
            };
        }
        let seen = self.node.kernel.watch(session, answers);
        self.session = Some(Session { id: session, seen });
        // It is looked at once it is watched: else a turn that ends in between would be waited for, and nobody would tell.
        let attached = match self.node.attach(operator, session).await {
            Ok(attached) => attached,
            Err(error) => return Answer::Refused { why: format!("{error:#}") },
        };
        let kernel = self.node.kernel.clone();
        kernel.ask_again(session);
        let of_session = |process: &ephor_kernel::ProcessInfo| process.session == Some(session);
        let pid = kernel.processes().into_iter().filter(of_session).map(|process| process.pid).max();
        let (policy, works, last) = (kernel.policy(), attached.works, attached.last.map(Box::new));
        Answer::Attached { session, pid, policy, works, last }
    }

    /// Says something; false if the client is gone, or does not read while the process is to stop: it holds no stop up. It is told nothing
    /// more then, since what it asked may have been done.
    async fn say(&mut self, process: &Process, answer: &Answer) -> bool {
        tokio::select! {
            biased;
            said = self.channel.say(answer) => said.is_ok(),
            () = process.stopping() => false,
        }
    }

    /// Says a last thing, as far as the client takes it without being waited for.
    fn say_at_once(&mut self, answer: &Answer) {
        let _said = self.channel.say(answer).now_or_never();
    }
}
