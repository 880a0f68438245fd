//! Gives verdicts: permit, defer or deny, with reasons.
//!
//! [`Gate::decide`] is a pure function of its [`Case`]: this crate has no clock, file, socket or randomness, spawns
//! nothing and keeps nothing. The same case gets the same verdict, bit for bit, on every machine.
//!
//! It never lets anything run. A verdict is plain data; `kernel::door` alone turns a permitting one into a permit, and
//! only once the intent is durable.
//!
//! Where to go next: [`gate`] asks the branches in order, [`constitution`] is the law, [`policy`] the operator's will,
//! [`registry`] the tools, [`provenance`] the trust in arguments, [`evidence`] the conduct of a seat.

pub mod constitution;
pub mod evidence;
pub mod gate;
pub mod paths;
pub mod policy;
pub mod provenance;
pub mod registry;
pub mod rights;

pub use constitution::{Constitution, Environment};
pub use evidence::Evidence;
pub use gate::{Ask, Case, Gate, Ruled, ToolAsk};
pub use policy::OperatorPolicy;
pub use registry::{BadRegistration, Registry, SchemaFault};
pub use rights::Rights;
