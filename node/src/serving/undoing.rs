//! Putting back what a session has written: an errand of its agent, through the door like everything else.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    pin::Pin,
};

use anyhow::Context;
use ephor_agents::{Calls, Errands};
use ephor_base::{MessageId, Part, PartKind, Seq, SessionId};
use tokio::sync::Mutex;

use super::boot::Node;
use crate::{
    protocol::Answer,
    undo::{self, Undo, Writes},
};

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
        let Undo { files, left } = self.written(session, to).await?;
        let (files, calls): (Vec<_>, Vec<_>) = files.into_iter().unzip();
        if dry_run || files.is_empty() {
            return Ok(Answer::Undoing { files, left, message: None });
        }
        let tool = undo::tool()?;
        let calls = calls.into_iter().map(|arguments| (tool.clone(), arguments)).collect();
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
        let log = self.log().clone();
        log.flush().await?;
        let read = tokio::task::spawn_blocking(move || {
            let mut writes = Writes::from(to);
            for stored in log.entries().only_of(BTreeSet::from([session])) {
                writes.take(stored.context("see `ephor chain verify`")?);
            }
            anyhow::Ok(writes.undo())
        });
        read.await?
    }
}
