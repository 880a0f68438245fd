//! The permit: the only thing a driver runs on.

use std::{fmt, sync::Arc, time::Duration};

use ephor_base::{CallId, Clock, Decision, Digest, Pid, Reach, Seq, SessionId, Task, Verdict};
use ephor_chain::{Durable, Intent};
use tokio_util::sync::CancellationToken;

use super::Caller;

/// Leave to run one task once.
///
/// Made in this module alone, from a permitting verdict and an intent that is already on the disk. It owns the
/// resolved arguments, and drivers get them nowhere else. Not `Clone`, never serialised, consumed by the run. It is good
/// until its deadline, and no longer than the process lives that it was made for.
pub struct Permit {
    task: Task,
    call: CallId,
    attempt: u32,
    pid: Pid,
    session: SessionId,
    intent: Seq,
    reach: Reach,
    until: Until,
}

/// How long a permit is good, and who says so.
pub(super) struct Until {
    /// On the monotonic clock of the node.
    pub(super) deadline: Duration,
    pub(super) clock: Arc<dyn Clock>,
    /// Cancelled when the incarnation is over.
    pub(super) fence: CancellationToken,
}

/// What a permit is made for.
pub(super) struct For<'a> {
    pub(super) caller: &'a Caller,
    pub(super) task: Task,
    /// The digest of the task, computed from the task itself.
    pub(super) digest: Digest,
    pub(super) reach: Reach,
    pub(super) until: Until,
}

impl Permit {
    /// The only way to a permit. `law` is the digest of the one in force: under an older one nothing begins. The intent has
    /// to be of this process, this session and this very task.
    pub(super) fn make(verdict: &Verdict, law: Digest, intent: Durable<Intent>, it: For<'_>) -> Option<Self> {
        let For { caller, task, digest, reach, until } = it;
        let (seq, record) = (intent.seq(), intent.get().record());
        let is_its = (record.pid, record.session, record.arguments) == (caller.pid, caller.session, digest);
        if verdict.decision != Decision::Permit || verdict.policy != law || !is_its {
            return None;
        }
        let (call, attempt, pid, session) = (record.call, record.attempt, record.pid, record.session);
        Some(Self { task, call, attempt, pid, session, intent: seq, reach, until })
    }

    /// What to do.
    #[must_use]
    pub const fn task(&self) -> &Task {
        &self.task
    }

    /// The call.
    #[must_use]
    pub const fn call(&self) -> CallId {
        self.call
    }

    /// Which attempt of the call, from 1.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The process it was made for.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// The session it belongs to.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The entry of the intent.
    #[must_use]
    pub const fn intent(&self) -> Seq {
        self.intent
    }

    /// When it ends, on the monotonic clock of the node. The door ends the run then.
    #[must_use]
    pub const fn deadline(&self) -> Duration {
        self.until.deadline
    }

    /// How much of its time is left; none once that is up, or the process is over that it was made for. Whatever is done on
    /// it asks this first.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        let left = self.until.deadline.checked_sub(self.until.clock.monotonic())?;
        (!left.is_zero() && !self.until.fence.is_cancelled()).then_some(left)
    }

    /// Whether the run may connect to the configured base URL `origin`.
    #[must_use]
    pub fn may_reach(&self, origin: &str) -> bool {
        self.reach.origins.iter().any(|known| known == origin)
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Permit");
        shown.field("call", &self.call).field("attempt", &self.attempt).field("pid", &self.pid);
        shown.field("intent", &self.intent).field("deadline", &self.until.deadline).finish_non_exhaustive()
    }
}
