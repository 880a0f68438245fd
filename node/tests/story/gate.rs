//! Writing asks first: what the operator has ruled, and what nobody can rule.

use std::fs;

use serde_json::{Value, json};

use crate::place::Place;

/// A model that writes a file, and then says so.
pub(crate) fn writing() -> [Value; 2] {
    let arguments = json!({"path": "note.txt", "content": "written"});
    [json!({"tool_calls": [{"name": "fs.write", "arguments": arguments}]}), json!({"text": "That was that."})]
}

#[test]
fn without_a_terminal_a_write_is_refused_at_once_with_a_ticket() {
    let place = Place::new();
    let ran = place.play(&[], &writing()).unasked();
    assert!(!place.workspace.join("note.txt").exists());
    assert_eq!(ran.seen("refused").len(), 1, "{ran}");
    assert_eq!(ran.reply()["text"], "That was that.", "the model was told and went on: {ran}");
    assert_eq!(place.facts("ticket").len(), 1);
    let rulings = place.facts("ruling");
    assert_eq!(rulings.len(), 1);
    assert_eq!((&rulings[0]["decision"], &rulings[0]["how"]), (&json!("deny"), &json!("nobody-to-ask")));
    place.verify();
}

#[test]
fn the_person_is_told_how_a_refused_write_could_be_permitted() {
    let place = Place::new();
    let script = place.script(&writing());
    let ran = place.run(&["run", "--model", &script, "go on"]).unasked();
    assert!(ran.stderr.contains("--allow fs.write"), "{ran}");
    assert!(ran.stderr.contains("terminal"), "{ran}");
    // What was ruled out for good is not to be had by asking again.
    place.node_is_gone();
    place.configure("[policy]\nnever = [\"fs.write\"]\n");
    let ran = place.run(&["run", "--model", &script, "go on"]).succeeded();
    assert!(!ran.stderr.contains("--allow fs.write"), "{ran}");
}

#[test]
fn what_was_allowed_runs_on_a_recorded_ruling() {
    let place = Place::new();
    place.play(&["--allow", "fs.write"], &writing()).succeeded();
    assert_eq!(fs::read_to_string(place.workspace.join("note.txt")).unwrap(), "written");
    let log = place.log();
    let ruling = log.iter().find(|entry| entry["fact"]["kind"] == "ruling").unwrap();
    assert_eq!(ruling["fact"]["decision"], "permit");
    assert_eq!(ruling["fact"]["on"], json!({"tools": ["fs.write"]}));
    let is_permit = |entry: &&Value| {
        entry["fact"]["kind"] == "verdict"
            && entry["fact"]["target"] == "fs.write"
            && entry["fact"]["verdict"]["decision"] == "permit"
    };
    let verdict = log.iter().find(is_permit).unwrap();
    assert_eq!(verdict["fact"]["ruling"], ruling["seq"], "the verdict names the ruling it rests on");
    // The next run starts without it.
    place.play(&[], &writing()).unasked();
    let calls: u64 = place.facts("outcome").iter().map(|fact| fact["used"]["tool_calls"].as_u64().unwrap()).sum();
    assert_eq!(calls, 1, "one call costs one");
    place.verify();
}

#[test]
fn what_policy_rules_out_nobody_can_allow() {
    let place = Place::new();
    place.configure("[policy]\nnever = [\"fs.write\"]\n");
    let ran = place.play(&["--allow", "fs.write"], &writing()).succeeded();
    assert!(!place.workspace.join("note.txt").exists());
    assert_eq!(ran.seen("refused").len(), 1, "{ran}");
    let denied = |fact: &&Value| fact["target"] == "fs.write" && fact["verdict"]["decision"] == "deny";
    assert_eq!(place.facts("verdict").iter().filter(denied).count(), 1);
    assert!(place.facts("ticket").is_empty(), "nobody is asked what nobody may permit");
    place.verify();
}

#[test]
fn reading_needs_no_ruling() {
    let place = Place::new();
    place.file("a.txt", "fine");
    let read = json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "a.txt"}}]});
    let ran = place.play(&[], &[read, json!({"text": "fine"})]).succeeded();
    assert!(ran.seen("refused").is_empty() && place.facts("ticket").is_empty(), "{ran}");
}

#[test]
fn what_acts_outside_the_pinned_scope_is_asked_about() {
    let place = Place::new();
    place.play(&["--scope", "fs.read,none.such"], &writing()).failed(&["there is no tool `none.such`"]);
    place.play(&["--scope", "fs.read"], &writing()).unasked();
    assert!(!place.workspace.join("note.txt").exists());
    let reasons = |place: &Place| -> Vec<String> {
        let verdicts = place.facts("verdict");
        let of = verdicts.iter().rfind(|fact| fact["target"] == "fs.write").unwrap();
        of["verdict"]["reasons"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["code"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(reasons(&place).contains(&"tool-is-outside-the-scope".to_owned()), "{:?}", reasons(&place));
    place.play(&["--scope", "fs.write"], &writing()).unasked();
    assert!(!reasons(&place).contains(&"tool-is-outside-the-scope".to_owned()), "{:?}", reasons(&place));
    place.play(&["--scope", "fs.write=other.txt,fs.write=more.txt"], &writing()).unasked();
    assert!(reasons(&place).contains(&"target-is-outside-the-scope".to_owned()), "{:?}", reasons(&place));
    place.play(&["--scope", "fs.write=other.txt,fs.write=note.txt"], &writing()).unasked();
    assert!(!reasons(&place).contains(&"target-is-outside-the-scope".to_owned()), "{:?}", reasons(&place));
    place.play(&["--scope", "fs.write="], &writing()).failed(&["names no target"]);
    let verdict = place.log().into_iter().rfind(|one| one["fact"]["target"] == "fs.write").unwrap()["seq"].clone();
    let why = place.run(&["policy", "explain", &verdict.to_string()]).succeeded().stdout;
    assert!(why.contains("fs.write on note.txt or other.txt"), "{why}");
    assert_eq!(place.facts("message").iter().filter(|fact| fact["scope"].is_array()).count(), 4);
    place.verify();
}
