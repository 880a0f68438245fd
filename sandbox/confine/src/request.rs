//! A request for one run. Every part of it is checked and bounded when it is made.

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
    overlay::LONGEST_PATH,
    plan::{self, Bounds, Folder, How, Plan, bytes},
};

/// The most arguments.
pub const MOST_ARGUMENTS: usize = 4_096;
/// The most variables.
pub const MOST_VARIABLES: usize = 1_024;
/// The most bytes of arguments and variables together. Linux takes 128 KiB in one of them.
pub const MOST_BYTES: usize = 120 << 10;
/// The most folders that can be declared.
pub const MOST_FOLDERS: usize = 64;
/// The most files and folders that can be hidden.
pub const MOST_HIDDEN: usize = 4_096;
/// The most bytes of their paths together.
pub const MOST_HIDDEN_BYTES: usize = 1 << 20;

/// Paths that the init stage mounts or hides itself.
const RESERVED: [&str; 11] =
    ["/proc", "/sys", "/dev", "/etc", "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// How the command sees a declared folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Files can be read and executed.
    ReadOnly,
    /// Files can also be written, in place and without a list of changes: for a cache.
    ReadWrite,
}

/// How the command sees the workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Workspace {
    /// Writes go to the upper layer of an overlay.
    Overlay,
    /// Writes are refused. Needs no overlay.
    ReadOnly,
}

/// Limits of a run. None may be 0 or above [`Limits::MOST`].
///
/// The size of the upper layer as a whole is bounded only by the file system of the scratch folder: Linux has no unprivileged
/// quota for a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Wall time until SIGTERM to all processes; after [`Limits::grace`] SIGKILL follows.
    pub deadline: Duration,
    /// Wall time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Bytes kept of each of stdout and stderr.
    pub output: usize,
    /// Bytes of memory: of all processes together with a cgroup, of the private data of each process without.
    pub memory: u64,
    /// Processes and threads at one time.
    pub processes: u64,
    /// Bytes of one file.
    pub file: u64,
    /// Open descriptors of one process.
    pub open_files: u64,
    /// Bytes in the private `/tmp`, a tmpfs.
    pub temporary: u64,
}

impl Limits {
    /// The upper bound of each limit.
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

    /// Enough for one command of a coding agent.
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

/// Why a request is refused. The caller is at fault; nothing has happened.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No program, too many arguments, or a NUL in one.
    #[error("there are between 1 and {MOST_ARGUMENTS} arguments without NUL")]
    Arguments,
    /// An empty name, a name with `=`, a NUL, a name given twice, or too many variables.
    #[error(
        "the variable `{0}` cannot be set: names are distinct and without `=`, at most {MOST_VARIABLES}, without NUL"
    )]
    Variable(String),
    /// Arguments and variables are longer than [`MOST_BYTES`].
    #[error("arguments and environment have more than {MOST_BYTES} bytes")]
    Long,
    /// The path is not absolute and canonical, or is no folder.
    #[error("`{path}` is not the absolute, canonical path of a folder")]
    NotCanonical {
        /// The path.
        path: PathBuf,
    },
    /// The system's error about a folder.
    #[error("`{path}` cannot be used")]
    Folder {
        /// The path.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The path is one that the init stage mounts itself, or lies below one.
    #[error("`{path}` is hidden in a run by a folder of its own")]
    Reserved {
        /// The path.
        path: PathBuf,
    },
    /// One of two folders contains the other.
    #[error("one of `{path}` and `{other}` contains the other")]
    Overlap {
        /// The path.
        path: PathBuf,
        /// The folder that was declared before.
        other: PathBuf,
    },
    /// More than [`MOST_FOLDERS`].
    #[error("there are at most {MOST_FOLDERS} folders")]
    Folders,
    /// The scratch folder is not empty, or its mode is not 700.
    #[error("the scratch folder `{path}` is not an empty folder of mode 700")]
    Scratch {
        /// The path.
        path: PathBuf,
    },
    /// More than [`MOST_HIDDEN`], or their paths have more than [`MOST_HIDDEN_BYTES`].
    #[error("more than {MOST_HIDDEN} files and folders of the workspace would have to be hidden")]
    Hidden,
    /// It is not a relative path below the workspace.
    #[error("`{path}` is not a relative path below the workspace")]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// A limit is 0 or above its most.
    #[error("the limit `{0}` is 0 or more than it may be")]
    Limit(&'static str),
}

/// One command, with what it may see and use.
///
/// Folders are fixed by device and inode when they are declared. If another folder lies at the path when the command starts, the
/// run fails.
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
    hidden: Vec<PathBuf>,
}

impl Request {
    /// A request to run `arguments` in `workspace`, which keeps its path inside. The first argument is the program: a path, or a
    /// name that is looked up in the declared `PATH`.
    ///
    /// `scratch` is an empty folder of mode 700 that the caller made for this run, on a file system that can hold the upper
    /// layer of an overlay. The upper layer ([`Request::upper`]) stays there until the caller discards the folder.
    ///
    /// # Errors
    /// [`RequestError`].
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
            hidden: Vec::new(),
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

    /// Declares a folder, which keeps its path inside.
    ///
    /// # Errors
    /// [`RequestError`].
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

    /// Sets the working directory, relative to the workspace, which is the default.
    ///
    /// # Errors
    /// [`RequestError::Directory`].
    pub fn directory(mut self, path: &Path) -> Result<Self, RequestError> {
        self.directory = plan::path(&self.workspace.path).join(below(path)?);
        Ok(self)
    }

    /// Hides a file or a folder of the workspace: the command finds something there that it can neither open nor change. Symbolic links
    /// on the way are not followed; what is a link, or is gone when the command starts, is not hidden.
    ///
    /// # Errors
    /// [`RequestError::Directory`] or [`RequestError::Hidden`].
    pub fn hide(mut self, path: &Path) -> Result<Self, RequestError> {
        let path = below(path)?;
        let bytes: usize = self.hidden.iter().map(|other| other.as_os_str().len()).sum();
        let all = bytes.saturating_add(path.as_os_str().len());
        if path.as_os_str().is_empty() || self.hidden.len() >= MOST_HIDDEN || all > MOST_HIDDEN_BYTES {
            return Err(RequestError::Hidden);
        }
        self.hidden.push(path.into());
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

    /// Accepts, by the operator's configuration, that a mechanism may be missing.
    #[must_use]
    pub fn accepting(mut self, lack: Lack) -> Self {
        self.accepted.insert(lack);
        self
    }

    /// Sets the delegated cgroup v2 in which each run gets a child. Without one, [`Lack::Cgroup`] has to be accepted.
    #[must_use]
    pub fn cgroup(mut self, folder: PathBuf) -> Self {
        self.cgroup = Some(folder);
        self
    }

    /// Opens one port of the command's loopback to the caller, who accepts the connections
    /// ([`Event::Listening`](crate::Event::Listening)). Without it, no connection leaves the network namespace.
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

    /// Where the upper layer lies once the command has run.
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

    /// The plan for the init stage, with the file through which it enters its cgroup.
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
            hidden: self.hidden.iter().map(bytes).collect(),
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

/// The folder at `path` as it is now.
fn folder(path: &Path, how: How) -> Result<Folder, RequestError> {
    let failed = |source| RequestError::Folder { path: path.into(), source };
    if path.canonicalize().map_err(failed)?.as_os_str() != path.as_os_str() {
        return Err(RequestError::NotCanonical { path: path.into() });
    }
    let found = path.symlink_metadata().map_err(failed)?;
    if !found.is_dir() {
        return Err(RequestError::NotCanonical { path: path.into() });
    }
    Ok(Folder { path: bytes(path), device: found.dev(), inode: found.ino(), how })
}

/// A relative path without `.`, `..` and NUL.
fn below(path: &Path) -> Result<&Path, RequestError> {
    let down = path.components().all(|part| matches!(part, Component::Normal(_)));
    if !down || path.as_os_str().len() > LONGEST_PATH || path.as_os_str().as_bytes().contains(&0) {
        return Err(RequestError::Directory { path: path.into() });
    }
    Ok(path)
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

/// A plan that only tries the mechanisms.
pub(crate) fn trial(request: &Request) -> Plan {
    Plan { arguments: Vec::new(), ..request.plan(None) }
}
