//! What a user of the runtime would notice, through its public face.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may stop at the first surprise"
)]

mod engine;
mod links;
mod named;
mod runtime;
mod timers;
