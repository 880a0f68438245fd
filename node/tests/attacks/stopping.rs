//! Kills, stops, readers that do not read, and calls that must take effect once.

use std::{fs, os::unix::fs::MetadataExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// The facts of one kind on the chain, while a node may run.
fn facts(place: &Place, kind: &str) -> Vec<Value> {
    let facts = place.log_now().into_iter().map(|entry| entry["fact"].clone());
    facts.filter(|fact| fact["kind"] == kind).collect()
}

/// What waits for a person.
fn open(place: &Place) -> Vec<Value> {
    place.tickets()
}

/// More than a socket takes for a reader that does not read, in many pieces.
fn much() -> Value {
    let look = json!({"name": "fs.list", "arguments": {"path": "."}});
    json!({"text": "many words that nobody reads ".repeat(5_000), "tool_calls": [look]})
}

/// A client that is stopped as soon as its message is accepted, as by Ctrl-Z, before the model has said much.
fn stopped_reader(place: &Place, lines: &[Value]) -> Running {
    let before = facts(place, "message").len();
    let script = place.script(lines);
    let run = place.start(&["run", "--wait", "--json", "--model", &script, "go on"]);
    wait_until("the message is accepted", || facts(place, "message").len() > before);
    run.signal(Signal::STOP);
    run
}

fn gone(run: Running) {
    run.signal(Signal::KILL);
    drop(run.ended());
}

#[test]
fn a_client_that_does_not_read_holds_up_no_turn_and_is_somebody_to_ask() {
    let place = Place::new();
    let _up = place.up();
    let write = json!({"tool_calls": [{"name": "fs.write", "arguments": {"path": "notes.txt", "content": "x"}}]});
    let run = stopped_reader(&place, &[much(), much(), much(), write, json!({"text": "done"})]);
    // Whoever cannot be asked is refused, and then no ticket is open.
    wait_until("somebody is asked, or refused", || !facts(&place, "ticket").is_empty());
    assert_eq!(open(&place).len(), 1, "the person is still there");
    let ticket = open(&place)[0]["ticket"].to_string();
    place.run(&["approve", &ticket]).succeeded();
    wait_until("the turn ends", || !facts(&place, "turn_end").is_empty());
    assert!(place.workspace.join("notes.txt").exists());
    gone(run);
}

#[test]
fn a_stop_waits_for_no_client_that_does_not_read() {
    let place = Place::new();
    let up = place.up();
    let runs: Vec<Running> =
        (0..3).map(|_| stopped_reader(&place, &[much(), much(), much(), json!({"text": "done"})])).collect();
    wait_until("the turns have ended", || facts(&place, "turn_end").len() == runs.len());
    up.signal(Signal::TERM);
    let up = up.ended().succeeded();
    // One that does not stop when it is asked to is killed when its time is over.
    assert!(!up.stderr.contains("Killed"), "a client had to be killed: {up}");
    assert!(!facts(&place, "exit").iter().any(|fact| fact["reason"] == "killed"), "a client had to be killed");
    runs.into_iter().for_each(gone);
    place.verify();
}

/// Kills the node in the middle of a write that was allowed, and says whether the record shows it so: permitted, and without an end.
fn killed_in_a_write(place: &Place, round: usize) -> bool {
    let up = place.up();
    let path = format!("big-{round}");
    let write = json!({"name": "fs.write", "arguments": {"path": path, "content": "x".repeat(3_000_000)}});
    let script = place.script(&[json!({"tool_calls": [write]}), json!({"text": "I know"})]);
    let before = fs::read_dir(&place.workspace).unwrap().count();
    let run = place.start(&["run", "--json", "--allow", "fs.write", "--model", &script, "write it"]);
    let begun = std::time::Instant::now();
    while fs::read_dir(&place.workspace).unwrap().count() == before {
        assert!(begun.elapsed() < std::time::Duration::from_secs(60), "nothing is written");
        std::thread::yield_now();
    }
    up.signal(Signal::KILL);
    drop(up.ended());
    drop(run.ended());
    let file = place.workspace.join(&path);
    let written = fs::metadata(&file).map(|file| (file.ino(), file.mtime(), file.mtime_nsec())).ok();
    let intents = |log: &[Value]| {
        let of_tools = |entry: &&Value| entry["fact"]["kind"] == "intent" && entry["fact"]["action"] == "tool";
        log.iter().filter(of_tools).map(|entry| entry["seq"].clone()).collect::<Vec<_>>()
    };
    let begun = intents(&place.log_now());
    let ends = facts(place, "turn_end").len();
    let up = place.up();
    wait_until("the turn is finished", || facts(place, "turn_end").len() > ends);
    let log = place.log_now();
    let Some(last) = begun.last() else { return false };
    let cut_off = log.iter().any(|entry| entry["fact"]["intent"] == *last && entry["fact"]["end"] == "indeterminate");
    if cut_off {
        assert_eq!(intents(&log).len(), begun.len(), "it was begun once more, and nobody has asked for that");
        let now = fs::metadata(&file).map(|file| (file.ino(), file.mtime(), file.mtime_nsec())).ok();
        assert_eq!(now, written, "it took effect once more");
    }
    up.signal(Signal::TERM);
    up.ended().succeeded();
    cut_off
}

#[test]
fn a_write_that_was_cut_off_with_its_node_is_not_made_again_by_itself() {
    let place = Place::new();
    let hits = (0..40).filter(|round| killed_in_a_write(&place, *round)).take(3).count();
    assert_eq!(hits, 3, "the node was never killed in the middle of a write");
    place.verify();
}
