//! A tool sees the workspace and nothing else, whatever a model asks for.

use std::{fs, os::unix::fs::symlink, process::Command};

use serde_json::{Value, json};

use crate::place::Place;

/// Something that is nobody's business.
const SECRET: &str = "the combination is 1-2-3-4-5";

/// A workspace with every kind of way out.
fn place() -> Place {
    let place = Place::new();
    let outside = place.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    symlink(outside.join("secret.txt"), place.workspace.join("link-to-file")).unwrap();
    symlink(&outside, place.workspace.join("link-to-folder")).unwrap();
    symlink("../outside/secret.txt", place.workspace.join("relative-link")).unwrap();
    symlink("/dev/zero", place.workspace.join("link-to-device")).unwrap();
    let made = Command::new("mkfifo").arg(place.workspace.join("pipe")).status().unwrap();
    assert!(made.success());
    place.file("inside.txt", "fine");
    place
}

/// What of a model's call came back: how it ended, and the words.
fn result(place: &Place, tool: &str, arguments: &Value) -> (String, String) {
    let lines = [json!({"tool_calls": [{"name": tool, "arguments": arguments}]}), json!({"text": "I see."})];
    let ran = place.play(&["--allow", "fs.write"], &lines).succeeded();
    assert_eq!(ran.reply()["text"], "I see.", "the model was told: {ran}");
    assert!(!ran.stdout.contains("combination"), "{ran}");
    let end = ran
        .events()
        .into_iter()
        .find(|event| event["event"] == "refused" || (event["event"] == "ended" && event["action"] == "tool"));
    let end = end.unwrap_or_else(|| panic!("the call has an end: {ran}"));
    let word = |key: &str| end[key].as_str().unwrap_or_default().to_owned();
    (word("end"), format!("{}{}", word("text"), word("why")))
}

fn ways_out(place: &Place) -> Vec<String> {
    let absolute = place.root().join("outside/secret.txt").to_str().unwrap().to_owned();
    let mut paths = vec![absolute];
    for path in [
        "../outside/secret.txt",
        "inside.txt/../../outside/secret.txt",
        "./.././outside/secret.txt",
        "link-to-file",
        "link-to-folder/secret.txt",
        "relative-link",
        "link-to-device",
        "pipe",
        "/dev/zero",
        "/etc/passwd",
        "",
        "inside.txt\0x",
    ] {
        paths.push(path.to_owned());
    }
    paths
}

#[test]
fn no_way_out_is_read() {
    let place = place();
    for path in ways_out(&place) {
        let (end, words) = result(&place, "fs.read", &json!({"path": path}));
        assert_ne!(end, "done", "`{path}`: {words}");
        assert!(!words.is_empty(), "`{path}` is refused with a word");
    }
    let (end, words) = result(&place, "fs.read", &json!({"path": "inside.txt"}));
    assert!(end == "done" && words.contains("fine"), "{words}");
    place.verify();
    let recorded = place.facts("outcome").iter().filter(|fact| fact["end"] == "tool_error").count();
    let denied = place.facts("verdict").iter().filter(|fact| fact["verdict"]["decision"] == "deny").count();
    assert_eq!(recorded + denied, ways_out(&place).len(), "each is on the record");
}

#[test]
fn no_way_out_is_written() {
    let place = place();
    for path in ways_out(&place) {
        let (end, words) = result(&place, "fs.write", &json!({"path": path, "content": "overwritten"}));
        assert_ne!(end, "done", "`{path}`: {words}");
    }
    let (end, words) = result(&place, "fs.write", &json!({"path": "link-to-folder/new.txt", "content": "x"}));
    assert_ne!(end, "done", "{words}");
    assert_eq!(fs::read_to_string(place.root().join("outside/secret.txt")).unwrap(), SECRET);
    assert!(!place.root().join("outside/new.txt").exists());
    place.verify();
}

#[test]
fn no_way_out_is_listed_or_searched() {
    let place = place();
    for path in ["..", "/", "link-to-folder", "../outside"] {
        let (end, words) = result(&place, "fs.list", &json!({"path": path}));
        assert_ne!(end, "done", "`{path}`: {words}");
        let (end, words) = result(&place, "fs.search", &json!({"pattern": "combin[a]tion", "path": path}));
        assert_ne!(end, "done", "`{path}`: {words}");
    }
    // Over the whole workspace, links and pipes are passed by.
    let (end, words) = result(&place, "fs.search", &json!({"pattern": "combin[a]tion"}));
    assert!(end == "done" && !words.contains("secret.txt"), "{words}");
    place.verify();
}
