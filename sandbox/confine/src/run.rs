//! Running a command from outside: starting the init stage, draining what it writes, ending it.

mod cgroup;
mod output;

use std::{
    future::Future,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream as Socket},
    path::PathBuf,
    pin::pin,
    process::{ExitStatus, Stdio},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    process::{Child, Command},
    time::timeout,
};

pub use self::output::{Captured, Stream};
use self::{cgroup::Cgroup, output::drain};
use crate::{
    mechanism::{Lack, Lacking, Mechanism},
    plan::{self, FLAG, KILL, LONGEST, Plan, Report, TERMINATE},
    request::Request,
};

/// How long a namespace may take to vanish once everything in it was killed.
const LAST: Duration = Duration::from_secs(30);

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// By itself, with this status (0 to 255).
    Exited(i32),
    /// By a signal that Ephor did not send.
    Killed(i32),
    /// The deadline came.
    Deadline,
    /// The caller stopped it.
    Stopped,
    /// Its cgroup had no memory left.
    OutOfMemory,
}

/// What a command came to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ended {
    /// How it ended.
    pub end: End,
    /// What it wrote to stdout.
    pub stdout: Captured,
    /// What it wrote to stderr.
    pub stderr: Captured,
    /// The mechanisms it ran without, each accepted by the request.
    pub without: Vec<Lacking>,
}

/// Why a command did not run, or what it came to is not known.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A mechanism is not there and was not accepted to be lacking. Nothing ran.
    #[error("{0}")]
    Lacking(Lacking),
    /// A folder of the request is not what it was when the request was made. Nothing ran.
    #[error("another folder lies at `{path}` than when the command was requested")]
    OtherFolder {
        /// The path.
        path: PathBuf,
    },
    /// The program is not there, or cannot be executed. Nothing ran.
    #[error("the program cannot be started")]
    Program(#[source] io::Error),
    /// The init stage could not be started, or could not do something that is no mechanism. Nothing ran.
    #[error("the command was not started: {step}")]
    NotStarted {
        /// What was tried.
        step: String,
        /// What the system says.
        source: io::Error,
    },
    /// The init stage ended without a word, as when it is killed from outside. The command may have run; none of it is left.
    #[error("the init stage ended without saying how the command did: {0}")]
    Silent(ExitStatus),
    /// What was killed does not end: it hangs in the kernel. It may still run.
    #[error("the command was killed and has not ended")]
    Hangs,
    /// Waiting for it failed. It has been told to end.
    #[error("waiting for the command failed")]
    Waiting(#[source] io::Error),
}

/// Runs a command to its end, its deadline, or until `stop` resolves, whichever comes first.
///
/// Each piece of output is given to `seen` as it comes, also what is beyond the bound and kept nowhere. When this returns, no
/// process of the run is left, nor a mount. When the future is dropped, all of it is killed, without the time to end by itself.
/// It runs within a tokio runtime with time and I/O, and spawns nothing.
///
/// # Errors
/// [`RunError`]. That a command fails is no error.
pub async fn run(
    request: &Request,
    seen: &(dyn Fn(Stream, &[u8]) + Sync),
    stop: impl Future<Output = ()>,
) -> Result<Ended, RunError> {
    let limits = request.held_to();
    let (cgroup, lacking) = enter(request)?;
    let plan = request.plan(cgroup.as_ref().map(Cgroup::door).as_deref());
    let mut running = Running::start(&plan).await?;
    let (stdout, stderr) = (running.child.stdout.take(), running.child.stderr.take());
    let kept = limits.output;
    let how = async {
        let way = running.end(limits.deadline, limits.grace, stop).await?;
        Ok::<_, RunError>((way, running.reports().await?))
    };
    let drained = async {
        let both = tokio::join!(drain(stdout, Stream::Stdout, kept, seen), drain(stderr, Stream::Stderr, kept, seen));
        Ok::<_, RunError>(both)
    };
    let ((way, reports), (stdout, stderr)) = tokio::try_join!(how, drained)?;
    let Told { end, mut without } = told(reports, &way)?;
    without.extend(lacking);
    let starved = cgroup.as_ref().is_some_and(Cgroup::starved);
    let end = match way.forced {
        Some(end) => end,
        None if starved => End::OutOfMemory,
        None => end.ok_or(RunError::Silent(way.status))?,
    };
    Ok(Ended { end, stdout, stderr, without })
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
pub(crate) struct Running {
    child: Child,
    said: OwnedReadHalf,
    control: OwnedWriteHalf,
}

/// How a run was ended.
pub(crate) struct Way {
    status: ExitStatus,
    /// Why it was ended, if it did not end by itself.
    forced: Option<End>,
}

impl Running {
    /// Starts the init stage and hands it the plan.
    pub(crate) async fn start(plan: &Plan) -> Result<Self, RunError> {
        let not = |step: &str| {
            let step = step.to_owned();
            move |source| RunError::NotStarted { step, source }
        };
        let (ours, theirs) = Socket::pair().map_err(not("making a socket"))?;
        ours.set_nonblocking(true).map_err(not("making a socket"))?;
        let (said, control) = UnixStream::from_std(ours).map_err(not("making a socket"))?.into_split();
        let child = Command::new("/proc/self/exe")
            .arg(FLAG)
            .env_clear()
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

    /// Waits for the end, and brings it about when its time has come.
    pub(crate) async fn end(
        &mut self,
        deadline: Duration,
        grace: Duration,
        stop: impl Future<Output = ()>,
    ) -> Result<Way, RunError> {
        let mut stop = pin!(stop);
        let by_itself = timeout(deadline, async {
            tokio::select! {
                status = self.child.wait() => Some(status),
                () = &mut stop => None,
            }
        });
        let forced = match by_itself.await {
            Ok(Some(status)) => return Ok(Way { status: status.map_err(RunError::Waiting)?, forced: None }),
            Ok(None) => Some(End::Stopped),
            Err(_) => Some(End::Deadline),
        };
        for (word, patience) in [(TERMINATE, grace), (KILL, LAST)] {
            // An outer process that does not hear it has ended.
            let _: io::Result<()> = self.control.write_all(&[word]).await;
            if let Ok(status) = timeout(patience, self.child.wait()).await {
                return Ok(Way { status: status.map_err(RunError::Waiting)?, forced });
            }
        }
        Err(RunError::Hangs)
    }

    /// What was said. All processes that could say something have ended.
    pub(crate) async fn reports(&mut self) -> Result<Vec<Report>, RunError> {
        let mut bytes = Vec::new();
        let most = u64::try_from(LONGEST).unwrap_or(u64::MAX);
        (&mut self.said).take(most).read_to_end(&mut bytes).await.map_err(RunError::Waiting)?;
        let (mut rest, mut reports) = (&*bytes, Vec::new());
        while let Some((report, more)) = plan::unframed(rest).map_err(RunError::Waiting)? {
            reports.push(report);
            rest = more;
        }
        Ok(reports)
    }
}

/// What the reports come to.
struct Told {
    /// How the command ended by itself, if it has.
    end: Option<End>,
    without: Vec<Lacking>,
}

fn told(reports: Vec<Report>, way: &Way) -> Result<Told, RunError> {
    let mut told = Told { end: None, without: Vec::new() };
    for report in reports {
        match report {
            Report::Lacks(mechanism, step, errno) => told.without.push(lacking(mechanism, step, errno)),
            Report::Failed(step, errno) => {
                return Err(RunError::NotStarted { step, source: io::Error::from_raw_os_error(errno) });
            }
            Report::Other(path) => return Err(RunError::OtherFolder { path: plan::path(&path) }),
            Report::NoProgram(errno) => return Err(RunError::Program(io::Error::from_raw_os_error(errno))),
            Report::Exited(status) => told.end = Some(End::Exited(status)),
            Report::Killed(signal) => told.end = Some(End::Killed(signal)),
        }
    }
    // What stopped at a lack said nothing after it.
    if told.end.is_none()
        && way.forced.is_none()
        && let Some(last) = told.without.pop()
    {
        return Err(RunError::Lacking(last));
    }
    Ok(told)
}

pub(crate) fn lacking(mechanism: Mechanism, step: String, errno: i32) -> Lacking {
    Lacking { mechanism, step, errno: (errno != 0).then_some(errno) }
}
