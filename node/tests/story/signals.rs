//! Suspend, resume, stop, kill, budgets, dead letters and schedules, as an operator types them.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// A model that takes a minute to answer.
pub(crate) fn slow() -> Value {
    json!({"text": "late", "delay_ms": 600_000})
}

pub(crate) fn rows(place: &Place, args: &[&str]) -> Vec<Value> {
    let out = place.run(args).succeeded().stdout;
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The entries of one kind, while a node runs.
pub(crate) fn entries(place: &Place, kind: &str) -> Vec<Value> {
    place.log_now().into_iter().filter(|entry| entry["fact"]["kind"] == kind).collect()
}

pub(crate) fn processes(place: &Place) -> Vec<Value> {
    place.processes()
}

/// The agents that wait for their models.
pub(crate) fn agents(place: &Place) -> Vec<Value> {
    let waits = |process: &Value| {
        process["name"] == "loop" && process["waiting_for"].as_str().is_some_and(|on| on.starts_with("script"))
    };
    processes(place).into_iter().filter(waits).collect()
}

/// The agent that waits for its model.
fn agent(place: &Place) -> Option<Value> {
    agents(place).into_iter().next()
}

/// A run whose model takes long, under way.
pub(crate) fn under_way(place: &Place, words: &str) -> Running {
    // One for each incarnation that asks.
    let script = place.script(&[slow(), slow(), slow()]);
    let run = place.start(&["run", "--model", &script, "--json", words]);
    wait_until("the model is asked", || agent(place).is_some());
    run
}

pub(crate) fn kill_nine(up: Running) {
    up.signal(Signal::KILL);
    drop(up.ended());
}

#[test]
fn stop_all_cancels_what_runs_and_stays_after_a_kill_until_it_is_resumed() {
    let place = Place::new();
    let up = place.up();
    let run = under_way(&place, "wait for it");
    let stopped = &rows(&place, &["stop", "--all", "--note", "enough", "--json"])[0];
    assert_eq!((stopped["seat"].as_str(), stopped["sessions"].as_array().map(Vec::len)), (Some("node"), Some(1)));
    assert!(stopped["seq"].is_u64() && stopped["unrecorded"].is_null());
    let run = run.ended();
    assert!(!run.status.success(), "{}", run.stdout);
    assert!(agent(&place).is_none());
    let signal = &entries(&place, "signal")[0];
    assert_eq!((&signal["fact"]["signal"], &signal["fact"]["note"]), (&json!("stop"), &json!("enough")));
    assert!(signal["subject"]["operator"].is_string());
    place.run(&["run", "list the files"]).failed(&["stopped", "ephor resume"]);
    kill_nine(up);
    let up = place.up();
    place.run(&["run", "list the files"]).failed(&["stopped", "ephor resume"]);
    place.run(&["resume", "--all"]).succeeded();
    place.run(&["run", "list the files"]).succeeded();
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn a_message_that_died_with_its_node_is_read_and_replayed_once_whatever_is_killed() {
    let place = Place::new();
    let up = place.up();
    // A message that waits in a seat that is held, and then stopped, dies; killing its node does not kill it.
    let dies = |words: &str| {
        place.run(&["suspend", "--all"]).succeeded();
        let run = place.start(&["run", words]);
        let waits = || processes(&place).into_iter().find(|one| one["name"] == "loop" && one["waiting"] == 1);
        wait_until("the message waits", || waits().is_some());
        (run, waits().unwrap()["pid"].to_string())
    };
    let (run, _) = dies("say hello to the dead");
    kill_nine(up);
    drop(run.ended());
    let up = place.up();
    assert_eq!(rows(&place, &["dead", "--json"]).len(), 0);
    let pid = processes(&place).into_iter().find(|one| one["name"] == "loop").unwrap()["pid"].to_string();
    place.run(&["stop", &pid]).succeeded();
    place.run(&["resume", "--all"]).succeeded();
    let letters = rows(&place, &["dead", "--json"]);
    assert_eq!((letters.len(), &letters[0]["why"]), (1, &json!("stopped")));
    let first = letters[0]["message"].to_string();
    assert!(place.run(&["dead", "show", &first]).succeeded().stdout.contains("say hello to the dead"));

    // Killed in the middle of the replay: it is a message under way again, and dead no more.
    let script = place.script(&[slow()]);
    let replay = place.start(&["dead", "replay", &first, "--model", &script]);
    wait_until("the model is asked", || agent(&place).is_some());
    kill_nine(up);
    drop(replay.ended());
    let up = place.up();
    place.run(&["dead", "replay", &first]).failed(&["no dead letter"]);
    wait_until("the model is asked again", || agent(&place).is_some());
    place.run(&["stop", "--all"]).succeeded();
    place.run(&["resume", "--all"]).succeeded();

    let (run, pid) = dies("say hello once more");
    place.run(&["stop", &pid]).succeeded();
    drop(run.ended());
    place.run(&["resume", "--all"]).succeeded();
    let letters = rows(&place, &["dead", "--json"]);
    assert_eq!(letters.len(), 1);
    let second = letters[0]["message"].to_string();
    assert_ne!(first, second);
    let quick = place.script(&[json!({"text": "hello yourself"})]);
    let replayed = place.run(&["dead", "replay", "--all", "--model", &quick]).succeeded();
    assert!(replayed.stdout.contains("hello yourself"), "{}", replayed.stdout);
    assert_eq!(rows(&place, &["dead", "--json"]).len(), 0);
    assert_eq!(rows(&place, &["dead", "--all", "--json"]).len(), 2);
    place.run(&["dead", "drop", &second]).failed(&["no dead letter"]);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn an_agent_is_suspended_inspected_and_killed_by_its_pid_or_the_end_of_its_seat() {
    let place = Place::new();
    let up = place.up();
    let run = under_way(&place, "wait for it");
    let found = agent(&place).unwrap();
    let (pid, seat) = (found["pid"].to_string(), found["seat"].as_str().unwrap().to_owned());
    let inspected: Value = serde_json::from_str(&place.run(&["inspect", &pid, "--json"]).succeeded().stdout).unwrap();
    assert_eq!(inspected["flights"].as_array().map(Vec::len), Some(1));
    assert_eq!(inspected["in_turn"], true);
    assert!(place.run(&["inspect", &pid]).succeeded().stdout.contains("tokens"));
    let group = seat.split('/').nth(2).unwrap();
    let suspended = &rows(&place, &["suspend", group, "--tree", "--json"])[0];
    assert_eq!(suspended["seat"], format!("node/agents/{group}"));
    let held =
        || processes(&place).into_iter().find(|process| process["seat"] == seat.as_str()).unwrap()["held"].clone();
    assert_eq!(held(), "suspended");
    place.run(&["resume", group]).succeeded();
    assert_eq!(held(), Value::Null);
    place.run(&["budget", &pid, "--tokens", "+5", "--note", "more"]).succeeded();
    let budget = &rows(&place, &["budget", &pid, "--json"])[0];
    assert_eq!(budget["account"]["limit"]["tokens"], 1_000_005);
    place.run(&["kill", &pid]).succeeded();
    wait_until("its supervisor started it again", || {
        agent(&place).is_some_and(|again| pid != again["pid"].to_string().as_str() && again["seat"] == seat.as_str())
    });
    place.run(&["stop", &seat]).succeeded();
    assert!(!run.ended().status.success());
    for wrong in [&["stop", "node/services"][..], &["suspend", "99999"], &["kill", "nobody"], &["kill", "node"]] {
        assert!(!place.run(wrong).status.success(), "{wrong:?}");
    }
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn whoever_waits_for_an_agent_hears_of_it_when_its_supervisor_is_killed() {
    let place = Place::new();
    let up = place.up();
    let run = under_way(&place, "wait for it");
    place.run(&["kill", "node/agents"]).succeeded();
    let ended = run.ended();
    assert!(!ended.status.success() && ended.stderr.contains("ephor dead"), "{ended}");
    let letters = rows(&place, &["dead", "--json"]);
    assert_eq!((letters.len(), &letters[0]["why"]), (1, &json!("stopped")), "{letters:?}");
    // A second one within its period is more than the root bears: the node says so, ends in good order, and begins anew.
    let run = under_way(&place, "once more");
    wait_until("the root gives up", || {
        // Between two of them nobody may be in that seat.
        drop(place.run(&["kill", "node/agents"]));
        !place.is_locked()
    });
    let ended = run.ended();
    assert!(!ended.status.success(), "{ended}");
    up.ended().failed(&["the tree of the node gave up"]);
    let log = place.log();
    assert_eq!(log.last().unwrap()["fact"]["kind"], "stop");
    let up = place.up();
    // What was not answered was dead before the node ended, or goes on now.
    place.run(&["stop", "--all"]).succeeded();
    wait_until("nothing is owed an answer", || rows(&place, &["dead", "--json"]).len() == 2);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn a_schedule_sends_its_message_once_also_when_the_node_is_killed_right_behind_it() {
    let place = Place::new();
    let up = place.up();
    let script = place.script(&[json!({"text": "tick"})]);
    let add = |name: &str, cron: &str| {
        place.run(&["schedule", "add", name, cron, "--zone", "Europe/Berlin", "--model", &script, "wake up"])
    };
    add("bad", "61 * * * *").failed(&["cron"]);
    add("Bad Name", "* * * * *").failed(&["name"]);
    place.run(&["schedule", "add", "x", "* * * * *", "--zone", "Mars/Base", "m"]).failed(&["time zone"]);
    add("minute", "* * * * *").succeeded();
    add("minute", "* * * * *").failed(&["of that name"]);
    let listed = rows(&place, &["schedule", "list", "--json"]);
    assert_eq!((listed.len(), &listed[0]["message"]), (1, &json!("wake up")));
    assert!(listed[0]["next"].is_u64());
    let fired = || -> Vec<Value> {
        let because = |entry: Value| entry["fact"]["because"]["fire"]["at"].clone();
        entries(&place, "message").into_iter().map(because).filter(|at| !at.is_null()).collect()
    };
    for _ in 0..700 {
        if !fired().is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let first = fired();
    kill_nine(up);
    let up = place.up();
    let all = fired();
    let mut once = all.clone();
    once.dedup();
    assert_eq!((first.len(), &all[..1]), (1, &once[..1]), "each instant fires once");
    assert_eq!(all.len(), once.len());
    place.run(&["schedule", "remove", "minute"]).succeeded();
    assert_eq!(rows(&place, &["schedule", "list", "--json"]).len(), 0);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}
