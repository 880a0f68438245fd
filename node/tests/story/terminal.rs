//! With a terminal the person is asked. `script` of util-linux gives the binary one.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::{
    gate::writing,
    place::{Place, watch},
};

/// The last words of the question.
const QUESTION: &str = "Permit it? [y/n]";

/// Runs a turn whose model writes, at a terminal, and types `answer` when it is asked; what the terminal showed, and
/// whether the run succeeded.
fn at_a_terminal(place: &Place, answer: Option<&str>) -> Option<(String, bool)> {
    play_at_a_terminal(place, &writing(), answer.map(|answer| (QUESTION, answer)))
}

/// Runs a turn whose model plays `lines`, and types once something is shown.
fn play_at_a_terminal(place: &Place, lines: &[Value], typed: Option<(&str, &str)>) -> Option<(String, bool)> {
    if !Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("!! not tested: there is no `script` here to make a terminal");
        return None;
    }
    let (binary, model) = (env!("CARGO_BIN_EXE_ephor"), place.script(lines));
    let line = format!("'{binary}' run --model '{model}' 'go on'");
    let mut command = place.shell("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let shown = watch(&mut child, typed);
    let status = child.wait().unwrap();
    Some((shown, status.success()))
}

#[test]
fn yes_lets_it_run() {
    let place = Place::new();
    let Some((shown, succeeded)) = at_a_terminal(&place, Some("y")) else { return };
    assert!(succeeded, "{shown}");
    for word in ["The agent wants to run fs.write", "note.txt", "risk 500"] {
        assert!(shown.contains(word), "`{word}`: {shown}");
    }
    assert_eq!(fs::read_to_string(place.workspace.join("note.txt")).unwrap(), "written");
    let rulings = place.facts("ruling");
    assert_eq!(rulings.len(), 1);
    assert_eq!((&rulings[0]["decision"], &rulings[0]["how"]), (&"permit".into(), &"answered".into()));
    place.verify();
}

#[test]
fn no_keeps_it_from_running() {
    let place = Place::new();
    let Some((shown, succeeded)) = at_a_terminal(&place, Some("n")) else { return };
    assert!(succeeded, "the turn goes on to its reply: {shown}");
    assert!(!place.workspace.join("note.txt").exists());
    assert!(!shown.contains("--allow"), "the person has said no: {shown}");
    let rulings = place.facts("ruling");
    assert_eq!(rulings.len(), 1);
    assert_eq!((&rulings[0]["decision"], &rulings[0]["how"]), (&"deny".into(), &"answered".into()));
    place.verify();
}

#[test]
fn silence_keeps_it_from_running() {
    let place = Place::new();
    place.configure("[limits]\napproval_seconds = 1\n");
    let Some((shown, succeeded)) = at_a_terminal(&place, None) else { return };
    assert!(succeeded, "{shown}");
    assert!(!place.workspace.join("note.txt").exists());
    let rulings = place.facts("ruling");
    assert_eq!(rulings.len(), 1, "{rulings:?}");
    assert_eq!(rulings[0]["decision"], "deny");
    place.verify();
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let place = Place::new();
    place.configure("[limits]\napproval_seconds = 1\n");
    let [mut write, end] = writing();
    write["text"] = json!("Let me think about it for a while.");
    write["delay_ms"] = json!(1000);
    let Some((shown, succeeded)) = play_at_a_terminal(&place, &[write, end], Some(("Let", "y"))) else { return };
    assert!(succeeded && shown.contains(QUESTION), "{shown}");
    assert!(!place.workspace.join("note.txt").exists(), "{shown}");
    let rulings = place.facts("ruling");
    assert_eq!(rulings.len(), 1, "{rulings:?}");
    assert_eq!((&rulings[0]["decision"], &rulings[0]["how"]), (&"deny".into(), &"expired".into()));
}
