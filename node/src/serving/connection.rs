//! One client's connection.

use std::{
    io,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ephor_base::{Decision, Digest, ModelRef, OperatorId, Part, Random, SessionId, Timestamp};
use ephor_chain::{Retention, VerifierKeys, Wish, record::Pin};
use ephor_kernel::{Body, Life, Process, Seen, SignedRuling, Statement};
use futures_util::{SinkExt, StreamExt};
use tokio::{net::UnixStream, sync::mpsc};
use tokio_util::codec::{Framed, LinesCodec, LinesCodecError};

use super::{Client, authority, boot::Node, rests};
use crate::{
    host::SystemRandom,
    operator::challenged,
    projections::Question,
    protocol::{Answer, MAX_LINE, PROTOCOL, Request, from_hex},
};

/// How long a client may take to answer the challenge.
const INTRODUCTION: Duration = Duration::from_secs(5);

/// The body of a connection's process. It runs once: a connection is not picked up again.
pub(crate) struct Connection {
    node: Arc<Node>,
    arrived: Mutex<Option<(UnixStream, Client)>>,
}

impl Connection {
    pub(crate) fn new(node: Arc<Node>, stream: UnixStream, client: Client) -> Self {
        Self { node, arrived: Mutex::new(Some((stream, client))) }
    }
}

impl Body for Connection {
    fn run(&self, process: Process) -> Life {
        let node = self.node.clone();
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner).take();
        Life::new(async move {
            let Some((stream, _client)) = arrived else { return Ok(()) };
            let lines = Framed::new(stream, LinesCodec::new_with_max_length(MAX_LINE));
            let mut talk = Talk { node, lines, session: None };
            let served = talk.serve(&process).await;
            talk.leave().await;
            served
        })
    }
}

/// A conversation with a client.
struct Talk {
    node: Arc<Node>,
    lines: Framed<UnixStream, LinesCodec>,
    session: Option<Session>,
}

struct Session {
    id: SessionId,
    seen: mpsc::Receiver<Seen>,
}

/// What happens next on a connection.
enum Next {
    Stop,
    Left,
    Said(Request),
    Garbled(String),
    Seen(Seen),
}

impl Talk {
    async fn serve(&mut self, process: &Process) -> Result<(), String> {
        // Whoever stays silent is sent away, so that it cannot keep a node alive.
        let known = tokio::time::timeout(INTRODUCTION, self.authenticate(process)).await;
        let Ok(Some(operator)) = known else { return Ok(()) };
        loop {
            let answer = match self.next(process).await {
                Next::Stop => {
                    self.say(&Answer::Refused { why: self.node.stopping() }).await;
                    return Ok(());
                }
                Next::Left => return Ok(()),
                Next::Garbled(why) => Answer::Refused { why },
                Next::Seen(seen) => Answer::Seen { seen },
                Next::Said(request) => self.answer(operator, request).await,
            };
            if !self.say(&answer).await {
                return Ok(());
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
            seen = seen => seen.map_or(Next::Left, Next::Seen),
            line = self.lines.next() => match line {
                None => Next::Left,
                // After either the codec hears no more, but the client hears why.
                Some(Err(LinesCodecError::Io(error))) if error.kind() != io::ErrorKind::InvalidData => Next::Left,
                Some(Err(error)) => Next::Garbled(error.to_string()),
                Some(Ok(line)) => match serde_json::from_str(&line) {
                    Ok(request) => Next::Said(request),
                    Err(error) => Next::Garbled(format!("not a request: {error}")),
                },
            },
        }
    }

    /// Nothing is taken from a client that cannot sign the challenge with an operator's key.
    async fn authenticate(&mut self, process: &Process) -> Option<OperatorId> {
        let mut challenge = [0; 32];
        SystemRandom.fill(&mut challenge);
        if !self.say(&Answer::Challenge { protocol: PROTOCOL, challenge: Digest(challenge) }).await {
            return None;
        }
        let Next::Said(Request::Authenticate { operator, signature }) = self.next(process).await else {
            self.say(&Answer::Refused { why: "answer the challenge first".to_owned() }).await;
            return None;
        };
        let signature = from_hex(&signature).unwrap_or_default();
        if !self.node.kernel.is_signed_by(operator, &challenged(&challenge), &signature) {
            self.say(&Answer::Refused { why: "not an operator of this node".to_owned() }).await;
            return None;
        }
        let version = env!("CARGO_PKG_VERSION").to_owned();
        self.say(&Answer::Welcome { version }).await.then_some(operator)
    }

    async fn answer(&mut self, operator: OperatorId, request: Request) -> Answer {
        // Roles change while a connection lasts, so each request is weighed by itself.
        if let Err(why) = authority::check(&request, self.node.kernel.role(operator)) {
            return Answer::Refused { why };
        }
        let done = match request {
            Request::Authenticate { .. } => Err("the challenge was answered already".to_owned()),
            Request::Open { workspace, model, agent, answers } => {
                self.open(operator, &workspace, model, agent.as_deref(), answers).await
            }
            Request::Attach { session, answers } => return self.attach(operator, session, answers).await,
            Request::Rule { session, on, permit, arguments, policy, call, registration, always, note, signature } => {
                let decision = if permit { Decision::Permit } else { Decision::Deny };
                let always = always.map(|always| *always);
                let statement =
                    Statement { session, on, decision, arguments, policy, call, registration, always, note };
                let signature = from_hex(&signature).unwrap_or_default();
                self.rule(SignedRuling { statement, operator, signature }).await
            }
            Request::Send { session, parts, scope } => self.send(session, parts, scope).await,
            Request::Cancel { session } => match self.own(session) {
                Ok(session) if self.node.kernel.cancel_turn(session) => return self.answer_later(),
                Ok(_) => Err("no turn is under way".to_owned()),
                Err(why) => Err(why),
            },
            Request::Ask { question } => self.ask(question).await,
            Request::Publish {} => self.node.publish().await.map(|size| Answer::Published { size }),
            Request::Derived { session } => {
                let derived = self.node.upkeep().derived(session).await;
                derived.map(|sessions| Answer::Derived { sessions }).map_err(|error| format!("{error:#}"))
            }
            Request::Erase { session, reason } => self.erase(operator, session, reason).await,
            Request::Prune { keep_days, before, dry_run } => self.prune(operator, keep_days, before, dry_run).await,
            Request::Rotate {} => {
                let rotated = self.node.upkeep().rotate(operator).await;
                let answer = |(seq, keys): (_, VerifierKeys)| Answer::Rotated { seq, keys: keys.to_string() };
                rotated.map(answer).map_err(|error| format!("{error:#}"))
            }
            Request::Operate { operation } => {
                let done = Box::pin(self.node.operate(operator, operation)).await;
                done.map(|done| Answer::Operated { done }).map_err(|error| format!("{error:#}"))
            }
            Request::Space {} => Ok(Answer::Space { space: self.node.space() }),
            Request::Processes {} => Ok(Answer::Processes { processes: self.node.kernel.processes() }),
        };
        done.unwrap_or_else(|why| Answer::Refused { why })
    }

    async fn send(&self, session: SessionId, parts: Vec<Part>, scope: Option<Vec<Pin>>) -> Result<Answer, String> {
        let (session, kernel) = (self.own(session)?, &self.node.kernel);
        let accepted = match scope {
            Some(pins) => {
                self.node.knows_pins(Some(&pins))?;
                kernel.send_pinned(session, parts, pins).await
            }
            None => kernel.send(session, parts).await,
        };
        accepted.map(|message| Answer::Accepted { message }).map_err(|error| error.to_string())
    }

    async fn rule(&self, ruling: SignedRuling) -> Result<Answer, String> {
        self.node.knows(&ruling.statement.on)?;
        self.node.kernel.rule(ruling).await.map(|missing| Answer::Ruled { missing }).map_err(|error| error.to_string())
    }

    /// Asks the projections on a thread that may block, and says how far they are meanwhile.
    async fn ask(&mut self, question: Question) -> Result<Answer, String> {
        let (node, (sender, mut progress)) = (self.node.clone(), mpsc::channel(1));
        let work = tokio::task::spawn_blocking(move || {
            // One that cannot be told at once is out of date by the time it could be.
            node.ask(&question, &mut |progress| {
                let _late = sender.try_send(progress);
            })
        });
        while let Some(progress) = progress.recv().await {
            self.say(&Answer::Progress { progress }).await;
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

    async fn open(
        &mut self,
        operator: OperatorId,
        workspace: &Path,
        model: Option<ModelRef>,
        agent: Option<&str>,
        answers: bool,
    ) -> Result<Answer, String> {
        if self.session.is_some() {
            return Err("this connection has a session already".to_owned());
        }
        let (model, served) = self.node.model(model).map_err(|error| format!("{error:#}"))?;
        let agent = self.node.agent(agent).map_err(|error| format!("{error:#}"))?;
        let opened = self.node.open_session(operator, workspace, model, agent).await;
        let opened = opened.map_err(|error| format!("{error:#}"))?;
        let seen = self.node.kernel.watch(opened, answers);
        self.session = Some(Session { id: opened, seen });
        let of_session = |process: &ephor_kernel::ProcessInfo| process.session == Some(opened);
        let pid = self.node.kernel.processes().into_iter().filter(of_session).map(|process| process.pid).max();
        let policy = self.node.kernel.policy();
        Ok(Answer::Opened { session: opened, pid, model: served.to_string(), host: served.host, policy })
    }

    /// Comes back to a session. What was said in it last is shown, and what it asks.
    async fn attach(&mut self, operator: OperatorId, session: SessionId, answers: bool) -> Answer {
        if self.session.is_some() {
            return Answer::Refused { why: "this connection has a session already".to_owned() };
        }
        if let Err(error) = self.node.attach(operator, session).await {
            return Answer::Refused { why: format!("{error:#}") };
        }
        let seen = self.node.kernel.watch(session, answers);
        self.session = Some(Session { id: session, seen });
        // It is looked at once it is watched: else a turn that ends in between would be waited for, and nobody would tell.
        let attached = match self.node.attach(operator, session).await {
            Ok(attached) => attached,
            Err(error) => return Answer::Refused { why: format!("{error:#}") },
        };
        let kernel = self.node.kernel.clone();
        kernel.ask_again(session).await;
        let of_session = |process: &ephor_kernel::ProcessInfo| process.session == Some(session);
        let pid = kernel.processes().into_iter().filter(of_session).map(|process| process.pid).max();
        let (policy, works, last) = (kernel.policy(), attached.works, attached.last.map(Box::new));
        Answer::Attached { session, pid, policy, works, last }
    }

    /// Says something; false if the client is gone.
    async fn say(&mut self, answer: &Answer) -> bool {
        match serde_json::to_string(answer) {
            Ok(line) => self.lines.send(line).await.is_ok(),
            Err(error) => {
                tracing::error!(%error, "an answer could not be written");
                false
            }
        }
    }
}
