//! Processes that are killed while they catch up, and a disk that takes no more.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use super::{answers_as_the_chain, catch_up, model::History, open};
use crate::common::Seeded;

/// Tells the process that a test started which folder is its own.
const FOLDER: &str = "EPHOR_TEST_STATE";

fn chain() -> History {
    History::of(6000, 3)
}

fn folder() -> PathBuf {
    std::env::var_os(FOLDER).unwrap().into()
}

/// Runs a test of this file in a process of its own, by way of `shell`, which ends with `exec "$@"`.
fn start(shell: &str, test: &str, folder: &Path) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", shell, "sh"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", &format!("state::processes::{test}")]);
    command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
#[ignore = "is killed by `a_process_that_is_killed_in_a_catch_up_changes_no_answer`"]
fn catches_up_for_ever() {
    let (chain, folder) = (chain(), folder());
    let mut state = open(&folder);
    loop {
        for size in (0..=6000).step_by(500) {
            catch_up(&mut state, &chain.up_to(size));
        }
        state.rebuild(&chain, &mut |_| ()).unwrap();
    }
}

#[test]
fn a_process_that_is_killed_in_a_catch_up_changes_no_answer() {
    let (chain, folder, random) = (chain(), tempfile::tempdir().unwrap(), Seeded::new(4));
    let mut built = 0;
    for _ in 0..25 {
        let mut child = start("exec \"$@\"", "catches_up_for_ever", folder.path());
        thread::sleep(Duration::from_millis(50 + random.below(200)));
        child.kill().unwrap();
        child.wait().unwrap();
        built += u32::from(folder.path().join("state/map").exists());
        answers_as_the_chain(&mut open(folder.path()), &chain);
    }
    assert!(built > 5, "the processes were killed before they did anything");
}

#[test]
#[ignore = "is run by `a_disk_that_takes_no_more_changes_no_answer`"]
fn answers_on_a_small_disk() {
    let (chain, folder) = (chain(), folder());
    let mut state = open(&folder);
    for size in [500, 3000] {
        catch_up(&mut state, &chain.up_to(size));
    }
    answers_as_the_chain(&mut state, &chain);
    println!("on disk: {}", state.figures().on_disk);
}

#[test]
fn a_disk_that_takes_no_more_changes_no_answer() {
    let (chain, mut in_memory) = (chain(), 0);
    for blocks in [0, 1, 100, 1000, 1025, 1100, 2000, 3000] {
        let folder = tempfile::tempdir().unwrap();
        // Beyond the limit a write fails, as on a full disk; without the trap the process would be killed.
        let shell = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let output = start(&shell, "answers_on_a_small_disk", folder.path()).wait_with_output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{blocks} blocks: {out} {err}");
        in_memory += u32::from(out.contains("on disk: false"));
        // What it left is good or is built again.
        answers_as_the_chain(&mut open(folder.path()), &chain);
    }
    assert!(in_memory > 0, "the limit met nothing");
}
