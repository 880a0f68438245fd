//! Why a call did not run.

use ephor_base::{CallId, Exhausted, Receipt, Verdict};

/// A typed refusal: except after `Unrecorded`, nothing ran and no budget was used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Governance denied it, or a person refused, or nobody answered in time. On the record.
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
    /// The call has a recorded outcome already, or is running. Not recorded again.
    #[error("call {0} was made already")]
    Repeated(CallId),
    /// The caller's incarnation is over. Nothing it asks is done.
    #[error("the process has ended")]
    Fenced,
    /// The log could not take the record, so the effect did not happen.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
    /// It ran, and the log could not take its outcome. It is not made again; the next boot calls it indeterminate.
    #[error("it ran, and its outcome cannot be recorded: {0}")]
    Unrecorded(String),
}
