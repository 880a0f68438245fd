//! What can go wrong.

use std::sync::Arc;

use crate::{
    exchange::Closed,
    revision::Disagreement,
    untrusted::Untrusted,
    wire::{Lie, Malformed, Refusal},
};

/// Why a request has no result.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// Too many requests wait, or too much waits to be written. Nothing was sent.
    #[error("the server has too much to do already")]
    Busy,
    /// The request is too long, or its values nest too deeply. Nothing was sent.
    #[error("the request has {bytes} bytes, at most {most} are sent")]
    Large {
        /// Its length.
        bytes: usize,
        /// [`crate::Limits::message_bytes`].
        most: usize,
    },
    /// The server refuses it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The answer is of another form than the protocol says. The request may have been carried out.
    #[error("the server does not keep to the protocol: {0}")]
    Lie(#[from] Lie),
    /// The body that should be the answer is no message. The request may have been carried out.
    #[error("the server does not keep to the protocol: {0}")]
    Malformed(#[from] Malformed),
    /// The server wants something first that it is not given: a model's words, a person's, folders.
    #[error("the server wants input that it is not given")]
    InputRequired,
    /// The channel is over. The request may have been carried out.
    #[error(transparent)]
    Closed(#[from] Closed),
    /// The HTTP exchange has failed.
    #[error(transparent)]
    Http(#[from] HttpFault),
}

/// What can be wrong with an HTTP exchange.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HttpFault {
    /// The request could not be posted.
    #[error("the server cannot be reached: {0}")]
    Unreachable(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The body of the response broke off.
    #[error("the response broke off: {0}")]
    Broken(#[source] Arc<dyn std::error::Error + Send + Sync>),
    /// The server wants to know who asks. OAuth is not spoken here; a header of the configuration may do.
    #[error("the server wants another authorisation (HTTP {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
    },
    /// The server has ended the session. A new connection begins another.
    #[error("the server has ended the session")]
    SessionOver,
    /// The server sends the client elsewhere, where it does not go.
    #[error("the server answers with a redirect (HTTP {status}), which is not followed")]
    Redirect {
        /// The status.
        status: u16,
    },
    /// Another status than a success.
    #[error("the server answers with HTTP {status}: {}", says.legible())]
    Status {
        /// The status.
        status: u16,
        /// The beginning of the body, where it is text.
        says: Untrusted<String>,
    },
    /// A body of a kind that the protocol does not have.
    #[error("the server answers with `{}`", kind.legible())]
    Kind {
        /// Its content type, cut short.
        kind: Untrusted<String>,
    },
    /// The response has ended without an answer.
    #[error("the response has no answer in it")]
    NoAnswer,
    /// The identifier of the session is none.
    #[error("the server names a session with something else than 1 to {most} visible characters")]
    BadSession {
        /// How many there may be.
        most: usize,
    },
}

/// Why there is no list of tools.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ListError {
    /// A page has not come.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There are too many pages.
    #[error("the list has more than {most} pages")]
    Pages {
        /// [`crate::Limits::pages`].
        most: usize,
    },
    /// There are too many tools.
    #[error("the server offers more than {most} tools")]
    Tools {
        /// [`crate::Limits::tools`].
        most: usize,
    },
    /// The tools are too long together.
    #[error("the tools of the server have more than {most} bytes together")]
    Long {
        /// [`crate::Limits::list_bytes`].
        most: usize,
    },
    /// The mark of a next page is too long.
    #[error("the mark of the next page has more than {most} bytes")]
    Cursor {
        /// [`crate::Limits::text_bytes`].
        most: usize,
    },
    /// A page names one before it as the next: there is no end.
    #[error("the pages of the list go in a circle")]
    Repeats,
}

/// Why there is no client.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpenError {
    /// The server did not answer as it should.
    #[error(transparent)]
    Call(#[from] CallError),
    /// There is no revision that both speak, or the answer is none.
    #[error(transparent)]
    Disagreement(#[from] Disagreement),
}
