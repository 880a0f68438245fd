//! The grammars, through the public face.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod bounds;
mod common;
mod complaint;
mod corpus;
mod encode;
mod estimate;
mod names;
mod odd;
mod round_trip;
mod server;
mod targets;
