//! Sessions and questions that outlive whoever asked, and their node.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// A model that writes one file and says so.
fn writing() -> [Value; 2] {
    let call = json!({"name": "fs.write", "arguments": {"path": "evil.sh", "content": "x"}});
    [json!({"tool_calls": [call]}), json!({"text": "it is written, or not"})]
}

/// What waits for a person.
fn open(place: &Place) -> Vec<Value> {
    place.tickets()
}

/// A run that waits for somebody to answer elsewhere.
fn waiting(place: &Place) -> Running {
    let script = place.script(&writing());
    let run = place.start(&["run", "--wait", "--json", "--model", &script, "write it down"]);
    wait_until("somebody is asked", || place.home.join("node.sock").exists() && open(place).len() == 1);
    run
}

fn kill_nine(up: Running) {
    up.signal(Signal::KILL);
    drop(up.ended());
}

fn id(one: &Value) -> String {
    one["ticket"].to_string()
}

fn written(place: &Place) -> bool {
    place.workspace.join("evil.sh").exists()
}

/// How often a tool ran, by the record.
fn ran(place: &Place) -> usize {
    place
        .log_now()
        .iter()
        .filter(|entry| entry["fact"]["kind"] == "intent" && entry["fact"]["action"] == "tool")
        .count()
}

#[test]
fn a_question_survives_kill_nine_and_its_yes_runs_the_call_once_with_nobody_calling() {
    let place = Place::new();
    let up = place.up();
    let run = waiting(&place);
    let before = open(&place).remove(0);
    let session = before["session"].as_str().unwrap().to_owned();
    kill_nine(up);
    drop(run.ended());
    let up = place.up();
    let after = open(&place).remove(0);
    for same in ["ticket", "session", "call", "digest", "registration", "expires", "arguments"] {
        assert_eq!(after[same], before[same], "{same}");
    }
    assert!(after["left_ms"].as_u64() <= before["left_ms"].as_u64());
    place.run(&["approve", "4711"]).failed(&["Ticket 4711 is not open", &id(&after)]);
    assert!(!written(&place));
    let told = place.run(&["approvals"]).succeeded().stdout;
    assert!(told.contains("fs.write") && told.contains("evil.sh") && told.contains("ephor approve"), "{told}");
    place.run(&["approve", &id(&after)]).succeeded();
    place.run(&["approve", &id(&after)]).failed(&["is not open"]);
    // Nobody was there when the answer came; whoever comes back has it, again and again.
    for _ in 0..2 {
        let back = place.run(&["run", "--session", &session]).succeeded();
        assert!(back.stdout.contains("it is written, or not"), "{back}");
    }
    assert!(written(&place));
    assert_eq!(ran(&place), 1);
    kill_nine(up);
    let up = place.up();
    assert_eq!((open(&place).len(), ran(&place)), (0, 1));
    up.signal(Signal::TERM);
    up.ended().succeeded();
    let all = place.run(&["policy", "explain", "--all"]).succeeded();
    assert!(all.stdout.contains("come out the same"), "{all}");
    place.verify();
}

#[test]
fn what_waits_is_shown_without_a_node_and_only_an_answer_starts_one() {
    let place = Place::new();
    let up = place.up();
    let run = waiting(&place);
    let asked = open(&place).remove(0);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    drop(run.ended());
    let before = place.log().len();
    let shown = open(&place);
    for same in ["ticket", "session", "call", "tool", "expires"] {
        assert_eq!(shown[0][same], asked[same], "{same}");
    }
    let told = place.run(&["approvals"]).succeeded().stdout;
    assert!(told.contains("fs.write") && told.contains("no node runs"), "{told}");
    place.run(&["approve", "4711"]).failed(&["Ticket 4711 is not open", &id(&asked)]);
    assert!(!place.is_locked(), "nobody was started to look");
    assert_eq!(place.log().len(), before);
    place.run(&["approve", &id(&asked)]).succeeded();
    wait_until("the answer starts a node, which runs the call", || written(&place));
    place.verify();
}

#[test]
fn a_question_survives_a_stop_in_good_order_and_a_no_is_told_to_the_model() {
    let place = Place::new();
    let up = place.up();
    let run = waiting(&place);
    let asked = open(&place).remove(0);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    drop(run.ended());
    // No node runs: the command starts one, which goes on where the other stopped.
    let session = asked["session"].as_str().unwrap();
    assert_eq!(open(&place)[0]["ticket"], asked["ticket"]);
    place.run(&["refuse", session.get(..8).unwrap()]).succeeded();
    let back = place.run(&["run", "--session", session]).succeeded();
    assert!(back.stdout.contains("it is written, or not"), "{back}");
    assert!(!written(&place));
    let more = place.run(&["run", "--session", session, "and now?"]);
    assert!(!more.stdout.is_empty() || !more.stderr.is_empty(), "{more}");
    place.node_is_gone();
    assert_eq!(place.facts("ruling").len(), 1);
    place.verify();
}

#[test]
fn a_question_for_two_people_that_one_answered_goes_on_behind_kill_nine() {
    let place = Place::new();
    let up = place.up();
    for (name, role) in [("vic", "viewer"), ("opa", "operator"), ("app", "approver")] {
        place.run(&["operator", "add", name, "--role", role, "--unprotected"]).succeeded();
    }
    let (law, file) = (place.run(&["policy", "show"]).succeeded().stdout, place.root().join("two.cedar"));
    let two = r#"@id("two-people") @decision("defer") @quorum("2") forbid (principal, action == Action::"run", resource == Tool::"fs.write");"#;
    std::fs::write(&file, format!("{law}\n{two}\n")).unwrap();
    place.run(&["policy", "apply", file.to_str().unwrap(), "--yes"]).succeeded();
    let run = waiting(&place);
    let asked = open(&place).remove(0);
    let (ticket, session) = (id(&asked), asked["session"].as_str().unwrap().to_owned());
    assert_eq!(asked["quorum"], 2);
    let told = place.run(&["approvals", "--as", "vic"]).succeeded().stdout;
    assert!(told.contains("2 different people"), "{told}");
    for name in ["vic", "opa"] {
        place.run(&["approve", &ticket, "--as", name]).failed(&["role `approver`"]);
    }
    let half = || {
        let said = place.run(&["approve", &ticket, "--as", "app", "--note", "I have looked"]).succeeded().stdout;
        assert!(said.contains("one more person"), "{said}");
        assert!(!written(&place));
    };
    half();
    kill_nine(up);
    drop(run.ended());
    let up = place.up();
    assert_eq!(id(&open(&place)[0]), ticket);
    let told = place.run(&["approvals"]).succeeded().stdout;
    assert!(told.contains("app permits it: I have looked") && told.contains("may still answer: owner"), "{told}");
    half();
    place.run(&["approve", &ticket]).succeeded();
    place.run(&["run", "--session", &session, "--as", "opa"]).failed(&["another operator"]);
    place.run(&["run", "--session", &session]).succeeded();
    assert!(written(&place));
    assert_eq!(ran(&place), 1);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    assert_eq!(place.facts("ruling").len(), 3);
    let all = place.run(&["policy", "explain", "--all"]).succeeded();
    assert!(all.stdout.contains("come out the same"), "{all}");
    place.verify();
}

#[test]
fn a_question_whose_time_is_up_is_answered_by_nobody() {
    let place = Place::new();
    place.configure("[limits]\napproval_seconds = 4\n");
    let up = place.up();
    let run = waiting(&place);
    let asked = open(&place).remove(0);
    wait_until("its time is up", || open(&place).is_empty());
    place.run(&["approve", &id(&asked)]).failed(&["is not open"]);
    run.ended();
    assert!(!written(&place));
    assert_eq!(ran(&place), 0);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn under_another_configuration_a_question_lapses_and_is_asked_anew() {
    let place = Place::new();
    let up = place.up();
    let run = waiting(&place);
    let asked = open(&place).remove(0);
    kill_nine(up);
    drop(run.ended());
    place.configure("environment = \"staging\"\n");
    let up = place.up();
    wait_until("it is asked anew", || open(&place).iter().any(|one| one["ticket"] != asked["ticket"]));
    place.run(&["approve", &id(&asked)]).failed(&["is not open"]);
    assert!(!written(&place));
    place.run(&["approve", &id(&open(&place)[0])]).succeeded();
    let session = asked["session"].as_str().unwrap();
    place.run(&["run", "--session", session]).succeeded();
    assert!(written(&place));
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}
