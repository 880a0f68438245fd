//! The client against servers: misbehaving ones in memory, and real ones where they are installed.
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "it/answers.rs"]
mod answers;
#[path = "it/config.rs"]
mod config;
#[path = "it/http.rs"]
mod http;
#[path = "it/lists.rs"]
mod lists;
#[path = "it/opening.rs"]
mod opening;
#[path = "it/real.rs"]
mod real;
#[path = "it/server.rs"]
mod server;
#[path = "it/split.rs"]
mod split;
#[path = "it/streams.rs"]
mod streams;
#[path = "it/targets.rs"]
mod targets;
#[path = "it/tools.rs"]
mod tools;
