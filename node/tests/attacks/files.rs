//! Attacks by way of the files of a workspace: names that lead elsewhere, and files that are more than files.

use std::{fs, os::unix::fs::symlink};

use serde_json::{Value, json};

use crate::place::{Place, Ran, wait_until};

fn call(name: &str, arguments: &Value) -> Value {
    json!({"tool_calls": [{"name": name, "arguments": arguments}]})
}

/// One call of a tool in a turn of its own, with `args` before the message.
fn one(place: &Place, args: &[&str], name: &str, arguments: &Value) -> Ran {
    let ran = place.play(args, &[call(name, arguments), json!({"text": "I see."})]);
    place.node_is_gone();
    ran
}

/// The end of the one call of a tool: how, and in which words.
fn end(ran: &Ran) -> (String, String) {
    let is_end =
        |event: &Value| event["event"] == "refused" || (event["event"] == "ended" && event["action"] == "tool");
    let event = ran.events().into_iter().find(is_end).unwrap_or_else(|| panic!("the call has an end: {ran}"));
    let word = |key: &str| event[key].as_str().unwrap_or_default().to_owned();
    (word("end"), format!("{}{}", word("text"), word("why")))
}

/// A place in production, where reading is not asked about and `fs.write` is allowed beforehand.
fn production() -> Place {
    let place = Place::new().asks_as_it_comes();
    place.configure("environment = \"production\"\n");
    place
}

#[test]
fn a_link_to_the_settings_of_git_is_asked_about_as_those() {
    let place = production();
    place.file(".git/config", "[core]\n");
    symlink(".git/config", place.workspace.join("notes.md")).unwrap();
    let arguments = json!({"path": "notes.md", "content": "[core]\n\tfsmonitor = evil\n"});
    let ran = one(&place, &["--allow", "fs.write"], "fs.write", &arguments);
    let (end, words) = end(&ran);
    assert_ne!(end, "done", "{words}");
    assert_eq!(fs::read_to_string(place.workspace.join(".git/config")).unwrap(), "[core]\n");
    // What a person is asked, and what stands on the record, is the file.
    for kind in ["ticket", "verdict"] {
        let entries: Vec<_> = place.log().into_iter().filter(|entry| entry["fact"]["kind"] == kind).collect();
        assert!(entries.iter().any(|entry| entry["private"].to_string().contains(".git/config")), "{entries:#?}");
    }
    place.verify();
}

#[test]
fn a_link_to_a_folder_does_not_hide_what_is_written_there() {
    let place = production();
    place.file(".git/hooks/pre-commit.sample", "#!/bin/sh\n");
    symlink(".git/hooks", place.workspace.join("docs")).unwrap();
    for path in ["docs/pre-commit", "docs/pre-commit.sample"] {
        let arguments = json!({"path": path, "content": "#!/bin/sh\nevil\n"});
        let (end, words) = end(&one(&place, &["--allow", "fs.write"], "fs.write", &arguments));
        assert_ne!(end, "done", "{words}");
    }
    assert!(!place.workspace.join(".git/hooks/pre-commit").exists());
    assert_eq!(fs::read_to_string(place.workspace.join(".git/hooks/pre-commit.sample")).unwrap(), "#!/bin/sh\n");
}

#[test]
fn a_link_to_a_secret_is_not_read_unasked() {
    for environment in ["dev", "staging", "production"] {
        let place = Place::new();
        place.configure(&format!("environment = \"{environment}\"\n"));
        place.file(".env", "TOKEN=hunter2\n");
        symlink(".env", place.workspace.join("readme.txt")).unwrap();
        symlink("readme.txt", place.workspace.join("twice.txt")).unwrap();
        for path in ["readme.txt", "twice.txt", "./x/../readme.txt"] {
            let ran = one(&place, &[], "fs.read", &json!({"path": path}));
            let (end, words) = end(&ran);
            assert_ne!(end, "done", "{environment} {path}: {words}");
            assert!(!ran.stdout.contains("hunter2"), "{ran}");
        }
    }
}

#[test]
fn an_ordinary_link_still_leads_to_its_file() {
    let place = production();
    place.file("docs/README.md", "welcome\n");
    symlink("docs/README.md", place.workspace.join("README.md")).unwrap();
    let ran = one(&place, &[], "fs.read", &json!({"path": "README.md"}));
    let (read, words) = end(&ran);
    assert!(read == "done" && words.contains("welcome") && words.contains("docs/README.md"), "{words}");
    let arguments = json!({"path": "README.md", "content": "hello\n"});
    let (wrote, words) = end(&one(&place, &["--allow", "fs.write"], "fs.write", &arguments));
    assert_eq!(wrote, "done", "{words}");
    assert!(place.workspace.join("README.md").is_symlink());
    assert_eq!(fs::read_to_string(place.workspace.join("docs/README.md")).unwrap(), "hello\n");
}

#[test]
fn a_scope_holds_for_the_file_and_not_for_a_name_that_leads_to_another() {
    let place = Place::new();
    place.file("other.md", "mine\n");
    symlink("other.md", place.workspace.join("notes.md")).unwrap();
    let arguments = json!({"path": "notes.md", "content": "theirs\n"});
    let scope = ["--allow", "fs.read", "--scope", "fs.write=notes.md"];
    let ran = one(&place, &scope, "fs.write", &arguments);
    assert_ne!(end(&ran).0, "done", "{ran}");
    let reasons: String = place.facts("verdict").iter().map(|fact| fact["verdict"]["reasons"].to_string()).collect();
    assert!(reasons.contains("target-is-outside-the-scope"), "{reasons}");
    assert_eq!(fs::read_to_string(place.workspace.join("other.md")).unwrap(), "mine\n");
}

/// Waits for the question of a turn that is under way, and answers it with yes.
fn permit(place: &Place) {
    wait_until("a ticket is open", || !place.tickets().is_empty());
    place.run(&["approve", &place.tickets()[0]["ticket"].to_string()]).succeeded();
}

/// One write that waits for its answer, while which `meanwhile` happens.
fn written_after(place: &Place, path: &str, meanwhile: impl FnOnce()) -> Ran {
    let up = place.up();
    let script =
        place.script(&[call("fs.write", &json!({"path": path, "content": "theirs\n"})), json!({"text": "I see."})]);
    let turn = place.start(&["run", "--json", "--wait", "--model", &script, "go on"]);
    wait_until("the question is asked", || place.run(&["approvals", "--json"]).stdout.contains("fs.write"));
    meanwhile();
    permit(place);
    let ran = turn.ended();
    up.signal(rustix::process::Signal::TERM);
    up.ended();
    ran
}

#[test]
fn a_link_that_is_put_there_while_the_question_waits_is_not_followed() {
    let place = Place::new();
    place.file("notes.md", "mine\n");
    place.file(".git/config", "[core]\n");
    let ran = written_after(&place, "notes.md", || {
        fs::remove_file(place.workspace.join("notes.md")).unwrap();
        symlink(".git/config", place.workspace.join("notes.md")).unwrap();
    });
    let (end, words) = end(&ran);
    assert_ne!(end, "done", "{words}");
    assert_eq!(fs::read_to_string(place.workspace.join(".git/config")).unwrap(), "[core]\n");
}

#[test]
fn a_folder_that_is_renamed_while_the_question_waits_takes_nothing_elsewhere() {
    let place = Place::new();
    place.file("a/x.md", "mine\n");
    place.file("b/x.md", "other\n");
    let ran = written_after(&place, "a/x.md", || {
        fs::rename(place.workspace.join("a"), place.workspace.join("c")).unwrap();
        fs::rename(place.workspace.join("b"), place.workspace.join("a")).unwrap();
    });
    let (end, words) = end(&ran);
    assert_ne!(end, "done", "{words}");
    assert_eq!(fs::read_to_string(place.workspace.join("a/x.md")).unwrap(), "other\n");
    assert_eq!(fs::read_to_string(place.workspace.join("c/x.md")).unwrap(), "mine\n");
}

#[test]
fn what_a_person_edits_while_the_question_waits_is_not_overwritten() {
    let place = Place::new();
    place.file("notes.md", "mine\n");
    let ran = written_after(&place, "notes.md", || fs::write(place.workspace.join("notes.md"), "edited\n").unwrap());
    let (end, words) = end(&ran);
    assert!(end != "done" && words.contains("changed"), "{end}: {words}");
    assert_eq!(fs::read_to_string(place.workspace.join("notes.md")).unwrap(), "edited\n");
}

#[test]
fn what_others_run_or_trust_is_asked_about_also_where_writing_is_allowed() {
    for environment in ["dev", "production"] {
        let place = Place::new();
        place.configure(&format!("environment = \"{environment}\"\n"));
        let paths = [
            ".git/config",
            ".git/hooks/pre-commit",
            ".GIT/config",
            ".github/workflows/ci.yml",
            ".gitlab-ci.yml",
            ".vscode/tasks.json",
            ".envrc",
            ".husky/pre-commit",
            "sub/.git/config",
            ".npmrc",
            ".env.local",
        ];
        let calls: Vec<Value> =
            paths.iter().map(|path| call("fs.write", &json!({"path": path, "content": "x"}))).collect();
        let fine = call("fs.write", &json!({"path": "notes/fine.md", "content": "x"}));
        let ran = place.play(&["--allow", "fs.write"], &[&[fine], &calls[..], &[json!({"text": "I see."})]].concat());
        assert!(place.workspace.join("notes/fine.md").exists(), "{ran}");
        for path in paths {
            assert!(!place.workspace.join(path).exists(), "{environment}: {path}: {ran}");
        }
    }
}

#[test]
fn files_that_hold_secrets_are_read_only_after_a_question() {
    let paths = [
        ".env",
        ".env.local",
        ".git-credentials",
        ".kube/config",
        ".docker/config.json",
        ".pgpass",
        "id_ecdsa",
        "a.p12",
        "home/.AWS/credentials",
        "x.pfx",
        "vault.kdbx",
        ".netrc",
        ".pypirc",
        "deploy.pem",
        ".ssh/config",
    ];
    for environment in ["dev", "production"] {
        let place = Place::new();
        place.configure(&format!("environment = \"{environment}\"\n"));
        for path in paths {
            place.file(path, "hunter2\n");
        }
        let mut lines: Vec<Value> = paths.iter().map(|path| call("fs.read", &json!({"path": path}))).collect();
        lines.push(json!({"text": "I see."}));
        // Some at a time: what is refused too often suspends the seat.
        for lines in lines.chunks(4) {
            let ran = place.play(&["--allow", "fs.read"], &[lines, &[json!({"text": "I see."})]].concat());
            place.node_is_gone();
            assert!(!ran.stdout.contains("hunter2"), "{environment}: {ran}");
        }
    }
}

#[test]
fn a_search_leaves_out_files_that_hold_secrets_and_says_so() {
    let place = Place::new();
    place.file("a.txt", "password=open\n");
    for path in [".env", "conf/.env.production", "keys/server.key", ".aws/credentials", ".docker/config.json"] {
        place.file(path, "password=hunter2\n");
    }
    let ran = one(&place, &[], "fs.search", &json!({"pattern": "password"}));
    let (read, words) = end(&ran);
    assert!(read == "done" && words.contains("a.txt:1: password=open"), "{words}");
    assert!(!ran.stdout.contains("hunter2"), "{ran}");
    assert!(words.contains("5 paths") && words.contains("secrets"), "{words}");
}

#[test]
fn a_folder_in_which_the_kernel_shows_itself_is_no_workspace() {
    let place = Place::new();
    for folder in ["/proc", "/proc/self", "/sys"] {
        let ran = place.run(&["run", "-C", folder, "list the files"]).failed(&["folder of the kernel's own"]);
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
}

#[test]
fn an_answer_is_to_the_file_that_was_there_also_behind_a_kill_of_the_node() {
    let place = Place::new();
    place.file("notes.md", "mine\n");
    let up = place.up();
    let script = place
        .script(&[call("fs.write", &json!({"path": "notes.md", "content": "theirs\n"})), json!({"text": "I see."})]);
    let turn = place.start(&["run", "--json", "--wait", "--model", &script, "go on"]);
    wait_until("the question is asked", || place.run(&["approvals", "--json"]).stdout.contains("fs.write"));
    up.signal(rustix::process::Signal::KILL);
    up.ended();
    turn.ended();
    place.file("notes.md", "edited\n");
    let up = place.up();
    wait_until("the turn goes on without an answer", || {
        !place.run(&["approvals", "--json"]).stdout.contains("fs.write")
    });
    up.signal(rustix::process::Signal::TERM);
    up.ended();
    assert_eq!(fs::read_to_string(place.workspace.join("notes.md")).unwrap(), "edited\n");
    let told: String = place.log().iter().map(|entry| entry["private"].to_string()).collect();
    assert!(told.contains("changed while the question waited"), "{told}");
    place.verify();
}

#[test]
fn a_write_that_cannot_be_kept_or_that_others_run_is_asked_about_where_others_are_not() {
    let place = Place::new().asks_as_it_comes();
    place.file("large.txt", "x".repeat((1 << 20) + 1));
    place.file("two.txt", "x");
    fs::hard_link(place.workspace.join("two.txt"), place.workspace.join("names.txt")).unwrap();
    place.file(".git/hooks/post-commit", "#!/bin/sh\n");
    let write = |path: &str| json!({"path": path, "content": "x"});
    for path in ["large.txt", "names.txt", ".git/hooks/pre-commit", ".git/hooks/post-commit", ".envrc"] {
        let ran = one(&place, &[], "fs.write", &write(path)).unasked();
        assert_ne!(end(&ran).0, "done", "{path}: {ran}");
    }
    assert!(!place.workspace.join(".envrc").exists());
    assert_eq!(end(&one(&place, &[], "fs.write", &write("notes.txt"))).0, "done");
    // With leave it is written, and undoing says what it cannot do.
    let ran = one(&place, &["--allow", "fs.write"], "fs.write", &write("large.txt")).succeeded();
    let session = ran.events()[0]["session"].as_str().unwrap().to_owned();
    let ran = place.run(&["undo", &session]);
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert!(ran.stderr.contains("large.txt: stays as it is") && ran.stderr.contains("was not kept"), "{ran}");
}

#[test]
fn what_is_kept_of_a_session_is_bounded_also_where_nothing_is_written() {
    let place = Place::new().asks_as_it_comes();
    place.file("big.txt", "x".repeat(1 << 20));
    // Each call has the file kept, and then writes nothing.
    let write = |at: usize| {
        let arguments = json!({"path": "big.txt", "content": at.to_string(), "expected": ["other"]});
        json!({"name": "fs.write", "arguments": arguments})
    };
    let calls: Vec<Value> = (0..66).map(write).collect();
    let ran = place.play(&[], &[json!({"tool_calls": calls}), json!({"text": "I see."})]).unasked();
    let ends = |end: &str| ran.seen("ended").iter().filter(|event| event["end"] == end).count();
    assert_eq!(ends("tool_error"), 64, "{ran}");
    assert_eq!(fs::metadata(place.workspace.join("big.txt")).unwrap().len(), 1 << 20);
}

#[test]
fn a_folder_does_not_become_a_repository_of_git_unasked() {
    let place = Place::new().asks_as_it_comes();
    for path in ["docs/HEAD", "docs/head", ".hg/hgrc", ".yarn/releases/yarn.cjs", "rust-toolchain.toml"] {
        let ran = one(&place, &[], "fs.write", &json!({"path": path, "content": "ref: refs/heads/x"})).unasked();
        assert_ne!(end(&ran).0, "done", "{path}");
        assert!(!place.workspace.join(path).exists());
    }
}
