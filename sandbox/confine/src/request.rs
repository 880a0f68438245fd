//! What is to be run, and within which bounds. Everything is bounded when a [`Request`] is made.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    io,
    num::NonZeroU16,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Component, Path, PathBuf},
    time::Duration,
};

use crate::{
    mechanism::Lack,
    plan::{self, Bounds, Folder, How, Plan, bytes},
};

/// The most arguments, variables, and bytes of both together. Linux allows more, from some programs to none.
pub const MOST_ARGUMENTS: usize = 4_096;
/// See [`MOST_ARGUMENTS`].
pub const MOST_VARIABLES: usize = 1_024;
/// See [`MOST_ARGUMENTS`]. One argument may have 128 KiB in Linux.
pub const MOST_BYTES: usize = 120 << 10;
/// The most folders that can be declared.
pub const MOST_FOLDERS: usize = 64;

/// What Ephor puts there itself, so that nothing else can be.
const RESERVED: [&str; 11] =
    ["/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// How a declared folder is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// It can be read and its programs run.
    ReadOnly,
    /// It can be written to, at once and without a list of changes: a cache.
    ReadWrite,
}

/// How the workspace is seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workspace {
    /// What is written goes into an upper layer.
    Overlay,
    /// Nothing can be written. Needs no overlay.
    ReadOnly,
}

/// What a run may use. Each has a most, [`Limits::MOST`]; none may be 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How long the command may take. What follows is SIGTERM, and after [`Limits::grace`] SIGKILL.
    pub deadline: Duration,
    /// How long what was told to end may still take.
    pub grace: Duration,
    /// Bytes that are kept of each of stdout and stderr.
    pub output: usize,
    /// Bytes of memory: of all processes together in a cgroup, of the data of each one without.
    pub memory: u64,
    /// Processes and threads at a time.
    pub processes: u64,
    /// Bytes a file may have.
    pub file: u64,
    /// Descriptors a process may have.
    pub open_files: u64,
    /// Bytes in the private `/tmp`, which is memory.
    pub temporary: u64,
}

impl Limits {
    /// The most of each.
    pub const MOST: Self = Self {
        deadline: Duration::from_hours(24),
        grace: Duration::from_secs(60),
        output: 64 << 20,
        memory: 1 << 40,
        processes: 100_000,
        file: 1 << 40,
        open_files: 1 << 20,
        temporary: 64 << 30,
    };

    /// As [`Limits::MOST`], but what one command of a coding agent takes.
    pub const USUAL: Self = Self {
        deadline: Duration::from_mins(2),
        grace: Duration::from_secs(2),
        output: 1 << 20,
        memory: 4 << 30,
        processes: 512,
        file: 4 << 30,
        open_files: 4_096,
        temporary: 1 << 30,
    };

    fn check(self) -> Result<(), RequestError> {
        let most = Self::MOST;
        let within = [
            ("deadline", self.deadline <= most.deadline && !self.deadline.is_zero()),
            ("grace", self.grace <= most.grace && !self.grace.is_zero()),
            ("output", (1..=most.output).contains(&self.output)),
            ("memory", (1..=most.memory).contains(&self.memory)),
            ("processes", (1..=most.processes).contains(&self.processes)),
            ("file", (1..=most.file).contains(&self.file)),
            ("open_files", (1..=most.open_files).contains(&self.open_files)),
            ("temporary", (1..=most.temporary).contains(&self.temporary)),
        ];
        match within.into_iter().find(|(_, within)| !within) {
            Some((name, _)) => Err(RequestError::Limit(name)),
            None => Ok(()),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

/// Why a request cannot be made. Nothing has happened, and the caller is at fault.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No program, more than there may be, or a NUL in one.
    #[error("there are between 1 and {MOST_ARGUMENTS} arguments without NUL")]
    Arguments,
    /// An empty name, one with `=`, a NUL, a name twice, or more than there may be.
    #[error("the variable `{0}` cannot be set: names are distinct and without `=`, at most {MOST_VARIABLES}, without NUL")]
    Variable(String),
    /// Arguments and variables are longer than [`MOST_BYTES`].
    #[error("arguments and environment have more than {MOST_BYTES} bytes")]
    Long,
    /// Not a path as it can be bound: absolute, without links, `.` or `..`.
    #[error("`{path}` is not the whole path of a folder without links")]
    NotWhole {
        /// The path.
        path: PathBuf,
    },
    /// What the system says of a folder.
    #[error("`{path}` cannot be used")]
    Folder {
        /// The path.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A folder where the system's are, or the private `/tmp` itself.
    #[error("`{path}` lies where a command has folders of its own")]
    Reserved {
        /// The path.
        path: PathBuf,
    },
    /// Two folders of which one lies in the other.
    #[error("`{path}` and `{other}` lie in one another")]
    Overlap {
        /// The path.
        path: PathBuf,
        /// The folder that was named before.
        other: PathBuf,
    },
    /// More than [`MOST_FOLDERS`].
    #[error("there are at most {MOST_FOLDERS} folders")]
    Folders,
    /// The scratch folder has something in it, or others than its owner can use it.
    #[error("the scratch folder `{path}` is not an empty folder of mode 700")]
    Scratch {
        /// The path.
        path: PathBuf,
    },
    /// Where the command starts is not a path down from the workspace.
    #[error("`{path}` does not lead down from the workspace")]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// A limit is 0 or above its most.
    #[error("the limit `{0}` is 0 or more than it may be")]
    Limit(&'static str),
}

/// One command and what it may see and use.
///
/// Folders are the ones that they are when they are named here, by device and inode: if another lies at the path once the command
/// starts, the run fails.
#[derive(Clone, Debug)]
pub struct Request {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    workspace: Folder,
    directory: PathBuf,
    folders: Vec<Folder>,
    scratch: Folder,
    limits: Limits,
    accepted: BTreeSet<Lack>,
    cgroup: Option<PathBuf>,
    port: Option<NonZeroU16>,
}

impl Request {
    /// A request to run `arguments`, whose first is the program (a path, or a name that is looked up in the `PATH` of the
    /// environment that was declared), in `workspace`, which the command sees at its own path.
    ///
    /// `scratch` is an empty folder of mode 700 that the caller made for this run, on a file system that can hold the upper
    /// layer of an overlay. The upper layer stays there ([`Request::upper`]) until the caller discards it.
    ///
    /// # Errors
    /// [`RequestError`], about any of the four.
    pub fn new(
        arguments: Vec<OsString>,
        workspace: &Path,
        seen: Workspace,
        scratch: &Path,
    ) -> Result<Self, RequestError> {
        let nul = |text: &OsString| text.as_bytes().contains(&0);
        if arguments.is_empty() || arguments.len() > MOST_ARGUMENTS || arguments.iter().any(nul) {
            return Err(RequestError::Arguments);
        }
        let how = match seen {
            Workspace::Overlay => How::Overlay,
            Workspace::ReadOnly => How::ReadOnly,
        };
        let workspace = folder(workspace, how)?;
        allowed(&workspace)?;
        let scratch = empty(scratch)?;
        apart(&scratch, [&workspace])?;
        let request = Self {
            arguments,
            environment: Vec::new(),
            directory: plan::path(&workspace.path),
            workspace,
            folders: Vec::new(),
            scratch,
            limits: Limits::USUAL,
            accepted: BTreeSet::new(),
            cgroup: None,
            port: None,
        };
        request.short()
    }

    /// Declares a variable. The command has no others.
    ///
    /// # Errors
    /// [`RequestError::Variable`] or [`RequestError::Long`].
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Result<Self, RequestError> {
        let (name, value) = (name.into(), value.into());
        let bad = name.is_empty()
            || name.as_bytes().iter().any(|byte| [0, b'='].contains(byte))
            || value.as_bytes().contains(&0)
            || self.environment.iter().any(|(other, _)| *other == name)
            || self.environment.len() >= MOST_VARIABLES;
        if bad {
            return Err(RequestError::Variable(name.to_string_lossy().into_owned()));
        }
        self.environment.push((name, value));
        self.short()
    }

    /// Declares a folder, which the command sees at its own path.
    ///
    /// # Errors
    /// [`RequestError`], about the folder.
    pub fn folder(mut self, path: &Path, access: Access) -> Result<Self, RequestError> {
        let how = match access {
            Access::ReadOnly => How::ReadOnly,
            Access::ReadWrite => How::ReadWrite,
        };
        let folder = folder(path, how)?;
        allowed(&folder)?;
        apart(&folder, self.folders.iter().chain([&self.workspace, &self.scratch]))?;
        if self.folders.len() >= MOST_FOLDERS {
            return Err(RequestError::Folders);
        }
        self.folders.push(folder);
        Ok(self)
    }

    /// Where the command starts, from the workspace down. Without it: in the workspace.
    ///
    /// # Errors
    /// [`RequestError::Directory`].
    pub fn directory(mut self, path: &Path) -> Result<Self, RequestError> {
        let down = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !down || path.as_os_str().len() > overlay_path() || path.as_os_str().as_bytes().contains(&0) {
            return Err(RequestError::Directory { path: path.into() });
        }
        self.directory = plan::path(&self.workspace.path).join(path);
        Ok(self)
    }

    /// Holds the command to these limits instead of [`Limits::USUAL`].
    ///
    /// # Errors
    /// [`RequestError::Limit`] names the first that is out of bounds.
    pub fn limits(mut self, limits: Limits) -> Result<Self, RequestError> {
        limits.check()?;
        self.limits = limits;
        Ok(self)
    }

    /// Says that the operator's configuration does without this.
    #[must_use]
    pub fn accepting(mut self, lack: Lack) -> Self {
        self.accepted.insert(lack);
        self
    }

    /// Names the delegated cgroup v2 below which each run gets one of its own. Without it [`Lack::Cgroup`] has to be accepted.
    #[must_use]
    pub fn cgroup(mut self, folder: PathBuf) -> Self {
        self.cgroup = Some(folder);
        self
    }

    /// Gives the command one way out: what it connects to at this port of its loopback, the caller accepts
    /// ([`Event::Listening`](crate::Event::Listening)). Without it, no connection leaves its network namespace.
    #[must_use]
    pub fn port(mut self, port: NonZeroU16) -> Self {
        self.port = Some(port);
        self
    }

    /// The workspace.
    #[must_use]
    pub fn workspace(&self) -> PathBuf {
        plan::path(&self.workspace.path)
    }

    /// Where the upper layer lies, once the command has run.
    #[must_use]
    pub fn upper(&self) -> PathBuf {
        plan::path(&self.scratch.path).join(UPPER)
    }

    /// Device and inode of the scratch folder, which is the run's alone.
    pub(crate) fn scratch(&self) -> (u64, u64) {
        (self.scratch.device, self.scratch.inode)
    }

    pub(crate) fn held_to(&self) -> Limits {
        self.limits
    }

    pub(crate) fn accepts(&self, lack: Lack) -> bool {
        self.accepted.contains(&lack)
    }

    pub(crate) fn delegated(&self) -> Option<&Path> {
        self.cgroup.as_deref()
    }

    /// The plan for the init stage, with the file that takes it into its cgroup.
    pub(crate) fn plan(&self, cgroup: Option<&Path>) -> Plan {
        let variable = |(name, value): &(OsString, OsString)| (bytes(name), bytes(value));
        Plan {
            arguments: self.arguments.iter().map(bytes).collect(),
            environment: self.environment.iter().map(variable).collect(),
            workspace: self.workspace.clone(),
            directory: bytes(&self.directory),
            folders: self.folders.clone(),
            scratch: self.scratch.path.clone(),
            accepted: self.accepted.iter().copied().collect(),
            cgroup: cgroup.map(bytes),
            bounds: Bounds {
                memory: self.limits.memory,
                processes: self.limits.processes,
                file: self.limits.file,
                open_files: self.limits.open_files,
                temporary: self.limits.temporary,
            },
            port: self.port.map(NonZeroU16::get),
        }
    }

    fn short(self) -> Result<Self, RequestError> {
        let pairs = self.environment.iter().flat_map(|(name, value)| [name, value]);
        let lengths = self.arguments.iter().chain(pairs).map(|text| text.len());
        if lengths.sum::<usize>() > MOST_BYTES { Err(RequestError::Long) } else { Ok(self) }
    }
}

/// The upper layer, in the scratch folder.
pub(crate) const UPPER: &str = "upper";

const fn overlay_path() -> usize {
    crate::overlay::LONGEST_PATH
}

/// The folder at `path` as it is now.
fn folder(path: &Path, how: How) -> Result<Folder, RequestError> {
    let failed = |source| RequestError::Folder { path: path.into(), source };
    if path.canonicalize().map_err(failed)?.as_os_str() != path.as_os_str() {
        return Err(RequestError::NotWhole { path: path.into() });
    }
    let found = path.symlink_metadata().map_err(failed)?;
    if !found.is_dir() {
        return Err(RequestError::NotWhole { path: path.into() });
    }
    Ok(Folder { path: bytes(path), device: found.dev(), inode: found.ino(), how })
}

fn allowed(folder: &Folder) -> Result<(), RequestError> {
    let path = plan::path(&folder.path);
    let own = path == Path::new("/") || path == Path::new("/tmp");
    if own || RESERVED.iter().any(|reserved| path.starts_with(reserved)) {
        return Err(RequestError::Reserved { path });
    }
    Ok(())
}

fn apart<'a>(folder: &Folder, others: impl IntoIterator<Item = &'a Folder>) -> Result<(), RequestError> {
    let path = plan::path(&folder.path);
    for other in others {
        let other = plan::path(&other.path);
        if path.starts_with(&other) || other.starts_with(&path) {
            return Err(RequestError::Overlap { path, other });
        }
    }
    Ok(())
}

fn empty(path: &Path) -> Result<Folder, RequestError> {
    let failed = |source| RequestError::Folder { path: path.into(), source };
    let scratch = folder(path, How::ReadWrite)?;
    let private = path.symlink_metadata().map_err(failed)?.mode() & 0o777 == 0o700;
    if !private || path.read_dir().map_err(failed)?.next().is_some() {
        return Err(RequestError::Scratch { path: path.into() });
    }
    Ok(scratch)
}

/// What a plan says of mechanisms alone.
pub(crate) fn trial(request: &Request) -> Plan {
    Plan { arguments: Vec::new(), ..request.plan(None) }
}
