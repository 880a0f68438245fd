//! Sessions that outlive their watcher, and the node: taken up again from the record, left alone, and put away.
//!
//! At boot every session that owes an answer is followed on the record by the code with which the door follows it while it
//! runs, and its agent is started again in its seat. What cannot be followed is given up: its messages are dead letters.
//! Nothing says on the record that a session was taken up, for nothing changed: it is the same session. Only where the
//! configuration says something else by now of what its agent is, that is recorded before it goes on.

use std::{
    collections::{BTreeMap, BTreeSet},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ephor_base::{Envelope, OperatorId, Reply, Seat, SessionId, TicketId};
use ephor_governance::Ruled;
use ephor_record::{Appointment, Fact, Record, Subject, Unanswered, Undelivered, standing::is_at_or_below};

use crate::{
    door::{Called, Door, LAPSED, NotAccepted, Parked, Retrial, Session, TakenUp, Undecidable},
    kernel::{AGENT, Kernel, NODE_NAME, NotStarted},
    letters::Lost,
    process::Body,
    question::{Question, Recorded},
    seen::Seen,
    whole::{claimed, whole},
};

/// How long a client that comes back waits for what still ends: a turn may take 5 s to, its agent as long again, and a driver a
/// moment.
const ENDING: Duration = Duration::from_secs(15);

/// A session cannot be taken up again.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotTakenUp {
    /// There is no such session that could be: it never was, it was erased, or it is of an earlier version.
    #[error("session {session} cannot be taken up: {why}")]
    NotFollowed {
        /// Which.
        session: SessionId,
        /// Why, in words.
        why: String,
    },
    /// The configuration of the operator does not have its agent any more.
    #[error(
        "session {session} is of the agent `{agent}`, which `ephor.toml` does not have any more; \
         put `[agents.{agent}]` back, or begin another session"
    )]
    NoAgent {
        /// Which session.
        session: SessionId,
        /// The name of the agent.
        agent: String,
    },
    /// It was left just now, and something of it has not ended.
    #[error("session {0} is still ending; try again in a moment")]
    Ending(SessionId),
    /// Its agent does not start.
    #[error(transparent)]
    NotStarted(#[from] NotStarted),
}

/// What is there when a client comes back to a session.
#[derive(Clone, PartialEq, Debug)]
pub struct Attached {
    /// Whether a turn is under way, or a message waits for one.
    pub works: bool,
    /// How the last turn that ended did.
    pub last: Option<Reply>,
    /// Who answers for the session.
    pub operator: OperatorId,
}

impl Kernel {
    /// Takes up what an earlier boot left: every session that owes an answer goes on, with the body that `body` gives it,
    /// and what cannot go on is given up on the record. Call it once, before anybody is let in. Says which go on.
    ///
    /// # Errors
    /// [`NotStarted`] if the record cannot be read or written. What was taken up so far goes on.
    pub async fn take_up(
        &self,
        body: impl Fn(SessionId) -> Option<Arc<dyn Body>> + Send,
    ) -> Result<Vec<SessionId>, NotStarted> {
        let owed = self.door().log().standing(|standing| standing.unanswered().copied().collect::<Vec<_>>());
        let mut sessions: BTreeMap<SessionId, Vec<Unanswered>> = BTreeMap::new();
        owed.into_iter().for_each(|one| sessions.entry(one.session).or_default().push(one));
        let bodies: BTreeMap<SessionId, Arc<dyn Body>> =
            sessions.keys().filter_map(|session| Some((*session, body(*session)?))).collect();
        let mut found = self.follow(bodies.keys().copied().collect()).await?;
        let mut gone_on = Vec::new();
        for (session, owed) in sessions {
            let again = match (found.remove(&session), bodies.get(&session)) {
                (Some(Ok(again)), Some(body)) => self.go_on(again, body.clone()).await,
                (Some(Err(why)), _) => Err(NotTakenUp::NotFollowed { session, why: why.to_string() }),
                _ => Err(NotTakenUp::NotFollowed { session, why: "there is no agent for it".to_owned() }),
            };
            match again {
                Ok(()) => gone_on.push(session),
                Err(why) => self.give_up(session, owed, &why).await,
            }
        }
        self.release_before().await;
        // A client that asks for dead letters first is told of these; a log that fails says so at once to the caller that records next.
        if let Err(error) = self.door().log().flush().await {
            tracing::error!(%error, "what the boot before left is not settled on the disk");
        }
        Ok(gone_on)
    }

    /// Comes back to a session: to one that is open, or one that rests on the record and is opened from there, once all that
    /// was under way for it has ended. It is not closed until it is left. If the caller does not wait for it, it is left.
    ///
    /// # Errors
    /// [`NotTakenUp`]: it is not open.
    pub async fn attach(&self, session: SessionId, body: Arc<dyn Body>) -> Result<Attached, NotTakenUp> {
        let (coming, leaving) = (self.clone(), self.clone());
        let attached = claimed(async move { coming.come_back(session, body).await }, async move |_| {
            let _goes_on: bool = leaving.leave(session).await;
        });
        attached.await.unwrap_or(Err(NotTakenUp::NotStarted(NotStarted::Stopping)))
    }

    async fn come_back(&self, session: SessionId, body: Arc<dyn Body>) -> Result<Attached, NotTakenUp> {
        let is_ready = || self.seat_of_session(session).is_some() || self.door().is_at_rest(session);
        let _turn = loop {
            let ended = self.door().timers().within(ENDING, self.door().ongoing.until(is_ready));
            ended.await.ok_or(NotTakenUp::Ending(session))?;
            let turn = self.taking().lock().await;
            if is_ready() {
                break turn;
            }
        };
        // No pruning takes away what is read here.
        let _used = self.door().log().in_use(session).map_err(|error| NotStarted::Chain(error.to_string()))?;
        if self.seat_of_session(session).is_none() {
            let not_followed = |why: String| NotTakenUp::NotFollowed { session, why };
            let found = self.follow(BTreeSet::from([session])).await?.remove(&session);
            let found = found.ok_or_else(|| not_followed("nobody is there to follow it".to_owned()))?;
            let again = found.map_err(|why| not_followed(why.to_string()))?;
            self.go_on(again, body).await?;
        }
        // The code that closes what has no watcher passes this one over from here on.
        let look = |at: &mut Session| Attached {
            works: at.turn.is_some() || !at.waiting.is_empty(),
            last: at.last.clone(),
            operator: at.spec.operator,
        };
        let gone = || NotTakenUp::NotFollowed { session, why: "it ended just now".to_owned() };
        self.door().with_session(session, look).ok_or_else(gone)
    }

    /// The questions that are open, the oldest first, each with how long it still waits.
    #[must_use]
    pub fn questions(&self) -> Vec<(Question, Duration)> {
        self.questions_behind(None, usize::MAX)
    }

    /// The same from behind the ticket `behind` on, and `most` of them at most.
    #[must_use]
    pub fn questions_behind(&self, behind: Option<TicketId>, most: usize) -> Vec<(Question, Duration)> {
        // What was asked under an older law is withdrawn as soon as its agent looks.
        self.door().tickets.page(behind, most, self.policy(), self.door().instant())
    }

    /// Shows the watcher of a session what it asks just now.
    pub fn ask_again(&self, session: SessionId) {
        for (question, _) in self.questions().into_iter().filter(|(question, _)| question.session == session) {
            let _is_watched: bool = self.door().watchers().show(session, Seen::Deferred(Box::new(question)));
        }
    }

    /// A session has no watcher any more. One that has nothing to do is closed; any other goes on, and operators answer
    /// what it asks. Says whether it goes on.
    pub async fn leave(&self, session: SessionId) -> bool {
        let kernel = self.clone();
        whole(async move { kernel.let_rest(session).await }).await.unwrap_or(false)
    }

    async fn let_rest(&self, session: SessionId) -> bool {
        let _turn = self.taking().lock().await;
        if self.door().watchers().is_watched(session) || self.door().stopping.load(Ordering::SeqCst) {
            return false;
        }
        if self.owes(session) {
            self.door().watchers().leave(session);
            return true;
        }
        self.put_away(session).await;
        false
    }

    /// Waits until a session has answered everything, and closes it if it has no watcher then.
    pub async fn rest(&self, session: SessionId) {
        let mut settled = self.door().settled.subscribe();
        loop {
            settled.mark_unchanged();
            if self.seat_of_session(session).is_none() || self.door().watchers().is_watched(session) {
                return;
            }
            if !self.owes(session) {
                self.leave(session).await;
                return;
            }
            if settled.changed().await.is_err() {
                return;
            }
        }
    }

    /// Resolves when no session has anything to do, but for those that are held.
    pub async fn at_rest(&self) {
        let (mut settled, mut held) = (self.door().settled.subscribe(), self.door().holds.changes());
        loop {
            settled.mark_unchanged();
            let owing: BTreeSet<SessionId> =
                self.door().log().standing(|standing| standing.unanswered().map(|one| one.session).collect());
            let open: Vec<(SessionId, Seat)> = self.open_sessions();
            if !open.iter().any(|(session, seat)| owing.contains(session) && self.held(seat).is_none()) {
                return;
            }
            tokio::select! {
                _ = settled.changed() => {}
                () = held.changed() => {}
            }
        }
    }

    /// Whether a message of a session has no answer.
    fn owes(&self, session: SessionId) -> bool {
        self.door().log().standing(|standing| standing.unanswered().any(|one| one.session == session))
    }

    /// A session as the record has it, if it can be followed.
    pub(crate) async fn resting(&self, session: SessionId) -> Option<Box<Session>> {
        let found = self.follow(BTreeSet::from([session])).await.ok()?.remove(&session)?;
        found.ok().map(|again| again.session)
    }

    /// Sessions as the record has them.
    async fn follow(
        &self,
        sessions: BTreeSet<SessionId>,
    ) -> Result<BTreeMap<SessionId, Result<TakenUp, Undecidable>>, NotStarted> {
        if sessions.is_empty() {
            return Ok(BTreeMap::new());
        }
        let unread = |error: String| NotStarted::Chain(error);
        self.door().log().flush().await.map_err(|error| unread(error.to_string()))?;
        let log = self.door().log().clone();
        let read = tokio::task::spawn_blocking(move || {
            let mut retrial = Retrial::of(sessions.clone());
            for stored in log.entries().only_of(sessions.clone()) {
                let stored = stored.map_err(|error| error.to_string())?;
                // An entry that the reader panics over stops its own session and no start.
                let taken = catch_unwind(AssertUnwindSafe(|| retrial.take(&stored)));
                if taken.is_err() {
                    retrial.cannot_follow(&stored.entry);
                }
            }
            Ok(sessions.into_iter().map(|session| (session, retrial.take_up(session))).collect())
        });
        read.await.map_err(|error| unread(error.to_string()))?.map_err(unread)
    }

    /// Lets a session go on where the record has it. What was begun is finished, also if no caller waits for it.
    async fn go_on(&self, again: TakenUp, body: Arc<dyn Body>) -> Result<(), NotTakenUp> {
        let kernel = self.clone();
        let gone_on = whole(async move { kernel.start_again(again, body).await }).await;
        gone_on.unwrap_or(Err(NotTakenUp::NotStarted(NotStarted::Stopping)))
    }

    async fn start_again(&self, again: TakenUp, body: Arc<dyn Body>) -> Result<(), NotTakenUp> {
        let TakenUp { mut session, budget } = again;
        let (id, seat) = (session.id, session.seat.clone());
        let name = own_name(&seat).ok_or_else(|| NotTakenUp::NotFollowed {
            session: id,
            why: format!("its seat `{seat}` is none of an agent"),
        })?;
        if let Some(held) = self.stopped_at(&seat) {
            return Err(NotStarted::Stopped(held).into());
        }
        self.appoint(&mut session).await?;
        let Appointment { role, namespace, .. } = &session.spec.agent;
        let who = self.door().gate().principal(seat.as_str(), role, namespace);
        session.who = Arc::new(who.map_err(|error| NotStarted::Ungoverned(error.to_string()))?);
        // What it has taken in so far came from the record, and not from its inbox.
        session.taken_in = 0;
        if let Some(turn) = &mut session.turn {
            turn.started = self.door().clock().monotonic();
        }
        let warrant = self.warrant().carve(seat.clone(), &session.spec.rights, budget).map_err(NotStarted::from)?;
        warrant.begin(&session.used).map_err(NotStarted::BudgetSpent)?;
        let (waiting, parked) = (session.waiting.clone(), session.parked.values().cloned().collect::<Vec<_>>());
        let veil = self.door().log().veil(id).await.map_err(|error| NotStarted::Chain(error.to_string()))?;
        self.settle_in(id, &name, &seat, body, async || {
            self.door().keep(*session, veil, warrant);
            self.door().watchers().leave(id);
            self.door().ask_on(id, &seat, parked).await
        })
        .await?;
        for envelope in waiting {
            self.put(envelope).await;
        }
        Ok(())
    }

    /// Makes the agent of a session what the configuration says it is now, on the record where that is another thing.
    async fn appoint(&self, session: &mut Session) -> Result<(), NotTakenUp> {
        let was = &session.spec.agent;
        let Some(now) = self.door().appointments().of(&was.agent).filter(|now| *now != was) else {
            return match self.door().appointments().of(&was.agent) {
                Some(_) => Ok(()),
                None => Err(NotTakenUp::NoAgent { session: session.id, agent: was.agent.clone() }),
            };
        };
        let (id, seat) = (Some(session.id), Some(session.seat.clone()));
        let subject = Subject { session: id, seat, ..Subject::default() };
        let record = Record { subject, fact: Fact::Appointed(now.clone()), content: None };
        self.door().log().append(record).await.map_err(|error| NotStarted::Chain(error.to_string()))?;
        session.appoint(now);
        Ok(())
    }

    /// Puts a message that was accepted before into its mailbox.
    async fn put(&self, envelope: Envelope) {
        let session = envelope.session;
        match self.promise(session) {
            Ok(place) => place.put(envelope),
            Err(error) => {
                let why = if matches!(error, NotAccepted::Full(_)) { Undelivered::Full } else { Undelivered::Nobody };
                self.door().bury(None, vec![Lost::from(&envelope)], why).await;
            }
        }
    }

    /// No process is there any more that could answer these messages.
    pub(crate) async fn give_up(&self, session: SessionId, owed: Vec<Unanswered>, why: &NotTakenUp) {
        tracing::warn!(%session, %why, "an unfinished session does not go on");
        let stopped = matches!(why, NotTakenUp::NotStarted(NotStarted::Stopped(_)));
        let lost = owed.into_iter();
        let lost = lost.map(|Unanswered { message, accepted, session }| Lost { message, accepted, session }).collect();
        let why = if stopped { Undelivered::Stopped } else { Undelivered::NodeEnded };
        self.door().bury(None, lost, why).await;
    }

    /// What held sessions that are over holds no process.
    async fn release_before(&self) {
        let agents = Seat::root(NODE_NAME).child("agents");
        let open = self.open_sessions();
        let is_over = |held: &Seat| {
            let there = open.iter().any(|(_, seat)| is_at_or_below(seat, held));
            *held != agents && is_at_or_below(held, &agents) && !there
        };
        let over: Vec<Seat> = self.holds().into_iter().map(|hold| hold.seat).filter(is_over).collect();
        for seat in over {
            self.door().release(&seat).await;
        }
    }
}

impl Door {
    /// Opens the tickets again that a session waits on, each with the answers it has so far. One whose law or tool is another by
    /// now has lapsed, also if it was permitted: its call is decided anew, and asked anew if need be. One whose time passed
    /// meanwhile counts as refused.
    async fn ask_on(&self, session: SessionId, seat: &Seat, parked: Vec<Parked>) -> Result<(), NotStarted> {
        let (law, approvers) = (self.gate().digest(), self.approvers());
        for parked in parked {
            let settled = self.with_session(session, |session| session.settled(&parked, law, &approvers)).flatten();
            let (question, now) = (self.question(session, seat, &parked), self.instant());
            let how = match (settled, question) {
                (None, Some((question, called))) if parked.expires > now.wall => {
                    self.tickets.open(question, called, self.patience().ticket, now);
                    continue;
                }
                (None, Some(_)) => "expired",
                (None | Some(Ruled::Permit), None) if parked.chosen.is_none() => "withdrawn",
                (None | Some(Ruled::Permit), None) => LAPSED,
                (Some(_), _) => continue,
            };
            let (session, call) = (Some(session), Some(parked.call));
            let subject = Subject { session, seat: Some(seat.clone()), call, ..Subject::default() };
            let noted = self.note_unanswered(parked.ticket, parked.policy, subject, how).await;
            noted.map_err(|error| NotStarted::Chain(error.to_string()))?;
        }
        Ok(())
    }

    /// What is asked, and the arguments whole, if it can still be answered.
    fn question(&self, session: SessionId, seat: &Seat, parked: &Parked) -> Option<(Question, Called)> {
        let gate = self.gate();
        let (workspace, (tool, arguments, files)) = self
            .with_session(session, |session| Some((session.spec.workspace.clone(), session.meant(&gate, parked)?)))
            .flatten()?;
        let recorded = Recorded {
            ticket: parked.ticket,
            session,
            seat: seat.clone(),
            workspace: workspace.clone(),
            call: parked.call,
            files,
            digest: parked.arguments,
            verdict: parked.verdict.clone(),
            expires: parked.expires,
            asked: self.log().time(),
            quorum: parked.quorum,
        };
        let question = Question::new(recorded, gate.registry().tool(&tool)?, &arguments);
        let is_bound = parked.policy == gate.digest() && parked.registration == Some(question.registration);
        is_bound.then(|| (question, Called { workspace: workspace.as_str().to_owned(), arguments }))
    }
}

/// The name of the group of a session whose agent has this seat.
fn own_name(seat: &Seat) -> Option<String> {
    let agents = Seat::root(NODE_NAME).child("agents");
    let rest = seat.as_str().strip_prefix(agents.as_str())?.strip_prefix('/')?;
    let name = rest.strip_suffix(AGENT)?.strip_suffix('/')?;
    (!name.is_empty() && !name.contains('/')).then(|| name.to_owned())
}
