//! Attacks and faults that were once found, each as one named test through the binary, so that no later change opens a door
//! again. Those that no binary can show stand in the tests of their crate.
//!
//! Nothing here looks at a clock to judge; time limits only turn a hung process into a failed test.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "../story/place.rs"]
mod place;

#[path = "../story/wire.rs"]
#[expect(dead_code, reason = "the stories use the rest")]
mod wire;

mod commands;
mod door;
mod files;
mod first_hour;
mod models;
mod paste;
mod providers;
mod question;
mod record;
mod shapes;
mod socket;
mod stopping;
