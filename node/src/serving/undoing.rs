//! Showing what a session has written, and putting it back: an errand of its agent, through the door like everything else.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
};

use anyhow::{Context, ensure};
use ephor_agents::{Calls, Errands};
use ephor_base::{MessageId, Part, PartKind, Seq, SessionId};
use ephor_chain::Stored;
use tokio::sync::Mutex;

use super::boot::Node;
use crate::{
    changes::Changes,
    protocol::Answer,
    undo::{Undo, Writes},
};

/// Bytes of changes after which no more go into one message. With one more of the largest, each written as JSON, it stays below what a message may have.
const PAGE: usize = 1 << 20;

/// The errands that were sent and not taken up yet.
#[derive(Default)]
pub(crate) struct Undoings(Mutex<BTreeMap<MessageId, Calls>>);

impl Errands for Undoings {
    fn take(&self, message: MessageId) -> Pin<Box<dyn Future<Output = Option<Calls>> + Send + '_>> {
        Box::pin(async move { self.0.lock().await.remove(&message) })
    }
}

impl Node {
    /// Has the agent of an open session put back what the session has written since the entry `to`; with `dry_run` only says what that is.
    pub(super) async fn undo(&self, session: SessionId, to: Option<Seq>, dry_run: bool) -> anyhow::Result<Answer> {
        let to = to.unwrap_or(Seq(0));
        let Undo { chains, left } = self.written(session, to).await?;
        let (files, calls) = Undo::calls(chains)?;
        if dry_run || files.is_empty() {
            return Ok(Answer::Undoing { files, left, message: None });
        }
        // No name of a file: a model may have chosen it, and this is the node's own word.
        let text = format!(
            "(ephor undo) Files that were written in this session from entry {to} on may hold again what they held before. Read a file \
             before you rely on what it holds, and write none of them again unless you are asked to."
        );
        // Until its number is known nobody takes a message up.
        let mut sent = self.undoings.0.lock().await;
        let message = self.kernel.send(session, vec![Part { kind: PartKind::Errand, text }]).await?;
        sent.insert(message, calls);
        Ok(Answer::Undoing { files, left, message: Some(message) })
    }

    async fn written(&self, session: SessionId, to: Seq) -> anyhow::Result<Undo> {
        Ok(self.read(session, Writes::from(to), Writes::take).await?.undo())
    }

    /// What a session has changed in its files, but for the first `behind` changes: as many as fit into a message.
    pub(super) async fn changes(&self, session: SessionId, behind: usize) -> anyhow::Result<Answer> {
        let changes = self.read(session, Changes::default(), Changes::take).await?;
        let page = tokio::task::spawn_blocking(move || {
            let unreadable = changes.unreadable();
            let mut left = changes.all().skip(behind).peekable();
            let (mut changes, mut bytes) = (Vec::new(), 0_usize);
            while let Some(changed) = left.next_if(|_| bytes < PAGE) {
                let changed = changed();
                bytes = bytes.saturating_add(changed.bytes());
                changes.push(changed);
            }
            Answer::Changes { changes, all: left.peek().is_none(), unreadable }
        });
        Ok(page.await?)
    }

    /// Hands every entry to `take`, the contents of a session opened. A session that the record does not have is an error.
    async fn read<T: Send + 'static>(
        &self,
        session: SessionId,
        mut into: T,
        take: fn(&mut T, Stored),
    ) -> anyhow::Result<T> {
        let log = self.log().clone();
        log.flush().await?;
        let read = tokio::task::spawn_blocking(move || {
            let mut known = false;
            for stored in log.entries().only_of(BTreeSet::from([session])) {
                let stored = stored.context("see `ephor chain verify`")?;
                known |= stored.entry.subject.session == Some(session);
                take(&mut into, stored);
            }
            ensure!(known, "there is no session `{session}`; `ephor sessions` lists them");
            Ok(into)
        });
        read.await?
    }
}
