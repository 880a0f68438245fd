//! The bytes: JSON within bounds, JSON-RPC messages, and how they follow one another on a stream.

mod json;
mod lines;
mod rpc;
mod sse;

pub(crate) use json::{Fields, object, read as read_json, to_bytes};
pub use json::{Lie, Malformed};
pub use lines::{Lines, TooLong};
pub use rpc::{Message, Refusal, Returned, parse};
pub(crate) use rpc::{notification, reply, request, unsupported};
pub use sse::Events;
