//! Remembers: the ExoChain, its signatures, proofs, payload vault and verifier.

pub mod entry;
pub mod record;
