//! The grammars of model APIs, as functions of bytes and types.
//!
//! A [`Request`] becomes the bytes of an HTTP request ([`encode()`]), and the bytes of its response become [`Event`]s and one
//! [`Answer`] ([`Decoder`]), in five grammars: Anthropic Messages, OpenAI Chat Completions and Responses, Gemini, and Ollama's chat.
//! What a provider refuses becomes a [`Complaint`] with a [`Recourse`]; what it reports becomes [`Reported`] tokens, from which
//! an [`Estimator`] learns.
//!
//! What never happens here: there is no I/O, no clock, no task and no key. A model's tool arguments are neither parsed nor repaired, and the
//! state that a provider wants back goes back byte for byte. However the bytes of a response are cut, the events and the answer are the
//! same; whatever a provider sends, no more of it is kept than [`Limits`] say.
//!
//! From the bottom upwards:
//! - [`grammar`]: which grammars there are, and what is constant in each.
//! - `json`: reads an object leniently and writes one in order.
//! - [`request`]: what a model is asked, and the names of tools on the wire.
//! - [`complaint`]: what a provider's refusals mean.
//! - [`answer`]: what a model says.
//! - `framing`: cuts a response into JSON objects.
//! - [`encode`](mod@encode) and [`decode`]: the five grammars, each way.
//! - [`estimate`]: how many tokens a request will be.

pub mod answer;
pub mod complaint;
pub mod decode;
pub mod encode;
pub mod estimate;
mod framing;
pub mod grammar;
mod json;
pub mod request;

pub use answer::{Answer, Cut, End, Event, Reported};
pub use complaint::{Complaint, Recourse};
pub use decode::{Broken, Decoder, Limits};
pub use encode::{Encoded, encode};
pub use estimate::{Estimator, Sizes};
pub use grammar::{Auth, Dialect, Feature, Grammar};
pub use request::{
    Cache, Delivery, Effort, Image, Message, ModelName, Output, Part, Request, Sampling, Schema, Shown, State,
    Thinking, ToolEnd, ToolResult,
};
