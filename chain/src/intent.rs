//! An intent that is on the disk: the half of a permit that the chain gives.

use ephor_base::{ActionKind, Budget, CallId, Digest, Kept, OperatorId, Pid, Receipt, Seat, Seq, SessionId};
use ephor_record::Subject;

/// What is about to be done, before it is recorded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IntentRecord {
    /// The conversation.
    pub session: SessionId,
    /// The operator who answers for it.
    pub operator: OperatorId,
    /// The seat that acts.
    pub seat: Seat,
    /// The incarnation in it.
    pub pid: Pid,
    /// The call.
    pub call: CallId,
    /// What will be done.
    pub action: ActionKind,
    /// Which attempt of the call, from 1.
    pub attempt: u32,
    /// The same digest as in the verdict.
    pub arguments: Digest,
    /// What was reserved for it.
    pub reserved: Budget,
    /// What it replaces, where that is kept: on the disk before anything is replaced.
    pub kept: Vec<Kept>,
}

impl IntentRecord {
    /// What it concerns. The verdict must concern the same.
    #[must_use]
    pub fn subject(&self) -> Subject {
        Subject {
            session: Some(self.session),
            operator: Some(self.operator),
            seat: Some(self.seat.clone()),
            pid: Some(self.pid),
            call: Some(self.call),
        }
    }
}

/// A recorded intent. It is only ever seen inside a [`Durable`].
#[derive(PartialEq, Eq, Debug)]
pub struct Intent {
    record: IntentRecord,
    verdict: Receipt,
}

impl Intent {
    /// Everything that was recorded.
    #[must_use]
    pub const fn record(&self) -> &IntentRecord {
        &self.record
    }

    /// Where the verdict that permits it stands.
    #[must_use]
    pub const fn verdict(&self) -> Receipt {
        self.verdict
    }

    pub(crate) const fn new(record: IntentRecord, verdict: Receipt) -> Self {
        Self { record, verdict }
    }
}

/// Something that is on the disk, under a checkpoint with both signatures.
///
/// Only [`crate::Log::intend`] gives one, and only once that is so. It cannot be copied, read from bytes or made up, so to
/// own one is proof.
///
/// ```
/// fn read(intent: &ephor_chain::Durable<ephor_chain::Intent>) -> ephor_base::Seq {
///     intent.seq()
/// }
/// ```
/// ```compile_fail,E0277
/// fn needs_clone<T: Clone>() {}
/// needs_clone::<ephor_chain::Durable<ephor_chain::Intent>>();
/// ```
/// ```compile_fail,E0277
/// fn needs_default<T: Default>() {}
/// needs_default::<ephor_chain::Durable<ephor_chain::Intent>>();
/// ```
/// ```compile_fail,E0451
/// fn make_up(value: ephor_chain::Intent, receipt: ephor_base::Receipt) -> ephor_chain::Durable<ephor_chain::Intent> {
///     ephor_chain::Durable { value, receipt }
/// }
/// ```
/// ```compile_fail,E0624
/// fn make_up(value: ephor_chain::Intent, receipt: ephor_base::Receipt) -> ephor_chain::Durable<ephor_chain::Intent> {
///     ephor_chain::Durable::new(value, receipt)
/// }
/// ```
#[derive(PartialEq, Eq, Debug)]
pub struct Durable<T> {
    value: T,
    receipt: Receipt,
}

impl<T> Durable<T> {
    /// What is on the disk.
    #[must_use]
    pub const fn get(&self) -> &T {
        &self.value
    }

    /// Where it stands.
    #[must_use]
    pub const fn receipt(&self) -> Receipt {
        self.receipt
    }

    /// Its place in the chain.
    #[must_use]
    pub const fn seq(&self) -> Seq {
        self.receipt.seq
    }

    pub(crate) const fn new(value: T, receipt: Receipt) -> Self {
        Self { value, receipt }
    }
}
