//! What every command costs on a home of many sessions, as a table: `just bench-large`.
//!
//! The home is made once, by a node and its clients, and used again: in `EPHOR_LARGE`, or below the target folder.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "a measurement may stop")]

#[path = "../story/wire.rs"]
#[expect(dead_code, reason = "the stories use the rest")]
mod wire;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use wire::{Wire, credential};

/// Conversations, each of one turn; every fourth lists the workspace in it.
const SESSIONS: u64 = 20_000;
/// Those that wait for a person at the end.
const WAITING: u64 = 200;
/// Schedules.
const SCHEDULES: u64 = 5_000;
/// Clients at a time.
const CLIENTS: u64 = 16;

struct Large {
    home: PathBuf,
    workspace: PathBuf,
    root: PathBuf,
}

impl Large {
    fn new() -> Self {
        let below = || Path::new(env!("CARGO_TARGET_TMPDIR")).join("large");
        let root = std::env::var_os("EPHOR_LARGE").map_or_else(below, PathBuf::from);
        let (home, workspace) = (root.join("home"), root.join("workspace"));
        fs::create_dir_all(&workspace).unwrap();
        fs::write(workspace.join("notes.md"), "TODO: write\n").unwrap();
        Self { home, workspace, root }
    }

    fn command(&self, args: &[&str]) -> Command {
        // GNU time says what a process took at most; nothing in safe Rust does.
        let mut command = Command::new("/usr/bin/time");
        command.args(["-o", self.timed().to_str().unwrap(), "-f", "%e %M", env!("CARGO_BIN_EXE_ephor")]).args(args);
        command.env("EPHOR_HOME", &self.home).env("XDG_CACHE_HOME", self.root.join("cache"));
        command.env_remove("OPENAI_API_KEY").current_dir(&self.workspace).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    fn timed(&self) -> PathBuf {
        self.root.join("timed")
    }

    fn up(&self) -> Node {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
        command.arg("up").env("EPHOR_HOME", &self.home).env("XDG_CACHE_HOME", self.root.join("cache"));
        command.env_remove("OPENAI_API_KEY").current_dir(&self.workspace).stdin(Stdio::null());
        let log = fs::File::create(self.root.join("up.log")).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let socket = self.home.join("node.sock");
        while !socket.exists() || !self.home.join("keys/operator").exists() {
            thread::sleep(Duration::from_millis(20));
        }
        Node(child)
    }

    fn client(&self) -> Wire {
        let key = credential(&self.home.join("keys/operator"));
        loop {
            let wire = Wire::open(&self.home.join("node.sock"), &key);
            if let Some(mut wire) = wire
                && wire.introduce().is_some_and(|answer| answer["say"] == "welcome")
            {
                return wire;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// One conversation of one turn.
    fn converse(&self, number: u64, waits: bool) {
        let call = |name, arguments| json!({"text": "", "tool_calls": [{"name": name, "arguments": arguments}]});
        let mut lines = vec![json!({"text": "done"})];
        if waits {
            lines.insert(0, call("fs.write", json!({"path": ".env", "content": "A=1"})));
        } else if number.is_multiple_of(4) {
            lines.insert(0, call("fs.list", json!({"path": "."})));
        }
        let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let model = json!({"provider": "script", "name": "large", "script": script});
        let mut wire = self.client();
        let opened = wire.ask(&json!({"say": "open", "workspace": self.workspace, "model": model, "answers": true}));
        assert_eq!(opened["say"], "opened", "{opened}");
        let parts = json!([{"kind": "typed", "text": format!("message {number}")}]);
        wire.say(&json!({"say": "send", "session": opened["session"], "parts": parts}));
        let end = if waits { "deferred" } else { "turn_ended" };
        wire.until(|answer| answer["event"] == end);
    }

    fn schedules(&self) {
        let mut wire = self.client();
        for number in 0..SCHEDULES {
            let parts = json!([{"kind": "typed", "text": "look after it"}]);
            let schedule = json!({
                "do": "schedule", "name": format!("schedule-{number}"), "cron": "30 9 1 1 *", "zone": "UTC",
                "missed": "skip", "parts": parts, "workspace": self.workspace, "model": null
            });
            let done = wire.ask(&json!({"say": "operate", "operation": schedule}));
            assert_eq!(done["say"], "operated", "{done}");
        }
    }

    fn make(&self) {
        let done = self.root.join("made");
        if done.exists() {
            return;
        }
        let _none = fs::remove_dir_all(&self.home);
        let sessions = std::env::var("EPHOR_LARGE_SESSIONS").map_or(SESSIONS, |text| text.parse().unwrap());
        let (node, begun, next) = (self.up(), Instant::now(), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..CLIENTS {
                scope.spawn(|| {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= sessions {
                            return;
                        }
                        self.converse(number, number + WAITING >= sessions);
                        if number % 1000 == 0 {
                            eprintln!("{number} of {sessions} after {:.0?}", begun.elapsed());
                        }
                    }
                });
            }
        });
        self.schedules();
        node.stop();
        fs::write(done, "").unwrap();
    }

    /// A row of the table.
    fn measure(&self, args: &[&str]) {
        let ended = self.command(args).stderr(Stdio::null()).status().unwrap();
        let text = fs::read_to_string(self.timed()).unwrap();
        let last = text.lines().last().unwrap();
        let (seconds, kilobytes) = last.split_once(' ').unwrap();
        let (seconds, kilobytes): (f64, f64) = (seconds.parse().unwrap(), kilobytes.parse().unwrap());
        let name: Vec<&str> = args.iter().map(|word| if word.len() > 24 { "…" } else { *word }).collect();
        let code = ended.code().unwrap_or(-1);
        println!("{:<44} {:>8.0} ms {:>7.1} MB  {code}", name.join(" "), seconds * 1000.0, kilobytes / 1024.0);
    }

    /// Waits until no node that a command started is left.
    fn wait_until_alone(&self) {
        let lock = fs::File::open(self.home.join("lock")).unwrap();
        while lock.try_lock().is_err() {
            thread::sleep(Duration::from_millis(20));
        }
    }

    fn size(&self, name: &str) {
        let (mut folders, mut bytes) = (vec![self.home.join(name)], 0);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let metadata = entry.metadata().unwrap();
                if metadata.is_dir() { folders.push(entry.path()) } else { bytes += metadata.len() }
            }
        }
        println!("{name:<44} {:>11.1} MB", bytes as f64 / 1e6);
    }
}

struct Node(Child);

impl Node {
    fn stop(mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        self.0.wait().unwrap();
    }

    fn memory(&self) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        for name in ["VmRSS", "VmHWM", "RssAnon"] {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let kilobytes: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
            println!("{:<44} {:>11.1} MB", format!("the node: {name}"), kilobytes / 1024.0);
        }
    }
}

#[test]
#[ignore = "a measurement; just bench-large"]
fn what_each_command_costs_on_a_large_home() {
    let large = Large::new();
    large.make();
    let session = session(&large);
    let looks: &[&[&str]] = &[
        &["--version"],
        &["ps"],
        &["ps", "--json"],
        &["approvals"],
        &["approvals", "--json"],
        &["sessions"],
        &["sessions", "--json"],
        &["tickets"],
        &["precedents"],
        &["schedule", "list"],
        &["operator", "list"],
        &["dead", "list"],
        &["state"],
        &["chain", "stat"],
        &["chain", "key"],
        &["chain", "log", "--last", "20"],
        &["chain", "log", "--last", "20", "--content"],
        &["chain", "log", "--session", &session],
        &["chain", "log", "--kind", "turn_end", "--last", "20"],
        &["policy", "show"],
        &["policy", "explain", "40"],
    ];
    let whole: &[&[&str]] = &[&["chain", "log", "--json"], &["chain", "verify"], &["policy", "explain", "--all"]];
    large.measure(&["state"]);
    println!("\nwithout a node");
    for args in looks {
        large.wait_until_alone();
        large.measure(args);
    }
    large.wait_until_alone();
    whole.iter().for_each(|args| large.measure(args));
    let copy = large.root.join("copy");
    let _none = fs::remove_dir_all(&copy);
    let folder = copy.to_str().unwrap().to_owned();
    large.measure(&["backup", &folder]);
    large.measure(&["backup", &folder]);
    println!("\nbeside a node");
    let node = large.up();
    drop(large.client());
    node.memory();
    looks.iter().for_each(|args| large.measure(args));
    large.measure(&["backup", &folder]);
    large.measure(&["backup", &folder]);
    node.memory();
    node.stop();
    println!();
    ["chain", "vault", "state"].iter().for_each(|name| large.size(name));
}

/// Some session in the middle of the record.
fn session(large: &Large) -> String {
    let mut command = large.command(&["sessions", "--json", "--last", "500"]);
    let out = command.stdout(Stdio::piped()).output().unwrap().stdout;
    let last = String::from_utf8(out).unwrap();
    let row: serde_json::Value = serde_json::from_str(last.lines().last().unwrap_or("{}")).unwrap_or_default();
    row["id"].as_str().or_else(|| row["session"].as_str()).unwrap_or("none").to_owned()
}
