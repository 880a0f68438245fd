//! Tampering, loss and a full disk, as an operator meets them: what is wrong is named, nothing is overwritten, and the
//! way on works.
#![expect(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

mod record;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    thread,
};

use ephor_base::files::Files;
use ephor_chain::{PinnedHead, Report, disk::Disk, verify, verify::Against};
use ephor_record::{Finding, ScanError};
use ephor_tlog::VerifierKeys;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use record::{Ended, Place, wait};

/// What lies in a folder, by path.
type Contents = BTreeMap<PathBuf, Vec<u8>>;

/// A home that was used `runs` times and stopped cleanly.
fn used(runs: usize) -> Place {
    let place = Place::new();
    for _ in 0..runs {
        run(&place);
    }
    place
}

/// A run that must go well.
fn run(place: &Place) {
    let ended = try_run(place);
    assert!(ended.status.success(), "{}{}", ended.out, ended.err);
}

fn try_run(place: &Place) -> Ended {
    let ended = place.end(run_command(place, &script(place, 0)));
    place.wait_until_alone();
    ended
}

/// A script with a write, a pause of so many milliseconds, and a reply.
fn script(place: &Place, delay_ms: u64) -> PathBuf {
    let path = place.beside("script.jsonl");
    let write = json!({"tool_calls": [{"name": "fs.write", "arguments": {"path": "a.txt", "content": "written"}}]});
    let reply = json!({"text": "It is written.", "delay_ms": delay_ms});
    fs::write(&path, format!("{write}\n{reply}\n")).expect("a script");
    path
}

fn run_command(place: &Place, script: &Path) -> Command {
    let (model, workspace) = (format!("script:{}", script.display()), place.workspace.display().to_string());
    place.command(&["run", "-C", &workspace, "--model", &model, "--allow", "fs.write", "Write it"])
}

/// A copy of a home, in a place of its own.
fn copy(of: &Place) -> Place {
    let place = Place::new();
    copy_folder(&of.home, &place.home);
    place
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    fs::set_permissions(to, fs::Permissions::from_mode(0o700)).expect("its mode");
    for entry in fs::read_dir(from).expect("a folder").map(|entry| entry.expect("an entry")) {
        let (kind, to) = (entry.file_type().expect("a type"), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &to);
        } else if kind.is_file() {
            fs::copy(entry.path(), to).expect("a copy");
        }
    }
}

/// Every file below a folder.
fn contents(folder: &Path) -> Contents {
    let mut found = Contents::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.map(|entry| entry.expect("an entry")) {
        if entry.file_type().expect("a type").is_dir() {
            found.extend(contents(&entry.path()));
        } else if entry.file_type().expect("a type").is_file() {
            found.insert(entry.path(), fs::read(entry.path()).expect("a file"));
        }
    }
    found
}

/// What nobody may overwrite: chain, head, vault and keys.
fn record_of(place: &Place) -> Contents {
    let mut found: Contents =
        ["chain", "vault", "keys"].iter().flat_map(|name| contents(&place.home.join(name))).collect();
    found.extend(fs::read(place.home.join("head")).ok().map(|bytes| (place.home.join("head"), bytes)));
    found
}

fn segment(place: &Place) -> PathBuf {
    let journal = place.home.join("chain").join("journal");
    let segments: Vec<_> = contents(&journal).into_keys().collect();
    assert_eq!(segments.len(), 1);
    segments[0].clone()
}

/// Where the frames of a segment begin, and where the last one ends.
fn boundaries(segment: &[u8]) -> Vec<usize> {
    let begins = segment.windows(8).enumerate().filter(|(_, window)| *window == b"EphFrame").map(|(at, _)| at);
    begins.chain([segment.len()]).collect()
}

fn keys(place: &Place) -> VerifierKeys {
    let text = fs::read_to_string(place.home.join("keys").join("log.pub")).expect("the public keys");
    text.parse().expect("two keys")
}

fn verified(place: &Place, keys: &VerifierKeys) -> Result<Report, ScanError> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let head = PinnedHead::load(&place.home.join("head"), &*files).expect("a head");
    verify(&place.home.join("chain"), &files, Against { keys, head, vault: None, from: None }, |_| {})
}

fn finding(place: &Place, keys: &VerifierKeys, what: &str) -> Finding {
    match verified(place, keys) {
        Err(ScanError::Damaged(finding)) => finding,
        Err(error) => panic!("{what}: {error}"),
        Ok(_) => panic!("{what}: it verifies"),
    }
}

/// `chain verify` finds something and names file and place, in both forms.
fn must_name(place: &Place, file: &str, what: &str) -> String {
    let told = place.ephor(&["chain", "verify"]);
    assert_eq!(told.status.code(), Some(1), "{what}: {}{}", told.out, told.err);
    let named = format!("NOT OK: `{file}");
    assert!(told.out.starts_with(&named) && told.out.contains("at byte"), "{what}: {}{}", told.out, told.err);
    let json = place.ephor(&["chain", "verify", "--json"]);
    assert_eq!(json.status.code(), Some(1), "{what}");
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["ok"], false, "{what}");
    assert!(json["finding"]["file"].as_str().expect("a file").starts_with(file), "{what}: {json}");
    assert!(json["finding"]["offset"].is_u64() && json["finding"]["damage"].is_string(), "{what}: {json}");
    told.out
}

/// Neither `run` nor `up` starts on this home; both say this, and nothing is changed.
fn must_refuse(place: &Place, says: &[&str], what: &str) {
    let before = record_of(place);
    for ended in [try_run(place), place.ephor(&["up"])] {
        assert!(!ended.status.success(), "{what}: {}", ended.out);
        for says in says {
            assert!(ended.err.contains(says), "{what}: `{says}` is not in {}", ended.err);
        }
        assert!(before == record_of(place), "{what}: a refused start changed the home");
    }
}

/// Accepting the loss keeps the old chain whole and begins one that names it; then everything works.
fn must_go_on_when_accepted(place: &Place, what: &str) {
    let old = contents(&place.home.join("chain"));
    let accepted = place.ephor(&["chain", "accept", "--yes"]);
    assert!(accepted.status.success(), "{what}: {}{}", accepted.out, accepted.err);
    let moved = place.home.join("quarantine").join("1");
    for (path, bytes) in old {
        let path = moved.join(path.strip_prefix(&place.home).expect("it lay in the home"));
        assert!(fs::read(&path).ok() == Some(bytes), "{what}: `{}` was not kept", path.display());
    }
    run(place);
    let verified = place.ephor(&["chain", "verify"]);
    assert!(verified.status.success(), "{what}: {}{}", verified.out, verified.err);
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("a file");
    bytes[at] ^= 0x01;
    fs::write(path, bytes).expect("it is written");
}

fn cut(path: &Path, to: usize) {
    let file = fs::OpenOptions::new().write(true).open(path).expect("a file");
    file.set_len(to as u64).expect("it is cut");
}

#[test]
fn a_flipped_byte_and_a_cut_anywhere_under_chain_are_found_and_named() {
    let place = used(1);
    let keys = keys(&place);
    assert!(verified(&place, &keys).expect("it is whole").stopped);
    let (mut flips, mut cuts) = (0, 0);
    for (path, whole) in contents(&place.home.join("chain")) {
        let name = path.strip_prefix(place.home.join("chain")).expect("it lies there").to_owned();
        let stride = (whole.len() / 700).max(1);
        let edges = boundaries(&whole);
        let near = edges.iter().flat_map(|edge| [edge.saturating_sub(1), *edge, edge + 1, edge + 9]);
        let mut places: Vec<_> = (0..128).chain((0..whole.len()).step_by(stride)).chain(near).collect();
        places.retain(|at| *at < whole.len());
        places.sort_unstable();
        places.dedup();
        for at in places {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, &bytes).expect("it is written");
            let what = format!("byte {at} of {}", name.display());
            let found = finding(&place, &keys, &what);
            assert_eq!(found.file, name, "{what}: {found}");
            assert!(found.offset <= at as u64, "{what}: {found}");
            flips += 1;
            if at % (5 * stride) == 0 {
                fs::write(&path, &whole[..at]).expect("it is written");
                let what = format!("{} cut to {at} bytes", name.display());
                let found = finding(&place, &keys, &what);
                assert_eq!(found.file, name, "{what}: {found}");
                assert!(found.offset <= at as u64, "{what}: {found}");
                cuts += 1;
            }
        }
        fs::write(&path, &whole).expect("it is written");
    }
    verified(&place, &keys).expect("it is whole again");
    println!("{flips} flipped bytes and {cuts} cuts, each found");
    assert!(flips > 1000 && cuts > 200);
}

#[test]
fn a_damaged_home_is_refused_left_as_it_is_and_goes_on_when_the_loss_is_accepted() {
    let whole = used(2);
    let (journal, length) = (segment(&whole), fs::metadata(segment(&whole)).expect("it").len());
    let length = usize::try_from(length).expect("a length");
    let published = whole.home.join("chain").join("checkpoint");
    let edges = boundaries(&fs::read(&journal).expect("a segment"));
    let below = |place: &Place, path: &Path| place.home.join(path.strip_prefix(&whole.home).expect("it lies there"));
    let samples: Vec<(&Path, &str, usize, bool)> = vec![
        (&journal, "journal/", 20, false),
        (&journal, "journal/", edges[1] + 50, false),
        (&journal, "journal/", length - 1, false),
        (&journal, "journal/", edges[edges.len() - 2], true),
        (&journal, "journal/", 0, true),
        (&published, "checkpoint", 3, false),
        (&published, "checkpoint", 100, true),
    ];
    for (path, name, at, shorten) in samples {
        let place = copy(&whole);
        let numbers = numbers(&place);
        let what = format!("{name} at {at}, cut: {shorten}");
        if shorten {
            cut(&below(&place, path), at)
        } else {
            flip(&below(&place, path), at)
        }
        must_name(&place, name, &what);
        must_refuse(&place, &["quarantined", "`ephor chain accept`", name], &what);
        let kept = place.ephor(&["chain", "key"]).out;
        must_go_on_when_accepted(&place, &what);
        assert_ne!(kept, place.ephor(&["chain", "key"]).out, "{what}: the new chain has the old keys");
        let quarantined = place.home.join("quarantine").join("1").display().to_string();
        let again = place.ephor(&["chain", "verify", &quarantined]);
        assert_eq!(again.status.code(), Some(1), "{what}: {}{}", again.out, again.err);
        assert!(again.out.contains(name), "{what}: {}", again.out);
        let log = place.log();
        let follows = &log[0]["fact"]["follows"];
        assert!(kept.starts_with(follows["origin"].as_str().expect("a name")), "{what}: {follows}");
        assert!(follows["reason"].as_str().is_some_and(|reason| reason.contains(name)), "{what}: {follows}");
        let reused = log.iter().filter_map(|entry| entry["subject"]["pid"].as_u64()).any(|pid| pid <= numbers.0);
        assert!(!reused, "{what}: a process number is used again");
        let reused = log.iter().filter_map(|entry| entry["subject"]["call"].as_u64()).any(|call| call <= numbers.1);
        assert!(!reused, "{what}: a call number is used again");
    }
}

/// The highest numbers of a process and of a call.
fn numbers(place: &Place) -> (u64, u64) {
    let log = place.log();
    let highest = |name: &str| log.iter().filter_map(|entry| entry["subject"][name].as_u64()).max().expect("one");
    (highest("pid"), highest("call"))
}

#[test]
fn a_chain_that_was_cut_back_is_found_with_the_pinned_head_only() {
    let older = used(1);
    let place = copy(&older);
    run(&place);
    let kept = place.beside("kept-head");
    fs::copy(place.home.join("head"), &kept).expect("a copy");
    let published = place.beside("kept-checkpoint");
    fs::copy(place.home.join("chain").join("checkpoint"), &published).expect("a copy");
    fs::remove_dir_all(place.home.join("chain")).expect("it goes");
    copy_folder(&older.home.join("chain"), &place.home.join("chain"));
    let told = must_name(&place, "journal/", "cut back");
    assert!(told.contains("cut back"), "{told}");
    must_refuse(&place, &["cut back", "`ephor chain accept`"], "cut back");

    let (alone, public) = (place.beside("alone"), place.beside("public"));
    copy_folder(&place.home.join("chain"), &alone);
    fs::copy(place.home.join("keys").join("log.pub"), &public).expect("a copy");
    let (alone, public) = (alone.display().to_string(), public.display().to_string());
    let check = |more: &[&str]| place.ephor(&[&["chain", "verify", &alone][..], more].concat());
    let without = check(&["--key", &public]);
    assert!(without.status.success() && without.out.contains("not held against a pinned head"), "{}", without.err);
    for head in [&kept, &published] {
        let against = check(&["--key", &public, "--head", &head.display().to_string()]);
        assert!(against.status.code() == Some(1) && against.out.contains("cut back"), "{}{}", against.out, against.err);
    }
    let nothing = check(&[]);
    assert!(nothing.status.code() == Some(1) && nothing.err.contains("--key"), "{}{}", nothing.out, nothing.err);
    let stranger = used(1);
    let wrong = check(&["--key", &stranger.home.join("keys").join("log.pub").display().to_string()]);
    assert!(wrong.status.code() == Some(1) && wrong.out.contains("under other keys"), "{}{}", wrong.out, wrong.err);
    let gone = check(&["--key", &public, "--head", "/nowhere"]);
    assert!(gone.status.code() == Some(1) && gone.err.contains("there is no head"), "{}{}", gone.out, gone.err);
    must_go_on_when_accepted(&place, "cut back");
}

#[test]
fn a_torn_end_after_a_kill_is_reported_and_trimmed_and_nothing_acknowledged_is_lost() {
    let place = used(1);
    let mut client = run_command(&place, &script(&place, 60_000)).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let client = client.as_mut().expect("a client");
    // The second request to the model, which takes a minute: the write before it may have its outcome at any moment.
    let is_asking = |last: &Value| last["fact"]["kind"] == "intent" && last["fact"]["action"] != "tool";
    while !place.workspace.join("a.txt").exists() || !is_asking(place.log().last().expect("an entry")) {
        thread::sleep(std::time::Duration::from_millis(5));
    }
    for node in place.nodes() {
        kill_process(Pid::from_raw(node).expect("a number"), Signal::KILL).expect("it can be killed");
    }
    assert!(!wait(client, "a client without its node").success());
    place.wait_until_alone();
    let before = place.log();
    let end = usize::try_from(verified(&place, &keys(&place)).expect("it is whole").bytes).expect("a length");
    let journal = segment(&place);
    let mut bytes = fs::read(&journal).expect("a segment");
    let torn = &bytes[boundaries(&bytes)[1]..][..3000].to_vec();
    bytes.resize(bytes.len().max(end + torn.len()), 0);
    bytes[end..end + torn.len()].copy_from_slice(torn);
    fs::write(&journal, bytes).expect("it is written");
    let told = place.ephor(&["chain", "verify"]);
    assert!(
        told.status.success() && told.out.contains("torn") && told.out.contains("running or crashed"),
        "{}",
        told.out
    );
    run(&place);
    let after = place.log();
    assert!(after.starts_with(&before), "something that was acknowledged is gone");
    let boot = &after[before.len()]["fact"];
    assert!(boot["kind"] == "boot" && boot["clean"] == false && boot["trimmed_bytes"].as_u64() > Some(0), "{boot}");
    let open = before.iter().rev().find(|entry| entry["fact"]["kind"] == "intent").expect("an intent");
    assert!(
        after.iter().any(|entry| entry["fact"]["intent"] == open["seq"] && entry["fact"]["end"] == "indeterminate")
    );
    assert!(place.ephor(&["chain", "verify"]).status.success());
}

#[test]
fn whatever_is_missing_or_foreign_is_named_and_nothing_is_overwritten() {
    let whole = used(1);
    let stranger = used(1);
    let gone = |path: &'static str| move |place: &Place| fs::remove_file(place.home.join(path)).expect("it goes");
    let chain_gone = |place: &Place| fs::remove_dir_all(place.home.join("chain")).expect("it goes");
    let extra = |path: &'static str| move |place: &Place| fs::write(place.home.join(path), b"x").expect("a file");
    let foreign = |place: &Place| {
        fs::copy(stranger.home.join("keys/log"), place.home.join("keys/log")).expect("a copy");
        fs::copy(stranger.home.join("keys/log.pub"), place.home.join("keys/log.pub")).expect("a copy");
    };
    let all_gone = |place: &Place| {
        chain_gone(place);
        gone("head")(place);
        fs::remove_dir_all(place.home.join("vault")).expect("it goes");
    };
    let chain_and_head_gone = |place: &Place| {
        chain_gone(place);
        gone("head")(place);
    };
    /// What was done, what `chain verify` names, and what a start says.
    type Case<'a> = (&'a str, Box<dyn Fn(&Place) + 'a>, &'a str, &'a str);
    let cases: Vec<Case<'_>> = vec![
        ("a strange file", Box::new(extra("chain/notes")), "notes", "does not belong here"),
        ("a strange segment", Box::new(extra("chain/journal/notes")), "journal/notes", "does not belong here"),
        (
            "no segment",
            Box::new(|place| fs::remove_file(segment(place)).expect("it goes")),
            "journal",
            "is lost or was cut off",
        ),
        ("no checkpoint", Box::new(gone("chain/checkpoint")), "checkpoint", "published checkpoint is missing"),
        ("no head", Box::new(gone("head")), "head", "pinned head is missing"),
        ("no chain", Box::new(chain_gone), "journal", "cut back"),
        ("neither chain nor head", Box::new(chain_and_head_gone), "journal", "the journal is gone"),
        ("neither chain nor head nor vault", Box::new(all_gone), "journal", "the journal is gone"),
        ("another home's keys", Box::new(foreign), "tile/entries/", "under other keys"),
    ];
    for (what, change, named, says) in cases {
        let place = copy(&whole);
        change(&place);
        must_name(&place, named, what);
        must_refuse(&place, &["quarantined", says, "`ephor chain accept`"], what);
        must_go_on_when_accepted(&place, what);
    }
    for (key, says) in [("keys/log", "the signing keys"), ("keys/vault", "the vault key")] {
        let place = copy(&whole);
        let kept = fs::read(place.home.join(key)).expect("a key");
        gone(key)(&place);
        must_refuse(&place, &[says, "Put back a copy"], key);
        assert!(place.ephor(&["chain", "verify"]).status.success(), "{key}: the chain itself is whole");
        fs::write(place.home.join(key), kept).expect("it is put back");
        fs::set_permissions(place.home.join(key), fs::Permissions::from_mode(0o600)).expect("it is ours alone");
        run(&place);
    }
    let place = copy(&whole);
    gone("keys/log")(&place);
    must_go_on_when_accepted(&place, "no signing keys");
    let place = copy(&whole);
    gone("keys/log")(&place);
    gone("keys/log.pub")(&place);
    must_refuse(&place, &["the signing keys", "Put back a copy", "start anew"], "no keys of the log");
    let accepted = place.ephor(&["chain", "accept", "--yes"]);
    assert!(!accepted.status.success() && accepted.err.contains("Put back a copy"), "{}", accepted.err);
    let place = copy(&whole);
    gone("keys/vault")(&place);
    must_go_on_when_accepted(&place, "no vault key");
    let place = copy(&whole);
    fs::remove_dir_all(place.home.join("vault/content")).expect("they go");
    let told = must_name(&place, "vault/content/", "no contents");
    assert!(told.contains("sealed content"), "{told}");
    let without = place.ephor(&["chain", "verify", "--without-contents"]);
    assert!(without.status.success() && without.out.contains("were not held against it"), "{}", without.out);
    let place = copy(&whole);
    gone("keys/log.pub")(&place);
    let told = place.ephor(&["chain", "verify"]);
    assert!(told.status.code() == Some(1) && told.err.contains("--key"), "{}{}", told.out, told.err);
    run(&place);
    assert!(place.ephor(&["chain", "verify"]).status.success());
}

#[test]
fn a_first_start_that_was_cut_short_is_taken_up_again() {
    let whole = used(1);
    let keys = |place: &Place| fs::read(place.home.join("keys").join("log")).expect("the signing keys");
    // The keys are made, and nothing else is.
    let place = copy(&whole);
    for name in ["chain", "vault", "quarantine"] {
        let _absent = fs::remove_dir_all(place.home.join(name));
    }
    fs::remove_file(place.home.join("head")).expect("it goes");
    fs::rename(place.home.join("keys/log"), place.home.join("keys/log.unused")).expect("it moves");
    run(&place);
    assert!(keys(&place) == keys(&whole) && !place.home.join("keys/log.unused").exists());
    // The chain is begun, and the keys are not yet in their place.
    let place = copy(&whole);
    fs::rename(place.home.join("keys/log"), place.home.join("keys/log.unused")).expect("it moves");
    run(&place);
    assert!(keys(&place) == keys(&whole) && place.ephor(&["chain", "verify"]).status.success());
}

#[test]
fn a_chain_is_verified_while_a_node_writes_it() {
    let place = used(1);
    let path = place.beside("busy.jsonl");
    let calls: Vec<_> = (0..4).map(|_| json!({"name": "fs.list", "arguments": {"path": "."}})).collect();
    let line = json!({"text": "Again.", "tool_calls": calls, "delay_ms": 50}).to_string();
    let last = json!({"text": "Enough."}).to_string();
    fs::write(&path, [&vec![line; 15][..], &[last]].concat().join("\n")).expect("a script");
    let mut client = run_command(&place, &path).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("a client");
    let mut sizes = Vec::new();
    while client.try_wait().expect("a child").is_none() {
        let told = place.ephor(&["chain", "verify", "--json"]);
        assert!(told.status.success(), "{}{}", told.out, told.err);
        let told: Value = serde_json::from_str(&told.out).expect("JSON");
        sizes.push(told["report"]["head"]["size"].as_u64().expect("a size"));
    }
    place.wait_until_alone();
    assert!(sizes.is_sorted(), "{sizes:?}");
    sizes.dedup();
    println!("the chain was verified at {} sizes while it grew", sizes.len());
    assert!(sizes.len() > 2, "the chain did not grow while it was verified: {sizes:?}");
}

/// Runs with much piped input until one fails for want of room; then the room is given back.
fn fill(place: &Place, squeezed: impl Fn(Command) -> Command, what: &str) {
    let piped = place.beside("piped");
    fs::write(&piped, "All work and no play makes a long log.\n".repeat(12_000)).expect("input");
    let failed = (0..60).find_map(|_| {
        let mut command = squeezed(run_command(place, &script(place, 0)));
        command.arg("-").stdin(fs::File::open(&piped).expect("input"));
        let ended = place.end(command);
        place.wait_until_alone();
        let verified = place.ephor(&["chain", "verify"]);
        assert!(verified.status.success(), "{what}: {}{}", verified.out, verified.err);
        (!ended.status.success()).then_some(ended)
    });
    let failed = failed.unwrap_or_else(|| panic!("{what}: the disk never became full"));
    assert!(failed.err.contains("disk is full"), "{what}: {}{}", failed.out, failed.err);
    // Another start fails as clearly, or works on what is left; either way the record is whole.
    let again = place.end(squeezed(run_command(place, &script(place, 0))));
    place.wait_until_alone();
    assert!(again.status.success() || again.err.contains("disk is full"), "{what}: {}{}", again.out, again.err);
    assert!(place.ephor(&["chain", "verify"]).status.success(), "{what}");
}

#[test]
fn a_node_whose_journal_may_not_grow_stops_cleanly_and_goes_on_when_it_may() {
    let place = used(1);
    let squeezed = |command: Command| {
        let mut shell = Command::new("sh");
        // In units of 512 bytes: more than the journal reserves at once, less than the contents of one bundle. What cannot be
        // published stays in the journal, until that may not grow either. The signal would end the node before it can say anything.
        shell.args(["-c", "trap '' XFSZ; ulimit -f 2400; exec \"$0\" \"$@\""]).arg(command.get_program());
        shell.args(command.get_args()).current_dir(place.beside("."));
        shell
    };
    fill(&place, squeezed, "a limit on files");
    run(&place);
    assert!(place.ephor(&["chain", "verify"]).status.success());
}

#[test]
fn a_node_whose_disk_becomes_full_stops_cleanly_and_goes_on_when_there_is_room() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(&place.home, "9m") else {
        let mut err = std::io::stderr();
        writeln!(err, "!! not checked: a full disk, for only root may mount a small one").expect("it is said");
        return;
    };
    run(&place);
    fill(&place, |command| command, "a full disk");
    disk.resize("64m");
    run(&place);
    assert!(place.ephor(&["chain", "verify"]).status.success());
}

/// A file system of a few megabytes.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path, size: &str) -> Option<Self> {
        fs::create_dir(at).expect("a folder");
        let options = format!("size={size},mode=0700");
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(at).output();
        mount.is_ok_and(|mounted| mounted.status.success()).then(|| Self(at.to_owned()))
    }

    fn resize(&self, size: &str) {
        let resized = Command::new("mount").args(["-o", &format!("remount,size={size}")]).arg(&self.0).output();
        assert!(resized.expect("mount runs").status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _unmounted = Command::new("umount").arg(&self.0).output();
    }
}
