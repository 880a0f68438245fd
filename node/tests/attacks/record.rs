//! The chain, its keys, and copies of it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use crate::place::{Place, Ran, Running};

#[test]
fn a_schedule_that_is_longer_than_any_is_refused_and_the_chain_opens_again() {
    let place = Place::new();
    let long = format!("30 9 * * 1{}", " ".repeat(62_800));
    place.run(&["schedule", "add", "x", &long, "hello"]).failed(&["cron expression", "256 bytes at most"]);
    place.run(&["schedule", "add", "x", "30 9 * * 1", "hello"]).succeeded();
    place.run(&["chain", "verify"]).succeeded();
    place.run(&["run", "list the files"]).succeeded();
}

/// A library under which the wall clock of a program is ahead by far.
fn ahead(place: &Place) -> PathBuf {
    let (source, library) = (place.root().join("ahead.c"), place.root().join("ahead.so"));
    let text = "#define _GNU_SOURCE\n#include <time.h>\n#include <unistd.h>\n#include <sys/syscall.h>\n\
        int clock_gettime(clockid_t clock, struct timespec *time) {\n\
        int done = syscall(SYS_clock_gettime, clock, time);\n\
        if (done == 0 && clock == CLOCK_REALTIME) time->tv_sec += 9000000000000;\n\
        return done;\n}\n";
    fs::write(&source, text).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status().unwrap();
    assert!(built.success());
    library
}

#[test]
fn a_start_under_a_clock_far_in_the_future_is_refused_and_leaves_the_record_usable() {
    let place = Place::new();
    place.run(&["run", "hello"]).succeeded();
    place.node_is_gone();
    let before = place.run(&["chain", "log", "--json"]).stdout;
    let mut future = place.command(&["up"]);
    Running::start(future.env("LD_PRELOAD", ahead(&place)))
        .ended()
        .failed(&["the clock of this machine says", "set the clock"]);
    assert_eq!(place.run(&["chain", "log", "--json"]).stdout, before);
    place.run(&["run", "hello"]).succeeded();
    place.verify();
}

fn used() -> Place {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    place
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn fifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(below(&path)) } else { found.push(path.display().to_string()) }
    }
    found
}

/// Restores a copy into another home.
fn restored(place: &Place, copy: &Path, elsewhere: &Place) -> Ran {
    let home = elsewhere.home.display().to_string();
    place.run(&["--home", &home, "restore", &copy.display().to_string(), "--json"])
}

/// A home and its backup.
fn backed_up() -> (Place, PathBuf) {
    let place = used();
    let copy = place.root().join("copy");
    place.run(&["backup", copy.to_str().unwrap()]).succeeded();
    (place, copy)
}

/// Lists a file in a manifest as a backup does.
fn list(copy: &Path, file: &str) {
    let manifest = copy.join("backup");
    let text = fs::read_to_string(&manifest).unwrap();
    let (lines, _) = text.trim_end().rsplit_once('\n').unwrap();
    let kept: Vec<&str> = lines.lines().filter(|line| !line.ends_with(&format!(" {file}"))).collect();
    let bytes = fs::read(copy.join(file)).unwrap();
    let body = format!("{}\n{} {file}\n", kept.join("\n"), ephor_base::Digest::of(&bytes));
    fs::write(&manifest, format!("{body}{}\n", ephor_base::Digest::of(body.as_bytes()))).unwrap();
}

#[test]
fn no_home_and_no_copy_of_one_holds_compiled_code_or_the_key_that_seals_it() {
    let (place, copy) = backed_up();
    let compiled = |path: &String| path.ends_with(".cwasm") || path.ends_with("keys/compiled");
    assert!(!below(&place.home).iter().any(compiled), "{:?}", below(&place.home));
    assert!(!below(&copy).iter().any(compiled), "{:?}", below(&copy));
}

#[test]
fn a_backup_that_lists_compiled_code_and_its_key_brings_neither_into_the_home() {
    let (place, copy) = backed_up();
    fs::create_dir(copy.join("tools")).unwrap();
    let planted = [("tools/evil.cwasm", vec![1; 64]), ("keys/compiled", vec![7; 32]), ("keys/more", vec![0])];
    for (file, bytes) in planted {
        fs::write(copy.join(file), bytes).unwrap();
        list(&copy, file);
    }
    let elsewhere = Place::fresh();
    restored(&place, &copy, &elsewhere).succeeded();
    let found = below(&elsewhere.home);
    let brought = |path: &String| ["evil.cwasm", "keys/compiled", "keys/more"].iter().any(|name| path.ends_with(name));
    assert!(!found.iter().any(brought), "{found:?}");
    elsewhere.run(&["run", "list the files"]).succeeded();
}

#[test]
fn a_restored_home_takes_of_a_copy_only_what_its_record_vouches_for_and_says_what_it_left() {
    let place = Place::new();
    place.configure("environment = \"staging\"\n");
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let copy = place.root().join("copy");
    place.run(&["backup", copy.to_str().unwrap()]).succeeded();
    fs::write(copy.join("ephor.toml"), "model = \"openai/evil\"\n").unwrap();
    list(&copy, "ephor.toml");
    fs::write(copy.join("constitution.cedar"), "permit (principal, action, resource);").unwrap();
    list(&copy, "constitution.cedar");
    let other = Place::fresh();
    other.run(&["run", "list the files"]).succeeded();
    other.node_is_gone();
    fs::copy(other.home.join("keys/operator"), copy.join("keys/operator")).unwrap();
    list(&copy, "keys/operator");
    let elsewhere = Place::fresh();
    let told: Value = serde_json::from_str(&restored(&place, &copy, &elsewhere).succeeded().stdout).unwrap();
    for file in ["ephor.toml", "constitution.cedar", "keys/operator"] {
        assert!(!elsewhere.home.join(file).exists(), "`{file}` was taken");
        let left = told["not_taken"].as_array().unwrap();
        assert!(left.iter().any(|path| path.as_str().unwrap().ends_with(file)), "{told}");
    }
}

#[test]
fn a_copy_whose_vault_key_was_exchanged_is_not_restored() {
    let (place, copy) = backed_up();
    let other = Place::fresh();
    other.run(&["run", "list the files"]).succeeded();
    other.node_is_gone();
    fs::copy(other.home.join("keys/vault"), copy.join("keys/vault")).unwrap();
    list(&copy, "keys/vault");
    let elsewhere = Place::fresh();
    restored(&place, &copy, &elsewhere).failed(&["not the vault key that the record in the copy names"]);
    assert!(below(&elsewhere.home).iter().all(|path| path.ends_with("/lock")));
}

#[test]
fn a_locked_vault_key_that_was_exchanged_for_another_homes_is_refused_with_what_to_do() {
    let place = used();
    let words = place.root().join("words");
    fs::write(&words, "correct horse").unwrap();
    let words = words.to_str().unwrap();
    place.run(&["chain", "passphrase", "--new-file", words]).succeeded();
    let other = Place::fresh();
    other.run(&["run", "list the files"]).succeeded();
    other.node_is_gone();
    let own = fs::read(place.home.join("keys/vault")).unwrap();
    fs::copy(other.home.join("keys/vault"), place.home.join("keys/vault")).unwrap();
    let said = &["not the one that the record of this home names", "Put back", "ephor chain accept"];
    place.run(&["--passphrase-file", words, "run", "tell nobody"]).failed(said);
    // Its own opens again, and so does a new chain under the other once that was accepted.
    fs::write(place.home.join("keys/vault"), own).unwrap();
    place.run(&["--passphrase-file", words, "run", "list the files"]).succeeded();
    place.node_is_gone();
    fs::copy(other.home.join("keys/vault"), place.home.join("keys/vault")).unwrap();
    place.run(&["--passphrase-file", words, "chain", "accept", "--yes"]).succeeded();
    place.run(&["--passphrase-file", words, "run", "list the files"]).succeeded();
}

#[test]
fn a_key_that_others_may_read_or_put_there_is_refused_with_what_to_do() {
    for key in ["log", "vault", "operator"] {
        let place = used();
        let path = place.home.join("keys").join(key);
        for open in [0o666, 0o640, 0o604] {
            mode(&path, open);
            place.run(&["run", "list the files"]).failed(&["chmod 600"]);
        }
        mode(&path, 0o600);
        mode(&place.home.join("keys"), 0o777);
        place.run(&["run", "list the files"]).failed(&["chmod go-w"]);
        mode(&place.home.join("keys"), 0o700);
        let aside = place.root().join("aside");
        fs::rename(&path, &aside).unwrap();
        symlink(&aside, &path).unwrap();
        place.run(&["run", "list the files"]).failed(&["a link"]);
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        place.run(&["run", "list the files"]).succeeded();
        place.node_is_gone();
    }
}

#[test]
fn a_key_that_belongs_to_another_user_is_refused() {
    let place = used();
    let path = place.home.join("keys/vault");
    if std::os::unix::fs::chown(&path, Some(12_345), None).is_err() {
        eprintln!("!! not checked: only root can give a file away");
        return;
    }
    place.run(&["run", "list the files"]).failed(&["belongs to another user"]);
}

#[test]
fn a_chain_is_not_verified_without_its_head_where_something_else_lies_in_its_place() {
    let place = used();
    let head = place.home.join("head");
    let copied = place.root().join("copied");
    fs::create_dir(&copied).unwrap();
    for folder in ["chain", "keys", "vault"] {
        let (from, to) = (place.home.join(folder), copied.join(folder));
        assert!(Command::new("cp").arg("-a").args([&from, &to]).status().unwrap().success());
    }
    fs::remove_file(copied.join("keys/log")).unwrap();
    fs::remove_file(&head).unwrap();
    let chain = copied.join("chain").display().to_string();
    for folder in [place.home.clone(), copied.clone()] {
        let (head, root) = (folder.join("head"), folder.display().to_string());
        let verify = |what: &str| {
            for dir in [root.as_str(), chain.as_str()] {
                if dir == chain && folder == place.home {
                    continue;
                }
                let ran = place.run(&["chain", "verify", dir, "--json"]);
                assert!(!ran.status.success() && !ran.stdout.contains("\"ok\":true"), "{what}: {ran}");
            }
        };
        fs::create_dir(&head).unwrap();
        verify("a folder");
        fs::remove_dir(&head).unwrap();
        fifo(&head);
        verify("a pipe");
        fs::remove_file(&head).unwrap();
        symlink("/dev/zero", &head).unwrap();
        verify("a link to a device");
        fs::remove_file(&head).unwrap();
        symlink("/nowhere", &head).unwrap();
        verify("a link to nothing");
        fs::remove_file(&head).unwrap();
    }
    // Where there is nothing, a copy has no head, and that is said.
    let ran = place.run(&["chain", "verify", &chain]).succeeded();
    assert!(ran.stdout.contains("not held against a pinned head"), "{ran}");
}

/// Puts in turn a pipe, an endless device and a folder in the place of a file, and runs something that reads it.
fn is_refused_in_place_of(place: &Place, path: &Path, args: &[&str]) {
    let kept = fs::read(path).ok();
    let _none = fs::remove_file(path);
    fifo(path);
    place.run(args).failed(&[]);
    fs::remove_file(path).unwrap();
    symlink("/dev/zero", path).unwrap();
    place.run(args).failed(&[]);
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    place.run(args).failed(&[]);
    fs::remove_dir(path).unwrap();
    if let Some(kept) = kept {
        fs::write(path, kept).unwrap();
        mode(path, 0o600);
    }
}

#[test]
fn what_is_no_regular_file_is_refused_in_place_of_any_file_of_a_home() {
    let place = used();
    for file in ["ephor.toml", "keys/log", "keys/vault", "keys/operator", "node.log", "lock", "head"] {
        is_refused_in_place_of(&place, &place.home.join(file), &["run", "list the files"]);
    }
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    let public = place.home.join("keys/log.pub");
    for args in [&["chain", "key"][..], &["chain", "verify"], &["backup", "/tmp/never-made"]] {
        is_refused_in_place_of(&place, &public, args);
    }
    let fresh = Place::new();
    is_refused_in_place_of(&fresh, &fresh.home.join("constitution.cedar"), &["run", "list the files"]);
}

#[test]
fn what_is_no_regular_file_is_refused_wherever_a_file_is_named() {
    let place = used();
    let named = place.root().join("named");
    let named = named.to_str().unwrap();
    let key = place.home.join("keys/log.pub");
    let key = key.to_str().unwrap();
    let script = format!("script:{named}");
    let commands: [&[&str]; 10] = [
        &["chain", "check", named, "--key", key],
        &["chain", "verify", "--key", named],
        &["chain", "verify", "--head", named],
        &["chain", "verify", "--from", named],
        &["gate", "replay", named],
        &["policy", "check", named],
        &["run", "--model", &script, "hello"],
        &["--passphrase-file", named, "run", "hello"],
        &["run", "--as", named, "hello"],
        &["policy", "test", named],
    ];
    for args in commands {
        is_refused_in_place_of(&place, Path::new(named), args);
    }
}

#[test]
fn a_restored_home_reads_what_was_said_before_it_was_lost() {
    let place = Place::new();
    place.run(&["run", "list the files, marmalade"]).succeeded();
    place.node_is_gone();
    let copy = place.root().join("copy");
    place.run(&["backup", copy.to_str().unwrap()]).succeeded();
    let elsewhere = Place::fresh();
    let told: Value = serde_json::from_str(&restored(&place, &copy, &elsewhere).succeeded().stdout).unwrap();
    let old = told["old"].as_str().unwrap();
    let ran = elsewhere.run(&["chain", "log", "--of", old, "--json", "--content"]).succeeded();
    assert!(ran.stdout.contains("marmalade"), "{ran}");
    elsewhere.run(&["run", "list the files"]).succeeded();
    let ran = elsewhere.run(&["chain", "log", "--of", old, "--json", "--content"]).succeeded();
    assert!(ran.stdout.contains("marmalade"), "{ran}");
}
