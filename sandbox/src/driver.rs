//! WASM tools as the kernel sees them.

use crate::call::{Access, GuestAnswer, GuestCall, GuestFailure};
use crate::engine::Engine;
use crate::foresee::{foresee, unlinked};
use crate::guest::Guest;
use crate::limits::LimitReached;
use crate::locate::{Held, follow, shown};
use crate::threads::{GRACE, Work};
use crate::workspace::OpenWorkspace;
use ephor_base::{
    Budget, Digest, Failure, FailureKind, Leads, Located, Product, SessionId, Task, ToolAnswer, ToolName, ToolTask,
};
use ephor_kernel::{
    CallContext, Driver, DriverResult, Estimate, Found, Locating, Permit, PreviewItem, Running, Sought,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How long the paths of a call are followed for, and what it replaces is read.
const LOOK: Duration = Duration::from_secs(8);

/// What a driver needs behind its guest to tell how that ended.
const MARGIN: Duration = Duration::from_millis(500);

const SILENT: &str = "the disk did not answer in time: look for a mount that hangs";

/// Runs the tools of a set of components. Its calls hold nothing between them.
#[derive(Clone)]
pub struct WasmDriver {
    engine: Engine,
    tools: Arc<BTreeMap<ToolName, Guest>>,
    withheld: fn(&str) -> bool,
}

impl WasmDriver {
    /// A driver for `tools`; of two with one name the later counts. Paths for which `withheld` holds are opened only by a call that
    /// was judged by them.
    pub fn new(engine: Engine, tools: impl IntoIterator<Item = (ToolName, Guest)>, withheld: fn(&str) -> bool) -> Self {
        Self { engine, tools: Arc::new(tools.into_iter().collect()), withheld }
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
        let (workspace, files) = held(&self.engine, task, permit.session()).await?;
        let call = guest_call(task, &permit, workspace, files, self.withheld)?;
        match self.engine.run(component, call, context.cancelled()).await {
            Ok(answer) => {
                let failed = answer.cut.is_some() && answer.content.is_empty();
                Ok(Product::Tool(ToolAnswer { text: told(&answer), failed }))
            }
            Err(GuestFailure::Tool { message, .. }) => Ok(Product::Tool(ToolAnswer { text: message, failed: true })),
            Err(failure) => Err(Failure::new(kind(&failure), failure.to_string())),
        }
    }
}

impl Driver for WasmDriver {
    /// The call itself and its time are counted by the door.
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }

    fn locate(&self, sought: Sought) -> Locating {
        let engine = self.engine.clone();
        Locating::new(async move { located(&engine, sought).await })
    }

    fn run(&self, permit: Permit, context: CallContext) -> Running {
        let driver = self.clone();
        Running::new(async move {
            let end = driver.call(permit, context).await;
            DriverResult { end, used: Budget::ZERO }
        })
    }
}

/// Follows the paths of a call that is to be judged.
pub(crate) async fn located(engine: &Engine, sought: Sought) -> Vec<Found> {
    let paths = sought.paths.clone();
    let session = sought.session;
    let look = move |work: &Work| {
        let workspace = OpenWorkspace::open(sought.workspace.path()).map_err(|error| error.to_string())?;
        let followed = |(argument, path): (String, String)| {
            let found = follow(&workspace, &path, sought.replaces, &|| work.goes_on());
            (argument, found.and_then(|held| unlinked(sought.tool.as_str(), &sought.arguments, &path, held)))
        };
        let mut all: Vec<(String, Result<Held, String>)> = sought.paths.into_iter().map(followed).collect();
        if sought.replaces && work.goes_on() {
            let held = all.iter_mut().filter_map(|(argument, held)| Some((argument.as_str(), held.as_mut().ok()?)));
            foresee(sought.tool.as_str(), &sought.arguments, &mut held.collect::<Vec<_>>());
        }
        let one = |(argument, found): (String, Result<Held, String>)| {
            let kept = found.as_ref().ok().filter(|_| sought.replaces).and_then(Held::kept);
            let leads = found.map_or_else(Leads::Nowhere, |held| Leads::To(held.place));
            Found { located: Located { argument, leads }, kept }
        };
        Ok::<_, String>(all.into_iter().map(one).collect())
    };
    match engine.threads().run(Some(session), LOOK, look).await {
        Ok(Some(Ok(files))) => files,
        Ok(Some(Err(why))) => nowhere(&paths, &why),
        Ok(None) => nowhere(&paths, SILENT),
        Err(no_thread) => nowhere(&paths, &no_thread.to_string()),
    }
}

/// Paths that cannot be judged, and why.
pub(crate) fn nowhere(paths: &[(String, String)], why: &str) -> Vec<Found> {
    let leads = || Leads::Nowhere(why.to_owned());
    paths.iter().map(|(argument, _)| Found::only(Located { argument: argument.clone(), leads: leads() })).collect()
}

/// The paths of a call, followed once more: each has to lead where it led when the call was judged.
pub(crate) async fn held(
    engine: &Engine,
    task: &ToolTask,
    session: SessionId,
) -> Result<(OpenWorkspace, Vec<Held>), Failure> {
    let (path, files, arguments) = (task.workspace.path().to_owned(), task.files.clone(), task.arguments.clone());
    let replaces = task.writes;
    let look = move |work: &Work| {
        let workspace =
            OpenWorkspace::open(&path).map_err(|error| Failure::new(FailureKind::Workspace, error.to_string()))?;
        let mut held = Vec::new();
        for Located { argument, leads } in &files {
            let written = arguments.text_at(argument).unwrap_or_default();
            let found = follow(&workspace, written, replaces, &|| work.goes_on());
            match (leads, found) {
                (Leads::To(judged), Ok(found)) if found.place.is_still(judged) => {
                    held.push(Held { place: judged.clone(), ..found });
                }
                (_, found) => return Err(Failure::new(FailureKind::Workspace, changed(written, found.err()))),
            }
        }
        Ok((workspace, held))
    };
    match engine.threads().run(Some(session), LOOK, look).await {
        Ok(Some(outcome)) => outcome,
        Ok(None) => Err(Failure::new(FailureKind::Deadline, SILENT)),
        Err(no_thread) => Err(Failure::new(FailureKind::Crashed, no_thread.to_string())),
    }
}

fn changed(written: &str, why: Option<String>) -> String {
    let why = why.map(|why| format!(": {why}")).unwrap_or_default();
    format!(
        "`{}` was changed since this call was judged, and nothing was done{why}; look at it and call again",
        shown(written)
    )
}

fn guest_call(
    task: &ToolTask,
    permit: &Permit,
    workspace: OpenWorkspace,
    files: Vec<Held>,
    withheld: fn(&str) -> bool,
) -> Result<GuestCall, Failure> {
    let over = || Failure::new(FailureKind::Deadline, "its time was up before the guest could begin");
    let left = own_time(permit.left().ok_or_else(over)?).as_millis();
    let mut limits = task.limits;
    limits.deadline_ms = u64::try_from(left).map_or(limits.deadline_ms, |left| limits.deadline_ms.min(left));
    // What is opened is what was judged: the guest is not given the name that led there.
    let places = task.files.iter().filter_map(|file| match &file.leads {
        Leads::To(place) => Some((&file.argument, &place.path)),
        Leads::Nowhere(_) => None,
    });
    let arguments = places.fold(task.arguments.clone(), |arguments, (name, path)| arguments.with_text(name, path));
    Ok(GuestCall {
        tool: task.name.to_string(),
        arguments: arguments.to_json(),
        workspace,
        access: if task.writes { Access::ReadWrite } else { Access::ReadOnly },
        files,
        withheld,
        session: Some(permit.session()),
        // The same for every attempt of a call: run again, a guest that does not depend on files does the same again.
        seed: Digest::of_parts(&[b"ephor guest seed ", permit.call().to_string().as_bytes()]).0,
        limits,
    })
}

/// The time of a guest: some less than the door gives its driver, so that what it found by then can still be told.
fn own_time(limit: Duration) -> Duration {
    limit.saturating_sub(GRACE.saturating_add(MARGIN)).max(limit / 2)
}

/// What a model is told: the content as it is, then a line in brackets with the summary, then one for each omission.
fn told(answer: &GuestAnswer) -> String {
    let mut text = answer.content.clone();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    match &answer.cut {
        None => text.push_str(&format!("[{}]\n", answer.summary)),
        Some((reached, at)) if at.is_empty() => {
            text.push_str(&format!("[cut short: {reached}; what comes after is left out]\n"))
        }
        Some((reached, at)) => {
            text.push_str(&format!(
                "[cut short: {reached}; it was at `{at}`, and that and what comes after is left out]\n"
            ));
        }
    }
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
