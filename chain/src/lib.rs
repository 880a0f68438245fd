//! Remembers: the ExoChain, its signatures, proofs, payload vault and verifier.
