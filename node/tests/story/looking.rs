//! Commands that look, while the node has just died, is leaving, or does not answer.

use std::{
    fs::{self, File},
    io::Write,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    place::{Place, wait_until},
    signals::{agents, kill_nine, processes, rows, under_way},
};

/// After this a command does not end any more.
const PATIENCE: Duration = Duration::from_secs(20);

/// Waits for the end of `child`, and kills it if there is none.
fn ends(child: &mut Child) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    false
}

#[test]
fn ctrl_c_ends_a_watch_also_when_the_node_does_not_answer() {
    let place = Place::new();
    let up = place.up();
    let shown = place.root().join("shown");
    let mut watch = place.command(&["ps", "--watch"]);
    let mut watch = watch.stdout(File::create(&shown).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    let looks = || fs::read_to_string(&shown).unwrap().matches("RESTARTS").count();
    wait_until("it has looked twice", || looks() >= 2);
    up.signal(Signal::STOP);
    // It asks again within a second, and waits from then on.
    thread::sleep(Duration::from_secs(2));
    kill_process(Pid::from_child(&watch), Signal::INT).unwrap();
    let ended = ends(&mut watch);
    up.signal(Signal::CONT);
    assert!(ended, "Ctrl-C was lost");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn q_leaves_the_full_screen_also_when_the_node_does_not_answer() {
    if !Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("!! not tested: there is no `script` here to make a terminal");
        return;
    }
    let place = Place::new();
    let up = place.up();
    let shown = place.root().join("shown");
    let line = format!("'{}' top", env!("CARGO_BIN_EXE_ephor"));
    let mut top = place.shell("script");
    top.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh").stdin(Stdio::piped());
    let mut top = top.stdout(File::create(&shown).unwrap()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("it shows something", || fs::read(&shown).unwrap().len() > 100);
    up.signal(Signal::STOP);
    thread::sleep(Duration::from_secs(3));
    let mut keys = top.stdin.take().unwrap();
    keys.write_all(b"q").unwrap();
    let ended = ends(&mut top);
    up.signal(Signal::CONT);
    assert!(ended, "the key was not read");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn the_record_is_asked_also_while_a_node_is_leaving() {
    let place = Place::new();
    for turn in 1..=4 {
        place.run(&["run", "list the files"]).succeeded();
        assert_eq!(rows(&place, &["sessions", "--json"]).len(), turn);
        place.run(&["resume", "--all"]).succeeded();
        place.run(&["dead"]).succeeded();
    }
}

#[test]
fn what_a_node_left_unanswered_is_shown_before_the_next_one_runs() {
    let place = Place::new();
    let up = place.up();
    let run = under_way(&place, "say hello to the dead");
    kill_nine(up);
    drop(run.ended());
    let letters = place.run(&["dead"]).succeeded().stdout;
    assert!(letters.contains("not answered; the node is not running"), "{letters}");
    let letters = rows(&place, &["dead", "--json"]);
    assert_eq!((letters.len(), &letters[0]["unanswered"]), (1, &json!(true)));
    let message = letters[0]["message"].clone();
    // The next node goes on with it, unless nobody can read any more what was said.
    fs::remove_file(place.home.join("vault/keys").join(letters[0]["session"].as_str().unwrap())).unwrap();
    let up = place.up();
    let letters = rows(&place, &["dead", "--json"]);
    assert_eq!((letters.len(), &letters[0]["message"]), (1, &message));
    up.signal(Signal::TERM);
    up.ended().succeeded();
    assert_eq!(rows(&place, &["dead", "--json"]).len(), 1, "once it is dead, it is that alone");
}

#[test]
fn a_letter_that_cannot_be_read_does_not_keep_the_others_from_being_replayed() {
    let place = Place::new();
    let up = place.up();
    // They wait in seats that are held, and then stopped.
    place.run(&["suspend", "--all"]).succeeded();
    let waiting = || {
        let mut all = processes(&place);
        all.retain(|one| one["name"] == "loop" && one["waiting"] == 1);
        all
    };
    let runs = ["the first", "the second"].map(|words| {
        let before = waiting().len();
        let run = place.start(&["run", "--json", words]);
        wait_until("the message waits", || waiting().len() > before);
        run
    });
    for one in waiting() {
        place.run(&["stop", &one["pid"].to_string()]).succeeded();
    }
    for run in runs {
        drop(run.ended());
    }
    place.run(&["resume", "--all"]).succeeded();
    let mut letters = rows(&place, &["dead", "--json"]);
    letters.sort_by_key(|letter| letter["message"].as_u64());
    let first = letters[0]["message"].to_string();
    up.signal(Signal::TERM);
    up.ended().succeeded();
    // Without its key nobody can read what was said.
    fs::remove_file(place.home.join("vault/keys").join(letters[0]["session"].as_str().unwrap())).unwrap();
    let up = place.up();
    let sessions = rows(&place, &["sessions", "--json", "--all"]).len();
    let advice = format!("ephor dead drop {first}");
    let quick = place.script(&[json!({"text": "hello yourself"})]);
    let replayed = place.run(&["dead", "replay", "--all", "--model", &quick]);
    assert!(replayed.stdout.contains("hello yourself"), "{replayed}");
    replayed.failed(&[&advice, "1 of 2"]);
    assert_eq!(rows(&place, &["sessions", "--json", "--all"]).len(), sessions + 1, "none was opened for nothing");
    place.run(&["dead", "replay", &first]).failed(&[&advice]);
    place.run(&["dead", "drop", &first]).succeeded();
    assert_eq!(rows(&place, &["dead", "--json"]).len(), 0);
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn to_resume_what_something_else_holds_says_so() {
    let place = Place::new();
    let up = place.up();
    let run = under_way(&place, "wait for it");
    let pid = agents(&place)[0]["pid"].to_string();
    let seat = agents(&place)[0]["seat"].as_str().unwrap().to_owned();
    place.run(&["suspend", "--all"]).succeeded();
    let told = place.run(&["resume", &pid]).failed(&["still held by `node`", "`ephor resume --all`"]);
    assert!(!told.stdout.contains("resumed"), "{told}");
    let group = seat.rsplit_once('/').unwrap().0;
    place.run(&["suspend", group, "--tree"]).succeeded();
    place.run(&["resume", "--all"]).succeeded();
    place.run(&["suspend", group, "--tree"]).succeeded();
    let told = place.run(&["resume", &pid, "--json"]).failed(&["still held by", group]);
    let told: Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!(told["held"]["seat"], group);
    place.run(&["resume", group]).succeeded();
    assert!(place.run(&["budget", &pid, "--tokens", "0"]).succeeded().stdout.contains("set by entry"));
    place.run(&["stop", &seat]).succeeded();
    assert!(!run.ended().status.success());
    up.signal(Signal::TERM);
    up.ended().succeeded();
}
