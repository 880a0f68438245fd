//! What the gate decides, over everything it may be asked.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

mod constitution;
mod datum;
mod evidence;
mod gate;
mod literals;
mod office;
mod pasted;
mod plan;
mod precedent;
mod properties;
mod replay;
mod rules;
mod world;
