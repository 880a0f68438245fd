//! How soon a run shows its first event, beside what starting the program alone costs: `just bench-start`.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

/// Runs behind each figure.
const RUNS: usize = 21;

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ephor"));
    command.env("XDG_CACHE_HOME", Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache"));
    command.env_remove("OPENAI_API_KEY").stdin(Stdio::null()).stderr(Stdio::null());
    command
}

/// From the start of the program to its first model or tool event; the run is then heard to its end.
#[expect(clippy::unwrap_used, reason = "a measurement may stop")]
fn first_event(home: &Path, workspace: &Path) -> Duration {
    let start = Instant::now();
    let mut run = program();
    run.env("EPHOR_HOME", home).arg("run").arg("--json").arg("-C").arg(workspace).arg("Find my TODOs");
    let mut child = run.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        if line.unwrap().contains("\"event\":\"started\"") {
            first.get_or_insert_with(|| start.elapsed());
        }
    }
    assert!(child.wait().unwrap().success());
    first.unwrap()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

#[test]
#[ignore = "a measurement; just bench-start"]
fn the_first_event_of_a_run() {
    let place = tempfile::tempdir().unwrap();
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/todos");
    let (mut fresh, mut again, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..RUNS {
        let home = place.path().join(number.to_string());
        fresh.push(first_event(&home, &workspace));
        again.push(first_event(&home, &workspace));
        let start = Instant::now();
        assert!(program().arg("--version").stdout(Stdio::null()).status().unwrap().success());
        alone.push(start.elapsed());
    }
    let (fresh, again, alone) = (median(fresh), median(again), median(alone));
    let ratio = |time: Duration| time.as_secs_f64() / alone.as_secs_f64();
    println!("`ephor --version` alone                      {alone:>10.1?}");
    println!("first event, on a home that was used         {again:>10.1?}  {:>6.1} ×", ratio(again));
    println!("first event, on a fresh home, keys and all   {fresh:>10.1?}  {:>6.1} ×", ratio(fresh));
}
