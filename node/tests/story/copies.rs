//! A home is backed up while a node runs, and restored elsewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    auditor::{below, copy},
    gate::writing,
    place::{Place, Ran, Running},
};

fn told(ran: Ran) -> Value {
    serde_json::from_str(&ran.succeeded().stdout).unwrap()
}

/// A home that was used, and where its backup goes.
fn used() -> (Place, String) {
    let place = Place::new();
    place.play(&[], &writing()).unasked();
    place.node_is_gone();
    let folder = place.root().join("backup").display().to_string();
    (place, folder)
}

fn restore(place: &Place, home: &Path, folder: &str) -> Ran {
    place.run(&["--home", home.to_str().unwrap(), "restore", folder, "--json"])
}

/// Every file in a folder, with what it holds.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = below(folder).into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect();
    all.sort();
    all
}

#[test]
fn a_restored_home_keeps_its_operators_its_law_and_what_was_stopped() {
    let (place, folder) = used();
    let up = place.up();
    place.run(&["operator", "add", "vic", "--role", "viewer"]).succeeded();
    let law = place.run(&["policy", "show"]).succeeded().stdout + "\n// mine\n";
    let file = place.root().join("mine.cedar");
    fs::write(&file, &law).unwrap();
    place.run(&["policy", "apply", file.to_str().unwrap(), "--yes"]).succeeded();
    place.run(&["stop", "--all"]).succeeded();
    place.run(&["backup", &folder]).succeeded();
    up.signal(Signal::TERM);
    up.ended().succeeded();
    let elsewhere = Place::fresh();
    restore(&elsewhere, &elsewhere.home, &folder).succeeded();
    // Whoever exchanges the file in the home exchanges no law.
    fs::write(elsewhere.home.join("constitution.cedar"), "permit (principal, action, resource);").unwrap();
    elsewhere.run(&["run", "list the files"]).failed(&["stopped", "ephor resume"]);
    let operators = elsewhere.run(&["operator", "list"]).succeeded().stdout;
    assert!(operators.contains("vic") && operators.contains("viewer"), "{operators}");
    // The credentials of others are theirs to bring.
    fs::create_dir_all(elsewhere.home.join("keys/operators")).unwrap();
    fs::copy(place.home.join("keys/operators/vic"), elsewhere.home.join("keys/operators/vic")).unwrap();
    elsewhere.run(&["resume", "--all", "--as", "vic"]).failed(&["role `operator`"]);
    elsewhere.run(&["resume", "--all"]).succeeded();
    elsewhere.run(&["run", "list the files"]).succeeded();
    assert!(elsewhere.run(&["policy", "show"]).succeeded().stdout.contains("// mine"));
    elsewhere.verify();
}

#[test]
fn a_running_node_is_backed_up_and_restored_under_a_new_origin_that_names_it() {
    let (place, folder) = used();
    let up = place.up();
    let first = told(place.run(&["backup", &folder, "--json"]));
    assert_eq!((&first["folder"], &first["backup"]["before"]), (&json!(folder), &json!(0)));
    place.play(&[], &writing()).unasked();
    let second = told(place.run(&["backup", &folder, "--json"]));
    assert_eq!(second["backup"]["before"], first["backup"]["head"]["size"]);
    assert!(second["backup"]["head"]["size"].as_u64() > first["backup"]["head"]["size"].as_u64(), "{second}");
    let words = place.run(&["backup", &folder]).succeeded().stdout;
    let is_told = ["backed up and verified", "up to date, nothing was copied"].iter().any(|told| words.contains(told));
    assert!(is_told && words.contains("keep it as safe as the home"), "{words}");
    place.run(&["chain", "verify", &folder]).succeeded();
    // What signs is not in it.
    let seeds = fs::read(place.home.join("keys/log")).unwrap()[21..85].to_vec();
    assert!(contents(Path::new(&folder)).iter().all(|(_, bytes)| !bytes.windows(64).any(|window| window == seeds)));
    let head = told(place.run(&["backup", &folder, "--json"]))["backup"]["head"].clone();
    up.signal(Signal::TERM);
    up.ended().succeeded();

    let elsewhere = Place::fresh();
    let done = told(restore(&elsewhere, &elsewhere.home, &folder));
    let (old, new) = (first["backup"]["origin"].as_str().unwrap(), done["origin"].as_str().unwrap());
    assert_ne!(old, new);
    let named = &done["follows"];
    assert_eq!((&named["origin"], &named["size"], &named["root"]), (&json!(old), &head["size"], &head["root"]));
    elsewhere.run(&["run", "list the files"]).succeeded();
    elsewhere.verify();
    let log = elsewhere.log();
    assert_eq!(log[0]["fact"]["follows"], *named);
    let keys = elsewhere.run(&["chain", "key"]).succeeded().stdout;
    assert!(keys.starts_with(&format!("{new}+")), "{keys}");
    // The old record lies beside it, and verifies under its own keys and head.
    let aside = done["old"].as_str().unwrap();
    let (chain, public) = (Path::new(aside).join("chain"), place.home.join("keys/log.pub"));
    let verify = ["chain", "verify", chain.to_str().unwrap(), "--key", public.to_str().unwrap(), "--json"];
    let told = told(elsewhere.run(&verify));
    assert_eq!((&told["ok"], &told["report"]["head"]), (&json!(true), &head));
    // The first home goes on, and the copy can be restored again, under a third name.
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
    let third = Place::fresh();
    let again: Value = serde_json::from_str(&restore(&third, &third.home, &folder).succeeded().stdout).unwrap();
    assert!(again["origin"] != done["origin"] && again["origin"] != json!(old), "{again}");
}

#[test]
fn a_damaged_backup_is_refused_with_its_place_and_nothing_is_restored() {
    let (place, folder) = used();
    place.run(&["backup", &folder]).succeeded();
    let whole = Path::new(&folder);
    let files = below(whole);
    assert!(files.len() > 10, "{files:?}");
    let home = place.root().join("new");
    for path in files {
        let bytes = fs::read(&path).unwrap();
        if bytes.is_empty() {
            continue;
        }
        let mut changed = bytes.clone();
        changed[bytes.len() / 2] ^= 1;
        fs::write(&path, changed).unwrap();
        let ran = restore(&place, &home, &folder);
        let name = path.strip_prefix(whole).unwrap();
        let said = name.strip_prefix("chain").unwrap_or(name).display().to_string();
        // The manifest is named by what it makes of the folder, and the public keys by what they fit.
        let own = ["backup", "keys/log.pub"].contains(&name.to_str().unwrap());
        let named = own || ran.stderr.contains(&said);
        assert!(!ran.status.success() && named && !ran.stderr.contains("panicked"), "{}: {ran}", name.display());
        let left: Vec<_> = if home.exists() { below(&home) } else { Vec::new() };
        assert!(left.iter().all(|path| path.ends_with("lock")), "{}: {left:?}", name.display());
        fs::write(&path, bytes).unwrap();
    }
    restore(&place, &home, &folder).succeeded();
}

#[test]
fn a_home_with_something_in_it_and_a_folder_that_is_no_backup_are_refused() {
    let (place, folder) = used();
    place.run(&["backup", &folder]).succeeded();
    let before = contents(&place.home);
    restore(&place, &place.home, &folder).failed(&["not empty"]);
    assert_eq!(contents(&place.home), before);
    let (empty, home) = (place.root().join("empty"), place.root().join("new"));
    fs::create_dir(&empty).unwrap();
    restore(&place, &home, empty.to_str().unwrap()).failed(&["log.pub"]);
    place.file("letter.txt", "dear");
    let workspace = place.workspace.display().to_string();
    place.run(&["backup", &workspace]).failed(&["neither empty nor a backup of this log"]);
    place.run(&["backup", place.home.join("inside").to_str().unwrap()]).failed(&["not apart from the home"]);
    Place::fresh().run(&["backup", &folder]).failed(&["no chain yet"]);
    let (other, _) = used();
    other.run(&["backup", &folder]).failed(&["neither empty nor a backup of this log"]);
}

/// Runs it where no file may have more than so many blocks of 512 bytes. Whoever writes more is killed there and then.
fn killed_beyond(blocks: u64, place: &Place, args: &[&str]) -> Ran {
    let mut shell = place.shell("sh");
    shell.args(["-c", "ulimit -c 0; ulimit -f \"$1\"; shift; exec \"$@\"", "sh", &blocks.to_string()]);
    Running::start(shell.arg(env!("CARGO_BIN_EXE_ephor")).args(args)).ended()
}

/// So many blocks that something is cut off there, and in the end that nothing is.
fn blocks() -> impl Iterator<Item = u64> {
    (0..32).map(|power| 1 << power)
}

#[test]
fn an_interrupted_backup_is_none_and_is_finished_by_the_next() {
    let (place, _) = used();
    for number in 0..6 {
        place.pipe(&["run", &format!("list the files, {number}"), "-"], &"words ".repeat(100_000)).succeeded();
    }
    place.node_is_gone();
    let mut cut = 0;
    for blocks in blocks() {
        let folder = place.root().join(format!("copy-{blocks}"));
        let ended = killed_beyond(blocks, &place, &["backup", folder.to_str().unwrap()]);
        let home = place.root().join(format!("home-{blocks}"));
        assert_eq!(folder.join("backup").exists(), ended.status.success(), "{ended}");
        if !ended.status.success() {
            cut += usize::from(folder.join("unfinished").exists());
            restore(&place, &home, folder.to_str().unwrap()).failed(&[]);
            assert!(!home.exists() || below(&home).iter().all(|path| path.ends_with("lock")), "{ended}");
            place.run(&["backup", folder.to_str().unwrap()]).succeeded();
        }
        restore(&place, &home, folder.to_str().unwrap()).succeeded();
        place.run(&["--home", home.to_str().unwrap(), "chain", "verify"]).succeeded();
        fs::remove_dir_all(&folder).unwrap();
        fs::remove_dir_all(&home).unwrap();
        if ended.status.success() {
            break;
        }
    }
    assert!(cut >= 3, "only {cut} backups were interrupted");
    place.verify();
}

#[test]
fn an_interrupted_restore_leaves_a_home_that_says_to_go_on() {
    let (place, folder) = used();
    for number in 0..6 {
        place.pipe(&["run", &format!("list the files, {number}"), "-"], &"words ".repeat(100_000)).succeeded();
    }
    place.run(&["backup", &folder]).succeeded();
    let mut cut = 0;
    for blocks in blocks() {
        let home = place.root().join(format!("home-{blocks}"));
        let ended = killed_beyond(blocks, &place, &["--home", home.to_str().unwrap(), "restore", &folder]);
        if home.join("restoring").exists() {
            cut += 1;
            place.run(&["--home", home.to_str().unwrap(), "run", "hi"]).failed(&["ephor restore"]);
        }
        if !ended.status.success() {
            restore(&place, &home, &folder).succeeded();
        }
        assert!(home.join("keys/log").exists() && !home.join("restoring").exists(), "{ended}");
        place.run(&["--home", home.to_str().unwrap(), "chain", "verify"]).succeeded();
        fs::remove_dir_all(&home).unwrap();
        if ended.status.success() {
            break;
        }
    }
    assert!(cut >= 3, "only {cut} restores were interrupted");
}

#[test]
fn a_backup_of_a_copied_home_is_one_of_the_same_log() {
    let (place, folder) = used();
    place.run(&["backup", &folder]).succeeded();
    let twin = place.root().join("twin");
    copy(&place.home, &twin);
    let again = told(place.run(&["--home", twin.to_str().unwrap(), "backup", &folder, "--json"]));
    assert!(again["backup"]["before"].as_u64() > Some(0), "{again}");
}

#[test]
fn the_keys_of_a_url_are_named_and_the_chain_of_a_home_is_held_against_its_head() {
    let (place, _) = used();
    for url in ["http://127.0.0.1:9/log", "HTTP://127.0.0.1:9/log"] {
        place.run(&["chain", "verify", url]).failed(&["name the keys of the log with --key"]);
    }
    let chain = place.home.join("chain");
    let verify = || place.run(&["chain", "verify", chain.to_str().unwrap()]);
    assert!(!verify().succeeded().stdout.contains("not held against"));
    // Of a home, what is published is not all that there is.
    let journal = chain.join("journal");
    if journal.is_dir() {
        fs::remove_dir_all(&journal).unwrap()
    } else {
        fs::remove_file(&journal).unwrap()
    }
    let ran = verify();
    assert!(!ran.status.success() && ran.stdout.contains("NOT OK"), "{ran}");
}
