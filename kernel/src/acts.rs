//! What an operator does to processes, budgets and dead letters: each an act on the record.
//!
//! An act is on the disk before it takes effect. A stop and a kill are the exception: they wait for the disk no longer than
//! [`URGENT`], and then take effect first and say whether they are on the record.

use std::time::Duration;

use ephor_base::{Budget, Exhausted, OperatorId, Pid, Seat, Seq, SessionId};
use ephor_chain::AppendError;
use ephor_record::{Cause, Fact, Hold, HoldKind, Record, Signal, Subject, standing::is_at_or_below};
use futures_util::future;

use crate::{
    door::{Caller, Door, Flight, Landed},
    kernel::Kernel,
    ledger::Account,
    seen::Seen,
    whole::whole,
};

/// How long a stop or a kill waits for an act before it, and then for the disk. A batch takes a few milliseconds; with the grace of
/// a driver it is less than a tenth of a second until everything is quiet.
const URGENT: Duration = Duration::from_millis(20);

/// The longest note of an act, in bytes. It is public for good, and not a place for much.
pub const MAX_NOTE: usize = 1024;

/// What an act is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Every agent, and every one to come.
    All,
    /// The process in this seat, whichever it is.
    Seat(Seat),
    /// This process.
    Pid(Pid),
}

/// A signal an operator gives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Act {
    /// The operator, as the node knows them: never from data.
    pub operator: OperatorId,
    /// What is done.
    pub signal: Signal,
    /// To what.
    pub target: Target,
    /// Whether to everything below as well. With [`Target::All`] it always is.
    pub tree: bool,
    /// Why, in the operator's words. Public for good.
    pub note: String,
}

/// What an act did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acted {
    /// The seat it is for.
    pub seat: Seat,
    /// Where it stands. An error says why a stop or kill that took effect is not on the record: it does not outlive the
    /// node.
    pub recorded: Result<Seq, String>,
    /// The sessions whose turn or agent it concerned.
    pub sessions: Vec<SessionId>,
}

/// An act was not done. Nothing changed, unless it says otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotDone {
    /// There is no such process. The caller's fault.
    #[error("there is no process {0}")]
    NoProcess(Pid),
    /// There is no such seat. The caller's fault.
    #[error("nobody is in the seat `{0}`")]
    NoSeat(Seat),
    /// The seat has no budget of its own. The caller's fault.
    #[error("the seat `{0}` has no budget")]
    NoBudget(Seat),
    /// The seat is one that only supervises: what is meant is what lies below it. The caller's fault.
    #[error("`{0}` only supervises; `--tree` means everything below it")]
    Supervises(Seat),
    /// The seat went while its limit was recorded, which concerns no process now.
    #[error("the seat `{0}` is gone; its new limit stands at entry {1} and concerns nobody")]
    Gone(Seat, Seq),
    /// The node itself is stopped in another way. The caller's fault.
    #[error("`{0}` belongs to the node itself; end the node instead")]
    Node(Seat),
    /// The note is too long. The caller's fault.
    #[error("a note has at most {MAX_NOTE} bytes")]
    LongNote,
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

/// Where an act goes.
struct Place {
    seat: Seat,
    pid: Option<Pid>,
    tree: bool,
}

impl Kernel {
    /// Suspends, resumes, stops or kills. What was begun is finished, also if the caller does not wait for it.
    ///
    /// # Errors
    /// [`NotDone`]: nothing changed.
    pub async fn signal(&self, act: Act) -> Result<Acted, NotDone> {
        let kernel = self.clone();
        whole(async move { kernel.act(act).await }).await.unwrap_or_else(cut_off)
    }

    async fn act(&self, act: Act) -> Result<Acted, NotDone> {
        if act.note.len() > MAX_NOTE {
            return Err(NotDone::LongNote);
        }
        let place = self.place(&act)?;
        // Acts take turns, so that they take effect in the order in which the record has them.
        match act.signal {
            Signal::Suspend => {
                let turn = self.acting().lock().await;
                let seq = self.suspend(&act, &place).await?;
                drop(turn);
                Ok(self.acted(place, seq))
            }
            Signal::Resume => {
                let turn = self.acting().lock().await;
                let seq = self.resume(&act, &place).await?;
                drop(turn);
                Ok(self.acted(place, seq))
            }
            Signal::Stop | Signal::Kill => Ok(self.end(&act, place).await),
        }
    }

    /// Gives a seat the limit that `change` makes of the one it has, and lets it go on if its budget was spent. What it has used
    /// stays used, and no limit goes beyond that of a seat above. Of two changes at once the second sees what the first made. What was
    /// begun is finished, also if the caller does not wait for it.
    ///
    /// # Errors
    /// [`NotDone`]
    pub async fn limit(
        &self,
        operator: OperatorId,
        seat: &Seat,
        change: impl FnOnce(Budget) -> Budget + Send + 'static,
        note: String,
    ) -> Result<(Account, Seq), NotDone> {
        if note.len() > MAX_NOTE {
            return Err(NotDone::LongNote);
        }
        let (kernel, seat) = (self.clone(), seat.clone());
        whole(async move { kernel.give(operator, &seat, change, note).await }).await.unwrap_or_else(cut_off)
    }

    async fn give(
        &self,
        operator: OperatorId,
        seat: &Seat,
        change: impl FnOnce(Budget) -> Budget + Send,
        note: String,
    ) -> Result<(Account, Seq), NotDone> {
        let turn = (self.acting().lock().await, self.door().limiting.lock().await);
        let account = self.account(seat).ok_or_else(|| NotDone::NoBudget(seat.clone()))?;
        let limit = change(account.limit);
        let subject = Subject { operator: Some(operator), seat: Some(seat.clone()), ..Subject::default() };
        let record = Record { subject, fact: Fact::Limit { limit, note }, content: None };
        let receipt = self.door().log().append(record).await.map_err(not_written)?;
        let granted = self.door().ledger.grant(seat, limit);
        let account = granted.ok_or_else(|| NotDone::Gone(seat.clone(), receipt.seq))?;
        let was = self.held(seat);
        self.door().holds.raised(seat);
        let now = self.held(seat);
        drop(turn);
        if was != now {
            self.sessions_at(seat, false).into_iter().for_each(|session| self.tell(session));
        }
        Ok((account, receipt.seq))
    }

    /// The calls in flight, the oldest first.
    #[must_use]
    pub fn flights(&self) -> Vec<Flight> {
        self.door().flights.flying()
    }

    /// The last calls of a seat that ended, the oldest first.
    #[must_use]
    pub fn landed(&self, seat: &Seat) -> Vec<Landed> {
        let sessions = self.sessions_at(seat, false).into_iter();
        let landed = |session| self.door().with_session(session, |session| session.landed.iter().cloned().collect());
        sessions.filter_map(landed).flat_map(|landed: Vec<Landed>| landed).collect()
    }

    /// Everything that is held.
    #[must_use]
    pub fn holds(&self) -> Vec<Hold> {
        self.door().holds.all()
    }

    /// What holds a seat: it itself, or a seat above it.
    #[must_use]
    pub fn held(&self, seat: &Seat) -> Option<HoldKind> {
        self.door().holds.on(seat)
    }

    /// The hold on a seat: of several the one furthest up, which holds the most.
    #[must_use]
    pub fn hold_on(&self, seat: &Seat) -> Option<Hold> {
        let kind = self.held(seat)?;
        let holds =
            |hold: &Hold| hold.kind == kind && (hold.seat == *seat || (hold.tree && is_at_or_below(seat, &hold.seat)));
        self.holds().into_iter().find(holds)
    }

    /// Which stopped seat keeps `seat` from beginning, if one does.
    pub(crate) fn stopped_at(&self, seat: &Seat) -> Option<Seat> {
        self.hold_on(seat).filter(|hold| hold.kind == HoldKind::Stopped).map(|hold| hold.seat)
    }

    /// The seat that is meant, which must be one that such an act can be done to.
    fn place(&self, act: &Act) -> Result<Place, NotDone> {
        let tree = act.tree;
        let mut place = match &act.target {
            Target::All => Place { seat: Seat::root("node"), pid: None, tree: true },
            Target::Pid(pid) => {
                let seat = self.seat_of(*pid).ok_or(NotDone::NoProcess(*pid))?;
                Place { seat, pid: Some(*pid), tree }
            }
            Target::Seat(seat) => Place { seat: seat.clone(), pid: None, tree },
        };
        // An operator who names the supervisor of a session means its agent, except to kill.
        place.tree |= act.signal != Signal::Kill && self.is_group(&place.seat);
        let agents = Seat::root("node").child("agents");
        let is_all = place.seat == Seat::root("node") && place.tree;
        let is_held = self.door().holds.all().iter().any(|hold| hold.seat == place.seat);
        let is_there = self.is_live(&place.seat) || (act.signal == Signal::Resume && is_held);
        if !is_all && !is_there {
            return Err(NotDone::NoSeat(place.seat));
        }
        // What runs the node can be killed, and is started again; to hold it would shut the operator out.
        let holds = matches!(act.signal, Signal::Suspend | Signal::Stop);
        if holds && place.seat == agents && !place.tree {
            return Err(NotDone::Supervises(place.seat));
        }
        let may = match act.signal {
            Signal::Kill => is_all || place.seat != Seat::root("node"),
            Signal::Resume => true,
            Signal::Suspend | Signal::Stop => is_all || is_at_or_below(&place.seat, &agents),
        };
        if may { Ok(place) } else { Err(NotDone::Node(place.seat)) }
    }

    async fn suspend(&self, act: &Act, place: &Place) -> Result<Seq, NotDone> {
        let holds = &self.door().holds;
        // What was let through before is on the record before the suspension, and nothing is let through from here on.
        let suspending = holds.about_to_suspend(&place.seat, place.tree);
        holds.quiet().await;
        let recorded = self.door().log().append(record(act, place)).await;
        if recorded.is_ok() {
            holds.apply(Signal::Suspend, &place.seat, place.tree, Cause::Operator);
        }
        drop(suspending);
        recorded.map(|receipt| receipt.seq).map_err(not_written)
    }

    /// A stop does not wait for a resume whose disk is slow. It stands behind it on the record, and so it counts.
    async fn resume(&self, act: &Act, place: &Place) -> Result<Seq, NotDone> {
        let holds = &self.door().holds;
        holds.about_to_resume();
        let recorded = self.door().log().append(record(act, place)).await;
        if recorded.is_ok() {
            holds.resume(&place.seat, place.tree);
        }
        recorded.map(|receipt| receipt.seq).map_err(not_written)
    }

    /// Stops or kills: after the record if that is quick, and otherwise before it.
    async fn end(&self, act: &Act, place: Place) -> Acted {
        // One that waits for the disk does not hold this one up.
        let turn = self.door().timers().within(URGENT, self.acting().lock()).await;
        let mut written = std::pin::pin!(self.door().log().append(record(act, &place)));
        let early = self.door().timers().within(URGENT, &mut written).await;
        let sessions;
        if act.signal == Signal::Stop {
            // First the hold: whatever is opened from here on sees it.
            self.door().holds.apply(Signal::Stop, &place.seat, place.tree, Cause::Operator);
            sessions = self.sessions_at(&place.seat, place.tree);
            for session in &sessions {
                let _was_in_turn: bool = self.cancel_turn(*session);
            }
            drop(turn);
            let mut stops: Vec<future::BoxFuture<'_, ()>> = Vec::new();
            for session in &sessions {
                stops.push(Box::pin(self.stop_session(*session)));
            }
            future::join_all(stops).await;
        } else {
            sessions = self.sessions_at(&place.seat, place.tree);
            self.kill_at(&place.seat, place.pid, place.tree);
        }
        let written = match early {
            Some(written) => written,
            None => written.await,
        };
        let recorded = written.map(|receipt| receipt.seq).map_err(|error| error.to_string());
        if let Err(error) = &recorded {
            tracing::error!(seat = %place.seat, %error, "a stop or kill took effect and is not on the record");
        }
        Acted { seat: place.seat, recorded, sessions }
    }

    async fn stop_session(&self, session: SessionId) {
        self.tell(session);
        self.close_session(session).await;
    }

    fn acted(&self, place: Place, seq: Seq) -> Acted {
        let sessions = self.sessions_at(&place.seat, place.tree);
        sessions.iter().for_each(|session| self.tell(*session));
        Acted { seat: place.seat, recorded: Ok(seq), sessions }
    }

    /// Tells the watcher of a session what holds it now.
    fn tell(&self, session: SessionId) {
        let held = self.door().with_session(session, |session| session.seat.clone());
        let held = held.and_then(|seat| self.door().holds.on(&seat));
        let _is_watched: bool = self.door().watchers().show(session, Seen::Held { by: held });
    }
}

impl Door {
    /// A turn ended because the budget of its seat was spent: it begins none until that is raised. Nothing, if it has been raised
    /// by now, so that what ran out is there.
    pub(crate) async fn spent(&self, caller: &Caller, operator: Option<OperatorId>, spent: Exhausted) {
        // A limit that is given now stands before this on the record and is looked at, or behind it and ends the hold.
        let turn = self.limiting.lock().await;
        if self.ledger.would_cover(&caller.seat, spent) {
            return;
        }
        self.holds.apply(Signal::Suspend, &caller.seat, false, Cause::Budget);
        let subject = Subject {
            session: Some(caller.session),
            operator,
            seat: Some(caller.seat.clone()),
            pid: Some(caller.pid),
            call: None,
        };
        let note = format!("the budget is spent: {}", spent.resource.name());
        let fact = Fact::Signal { signal: Signal::Suspend, tree: false, cause: Cause::Budget, note };
        if let Err(error) = self.log().note(Record { subject, fact, content: None }).await {
            tracing::error!(seat = %caller.seat, %error, "a seat whose budget is spent could not be recorded as suspended");
        }
        drop(turn);
        let _is_watched: bool = self.watchers().show(caller.session, Seen::Held { by: Some(HoldKind::Spent) });
    }

    /// A seat is gone for good, and what held it with it.
    pub(crate) async fn release(&self, seat: &Seat) {
        if !self.holds.any_at_or_below(seat) {
            return;
        }
        self.holds.apply(Signal::Resume, seat, true, Cause::Gone);
        let subject = Subject { seat: Some(seat.clone()), ..Subject::default() };
        let fact = Fact::Signal { signal: Signal::Resume, tree: true, cause: Cause::Gone, note: String::new() };
        if let Err(error) = self.log().note(Record { subject, fact, content: None }).await {
            tracing::error!(%seat, %error, "what held a seat that is gone is still on the record");
        }
    }
}

/// It is not done any more: the node's threads are going.
fn cut_off<T>() -> Result<T, NotDone> {
    Err(NotDone::Chain("the node is going".to_owned()))
}

fn record(act: &Act, place: &Place) -> Record {
    let subject =
        Subject { operator: Some(act.operator), seat: Some(place.seat.clone()), pid: place.pid, ..Subject::default() };
    let fact = Fact::Signal { signal: act.signal, tree: place.tree, cause: Cause::Operator, note: act.note.clone() };
    Record { subject, fact, content: None }
}

#[expect(clippy::needless_pass_by_value, reason = "what `map_err` gives")]
fn not_written(error: AppendError) -> NotDone {
    NotDone::Chain(error.to_string())
}
