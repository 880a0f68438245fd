//! A client of one server.

mod call;
mod error;
mod http;
mod link;
mod open;
mod stream;

use std::{collections::BTreeSet, sync::Arc};

use ephor_base::{Arguments, arguments::Value};
pub use error::{CallError, HttpFault, ListError, OpenError};
pub use http::{Post, PostError, Response};
use link::Link;
pub use open::{Connection, Opening};
pub use stream::Driver;

use crate::{
    answer::Answer,
    exchange::{Log, Notices, Progress, Wait},
    revision::{Agreed, Revision, ServerInfo},
    tools::{ServerName, Tool, ToolList, encoded},
    untrusted::Untrusted,
    wire::{Fields, Lie, object, to_bytes},
};

/// A client of a server with which a revision was agreed on. Clones speak over the same connection, and calls may overlap.
///
/// When the last clone is dropped, the input of the server is closed once everything is written.
#[derive(Clone)]
pub struct Client {
    link: Arc<Link>,
    agreed: Arc<Agreed>,
}

impl Client {
    const fn new(link: Arc<Link>, agreed: Arc<Agreed>) -> Self {
        Self { link, agreed }
    }

    /// The revision that was agreed on.
    #[must_use]
    pub fn revision(&self) -> Revision {
        self.agreed.revision
    }

    /// What the server says of itself.
    #[must_use]
    pub fn server(&self) -> &Untrusted<ServerInfo> {
        &self.agreed.server
    }

    /// What the server has said so far that was no answer.
    #[must_use]
    pub fn notices(&self) -> Notices {
        self.link.shared().with(|exchange| exchange.notices())
    }

    /// Takes the log messages that have come since the last time.
    #[must_use]
    pub fn take_logs(&self) -> Vec<Log> {
        self.link.shared().with(|exchange| exchange.take_logs())
    }

    /// Lists the tools of the server, which its owner calls `name`. The list of a server that offers no tools is empty.
    ///
    /// # Errors
    /// [`ListError`]; nothing of the list is kept.
    pub async fn tools(&self, name: &ServerName) -> Result<ToolList, ListError> {
        if !self.agreed.offers_tools {
            return Ok(ToolList::default());
        }
        let limits = *self.link.limits();
        let (mut offered, mut bytes, mut cursor, mut seen) = (Vec::new(), 0_usize, None, BTreeSet::new());
        for _ in 0..limits.pages {
            let params = cursor.take().map_or_else(|| object([]), |cursor| object([("cursor", Value::Text(cursor))]));
            let page = self.ask("tools/list", params, Vec::new(), Wait::Cancellable, &mut |_| ()).await?;
            let mut fields = Fields::of(page, "result").map_err(CallError::Lie)?;
            let page = fields.list("tools").map_err(CallError::Lie)?;
            let page = page.ok_or_else(|| CallError::Lie(Lie::new("result.tools", "a list")))?;
            bytes = page.iter().fold(bytes, |bytes, tool| bytes.saturating_add(to_bytes(tool).len()));
            offered.extend(page);
            if offered.len() > limits.tools {
                return Err(ListError::Tools { most: limits.tools });
            }
            if bytes > limits.list_bytes {
                return Err(ListError::Long { most: limits.list_bytes });
            }
            match fields.text("nextCursor").map_err(CallError::Lie)? {
                None => return Ok(ToolList::read(name, offered, &limits)),
                Some(next) if next.len() > limits.text_bytes => {
                    return Err(ListError::Cursor { most: limits.text_bytes });
                }
                Some(next) if !seen.insert(next.clone()) => return Err(ListError::Repeats),
                Some(next) => cursor = Some(next),
            }
        }
        Err(ListError::Pages { most: limits.pages })
    }

    /// Calls a tool of the server. To give the call up, drop the future: the server is told when it is next written to. `progress` hears how
    /// far the server says it is.
    ///
    /// # Errors
    /// [`CallError`]. Whether the tool has run is known only of [`CallError::Busy`] and [`CallError::Large`]: then it has not. A tool that
    /// could not do what it was asked is no error: see [`Answer::failed`].
    pub async fn call(
        &self,
        tool: &Tool,
        arguments: &Arguments,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Result<Untrusted<Answer>, CallError> {
        let own = arguments.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
        let params = object([("name", Value::Text(tool.wire().to_owned())), ("arguments", Value::Object(own))]);
        let mut headers = vec![("mcp-name".to_owned(), encoded(tool.wire()))];
        headers.extend(tool.repeated(arguments));
        let result = self.ask("tools/call", params, headers, Wait::Cancellable, progress).await?;
        Ok(Answer::read(result, self.link.limits())?)
    }

    /// Whether the server still answers. Where the revision has no `ping`, it is asked who it is.
    ///
    /// # Errors
    /// [`CallError`].
    pub async fn ping(&self) -> Result<(), CallError> {
        let method = if self.revision().is_stateless() { "server/discover" } else { "ping" };
        self.ask(method, object([]), Vec::new(), Wait::Cancellable, &mut |_| ()).await.map(drop)
    }

    /// Has the server say when its tools change, until it ends that or the future is dropped; [`Notices::changes`] counts it. Where the
    /// revision has a handshake, a server on a stream says so unasked, and this ends at once.
    ///
    /// # Errors
    /// [`CallError`]; a server need not offer this.
    pub async fn listen(&self) -> Result<(), CallError> {
        if !self.revision().is_stateless() {
            return Ok(());
        }
        let params = object([("notifications", object([("toolsListChanged", Value::Bool(true))]))]);
        self.ask("subscriptions/listen", params, Vec::new(), Wait::Listening, &mut |_| ()).await.map(drop)
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("agreed", &self.agreed).finish_non_exhaustive()
    }
}
