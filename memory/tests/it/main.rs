//! What memory does, told through its public face. One file for each module.

mod chunks;
mod common;
mod graph;
mod index;
mod recall;
mod spectral;
mod tick;
