//! Gives verdicts: permit, defer or deny, with reasons.
//!
//! [`Gate::decide`] is a pure function of its [`Case`]: this crate has no clock, file, socket or randomness, spawns
//! nothing and keeps nothing. The same case gets the same verdict, bit for bit, on every machine.
//!
//! It never lets anything run. A verdict is plain data; `kernel::door` alone turns a permitting one into a permit, and
//! only once the intent is durable.
//!
//! Where to go next: [`gate`] asks the branches in order. [`constitution`] is the law, in Cedar; [`policy`] the operator's will,
//! [`registry`] the tools, [`effects`] what a call may do, [`origin`] the three rules on where its arguments come from: clean
//! context, [`plan`], [`literals`]. [`scope`] is what the turn needs, [`spans`] what it has read, [`datum`] the values in that,
//! [`pasted`] what of a message no person typed, [`sensitive`] which files are more than files, [`evidence`] the conduct of a seat,
//! [`precedent`] what was ruled before. [`mod@replay`] decides a foreign trace.

pub mod constitution;
pub mod datum;
pub mod effects;
pub mod environment;
pub mod evidence;
pub mod gate;
pub mod literals;
pub mod origin;
pub mod pasted;
pub mod paths;
pub mod plan;
pub mod policy;
pub mod precedent;
pub mod registry;
pub mod replay;
pub mod rights;
pub mod scope;
pub mod sensitive;
pub mod spans;

pub use constitution::{BadConstitution, Constitution, Principal};
pub use environment::{Environment, LARGE};
pub use evidence::Evidence;
pub use gate::{Ask, Case, Decided, Gate, Ruled, ToolAsk};
pub use origin::{Finding, Planned, Rule};
pub use plan::{Carried, Plan, Spent};
pub use policy::OperatorPolicy;
pub use precedent::Precedent;
pub use registry::{BadRegistration, Registry, SchemaFault, Tool};
pub use replay::replay;
pub use rights::Rights;
pub use scope::{Scope, TurnState};
pub use spans::SpanTable;
