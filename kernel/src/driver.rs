//! Drivers: what really does things, once there is a permit.

use std::{future::Future, pin::Pin, sync::Arc};

use ephor_base::{
    Arguments, Budget, Failure, Kept, Leads, Limits, Located, Outcome, Product, Purpose, Secret, SessionId, ToolName,
    Workspace,
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::door::{Permit, Refusal};
use ephor_runtime::Later;

/// Runs one kind of action. `node` plugs drivers in; the door alone calls them.
pub trait Driver: Send + Sync + 'static {
    /// The most that a run may use; reserved before the verdict. Up to twice of it is believed of what a run reports. Must
    /// not block.
    fn estimate(&self, of: &Estimate<'_>) -> Budget;

    /// Says where the paths of a tool call lead, before it is judged. It looks, and changes nothing. A driver whose tools take paths
    /// and that does not say it has them denied. One whose tools are registered as reversible also keeps what a call replaces: where a
    /// [`Place`](ephor_base::Place) can be kept and was not, the call does not run.
    fn locate(&self, sought: Sought) -> Locating {
        let nowhere = || Leads::Nowhere("its driver does not say where a path leads".to_owned());
        let found = |(argument, _)| Found::only(Located { argument, leads: nowhere() });
        Locating::new(std::future::ready(sought.paths.into_iter().map(found).collect()))
    }

    /// Does it. The permit is the only source of what to do.
    ///
    /// The future is dropped at the permit's deadline, and a moment after cancellation if it has not ended by itself;
    /// dropping it must leave nothing running. It may panic: the door records that as a failure.
    fn run(&self, permit: Permit, context: CallContext) -> Running;
}

/// The paths of a tool call, to be followed to what they name.
#[derive(Clone, Debug)]
pub struct Sought {
    /// The session that asks.
    pub session: SessionId,
    /// The tool that is to run.
    pub tool: ToolName,
    /// All of its arguments: a driver that can say what the call makes of a file works it out from them.
    pub arguments: Arguments,
    /// The folder that paths are relative to.
    pub workspace: Workspace,
    /// Each argument that is a path, and that path. By its spelling each stays in the workspace.
    pub paths: Vec<(String, String)>,
    /// Whether the call replaces what is there, so that its content counts too.
    pub replaces: bool,
}

/// Where a path of a call leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// What the call is judged by.
    pub located: Located,
    /// What the call replaces there.
    pub kept: Option<Kept>,
}

impl Found {
    /// Nothing is kept.
    #[must_use]
    pub const fn only(located: Located) -> Self {
        Self { located, kept: None }
    }
}

/// A driver on its way along paths.
pub struct Locating(Pin<Box<dyn Future<Output = Vec<Found>> + Send>>);

impl Locating {
    /// Boxes a driver's future.
    pub fn new(future: impl Future<Output = Vec<Found>> + Send + 'static) -> Self {
        Self(Box::pin(future))
    }

    pub(crate) fn into_inner(self) -> Pin<Box<dyn Future<Output = Vec<Found>> + Send>> {
        self.0
    }
}

/// What a driver is told of a call before there is a verdict on it: names and sizes, and no content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Estimate<'a> {
    /// A model is to be asked.
    Model {
        /// Who serves it.
        provider: &'a str,
        /// Its name there.
        name: &'a str,
        /// The bytes of everything it is shown, descriptions of tools among them.
        shown_bytes: usize,
        /// The most tokens it may answer with.
        max_output_tokens: u64,
        /// What for.
        purpose: Purpose,
    },
    /// A tool is to run.
    Tool {
        /// The tool.
        name: &'a ToolName,
        /// The bytes of its arguments, in canonical form.
        arguments_bytes: usize,
        /// The caps of its registration.
        limits: Limits,
    },
    /// A reply is to be sent.
    Reply {
        /// The bytes of its text.
        text_bytes: usize,
    },
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

/// Where a driver shows its work while it is at it. Bounded, and emptied by the door whether or not anybody watches.
#[derive(Clone, Debug)]
pub struct Preview(mpsc::Sender<PreviewItem>);

impl Preview {
    pub(crate) fn channel(depth: usize) -> (Self, mpsc::Receiver<PreviewItem>) {
        let (sender, receiver) = mpsc::channel(depth);
        (Self(sender), receiver)
    }

    /// Shows `item`. If there is no watcher, nothing happens.
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
    /// [`NoSecret`]: the registration does not name it, or the node has none of that name. Nothing is recorded then.
    pub async fn lease(&self, name: &str) -> Result<Secret<String>, NoSecret> {
        self.inner.lease(name).await
    }
}

/// A secret was not leased.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoSecret {
    /// The node has no such secret, or could not record that it is leased.
    #[error("there is no secret `{0}`")]
    Missing(String),
    /// What the operator registered does not name it: a bug of the driver, or an attack.
    #[error("the secret `{0}` is not among those that the registration names")]
    NotRegistered(String),
    /// The call is over that it was wanted for.
    #[error("the call is over that the secret `{0}` was wanted for")]
    Over(String),
}

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
