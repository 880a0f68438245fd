//! The caller's side of a run: starts the init stage, drains its output and ends it.

mod cgroup;
mod output;
mod reports;

use std::{
    future::Future,
    io,
    net::TcpListener,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::PathBuf,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::AsyncWriteExt,
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    time::timeout,
};

pub use self::output::{Captured, Stream};
use self::{cgroup::Cgroup, output::drain, reports::hear};
use crate::{
    mechanism::{Lack, Lacking, Mechanism},
    plan::{self, FLAG, KILL, Plan, Report, TERMINATE},
    request::{Limits, Request},
};

/// How long a PID namespace may take to end once its processes were killed.
const LAST: Duration = Duration::from_secs(30);

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It exited with this status (0 to 255).
    Exited(i32),
    /// A signal that the run did not send ended it.
    Killed(i32),
    /// It ran until its deadline.
    Deadline,
    /// The caller stopped it.
    Stopped,
    /// Its cgroup had no memory left.
    OutOfMemory,
}

/// The resources that a run used. Processes that were killed because they ignored SIGTERM are not counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Used {
    /// Processor time of all processes in user mode.
    pub user: Duration,
    /// Processor time of all processes in the kernel.
    pub system: Duration,
    /// The most bytes of memory that one process had resident.
    pub memory: u64,
}

/// The outcome of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// Its standard output.
    pub stdout: Captured,
    /// Its standard error.
    pub stderr: Captured,
    /// The resources it used.
    pub used: Used,
    /// The mechanisms it ran without, each accepted by the request.
    pub without: Vec<Lacking>,
}

/// An event while a command runs.
#[derive(Debug)]
pub enum Event<'a> {
    /// The command wrote these bytes.
    Output(Stream, &'a [u8]),
    /// Sent once before the command starts, if the request has a [`Request::port`]: the listener at that port of the command's
    /// loopback, nonblocking. The caller accepts, decides and forwards; no other connection leaves the network namespace. The
    /// caller drops it when the run is over.
    Listening(TcpListener),
}

/// Why a command did not run, or why its outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A mechanism is missing and the request does not accept that. Nothing ran.
    #[error("{0}")]
    Lacking(Lacking),
    /// A folder of the request is not what it was when the request was made. Nothing ran.
    #[error("another folder lies at `{path}` than when the command was requested")]
    OtherFolder {
        /// The path.
        path: PathBuf,
    },
    /// The program does not exist or cannot be executed. Nothing ran.
    #[error("the program cannot be started")]
    Program(#[source] io::Error),
    /// The init stage could not be started, or one of its steps failed. Nothing ran.
    #[error("the command was not started: {step}")]
    NotStarted {
        /// What was tried.
        step: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The init stage ended without a report, as when it is killed from outside. The command may have run; no process is left.
    #[error("the init stage ended without reporting the command's outcome: {0}")]
    Silent(ExitStatus),
    /// Killed processes do not end: they hang in the kernel.
    #[error("the command was killed and has not ended")]
    Hangs,
    /// Waiting for the command failed. It is killed.
    #[error("waiting for the command failed")]
    Waiting(#[source] io::Error),
}

/// Runs a command to its end, its deadline, or until `stop` resolves, whichever comes first.
///
/// `seen` gets each piece of output as it comes, including the part beyond the bound, which is not kept. When this returns, no
/// process and no mount of the run is left. Dropping the future kills the run without grace. Must be polled within a tokio
/// runtime with time and I/O; spawns nothing.
///
/// # Errors
/// [`RunError`]. A command that fails is not an error.
pub async fn run(
    request: &Request,
    seen: &(dyn Fn(Event<'_>) + Sync),
    stop: impl Future<Output = ()>,
) -> Result<Ended, RunError> {
    let limits = request.held_to();
    let (cgroup, lacking) = enter(request)?;
    let plan = request.plan(cgroup.as_ref().map(Cgroup::door).as_deref());
    let mut running = Running::start(&plan).await?;
    let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
    let kept = limits.output;
    let drained = async {
        let both = tokio::join!(drain(stdout, Stream::Stdout, kept, seen), drain(stderr, Stream::Stderr, kept, seen));
        Ok::<_, RunError>(both)
    };
    let listening = |listener| seen(Event::Listening(listener));
    let (told, (stdout, stderr)) = tokio::try_join!(running.finish(limits, &listening, stop), drained)?;
    if let Some(lacks) = told.lacks {
        return Err(RunError::Lacking(lacks));
    }
    let mut without = told.without;
    without.extend(lacking);
    let starved = cgroup.as_ref().is_some_and(Cgroup::starved);
    let end = match told.forced {
        Some(end) => end,
        None if starved => End::OutOfMemory,
        None => told.end.ok_or(RunError::Silent(told.status))?,
    };
    Ok(Ended { end, stdout, stderr, used: told.used, without })
}

/// Carries out a plan without a command, which only tries the mechanisms.
pub(crate) async fn attempt(plan: &Plan, limits: Limits) -> Result<Told, RunError> {
    Running::start(plan).await?.finish(limits, &drop, std::future::pending()).await
}

/// Makes the cgroup of the run, if one can be.
fn enter(request: &Request) -> Result<(Option<Cgroup>, Option<Lacking>), RunError> {
    match Cgroup::make(request) {
        Ok(cgroup) => Ok((Some(cgroup), None)),
        Err(lacking) if request.accepts(Lack::Cgroup) => Ok((None, Some(lacking))),
        Err(lacking) => Err(RunError::Lacking(lacking)),
    }
}

/// Whether a cgroup could be made for the request. It is taken away at once.
pub(crate) fn cgroup(request: &Request) -> Result<(), Lacking> {
    Cgroup::make(request).map(drop)
}

/// The outer process of a run, and the way to it.
struct Running {
    child: Child,
    said: OwnedReadHalf,
    control: OwnedWriteHalf,
}

impl Running {
    /// Starts the init stage and hands it the plan.
    async fn start(plan: &Plan) -> Result<Self, RunError> {
        let not = |step: &'static str| move |source| RunError::NotStarted { step: step.into(), source };
        let (ours, theirs) = Socket::pair().map_err(not("making a socket"))?;
        ours.set_nonblocking(true).map_err(not("making a socket"))?;
        let (said, control) = UnixStream::from_std(ours).map_err(not("making a socket"))?.into_split();
        let child = Command::new("/proc/self/exe")
            .arg(FLAG)
            .env_clear()
            // Signals of a terminal go to the caller's group alone.
            .process_group(0)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(not("starting the init stage"))?;
        let mut running = Self { child, said, control };
        let plan = plan::framed(plan).map_err(not("wording the plan"))?;
        running.control.write_all(&plan).await.map_err(not("handing over the plan"))?;
        Ok(running)
    }

    /// Waits for the end, or brings it about at the deadline or on `stop`.
    async fn finish(
        mut self,
        limits: Limits,
        listening: &(dyn Fn(TcpListener) + Sync),
        stop: impl Future<Output = ()>,
    ) -> Result<Told, RunError> {
        let heard = async { hear(self.said.as_ref(), listening).await.map_err(RunError::Waiting) };
        let ((status, forced), reports) =
            tokio::try_join!(end(&mut self.child, &mut self.control, limits, stop), heard)?;
        told(reports, status, forced)
    }
}

/// Waits for the end, or brings it about at the deadline or on `stop`; then also returns which.
async fn end(
    child: &mut Child,
    control: &mut OwnedWriteHalf,
    limits: Limits,
    stop: impl Future<Output = ()>,
) -> Result<(ExitStatus, Option<End>), RunError> {
    let by_itself = async {
        tokio::select! {
            status = child.wait() => Some(status),
            () = stop => None,
        }
    };
    let forced = match timeout(limits.deadline, by_itself).await {
        Ok(Some(status)) => return Ok((status.map_err(RunError::Waiting)?, None)),
        Ok(None) => End::Stopped,
        Err(_) => End::Deadline,
    };
    for (word, patience) in [(TERMINATE, limits.grace), (KILL, LAST)] {
        // Fails only if the outer process has ended.
        let _: io::Result<()> = control.write_all(&[word]).await;
        if let Ok(status) = timeout(patience, child.wait()).await {
            return Ok((status.map_err(RunError::Waiting)?, Some(forced)));
        }
    }
    Err(RunError::Hangs)
}

/// The outcome of a run without its output.
pub(crate) struct Told {
    /// How the outer process ended, which says nothing of the command.
    pub(crate) status: ExitStatus,
    /// Why the run was ended, if it did not end by itself.
    forced: Option<End>,
    /// How the command ended, if it has.
    pub(crate) end: Option<End>,
    /// The missing mechanism because of which nothing was run.
    pub(crate) lacks: Option<Lacking>,
    pub(crate) without: Vec<Lacking>,
    used: Used,
}

fn told(reports: Vec<Report>, status: ExitStatus, forced: Option<End>) -> Result<Told, RunError> {
    let mut told = Told { status, forced, end: None, lacks: None, without: Vec::new(), used: Used::default() };
    for report in reports {
        match report {
            Report::Lacks(mechanism, step, errno) => told.lacks = Some(lacking(mechanism, step, errno)),
            Report::Without(mechanism, step, errno) => told.without.push(lacking(mechanism, step, errno)),
            Report::Failed(step, errno) => {
                return Err(RunError::NotStarted { step, source: io::Error::from_raw_os_error(errno) });
            }
            Report::Other(path) => return Err(RunError::OtherFolder { path: plan::path(&path) }),
            Report::NoProgram(errno) => return Err(RunError::Program(io::Error::from_raw_os_error(errno))),
            Report::Exited(status) => told.end = Some(End::Exited(status)),
            Report::Killed(signal) => told.end = Some(End::Killed(signal)),
            Report::Used(user, system, memory) => {
                told.used = Used { user: Duration::from_micros(user), system: Duration::from_micros(system), memory };
            }
            Report::Listening => {}
        }
    }
    Ok(told)
}

fn lacking(mechanism: Mechanism, step: String, errno: i32) -> Lacking {
    Lacking { mechanism, step, errno: (errno != 0).then_some(errno) }
}
