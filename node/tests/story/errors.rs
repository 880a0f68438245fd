//! What goes wrong is said in words that help; nothing is lost by it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::Stdio,
};

use ephor_base::Digest;
use serde_json::json;

use crate::place::{Place, Ran, Running};

/// A place with a turn on its record.
fn used() -> Place {
    let place = Place::new();
    place.run(&["run", "list the files"]).succeeded();
    place.node_is_gone();
    place
}

/// Nothing was lost: the chain holds, and the next run is answered.
fn goes_on(place: &Place) {
    place.verify();
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

#[test]
fn an_unknown_model_names_those_there_are() {
    let place = used();
    place.run(&["run", "--model", "builtin/genius", "hi"]).failed(&["`genius`", "builtin/scout"]);
    for model in ["gpt", "nobody/gpt", ""] {
        place.run(&["run", "--model", model, "hi"]).failed(&["builtin/scout", "openai/NAME", "script:FILE"]);
    }
    goes_on(&place);
}

#[test]
fn a_missing_key_is_named() {
    let place = used();
    let ran = place.run(&["run", "--json", "--model", "openai/some-model", "hi"]).failed(&[]);
    assert!(format!("{ran}").contains("OPENAI_API_KEY"), "{ran}");
    let told = place.run(&["run", "--model", "openai/some-model", "hi"]).failed(&["OPENAI_API_KEY"]);
    assert!(told.stderr.contains("api.openai.com"), "the host is named first: {told}");
    assert!(place.facts("lease").is_empty(), "no key was handed out");
    goes_on(&place);
}

#[test]
fn a_key_that_is_not_used_is_mentioned() {
    let place = Place::new();
    let mut command = place.command(&["run", "list the files"]);
    let ran = Running::start(command.env("OPENAI_API_KEY", "sk-very-secret")).ended().succeeded();
    assert!(ran.stderr.contains("OPENAI_API_KEY is set and not used"), "{ran}");
    assert!(!format!("{ran}").contains("sk-very-secret"));
    place.node_is_gone();
    assert!(place.facts("lease").is_empty());
}

#[test]
fn no_message_shows_how_one_is_given() {
    let place = Place::new();
    place.run(&["run"]).failed(&["there is no message", "ephor run"]);
    place.pipe(&["run", "  "], " \n").failed(&["there is no message"]);
    place.run(&["run", "--allow", "Not A Tool!", "hi"]).failed(&["--allow", "Not A Tool!"]);
    place.run(&["run", "--allow", "fs.wriet", "hi"]).failed(&["fs.wriet", "fs.write"]);
    place.run(&["fly"]).failed(&["fly", "Usage"]);
}

#[test]
fn what_is_piped_in_has_to_be_text() {
    let place = Place::new();
    let binary = env!("CARGO_BIN_EXE_ephor");
    let line = format!("printf '\\377\\376' | '{binary}' run 'list the files' -");
    Running::start(place.shell("sh").args(["-c", &line])).ended().failed(&["UTF-8"]);
}

#[test]
fn a_home_that_cannot_be_written_is_named() {
    let place = Place::new();
    let file = place.root().join("a file");
    fs::write(&file, "").unwrap();
    let below = file.join("home");
    for home in [file.as_path(), below.as_path(), Path::new("/proc/ephor")] {
        let home = home.to_str().unwrap();
        place.run(&["--home", home, "run", "hi"]).failed(&[home, "EPHOR_HOME"]);
        place.run(&["--home", home, "up"]).failed(&[home, "EPHOR_HOME"]);
    }
    place.run(&["--home", "", "run", "hi"]).failed(&["EPHOR_HOME or --home is empty"]);
}

#[test]
fn a_home_without_the_right_to_write_is_named() {
    let place = Place::new();
    place.make_home();
    if rustix::process::geteuid().is_root() {
        eprintln!("!! not tested: root may write a folder whatever its mode");
        return;
    }
    fs::set_permissions(&place.home, fs::Permissions::from_mode(0o500)).unwrap();
    let ran = place.run(&["run", "hi"]);
    fs::set_permissions(&place.home, fs::Permissions::from_mode(0o700)).unwrap();
    ran.failed(&["cannot be written", "EPHOR_HOME"]);
}

#[test]
fn a_home_that_others_may_write_is_refused() {
    let place = used();
    fs::set_permissions(&place.home, fs::Permissions::from_mode(0o770)).unwrap();
    place.run(&["run", "hi"]).failed(&["may be written by other users", "chmod go-w"]);
    fs::set_permissions(&place.home, fs::Permissions::from_mode(0o700)).unwrap();
    goes_on(&place);
}

#[test]
fn a_home_that_something_else_has_locked_is_said() {
    let place = used();
    let file = fs::File::options().write(true).open(place.home.join("lock")).unwrap();
    file.lock().unwrap();
    place.run(&["up"]).failed(&["another process uses the home"]);
    drop(file);
    goes_on(&place);
}

#[test]
fn a_configuration_that_is_none_names_the_key() {
    let place = used();
    for (text, words) in [
        ("modell = \"builtin/scout\"\n", ["ephor.toml", "modell"]),
        ("[limits]\nrounds = \"many\"\n", ["ephor.toml", "rounds"]),
        ("[limits]\nrouns = 3\n", ["ephor.toml", "rouns"]),
        ("[budget]\nusd = -1.0\n", ["ephor.toml", "budget.usd"]),
        ("[policy]\nnever = [\"Not A Tool!\"]\n", ["ephor.toml", "never"]),
        ("[providers.openai]\nbase_url = \"ftp://example.org\"\n", ["providers.openai.base_url", "ftp"]),
        ("model = \"builtin/genius\"\n", ["model", "builtin/scout"]),
        ("[limits\n", ["ephor.toml", "line 1"]),
    ] {
        // A node that took its configuration before would answer still.
        place.node_is_gone();
        place.configure(text);
        place.run(&["run", "hi"]).failed(&words);
    }
    fs::remove_file(place.home.join("ephor.toml")).unwrap();
    goes_on(&place);
}

#[test]
fn a_workspace_is_apart_from_the_home_and_is_a_folder() {
    let place = used();
    let inside = place.home.join("chain");
    let (link_home, link_around) = (place.root().join("link to home"), place.root().join("link to around"));
    symlink(&place.home, &link_home).unwrap();
    symlink(place.root(), &link_around).unwrap();
    for folder in [&place.home, &inside, place.root(), &link_home, &link_around, Path::new("/")] {
        let folder = folder.to_str().unwrap();
        place.run(&["run", "-C", folder, "list the files"]).failed(&["choose a folder apart from Ephor's home", "-C"]);
    }
    let file = place.file("a.txt", "x");
    place.run(&["run", "-C", "nowhere", "hi"]).failed(&["nowhere"]);
    place.run(&["run", "-C", file.to_str().unwrap(), "hi"]).failed(&["a.txt"]);
    // A home that is reached through a link is the same home.
    let ran = place.run(&["--home", link_home.to_str().unwrap(), "run", "-C", place.home.to_str().unwrap(), "hi"]);
    ran.failed(&["choose a folder apart"]);
    goes_on(&place);
}

#[test]
fn a_chain_of_a_newer_version_is_left_alone() {
    let place = used();
    let journal = place.home.join("chain/journal");
    let segment = fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    let before = fs::read(&segment).unwrap();
    let mut newer = before.clone();
    newer[8..12].copy_from_slice(&7u32.to_be_bytes());
    let Digest(digest) = Digest::of(&newer[..96]);
    newer[96..128].copy_from_slice(&digest);
    fs::write(&segment, &newer).unwrap();
    place.run(&["run", "hi"]).failed(&["format 7", "use the version that wrote it"]);
    place.run(&["up"]).failed(&["format 7", "use the version that wrote it"]);
    place.run(&["chain", "log"]).failed(&["format 7", "use the version that wrote it"]);
    assert_eq!(fs::read(&segment).unwrap(), newer, "nothing was written");
    fs::write(&segment, &before).unwrap();
    goes_on(&place);
}

#[test]
fn a_damaged_chain_stops_every_run_until_the_loss_is_accepted() {
    let place = used();
    let journal = place.home.join("chain/journal");
    let segment = fs::read_dir(&journal).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[700] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let ran = place.run(&["chain", "verify"]);
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert!(ran.stdout.contains("NOT OK"), "{ran}");
    place.run(&["run", "hi"]).failed(&["quarantined", "was changed", "ephor chain accept"]);
    assert_eq!(fs::read(&segment).unwrap(), bytes, "nothing was written over");
    place.run(&["chain", "accept"]).failed(&["nothing was changed", "--yes"]);
    place.run(&["chain", "accept", "--yes"]).succeeded();
    goes_on(&place);
}

/// Runs the binary with files limited to `kib` KiB, as on a disk that fills up.
fn limited(place: &Place, kib: u32, args: &str) -> Ran {
    let binary = env!("CARGO_BIN_EXE_ephor");
    // The unit of `ulimit -f` is 512 bytes in a POSIX shell. The signal would end the process before it can say a word.
    let line = format!("trap '' XFSZ; ulimit -f {}; exec '{binary}' {args}", kib * 2);
    Running::start(place.shell("sh").args(["-c", &line])).ended()
}

#[test]
fn files_that_may_not_grow_are_said_and_nothing_is_lost() {
    let place = used();
    for kib in [1, 8, 64] {
        limited(&place, kib, "run 'list the files'").failed(&["the disk is full"]);
        place.verify();
    }
    goes_on(&place);
    let place = Place::new();
    limited(&place, 1, "run 'list the files'").failed(&["File too large"]);
    place.node_is_gone();
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
}

/// Whether a file system can be mounted, in a name space of its own.
fn can_mount(place: &Place) -> bool {
    let mount = "mount -t tmpfs -o size=64k none .";
    let mut command = place.shell("unshare");
    command.args(["-rm", "sh", "-c", mount]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let place = used();
    if !can_mount(&place) {
        eprintln!("!! not tested: no file system can be mounted here to fill it");
        return;
    }
    let binary = env!("CARGO_BIN_EXE_ephor");
    // The home lies on a disk of its own; a file fills it up to some rest, then a run is tried, then the file goes.
    for rest in [0, 16, 600] {
        let line = format!(
            "mkdir -p ../disk && mount -t tmpfs -o size=24m none ../disk && cp -a ../home ../disk/home || exit 99
             export EPHOR_HOME=$(realpath ../disk/home)
             cat /dev/zero > ../disk/filling 2>&-
             truncate -s -{rest}K ../disk/filling
             '{binary}' run 'list the files'; echo status $?
             while ! flock -n ../disk/home/lock true; do sleep 0.05; done
             rm ../disk/filling
             '{binary}' chain verify && '{binary}' run 'list the files' && echo it goes on"
        );
        let ran = Running::start(place.shell("unshare").args(["-rm", "sh", "-c", &line])).ended().succeeded();
        assert!(ran.stdout.contains("status 1"), "{rest} KiB: {ran}");
        assert!(ran.stderr.contains("the disk is full"), "{rest} KiB: {ran}");
        assert!(ran.stdout.contains("OK: ") && ran.stdout.contains("it goes on"), "{rest} KiB: {ran}");
        assert!(!ran.stderr.contains("panicked"), "{ran}");
    }
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let place = used();
    let binary = env!("CARGO_BIN_EXE_ephor");
    for args in ["run 'list the files'", "run --json 'list the files'", "chain log", "chain verify", "chain key"] {
        let line = format!("exec '{binary}' {args} > /dev/full");
        Running::start(place.shell("sh").args(["-c", &line])).ended().failed(&["No space left on device"]);
    }
    goes_on(&place);
}

#[test]
fn the_end_of_the_node_is_told_to_its_clients() {
    let place = Place::new();
    let up = place.up();
    let script = place.script(&[json!({"text": "a slow answer", "delay_ms": 600_000})]);
    let running = place.start(&["run", "--model", &script, "go on"]);
    crate::place::wait_until("the model is asked", || {
        let log = place.run(&["chain", "log", "--json"]).stdout;
        log.lines().any(|line| line.contains(r#""kind":"intent""#) && line.contains(r#""action":"model""#))
    });
    up.signal(rustix::process::Signal::KILL);
    up.ended();
    running.ended().failed(&["the node ended before the turn did", "ephor chain log"]);
    place.run(&["run", "list the files"]).succeeded();
    // The next node asks the model again, and would wait for it.
    place.run(&["stop", "--all"]).succeeded();
    place.verify();
    let cut_off = place.facts("outcome").iter().filter(|fact| fact["end"] == "indeterminate").count();
    assert_eq!(cut_off, 1, "what was cut off has an outcome");
}
