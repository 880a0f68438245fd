//! One call of one guest, from its arguments to its answer.

use crate::bindings::exports::ephor::tool::guest;
use crate::component::Component;
use crate::engine::Engine;
use crate::host::Emitted;
use crate::limits::{DEFAULT_LIMITS, LimitReached};
use crate::locate::Held;
use crate::output::Printed;
use crate::store::{self, MOST_HANDLES, State};
use crate::threads::GRACE;
use crate::workspace::OpenWorkspace;
use ephor_base::{Limits, SessionId};
use serde::{Deserialize, Serialize};
use std::future::Future;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::oneshot;
use wasmtime::{Store, Trap};
use wasmtime_wasi::{I32Exit, ResourceTableError};

/// Instructions between two looks at cancellation and deadline when nobody ticks: some dozen milliseconds.
const FUEL_BETWEEN_LOOKS: u64 = 100_000_000;

/// How long a call that is cancelled is waited for. Short: its caller is told within half a second.
const CANCEL_GRACE: Duration = Duration::from_millis(300);

/// Characters of what a broken guest printed last that go into the error: a panic message.
const LAST_WORDS: usize = 300;

/// What a guest may do with its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read what is in it.
    ReadOnly,
    /// Change it too.
    ReadWrite,
}

/// One call of one tool. Everything the guest gets is here.
#[derive(Clone, Debug)]
pub struct GuestCall {
    /// The name of the tool, as the guest describes it.
    pub tool: String,
    /// One JSON object, as text.
    pub arguments: String,
    /// The directory the guest sees as `/`.
    pub workspace: OpenWorkspace,
    /// What it may do there.
    pub access: Access,
    /// The places that the call was judged by: the only ones it may replace, and the only ones it opens of those withheld.
    pub files: Vec<Held>,
    /// Which paths hold what a guest is not shown unless the call was judged by them.
    pub withheld: fn(&str) -> bool,
    /// The session that asks; none for the node itself.
    pub session: Option<SessionId>,
    /// Where the guest's randomness comes from. The same seed, arguments and files give the same answer.
    pub seed: [u8; 32],
    /// What the call may use.
    pub limits: Limits,
}

/// What a guest answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestAnswer {
    /// The answer, for the model. At most [`Limits::output_bytes`] together with the other two.
    pub content: String,
    /// One line that says what was done.
    pub summary: String,
    /// One sentence for each thing the answer leaves out.
    pub omitted: Vec<String>,
    /// What the guest printed, for the log and not for the model.
    pub printed: String,
    /// Fuel the guest used.
    pub fuel: u64,
    /// The limit that ended the call before its end, if one did, and what it was at: then there is no summary, and what comes after is
    /// left out.
    pub cut: Option<(LimitReached, String)>,
}

/// One tool of a component, in the component's own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// For instance `fs.read`.
    pub name: String,
    /// For a model.
    pub description: String,
    /// The JSON Schema of the arguments, as text.
    pub input: String,
}

/// Why there is no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GuestFailure {
    /// The tool itself says no; the text is a sentence for the model. The fault is the caller's, or the system's below.
    #[error("{message}")]
    Tool {
        /// What sort of no it is.
        kind: ToolFailure,
        /// The tool's sentence.
        message: String,
    },
    /// A limit was reached.
    #[error(transparent)]
    Limit(#[from] LimitReached),
    /// The guest broke: it panicked, exited, or left its memory. What it had written stays written. The guest's fault.
    #[error("the tool broke down: {reason}")]
    Trap {
        /// What happened, in the runtime's words, and the last of what it printed.
        reason: String,
    },
    /// The call was cancelled. What the guest had written by then stays written.
    #[error("the tool was cancelled")]
    Cancelled,
    /// The guest could not be started. Nothing was done. The node's fault.
    #[error("the tool could not be started: {reason}")]
    NotStarted {
        /// What was in the way.
        reason: String,
    },
}

/// The sorts of no a tool has. See `wit/tool.wit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolFailure {
    /// The component has no such tool.
    UnknownTool,
    /// The arguments do not fit.
    InvalidArguments,
    /// What they name does not exist.
    NotFound,
    /// The tool does not do this for any caller.
    Refused,
    /// The system below failed.
    Io,
    /// The tool could not do what was asked, for a reason of its own.
    Failed,
}

impl Engine {
    /// Runs one call in a store of its own, under its limits.
    ///
    /// `cancelled` ends the call when it resolves; the guest is gone when this returns. Dropping this future ends the
    /// guest too, within a tick. The guest runs, and waits for the disk, on a thread of the runtime's blocking pool, so no
    /// worker waits with it. Needs a tokio runtime with time.
    pub async fn run(
        &self,
        component: &Component,
        call: GuestCall,
        cancelled: impl Future<Output = ()>,
    ) -> Result<GuestAnswer, GuestFailure> {
        let (component, limits, session) = (component.clone(), call.limits, call.session);
        let emitted = Emitted::new(limits.output_bytes);
        let run = emitted.clone();
        match self.guest((session, limits), run, cancelled, move |run| run.answer(component, call)).await {
            Err(GuestFailure::Limit(reached)) => cut(reached, &emitted),
            outcome => outcome,
        }
    }

    /// Asks a component what tools it has. It sees no workspace while it says so.
    pub async fn describe(&self, component: &Component) -> Result<Vec<Description>, GuestFailure> {
        let component = component.clone();
        let emitted = Emitted::new(DEFAULT_LIMITS.output_bytes);
        self.guest((None, DEFAULT_LIMITS), emitted, std::future::pending(), move |run| run.describe(component)).await
    }

    /// Runs `body` on a thread of its own until it ends, its deadline passes, it is cancelled or this future is dropped.
    async fn guest<T, F, B>(
        &self,
        (session, limits): (Option<SessionId>, Limits),
        emitted: Emitted,
        cancelled: impl Future<Output = ()>,
        body: B,
    ) -> Result<T, GuestFailure>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, GuestFailure>>,
        B: FnOnce(Run) -> F + Send + 'static,
    {
        let mut cancelled = std::pin::pin!(cancelled);
        let (stop, stopped) = oneshot::channel::<()>();
        let (deadline_ms, deadline) = (limits.deadline_ms, limits.deadline());
        let run = Run { engine: self.clone(), limits, printed: Printed::new(limits.output_bytes), emitted };
        let handle = tokio::runtime::Handle::current();
        let thread = self.threads().run(session, deadline.saturating_add(GRACE), move |_| {
            run.engine.note_start();
            handle.block_on(async move {
                tokio::select! {
                    biased;
                    // The sender is dropped together with the future that waits for this thread.
                    _ = stopped => Err(GuestFailure::Cancelled),
                    outcome = body(run) => outcome,
                    // Looked at whenever the guest waits in a host call, and while it computes at every tick.
                    () = tokio::time::sleep(deadline) => Err(LimitReached::Deadline { deadline_ms }.into()),
                }
            })
        });
        let mut thread = std::pin::pin!(thread);
        tokio::select! {
            biased;
            () = &mut cancelled => {
                drop(stop);
                let _given_up = tokio::time::timeout(CANCEL_GRACE, thread).await;
                Err(GuestFailure::Cancelled)
            }
            outcome = &mut thread => match outcome {
                Ok(Some(outcome)) => outcome,
                Ok(None) => Err(LimitReached::Deadline { deadline_ms }.into()),
                Err(no_thread) => Err(not_started(no_thread)),
            },
        }
    }
}

/// What a guest had found when a limit ended it.
fn cut(reached: LimitReached, emitted: &Emitted) -> Result<GuestAnswer, GuestFailure> {
    let (content, at) = emitted.take();
    if content.is_empty() && at.is_empty() {
        return Err(reached.into());
    }
    let (summary, omitted, printed) = (String::new(), Vec::new(), String::new());
    Ok(GuestAnswer { content, summary, omitted, printed, fuel: 0, cut: Some((reached, at)) })
}

/// What a running call is measured by.
struct Run {
    engine: Engine,
    limits: Limits,
    printed: Printed,
    emitted: Emitted,
}

impl Run {
    fn store(&self, call: Option<&GuestCall>) -> Result<Store<State>, GuestFailure> {
        let store = store::new_store(self.engine.wasmtime(), call, &self.limits, &self.printed, &self.emitted);
        let mut store = store.map_err(not_started)?;
        store.fuel_async_yield_interval(Some(FUEL_BETWEEN_LOOKS)).map_err(not_started)?;
        store.set_epoch_deadline(1);
        // At every tick the guest stands still for a moment, in which its cancellation and its deadline are seen.
        store.epoch_deadline_async_yield_and_update(1);
        Ok(store)
    }

    async fn answer(self, component: Component, call: GuestCall) -> Result<GuestAnswer, GuestFailure> {
        let mut store = self.store(Some(&call))?;
        let broke = |error| self.broke(&error);
        let tool = component.pre().instantiate_async(&mut store).await.map_err(broke)?;
        let guest = tool.ephor_tool_guest();
        let outcome = guest.call_call(&mut store, &call.tool, &call.arguments).await.map_err(broke)?;
        let fuel = self.limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
        match outcome {
            Ok(answer) => {
                let omitted: usize = answer.omitted.iter().map(String::len).sum();
                // What was found stays, also where the rest is too much.
                self.bound(self.emitted.bytes() + answer.content.len() + answer.summary.len() + omitted)?;
                let (mut content, _) = self.emitted.take();
                content.push_str(&answer.content);
                Ok(GuestAnswer {
                    content,
                    summary: answer.summary,
                    omitted: answer.omitted,
                    printed: self.printed.text(),
                    fuel,
                    cut: None,
                })
            }
            Err(failure) => {
                let (kind, message) = failure_parts(failure);
                self.bound(message.len())?;
                Err(GuestFailure::Tool { kind, message })
            }
        }
    }

    async fn describe(self, component: Component) -> Result<Vec<Description>, GuestFailure> {
        let mut store = self.store(None)?;
        let broke = |error| self.broke(&error);
        let tool = component.pre().instantiate_async(&mut store).await.map_err(broke)?;
        let descriptions = tool.ephor_tool_guest().call_describe(&mut store).await.map_err(broke)?;
        let bytes = |one: &guest::Description| one.name.len() + one.description.len() + one.input.len();
        self.bound(descriptions.iter().map(bytes).sum())?;
        Ok(descriptions
            .into_iter()
            .map(|guest::Description { name, description, input }| Description { name, description, input })
            .collect())
    }

    fn bound(&self, bytes: usize) -> Result<(), GuestFailure> {
        let output_bytes = self.limits.output_bytes;
        if bytes as u64 > output_bytes { Err(LimitReached::Output { output_bytes }.into()) } else { Ok(()) }
    }

    /// What became of a guest that did not return, named by the limit where it was one.
    fn broke(&self, error: &wasmtime::Error) -> GuestFailure {
        if let Some(reached) = error.downcast_ref::<LimitReached>() {
            return reached.clone().into();
        }
        if let Some(ResourceTableError::Full) = error.downcast_ref() {
            return LimitReached::Handles { handles: MOST_HANDLES }.into();
        }
        if let Some(Trap::OutOfFuel) = error.downcast_ref() {
            return LimitReached::Fuel { fuel: self.limits.fuel }.into();
        }
        if let Some(full) = error.downcast_ref::<wasmtime::PoolConcurrencyLimitError>() {
            return not_started(full);
        }
        let mut reason = match (error.downcast_ref::<Trap>(), error.downcast_ref::<I32Exit>()) {
            (Some(trap), _) => trap.to_string(),
            (_, Some(I32Exit(status))) => format!("it exited with status {status}"),
            _ => error.to_string(),
        };
        let printed = self.printed.text();
        let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
        if !words.is_empty() {
            let skipped = words.chars().count().saturating_sub(LAST_WORDS);
            reason.push_str("; its last words were: ");
            reason.extend(words.chars().skip(skipped));
        }
        GuestFailure::Trap { reason }
    }
}

fn not_started(reason: impl ToString) -> GuestFailure {
    GuestFailure::NotStarted { reason: reason.to_string() }
}

fn failure_parts(failure: guest::Failure) -> (ToolFailure, String) {
    match failure {
        guest::Failure::UnknownTool(message) => (ToolFailure::UnknownTool, message),
        guest::Failure::InvalidArguments(message) => (ToolFailure::InvalidArguments, message),
        guest::Failure::NotFound(message) => (ToolFailure::NotFound, message),
        guest::Failure::Refused(message) => (ToolFailure::Refused, message),
        guest::Failure::Io(message) => (ToolFailure::Io, message),
        guest::Failure::Failed(message) => (ToolFailure::Failed, message),
    }
}
