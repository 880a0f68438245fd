//! Says what is recorded: entries, the rules each keeps to, and what they amount to.
//!
//! An [`Entry`] is the public form of a [`Record`] in its place: a [`Fact`] about a [`Subject`], and a commitment to private
//! [`Content`] beside it. Everything here is a function of entries. Nothing is read or written, so a node, an auditor's tool
//! and a peer hold a log against the same rules.
//!
//! # Rooms
//! - [`fact`]: what can happen, its subject and its content. [`document`]: longer texts, in parts. [`entry`]: the leaf of the log.
//! - [`rules`]: what every entry keeps to; the one reader of entries in their order.
//! - [`mod@standing`]: what stands until it is taken back: suspended seats, dead letters, schedules, [`judgment`]s that are
//!   used again; [`operators`]: who may operate the node.
//! - [`snapshot`]: what the entries so far amount to, as entries, so that a log can be read without its history.
//! - [`pruning`]: what may be taken away, and [`minimum`] where the log begins then; [`retention`] and [`blockers`] decide it.
//! - [`damage`]: what can be wrong with a log, and where.

pub mod blockers;
pub mod damage;
pub mod document;
pub mod entry;
pub mod fact;
pub mod judgment;
pub mod minimum;
pub mod operators;
pub mod pruning;
pub mod retention;
pub mod rules;
pub mod snapshot;
pub mod standing;

pub use damage::{Damage, Finding, OtherFormat, ScanError};
pub use document::Wanted;
pub use entry::{Commitment, Entry};
pub use fact::{
    Appointment, Chosen, Content, Errand, Fact, Follows, Grounds, LastNumbers, Opening, Pin, Pinned, Record, Restart,
    RulingOn, Subject, Terms,
};
pub use judgment::{Always, Judgment, Reused};
pub use minimum::Minimum;
pub use operators::{Credential, Decree, Enactment, Operators, Role};
pub use pruning::Pruning;
pub use retention::{Retention, TooShort};
pub use rules::Rules;
pub use snapshot::{Snapshot, Unsettled};
pub use standing::{
    Because, Cause, DeadLetter, Hold, HoldKind, Holds, Missed, Scheduled, Signal, Standing, Unanswered, Undelivered,
};
