//! Commands: what one changes is applied as one call, shown, and undone; what it may not see or keep it does not.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Ran, wait_until};

fn shell(command: &str) -> Value {
    shell_with(json!({"command": command}))
}

fn shell_with(arguments: Value) -> Value {
    json!({"tool_calls": [{"name": "shell", "arguments": arguments}]})
}

fn end() -> Value {
    json!({"text": "done"})
}

/// What the calls of `shell` have answered, in order.
fn answers(ran: &Ran) -> Vec<String> {
    let ended = ran.seen("ended").into_iter().filter(|event| event["target"] == "shell");
    ended.map(|event| event["text"].as_str().unwrap().to_owned()).collect()
}

fn session(place: &Place) -> String {
    let all = place.log();
    let opened = all.iter().rfind(|entry| entry["fact"]["kind"] == "message").unwrap();
    opened["subject"]["session"].as_str().unwrap().to_owned()
}

fn verdicts(place: &Place, target: &str) -> Vec<Value> {
    place.facts("verdict").into_iter().filter(|fact| fact["target"] == target).collect()
}

fn scratch_is_empty(place: &Place) -> bool {
    fs::read_dir(place.home.join("scratch")).unwrap().next().is_none()
}

#[test]
fn what_a_command_changes_is_applied_as_one_call_shown_and_undone_to_the_byte() {
    let place = Place::new().asks_as_it_comes();
    place.file("a.txt", "one\n");
    place.file("b.bin", [0, 0xff, b'\n']);
    let tool = place.file("tool.sh", "#!/bin/sh\necho from the tool\n");
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let script = [
        shell("echo two >> a.txt; rm b.bin; mkdir -p new/deep; echo three > new/deep/c.txt; ./tool.sh; exit 3"),
        shell("cat a.txt >&2; ls"),
        end(),
    ];
    let ran = place.play(&[], &script).succeeded();
    let texts = answers(&ran);
    assert!(
        texts[0].contains("from the tool") && texts[0].contains("exit status 3; changed 3 files"),
        "{texts:?}\n{ran}"
    );
    assert!(texts[1].contains("[standard error]\none\ntwo") && texts[1].contains("no file was changed"), "{texts:?}");
    assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "one\ntwo\n");
    assert_eq!(fs::read_to_string(place.workspace.join("new/deep/c.txt")).unwrap(), "three\n");
    assert!(!place.workspace.join("b.bin").exists());
    // One verdict on all of it, which says of each path what it becomes.
    let applied = verdicts(&place, "shell.apply");
    assert_eq!(applied.len(), 1);
    let reasons = applied[0]["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason["code"] == "what-it-replaces-is-kept"), "{reasons:?}");
    let diff = place.run(&["diff", &session(&place)]).succeeded();
    assert!(["a.txt", "b.bin", "new/deep/c.txt"].iter().all(|path| diff.stderr.contains(path)), "{diff}");
    place.run(&["undo", &session(&place)]).succeeded();
    assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "one\n");
    assert_eq!(fs::read(place.workspace.join("b.bin")).unwrap(), [0, 0xff, b'\n']);
    assert!(!place.workspace.join("new/deep/c.txt").exists());
    assert_eq!(fs::metadata(&tool).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(scratch_is_empty(&place));
    place.verify();
}

#[test]
fn a_command_sees_no_secret_unless_its_call_names_it_which_asks() {
    let place = Place::new().asks_as_it_comes();
    place.file(".env", "TOKEN=hunter2\n");
    place.file("deep/.ssh/id_ed25519", "hunter3\n");
    place.file("plain.txt", "plain\n");
    let key = place.home.join("keys/vault");
    let peek = format!("cat .env deep/.ssh/id_ed25519 plain.txt {}; find . -type f | xargs cat", key.display());
    let script = [
        shell(&peek),
        shell("rm -f .env; mv deep gone; chmod 644 .env; echo x >> .env"),
        // What lies around a secret shows none.
        shell_with(json!({"command": "cat .env deep/.ssh/id_ed25519", "shows": [".", "deep", "plain.txt"]})),
        shell_with(json!({"command": "cat .env", "shows": [".env"]})),
        end(),
    ];
    let ran = place.play(&[], &script).unasked();
    let texts = answers(&ran);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].contains("plain\n") && !texts.concat().contains("hunter"), "{texts:?}");
    assert!(!ran.stdout.contains("hunter") && !ran.stderr.contains("hunter"), "{ran}");
    assert_eq!(fs::read_to_string(place.workspace.join(".env")).unwrap(), "TOKEN=hunter2\n");
    assert_eq!(fs::read_to_string(place.workspace.join("deep/.ssh/id_ed25519")).unwrap(), "hunter3\n");
    let asked = verdicts(&place, "shell");
    assert_eq!(asked.iter().filter(|fact| fact["verdict"]["decision"] == "defer").count(), 1, "{asked:?}");
}

#[test]
fn all_or_nothing_of_what_a_command_changes_is_applied_where_a_person_would_be_asked() {
    let place = Place::new().asks_as_it_comes();
    place.file("a.txt", "one\n");
    let script = [shell("echo two > a.txt; mkdir .git; mkdir .git/hooks; echo evil > .git/hooks/pre-commit"), end()];
    let ran = place.play(&[], &script).unasked();
    assert!(answers(&ran)[0].contains("none of its changes is in the workspace"), "{ran}");
    assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "one\n");
    assert!(!place.workspace.join(".git").exists());
    assert!(scratch_is_empty(&place));
}

#[test]
fn a_person_is_shown_what_a_command_changes_and_permits_that_alone() {
    let place = Place::new();
    place.file("a.txt", "one\n");
    let up = place.up();
    let asks = |command: &str| {
        let script = place.script(&[shell(command), end()]);
        let run = place.start(&["run", "--wait", "--json", "--model", &script, "go on"]);
        wait_until("an operator is asked", || place.tickets().len() == 1);
        (run, place.tickets().remove(0))
    };
    let (run, ticket) = asks("echo two > a.txt; ln -s /etc/passwd link");
    let text = ticket["text"].as_str().unwrap();
    assert!(text.contains("\"a.txt\" changes:") && text.contains("+two"), "{text}");
    assert!(text.contains("\"link\" becomes a link to \"/etc/passwd\""), "{text}");
    place.run(&["approve", &ticket["ticket"].to_string()]).succeeded();
    drop(run.ended().succeeded());
    assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "two\n");
    assert_eq!(fs::read_link(place.workspace.join("link")).unwrap().to_str(), Some("/etc/passwd"));
    // Before the answer another program changes the file: nothing is applied.
    let (run, ticket) = asks("echo three > a.txt; echo new > b.txt");
    place.file("a.txt", "from elsewhere\n");
    place.run(&["approve", &ticket["ticket"].to_string()]).succeeded();
    drop(run.ended());
    assert_eq!(fs::read_to_string(place.workspace.join("a.txt")).unwrap(), "from elsewhere\n");
    assert!(!place.workspace.join("b.txt").exists());
    drop(up);
}

#[test]
fn a_model_cannot_apply_what_no_command_of_its_call_has_made() {
    let place = Place::new().asks_as_it_comes();
    let apply = json!({"tool_calls": [{"name": "shell.apply", "arguments": {"call": "1", "paths": ["a.txt"]}}]});
    let ran: Ran = place.play(&[], &[apply, end()]);
    assert!(!place.workspace.join("a.txt").exists(), "{ran}");
    assert!(place.facts("intent").iter().all(|fact| fact["action"] != "tool"), "{ran}");
}

#[test]
fn a_command_ends_at_its_time_limit_and_when_its_turn_is_cancelled_and_leaves_nothing() {
    let place = Place::new().asks_as_it_comes();
    let slow = "echo begun > a.txt; (trap '' TERM; sleep 1000) & sleep 1000";
    let ran = place.play(&[], &[shell_with(json!({"command": slow, "seconds": 1})), end()]).succeeded();
    assert!(answers(&ran)[0].contains("ended at its time limit"), "{ran}");
    let script = place.script(&[shell("sleep 1001"), end()]);
    let run = place.start(&["run", "--json", "--model", &script, "go on"]);
    wait_until("the command runs", || sleeps("1001"));
    run.signal(Signal::INT);
    drop(run.ended());
    wait_until("it is gone", || !sleeps("1001") && !sleeps("1000"));
    place.node_is_gone();
    place.verify();
}

#[test]
fn a_node_that_is_killed_beneath_a_command_leaves_no_process_and_applies_nothing() {
    let place = Place::new().asks_as_it_comes();
    let up = place.up();
    let script = place.script(&[shell("echo two > a.txt; sleep 1002"), end()]);
    let run = place.start(&["run", "--json", "--model", &script, "go on"]);
    wait_until("the command runs", || sleeps("1002"));
    up.signal(Signal::KILL);
    drop((up.ended(), run.ended()));
    wait_until("it is gone", || !sleeps("1002"));
    assert!(!place.workspace.join("a.txt").exists());
    place.play(&[], &[shell("true"), end()]).succeeded();
    assert!(scratch_is_empty(&place), "what the killed node left is removed");
}

/// Whether a process sleeps so many seconds.
fn sleeps(seconds: &str) -> bool {
    let words = format!("sleep\0{seconds}\0");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes.into_iter().any(|entry| fs::read(entry.path().join("cmdline")).is_ok_and(|line| line == words.as_bytes()))
}
