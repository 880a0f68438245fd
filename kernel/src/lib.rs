//! Owns the process table, supervisors, mailboxes, budgets and the one door.
//!
//! A process is a [`Body`] that gets a [`Process`] handle: its PID, its mailbox and the system call. The call goes
//! through [`door`]: governance decides, the chain makes the intent durable, and only then is there a [`Permit`], which a
//! [`Driver`] runs. Processes and their supervision are those of [`ephor_runtime`], which knows of no agents; `chronicle`
//! puts on the record what it tells.
//!
//! This crate knows no wasmtime, no HTTP, no prompt text and no configuration. Drivers are plugged in by `node`. It and the
//! runtime alone spawn tasks.

mod acts;
mod branch;
mod census;
mod chronicle;
mod decrees;
pub mod door;
pub mod driver;
mod holds;
mod judgments;
mod kernel;
pub mod ledger;
mod letters;
mod process;
pub mod question;
mod residences;
mod schedules;
pub mod seen;
mod taking_up;
mod warrant;
mod whole;

pub use acts::{Act, Acted, MAX_NOTE, NotDone, Target};
pub use branch::{Branch, Child, Sprout, Work};
pub use census::{Inspected, WaitsFor};
pub use decrees::{Draft, NotDecreed, Roster, found};
pub use door::{
    Again, Answered, Appointments, BadRuling, Call, CallState, Canceller, DoorParts, Drivers, FirstNumbers, Flight,
    Inputs, Landed, Moment, NotAccepted, Patience, Permit, Refusal, Retrial, Retried, SessionSpec, SignedRuling,
    Statement, TheirPlan, TurnLimits, TurnPlan, Undecidable, check_plan, operator_id,
};
pub use driver::{
    CallContext, Driver, DriverResult, Estimate, Found, Locating, NoSecret, Preview, PreviewItem, Running, Secrets,
    Sought,
};
pub use ephor_runtime::{CAPACITY as MAILBOX_CAPACITY, LOST_THREADS, ProcessState, install_panic_hook};
pub use judgments::{NotJudged, Said, Stands, Suspended, all_agents};
pub use kernel::{AgentSpec, Kernel, NotStarted, Posted, ProcessInfo};
pub use ledger::Account;
pub use letters::{NotRaised, Whence};
pub use process::{Body, Incoming, Life, Process};
pub use question::{Question, Rendering};
pub use schedules::{MAX_SCHEDULE_NAME, NotScheduled};
pub use seen::{Seen, Subscription, TurnState, Watchers};
pub use taking_up::{Attached, NotTakenUp};
