//! Runs models: those of providers, streamed over HTTP, and the built-in one.
//!
//! [`Models`] is the one driver; it hands each request to the provider that the request names: `script` replays lines,
//! `builtin` is a small deterministic program, and any other is a [`Provider`], asked in the grammar of its [`Kind`]. All
//! stream through the same path and settle their use in the same way.
//!
//! A request has four ends: an answer that is complete, was cut off, or was refused ([`ephor_base::AnswerEnd`]), or a
//! [`ephor_base::Failure`].
//!
//! What never happens here: a provider is never chosen because a key lies about, one provider's key is never sent to another's
//! origin (each has a way out of its own), untrusted text is never sent as if it were an instruction, a model's tool arguments are never parsed or repaired (they go to the door as they came), and nothing that a
//! provider says leaves with the key in it.
//!
//! [`parse_model`] turns what a person types into a [`ephor_base::ModelRef`]; [`Models::served`] says who will answer.

mod choice;
mod driver;
mod meter;
mod planning;
mod price;
mod provider;
mod scout;
mod script;
mod scrub;
mod sink;
#[cfg(test)]
mod testing;

pub use choice::{ModelChoice, Served, UnknownModel, is_provider, parse_model, script_model};
pub use driver::Models;
pub use price::{BadPrice, LISTED_ON, Price, Prices};
pub use provider::{Kind, Named, Provider};
pub use script::{BadScript, Script};
