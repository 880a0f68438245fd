//! What commands print for programs: each answer in one shape, which `docs/json.md` shows.

use std::{collections::BTreeMap, path::Path};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Ran, Running, wait_until};

/// The example of this name in the documentation.
fn documented(name: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let text = std::fs::read_to_string(root.join("docs/json.md")).unwrap();
    let behind = text.split(&format!("```json {name}\n")).nth(1).unwrap_or_else(|| panic!("no example of `{name}`"));
    serde_json::from_str(behind.split("```").next().unwrap()).unwrap()
}

/// The names of the fields, here and in the first element of each list.
fn shape(value: &Value, at: &str, into: &mut BTreeMap<String, Vec<String>>) {
    match value {
        Value::Object(fields) => {
            into.insert(at.to_owned(), fields.keys().cloned().collect());
            fields.iter().for_each(|(name, value)| shape(value, &format!("{at}.{name}"), into));
        }
        Value::Array(all) => all.iter().take(1).for_each(|one| shape(one, &format!("{at}[]"), into)),
        _ => {}
    }
}

fn fields(value: &Value) -> Vec<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// The one object that tells why a command failed.
fn error(ran: &Ran) -> Value {
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let [line] = lines.as_slice() else { panic!("one line: {ran}") };
    let told: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {ran}"));
    let (mut found, mut wanted) = (BTreeMap::new(), BTreeMap::new());
    shape(&told, "", &mut found);
    shape(&documented("error"), "", &mut wanted);
    assert_eq!(found, wanted, "{ran}");
    assert!(!ran.status.success(), "{ran}");
    told["error"].clone()
}

/// A call that has to be asked about.
fn writing() -> [Value; 2] {
    let call = json!({"name": "fs.write", "arguments": {"path": "evil.sh", "content": "x"}});
    [json!({"tool_calls": [call]}), json!({"text": "it is written, or not"})]
}

fn waiting(place: &Place) -> Running {
    let script = place.script(&writing());
    let run = place.start(&["run", "--wait", "--json", "--model", &script, "write it down"]);
    wait_until("somebody is asked", || place.home.join("node.sock").exists() && !place.tickets().is_empty());
    run
}

#[test]
fn an_error_is_one_object_of_one_shape_whatever_the_command() {
    let (place, fresh) = (Place::new(), Place::fresh());
    let told = |args: &[&str], code: &str, hint: Value, status: i32| {
        let ran = if code == "no_chain" { fresh.run(args) } else { place.run(args) };
        let error = error(&ran);
        assert_eq!((&error["code"], &error["hint"]), (&json!(code), &hint), "{args:?}: {ran}");
        assert_eq!(ran.status.code(), Some(status), "{args:?}: {ran}");
    };
    told(&["ps", "--json"], "no_node", json!("ephor up"), 1);
    told(&["inspect", "1", "--json"], "no_node", json!("ephor up"), 1);
    told(&["schedule", "list", "--json"], "no_node", json!("ephor up"), 1);
    told(&["suspend", "1", "--json"], "no_node", json!("ephor up"), 1);
    told(&["budget", "1", "--json"], "no_node", json!("ephor up"), 1);
    for command in ["sessions", "tickets", "dead", "state"] {
        told(&[command, "--json"], "no_chain", json!("ephor run"), 1);
    }
    for chain in ["log", "stat", "key"] {
        told(&["chain", chain, "--json"], "no_chain", json!("ephor run"), 1);
    }
    told(&["backup", "elsewhere", "--json"], "no_chain", json!("ephor run"), 1);
    told(&["ps", "--json", "--nothing"], "usage", Value::Null, 2);
    told(&["approve", "--json"], "usage", Value::Null, 2);
    let run = place.run(&["run", "--json", "--model", "nobody/knows", "hello"]);
    let shown = run.seen("error")[0]["error"].clone();
    assert_eq!(error(&run), shown, "{run}");
    let up = place.up();
    told(&["dead", "replay", "7", "--json"], "failed", json!("ephor dead drop 7"), 1);
    told(&["dead", "show", "7", "--json"], "refused", Value::Null, 1);
    told(&["approve", "99", "--json"], "failed", json!("ephor tickets"), 1);
    told(&["precedents", "revoke", "99", "--json"], "failed", json!("ephor precedents"), 1);
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn what_waits_has_one_shape_with_and_without_a_node() {
    let wanted = documented("approvals");
    assert_eq!(fields(&Place::fresh().waits()), fields(&wanted), "nothing was ever asked");
    let place = Place::new();
    let up = place.up();
    assert_eq!(fields(&place.waits()), fields(&wanted), "nothing is asked");
    let run = waiting(&place);
    let waits = place.waits();
    assert_eq!((&waits["node"], fields(&waits)), (&json!(true), fields(&wanted)));
    assert_eq!(fields(&waits["tickets"][0]), fields(&wanted["tickets"][0]), "{waits}");
    assert!(waits["tickets"][0]["arguments"].as_str().unwrap().contains("evil.sh"), "{waits}");
    up.signal(Signal::KILL);
    drop((up.ended(), run.ended()));
    let rests = place.waits();
    assert_eq!((&rests["node"], fields(&rests)), (&json!(false), fields(&wanted)));
    assert_eq!(fields(&rests["tickets"][0]), fields(&wanted["tickets"][0]), "{rests}");
    for same in ["ticket", "session", "seat", "call", "tool", "expires", "quorum"] {
        assert_eq!(rests["tickets"][0][same], waits["tickets"][0][same], "{same}");
    }
}

#[test]
fn what_waits_names_the_seats_that_their_conduct_suspended() {
    let place = Place::new();
    let up = place.up();
    let outside = |number: u32| json!({"name": "fs.read", "arguments": {"path": format!("../outside-{number}.txt")}});
    let bad: Vec<Value> = (0..60).map(outside).collect();
    let model = place.script(&[json!({"tool_calls": bad}), json!({"text": "well", "delay_ms": 60_000})]);
    let run = place.start(&["run", "--json", "--model", &model, "read them"]);
    wait_until("its conduct suspends it", || !place.waits()["suspended"].as_array().unwrap().is_empty());
    let waits = place.waits();
    assert_eq!(fields(&waits["suspended"][0]), fields(&documented("approvals")["suspended"][0]), "{waits}");
    place.run(&["stop", "--all"]).succeeded();
    drop(run.ended());
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn how_a_node_stands_has_calls_under_way_holds_and_the_quota() {
    let place = Place::new();
    place.configure("[chain]\nquota = \"64 MB\"\n");
    let up = place.up();
    let model = place.script(&[json!({"text": "late", "delay_ms": 60_000})]);
    let run = place.start(&["run", "--json", "--model", &model, "go on"]);
    wait_until("the model is asked", || !place.standing()["flights"].as_array().unwrap().is_empty());
    let pid = place.standing()["flights"][0]["pid"].to_string();
    place.run(&["suspend", &pid]).succeeded();
    let (standing, wanted) = (place.standing(), documented("ps"));
    let (mut found, mut told) = (BTreeMap::new(), BTreeMap::new());
    shape(&standing, "", &mut found);
    shape(&wanted, "", &mut told);
    told.retain(|at, _| !at.starts_with(".processes[]"));
    for (at, names) in told {
        assert_eq!(found.get(&at), Some(&names), "{at}: {standing}");
    }
    let named = fields(&wanted["processes"][0]);
    let processes = standing["processes"].as_array().unwrap();
    for process in processes {
        assert!(fields(process).iter().all(|name| named.contains(name)), "{process}");
    }
    let agent = processes.iter().find(|process| process["held"] == "suspended").unwrap();
    let here = named.iter().filter(|name| *name != "suspended");
    assert!(here.clone().all(|name| !agent[name].is_null()), "{agent}");
    assert_eq!(fields(&agent["account"]["limit"]), fields(&wanted["processes"][0]["account"]["limit"]));
    let held = place.run(&["ps"]).succeeded().stdout;
    let hint = held.split('`').find(|quoted| quoted.starts_with("ephor resume ")).unwrap_or_else(|| panic!("{held}"));
    let words: Vec<&str> = hint.split(' ').skip(1).collect();
    place.run(&words).succeeded();
    assert_eq!(place.standing()["holds"], json!([]));
    place.run(&["stop", "--all"]).succeeded();
    drop(run.ended());
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn what_a_session_changed_has_one_shape() {
    let place = Place::new();
    place.file("evil.sh", "y");
    place.run(&["run", "--allow", "fs.write", "--model", &place.script(&writing()), "write it down"]).succeeded();
    let sessions = place.run(&["sessions", "--json"]).succeeded();
    let first: Value = serde_json::from_str(sessions.stdout.lines().next().unwrap()).unwrap();
    let session = first["id"].as_str().unwrap_or_else(|| panic!("{sessions}"));
    let told: Value = serde_json::from_str(&place.run(&["diff", session, "--json"]).succeeded().stdout).unwrap();
    let (mut found, mut wanted) = (BTreeMap::new(), BTreeMap::new());
    shape(&told, "", &mut found);
    shape(&documented("diff"), "", &mut wanted);
    assert_eq!(found, wanted, "{told}");
}
