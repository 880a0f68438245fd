//! Operators with roles and credentials of their own, and the constitution that an owner puts in force.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{gate::writing, place::Place};

fn lines(place: &Place, args: &[&str]) -> Vec<Value> {
    let ran = place.run(args).succeeded();
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The id of the operator of this name.
fn id(place: &Place, name: &str) -> Value {
    let all = lines(place, &["operator", "list", "--json"]);
    all.iter().find(|one| one["name"] == name).unwrap()["operator"].clone()
}

#[test]
fn each_command_takes_its_role_and_the_record_names_who_gave_it() {
    let place = Place::new();
    let up = place.up();
    let all = lines(&place, &["operator", "list", "--json"]);
    assert_eq!((all.len(), &all[0]["name"], &all[0]["role"]), (1, &json!("owner"), &json!("owner")));
    place.run(&["operator", "add", "vic", "--role", "viewer"]).succeeded();
    place.run(&["operator", "add", "opa", "--role", "operator"]).succeeded();
    place.run(&["operator", "add", "app", "--role", "approver", "--unprotected"]).succeeded();
    place.run(&["operator", "add", "opa", "--role", "viewer"]).failed(&["there is an operator `opa`"]);

    let script = place.script(&writing());
    let nothing = place.file("nothing.cedar", "");
    let run: &[&str] = &["run", "--json", "--model", &script];
    let as_vic: &[&[&str]] = &[
        &["run", "hello"],
        &["stop", "--all"],
        &["schedule", "list"],
        &["policy", "apply", nothing.to_str().unwrap(), "--yes"],
        &["chain", "rotate", "--yes"],
        &["operator", "add", "eve", "--role", "owner", "--unprotected"],
        &["operator", "role", "vic", "owner"],
        &["operator", "remove", "owner"],
    ];
    for args in as_vic {
        place.run(&[*args, &["--as", "vic"]].concat()).failed(&["role `o"]);
    }
    place.run(&["ps", "--as", "vic"]).succeeded();
    place.run(&["operator", "list", "--as", "vic"]).succeeded();
    place.run(&["suspend", "--all", "--as", "opa"]).succeeded();
    place.run(&["resume", "--all", "--as", "opa"]).succeeded();
    place.run(&[run, &["--as", "opa", "go on"]].concat()).unasked();
    place.run(&[run, &["--as", "opa", "--allow", "fs.write", "go on"]].concat()).failed(&["role `approver`"]);
    assert!(!place.workspace.join("note.txt").exists());
    place.run(&["operator", "role", "app", "owner", "--as", "app"]).failed(&["role `owner`"]);
    place.run(&[run, &["--as", "app", "--allow", "fs.write", "go on"]].concat()).succeeded();
    assert!(place.workspace.join("note.txt").exists());
    place.run(&["operator", "remove", "owner"]).failed(&["the last owner"]);

    let (opa, app) = (id(&place, "opa"), id(&place, "app"));
    let log = place.log_now();
    let by = |kind: &str| -> Vec<Value> {
        let of = log.iter().filter(|entry| entry["fact"]["kind"] == kind);
        of.map(|entry| entry["subject"]["operator"].clone()).collect()
    };
    assert_eq!(by("signal"), [opa.clone(), opa.clone()]);
    assert!(by("ruling").contains(&app), "who allowed it");
    assert_eq!(by("message"), [opa, app]);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    // Where no node runs that would ask, it is the same.
    place.run(&["chain", "rotate", "--yes", "--as", "app"]).failed(&["role `owner`"]);
    place.run(&["chain", "rotate", "--yes"]).succeeded();
    place.verify();
}

#[test]
fn a_process_that_can_read_the_files_and_open_the_socket_cannot_answer_for_an_approver() {
    let place = Place::new();
    let words = place.root().join("words");
    fs::write(&words, "correct horse\n").unwrap();
    let (words, wrong) = (words.to_str().unwrap(), place.root().join("wrong"));
    fs::write(&wrong, "battery staple\n").unwrap();
    let up = place.up();
    place.run(&["operator", "add", "app", "--role", "approver"]).failed(&["no terminal", "--new-file"]);
    place.run(&["operator", "add", "app", "--role", "approver", "--new-file", words]).succeeded();
    // It has the file, and whatever else lies there.
    let file = place.home.join("keys/operators/app");
    assert!(fs::read(&file).unwrap().starts_with(b"ephor locked key 1\n"));
    let script = place.script(&writing());
    let run: &[&str] = &["run", "--model", &script, "--allow", "fs.write", "go on", "--as", "app"];
    place.run(run).failed(&["is locked", "--as-passphrase-file"]);
    place.run(&[run, &["--as-passphrase-file", wrong.to_str().unwrap()]].concat()).failed(&["passphrase"]);
    assert!(!place.workspace.join("note.txt").exists());
    place.run(&[run, &["--as-passphrase-file", words]].concat()).succeeded();
    assert!(place.workspace.join("note.txt").exists());
    // The same for the first owner, as soon as that credential is locked.
    place.run(&["operator", "passphrase", "--new-file", words]).succeeded();
    place.run(&["operator", "add", "eve", "--role", "owner", "--unprotected"]).failed(&["is locked"]);
    place.run(&["operator", "list", "--as-passphrase-file", words]).succeeded();
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
}

#[test]
fn a_constitution_is_applied_at_once_and_the_record_rules_after_a_kill() {
    let place = Place::new();
    let up = place.up();
    place.run(&["operator", "add", "app", "--role", "approver", "--unprotected"]).succeeded();
    let text = place.run(&["policy", "show"]).succeeded().stdout;
    let strict = format!(
        "{text}\n@id(\"no-writing\") forbid (principal, action == Action::\"run\", resource == Tool::\"fs.write\");\n"
    );
    let file = place.root().join("strict.cedar");
    fs::write(&file, &strict).unwrap();
    let file = file.to_str().unwrap();
    place.run(&["policy", "apply", file]).failed(&["nothing was changed", "--yes"]);
    place.run(&["policy", "apply", file, "--yes", "--as", "app"]).failed(&["role `owner`"]);
    fs::write(place.root().join("none.cedar"), "permit(").unwrap();
    place
        .run(&["policy", "apply", place.root().join("none.cedar").to_str().unwrap(), "--yes"])
        .failed(&["not a constitution"]);
    place.play(&["--allow", "fs.write"], &writing()).succeeded();
    assert!(place.workspace.join("note.txt").exists());
    fs::remove_file(place.workspace.join("note.txt")).unwrap();

    let told = place.run(&["policy", "apply", file, "--yes"]).succeeded();
    assert!(told.stdout.contains("+ @id(\"no-writing\")") && told.stdout.contains("in force from entry"), "{told}");
    let refused = || {
        let ran = place.play(&["--allow", "fs.write"], &writing()).succeeded();
        assert!(ran.seen("refused")[0]["why"].as_str().unwrap().contains("no writing"), "{ran}");
        assert!(!place.workspace.join("note.txt").exists());
    };
    refused();
    // A kill, and somebody who writes another file into the home: the record rules.
    up.signal(Signal::KILL);
    let _killed = up.ended();
    fs::write(place.home.join("constitution.cedar"), &text).unwrap();
    let again = place.up();
    refused();
    assert_eq!(place.run(&["policy", "show"]).succeeded().stdout, strict);
    again.signal(Signal::TERM);
    let said = again.ended().succeeded();
    assert!(said.stderr.contains("is not the constitution in force") && said.stderr.contains("policy apply"), "{said}");
    let all = lines(&place, &["policy", "explain", "--all", "--json"]);
    assert_eq!((&all[0]["otherwise"], &all[0]["unknown"]), (&json!([]), &json!({})), "{all:?}");
    let enacted = place.log().into_iter().find(|entry| entry["fact"]["kind"] == "enacted").unwrap();
    assert!(enacted["subject"]["operator"].is_string());
    place.verify();
}
