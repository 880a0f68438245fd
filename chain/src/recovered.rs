//! What opening a chain found.

use ephor_base::{CallId, MessageId, Pid, Seq, TicketId};
use ephor_record::{LastNumbers, Standing};
use ephor_tlog::Head;

/// What opening a chain found, and the first numbers that were never used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The number of this boot, from 1.
    pub boot: u64,
    /// Whether the chain was begun just now.
    pub fresh: bool,
    /// Whether the node before this one stopped cleanly.
    pub clean: bool,
    /// How many bytes of a torn batch were cut off. None of them had been acknowledged.
    pub trimmed_bytes: u64,
    /// The first free process number.
    pub next_pid: Pid,
    /// The first free call number.
    pub next_call: CallId,
    /// The first free message number.
    pub next_message: MessageId,
    /// The first free ticket number.
    pub next_ticket: TicketId,
    /// The intents that had no outcome. Each has one now: indeterminate, all of its reservation used, no content.
    pub indeterminate: Vec<Seq>,
    /// What stands: holds, dead letters, schedules, and the messages that were not answered.
    pub standing: Standing,
    /// The head, with the records of this boot.
    pub head: Head,
}

/// The first free numbers. All count from 1.
pub(crate) const fn free(used: LastNumbers) -> (Pid, CallId, MessageId, TicketId) {
    (Pid(used.pid).next(), CallId(used.call).next(), MessageId(used.message).next(), TicketId(used.ticket).next())
}
