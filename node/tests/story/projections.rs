//! Sessions, tickets and parts of the record are found without reading all of it, and always as the record has them.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    gate::writing,
    place::{Place, Ran},
};

fn lines(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn asked(place: &Place, args: &[&str]) -> Vec<Value> {
    lines(&place.run(args).succeeded())
}

/// The entries of the whole record for which this is so.
fn entries(place: &Place, wanted: impl Fn(&Value) -> bool) -> Vec<Value> {
    asked(place, &["chain", "log", "--json"]).into_iter().filter(|entry| wanted(entry)).collect()
}

/// Holds every way to ask against the whole record.
fn agrees(place: &Place) {
    let sessions = asked(place, &["sessions", "--json"]);
    for session in &sessions {
        let (id, whole) = (session["id"].as_str().unwrap(), &session["id"]);
        let own = entries(place, |entry| entry["subject"]["session"] == *whole);
        assert_eq!(asked(place, &["chain", "log", "--json", "--session", id]), own);
        let messages = own.iter().filter(|entry| entry["fact"]["kind"] == "message").count();
        assert_eq!((&session["entries"], &session["messages"]), (&json!(own.len()), &json!(messages)));
        let last = asked(place, &["chain", "log", "--json", "--session", id, "--last", "2"]);
        assert_eq!(last, own[own.len() - 2..]);
        let since = own[own.len() / 2]["time"].as_u64().unwrap();
        let since = since.div_ceil(1_000_000) * 1_000_000;
        let shown = ephor_base::Timestamp(since).to_string();
        let later: Vec<Value> = own.into_iter().filter(|entry| entry["time"].as_u64().unwrap() >= since).collect();
        assert_eq!(asked(place, &["chain", "log", "--json", "--session", id, "--since", &shown]), later);
    }
    let verdicts = entries(place, |entry| entry["fact"]["kind"] == "verdict");
    assert_eq!(asked(place, &["chain", "log", "--json", "--kind", "verdict"]), verdicts);
    let call = entries(place, |entry| entry["subject"]["call"] == 1);
    assert!(!call.is_empty());
    assert_eq!(asked(place, &["chain", "log", "--json", "--call", "1"]), call);
    place.run(&["chain", "log", "--json", "--kind", "none"]).failed(&["no entry is of the kind `none`"]);
}

#[test]
fn sessions_and_parts_of_the_record_are_as_the_whole_record_has_them() {
    let place = Place::new();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let sessions = asked(&place, &["sessions", "--json"]);
    assert_eq!(sessions.len(), 2);
    assert!(sessions[0]["first"]["seq"].as_u64() > sessions[1]["first"]["seq"].as_u64(), "newest first");
    let tickets = asked(&place, &["tickets", "--json"]);
    assert_eq!(tickets.len(), 2);
    assert_eq!(tickets[0]["answer"]["how"], "nobody-to-ask");
    let table = place.run(&["sessions"]).succeeded().stdout;
    assert_eq!(table.lines().count(), 3, "{table}");
    assert!(place.run(&["tickets"]).succeeded().stdout.contains("refused: nobody-to-ask"));
    agrees(&place);
    // A node that runs answers the same, and so does one whose projections were taken away.
    let up = place.up();
    agrees(&place);
    assert_eq!(asked(&place, &["sessions", "--json"]), sessions);
    let rebuilt = asked(&place, &["state", "rebuild", "--json"]);
    assert_eq!(rebuilt[0]["rebuilt"], "asked");
    assert_eq!(asked(&place, &["sessions", "--json"]), sessions);
    up.signal(Signal::INT);
    up.ended().succeeded();
    fs::remove_dir_all(place.home.join("state")).unwrap();
    assert_eq!(asked(&place, &["sessions", "--json"]), sessions);
    let figures = asked(&place, &["state", "--json"]);
    assert_eq!((&figures[0]["applied"], &figures[0]["on_disk"]), (&figures[0]["chain"], &json!(true)));
    place.verify();
}

#[test]
fn a_part_of_the_record_is_shown_where_the_projections_cannot_be_had() {
    let place = Place::new();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let verdicts = entries(&place, |entry| entry["fact"]["kind"] == "verdict");
    let lock = fs::File::options().write(true).open(place.home.join("lock")).unwrap();
    lock.lock().unwrap();
    place.run(&["sessions"]).failed(&["another process uses the home"]);
    assert_eq!(asked(&place, &["chain", "log", "--json", "--kind", "verdict"]), verdicts);
    let last = asked(&place, &["chain", "log", "--json", "--kind", "verdict", "--last", "1"]);
    assert_eq!(last, verdicts[verdicts.len() - 1..]);
}

#[test]
fn a_time_that_is_none_is_said() {
    let place = Place::new();
    place.run(&["chain", "log", "--since", "yesterday"]).failed(&["a time looks like 2026-11-21"]);
}
