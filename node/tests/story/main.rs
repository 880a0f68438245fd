//! The binary, driven as a user drives it: every test has a home, a workspace and processes of its own.
//!
//! Nothing here looks at a clock to judge; time limits only turn a hung process into a failed test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod again;
mod agents;
mod approvals;
mod auditor;
mod coding;
mod copies;
mod edits;
mod errors;
mod forgotten;
mod gate;
mod generations;
mod keep;
mod looking;
mod main_job;
mod openai;
mod operators;
mod paths;
mod place;
mod plans;
mod precedents;
mod projections;
mod providers;
mod prune;
mod quota;
mod schedules;
mod scripts;
mod shell;
mod signals;
mod socket;
mod terminal;
mod undo;
#[expect(dead_code, reason = "the attacks use the rest")]
mod wire;
