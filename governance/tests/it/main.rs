//! What the gate decides, over everything it may be asked.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod constitution;
mod evidence;
mod forms;
mod gate;
mod lists;
mod precedent;
mod provenance;
mod records;
mod replay;
mod requests;
mod roles;
mod rules;
mod sayings;
mod slots;
mod world;
