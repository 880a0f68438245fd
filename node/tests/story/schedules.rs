//! Schedules that cannot run, as an operator meets them.

use std::{fs, process::Command};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    place::{Place, wait_until},
    signals::{entries, rows},
};

fn listed(place: &Place, name: &str) -> Value {
    let all = rows(place, &["schedule", "list", "--json"]);
    all.into_iter().find(|schedule| schedule["name"] == name).unwrap()
}

/// Whether a schedule says that it cannot run, and why in words with `why` among them.
fn fails(place: &Place, name: &str, why: &str) -> bool {
    let schedule = listed(place, name);
    schedule["failing_since"].is_u64() && schedule["last_error"].as_str().is_some_and(|error| error.contains(why))
}

/// How many processes were started for a schedule.
fn started(place: &Place, name: &str) -> usize {
    let seat = format!("schedule-{name}-");
    let of = |entry: &Value| entry["subject"]["seat"].as_str().is_some_and(|on| on.contains(&seat));
    entries(place, "spawn").iter().filter(|entry| of(entry)).count()
}

fn fired(place: &Place, name: &str) -> bool {
    entries(place, "message").iter().any(|entry| entry["fact"]["because"]["fire"]["name"] == name)
}

#[test]
fn a_schedule_that_cannot_run_writes_nothing_and_says_why_until_it_can() {
    let place = Place::new();
    let folder = place.root().join("elsewhere");
    fs::create_dir(&folder).unwrap();
    let up = place.up();
    let script = place.script(&[json!({"text": "tick"})]);
    let pipe = place.root().join("pipe.jsonl");
    fs::write(&pipe, "{\"text\": \"tick\"}\n").unwrap();
    let (folder_name, piped) = (folder.to_str().unwrap().to_owned(), format!("script:{}", pipe.display()));
    for (name, model, inside) in [
        ("away", &script, folder_name.as_str()),
        ("pipe", &piped, place.workspace.to_str().unwrap()),
        ("well", &script, place.workspace.to_str().unwrap()),
    ] {
        let args = ["schedule", "add", name, "* * * * *", "--model", model, "-C", inside, "wake up"];
        place.run(&args).succeeded();
    }
    fs::remove_dir(&folder).unwrap();
    fs::remove_file(&pipe).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    place.run(&["stop", "--all"]).succeeded();
    for name in ["away", "pipe", "well"] {
        wait_until("it says that agents are stopped", || fails(&place, name, "ephor resume --all"));
    }
    place.run(&["resume", "--all"]).succeeded();
    wait_until("it says that there is no folder", || fails(&place, "away", "elsewhere"));
    wait_until("it says that a pipe is no script", || fails(&place, "pipe", "no regular file"));
    let table = place.run(&["schedule", "list"]).succeeded().stdout;
    assert!(table.contains("no regular file") && table.contains("since"), "{table}");
    wait_until("the one that can run does", || fired(&place, "well"));
    wait_until("and has nothing to complain about", || listed(&place, "well")["last_error"].is_null());
    assert_eq!((started(&place, "away"), started(&place, "pipe")), (0, 0));
    fs::create_dir(&folder).unwrap();
    wait_until("it goes on by itself", || fired(&place, "away"));
    wait_until("and has nothing to complain about", || listed(&place, "away")["last_error"].is_null());
    assert_eq!((started(&place, "pipe"), fired(&place, "pipe")), (0, false));
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn whoever_makes_a_schedule_is_told_where_its_answers_go() {
    let place = Place::new();
    let up = place.up();
    let added = place.run(&["schedule", "add", "daily", "0 9 * * *", "wake up"]).succeeded().stdout;
    assert!(added.contains("ephor sessions") && added.contains("ephor chain log --session"), "{added}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn a_schedule_of_somebody_who_may_not_send_any_more_is_withheld_and_the_record_says_so_once() {
    let place = Place::new();
    let up = place.up();
    place.run(&["operator", "add", "opa", "--role", "operator"]).succeeded();
    let script = place.script(&[json!({"text": "tick"})]);
    let folder = place.workspace.to_str().unwrap();
    let add = ["schedule", "add", "tick", "* * * * *", "--model", &script, "-C", folder, "wake up", "--as", "opa"];
    place.run(&add).succeeded();
    place.run(&["operator", "role", "opa", "viewer"]).succeeded();
    wait_until("it says why it is not sent", || fails(&place, "tick", "may not send"));
    assert_eq!(entries(&place, "withheld").len(), 1);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    // Another node looks again, and has nothing new to say.
    let up = place.up();
    wait_until("it was looked at again", || fails(&place, "tick", "may not send"));
    assert_eq!((entries(&place, "withheld").len(), fired(&place, "tick"), started(&place, "tick")), (1, false, 0));
    place.run(&["operator", "role", "opa", "operator"]).succeeded();
    wait_until("it goes on in the name of somebody who may", || fired(&place, "tick"));
    wait_until("and has nothing to complain about", || listed(&place, "tick")["last_error"].is_null());
    place.run(&["operator", "remove", "opa"]).succeeded();
    wait_until("it is withheld again", || entries(&place, "withheld").len() == 2);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn to_look_makes_no_home_and_writes_nothing() {
    let place = Place::fresh();
    place.run(&["schedule", "list"]).failed(&["no node runs", "ephor up"]);
    for signal in ["suspend", "resume", "stop", "kill"] {
        place.run(&[signal, "nobody"]).failed(&["no node runs", "ephor up"]);
    }
    assert!(place.run(&["approvals"]).succeeded().stdout.contains("Nothing waits"));
    place.run(&["approve", "1"]).failed(&["Ticket 1 is not open"]);
    place.run(&["operator", "list"]).failed(&["nobody is enrolled yet"]);
    assert!(!place.home.exists());
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    let before = place.log().len();
    place.run(&["schedule", "list", "--json"]).failed(&["no node runs"]);
    place.run(&["suspend", "nobody"]).failed(&["no node runs"]);
    assert!(place.run(&["approvals"]).succeeded().stdout.contains("Nothing waits"));
    place.run(&["refuse", "4711"]).failed(&["Ticket 4711 is not open"]);
    let owner = &rows(&place, &["operator", "list", "--json"])[0];
    assert_eq!((&owner["name"], &owner["role"]), (&json!("owner"), &json!("owner")));
    assert!(!place.is_locked(), "and none is there now");
    assert_eq!(place.log().len(), before);
    // What holds every agent to come has a meaning without a node.
    place.run(&["stop", "--all"]).succeeded();
    place.node_is_gone();
    place.run(&["run", "list the files"]).failed(&["stopped", "ephor resume"]);
    place.run(&["resume", "--all"]).succeeded();
    place.run(&["run", "list the files"]).succeeded();
}
