//! The agent loop: turns messages into replies.
//!
//! [`Turn`] is the loop as a pure machine: it looks at what is on record of the session and says what comes next.
//! [`AgentLoop`] is the thin body that carries it out through the door. A turn that was cut off by a crash continues,
//! because the machine keeps nothing that the record does not have.
//!
//! This crate touches no file, network, process, environment or clock. Everything it does is an action at the door.

mod errands;
mod prompt;
mod runner;
mod turn;

pub use errands::{Called, Calls, Chain, Errands};
pub use runner::AgentLoop;
pub use turn::{Interrupt, Step, Turn, TurnLimits, Work};
