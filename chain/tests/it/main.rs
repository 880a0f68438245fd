//! What a user of the chain would notice, through its public face.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod accept;
mod backup;
mod bounds;
mod common;
mod disk;
mod document;
mod erase;
mod faults;
mod formats;
mod fuzzed;
mod golden;
mod growth;
mod heritage;
mod judgments;
mod kill;
mod legal;
mod lineage;
mod lines;
mod meanwhile;
mod offline;
mod operators;
mod order;
mod outside;
mod passphrase;
mod prover;
mod prune;
mod publishing;
mod quota;
mod rotate;
mod standing;
mod state;
mod story;
mod tamper;
mod third_parties;
mod vectors;
mod witness;
