//! `script:FILE`: whatever a model may do, through the binary.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// The results of tools that the model was shown, as the log holds them.
fn told(place: &Place) -> String {
    place.log().iter().map(|entry| format!("{}\n", entry["private"])).collect()
}

/// The verdicts on tools, as decision and target.
fn tool_verdicts(place: &Place) -> Vec<(String, String)> {
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let verdicts = place.facts("verdict").into_iter().filter(|fact| fact["action"] == "tool");
    verdicts.map(|fact| (word(&fact["verdict"]["decision"]), word(&fact["target"]))).collect()
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

#[test]
fn text_and_tool_calls_are_played_line_by_line() {
    let place = Place::new();
    place.file("a.txt", "TODO one\n");
    let ran = place
        .play(
            &[],
            &[
                json!({"text": "Looking.", "tool_calls": [
                    {"name": "fs.search", "arguments": {"pattern": "TODO"}},
                    {"name": "fs.read", "arguments": "{\"path\": \"a.txt\"}"},
                    {"name": "fs.list", "arguments": {"path": "."}},
                ]}),
                json!({"text": "Found it."}),
            ],
        )
        .succeeded();
    let ended: Vec<Value> = ran.seen("ended").into_iter().filter(|event| event["action"] == "tool").collect();
    assert_eq!(ended.len(), 3, "{ran}");
    assert!(ended.iter().all(|event| event["end"] == "done"), "{ran}");
    assert!(ended[0]["text"].as_str().unwrap().contains("a.txt:1"), "{ran}");
    assert!(ended[1]["text"].as_str().unwrap().contains("TODO one"), "{ran}");
    assert!(ended[2]["text"].as_str().unwrap().contains("a.txt"), "{ran}");
    assert_eq!(ran.reply()["text"], "Found it.");
    place.verify();
}

#[test]
fn a_slow_text_comes_in_pieces() {
    let place = Place::new();
    let text = "one two three four five six seven eight nine ten";
    let ran = place.play(&[], &[json!({"text": text, "delay_ms": 600})]).succeeded();
    let pieces = ran.seen("text");
    assert!(pieces.len() > 3, "{ran}");
    let whole: String = pieces.iter().map(|piece| piece["text"].as_str().unwrap()).collect();
    assert_eq!(whole, text);
}

#[test]
fn a_failure_that_may_pass_is_tried_again() {
    for (fault, tries) in [("throttled", 3), ("timeout", 3), ("interrupted", 3), ("invalid_json", 2)] {
        let place = Place::new();
        let (bad, good) = (json!({"error": fault}), json!({"text": "Here I am."}));
        let ran = place.play(&[], &[bad.clone(), good]).succeeded();
        assert_eq!(ran.reply()["text"], "Here I am.", "{ran}");
        assert_eq!(ran.reply()["report"]["requests"], 2, "{ran}");
        place.node_is_gone();
        let ran = place.play(&[], &[bad.clone(), bad.clone(), bad.clone(), bad]).failed(&[]);
        assert_eq!(ran.reply()["end"], json!({"failed": fault}), "{ran}");
        assert_eq!(ran.reply()["report"]["requests"], tries, "{ran}");
        let outcomes = place.facts("outcome").iter().filter(|fact_of| fact_of["end"] == fault).count();
        assert_eq!(outcomes, 1 + tries, "{fault}");
        place.verify();
    }
}

#[test]
fn a_failure_that_will_not_pass_ends_the_turn() {
    let place = Place::new();
    let ran = place.play(&[], &[json!({"error": "overflow"})]).failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"failed": "overflow"}), "{ran}");
    let place = Place::new();
    let ran = place.play(&[], &[call("fs.list", json!({"path": "."}))]).failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"failed": "script_ended"}), "{ran}");
    assert!(ran.seen("ended").iter().any(|event| event["text"].as_str().unwrap().contains("add a line")), "{ran}");
    place.verify();
}

#[test]
fn a_script_that_is_none_names_its_line() {
    let place = Place::new();
    let path = place.root().join("bad.jsonl");
    std::fs::write(&path, "{\"text\":\"a\"}\n{\"texd\":\"b\"}\n").unwrap();
    let model = format!("script:{}", path.display());
    place.run(&["run", "--model", &model, "go on"]).failed(&["line 2", "texd"]);
    place.run(&["run", "--model", "script:nowhere.jsonl", "go on"]).failed(&["nowhere.jsonl", "No such file"]);
}

#[test]
fn a_senseless_call_is_told_to_the_model_and_denied_on_the_record() {
    for (lines, word) in [
        (call("fs.read", json!("{oops")), "JSON"),
        (call("fs.delete", json!({"path": "a"})), "there is no tool `fs.delete`"),
        (call("fs.read", json!({"path": 7})), "path"),
        (call("fs.read", json!({})), "path"),
        (call("fs.read", json!({"path": "a", "mode": "rw"})), "mode"),
        (call("no tool at all", json!({})), "there is no tool `no tool at all`"),
    ] {
        let place = Place::new();
        let ran = place.play(&[], &[lines.clone(), json!({"text": "I see."})]).succeeded();
        assert_eq!(ran.reply()["text"], "I see.", "{ran}");
        let refused = ran.seen("refused");
        assert_eq!(refused.len(), 1, "{ran}");
        assert!(refused[0]["why"].as_str().unwrap().contains(word), "`{word}` {ran}");
        assert!(ran.seen("started").iter().all(|event| event["action"] != "tool"), "nothing ran: {ran}");
        let verdicts = tool_verdicts(&place);
        assert_eq!(verdicts.len(), 1, "{verdicts:?}");
        assert_eq!(verdicts[0].0, "deny", "{lines}");
        place.verify();
    }
}

#[test]
fn three_calls_of_unknown_tools_end_the_turn() {
    let place = Place::new();
    let wrong = || call("fs.delete", json!({"path": "a"}));
    let ran = place.play(&[], &[wrong(), wrong(), wrong(), json!({"text": "never said"})]).failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"limit_hit": "unknown_tools"}), "{ran}");
    assert!(!ran.stdout.contains("never said"), "{ran}");
    place.verify();
}

#[test]
fn the_limits_of_a_turn_are_kept_and_said() {
    let place = Place::new();
    place.configure("[limits]\nrounds = 2\n");
    let list = |path: &str| call("fs.list", json!({"path": path}));
    let ran = place.play(&[], &[list("."), list("./"), json!({"text": "so far"})]).failed(&[]);
    let reply = ran.reply();
    assert_eq!(reply["end"], json!({"limit_hit": "rounds"}), "{ran}");
    let text = reply["text"].as_str().unwrap();
    assert!(text.contains("so far") && text.contains("too many rounds"), "{ran}");
    place.verify();

    let place = Place::new();
    place.configure("[limits]\nturn_seconds = 1\n");
    let ran = place.play(&[], &[json!({"text": "slow and slower", "delay_ms": 60_000})]).failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"limit_hit": "time"}), "{ran}");
    place.verify();
}

#[test]
fn a_spent_budget_is_said_and_nothing_more_is_asked() {
    let place = Place::new();
    place.configure("[budget]\ntokens = 10\n");
    let ran = place.play(&[], &[json!({"text": "never said"})]).failed(&[]);
    let reply = ran.reply();
    assert_eq!(reply["end"], json!({"budget_spent": "tokens"}), "{ran}");
    assert!(reply["text"].as_str().unwrap().contains("budget"), "{ran}");
    assert!(!ran.stdout.contains("never said"), "{ran}");
    place.verify();
    // The session ends with the run: nobody is sent to raise what is gone.
    let script = place.script(&[json!({"text": "never said"})]);
    let ran = place.run(&["run", "--model", &script, "go on"]).failed(&["`[budget]` in ephor.toml"]);
    assert!(!ran.stderr.contains("until its budget is raised"), "{ran}");
}

/// A run whose model speaks so slowly that it has to be stopped, once it has begun to speak.
fn slow(place: &Place) -> Running {
    let script = place.script(&[json!({"text": "a slow answer that never comes to its end", "delay_ms": 600_000})]);
    let running = place.start(&["run", "--json", "--model", &script, "go on"]);
    wait_until("the model is asked", || place.run(&["chain", "log", "--json"]).stdout.contains("\"kind\":\"intent\""));
    running
}

/// The model call has an outcome, what it did not use was given back, and the node has gone.
fn settled(place: &Place) {
    place.verify();
    let (intents, outcomes) = (place.facts("intent"), place.facts("outcome"));
    assert_eq!(intents.len(), outcomes.len());
    let cancelled = outcomes.iter().find(|fact| fact["end"] == "cancelled").unwrap_or_else(|| panic!("{outcomes:?}"));
    let tokens = |budget: &Value| budget["tokens"].as_u64().unwrap();
    assert!(tokens(&cancelled["used"]) < tokens(&intents[0]["reserved"]), "{cancelled}");
    let ends = place.facts("turn_end");
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["end"], "cancelled");
}

#[test]
fn ctrl_c_ends_a_turn_in_order() {
    let place = Place::new();
    let running = slow(&place);
    running.signal(Signal::INT);
    let ran = running.ended();
    assert_eq!(ran.status.code(), Some(130), "{ran}");
    assert_eq!(ran.reply()["end"], "cancelled", "{ran}");
    settled(&place);
}

#[test]
fn a_client_that_is_killed_leaves_an_outcome_and_a_settled_budget() {
    let place = Place::new();
    let running = slow(&place);
    running.signal(Signal::KILL);
    running.ended();
    // The turn goes on without it, until an operator stops it.
    place.run(&["stop", "--all"]).succeeded();
    settled(&place);
    assert!(told(&place).len() > 1);
}
