//! What a user of the kernel would notice, through its public face. The gate and the chain are the product's.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod appointments;
mod bounds;
mod ends;
mod laws;
mod letters;
mod located;
mod operators;
mod pasted;
mod permits;
mod planning;
mod precedents;
mod questions;
mod quorum;
mod retrial;
mod returning;
mod rulings;
mod scope;
mod signals;
mod spine;
mod supervision;
mod taking_up;
mod watching;
mod way;
mod world;
