//! The turn under way: its clock, its limits, and what it has come to so far.

use std::time::Duration;

use ephor_base::{
    ActionKind, Confidentiality, Digest, Envelope, Exhausted, MessageId, Receipt, Seq, TurnLimit, TurnReport,
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// How much one turn may ask of the door, whatever its agent does. What is refused counts too.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnLimits {
    /// Requests to the model: 108 by default, which is four for each round of tools that a turn has.
    pub requests: u32,
    /// Calls of tools, those within others among them; 4,096 by default.
    pub calls: u32,
    /// Time for the whole turn, without waiting for a person; 300 s by default.
    pub time: Duration,
}

/// How often the reply of one turn is tried: one that was cut off with its process is sent by the next.
const REPLIES: u32 = 8;

impl Default for TurnLimits {
    fn default() -> Self {
        Self { requests: 108, calls: 4096, time: Duration::from_secs(300) }
    }
}

/// How often a turn has asked for each kind of call.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Asking {
    requests: u32,
    calls: u32,
    replies: u32,
}

impl Asking {
    const fn of(&mut self, kind: ActionKind) -> &mut u32 {
        match kind {
            ActionKind::Model => &mut self.requests,
            ActionKind::Tool => &mut self.calls,
            ActionKind::Reply => &mut self.replies,
        }
    }
}

/// The turn under way.
pub(crate) struct Turn {
    pub(crate) message: MessageId,
    /// Where the acceptance of the message stands.
    pub(crate) accepted: Seq,
    /// The level that its model's words were cleared for a watcher, and the law that said so.
    pub(crate) cleared: Option<(Confidentiality, Digest)>,
    /// What ran out in it.
    pub(crate) spent: Option<Exhausted>,
    pub(crate) started: Duration,
    /// Time spent waiting for a person; it does not count against the turn.
    pub(crate) waited: Duration,
    /// How many questions wait for a person now, and since when one does.
    pub(crate) waits: u32,
    pub(crate) waits_since: Duration,
    pub(crate) report: TurnReport,
    /// What has been asked in it: here, and as far as the record says.
    asks: Asking,
    recorded: Asking,
    pub(crate) receipts: Vec<Receipt>,
    pub(crate) cancel: CancellationToken,
    /// Cancelled when the turn is over, by being dropped.
    pub(crate) over: DropGuard,
}

impl Turn {
    /// The turn that answers `envelope`, begun at the monotonic time `now`.
    pub(crate) fn of(envelope: &Envelope, now: Duration) -> Self {
        Self {
            message: envelope.id,
            accepted: envelope.seq,
            cleared: None,
            spent: None,
            started: now,
            waited: Duration::ZERO,
            waits: 0,
            waits_since: Duration::ZERO,
            report: TurnReport::default(),
            asks: Asking::default(),
            recorded: Asking::default(),
            receipts: Vec::new(),
            cancel: CancellationToken::new(),
            over: CancellationToken::new().drop_guard(),
        }
    }

    /// One more call of this kind is asked for at `now`.
    ///
    /// # Errors
    /// [`TurnLimit`]: the turn has had its share. It does not count.
    pub(crate) fn ask(&mut self, kind: ActionKind, limits: &TurnLimits, now: Duration) -> Result<(), TurnLimit> {
        if kind != ActionKind::Reply && self.worked(now) > limits.time {
            return Err(TurnLimit::Time);
        }
        let (most, limit) = match kind {
            ActionKind::Model => (limits.requests, TurnLimit::Rounds),
            ActionKind::Tool => (limits.calls, TurnLimit::Calls),
            ActionKind::Reply => (REPLIES, TurnLimit::Repeats),
        };
        let recorded = *self.recorded.of(kind);
        let asked = self.asks.of(kind);
        // Behind a restart the record alone says how often it was.
        *asked = (*asked).max(recorded);
        let next = asked.checked_add(1).filter(|next| *next <= most).ok_or(limit)?;
        *asked = next;
        Ok(())
    }

    /// A verdict on a call of this kind stands on the record.
    pub(crate) const fn was_decided(&mut self, kind: ActionKind) {
        let recorded = self.recorded.of(kind);
        *recorded = recorded.saturating_add(1);
    }

    /// How much longer it may work at `now`.
    pub(crate) fn left(&self, limits: &TurnLimits, now: Duration) -> Duration {
        limits.time.saturating_sub(self.worked(now))
    }

    /// What is cancelled when the turn is over.
    pub(crate) fn over(&self) -> CancellationToken {
        self.over.token().clone()
    }

    /// A person is asked: the clock of the turn stands.
    pub(crate) const fn begin_wait(&mut self, now: Duration) {
        if self.waits == 0 {
            self.waits_since = now;
        }
        self.waits = self.waits.saturating_add(1);
    }

    /// A question is answered, or will not be. While another waits, the clock still stands. A turn that waits for none goes on.
    pub(crate) const fn end_wait(&mut self, now: Duration) {
        let Some(left) = self.waits.checked_sub(1) else { return };
        self.waits = left;
        if left == 0 {
            self.waited = self.waited.saturating_add(now.saturating_sub(self.waits_since));
        }
    }

    /// How long it has worked by `now`.
    pub(crate) const fn worked(&self, now: Duration) -> Duration {
        let now = if self.waits == 0 { now } else { self.waits_since };
        now.saturating_sub(self.started).saturating_sub(self.waited)
    }

    /// The figures, with the time from the message to `now`.
    pub(crate) fn report_at(&self, now: Duration) -> TurnReport {
        let duration_ms = u64::try_from(now.saturating_sub(self.started).as_millis()).unwrap_or(u64::MAX);
        TurnReport { duration_ms, ..self.report }
    }
}

#[cfg(test)]
mod tests {
    use ephor_base::{OperatorId, SessionId, Timestamp};

    use super::*;

    #[test]
    fn a_wait_that_a_turn_did_not_begin_gives_it_no_time() {
        let [begun, later, now] = [10, 100, 110].map(Duration::from_secs);
        let envelope = Envelope {
            id: MessageId(1),
            session: SessionId([0; 16]),
            operator: OperatorId([0; 16]),
            accepted: Timestamp(0),
            seq: Seq(0),
            spans: Vec::new(),
        };
        let mut turn = Turn::of(&envelope, begun);
        turn.end_wait(later);
        assert_eq!(turn.worked(now), Duration::from_secs(100));
        turn.begin_wait(now);
        turn.end_wait(now + later);
        assert_eq!(turn.worked(now + later), Duration::from_secs(100));
    }
}
