//! Runs tools: WASM guests that see only what they were given.
//!
//! A guest is a component that exports `ephor:tool/guest` (`wit/tool.wit`). It is called once, in a store of its own, and
//! is gone with its answer. It gets one directory, for reading or for writing, what it prints is counted, and there is
//! nothing else: no network, no environment, no arguments, no time of day, no randomness but what follows from the call.
//! Fuel, deadline, memory, output and handles are bounded for every call.
//!
//! What this crate never does: decide whether a call may be made (the kernel's door does, and hands in a permit), start
//! tasks or threads that outlive a call, open anything but regular files and directories for a guest, or run compiled
//! code that it has not compiled or authenticated itself.
//!
//! Where to go:
//! - [`Engine`] is the one WASM engine of a node; [`Engine::load`] makes a [`Component`], [`Engine::run`] runs a
//!   [`GuestCall`] of it. `call.rs` is the whole life of a call.
//! - `store.rs` is the complete list of what a guest finds around it; `filesystem.rs` and `open.rs` are the guard that
//!   keeps it to regular files inside its workspace.
//! - [`WasmDriver`] is all this as the kernel sees it: a permit in, a product or a failure out.
//! - [`DEFAULT_LIMITS`] are the numbers, [`LimitReached`] what is told when one is reached.
//! - [`foresee`] says what a call makes of the files that it names, before it is judged; [`made`], what it made, from the record.
//! - [`builtin_tools`] are the file tools that come with Ephor; their source is in `guests/`, their built component in
//!   `components/`.
//! - [`CompiledCache`] keeps compiled code between starts.

mod bindings;
mod builtin;
mod cache;
mod call;
mod component;
mod driver;
mod engine;
mod filesystem;
mod foresee;
mod guest;
mod host;
mod limits;
mod locate;
mod open;
mod output;
mod replace;
mod shell;
mod store;
mod threads;
mod workspace;

pub use builtin::{BuiltinError, BuiltinTool, FILES, builtin_tools};
pub use cache::CompiledCache;
pub use call::{Access, Description, GuestAnswer, GuestCall, GuestFailure, ToolFailure};
pub use component::{Component, ComponentError};
pub use driver::WasmDriver;
pub use engine::{Engine, EngineError};
pub use foresee::{foresee, made};
pub use guest::Guest;
pub use limits::{DEFAULT_LIMITS, LimitReached, MEMORY_CEILING};
pub use locate::Held;
pub use shell::{APPLY, SHELL, Settings as ShellSettings, ShellDriver, shell_tools};
pub use workspace::{OpenWorkspace, WorkspaceError};
