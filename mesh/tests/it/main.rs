//! The mesh through its public face.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/targets.rs"]
mod targets;

mod attacks;
mod delivery;
mod frames;
mod fuzz;
mod handshake;
mod invite;
mod link;
mod links;
mod membership;
mod noise_vectors;
mod other_kem;
mod vectors;
