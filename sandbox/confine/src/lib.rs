//! One native command, confined, on Linux.
//!
//! [`run`] starts a command in namespaces of its own through an init stage of ours, [`init`]: this program, started again. What
//! the command sees is what its [`Request`] names: the system's folders read-only, the folders that were declared, a private
//! `/tmp`, a network that ends at its own loopback. What it writes to its workspace goes into the upper layer of an overlay.
//! Once it has ended, [`overlay::Changes`] reads that layer, says what is in it, and applies all of it to the workspace or none.
//!
//! A mechanism that the kernel or its policy refuses fails the run with its name ([`Mechanism`]), unless the request says by
//! name that the operator does without it ([`Lack`]). [`probe`] says which there are.
//!
//! This crate knows no kernel of Ephor, no permit and no agent. It reads no clock, spawns no task and starts no thread. What is
//! absent after a run: a process of it, a mount, a descriptor. What stays is the upper layer, until [`overlay::discard`].

#[cfg(not(target_os = "linux"))]
compile_error!("what a command is confined with here is Linux's");

pub mod init;
pub mod overlay;
pub mod probe;
pub mod request;
pub mod run;

mod mechanism;
mod plan;
mod sys;

pub use mechanism::{Lack, Lacking, Mechanism};
pub use probe::probe;
pub use request::{Access, Limits, Request, RequestError, Workspace};
pub use run::{Captured, End, Ended, Event, RunError, Stream, Used, run};
