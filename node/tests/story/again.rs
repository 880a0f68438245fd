//! What was decided is decided again from the record, explained, and held against another constitution.

use serde_json::{Value, json};

use crate::{gate::writing, place::Place};

fn lines(place: &Place, args: &[&str]) -> Value {
    serde_json::from_str(&place.run(args).succeeded().stdout).unwrap()
}

/// The place of the first verdict on `tool` with this decision.
fn verdict(place: &Place, tool: &str, decision: &str) -> String {
    let log = place.log();
    let is = |entry: &&Value| entry["fact"]["target"] == tool && entry["fact"]["verdict"]["decision"] == decision;
    log.iter().find(is).unwrap()["seq"].to_string()
}

#[test]
fn what_was_decided_is_decided_again_explained_and_held_against_another_constitution() {
    let place = Place::new();
    place.file("a.txt", "TODO one\n");
    place.run(&["run", "read a.txt"]).succeeded();
    place.play(&["--allow", "fs.write"], &writing()).succeeded();
    place.play(&[], &writing()).unasked();
    let reading =
        json!({"tool_calls": [{"name": "fs.read", "arguments": {"path": "../up"}}, {"name": "none", "arguments": {}}]});
    place.play(&[], &[reading, json!({"text": "no"})]).succeeded();
    place.node_is_gone();

    let all = lines(&place, &["policy", "explain", "--all", "--json"]);
    let count = place.facts("verdict").len();
    assert_eq!((&all["verdicts"], &all["same"]), (&json!(count), &json!(count)), "{all}");
    let told = place.run(&["policy", "explain", "--all"]).succeeded();
    assert!(told.stdout.contains(&format!("{count} of {count} verdicts come out the same")), "{told}");

    let deferred = verdict(&place, "fs.write", "defer");
    let one = lines(&place, &["policy", "explain", &deferred, "--json"]);
    assert_eq!((&one["same"], &one["recorded"]["decision"]), (&json!(true), &json!("defer")), "{one}");
    assert_eq!(one["today"]["decision"], "defer", "{one}");
    assert_eq!(one["inputs"]["arguments"]["path"], "note.txt", "{one}");
    assert!(!one["inputs"]["policies"].as_array().unwrap().is_empty(), "{one}");
    let told = place.run(&["policy", "explain", &deferred]).succeeded();
    for words in ["defer of Tool fs.write", "the same, bit for bit", "decided on", "note.txt", "policies that decided"]
    {
        assert!(told.stdout.contains(words), "{words}: {told}");
    }
    place.run(&["policy", "explain", "0"]).failed(&["is no verdict", "ephor chain log --kind verdict"]);

    let strict =
        place.file("strict.cedar", "@id(\"nothing-runs\") forbid (principal, action == Action::\"run\", resource);\n");
    let strict = strict.to_str().unwrap();
    let back = lines(&place, &["policy", "backtest", "--policy", strict, "--json"]);
    assert_eq!(back["verdicts"], json!(count), "{back}");
    assert!(back["otherwise"].as_u64().unwrap() > 0, "{back}");
    let told = place.run(&["policy", "backtest", "--policy", strict, "--environment", "production"]).succeeded();
    assert!(told.stdout.contains("permit → deny") && told.stdout.contains("entry "), "{told}");

    // Nobody can say any more why something was decided in a session that was erased.
    let session =
        place.log().iter().rfind(|entry| entry["fact"]["kind"] == "message").unwrap()["subject"]["session"].clone();
    place.run(&["chain", "erase", "--session", session.as_str().unwrap(), "--yes"]).succeeded();
    let all = lines(&place, &["policy", "explain", "--all", "--json"]);
    let unknown = all["unknown"].as_object().unwrap();
    assert!(unknown.keys().all(|why| why.contains("erased")) && !unknown.is_empty(), "{all}");
    assert!(all["same"].as_u64().unwrap() > 0 && all["otherwise"] == json!([]), "{all}");
    place.verify();
}
