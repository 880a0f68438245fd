//! What it costs to start and end one confined command, beside bubblewrap on the same machine at the same time.
//!
//! The command is `true`. Ours has everything on: the overlay, Landlock, seccomp, limits. `bwrap` has its namespaces and one bind.
#![expect(clippy::unwrap_used, reason = "a measurement may stop at the first surprise")]

use std::{
    fs::DirBuilder,
    future::pending,
    os::unix::fs::DirBuilderExt,
    path::Path,
    process::{Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use ephor_confine::{End, Lack, Request, Workspace, init, overlay::discard, run};

/// Rounds, each with one of both, so that what else the machine does meets both alike.
const ROUNDS: usize = 300;
/// The first are not counted.
const WARM: usize = 20;

fn main() -> ExitCode {
    if init::is_called() {
        return init::main();
    }
    let rounds = std::env::args().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let place = tempfile::tempdir().unwrap();
    let workspace = place.path().join("workspace");
    std::fs::create_dir(&workspace).unwrap();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds + WARM {
        let mine = runtime.block_on(native(&workspace, &place.path().join(round.to_string())));
        let bubblewrap = bubblewrap();
        if round >= WARM {
            ours.push(mine);
            theirs.extend(bubblewrap);
        }
    }
    let own = line("ephor-confine, overlay and all", &mut ours);
    if theirs.is_empty() {
        println!("bwrap is not here");
    } else {
        let other = line("bwrap --unshare-all --ro-bind / / true", &mut theirs);
        println!("ratio of the medians {:.2}, at most 1.5 wanted", own.as_secs_f64() / other.as_secs_f64());
    }
    ExitCode::SUCCESS
}

async fn native(workspace: &Path, scratch: &Path) -> Duration {
    DirBuilder::new().mode(0o700).create(scratch).unwrap();
    let begun = Instant::now();
    let request = Request::new(vec!["/usr/bin/true".into()], workspace, Workspace::Overlay, scratch).unwrap();
    let request = request.accepting(Lack::Cgroup);
    let ended = run(&request, &|_| {}, pending()).await.unwrap();
    let took = begun.elapsed();
    assert_eq!(ended.end, End::Exited(0));
    discard(scratch).unwrap();
    took
}

fn bubblewrap() -> Option<Duration> {
    let begun = Instant::now();
    let words = ["--unshare-all", "--ro-bind", "/", "/", "/usr/bin/true"];
    let mut bwrap = Command::new("bwrap");
    let status = bwrap.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    status.success().then(|| begun.elapsed())
}

fn line(what: &str, times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    let at = |part: usize| times.get(times.len() * part / 100).copied().unwrap_or_default();
    println!("{what:<42} p50 {:>9.1?}  p90 {:>9.1?}  p99 {:>9.1?}", at(50), at(90), at(99));
    at(50)
}
