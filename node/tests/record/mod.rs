//! What the tests of the record share: a home and a workspace of their own, and the binary driven as a user drives it.
#![expect(clippy::expect_used, clippy::panic, reason = "a test stops at the first surprise")]

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

/// Nothing here takes this long; what does, hangs.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A private place: a home, a workspace, and room for scripts and output.
pub(crate) struct Place {
    root: TempDir,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
}

/// How a command ended, and what it said.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (home, workspace) = (root.path().join("home"), root.path().join("workspace"));
        fs::create_dir(&workspace).expect("a workspace");
        Self { root, home, workspace }
    }

    /// A file or folder beside home and workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// `ephor` on this home.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
        command.arg("--home").arg(&self.home).args(args);
        command.env_remove("EPHOR_HOME").env_remove("OPENAI_API_KEY").current_dir(self.root.path());
        command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs `ephor` to its end.
    pub(crate) fn ephor(&self, args: &[&str]) -> Ended {
        self.end(self.command(args))
    }

    /// Runs a command to its end.
    pub(crate) fn end(&self, mut command: Command) -> Ended {
        let (out, err) = (self.beside("stdout"), self.beside("stderr"));
        command.stdout(File::create(&out).expect("a file")).stderr(File::create(&err).expect("a file"));
        let mut child = command.spawn().expect("the command starts");
        let status = wait(&mut child, &format!("{command:?}"));
        let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).expect("its output")).into_owned();
        Ended { status, out: text(&out), err: text(&err) }
    }

    /// The nodes that were started for clients of this home.
    pub(crate) fn nodes(&self) -> Vec<i32> {
        processes(&self.home, "--until-idle")
    }

    /// Waits until no process of this home is left.
    pub(crate) fn wait_until_alone(&self) {
        let began = Instant::now();
        while !processes(&self.home, "").is_empty() {
            assert!(began.elapsed() < TIMEOUT, "a process of the home does not end by itself");
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// The chain as `ephor chain log` prints it, with contents.
    pub(crate) fn log(&self) -> Vec<Value> {
        let log = self.ephor(&["chain", "log", "--json", "--content"]);
        assert!(log.status.success(), "{}", log.err);
        log.out.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }
}

/// Waits for the end of a child. One that hangs is killed, and the test fails.
pub(crate) fn wait(child: &mut Child, what: &str) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if began.elapsed() > TIMEOUT {
            child.kill().expect("it can be killed");
            panic!("`{what}` hangs");
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// The processes that were told this home and `word` on their command line.
fn processes(home: &Path, word: &str) -> Vec<i32> {
    let home = home.to_string_lossy().into_owned();
    let pids = fs::read_dir("/proc").expect("the list of processes").filter_map(Result::ok);
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    pids.filter(|pid| {
        // A process that ended meanwhile has none.
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let words: Vec<String> = words.collect();
        words.contains(&home) && (word.is_empty() || words.contains(&word.to_owned()))
    })
    .collect()
}
