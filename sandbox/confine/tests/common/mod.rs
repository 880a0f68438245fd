//! What the test programs share: they are the init stage themselves, and run their tests one after another, since each counts
//! what is left.
#![allow(dead_code, reason = "each test program uses some of it")]

use std::{
    ffi::OsString,
    fs::{self, DirBuilder},
    future::{Future, pending},
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::Duration,
};

use ephor_confine::{
    Access, Ended, Lack, Limits, Request, RunError, Workspace, init,
    overlay::{Bounds, Changes, Protection, ReadError, discard},
};
use libtest_mimic::{Arguments, Trial};
use tempfile::TempDir;

/// Runs the tests, unless this is the init stage.
pub(crate) fn main(tests: Vec<Trial>) -> ExitCode {
    if init::is_called() {
        return init::main();
    }
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    // What tokio opens once and keeps, to hear of children that end, is not to count as left.
    assert!(wait(async { tokio::process::Command::new("true").status().await }).unwrap().success());
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// A test that also sees to it that nothing is left.
pub(crate) fn test(name: &'static str, body: fn()) -> Trial {
    Trial::test(name, move || {
        let before = left();
        body();
        // What tokio closes when its runtime goes is closed by now.
        assert_eq!(left(), before, "processes in other namespaces, mounts, descriptors");
        Ok(())
    })
}

/// What a run could leave: processes that are in another namespace than this one and were started by this program, mounts and descriptors.
fn left() -> (Vec<u32>, usize, usize) {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap().lines().count();
    (descendants(), mounts, fs::read_dir("/proc/self/fd").unwrap().count())
}

/// All processes of this user in a namespace for processes that lies below this one.
pub(crate) fn descendants() -> Vec<u32> {
    let own = fs::read_link("/proc/self/ns/pid").unwrap();
    let numbers = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let other = |number: &u32| {
        let path = Path::new("/proc").join(number.to_string());
        let arguments = fs::read(path.join("cmdline")).unwrap_or_default();
        let init = String::from_utf8_lossy(&arguments).contains("ephor-confine-init");
        init || fs::read_link(path.join("ns/pid")).is_ok_and(|namespace| namespace != own)
    };
    let mut found: Vec<u32> = numbers.filter(other).collect();
    found.sort_unstable();
    found
}

/// A workspace and a folder for runs.
pub(crate) struct Place {
    folder: TempDir,
    runs: std::cell::Cell<u32>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("confine-").tempdir().unwrap();
        fs::create_dir(folder.path().join("workspace")).unwrap();
        Self { folder, runs: std::cell::Cell::new(0) }
    }

    /// Below the folder that holds both: what the command does not see.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.beside("workspace")
    }

    pub(crate) fn scratch(&self) -> PathBuf {
        self.runs.set(self.runs.get() + 1);
        let scratch = self.beside(&format!("run-{}", self.runs.get()));
        DirBuilder::new().mode(0o700).create(&scratch).unwrap();
        scratch
    }

    pub(crate) fn write(&self, path: &str, text: impl AsRef<[u8]>) {
        let path = self.workspace().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> String {
        String::from_utf8(fs::read(self.workspace().join(path)).unwrap()).unwrap()
    }

    /// A request for these words, with what the tests do without.
    pub(crate) fn request(&self, words: &[&str]) -> Request {
        let words = words.iter().map(OsString::from).collect();
        let request = Request::new(words, &self.workspace(), Workspace::Overlay, &self.scratch()).unwrap();
        request.variable("PATH", "/usr/bin:/bin").unwrap().accepting(Lack::Cgroup)
    }

    pub(crate) fn shell(&self, script: &str) -> Request {
        self.request(&["sh", "-c", script])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        for entry in fs::read_dir(self.folder.path()).into_iter().flatten().flatten() {
            let _ = fs::set_permissions(entry.path(), fs::Permissions::from_mode(0o700));
            let _ = discard(&entry.path());
        }
    }
}

/// Runs it to its end.
pub(crate) fn run(request: &Request) -> Result<Ended, RunError> {
    wait(ephor_confine::run(request, &|_| {}, pending()))
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Runs it, and gives what it wrote to stdout. Fails unless it ends by itself with 0.
pub(crate) fn said(request: &Request) -> String {
    let ended = run(request).unwrap();
    let errors = String::from_utf8_lossy(&ended.stderr.whole().unwrap()).into_owned();
    assert_eq!(ended.end, ephor_confine::End::Exited(0), "stderr: {errors}");
    String::from_utf8(ended.stdout.whole().unwrap()).unwrap()
}

pub(crate) fn changes(request: &Request) -> Result<Changes, ReadError> {
    Changes::read(&request.workspace(), &request.upper(), Bounds::USUAL)
}

/// Runs a script and applies what it has changed.
pub(crate) fn applied(request: &Request) -> Changes {
    said(request);
    let changes = changes(request).unwrap();
    changes.apply(&|_: &Path| Protection::Open, &mut |_, _, _| Ok(())).unwrap();
    changes
}

/// The changes in words: `+` is new, `-` is gone, `~` is other than before.
pub(crate) fn words(changes: &Changes) -> Vec<String> {
    let word = |change: &ephor_confine::overlay::Change| {
        let sign = match (&change.before, &change.after) {
            (None, _) => '+',
            (_, None) => '-',
            _ => '~',
        };
        format!("{sign}{}", change.path.display())
    };
    changes.list().iter().map(word).collect()
}

/// The folder of a Rust toolchain with a linker beside it; else the test says that it tried nothing.
pub(crate) fn toolchain() -> Option<PathBuf> {
    let printed = Command::new("rustc").args(["--print", "sysroot"]).output().ok().filter(|it| it.status.success());
    let root = printed.and_then(|it| fs::canonicalize(String::from_utf8(it.stdout).ok()?.trim()).ok());
    let root = root.filter(|root| root.join("bin/cargo").exists() && has("cc"));
    if root.is_none() {
        eprintln!("untried: there is no whole toolchain of Rust");
    }
    root
}

pub(crate) fn with_toolchain(request: Request, root: &Path) -> Request {
    let request = request.folder(root, Access::ReadOnly).unwrap().variable("CARGO_HOME", "/tmp/cargo").unwrap();
    let request = request.variable("RUSTC", root.join("bin/rustc")).unwrap();
    request.limits(within(100)).unwrap()
}

/// Whether the system has the program; else the test says that it tried nothing.
pub(crate) fn has(program: &str) -> bool {
    let there = ["/usr/bin", "/bin"].iter().any(|folder| Path::new(folder).join(program).exists());
    if !there {
        eprintln!("untried: there is no /usr/bin/{program}");
    }
    there
}

pub(crate) fn within(seconds: u64) -> Limits {
    Limits { deadline: Duration::from_secs(seconds), grace: Duration::from_millis(300), ..Limits::USUAL }
}

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
