//! Why a request got no response, or not all of it.

use std::{error::Error as _, net::IpAddr, time::Duration};

/// What went wrong with a connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Error {
    /// The policy does not name this place. Nothing was sent: the caller asked for what is not configured.
    #[error("connections to `{0}` are not allowed by the configuration")]
    Forbidden(String),
    /// The call is over that the request is for: its time is up, or its process has ended. Nothing was sent.
    #[error("the call is over that the request was for")]
    Over,
    /// The name leads to an address that is not allowed. Nothing was sent: either the name is misused, or the operator
    /// has to name the address.
    #[error("`{name}` leads to {address}, which is not a public address")]
    Address {
        /// The host.
        name: String,
        /// Where it leads.
        address: IpAddr,
    },
    /// This node cannot make such connections at all: no certificate authorities, for instance. Nothing was sent.
    #[error("no connection can be made from this node: {0}")]
    Setup(String),
    /// No connection. Nothing was sent.
    #[error("cannot connect to `{host}`: {why}")]
    Connect {
        /// The host.
        host: String,
        /// What the system says.
        why: String,
    },
    /// The response did not begin in time. What was sent may have had its effect.
    #[error("`{host}` did not begin to answer within {} s", after.as_secs())]
    Silent {
        /// The host.
        host: String,
        /// How long that is.
        after: Duration,
    },
    /// Nothing more came for too long. What was sent may have had its effect.
    #[error("nothing came from `{host}` for {} s", after.as_secs())]
    Idle {
        /// The host.
        host: String,
        /// How long.
        after: Duration,
    },
    /// The connection broke. What was sent may have had its effect.
    #[error("the connection to `{host}` broke: {why}")]
    Broken {
        /// The host.
        host: String,
        /// What the system says.
        why: String,
    },
    /// The response is longer than the policy allows. The rest was not read.
    #[error("the response of `{host}` is longer than {limit} bytes")]
    TooLarge {
        /// The host.
        host: String,
        /// The cap.
        limit: u64,
    },
}

/// An address that the policy refuses, on its way through the connector.
#[derive(Clone, Debug, thiserror::Error)]
#[error("`{name}` leads to {address}, which is not allowed")]
pub(crate) struct RefusedAddress {
    pub(crate) name: String,
    pub(crate) address: IpAddr,
}

impl Error {
    /// Sorts out what the HTTP library met.
    pub(crate) fn of(host: &str, error: &reqwest::Error) -> Self {
        if let Some(RefusedAddress { name, address }) = refused(error) {
            return Self::Address { name: name.clone(), address: *address };
        }
        if error.is_builder() {
            return Self::Setup(causes(error));
        }
        if error.is_connect() {
            return Self::Connect { host: host.to_owned(), why: causes(error) };
        }
        Self::Broken { host: host.to_owned(), why: causes(error) }
    }
}

fn refused(error: &reqwest::Error) -> Option<&RefusedAddress> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(refused) = error.downcast_ref() {
            return Some(refused);
        }
        cause = error.source();
    }
    None
}

/// The innermost causes say most; the outer ones repeat the URL.
fn causes(error: &reqwest::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if texts.last().is_none_or(|last| !last.contains(&text)) {
            texts.push(text);
        }
        cause = error.source();
    }
    if texts.is_empty() { "no reason is given".to_owned() } else { texts.join(": ") }
}
