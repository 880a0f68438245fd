//! Owns the process table, supervisors, mailboxes, budgets and the one door.
pub mod door;
pub mod driver;
pub use door::{Permit, Refusal};
pub use driver::{CallContext, Driver, DriverResult, NoSecret, Preview, PreviewItem, Running, Secrets};
