//! What a user of the kernel would notice, through its public face. The gate and the chain are the product's.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod appointments;
mod derived;
mod ends;
mod engine;
mod laws;
mod letters;
mod links;
mod named;
mod operators;
mod precedents;
mod quorum;
mod retrial;
mod rulings;
mod runtime;
mod scope;
mod scoping;
mod signals;
mod spine;
mod supervision;
mod taking_up;
mod timers;
mod way;
mod world;
