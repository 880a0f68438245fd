//! The transcript in the README is what really happens.

use std::{
    path::Path,
    process::{Command, Stdio},
};

/// The lines of the code block after the marker.
fn transcript(readme: &str) -> Vec<String> {
    let marked = readme.lines().skip_while(|line| *line != "<!-- ci:transcript -->").skip(2);
    marked.take_while(|line| !line.starts_with("```")).map(str::to_owned).collect()
}

/// What differs from run to run: PIDs, places in the chain, times, hashes, and lines that only a first start or a slow
/// machine shows.
fn steady(line: &str) -> Option<String> {
    if line.contains("compiling the tools") || line.contains("waiting for the node") {
        return None;
    }
    let mut before = "";
    let mut words = Vec::new();
    for word in line.split(' ') {
        let bare = word.trim_end_matches([',', ')']);
        let is_number = !bare.is_empty() && bare.chars().all(|c| c.is_ascii_digit());
        let is_place = is_number && matches!(before, "process" | "(entries" | "to" | "chain");
        let is_time = bare.contains('.') && bare.chars().all(|c| c.is_ascii_digit() || c == '.');
        let is_hash = bare.len() == 16 && bare.chars().all(|c| c.is_ascii_hexdigit());
        words.push(if is_place || is_time || is_hash { "…" } else { word });
        before = word;
    }
    Some(words.join(" "))
}

#[test]
fn the_transcript_in_the_readme_is_what_really_happens() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let transcript = transcript(&readme);
    let (command, told) = transcript.split_first().unwrap();
    let typed = command.strip_prefix("$ ephor ").unwrap();
    let home = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ephor");
    let output = Command::new("sh")
        .arg("-c")
        .arg(format!("timeout 120 '{program}' {typed} 2>&1"))
        .current_dir(root)
        .env("EPHOR_HOME", home.path().join("home"))
        .env("XDG_CACHE_HOME", home.path().join("cache"))
        .env_remove("OPENAI_API_KEY")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let shown: Vec<String> = shown.lines().filter_map(steady).collect();
    let told: Vec<String> = told.iter().filter_map(|line| steady(line)).collect();
    assert_eq!(shown, told, "put the new transcript into README.md");
    assert!(output.status.success());
}
