//! The permit: the only thing a driver runs on.

use std::time::Duration;

use ephor_base::{CallId, Decision, Digest, Pid, Seq, SessionId, Task, Verdict};
use ephor_chain::{Durable, Intent};

/// Leave to run one task once.
///
/// Made in this module alone, from a permitting verdict and an intent that is already on the disk. It owns the
/// resolved arguments, and drivers get them nowhere else. Not `Clone`, never serialised, consumed by the run.
#[derive(Debug)]
pub struct Permit {
    task: Task,
    call: CallId,
    attempt: u32,
    pid: Pid,
    session: SessionId,
    intent: Seq,
    time_limit: Duration,
}

impl Permit {
    /// The only way to a permit. `law` is the digest of the one in force: under an older one nothing begins.
    pub(super) fn make(
        verdict: &Verdict,
        law: Digest,
        intent: Durable<Intent>,
        task: Task,
        time_limit: Duration,
    ) -> Option<Self> {
        if verdict.decision != Decision::Permit || verdict.policy != law {
            return None;
        }
        let seq = intent.seq();
        let record = intent.get().record();
        let (call, attempt, pid, session) = (record.call, record.attempt, record.pid, record.session);
        Some(Self { task, call, attempt, pid, session, intent: seq, time_limit })
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

    /// How long the run may take from its start. The door ends it then.
    #[must_use]
    pub const fn time_limit(&self) -> Duration {
        self.time_limit
    }
}
