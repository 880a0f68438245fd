//! What memory does, told through its public face. One file for each module.
#![expect(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod chunks;
mod common;
mod graph;
mod index;
mod recall;
mod spectral;
mod tick;
