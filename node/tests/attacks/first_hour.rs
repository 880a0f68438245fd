//! What a newcomer meets in the first hour.

use rustix::process::Signal;
use serde_json::json;

use crate::place::{Place, wait_until};

#[test]
fn a_kind_that_no_entry_has_is_said_to_be_none() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    place.run(&["chain", "log", "--kind", "verdcit"]).failed(&["`verdcit`", "verdict"]);
    place.run(&["chain", "log", "--kind", "verdict"]).succeeded();
}

#[test]
fn a_client_that_is_told_to_end_says_that_the_turn_goes_on_and_how_to_come_back() {
    let place = Place::new();
    let model = place.script(&[json!({"text": "done after all", "delay_ms": 2000})]);
    let client = place.start(&["run", "--model", &model, "go"]);
    wait_until("the model was asked", || {
        let log = place.run(&["chain", "log", "--kind", "message"]);
        log.status.success() && !log.stdout.is_empty()
    });
    client.signal(Signal::TERM);
    let ran = client.ended().failed(&["goes on", "ephor run --session"]);
    assert_eq!(ran.status.code(), Some(143), "{ran}");
    let session = ran.stderr.split("--session ").nth(1).unwrap().split('`').next().unwrap().to_owned();
    let back = place.run(&["run", "--session", &session]).succeeded();
    assert!(back.stdout.contains("done after all"), "{back}");
}

#[test]
fn the_tools_are_compiled_once_however_short_the_first_run_is() {
    let place = Place::fresh();
    let model = place.script(&[json!({"text": "nothing to do"})]);
    place.run(&["run", "--model", &model, "go"]).succeeded();
    place.node_is_gone();
    let compiled = || {
        let files = std::fs::read_dir(place.root().join("cache/ephor/compiled")).into_iter().flatten().flatten();
        let mut files: Vec<_> =
            files.map(|file| (file.file_name(), file.metadata().unwrap().modified().unwrap())).collect();
        files.sort();
        files
    };
    let first = compiled();
    assert!(!first.is_empty(), "the first node leaves them compiled");
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    assert_eq!(compiled(), first);
}

#[test]
fn a_replay_works_in_the_folder_and_with_the_model_and_the_agent_of_the_message() {
    let place = Place::new();
    place.configure("[agents.digest]\nnamespace = \"press\"\n");
    let up = place.up();
    let model = place.script(&[json!({"text": "as it was meant"})]);
    place.run(&["suspend", "--all"]).succeeded();
    let run = place.start(&["run", "--model", &model, "--agent", "digest", "list the files"]);
    let waits = || place.processes().into_iter().find(|one| one["name"] == "loop" && one["waiting"] == 1);
    wait_until("the message waits", || waits().is_some());
    place.run(&["stop", &waits().unwrap()["pid"].to_string()]).succeeded();
    drop(run.ended());
    place.run(&["resume", "--all"]).succeeded();
    let elsewhere = place.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    // The script of the old session is on the record.
    std::fs::remove_file(place.root().join("script.jsonl")).unwrap();
    let mut replay = place.command(&["dead", "replay", "--all"]);
    let ran = crate::place::Running::start(replay.current_dir(&elsewhere)).ended().succeeded();
    assert!(ran.stdout.contains("as it was meant"), "{ran}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
    let opened: Vec<_> = place.log().into_iter().filter(|entry| entry["fact"]["kind"] == "opened").collect();
    let [first, second] = opened.as_slice() else { panic!("{opened:?}") };
    for same in ["workspace", "provider", "model", "script"] {
        assert_eq!(second["private"]["opening"][same], first["private"]["opening"][same], "{same}: {second}");
    }
    assert_eq!(second["fact"]["agent"], first["fact"]["agent"], "{second}");
    assert!(first["private"]["opening"]["workspace"].is_string(), "{first}");
}

#[test]
fn what_could_not_go_on_opens_no_session() {
    let place = Place::new();
    let up = place.up();
    place.run(&["operator", "add", "opa", "--role", "operator", "--unprotected"]).succeeded();
    place.run(&["run", "--allow", "fs.wirte", "go on"]).failed(&["there is no tool `fs.wirte`"]);
    place.run(&["run", "--scope", "fs.wirte=a", "go on"]).failed(&["there is no tool `fs.wirte`"]);
    place.run(&["run", "--allow", "fs.write", "--as", "opa", "go on"]).failed(&["role `approver`"]);
    for wrong in
        [&["bad", "61 * * * *", "m"][..], &["Bad Name", "* * * * *", "m"], &["x", "* * * * *", "--zone", "Mars", "m"]]
    {
        assert!(!place.run(&[&["schedule", "add"], wrong].concat()).status.success());
    }
    place.run(&["schedule", "add", "daily", "0 7 1 1 *", "good morning"]).succeeded();
    assert!(!place.run(&["schedule", "add", "daily", "0 7 1 1 *", "good morning"]).status.success());
    let sessions = || place.run(&["sessions", "--json"]).succeeded().stdout;
    assert_eq!(sessions(), "", "nothing was said in any");
    place.run(&["run", "list the files"]).succeeded();
    assert_eq!(sessions().lines().count(), 1);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn a_call_that_was_refused_because_nobody_could_be_asked_is_no_success() {
    let place = Place::new();
    let call = json!({"name": "fs.write", "arguments": {"path": "evil.sh", "content": "x"}});
    let lines = [json!({"tool_calls": [call]}), json!({"text": "it is not written"})];
    let ran = place.play(&[], &lines).unasked();
    assert_eq!(ran.reply()["text"], "it is not written", "{ran}");
    place.play(&["--allow", "fs.write"], &lines).succeeded();
}

#[test]
fn a_folder_without_a_chain_is_refused_by_its_name() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    for folder in [place.root().join("empty"), place.home.join("empty")] {
        std::fs::create_dir(&folder).unwrap();
        let name = folder.to_str().unwrap();
        for command in ["verify", "export"] {
            let ran =
                place.run(&["chain", command, name]).failed(&["there is no chain in", name, "ephor chain verify"]);
            assert!(!ran.stderr.contains("log.pub") && !ran.stderr.contains("--key`, as"), "{ran}");
        }
    }
    place.run(&["chain", "verify", place.home.to_str().unwrap()]).succeeded();
    place.run(&["chain", "verify", place.home.join("chain").to_str().unwrap()]).succeeded();
}

#[test]
fn a_standing_approval_of_long_arguments_is_listed_in_short_lines() {
    let place = Place::new();
    let up = place.up();
    let content = "a line that says nothing\u{202e}\n".repeat(400);
    let call = json!({"name": "fs.write", "arguments": {"path": "evil.sh", "content": content}});
    let model = place.script(&[json!({"tool_calls": [call]}), json!({"text": "it is written"})]);
    let run = place.start(&["run", "--wait", "--model", &model, "write it down"]);
    wait_until("somebody is asked", || !place.tickets().is_empty());
    place.run(&["approve", &place.tickets()[0]["ticket"].to_string(), "--always"]).succeeded();
    run.ended().succeeded();
    let told = place.run(&["precedents"]).succeeded().stdout;
    assert!(told.contains("evil.sh") && told.contains("sha256"), "{told}");
    assert!(told.lines().all(|line| line.chars().count() <= 600), "{told}");
    assert!(!told.contains('\u{202e}'), "{told}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn a_chain_that_cannot_be_published_is_told_of_wherever_the_chain_is_looked_at() {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let up = place.up();
    let (tiles, aside) = (place.home.join("chain/tile"), place.root().join("tile"));
    std::fs::rename(&tiles, &aside).unwrap();
    std::fs::write(&tiles, "in the way").unwrap();
    place.run(&["run", "list the files"]).succeeded();
    wait_until("the node says so", || place.run(&["ps"]).succeeded().stdout.contains("cannot be published"));
    let told = place.run(&["chain", "stat"]).succeeded().stdout;
    assert!(told.contains("cannot be published"), "{told}");
    let told: serde_json::Value =
        serde_json::from_str(&place.run(&["chain", "stat", "--json"]).succeeded().stdout).unwrap();
    assert_eq!(told["trouble"], place.standing()["trouble"]);
    assert!(told["trouble"].is_string(), "{told}");
    std::fs::remove_file(&tiles).unwrap();
    std::fs::rename(&aside, &tiles).unwrap();
    wait_until("it goes on", || place.standing()["trouble"].is_null());
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn an_agent_that_an_operator_kills_did_not_crash() {
    let place = Place::new();
    let up = place.up();
    let late = || json!({"text": "late", "delay_ms": 60_000});
    let model = place.script(&[late(), late()]);
    let run = place.start(&["run", "--model", &model, "go on"]);
    let asks = || place.standing()["flights"].as_array().unwrap().first().map(|flight| flight["pid"].to_string());
    wait_until("the model is asked", || asks().is_some());
    let first = asks();
    place.run(&["kill", first.as_deref().unwrap()]).succeeded();
    wait_until("it is started again", || asks().is_some_and(|pid| first.as_ref() != Some(&pid)));
    place.run(&["stop", "--all"]).succeeded();
    let ran = run.ended();
    assert!(ran.stderr.contains("an operator killed the agent") && !ran.stderr.contains("crashed"), "{ran}");
    up.signal(Signal::TERM);
    up.ended().succeeded();
}

#[test]
fn what_is_held_is_said_once_and_truly_with_what_ends_it() {
    let place = Place::new();
    let up = place.up();
    let model = place.script(&[json!({"text": "a while", "delay_ms": 60_000})]);
    let run = place.start(&["run", "--json", "--model", &model, "go on"]);
    let asks = || place.standing()["flights"].as_array().unwrap().first().map(|flight| flight["pid"].to_string());
    wait_until("the model is asked", || asks().is_some());
    let pid = asks().unwrap();
    // Less than what is used already, or set aside.
    let budget = place.run(&["budget", &pid, "--messages", "1", "--tool-calls", "0"]).succeeded();
    assert!(budget.stdout.contains("spent"), "{budget}");
    place.run(&["suspend", &pid]).succeeded();
    let inspected = place.run(&["inspect", &pid]).succeeded().stdout;
    assert_eq!(inspected.matches("suspended").count(), 1, "{inspected}");
    let shown = place.run(&["ps"]).succeeded().stdout;
    let row = shown.lines().find(|line| line.ends_with("loop")).unwrap();
    assert!(row.contains("suspended") && row.contains("spent") && !row.contains('%'), "{shown}");
    place.run(&["stop", "--all"]).succeeded();
    let ran = run.ended();
    let held: Vec<_> = ran.seen("held").into_iter().map(|event| event["by"].clone()).collect();
    assert!(!held.contains(&json!(null)), "nothing said that it goes on: {ran}");
    let shown = place.run(&["ps"]).succeeded().stdout;
    for line in shown.lines().filter(|line| line.ends_with(" agents") || line.ends_with(" node")) {
        assert!(line.contains("stopped") && !line.contains("running"), "{shown}");
    }
    // Each command that is named can be typed.
    let refused = place.run(&["run", "list the files"]).failed(&["The node is stopped. Run `ephor resume --all`."]);
    for told in [shown, refused.stderr] {
        let hint = told.split('`').find(|quoted| quoted.starts_with("ephor ")).unwrap();
        assert_eq!(hint, "ephor resume --all", "{told}");
    }
    place.run(&["resume", "--all"]).succeeded();
    up.signal(Signal::TERM);
    up.ended().succeeded();
}
