//! Answers that are used again, and agents that may act again which their conduct suspended.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// A model that writes one file and says so.
fn writing(path: &str) -> [Value; 2] {
    let call = json!({"name": "fs.write", "arguments": {"path": path, "content": "x"}});
    [json!({"tool_calls": [call]}), json!({"text": "it is written, or not"})]
}

fn open(place: &Place) -> Vec<Value> {
    place.tickets()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A run that waits for somebody to answer elsewhere.
fn waiting(place: &Place, path: &str) -> Running {
    let script = place.script(&writing(path));
    let run = place.start(&["run", "--wait", "--json", "--model", &script, "write it down"]);
    wait_until("somebody is asked", || place.home.join("node.sock").exists() && open(place).len() == 1);
    run
}

fn id(one: &Value) -> String {
    one["ticket"].to_string()
}

#[test]
fn an_answer_for_good_is_used_again_over_kill_nine_until_it_is_revoked() {
    let place = Place::new();
    let up = place.up();
    place.run(&["operator", "add", "vic", "--role", "viewer", "--unprotected"]).succeeded();
    let written = place.workspace.join("evil.sh");
    let run = waiting(&place, "evil.sh");
    let ticket = id(&open(&place)[0]);
    place.run(&["approve", &ticket, "--always=path"]).failed(&["has to stay the same"]);
    place.run(&["approve", &ticket, "--always", "--for", "91d"]).failed(&["90 days"]);
    place.run(&["approve", &ticket, "--for", "1h"]).failed(&["--always"]);
    let note = "the script of every week";
    let said = place.run(&["approve", &ticket, "--always", "--for", "2h", "--all-agents", "--note", note]).succeeded();
    assert!(
        said.stdout.contains("is permitted") && said.stdout.contains("for every agent of this node until"),
        "{said}"
    );
    run.ended().succeeded();
    assert!(written.exists());
    let again = |what: &str| {
        std::fs::remove_file(&written).unwrap();
        let script = place.script(&writing("evil.sh"));
        place.run(&["run", "--json", "--model", &script, "write it down"]).succeeded();
        assert!(written.exists(), "{what}");
    };
    again("the same call of another session");
    // Of another file it is asked, and without a person refused.
    let script = place.script(&writing("other.sh"));
    place.run(&["run", "--json", "--model", &script, "write it down"]);
    assert!(!place.workspace.join("other.sh").exists());
    up.signal(Signal::KILL);
    drop(up.ended());
    let up = place.up();
    again("behind a kill");
    let told = place.run(&["precedents", "--as", "vic"]).succeeded().stdout;
    assert!(told.contains("fs.write") && told.contains(note) && !told.contains("evil.sh"), "{told}");
    let told = place.run(&["precedents"]).succeeded().stdout;
    assert!(told.contains("evil.sh"), "{told}");
    let standing = lines(&place.run(&["precedents", "--json"]).succeeded().stdout);
    assert_eq!((standing.len(), standing[0]["permits"].as_bool()), (1, Some(true)));
    let ruling = standing[0]["precedent"].to_string();
    place.run(&["precedents", "revoke", &ruling, "--as", "vic"]).failed(&["role `approver`"]);
    place.run(&["precedents", "revoke", "1"]).failed(&["No standing approval"]);
    place.run(&["precedents", "revoke", &ruling, "--note", "it was misused"]).succeeded();
    place.run(&["precedents", "revoke", &ruling]).failed(&["No standing approval"]);
    assert!(place.run(&["precedents"]).succeeded().stdout.contains("No standing approvals."));
    // From here on it is asked again.
    std::fs::remove_file(&written).unwrap();
    let run = waiting(&place, "evil.sh");
    place.run(&["refuse", &id(&open(&place)[0]), "--note", "not this time"]).succeeded();
    run.ended();
    assert!(!written.exists());
    up.signal(Signal::TERM);
    up.ended().succeeded();
    let log = place.run(&["chain", "log", "--kind", "ruling"]).succeeded().stdout;
    assert!(log.contains(note) && log.contains("not this time"), "{log}");
    assert!(place.run(&["chain", "log", "--kind", "revoked"]).succeeded().stdout.contains("it was misused"));
    let rests =
        |entry: &&Value| entry["fact"]["kind"] == "verdict" && entry["fact"]["ruling"] == standing[0]["precedent"];
    let entries = place.log();
    let seq = entries.iter().rfind(rests).unwrap()["seq"].to_string();
    let why = place.run(&["policy", "explain", &seq]).succeeded().stdout;
    assert!(why.contains("a precedent") && why.contains(note) && why.contains("precedent-permits"), "{why}");
    let all = place.run(&["policy", "explain", "--all"]).succeeded();
    assert!(all.stdout.contains("come out the same"), "{all}");
    place.verify();
}

#[test]
fn an_agent_that_its_conduct_suspended_is_shown_and_reinstated() {
    let place = Place::new();
    std::fs::write(place.workspace.join("there.txt"), "here").unwrap();
    let up = place.up();
    place.run(&["operator", "add", "opa", "--role", "operator", "--unprotected"]).succeeded();
    let outside = |number: u32| json!({"name": "fs.read", "arguments": {"path": format!("../outside-{number}.txt")}});
    let there = || json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "there.txt"}}]});
    let bad: Vec<Value> = (0..60).map(outside).collect();
    let (done, write) = (json!({"text": "well"}), &writing("evil.sh")[0]);
    let script =
        place.script(&[json!({"tool_calls": bad}), done.clone(), there(), done.clone(), there(), done, write.clone()]);
    let first = place.run(&["run", "--json", "--model", &script, "read them"]);
    let session =
        place.log_now().iter().rev().find_map(|one| one["subject"]["session"].as_str().map(str::to_owned)).unwrap();
    let again = || place.run(&["run", "--json", "--session", &session, "read there.txt"]).stdout;
    let refused = again();
    assert!(refused.contains("suspended") && !refused.contains("here"), "{first}{refused}");
    place.run(&["reinstate", &session, "--as", "opa"]).failed(&["role `approver`"]);
    place.run(&["reinstate", "nobody"]).failed(&["is suspended"]);
    let said = place.run(&["reinstate", &session, "--note", "the rule was new to it"]).succeeded().stdout;
    assert!(said.contains("may act again"), "{said}");
    place.run(&["reinstate", &session]).failed(&["is suspended"]);
    let read = again();
    assert!(read.contains("here"), "{read}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
    assert!(place.run(&["chain", "log", "--kind", "lifted"]).succeeded().stdout.contains("the rule was new to it"));
    let all = place.run(&["policy", "explain", "--all"]).succeeded();
    assert!(all.stdout.contains("come out the same"), "{all}");
    place.verify();
}
