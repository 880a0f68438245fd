//! Native commands. `shell` runs one in `ephor-confine`, over the workspace, and asks the door for `shell.apply`, one call that puts all
//! that the command changed into the workspace, or nothing. That call names each path, so it is judged, shown, kept and undone as any
//! write is.
//!
//! Files that are likely to hold secrets are hidden from a command, but for those that its call names in `shows` and is judged by.

mod answer;
mod changes;
mod hidden;
mod tools;

use std::{
    collections::BTreeMap,
    fs::DirBuilder,
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ephor_base::{
    Arguments, Budget, Failure, FailureKind, Leads, MalformedArguments, Product, SessionId, Task, ToolAnswer, ToolTask,
    arguments::Value, legible,
};
use ephor_confine::{
    Access, End, Ended, Event, Lack, Limits, Request, Workspace,
    overlay::{self, Bounds, Changes},
};
use ephor_kernel::{
    CallContext, Driver, DriverResult, Estimate, Found, Locating, Permit, PreviewItem, Running, Sought,
};
use serde_json::json;
use tokio::sync::Notify;

use self::changes::Pending;
pub use self::tools::{APPLY, SHELL, shell_tools};
use crate::{
    driver::{held, located, nowhere},
    engine::Engine,
};

/// How long a look at the workspace may take, before a command and after it.
const LOOK: Duration = Duration::from_secs(120);
/// What is left of the time of a call, once its command has ended, to look at what it changed and to apply it.
const RESERVE: Duration = Duration::from_secs(30);
/// How often it is looked at a command that runs.
const BEAT: Duration = Duration::from_millis(200);
/// After how many of these what it says last is shown.
const BEATS_SHOWN: u64 = 5;
/// A command ends where its disk, which may be that of the record, has less than this left, or less than a tenth.
const DISK_KEPT: u64 = 1 << 30;
/// The characters of it that are shown.
const LAST_LINE: usize = 120;
/// How long a command may run if its call does not say.
const USUAL_SECONDS: u64 = 120;

/// What the operator has configured for commands.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where each run has a folder of its own while it lasts. It has to lie on a file system that can hold the upper layer of an overlay.
    pub scratch: PathBuf,
    /// Folders beside the workspace that a command sees, each absolute and canonical.
    pub folders: Vec<(PathBuf, Access)>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// The mechanisms that may be missing.
    pub without: Vec<Lack>,
    /// A delegated cgroup v2, if there is one.
    pub cgroup: Option<PathBuf>,
    /// The limits of a command. Its deadline is the call's.
    pub limits: Limits,
}

/// Runs [`SHELL`] and [`APPLY`].
#[derive(Clone)]
pub struct ShellDriver {
    engine: Engine,
    settings: Arc<Settings>,
    withheld: fn(&str) -> bool,
    runs: Arc<Mutex<Runs>>,
}

/// The runs whose changes wait to be applied, by the call that asked for the command, and the folders of runs that were given up.
#[derive(Default)]
struct Runs {
    pending: BTreeMap<String, Arc<Pending>>,
    left: Vec<PathBuf>,
}

impl ShellDriver {
    /// A driver whose commands do not see the files for which `withheld` holds.
    ///
    /// # Errors
    /// The scratch folder cannot be made or emptied.
    pub fn new(engine: Engine, settings: Settings, withheld: fn(&str) -> bool) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&settings.scratch)?;
        // A node that was killed leaves the folders of its runs.
        let left =
            settings.scratch.read_dir()?.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
        let runs = Arc::new(Mutex::new(Runs { pending: BTreeMap::new(), left }));
        Ok(Self { engine, settings: Arc::new(settings), withheld, runs })
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        // Nothing under it can panic.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the folder of a run. If that fails, the next command tries again.
    fn discard(&self, folder: PathBuf) {
        match overlay::discard(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(folder = %folder.display(), %error, "the folder of a command cannot be removed");
                self.runs().left.push(folder);
            }
            _ => {}
        }
    }

    /// Runs a command, and has what it changed applied.
    async fn command(&self, task: &ToolTask, permit: &Permit, context: &CallContext) -> Result<ToolAnswer, Failure> {
        held(&self.engine, task, permit.session()).await?;
        let command = Command::read(task)?;
        let scratch = Scratch { path: self.settings.scratch.join(permit.call().to_string()), driver: self };
        let request = self.prepare(task, permit, command, scratch.path.clone()).await?;
        let ended = run(&request, context).await?;
        let applied = self.take_over(&request, permit, context).await;
        // Whatever becomes of its folder, what the command did stands. A folder that stays is for the next command to remove.
        let (driver, folder) = (self.clone(), scratch.path.clone());
        if self.on_disk(permit.session(), move || driver.discard(folder)).await.is_ok() {
            scratch.forget();
        }
        Ok(answer::told(&ended, &applied))
    }

    /// Makes the folder of the run, and the request.
    async fn prepare(
        &self,
        task: &ToolTask,
        permit: &Permit,
        command: Command,
        scratch: PathBuf,
    ) -> Result<Request, Failure> {
        let left = permit.left().and_then(|left| left.checked_sub(RESERVE));
        let left =
            left.ok_or_else(|| Failure::new(FailureKind::Deadline, "its time was up before the command could begin"))?;
        let (settings, withheld) = (self.settings.clone(), self.withheld);
        let (driver, abandoned) = (self.clone(), std::mem::take(&mut self.runs().left));
        let workspace = task.workspace.path().to_owned();
        let made = self.on_disk(permit.session(), move || {
            abandoned.into_iter().for_each(|folder| driver.discard(folder));
            request(&settings, &command, (&workspace, &scratch), left, withheld)
        });
        made.await?.map_err(|why| Failure::new(FailureKind::Workspace, why))
    }

    /// Has what the command changed applied, by a call of its own.
    async fn take_over(&self, request: &Request, permit: &Permit, context: &CallContext) -> Applied {
        let (workspace, upper, session) = (request.workspace(), request.upper(), permit.session());
        let look = move || {
            let changes = Changes::read(&workspace, &upper, Bounds::USUAL).map_err(|error| said(&error))?;
            Pending::new(session, (workspace, upper), changes)
        };
        let pending = match self.on_disk(session, look).await {
            Ok(Ok(pending)) if pending.is_empty() => return Applied::Nothing,
            Ok(Ok(pending)) => Arc::new(pending),
            Ok(Err(why)) => return Applied::Not(why),
            Err(failure) => return Applied::Not(failure.message().to_owned()),
        };
        let call = permit.call().to_string();
        let (tool, arguments) = match (APPLY.parse(), arguments(&call, pending.paths())) {
            (Ok(tool), Ok(arguments)) => (tool, arguments),
            (Err(error), _) => return Applied::Not(said(&error)),
            (_, Err(error)) => return Applied::Not(said(&error)),
        };
        self.runs().pending.insert(call.clone(), pending.clone());
        let waits = Waits { driver: self, call };
        let outcome = context.nested(tool, arguments).await;
        drop(waits);
        Applied::of(outcome, &pending)
    }

    /// Puts what a command changed into the workspace.
    async fn apply(&self, task: &ToolTask, permit: &Permit) -> Result<ToolAnswer, Failure> {
        let pending = self.waiting(permit.session(), &task.arguments);
        let pending = pending.ok_or_else(|| Failure::new(FailureKind::Workspace, changes::NOTHING_WAITS))?;
        let time = permit.left();
        if time.is_none() {
            return Err(Failure::new(FailureKind::Deadline, "its time was up before anything was applied"));
        }
        self.on_disk(permit.session(), move || pending.apply()).await?
    }

    /// The changes that a call of [`APPLY`] speaks of: those of this session and of these very paths.
    fn waiting(&self, session: SessionId, arguments: &Arguments) -> Option<Arc<Pending>> {
        let pending = self.runs().pending.get(arguments.text("call")?).cloned()?;
        let paths = arguments.texts("paths")?;
        pending.is_of(session, paths.iter().map(|(_, path)| *path)).then_some(pending)
    }

    async fn on_disk<T: Send + 'static>(
        &self,
        session: SessionId,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        match self.engine.threads().run(Some(session), LOOK, move |_| body()).await {
            Ok(Some(done)) => Ok(done),
            Ok(None) => {
                Err(Failure::new(FailureKind::Deadline, "the disk did not answer in time: look for a mount that hangs"))
            }
            Err(no_thread) => Err(Failure::new(FailureKind::Crashed, no_thread.to_string())),
        }
    }
}

impl Driver for ShellDriver {
    /// The call itself and its time are counted by the door.
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }

    fn locate(&self, sought: Sought) -> Locating {
        let driver = self.clone();
        Locating::new(async move {
            if sought.tool.as_str() != APPLY {
                return located(&driver.engine, sought).await;
            }
            driver.places(sought).await
        })
    }

    fn run(&self, permit: Permit, context: CallContext) -> Running {
        let driver = self.clone();
        Running::new(async move {
            let answer = match permit.task() {
                Task::Tool(task) if task.name.as_str() == SHELL => driver.command(task, &permit, &context).await,
                Task::Tool(task) if task.name.as_str() == APPLY => driver.apply(task, &permit).await,
                _ => Err(Failure::new(FailureKind::Crashed, "the driver of commands was given something else")),
            };
            DriverResult { end: answer.map(Product::Tool), used: Budget::ZERO }
        })
    }
}

impl ShellDriver {
    /// What a call of [`APPLY`] makes of each path.
    async fn places(&self, sought: Sought) -> Vec<Found> {
        let Some(pending) = self.waiting(sought.session, &sought.arguments) else {
            return nowhere(&sought.paths, changes::NOTHING_WAITS);
        };
        let (session, paths) = (sought.session, sought.paths.clone());
        match self.on_disk(session, move || pending.places(&paths)).await {
            Ok(found) => found,
            Err(failure) => nowhere(&sought.paths, failure.message()),
        }
    }
}

/// What became of the changes of a command.
enum Applied {
    /// It made none.
    Nothing,
    /// They are in the workspace: a line of the answer.
    Done(String),
    /// They are not, and why.
    Not(String),
}

/// A command, as its call asks for it.
struct Command {
    line: String,
    seconds: u64,
    directory: Option<PathBuf>,
    shows: Vec<String>,
}

impl Command {
    fn read(task: &ToolTask) -> Result<Self, Failure> {
        let wrong = |what: &str| Failure::new(FailureKind::Crashed, format!("the arguments have no usable `{what}`"));
        let line = task.arguments.text("command").ok_or_else(|| wrong("command"))?.to_owned();
        let seconds = match task.arguments.value("seconds") {
            None | Some(Value::Null) => USUAL_SECONDS,
            Some(Value::Integer(seconds)) => u64::try_from(*seconds).map_err(|_| wrong("seconds"))?,
            Some(_) => return Err(wrong("seconds")),
        };
        let mut command = Self { line, seconds, directory: None, shows: Vec::new() };
        for file in &task.files {
            // Where the call was judged to lead is where it leads.
            let Leads::To(place) = &file.leads else { continue };
            match file.argument.as_str() {
                "directory" if place.path == "." => {}
                "directory" => command.directory = Some(PathBuf::from(&place.path)),
                _ => command.shows.push(place.path.clone()),
            }
        }
        Ok(command)
    }
}

fn request(
    settings: &Settings,
    command: &Command,
    (workspace, scratch): (&Path, &Path),
    left: Duration,
    withheld: fn(&str) -> bool,
) -> Result<Request, String> {
    let hidden = hidden::find(workspace, withheld, &command.shows)?;
    DirBuilder::new().mode(0o700).create(scratch).map_err(|error| format!("the folder of the run: {error}"))?;
    let asked = || -> Result<Request, ephor_confine::RequestError> {
        let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
        let words = vec![shell.into(), "-c".into(), command.line.clone().into()];
        let mut request = Request::new(words, workspace, Workspace::Overlay, scratch)?;
        for (name, value) in &settings.environment {
            request = request.variable(name, value)?;
        }
        for (folder, access) in &settings.folders {
            request = request.folder(folder, *access)?;
        }
        for path in &hidden {
            request = request.hide(path)?;
        }
        if let Some(directory) = &command.directory {
            request = request.directory(directory)?;
        }
        if let Some(cgroup) = &settings.cgroup {
            request = request.cgroup(cgroup.clone());
        }
        for lack in &settings.without {
            request = request.accepting(*lack);
        }
        request.limits(Limits { deadline: Duration::from_secs(command.seconds.max(1)).min(left), ..settings.limits })
    };
    asked().map_err(|error| said(&error))
}

/// Runs the command, and shows what it says meanwhile.
async fn run(request: &Request, context: &CallContext) -> Result<Ended, Failure> {
    let last = Mutex::new(String::new());
    let seen = |event: Event<'_>| {
        if let Event::Output(_, bytes) = event
            && let Some(line) = String::from_utf8_lossy(bytes).lines().rev().find(|line| !line.trim().is_empty())
        {
            *last.lock().unwrap_or_else(PoisonError::into_inner) =
                legible::line(line).chars().take(LAST_LINE).collect();
        }
    };
    let full = Notify::new();
    let stop = async {
        tokio::select! {
            () = context.cancelled() => {}
            () = full.notified() => {}
        }
    };
    let mut running = pin!(ephor_confine::run(request, &seen, stop));
    for beat in 1_u64.. {
        if let Ok(ended) = tokio::time::timeout(BEAT, running.as_mut()).await {
            let is_full = is_full(&request.upper());
            return match ended {
                Ok(Ended { end: End::Stopped, .. }) if is_full => {
                    Err(Failure::new(FailureKind::Output, "it was ended: it had nearly filled the disk"))
                }
                ended => ended.map_err(|error| Failure::new(FailureKind::Crashed, said(&error))),
            };
        }
        if is_full(&request.upper()) {
            full.notify_one();
        }
        if beat % BEATS_SHOWN == 0 {
            let line = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let seconds = beat / BEATS_SHOWN;
            context.preview().show(PreviewItem::Progress(format!("running for {seconds} s: {line}"))).await;
        }
    }
    Err(Failure::new(FailureKind::Crashed, "the command has no end"))
}

/// Whether there is little room left on the disk of this folder.
fn is_full(folder: &Path) -> bool {
    rustix::fs::statvfs(folder).is_ok_and(|disk| {
        let (free, all) = (disk.f_bavail.saturating_mul(disk.f_frsize), disk.f_blocks.saturating_mul(disk.f_frsize));
        free < DISK_KEPT.min(all / 10)
    })
}

/// The arguments of the call that applies these paths.
fn arguments<'a>(call: &str, paths: impl Iterator<Item = &'a str>) -> Result<Arguments, MalformedArguments> {
    Arguments::parse(&json!({ "call": call, "paths": paths.collect::<Vec<_>>() }).to_string())
}

/// An error with its causes, in one line.
fn said(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The folder of a run. Where the run is given up, the next command removes it: its processes may still be ending.
struct Scratch<'a> {
    path: PathBuf,
    driver: &'a ShellDriver,
}

impl Scratch<'_> {
    /// It is removed, or is to be.
    fn forget(mut self) {
        self.path.clear();
    }
}

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            self.driver.runs().left.push(std::mem::take(&mut self.path));
        }
    }
}

/// Changes wait as long as this is held.
struct Waits<'a> {
    driver: &'a ShellDriver,
    call: String,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.driver.runs().pending.remove(&self.call);
    }
}
