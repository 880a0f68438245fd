//! The lints that keep `agents` away from the world really fire.
#![expect(clippy::expect_used, reason = "a test stops at the first surprise")]

use std::{
    collections::BTreeSet,
    io::Write as _,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

/// Runs cargo's clippy on the sample, under the configuration of `agents`.
fn clippy(arguments: &[&str]) -> Output {
    let node = Path::new(env!("CARGO_MANIFEST_DIR"));
    Command::new(env!("CARGO"))
        .arg("clippy")
        .args(arguments)
        .current_dir(node.join("tests/lint-sample"))
        .env("CLIPPY_CONF_DIR", node.with_file_name("agents"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("lint-sample"))
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo starts")
}

/// Every path that `agents/clippy.toml` forbids.
fn forbidden() -> BTreeSet<String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("agents").join("clippy.toml");
    let text = std::fs::read_to_string(file).expect("agents/clippy.toml can be read");
    let config: toml::Table = text.parse().expect("agents/clippy.toml is TOML");
    ["disallowed-methods", "disallowed-types", "disallowed-macros"]
        .into_iter()
        .flat_map(|key| config.get(key).and_then(toml::Value::as_array).expect("the list is there"))
        .map(|entry| entry.get("path").and_then(toml::Value::as_str).expect("each entry has a path").to_owned())
        .collect()
}

/// The lines of the sample, counted from 1, that must be reported.
fn marked() -> BTreeSet<u64> {
    let lines = include_str!("lint-sample/src/lib.rs").lines().zip(1..);
    lines.filter(|(line, _)| line.ends_with("//~")).map(|(_, number)| number).collect()
}

#[test]
fn whatever_agents_must_not_touch_is_reported_by_clippy() {
    if !clippy(&["--version"]).status.success() {
        // Past the test runner's capture: a check that did not run must not look like one that did.
        writeln!(std::io::stderr(), "!! clippy is not installed: that its lints fire was NOT checked").expect("stderr");
        return;
    }
    let lints = ["-Wclippy::disallowed_methods", "-Wclippy::disallowed_types", "-Wclippy::disallowed_macros"];
    let output = clippy(&[&["--offline", "--locked", "--quiet", "--message-format=json", "--"], &lints[..]].concat());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "clippy cannot read the sample or its configuration:\n{stderr}");

    let (mut lines, mut paths) = (BTreeSet::new(), BTreeSet::new());
    for message in output.stdout.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()) {
        let message: Value = message;
        let text = message.pointer("/message/message").and_then(Value::as_str).unwrap_or_default();
        let code = message.pointer("/message/code/code").and_then(Value::as_str).unwrap_or_default();
        assert!(!text.contains("does not refer to"), "agents/clippy.toml names what is not there: {text}");
        let ours = message.pointer("/target/name").and_then(Value::as_str) == Some("lint_sample");
        if ours && code.starts_with("clippy::disallowed_") {
            paths.extend(text.split('`').nth(1).map(str::to_owned));
            let spans = message.pointer("/message/spans").and_then(Value::as_array).into_iter().flatten();
            let here = spans.filter(|span| span.get("file_name").and_then(Value::as_str) == Some("src/lib.rs"));
            lines.extend(here.filter_map(|span| span.get("line_start").and_then(Value::as_u64)));
        }
    }
    let silent: Vec<_> = forbidden().difference(&paths).cloned().collect();
    assert!(silent.is_empty(), "forbidden in agents/clippy.toml, but never reported in the sample: {silent:#?}");
    assert_eq!(lines, marked(), "the lines reported are not those that end in //~");
}
