//! One native command, confined, on Linux.
//!
//! [`run()`] starts a command in new namespaces through an init stage, [`init`]: the caller's own program, executed again. The
//! command sees what its [`Request`] names and nothing else: the system's folders read-only, the declared folders, a private
//! `/tmp`, and a network that ends at its own loopback. Its writes to the workspace go to the upper layer of an overlay. Once it
//! has ended, [`overlay::Changes`] lists what the layer holds, and applies all of it to the workspace or none.
//!
//! A mechanism that the kernel or its policy refuses fails the run with its name ([`Mechanism`]), unless the request accepts the
//! [`Lack`]. [`probe()`] tries them all.
//!
//! The command keeps the user and group of the caller and has no capability: started by root, it is root in name only, and files of
//! other users are closed to it.
//!
//! This crate knows no kernel of Ephor, no permit and no agent. It spawns no task and starts no thread, and takes its time from
//! tokio. After a run no process, mount or descriptor of it is left. The upper layer stays until [`overlay::discard`].

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
