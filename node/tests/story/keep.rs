//! An operator erases sessions, changes the keys and sets a passphrase.

use std::{
    fs,
    process::{Command, Stdio},
};

use rustix::process::Signal;
use serde_json::Value;

use crate::place::{Place, Ran, Running, wait_until, watch};

const SECRET: &str = "what-nobody-else-may-read";

/// A home in which something was said, and the session it was said in.
fn talked() -> (Place, String) {
    let place = Place::new();
    place.run(&["run", &format!("list the files, {SECRET}")]).succeeded();
    let session = session(&place);
    (place, session)
}

/// The session of the last message.
fn session(place: &Place) -> String {
    let said = place.log().into_iter().rfind(|entry| entry["fact"]["kind"] == "message").unwrap();
    said["subject"]["session"].as_str().unwrap().to_owned()
}

fn shows(place: &Place, words: &str) -> bool {
    place.log_now().iter().any(|entry| entry.to_string().contains(words))
}

/// Whether any file of the home holds these bytes.
fn holds(place: &Place, bytes: &[u8]) -> bool {
    fn below(folder: &std::path::Path, bytes: &[u8]) -> bool {
        fs::read_dir(folder).unwrap().map(Result::unwrap).any(|entry| match entry.file_type().unwrap() {
            kind if kind.is_dir() => below(&entry.path(), bytes),
            kind if kind.is_file() => {
                fs::read(entry.path()).unwrap().windows(bytes.len()).any(|window| window == bytes)
            }
            _ => false,
        })
    }
    below(&place.home, bytes)
}

fn json(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn an_erased_session_cannot_be_read_again_and_the_record_holds() {
    let (place, session) = talked();
    assert!(shows(&place, SECRET));
    let key = fs::read(place.home.join("vault/keys").join(&session)).unwrap();
    place.run(&["chain", "erase", "--session", &session]).failed(&["nothing was erased", "--yes"]);
    assert!(shows(&place, SECRET));
    let erased = json(&place.run(&["chain", "erase", "--session", &session, "--yes", "--json"]).succeeded());
    assert_eq!(
        (&erased["erased"][0]["session"], &erased["derived"]),
        (&session.as_str().into(), &Value::Array(vec![]))
    );
    place.verify();
    assert!(!shows(&place, SECRET) && !holds(&place, SECRET.as_bytes()));
    // The wrapped key itself: what lies between the mark and the digest of its file.
    assert!(!holds(&place, &key[20..key.len() - 32]));
    let fact = place.facts("erase").remove(0);
    assert_eq!(fact["session"], session.as_str());
    place.run(&["chain", "erase", "--session", &session, "--yes"]).failed(&["erased before"]);
    place.run(&["chain", "erase", "--session", &"0".repeat(32), "--yes"]).failed(&["nothing to erase"]);
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

#[test]
fn the_running_node_erases_and_changes_keys() {
    let (place, session) = talked();
    let up = place.up();
    let before = place.run(&["chain", "key"]).succeeded().stdout;
    place.run(&["chain", "erase", "--session", &session, "--yes"]).succeeded();
    let rotated = json(&place.run(&["chain", "rotate", "--yes", "--json"]).succeeded());
    let after = place.run(&["chain", "key"]).succeeded().stdout;
    assert_ne!(before, after);
    assert_eq!(after.lines().next().unwrap(), rotated["keys"][0].as_str().unwrap());
    place.run(&["run", "list the files"]).succeeded();
    // With the keys of either generation, while the node runs and afterwards.
    place.run(&["chain", "verify"]).succeeded();
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.verify();
    fs::write(place.root().join("old"), &before).unwrap();
    let old = place.root().join("old");
    place.run(&["chain", "verify", "--key", old.to_str().unwrap()]).succeeded();
    assert!(!shows(&place, SECRET));
    let operators: Vec<_> = place.log().into_iter().filter(|entry| entry["fact"]["kind"] == "keys").collect();
    assert!(operators.len() == 2 && operators.iter().all(|entry| entry["subject"]["operator"].is_string()));
}

#[test]
fn keys_are_changed_without_a_node_and_again() {
    let (place, _) = talked();
    let first = place.run(&["chain", "key"]).succeeded().stdout;
    for _ in 0..2 {
        place.run(&["chain", "rotate"]).failed(&["nothing was changed"]);
        place.run(&["chain", "rotate", "--yes"]).succeeded();
        place.verify();
    }
    let origin = |keys: &str| keys.split('+').next().unwrap().to_owned();
    let last = place.run(&["chain", "key"]).succeeded().stdout;
    assert!(first != last && origin(&first) == origin(&last));
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

#[test]
fn a_passphrase_locks_the_keys_and_is_read_from_a_file() {
    let (place, _) = talked();
    let (words, wrong) = (place.root().join("words"), place.root().join("wrong"));
    fs::write(&words, "correct horse\n").unwrap();
    fs::write(&wrong, "battery staple\n").unwrap();
    let (words, wrong) = (words.to_str().unwrap(), wrong.to_str().unwrap());
    let seeds = fs::read(place.home.join("keys/log")).unwrap()[21..85].to_vec();
    assert!(holds(&place, &seeds));
    place.run(&["chain", "passphrase"]).failed(&["no terminal", "--new-file"]);
    place.run(&["chain", "passphrase", "--new-file", words]).succeeded();
    assert!(!holds(&place, &seeds));
    let refusals: [&[&str]; 4] =
        [&["run", "hi"], &["up"], &["chain", "log", "--content"], &["chain", "rotate", "--yes"]];
    for args in refusals {
        place.run(args).failed(&["locked", "--passphrase-file"]);
        let wrongly = [&["--passphrase-file", wrong], args].concat();
        place.run(&wrongly).failed(&["passphrase does not open"]);
    }
    place.verify();
    place.run(&["--passphrase-file", words, "run", "list the files"]).succeeded();
    place.node_is_gone();
    place.run(&["--passphrase-file", words, "chain", "rotate", "--yes"]).succeeded();
    place.run(&["chain", "log"]).succeeded();
    let credentials = place.root().join("credentials");
    fs::create_dir(&credentials).unwrap();
    fs::write(credentials.join("ephor-passphrase"), "correct horse").unwrap();
    let mut command = place.command(&["run", "list the files"]);
    Running::start(command.env("CREDENTIALS_DIRECTORY", &credentials)).ended().succeeded();
    place.node_is_gone();
    let up = place.start(&["--passphrase-file", words, "up"]);
    wait_until("the node takes clients", || place.run(&["ps"]).status.success());
    place.run(&["run", "list the files"]).succeeded();
    place.run(&["chain", "passphrase", "--remove"]).failed(&["another process uses the home"]);
    up.signal(Signal::TERM);
    up.ended().succeeded();
    place.run(&["--passphrase-file", words, "chain", "passphrase", "--remove"]).succeeded();
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

#[test]
fn the_passphrase_is_asked_for_at_the_terminal_and_not_shown() {
    let (place, _) = talked();
    if !Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        eprintln!("!! not tested: there is no `script` here to make a terminal");
        return;
    }
    let words = place.root().join("words");
    fs::write(&words, "correct horse").unwrap();
    place.run(&["chain", "passphrase", "--new-file", words.to_str().unwrap()]).succeeded();
    let line = format!("'{}' run 'list the files'", env!("CARGO_BIN_EXE_ephor"));
    let mut command = place.shell("script");
    command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let shown = watch(&mut child, Some(("Passphrase for the keys of Ephor:", "correct horse")));
    assert!(child.wait().unwrap().success(), "{shown}");
    assert!(shown.contains("Passphrase for the keys") && !shown.contains("correct horse"), "{shown}");
}
