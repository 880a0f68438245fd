//! A client of the Model Context Protocol (MCP), over transports that its caller brings.
//!
//! A [`Connection`] is made over a pair of byte streams ([`Connection::over_stream`]) or over a way to post bytes
//! ([`Connection::over_http`]), and opened to a [`Client`]. The client lists the tools of its server ([`ToolList`]) and calls them. What
//! a server says comes back [`Untrusted`], within [`Limits`].
//!
//! What never happens here: no process is started, no task is spawned, no connection is made, no clock and no environment is read. A
//! deadline is its caller's: a call whose future is dropped is cancelled, and its server told. The server gets nothing but answers to
//! its pings: it is offered no model, no folders and no person. Whatever a server sends, memory stays bounded, and nothing panics.
//!
//! From the bottom upwards:
//! - [`limits`] and [`untrusted`]: how much of a server's words is kept, and the mark that they bear.
//! - [`wire`]: JSON within bounds, JSON-RPC messages, lines and events.
//! - [`tools`]: tools as data for a registration, their digests, their differences, their names.
//! - [`answer`]: what a tool answers.
//! - [`revision`]: the revisions of the protocol, and how client and server agree on one.
//! - [`exchange`]: what waits for an answer, and what a server said that was no answer; pure.
//! - [`client`]: the two transports, and the client over them.
//! - [`config`]: a `mcpServers` file.

pub mod answer;
pub mod client;
pub mod config;
pub mod exchange;
pub mod limits;
pub mod revision;
pub mod tools;
pub mod untrusted;
pub mod wire;

pub use answer::{Answer, Media, Omitted, Part};
pub use client::{
    CallError, Client, Connection, Driver, HttpFault, ListError, OpenError, Opening, Post, PostError, Response,
};
pub use config::{ConfigError, ConfigFault, Configured, Servers, Way};
pub use exchange::{Closed, Log, Notices, Progress};
pub use limits::Limits;
pub use revision::{Revision, ServerInfo};
pub use tools::{Aspect, Difference, Hints, Rejected, Rejection, ServerName, Tool, ToolList};
pub use untrusted::Untrusted;
pub use wire::{Lie, Malformed, Message, Refusal, Returned, parse};
