//! The mesh through its public face.

#[path = "../common/mod.rs"]
mod common;

mod attacks;
mod delivery;
mod frames;
mod handshake;
mod invite;
mod link;
mod membership;
mod noise_vectors;
mod other_kem;
mod vectors;
