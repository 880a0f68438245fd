//! Drivers: what really does things, once there is a permit.

use std::{future::Future, pin::Pin, sync::Arc};

use ephor_base::{Arguments, Budget, Failure, Outcome, Product, Secret, Task, ToolName};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    door::{Permit, Refusal},
    runtime::Later,
};

/// Runs one kind of action. `node` plugs drivers in; the door alone calls them.
pub trait Driver: Send + Sync + 'static {
    /// The most that doing `task` may use; reserved before it runs. Must not block.
    fn estimate(&self, task: &Task) -> Budget;

    /// Does it. The permit is the only source of what to do.
    ///
    /// The future is dropped at the permit's deadline, and a moment after cancellation if it has not ended by itself;
    /// dropping it must leave nothing running. It may panic: the door records that as a failure.
    fn run(&self, permit: Permit, context: CallContext) -> Running;
}

/// A driver at work.
pub struct Running(Pin<Box<dyn Future<Output = DriverResult> + Send>>);

impl Running {
    /// Boxes a driver's future.
    pub fn new(future: impl Future<Output = DriverResult> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    pub(crate) fn into_inner(self) -> Pin<Box<dyn Future<Output = DriverResult> + Send>> {
        self.0
    }
}

/// What a driver made or why not, and what it used either way.
#[derive(Debug)]
pub struct DriverResult {
    /// The product, or the failure.
    pub end: Result<Product, Failure>,
    /// What was really used. `wall_ms` is filled in by the door.
    pub used: Budget,
}

impl DriverResult {
    /// It went well.
    #[must_use]
    pub const fn done(product: Product, used: Budget) -> Self {
        Self { end: Ok(product), used }
    }

    /// It did not.
    #[must_use]
    pub const fn failed(failure: Failure, used: Budget) -> Self {
        Self { end: Err(failure), used }
    }
}

/// Something seen of a running call. Never a fact: only the recorded outcome is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PreviewItem {
    /// More of the model's text.
    Text(String),
    /// The model begins to call a tool.
    ToolUse(String),
    /// How far the work is, in words.
    Progress(String),
}

/// Where a driver shows its work while it is at it. Bounded: a slow watcher slows the driver, never fills memory.
#[derive(Clone, Debug)]
pub struct Preview(mpsc::Sender<PreviewItem>);

impl Preview {
    pub(crate) fn channel(depth: usize) -> (Self, mpsc::Receiver<PreviewItem>) {
        let (sender, receiver) = mpsc::channel(depth);
        (Self(sender), receiver)
    }

    /// Shows `item`; waits if the watcher is behind. If nobody watches, nothing happens.
    pub async fn show(&self, item: PreviewItem) {
        // A watcher that left is no reason to stop working.
        let _gone: Result<(), _> = self.0.send(item).await;
    }
}

/// What a driver may use of the kernel while it runs.
pub struct CallContext {
    pub(crate) preview: Preview,
    pub(crate) cancel: CancellationToken,
    pub(crate) inner: Arc<dyn InnerDoor>,
}

impl CallContext {
    /// Where to show work in progress.
    #[must_use]
    pub const fn preview(&self) -> &Preview {
        &self.preview
    }

    /// Resolves when the call is cancelled.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }

    /// Whether the call is cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Asks the door for a tool call inside this one. It gets a verdict of its own; the rights are what this tool's
    /// registration lists and the caller has. It is cut off with this call, and the seat pays for all but its time.
    ///
    /// # Errors
    /// [`Refusal`]: nothing ran.
    pub async fn nested(&self, tool: ToolName, arguments: Arguments) -> Result<Outcome, Refusal> {
        self.inner.nested(tool, arguments).await
    }

    /// Takes the secret `name` out of the node's keeping, on the record.
    ///
    /// # Errors
    /// [`NoSecret`] if the node has none of that name; nothing is recorded then.
    pub async fn lease(&self, name: &str) -> Result<Secret<String>, NoSecret> {
        self.inner.lease(name).await
    }
}

/// The node has no such secret.
#[derive(Clone, Debug, thiserror::Error)]
#[error("there is no secret `{0}`")]
pub struct NoSecret(pub String);

/// The door as one running call sees it.
pub(crate) trait InnerDoor: Send + Sync {
    fn nested(&self, tool: ToolName, arguments: Arguments) -> Later<Result<Outcome, Refusal>>;
    fn lease(&self, name: &str) -> Later<Result<Secret<String>, NoSecret>>;
}

/// Where secrets are kept. `node` provides it.
pub trait Secrets: Send + Sync + 'static {
    /// The secret `name`, if there is one.
    fn secret(&self, name: &str) -> Option<Secret<String>>;
}
