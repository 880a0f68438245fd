//! Daemons, locks, terminals, pipes and the commands that look.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, Running, wait_until, watch};

const BINARY: &str = env!("CARGO_BIN_EXE_ephor");

/// A script whose one answer takes so long that somebody can look at the node meanwhile.
fn slow(place: &Place) -> String {
    place.script(&[json!({"text": "done", "delay_ms": 3000})])
}

/// The PIDs of nodes that a client started on this home.
fn nodes(home: &Path) -> Vec<PathBuf> {
    let named = home.as_os_str().as_encoded_bytes();
    let entries = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let is_node = |process: &PathBuf| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.contains(&named) && words.contains(&b"--until-idle".as_slice())
    };
    entries.filter(is_node).collect()
}

#[test]
fn a_node_whose_lines_cannot_be_written_goes_on() {
    let place = Place::new();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = place.command(&["up"]);
    let mut up = command.env("EPHOR_LOG", "trace").stderr(full).stdout(Stdio::null()).spawn().unwrap();
    wait_until("the node takes clients", || place.run(&["ps"]).status.success());
    place.run(&["run", "list the files"]).succeeded();
    assert!(up.try_wait().unwrap().is_none(), "the node goes on");
    rustix::process::kill_process(rustix::process::Pid::from_child(&up), Signal::TERM).unwrap();
    assert!(up.wait().unwrap().success());
}

#[test]
fn a_client_starts_no_node_on_a_home_that_is_in_use() {
    let place = Place::new();
    let lock = File::create(place.home.join("lock")).unwrap();
    lock.lock().unwrap();
    let client = place.start(&["run", "list the files"]);
    for _ in 0..20 {
        assert_eq!(nodes(&place.home), Vec::<PathBuf>::new());
        thread::sleep(Duration::from_millis(50));
    }
    drop(lock);
    client.ended().succeeded();
}

#[test]
fn a_socket_that_was_removed_comes_back() {
    let place = Place::new();
    let up = place.up();
    fs::remove_file(place.home.join("node.sock")).unwrap();
    wait_until("clients reach the node again", || place.run(&["ps"]).status.success());
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn a_node_holds_nothing_of_the_client_that_started_it() {
    let place = Place::new();
    let open = place.file("open", "held by the shell");
    let model = slow(&place);
    let line = format!("exec 7<'{}'; exec '{BINARY}' run --model '{model}' go", open.display());
    let client = Running::start(place.shell("sh").args(["-c", &line]));
    wait_until("a node runs", || !nodes(&place.home).is_empty());
    let node = nodes(&place.home).remove(0);
    wait_until("it answers", || place.run(&["ps"]).status.success());
    let files: Vec<PathBuf> =
        fs::read_dir(node.join("fd")).unwrap().filter_map(|file| fs::read_link(file.unwrap().path()).ok()).collect();
    assert!(!files.contains(&open), "{files:?}");
    let standard = |number: u32| fs::read_link(node.join("fd").join(number.to_string())).unwrap();
    assert_eq!((standard(0), standard(1)), (PathBuf::from("/dev/null"), PathBuf::from("/dev/null")));
    assert_eq!(standard(2), place.home.join("node.log"));
    let stat = fs::read_to_string(node.join("stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let pid = node.file_name().unwrap().to_str().unwrap();
    assert_eq!((fields[2], fields[3]), (pid, pid), "a process group and a session of its own: {stat}");
    assert_eq!(fields[4], "0", "no terminal: {stat}");
    client.ended().succeeded();
}

#[test]
fn a_node_whose_terminal_is_closed_stops_in_good_order() {
    let place = Place::new();
    let up = place.up();
    up.signal(Signal::HUP);
    up.ended().succeeded();
    let last = place.log().pop().unwrap();
    assert_eq!(last["fact"]["kind"], "stop", "{last}");
}

#[test]
fn commands_in_a_row_wait_for_the_node_that_ends() {
    let place = Place::new();
    for _ in 0..3 {
        place.run(&["run", "list the files"]).succeeded();
        place.run(&["chain", "rotate", "--yes"]).succeeded();
        place.run(&["run", "list the files"]).succeeded();
        let up = place.start(&["up"]);
        wait_until("the node takes clients", || place.run(&["ps"]).status.success());
        up.signal(Signal::TERM);
        up.ended().succeeded();
    }
}

#[test]
fn looking_keeps_no_node_from_starting_and_no_other_from_looking() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let looking = File::options().write(true).open(place.home.join("lock")).unwrap();
    looking.lock_shared().unwrap();
    place.run(&["approvals"]).succeeded();
    place.run(&["sessions"]).succeeded();
    let up = place.start(&["up"]);
    thread::sleep(Duration::from_millis(300));
    drop(looking);
    wait_until("the node takes clients", || place.run(&["ps"]).status.success());
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn a_watch_on_what_waits_keeps_no_node() {
    let place = Place::new();
    let model = slow(&place);
    let client = place.start(&["run", "--model", &model, "go"]);
    wait_until("a node runs", || place.run(&["ps"]).status.success());
    let watch = place.start(&["approvals", "--watch"]);
    client.ended().succeeded();
    place.node_is_gone();
    watch.signal(Signal::INT);
    let _interrupted = watch.ended();
}

#[test]
fn an_interrupt_at_a_prompt_for_a_secret_ends_the_command_and_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let words = place.root().join("words");
    fs::write(&words, "open sesame\n").unwrap();
    place.run(&["chain", "passphrase", "--new-file", words.to_str().unwrap()]).succeeded();
    let line = format!("'{BINARY}' run 'list the files'; echo \"status $?\"; stty -a");
    let mut command = place.shell("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let shown = watch(&mut child, Some(("Passphrase", "\u{3}")));
    child.wait().unwrap();
    assert!(shown.contains("status 130"), "{shown}");
    assert!(shown.contains(" echo ") && shown.contains("\nisig "), "{shown}");
}

#[test]
fn an_interrupt_ends_a_run_that_waits_for_a_node() {
    let place = Place::new();
    let lock = File::create(place.home.join("lock")).unwrap();
    lock.lock().unwrap();
    let client = place.start(&["run", "list the files"]);
    thread::sleep(Duration::from_millis(500));
    client.signal(Signal::INT);
    let ran = client.ended();
    assert!(!ran.status.success(), "{ran}");
    drop(lock);
}

#[test]
fn an_answer_comes_also_where_nobody_reads_standard_error() {
    let place = Place::new();
    let line = format!("'{BINARY}' run 'list the files' 2>&-");
    let ran = Running::start(place.shell("sh").args(["-c", &line])).ended().succeeded();
    assert!(!ran.stdout.is_empty(), "{ran}");
    let full = format!("'{BINARY}' run 'list the files' 2>/dev/full");
    Running::start(place.shell("sh").args(["-c", &full])).ended().succeeded();
}

#[test]
fn a_reader_that_has_had_enough_is_no_error() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    for command in ["chain log", "chain log --json --content", "chain export", "chain stat", "sessions"] {
        let line = format!("set -o pipefail; '{BINARY}' {command} | (exec <&-; sleep 0.5)");
        let ran = Running::start(place.shell("bash").args(["-c", &line])).ended().succeeded();
        assert_eq!(ran.stderr, "", "{command}");
    }
}

#[test]
fn a_loop_over_a_list_keeps_its_list() {
    let place = Place::new();
    let line = format!("printf 'one\\ntwo\\nthree\\n' | while read f; do '{BINARY}' run --json \"say $f\"; done");
    let ran = Running::start(place.shell("sh").args(["-c", &line])).ended().succeeded();
    assert_eq!(ran.seen("reply").len(), 3, "{ran}");
    let messages = place.facts("message");
    assert_eq!(messages.len(), 3, "{messages:?}");
}

#[test]
fn what_is_piped_in_is_the_message_where_nothing_was_typed_and_is_added_where_it_is_asked_for() {
    let place = Place::new();
    let alone = place.pipe(&["run", "--json"], "list the files\n").succeeded();
    assert_eq!(alone.seen("reply").len(), 1, "{alone}");
    let added = place.pipe(&["run", "list the files", "-"], "a line of another program\n").succeeded();
    assert!(!added.stderr.contains("not read"), "{added}");
    let left = place.pipe(&["run", "list the files"], "a line of another program\n").succeeded();
    assert!(left.stderr.contains("add `-`"), "{left}");
    let contents = serde_json::to_string(&place.log()).unwrap();
    assert_eq!(contents.matches("a line of another program").count(), 1, "{contents}");
}

#[test]
fn a_file_that_the_configuration_names_lies_beside_it() {
    let place = Place::new();
    place.configure("[providers.openai]\nca_file = \"none.pem\"\n");
    let named = place.home.join("none.pem");
    place.run(&["run", "list the files"]).failed(&[named.to_str().unwrap()]);
    place.run(&["up"]).failed(&[named.to_str().unwrap()]);
}

#[test]
fn limits_under_which_no_call_could_begin_are_refused() {
    let place = Place::new();
    place.configure("[limits]\nmodel_seconds = 100\n[budget]\nwall_seconds = 10\n");
    place.run(&["run", "list the files"]).failed(&["limits.model_seconds", "budget.wall_seconds"]);
}

#[test]
fn a_watch_writes_no_escapes_into_a_pipe() {
    let place = Place::new();
    let up = place.up();
    let watch = place.start(&["ps", "--watch"]);
    thread::sleep(Duration::from_millis(1500));
    watch.signal(Signal::INT);
    let ran = watch.ended().succeeded();
    assert!(ran.stdout.contains("PID") && !ran.stdout.contains('\u{1b}'), "{ran}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn schedules_that_are_due_at_once_run_a_bounded_number_at_a_time_and_none_lapses() {
    const LANES: usize = 64;
    let place = Place::new();
    let up = place.up();
    let script = slow(&place);
    let folder = place.workspace.to_str().unwrap();
    let names: Vec<String> = (0..LANES + 6).map(|number| format!("due-{number}")).collect();
    for name in &names {
        let args = ["schedule", "add", name, "* * * * *", "--missed", "skip", "--model", &script, "-C", folder, "go"];
        place.run(&args).succeeded();
    }
    let mut most = 0;
    wait_until("each has fired", || {
        let rows = place.processes();
        let on = rows.iter().filter(|row| row["seat"].as_str().is_some_and(|seat| seat.contains("/schedule-due-")));
        most = most.max(on.count());
        assert!(most <= LANES, "{most} run at once");
        let log = place.run(&["chain", "log", "--json", "--kind", "message"]).stdout;
        names.iter().all(|name| log.contains(&format!("\"{name}\"")))
    });
    assert!(most > LANES / 2, "they were due at once: {most}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}
