//! The supervisor engine: OTP's `supervisor` as a pure function of events.
//!
//! It has no clock and starts nothing itself: [`Supervisor::step`] takes an event with the time it happened and gives
//! back commands; the code that runs it carries them out, in order. `docs/runtime-semantics.md` states what it does, and a
//! differential test holds it against a real Erlang. It never looks through all children for one event: children lie in
//! a slab and in the order of their start, so that an exit costs the same among ten and among three hundred thousand.
//!
//! Like OTP's, it does one thing at a time: it waits for the child it starts or stops, and what happens meanwhile waits
//! its turn. Begin with [`Flags`] and [`Spec`], go on to [`Event`] and [`Command`]; `engine` holds the rules.

mod backoff;
mod children;
mod engine;
mod event;
mod requests;
mod spec;
mod window;

pub use backoff::Backoff;
pub use engine::Supervisor;
pub use event::{
    Answer, Cause, ChildId, Command, Counted, Ending, Event, Listed, Refused, Request, Standing, Target, Timer,
};
pub use spec::{AutoShutdown, BadSpec, Flags, Intensity, Kind, Name, Restart, Shutdown, Spec, Strategy};
