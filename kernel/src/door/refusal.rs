//! Why a call did not run.

use ephor_base::{CallId, Exhausted, Receipt, TurnLimit, Verdict};

/// A typed refusal: except after `Unrecorded`, nothing ran and no budget was used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Governance denied it, or a person refused, or no person answered in time. On the record.
    #[error("denied: {}", verdict.why())]
    Denied {
        /// The verdict.
        verdict: Verdict,
        /// Where it stands.
        receipt: Receipt,
    },
    /// The seat's budget cannot cover it. On the record.
    #[error("{exhausted}")]
    BudgetSpent {
        /// What ran out.
        exhausted: Exhausted,
        /// Where it stands.
        receipt: Receipt,
    },
    /// The action names a span or an answer that its session does not have: a bug of the caller. Not recorded.
    #[error("the action names something its session does not have: {0}")]
    UnknownReference(String),
    /// No turn is under way: whatever is asked belongs to one, and a reply answers its message. Not recorded.
    #[error("no turn is under way")]
    NoTurn,
    /// The turn has asked as often, or worked as long, as a turn may; only its reply is still taken. Not recorded.
    #[error("the turn is at its limit: {}", .0.code())]
    TurnLimit(TurnLimit),
    /// The prompt names something twice, or more than a prompt may. Nothing of it was made, and it is not recorded.
    #[error("the prompt {0}")]
    Overlong(&'static str),
    /// The call has a recorded outcome already, or is running. Not recorded again.
    #[error("call {0} was made already")]
    Repeated(CallId),
    /// The caller's incarnation is over. Nothing it asks is done.
    #[error("the process has ended")]
    Fenced,
    /// The door's own task panicked before anything ran: a bug of ours. Nothing was done.
    #[error("the door's task panicked")]
    Broken,
    /// The log could not take the record, so the effect did not happen.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
    /// It ran, and the log could not take its outcome. It is not made again; the next boot calls it indeterminate.
    #[error("it ran, and its outcome cannot be recorded: {0}")]
    Unrecorded(String),
}
