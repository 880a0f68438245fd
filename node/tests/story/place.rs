//! A home and a workspace in a temporary folder, and the binary in them.

use std::{
    ffi::{OsStr, OsString},
    fs,
    io::{Read, Write},
    os::unix::{fs::PermissionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::{OnceLock, mpsc},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// After this a process is taken for hung.
const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that is waited for.
const PAUSE: Duration = Duration::from_millis(20);

/// A home and a workspace of their own.
pub(crate) struct Place {
    root: PathBuf,
    /// Removes it with everything in it.
    folder: Option<TempDir>,
    pub(crate) home: PathBuf,
    pub(crate) workspace: PathBuf,
    /// Where compiled tools are kept.
    cache: PathBuf,
}

/// A process that has ended.
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A process that runs.
pub(crate) struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Place {
    /// A home in which the built-in tools are compiled already, which takes seconds and is the same everywhere.
    pub(crate) fn new() -> Self {
        let warm = warm();
        let mut place = Self::fresh();
        place.cache.clone_from(&warm.cache);
        place.make_home();
        place.asks_about_writes();
        fs::create_dir(place.home.join("keys")).unwrap();
        fs::set_permissions(place.home.join("keys"), fs::Permissions::from_mode(0o700)).unwrap();
        // What was compiled under this key is in that cache.
        fs::copy(warm.home.join("keys/vault"), place.home.join("keys/vault")).unwrap();
        place
    }

    /// Has each write asked about, also where it can be undone: so there is something to ask about.
    pub(crate) fn asks_about_writes(&self) {
        let dev = include_str!("../../../governance/constitutions/dev.cedar");
        let strict = dev.replace("\n  when { !context.reversible };", ";");
        assert_ne!(dev, strict);
        fs::write(self.home.join("constitution.cedar"), strict).unwrap();
    }

    /// Has the constitution of its environment decide, as in a home that nobody has touched.
    pub(crate) fn asks_as_it_comes(self) -> Self {
        fs::remove_file(self.home.join("constitution.cedar")).unwrap();
        self
    }

    /// A home that was never used: not even the folder is there.
    pub(crate) fn fresh() -> Self {
        let folder = TempDir::new().unwrap();
        let mut place = Self::at(folder.path());
        place.folder = Some(folder);
        place
    }

    fn at(root: &Path) -> Self {
        // The system's folder for temporary files may be a link, and paths are compared.
        let root = root.canonicalize().unwrap();
        let (home, workspace) = (root.join("home"), root.join("workspace"));
        fs::create_dir(&workspace).unwrap();
        let cache = root.join("cache");
        Self { root, folder: None, home, workspace, cache }
    }

    /// The folder around home and workspace.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn make_home(&self) {
        fs::create_dir_all(&self.home).unwrap();
        fs::set_permissions(&self.home, fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Writes a file of the workspace, with its folders.
    pub(crate) fn file(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.workspace.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    /// Writes `ephor.toml`.
    pub(crate) fn configure(&self, text: &str) {
        self.make_home();
        fs::write(self.home.join("ephor.toml"), text).unwrap();
    }

    /// Writes a script outside the workspace and gives the name of its model.
    pub(crate) fn script(&self, lines: &[Value]) -> String {
        let path = self.root().join("script.jsonl");
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
        format!("script:{}", path.display())
    }

    /// The binary with this home, in the workspace, in a session without a terminal, without anybody's keys.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.shell(env!("CARGO_BIN_EXE_ephor"));
        command.args(args);
        command
    }

    /// Any program, in the same surroundings.
    pub(crate) fn shell(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.workspace).env("EPHOR_HOME", &self.home).stdin(Stdio::null());
        command.env("XDG_CACHE_HOME", &self.cache);
        let foreign = |name: &OsString| name.to_string_lossy().starts_with("OPENAI_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| foreign(name)) {
            command.env_remove(name);
        }
        command.env_remove("EPHOR_LOG");
        // SAFETY: between fork and exec only setsid is called, which is safe to call there.
        unsafe {
            command.pre_exec(|| rustix::process::setsid().map(|_| ()).map_err(Into::into));
        }
        command
    }

    /// Runs the binary to its end with nothing on standard input.
    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Running::start(&mut self.command(args)).ended()
    }

    /// Runs it with `input` piped in.
    pub(crate) fn pipe(&self, args: &[&str], input: &str) -> Ran {
        let mut running = Running::start(self.command(args).stdin(Stdio::piped()));
        let mut stdin = running.child.stdin.take().unwrap();
        // A program that does not read its input closes it.
        let _closed = stdin.write_all(input.as_bytes());
        drop(stdin);
        running.ended()
    }

    /// Starts it.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        Running::start(&mut self.command(args))
    }

    /// Starts `ephor up` and waits until it takes clients.
    pub(crate) fn up(&self) -> Running {
        let up = self.start(&["up"]);
        wait_until("the node takes clients", || self.run(&["ps"]).status.success());
        up
    }

    /// Runs one turn whose model plays `lines`, with `args` before the message.
    pub(crate) fn play(&self, args: &[&str], lines: &[Value]) -> Ran {
        let script = self.script(lines);
        self.run(&[&["run", "--json", "--model", &script], args, &["go on"]].concat())
    }

    /// The entries of the chain, with their private content, once the node has let go of it.
    pub(crate) fn log(&self) -> Vec<Value> {
        self.node_is_gone();
        self.log_now()
    }

    /// The entries of the chain as they are now.
    pub(crate) fn log_now(&self) -> Vec<Value> {
        let ran = self.run(&["chain", "log", "--json", "--content"]);
        assert!(ran.status.success(), "{}", ran.stderr);
        ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What waits for people, as `approvals --json` has it.
    pub(crate) fn waits(&self) -> Value {
        serde_json::from_str(&self.run(&["approvals", "--json"]).succeeded().stdout).unwrap()
    }

    /// The tickets that wait for people.
    pub(crate) fn tickets(&self) -> Vec<Value> {
        self.waits()["tickets"].as_array().unwrap().clone()
    }

    /// How the node stands, as `ps --json` has it.
    pub(crate) fn standing(&self) -> Value {
        serde_json::from_str(&self.run(&["ps", "--json"]).succeeded().stdout).unwrap()
    }

    /// The processes of the node.
    pub(crate) fn processes(&self) -> Vec<Value> {
        self.standing()["processes"].as_array().unwrap().clone()
    }

    /// The facts of one kind on the chain.
    pub(crate) fn facts(&self, kind: &str) -> Vec<Value> {
        let facts = self.log().into_iter().map(|entry| entry["fact"].clone());
        facts.filter(|fact| fact["kind"] == kind).collect()
    }

    /// Waits until no node runs on this home.
    pub(crate) fn node_is_gone(&self) {
        wait_until("the node ends after its last client", || !self.is_locked());
    }

    /// Whether a node holds the home.
    pub(crate) fn is_locked(&self) -> bool {
        match fs::File::options().write(true).open(self.home.join("lock")) {
            Ok(file) => matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock)),
            Err(_) => false,
        }
    }

    /// The chain holds, and nothing is open on it.
    pub(crate) fn verify(&self) {
        self.node_is_gone();
        let ran = self.run(&["chain", "verify", "--json"]);
        assert!(ran.status.success(), "{}{}", ran.stdout, ran.stderr);
        let told: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(told["ok"], true, "{told}");
        assert_eq!(told["report"]["open_intents"], 0, "{told}");
    }
}

impl Drop for Place {
    /// A node that outlives its test would write into a folder that is gone.
    fn drop(&mut self) {
        let began = Instant::now();
        while self.is_locked() && began.elapsed() < Duration::from_secs(15) {
            thread::sleep(PAUSE);
        }
        if self.is_locked() {
            for pid in nodes_of(&self.home) {
                let _gone = kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// The processes that name `home` among their arguments.
fn nodes_of(home: &Path) -> impl Iterator<Item = Pid> {
    let named = home.as_os_str().as_encoded_bytes().to_vec();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read(entry.path().join("cmdline")).ok()?;
        line.split(|byte| *byte == 0).any(|word| word == named).then_some(())?;
        Pid::from_raw(pid)
    })
}

impl Ran {
    /// The events of `--json`. Every line is one.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in `{line}`"));
        self.stdout.lines().map(parse).collect()
    }

    /// The events of one kind.
    pub(crate) fn seen(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["event"] == kind).collect()
    }

    /// The reply, which there is exactly once.
    pub(crate) fn reply(&self) -> Value {
        let mut replies = self.seen("reply");
        assert_eq!(replies.len(), 1, "{self}");
        replies.remove(0)
    }

    /// Exit status 0.
    #[track_caller]
    pub(crate) fn succeeded(self) -> Self {
        assert!(self.status.success(), "{self}");
        self
    }

    /// A reply, and before it a call that was refused because nobody was there to be asked.
    #[track_caller]
    pub(crate) fn unasked(self) -> Self {
        assert_eq!(self.status.code(), Some(5), "{self}");
        self
    }

    /// Another exit status, and words for a person that hold all of `words`: no trace of a panic.
    #[track_caller]
    pub(crate) fn failed(self, words: &[&str]) -> Self {
        assert!(self.status.code().is_some_and(|code| code != 0), "{self}");
        for word in words {
            assert!(self.stderr.contains(word), "`{word}` is not said: {self}");
        }
        for trace in ["panicked", "RUST_BACKTRACE", "stack backtrace", ".rs:"] {
            assert!(!self.stderr.contains(trace), "{self}");
        }
        self
    }
}

impl std::fmt::Display for Ran {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n--- out\n{}\n--- err\n{}", self.status, self.stdout, self.stderr)
    }
}

impl Running {
    /// Starts `command` and reads along, so that it never waits for us.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        Self { child, stdout: Some(reader(stdout)), stderr: Some(reader(stderr)) }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end.
    #[track_caller]
    pub(crate) fn ended(mut self) -> Ran {
        let began = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if began.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                let (out, err) = self.said();
                panic!("it hangs\n--- out\n{out}\n--- err\n{err}");
            }
            thread::sleep(Duration::from_millis(2));
        };
        let (stdout, stderr) = self.said();
        Ran { status, stdout, stderr }
    }

    fn said(&mut self) -> (String, String) {
        let join = |thread: &mut Option<JoinHandle<String>>| thread.take().unwrap().join().unwrap();
        (join(&mut self.stdout), join(&mut self.stderr))
    }
}

impl Drop for Running {
    /// A test that failed leaves nothing behind.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _gone = self.child.kill();
            let _reaped = self.child.wait();
        }
    }
}

fn reader(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _broken = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Collects what is shown, and types something once something else is shown.
pub(crate) fn watch(child: &mut Child, mut typed: Option<(&str, &str)>) -> String {
    let (mut stdout, mut stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
    let (sender, pieces) = mpsc::channel();
    thread::spawn(move || {
        let mut piece = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut piece) {
            if sender.send(piece[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    let mut shown = Vec::new();
    loop {
        match pieces.recv_timeout(PATIENCE) {
            Ok(piece) => shown.extend(piece),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                child.kill().unwrap();
                panic!("the terminal hangs: {}", String::from_utf8_lossy(&shown));
            }
        }
        if let Some((_, words)) = typed.take_if(|(cue, _)| String::from_utf8_lossy(&shown).contains(*cue)) {
            stdin.write_all(format!("{words}\n").as_bytes()).unwrap();
        }
    }
    String::from_utf8_lossy(&shown).into_owned()
}

/// Waits until `is_so`, and fails if it never is.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(PAUSE);
    }
}

/// A home in which the tools are compiled, among the build products: a static value is never dropped.
fn warm() -> &'static Place {
    static WARM: OnceLock<Place> = OnceLock::new();
    WARM.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("story");
        let _none = fs::remove_dir_all(&root);
        fs::create_dir_all(&root).unwrap();
        let place = Place::at(&root);
        place.run(&["run", "list the files"]).succeeded();
        place.node_is_gone();
        place
    })
}
