//! What the runtime tells, put on the record.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, atomic::Ordering},
};

use ephor_base::{Action, EndReason, Envelope, ExitReason, ReplyAction, Seat, SessionId};
use ephor_record::{Content, Fact, Record, Restart, Subject, Undelivered};
use ephor_runtime::{Host, Later, News, Process, SeatKey, Told, What, supervisor::Cause, timers::Timers};
use tokio::runtime::Handle;

use crate::{
    door::{Caller, Door},
    kernel::{AGENT, CLIENT, SERVICES},
    letters::Lost,
    seen::Seen,
};

/// From so many restarts in one go on they stand in one record. Fewer stand each by itself, as any exit and any start does.
const STORM: usize = 8;
/// How much of an entry's 65,535 bytes a list may fill, and what a restart takes beside its name at most.
const LIST_BYTES: usize = 48 << 10;
const OWN_BYTES: usize = 40;

/// The host of a node's processes: its clock is the door's, and its record the chain.
pub(crate) struct Chronicle {
    pub(crate) door: Arc<Door>,
    /// The runtime of the node: the watchdog tells of what it ended from a thread of its own.
    pub(crate) handle: Handle,
}

/// One thing to be put down.
enum Line {
    Record(Box<Record>),
    Seen(SessionId, Seen),
}

impl Host for Chronicle {
    type Message = Envelope;

    fn timers(&self) -> &Timers {
        self.door.timers()
    }

    fn tell(&self, news: &mut Vec<News<Self>>) -> Told {
        let (lines, over) = (lines(news), over(news));
        news.clear();
        let door = self.door.clone();
        Told::Later(Later::new(async move {
            let put = put(&door, lines).await;
            // Its end stands on the record before whatever follows from it.
            over.into_iter().for_each(|session| door.over(session));
            put
        }))
    }

    /// Those of a session that is being closed are left for the task that closes it, and those of a node that stops for the next
    /// boot.
    fn undelivered(&self, seat: &Seat, session: Option<SessionId>, messages: Vec<Envelope>) {
        if self.door.stopping.load(Ordering::SeqCst) {
            return;
        }
        let mut messages = Some(messages);
        let gave_up = session.and_then(|session| {
            self.door.with_session(session, |session| {
                if let Some(left) = &mut session.left {
                    left.extend(messages.take().unwrap_or_default());
                }
                session.gave_up
            })
        });
        let why = match gave_up {
            Some(true) => Undelivered::GaveUp,
            Some(false) => Undelivered::Stopped,
            None => Undelivered::Nobody,
        };
        let lost: Vec<Lost> = messages.iter().flatten().map(Lost::from).collect();
        if !lost.is_empty() {
            let (door, seat) = (self.door.clone(), seat.clone());
            ephor_runtime::spawn_on(&self.handle, async move { door.bury(Some(&seat), lost, why).await });
        }
    }

    /// The supervisor of a session ends its turn before it goes, so that no client waits in vain.
    fn gives_up(&self, supervisor: &Process<Self>) -> Option<Later<()>> {
        let session = supervisor.session()?;
        let is_in_turn = self.door.with_session(session, |session| {
            session.gave_up = true;
            session.turn.is_some()
        });
        is_in_turn.filter(|is_in_turn| *is_in_turn)?;
        let caller =
            Caller { pid: supervisor.pid(), seat: supervisor.seat().clone(), session, fence: supervisor.fence() };
        let reply = Action::Reply(ReplyAction { answer: None, end: EndReason::Crashed });
        let call = self.door.call(caller, reply);
        Some(Later::new(async move {
            if let Err(refusal) = call.ended().await {
                tracing::error!(%refusal, "a crashed agent could not be reported");
            }
        }))
    }
}

async fn put(door: &Door, lines: Vec<Line>) -> Result<(), String> {
    for line in lines {
        match line {
            Line::Record(record) => {
                door.log().note(*record).await.map_err(|error| error.to_string())?;
            }
            Line::Seen(session, seen) => {
                let _is_watched: bool = door.watchers().show(session, seen);
            }
        }
    }
    Ok(())
}

/// The sessions whose group has ended: no supervisor is there any more that would start their agents again.
fn over(news: &[News<Chronicle>]) -> Vec<SessionId> {
    let ended = news.iter().filter(|one| matches!(one.what(), What::Exited(_)) && one.seat().name() != AGENT);
    ended.filter_map(News::session).collect()
}

/// What is put down for these news. The restarts of a storm are listed, but for those that belong to a session: the record of
/// a session is to be read by itself.
fn lines(news: &[News<Chronicle>]) -> Vec<Line> {
    let storm = Storm::find(news);
    storm.log();
    let alone = news.iter().filter(|one| !storm.has(one) && !is_of_client(one));
    let mut lines: Vec<Line> = alone.filter_map(line).collect();
    lines.extend(storm.lines());
    lines
}

/// Exits that were answered by a restart in the same go, if there are many.
#[derive(Default)]
struct Storm {
    supervisor: Option<Subject>,
    seats: HashSet<SeatKey>,
    restarts: Vec<Restart>,
}

impl Storm {
    fn find(news: &[News<Chronicle>]) -> Self {
        let (mut exits, mut storm) = (HashMap::new(), Self::default());
        for one in news.iter().filter(|one| one.session().is_none()) {
            match one.what() {
                What::Exited(reason) => drop(exits.insert(one.key(), (one.pid(), reason.code()))),
                What::Born { .. } => {
                    let Some((exited, reason)) = exits.remove(&one.key()) else { continue };
                    let (name, reason) = (one.seat().name().to_owned(), reason.to_owned());
                    let (exited, started) = (Some(exited), Some(one.pid()));
                    storm.restarts.push(Restart { name, reason, exited, started });
                    storm.seats.insert(one.key());
                    let seat = one.supervisor().cloned();
                    storm.supervisor = Some(Subject { seat, pid: one.parent(), ..Subject::default() });
                }
                What::Restarting(_) => {}
            }
        }
        if storm.restarts.len() < STORM { Self::default() } else { storm }
    }

    /// One line for the person who runs the node; what each died of is on the record.
    fn log(&self) {
        if let Some(restart) = self.restarts.first() {
            let (restarts, reason) = (self.restarts.len(), &restart.reason);
            tracing::warn!(restarts, %reason, "many processes were started again");
        }
    }

    fn has(&self, one: &News<Chronicle>) -> bool {
        self.seats.contains(&one.key())
    }

    fn lines(self) -> Vec<Line> {
        let subject = self.supervisor.unwrap_or_default();
        let mut lists: Vec<Vec<Restart>> = Vec::new();
        let mut bytes = usize::MAX;
        for restart in self.restarts {
            let own = restart.name.len() + OWN_BYTES;
            if bytes.saturating_add(own) > LIST_BYTES {
                lists.push(Vec::new());
                bytes = 0;
            }
            bytes += own;
            if let Some(list) = lists.last_mut() {
                list.push(restart);
            }
        }
        let record = |restarts| Record { subject: subject.clone(), fact: Fact::Restarts { restarts }, content: None };
        lists.into_iter().map(|restarts| Line::Record(Box::new(record(restarts)))).collect()
    }
}

/// Whether it is news of what serves a client: that comes and goes with the client that looks, and is on no record.
fn is_of_client(one: &News<Chronicle>) -> bool {
    let is_service = one.supervisor().is_some_and(|supervisor| supervisor.as_str() == SERVICES);
    is_service && one.seat().name().starts_with(CLIENT)
}

/// What is put down for one piece of news by itself.
fn line(one: &News<Chronicle>) -> Option<Line> {
    let session = one.session();
    let subject = |pid| Subject { session, seat: Some(one.seat().clone()), pid, ..Subject::default() };
    let (subject, fact, content) = match one.what() {
        What::Born { incarnation } => {
            let fact = Fact::Spawn { parent: one.parent(), incarnation: *incarnation };
            (subject(Some(one.pid())), fact, None)
        }
        What::Exited(reason) => {
            if reason.is_abnormal() {
                // What a process of a session said may be private.
                let why = session.map_or_else(|| format!("{reason:?}"), |_| reason.code().to_owned());
                tracing::warn!(pid = %one.pid(), seat = %one.seat(), reason = %why, "a process exited");
            }
            let fact = Fact::Exit { reason: reason.code().to_owned() };
            (subject(Some(one.pid())), fact, session.and_then(|_| message(reason)).map(Content::Text))
        }
        // The exit stands on the record, and so will the start.
        What::Restarting(Cause::Exited(reason)) => {
            let seen = Seen::Restarted { reason: ended(reason).to_owned() };
            return session.map(|session| Line::Seen(session, seen));
        }
        What::Restarting(Cause::StartFailed) => {
            let (name, reason) = (one.seat().name().to_owned(), "start_failed".to_owned());
            let restarts = vec![Restart { name, reason, exited: None, started: None }];
            let subject = Subject { seat: one.supervisor().cloned(), pid: one.parent(), ..subject(None) };
            (subject, Fact::Restarts { restarts }, None)
        }
    };
    Some(Line::Record(Box::new(Record { subject, fact, content })))
}

/// How the end of an agent is told to its watcher.
const fn ended(reason: &ExitReason) -> &'static str {
    match reason {
        // Only an operator kills an agent that is then started again.
        ExitReason::Killed => "an operator killed the agent",
        ExitReason::Hung => "the agent hung",
        _ => "the agent crashed",
    }
}

/// What an exit says beyond its code.
fn message(reason: &ExitReason) -> Option<String> {
    match reason {
        ExitReason::Panicked(text) | ExitReason::Error(text) | ExitReason::ShutdownFor(text) => Some(text.clone()),
        ExitReason::Normal | ExitReason::Shutdown | ExitReason::Killed | ExitReason::Hung => None,
    }
}
