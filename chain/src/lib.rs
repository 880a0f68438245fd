//! Remembers: the ExoChain, its signatures, proofs, payload vault and verifier.

pub mod entry;
pub mod record;

use ephor_base::{ActionKind, Budget, CallId, Digest, Pid, Receipt, Seat, SessionId};

/// An action about to be done.
#[derive(Clone, Debug)]
pub struct Intent {
    /// The call.
    pub call: CallId,
    /// Which attempt of it, from 1.
    pub attempt: u32,
    /// The session.
    pub session: SessionId,
    /// The caller.
    pub pid: Pid,
    /// The caller's seat.
    pub seat: Seat,
    /// What kind of action.
    pub action: ActionKind,
    /// The digest of what was asked.
    pub arguments: Digest,
    /// What is reserved for it.
    pub reserved: Budget,
}

/// Something that is on the disk, under a checkpoint with both signatures. Only the journal makes these.
#[derive(Debug)]
pub struct Durable<T> {
    value: T,
    receipt: Receipt,
}

impl<T> Durable<T> {
    /// What is durable.
    pub const fn value(&self) -> &T {
        &self.value
    }

    /// Where it stands.
    pub const fn receipt(&self) -> Receipt {
        self.receipt
    }
}
