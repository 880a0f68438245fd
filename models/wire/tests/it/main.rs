//! The grammars, through the public face.

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
