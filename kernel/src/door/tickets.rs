//! The tickets that are open: each waits for an answer, until its time is up.
//!
//! A ticket is open as long as the record has no ruling that settles it. A task that rules claims it first, and another that would
//! rule waits; so nothing comes to the record behind what settled it. The claim is given up if the record did not take the ruling,
//! or more people have to permit it. Time is up by the wall clock or by the monotonic one, whichever is first: a clock that is set
//! back gives no more time.

use std::{
    collections::BTreeMap,
    ops::Bound,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use ephor_base::{Digest, Seq, SessionId, TicketId, Timestamp};
use ephor_governance::Ruled;
use tokio::sync::{OwnedMutexGuard, watch};

use super::{BadRuling, Statement, precedents::Called};
use crate::question::Question;

/// What came of a ticket: an answer, and where it stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    pub(crate) ruled: Ruled,
    pub(crate) ruling: Option<Seq>,
}

/// Both clocks, read together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instant {
    pub(crate) wall: Timestamp,
    pub(crate) monotonic: Duration,
}

/// The tickets that wait for an answer.
#[derive(Debug, Default)]
pub(crate) struct Tickets(Mutex<BTreeMap<TicketId, Open>>);

#[derive(Debug)]
struct Open {
    question: Question,
    /// What is asked about, whole.
    called: Called,
    /// On the monotonic clock.
    deadline: Duration,
    /// Held by the task that rules.
    turn: Arc<tokio::sync::Mutex<()>>,
    answer: watch::Sender<Option<Answer>>,
}

/// The right to rule on a ticket. If it is dropped without an answer, the ticket stays open for the next one.
pub(crate) struct Claim<'a> {
    tickets: &'a Tickets,
    pub(crate) question: Question,
    pub(crate) called: Called,
    /// On the monotonic clock.
    deadline: Duration,
    _turn: OwnedMutexGuard<()>,
}

impl Tickets {
    /// Opens a ticket at `now`. It stays open for no longer than `longest`.
    pub(crate) fn open(&self, question: Question, called: Called, longest: Duration, now: Instant) {
        let left = question.expires.since(now.wall).min(longest);
        let deadline = now.monotonic.saturating_add(left);
        let open = Open { question, called, deadline, turn: Arc::default(), answer: watch::Sender::new(None) };
        self.tickets().insert(open.question.ticket, open);
    }

    /// What is asked, and what its answer comes through.
    pub(crate) fn follow(&self, id: TicketId) -> Option<(Question, watch::Receiver<Option<Answer>>)> {
        self.tickets().get(&id).map(|open| (open.question.clone(), open.answer.subscribe()))
    }

    /// At most `most` that are open at `now` under the law `policy`, the oldest first, from behind `behind` on.
    pub(crate) fn page(
        &self,
        behind: Option<TicketId>,
        most: usize,
        policy: Digest,
        now: Instant,
    ) -> Vec<(Question, Duration)> {
        let tickets = self.tickets();
        let from = behind.map_or(Bound::Unbounded, Bound::Excluded);
        let open = tickets.range((from, Bound::Unbounded)).map(|(_, open)| (open, open.left(now)));
        let open = open.filter(|(open, left)| !left.is_zero() && open.question.verdict.policy == policy);
        open.take(most).map(|(open, left)| (open.question.clone(), left)).collect()
    }

    /// Those of a session.
    pub(crate) fn of(&self, session: SessionId) -> Vec<TicketId> {
        let tickets = self.tickets();
        tickets.values().filter(|open| open.question.session == session).map(|open| open.question.ticket).collect()
    }

    /// How long a ticket still waits; nothing once its time is up or it is not open.
    pub(crate) fn left(&self, id: TicketId, now: Instant) -> Duration {
        self.tickets().get(&id).map_or(Duration::ZERO, |open| open.left(now))
    }

    /// Claims a ticket, once no other task rules on it; nothing if it is not open, or not any more.
    pub(crate) async fn claim(&self, id: TicketId) -> Option<Claim<'_>> {
        let turn = self.tickets().get(&id).map(|open| open.turn.clone())?;
        let _turn = turn.lock_owned().await;
        let tickets = self.tickets();
        let Open { question, called, deadline, .. } = tickets.get(&id)?;
        let (question, called, deadline) = (question.clone(), called.clone(), *deadline);
        Some(Claim { tickets: self, question, called, deadline, _turn })
    }

    /// Forgets the tickets of a session that is gone.
    pub(crate) fn forget(&self, session: SessionId) {
        self.tickets().retain(|_, open| open.question.session != session);
    }

    fn tickets(&self) -> MutexGuard<'_, BTreeMap<TicketId, Open>> {
        ephor_runtime::lock::enter(&self.0)
    }
}

impl Open {
    fn left(&self, now: Instant) -> Duration {
        left(&self.question, self.deadline, now)
    }
}

impl Claim<'_> {
    /// Whether what is said `now` answers the ticket.
    ///
    /// # Errors
    /// [`BadRuling`]: its time is up, or the answer is bound to something else.
    pub(crate) fn check(&self, said: &Statement, now: Instant) -> Result<(), BadRuling> {
        if left(&self.question, self.deadline, now).is_zero() {
            return Err(BadRuling::Expired(self.question.ticket));
        }
        if said.answers(&self.question) { Ok(()) } else { Err(BadRuling::OtherCall) }
    }

    /// The answer stands on the record: the ticket is closed, and the call that waits hears it.
    pub(crate) fn answered(self, answer: Answer) {
        let open = self.tickets.tickets().remove(&self.question.ticket);
        // It may be that no process waits for the call just now; then the call finds the answer on the record.
        open.map(|open| open.answer.send_replace(Some(answer)));
    }
}

fn left(question: &Question, deadline: Duration, now: Instant) -> Duration {
    question.expires.since(now.wall).min(deadline.saturating_sub(now.monotonic))
}
