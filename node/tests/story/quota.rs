//! A home at its quota: the person is warned, then told what is full and what to do; nothing that was acknowledged is lost.

use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Ran, Running};

/// Runs one turn with so much piped input.
fn say(place: &Place, bytes: usize) -> Ran {
    place.pipe(&["run", "list the files", "-"], &"words ".repeat(bytes / 6))
}

/// What is said of a quota that is reached: what, how much, where, and what to do.
fn told(place: &Place, ran: &Ran) {
    let home = place.home.display().to_string();
    for words in ["quota", &home, "bytes", "[chain]", "ephor.toml"] {
        assert!(ran.stderr.contains(words), "`{words}` is not said: {ran}");
    }
    assert!(ran.status.code().is_some_and(|code| code != 0), "{ran}");
    for trace in ["panicked", ".rs:"] {
        assert!(!ran.stderr.contains(trace), "{ran}");
    }
}

/// Runs turns until one is refused; says how many were answered, how many of those with a warning, and what was said last.
fn fill(place: &Place, bytes: usize) -> (u64, u64, Ran) {
    let mut warned = 0;
    for number in 0..200 {
        let ran = say(place, bytes);
        if !ran.status.success() {
            return (number, warned, ran);
        }
        warned += u64::from(ran.stderr.contains("raise `quota`"));
    }
    panic!("the quota was never reached");
}

/// Goes on until no node starts any more: what the journal gives back once it is published may let another begin. Says how many
/// turns were answered.
fn shut(place: &Place) -> u64 {
    let mut answers = 0;
    for _ in 0..200 {
        let before = place.log().len();
        let ran = say(place, 100);
        if place.log().len() == before {
            told(place, &ran);
            return answers;
        }
        answers += u64::from(ran.status.success());
    }
    panic!("a node always starts");
}

fn space(place: &Place) -> Value {
    let told = place.run(&["chain", "stat", "--json"]).succeeded().stdout;
    serde_json::from_str::<Value>(&told).unwrap()["space"].clone()
}

fn answered(place: &Place) -> u64 {
    place.facts("turn_end").iter().filter(|fact| fact["end"] == "replied").count() as u64
}

#[test]
fn at_its_quota_a_home_says_what_is_full_and_goes_on_when_that_is_raised() {
    let place = Place::new();
    place.configure("[chain]\nquota = \"9 MB\"\n");
    let (answers, warned, refused) = fill(&place, 100_000);
    assert!(answers > 3 && (1..answers).contains(&warned), "{warned} of {answers} were warned");
    told(&place, &refused);
    // A message that was too large is refused alone; smaller ones go on until nothing can begin.
    let (smaller, _, refused) = fill(&place, 6_000);
    told(&place, &refused);
    place.node_is_gone();
    let answers = answers + smaller + shut(&place);
    assert!(answered(&place) >= answers, "an answer that was shown is not on the record");
    place.verify();
    let full = space(&place);
    let (used, quota) = (full["used"].as_u64().unwrap(), full["quota"].as_u64().unwrap());
    assert!(quota == 9_000_000 && (8_100_000..=9_100_000).contains(&used), "{full}");
    let words = place.run(&["chain", "stat"]).succeeded().stdout;
    assert!(words.contains("quota      ") && words.contains("raise `quota`"), "{words}");
    // It does not start, and says why; the record can be read, and what must not wait is still done.
    let before = place.log().len();
    told(&place, &place.run(&["up"]));
    assert_eq!(place.log().len(), before, "a node that does not start must not fill what is left");
    told(&place, &say(&place, 100));
    place.run(&["chain", "rotate", "--yes"]).succeeded();
    place.verify();
    let before = place.log().len();
    place.configure("[chain]\nquota = \"12 MB\"\n");
    let ran = say(&place, 100).succeeded();
    assert!(!ran.stderr.contains("quota"), "{ran}");
    assert!(place.log().len() > before);
    place.verify();
}

#[test]
fn a_node_that_reaches_its_quota_stops_in_good_order_and_says_so() {
    let place = Place::new();
    place.configure("[chain]\nquota = \"3 MB\"\n");
    let up = place.up();
    let shown = place.run(&["ps"]).succeeded().stdout;
    assert!(shown.contains("quota   ") && shown.contains("of 3000 kB"), "{shown}");
    let (answers, _, refused) = fill(&place, 60_000);
    told(&place, &refused);
    // Nobody has told it to.
    let ended = up.ended();
    told(&place, &ended);
    assert!(ended.stderr.contains("nine tenths"), "the warning came before: {ended}");
    assert!(answered(&place) >= answers && answers > 3);
    place.verify();
    let last = place.log().pop().unwrap();
    assert_eq!(last["fact"]["kind"], "stop", "{last}");
}

#[test]
fn a_turn_that_reaches_the_quota_ends_on_the_record() {
    let place = Place::new();
    place.configure("[chain]\nquota = \"600 kB\"\n");
    // Each tool call brings the large file into the record.
    place.file("large.txt", "a line of text\n".repeat(4_000));
    let call = serde_json::json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "large.txt"}}]});
    let lines: Vec<_> = (0..20).map(|_| call.clone()).chain([serde_json::json!({"text": "done"})]).collect();
    let ran = place.play(&[], &lines);
    assert!(!ran.status.success(), "{ran}");
    let all = format!("{}{}", ran.stdout, ran.stderr);
    assert!(all.contains("quota") && all.contains("ephor.toml"), "{ran}");
    place.node_is_gone();
    place.verify();
    let ends = place.facts("turn_end");
    assert_eq!(ends.len(), 1, "{ends:?}");
    assert_ne!(ends[0]["end"], "replied");
}

#[test]
fn without_a_quota_nothing_is_said_of_one() {
    let place = Place::new();
    let ran = say(&place, 100).succeeded();
    assert!(!ran.stderr.contains("quota"), "{ran}");
    place.node_is_gone();
    assert_eq!(space(&place), Value::Null);
    let up: Running = place.up();
    let shown = place.run(&["ps"]).succeeded().stdout;
    assert!(!shown.contains("quota"), "{shown}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
    fs::write(place.home.join("ephor.toml"), "[chain]\nquota = \"much\"\n").unwrap();
    place.run(&["chain", "stat"]).failed(&["`much` is no amount of bytes"]);
}
