//! WASM tools as the kernel sees them.

use crate::call::{Access, GuestAnswer, GuestCall, GuestFailure};
use crate::engine::Engine;
use crate::guest::Guest;
use crate::limits::LimitReached;
use crate::workspace::OpenWorkspace;
use ephor_base::{Budget, Digest, Failure, FailureKind, Product, Task, ToolAnswer, ToolName, ToolTask};
use ephor_kernel::{CallContext, Driver, DriverResult, Permit, PreviewItem, Running};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs the tools of a set of components. Its calls hold nothing between them.
#[derive(Clone)]
pub struct WasmDriver {
    engine: Engine,
    tools: Arc<BTreeMap<ToolName, Guest>>,
}

impl WasmDriver {
    /// A driver for `tools`; of two with one name the later counts.
    pub fn new(engine: Engine, tools: impl IntoIterator<Item = (ToolName, Guest)>) -> Self {
        Self { engine, tools: Arc::new(tools.into_iter().collect()) }
    }

    /// The digest of the component that serves `tool`, to be compared with its registration.
    pub fn code(&self, tool: &ToolName) -> Option<Digest> {
        self.tools.get(tool).map(Guest::digest)
    }

    async fn call(self, permit: Permit, context: CallContext) -> Result<Product, Failure> {
        let Task::Tool(task) = permit.task() else {
            return Err(Failure::new(FailureKind::Crashed, "the tool driver was given something that is no tool call"));
        };
        let Some(guest) = self.tools.get(&task.name) else {
            let message = format!("no component serves the tool `{}`", task.name);
            return Err(Failure::new(FailureKind::Crashed, message));
        };
        if !guest.is_ready() {
            let text = "compiling the tools; this happens once".to_owned();
            context.preview().show(PreviewItem::Progress(text)).await;
        }
        let component = guest.ready().await.map_err(|error| Failure::new(FailureKind::Crashed, error.to_string()))?;
        let call = guest_call(task, &permit).await?;
        match self.engine.run(component, call, context.cancelled()).await {
            Ok(answer) => Ok(Product::Tool(ToolAnswer { text: told(&answer), failed: false })),
            Err(GuestFailure::Tool { message, .. }) => Ok(Product::Tool(ToolAnswer { text: message, failed: true })),
            Err(failure) => Err(Failure::new(kind(&failure), failure.to_string())),
        }
    }
}

impl Driver for WasmDriver {
    fn estimate(&self, task: &Task) -> Budget {
        let wall_ms = match task {
            Task::Tool(task) => task.limits.deadline_ms,
            Task::Model(_) | Task::Reply(_) => 0,
        };
        Budget { tool_calls: 1, wall_ms, ..Budget::ZERO }
    }

    fn run(&self, permit: Permit, context: CallContext) -> Running {
        let driver = self.clone();
        Running::new(async move {
            let end = driver.call(permit, context).await;
            DriverResult { end, used: Budget { tool_calls: 1, ..Budget::ZERO } }
        })
    }
}

async fn guest_call(task: &ToolTask, permit: &Permit) -> Result<GuestCall, Failure> {
    let path = task.workspace.path().to_owned();
    // Opening waits for the disk.
    let opened = tokio::task::spawn_blocking(move || OpenWorkspace::open(&path)).await;
    let workspace = match opened {
        Ok(Ok(workspace)) => workspace,
        Ok(Err(error)) => return Err(Failure::new(FailureKind::Workspace, error.to_string())),
        Err(error) => return Err(Failure::new(FailureKind::Crashed, error.to_string())),
    };
    let mut limits = task.limits;
    limits.deadline_ms = limits.deadline_ms.min(u64::try_from(permit.time_limit().as_millis()).unwrap_or(u64::MAX));
    Ok(GuestCall {
        tool: task.name.to_string(),
        arguments: task.arguments.to_json(),
        workspace,
        access: if task.writes { Access::ReadWrite } else { Access::ReadOnly },
        // The same for every attempt of a call: run again, a guest that does not depend on files does the same again.
        seed: Digest::of_parts(&[b"ephor guest seed ", permit.call().to_string().as_bytes()]).0,
        limits,
    })
}

/// What a model is told: the content as it is, then a line in brackets with the summary, then one for each omission.
fn told(answer: &GuestAnswer) -> String {
    let mut text = answer.content.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&format!("[{}]\n", answer.summary));
    for sentence in &answer.omitted {
        text.push_str(&format!("[left out: {sentence}]\n"));
    }
    text
}

fn kind(failure: &GuestFailure) -> FailureKind {
    match failure {
        GuestFailure::Limit(LimitReached::Fuel { .. }) => FailureKind::Fuel,
        GuestFailure::Limit(LimitReached::Deadline { .. }) => FailureKind::Deadline,
        GuestFailure::Limit(LimitReached::Memory { .. }) => FailureKind::Memory,
        GuestFailure::Limit(LimitReached::Output { .. }) => FailureKind::Output,
        GuestFailure::Limit(LimitReached::Handles { .. }) | GuestFailure::Trap { .. } => FailureKind::Trap,
        GuestFailure::Cancelled => FailureKind::Interrupted,
        GuestFailure::NotStarted { .. } | GuestFailure::Tool { .. } => FailureKind::Crashed,
    }
}
