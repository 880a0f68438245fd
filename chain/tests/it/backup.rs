//! A home is copied, also while it is written, and restored under a new origin.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use ephor_base::{Random, SessionId};
use ephor_chain::{
    AcceptError, Accepted, Against, BackedUp, BackupError, Config, KeyError, KeyFile, Log, OpenError, PinnedHead,
    Private, Protection, RestoreError, SigningKeys, Vault, accept, backup, read, restore, restore::Taken, verify,
};
use ephor_record::{Fact, Record, ScanError, Subject};
use ephor_tlog::VerifierKeys;

use crate::common::{
    OPERATOR, SESSION, Seeded, World, block_on,
    memory::{After, Fault, Memory},
    message, plain, tag,
};

const FOLDER: &str = "/backup";
const NEW: &str = "/restored";
const SIGNING: &str = "/restored/keys/log";
const PUBLIC: &str = "keys/log.pub";

fn world_on(memory: &Memory) -> World {
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 12_000;
    world
}

fn add(world: &World, from: u64, to: u64) {
    let (log, _) = world.open().unwrap();
    for number in from..to {
        block_on(log.append(message(number, "text"))).unwrap();
    }
    block_on(log.publish()).unwrap();
    block_on(log.append(plain(to))).unwrap();
    // As after a crash: the last record is in the journal alone.
    drop(log);
}

/// A home with published entries, others in the journal, and keys.
fn used() -> (Memory, World) {
    let memory = Memory::default();
    let world = world_on(&memory);
    world.vault_key().save(Path::new("/home/keys/vault"), &memory).unwrap();
    memory.put_deep(Path::new("/home/ephor.toml"), b"model = \"builtin/scout\"".to_vec());
    add(&world, 1, 5);
    (memory, world)
}

fn back_up(world: &World) -> Result<BackedUp, BackupError> {
    let extras = ["keys/vault", "ephor.toml", "keys/none"].map(PathBuf::from);
    backup(&world.config, &extras, Path::new(PUBLIC), Path::new(FOLDER), &world.verifier(), &world.files, |_| ())
}

fn restore_with(world: &World, seed: u64) -> Result<Accepted, RestoreError> {
    restore_into(world, seed, Path::new(SIGNING).into(), &world.verifier())
}

fn restore_into(world: &World, seed: u64, signing: KeyFile, keys: &VerifierKeys) -> Result<Accepted, RestoreError> {
    let (config, random) = (Config::in_home(Path::new(NEW)), Arc::new(Seeded::new(seed)));
    let (copy, clock) = (Path::new(FOLDER), Arc::clone(&world.clock));
    let taken = Taken { signing, vault: Path::new("keys/vault"), also: &[] };
    restore(copy, &config, taken, keys, &world.files, clock, random, "0.1.0", |_| ())
}

/// Opens the restored home with the keys in it, as the node does.
fn open_restored(world: &World) -> Result<Log, OpenError> {
    let keys = SigningKeys::load(Path::new(SIGNING), &*world.files).unwrap_or_else(|_| world.keys());
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let config = Config { publish_every: Duration::MAX, ..Config::in_home(Path::new(NEW)) };
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    Log::open(config, keys, vault, files, clock, random, "0.1.0").map(|(log, _)| log)
}

fn tags(folder: &str, world: &World) -> Vec<String> {
    read(&Path::new(folder).join("chain"), &world.files).filter_map(|stored| tag(&stored.unwrap().entry.fact)).collect()
}

/// Whether the folder holds a finished backup that restores; it must then have these records.
fn restores(left: &Memory, wanted: &[&[String]], what: &str) -> bool {
    let world = world_on(&left.copy());
    match restore_with(&world, 3) {
        Ok(accepted) => {
            let found = tags(accepted.moved_to.to_str().unwrap(), &world);
            assert!(wanted.iter().any(|wanted| *wanted == found), "{what}: restored {found:?}");
            drop(open_restored(&world).unwrap_or_else(|error| panic!("{what}: {error}")));
            true
        }
        Err(RestoreError::NoBackup(_)) => false,
        Err(error) => panic!("{what}: {error}"),
    }
}

fn has_manifest(left: &Memory) -> bool {
    left.paths().contains(&Path::new(FOLDER).join("backup"))
}

/// Every fault at every operation of a backup of this home.
fn fail_everywhere(memory: &Memory, wanted: &[&[String]], least: u64) {
    for operation in 1.. {
        let mut over = false;
        for fault in [Fault::Crash, Fault::Eio, Fault::Enospc, Fault::Short, Fault::Torn] {
            let copy = memory.copy();
            copy.fail_at(operation, fault);
            let done = back_up(&world_on(&copy)).is_ok();
            over = done && copy.operations() < operation;
            let modes = match fault {
                Fault::Crash => vec![After::PowerCut, After::Mixed(operation)],
                _ => vec![After::Kill],
            };
            for after in modes {
                let what = format!("{fault:?} at operation {operation}, {after:?}");
                let left = copy.after(after);
                let finished = if fault == Fault::Crash { restores(&left, wanted, &what) } else { has_manifest(&left) };
                assert!(finished || !done, "{what}: it said that it was done");
                back_up(&world_on(&left)).unwrap_or_else(|error| panic!("{what}: again: {error}"));
                // It was verified, so what is left to see is that nothing is missing.
                assert!(has_manifest(&left), "{what}: again");
                assert_eq!(tags(FOLDER, &world_on(&left)), wanted[wanted.len() - 1], "{what}: again");
            }
        }
        if over {
            assert!(operation > least, "it has {operation} operations");
            return;
        }
    }
}

#[test]
fn a_backup_is_laid_out_as_a_home_and_holds_no_key_that_signs() {
    let (memory, world) = used();
    world.keys().save(Path::new("/home/keys/log"), &*world.files).unwrap();
    let before = memory.everything();
    let done = back_up(&world).unwrap();
    let of_home: Vec<_> = memory.everything().into_iter().filter(|(path, _)| path.starts_with("/home")).collect();
    assert_eq!(of_home, before, "the home was changed");
    assert_eq!((done.before, tags(FOLDER, &world)), (0, tags("/home", &world)));
    assert!(done.published > 0 && done.published < done.head.size, "{done:?}");
    let copy = World { config: Config::in_home(Path::new(FOLDER)), ..world.clone() };
    assert_eq!(copy.verify(copy.pinned()).unwrap().head, done.head);
    let secret = memory.get(Path::new("/home/keys/log"));
    assert!(memory.everything().iter().filter(|(path, _)| path.starts_with(FOLDER)).all(|(_, bytes)| *bytes != secret));
    assert_eq!(memory.get(Path::new("/backup/keys/vault")), memory.get(Path::new("/home/keys/vault")));
}

#[test]
fn a_fault_at_every_operation_of_a_backup_leaves_a_finished_one_or_none() {
    let (memory, world) = used();
    fail_everywhere(&memory, &[&tags("/home", &world)], 60);
}

#[test]
fn a_fault_at_every_operation_of_a_second_backup_leaves_a_finished_one_or_none() {
    let (memory, world) = used();
    let first = tags("/home", &world);
    back_up(&world).unwrap();
    add(&world, 11, 14);
    fail_everywhere(&memory, &[&first, &tags("/home", &world)], 60);
}

#[test]
fn what_is_full_in_an_older_backup_is_not_copied_again() {
    let (memory, world) = used();
    let (log, _) = world.open().unwrap();
    for number in 0..600 {
        block_on(log.note(message(100 + number, "text"))).unwrap();
    }
    block_on(log.publish()).unwrap();
    block_on(log.close()).unwrap();
    let before = memory.operations();
    let first = back_up(&world).unwrap();
    let long = memory.operations() - before;
    add(&world, 11, 14);
    let (before, tile) = (memory.operations(), Path::new("/backup/chain/tile/entries/000"));
    // If it were copied again, it would be repaired.
    let whole = memory.get(tile);
    memory.put(tile, vec![0; 3]);
    assert!(matches!(back_up(&world), Err(BackupError::Wrong { .. })));
    assert!(memory.operations() - before < long * 2);
    // Once it is known not to be whole, all of it is.
    let second = back_up(&world).unwrap();
    assert_eq!(memory.get(tile), whole);
    add(&world, 21, 22);
    let third = back_up(&world).unwrap();
    assert_eq!((first.before, second.before, third.before), (0, 0, second.head.size));
    assert_eq!(tags(FOLDER, &world), tags("/home", &world));
}

#[test]
fn a_backup_of_which_nothing_is_new_copies_nothing() {
    let (memory, world) = used();
    assert!(back_up(&world).unwrap().verified);
    let before = memory.everything();
    let again = back_up(&world).unwrap();
    assert_eq!((again.verified, again.before), (false, again.head.size));
    assert!(memory.everything() == before, "something was written");
    // What no entry speaks of is seen as well.
    memory.put(Path::new("/home/ephor.toml"), b"model = \"other\"".to_vec());
    assert!(back_up(&world).unwrap().verified);
    assert_eq!(memory.get(Path::new("/backup/ephor.toml")), b"model = \"other\"");
    let name = |path: &PathBuf| path.starts_with("/home/vault/keys") && path.file_name().is_some();
    let key = memory.paths().into_iter().find(name).unwrap();
    let copied = Path::new("/backup").join(key.strip_prefix("/home").unwrap());
    assert!(memory.paths().contains(&copied));
    memory.take_away(&key);
    assert!(back_up(&world).unwrap().verified);
    assert!(!memory.paths().contains(&copied), "the key of an erased session stays in the copy");
}

#[test]
fn a_key_that_was_destroyed_is_destroyed_in_the_next_backup() {
    let (memory, world) = used();
    back_up(&world).unwrap();
    let key = memory
        .paths()
        .into_iter()
        .find(|path| path.starts_with("/home/vault") && path.file_name().unwrap().to_str().unwrap() == "09".repeat(16));
    let key = key.unwrap();
    let copied = Path::new("/backup").join(key.strip_prefix("/home").unwrap());
    assert_eq!(memory.get(&copied), memory.get(&key));
    memory.take_away(&key);
    back_up(&world).unwrap();
    assert!(!memory.paths().contains(&copied));
    assert!(restores(&memory, &[&tags("/home", &world)], "without the key"));
}

#[test]
fn a_backup_under_full_load_verifies_and_has_everything_acknowledged_before_it_began() {
    for round in 0..8u64 {
        let memory = Memory::default();
        let mut world = world_on(&memory);
        world.config.publish_every = Duration::from_micros(50);
        world.vault_key().save(Path::new("/home/keys/vault"), &memory).unwrap();
        let (log, _) = world.open().unwrap();
        let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let acknowledged = Arc::new(std::sync::Mutex::new(Vec::new()));
        let threads: Vec<_> = (0..3u64)
            .map(|thread| {
                let (log, stop, book) = (log.clone(), Arc::clone(&stop), Arc::clone(&acknowledged));
                std::thread::spawn(move || {
                    for number in 0.. {
                        if stop.load(std::sync::atomic::Ordering::Relaxed) {
                            return;
                        }
                        let number = thread * 1_000_000 + number;
                        block_on(log.append(message(number, "text"))).unwrap();
                        book.lock().unwrap().push(format!("m{number}"));
                    }
                })
            })
            .collect();
        for _ in 0..3 {
            while acknowledged.lock().unwrap().len() < 60 {
                std::thread::yield_now();
            }
            let before = acknowledged.lock().unwrap().clone();
            let done = back_up(&world).unwrap_or_else(|error| panic!("round {round}: {error}"));
            let found: std::collections::BTreeSet<_> = tags(FOLDER, &world).into_iter().collect();
            assert!(before.iter().all(|tag| found.contains(tag)), "round {round}: {done:?} has lost something");
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        block_on(log.close()).unwrap();
        assert_eq!(
            restore_with(&world, 3).unwrap().follows.size,
            read(Path::new("/backup/chain"), &world.files).count() as u64
        );
    }
}

#[test]
fn a_folder_that_is_something_else_is_left_alone() {
    let (memory, world) = used();
    let inside =
        backup(&world.config, &[], Path::new(PUBLIC), Path::new("/home/copy"), &world.verifier(), &world.files, |_| ());
    assert!(matches!(inside, Err(BackupError::Inside(_))));
    let around = backup(&world.config, &[], Path::new(PUBLIC), Path::new("/"), &world.verifier(), &world.files, |_| ());
    assert!(matches!(around, Err(BackupError::Inside(_))));
    memory.put_deep(Path::new("/backup/letter"), b"dear".to_vec());
    let before = memory.everything();
    assert!(matches!(back_up(&world), Err(BackupError::Foreign(_))));
    assert_eq!(memory.everything(), before);
    memory.take_away(Path::new("/backup/letter"));
    back_up(&world).unwrap();
    // Another log.
    let other = World::new(memory.copy().files(), Path::new("/elsewhere")).with_seed(77);
    drop(other.open().unwrap());
    assert!(matches!(back_up(&other), Err(BackupError::Foreign(_))));
}

#[test]
fn a_home_that_was_set_back_does_not_replace_a_later_backup() {
    let (memory, world) = used();
    let early = memory.copy();
    add(&world, 11, 14);
    back_up(&world).unwrap();
    let later: Vec<_> = memory.everything().into_iter().filter(|(path, _)| path.starts_with(FOLDER)).collect();
    for (path, bytes) in &later {
        early.put_deep(path, bytes.clone());
    }
    let set_back = world_on(&early);
    assert!(matches!(back_up(&set_back), Err(BackupError::Diverged { .. })));
    // Not even if it has gone on elsewhere.
    add(&set_back, 31, 60);
    assert!(matches!(back_up(&set_back), Err(BackupError::Diverged { .. })));
    assert!(restores(&early, &[&tags("/home", &world)], "the later one"));
}

#[test]
fn a_copy_of_which_any_file_was_changed_or_taken_is_refused_by_name() {
    let (memory, world) = used();
    back_up(&world).unwrap();
    let files: Vec<_> = memory.everything().into_iter().filter(|(path, _)| path.starts_with(FOLDER)).collect();
    assert!(files.len() > 10);
    for (path, bytes) in files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        for change in [true, false] {
            let copy = memory.copy();
            if change {
                let mut bytes = bytes.clone();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                copy.put(path, bytes);
            } else {
                copy.take_away(path);
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            // A partial tile that is gone is named by the full one.
            let name = if change { name } else { path.strip_prefix(FOLDER).unwrap().to_str().unwrap() };
            match restore_with(&world_on(&copy), 3) {
                Err(RestoreError::NoBackup(_)) => assert!(path.ends_with("backup"), "{}", path.display()),
                Err(error @ (RestoreError::Changed(_) | RestoreError::Scan(_))) => {
                    let said = error.to_string();
                    let short = name.strip_prefix("chain/").unwrap_or(name);
                    let gap = matches!(error, RestoreError::Scan(ScanError::Io { .. })) || path.ends_with("journal");
                    assert!(said.contains(short) || gap || short.starts_with("journal"), "{}: {said}", path.display());
                }
                Err(other) => panic!("{}: {other}", path.display()),
                Ok(_) => panic!("{} was changed or taken, and the copy restored", path.display()),
            }
            assert!(!copy.paths().iter().any(|path| path.starts_with(NEW)), "something was restored");
        }
    }
}

#[test]
fn a_restored_home_begins_a_new_origin_that_names_the_old_head_and_two_never_the_same() {
    let (memory, world) = used();
    let done = back_up(&world).unwrap();
    let mut origins = vec![world.keys().origin().to_owned()];
    for seed in [3, 4] {
        let old = memory.copy();
        let copy = world_on(&old);
        let accepted = restore_with(&copy, seed).unwrap();
        assert_eq!((accepted.follows.size, accepted.follows.root), (done.head.size, done.head.root));
        assert_eq!(accepted.follows.origin, done.origin);
        assert!(accepted.follows.reason.contains("restored from a copy"), "{}", accepted.follows.reason);
        let log = open_restored(&copy).unwrap();
        let first = log.entries().next().unwrap().unwrap().entry.fact;
        assert!(matches!(first, Fact::Origin { follows: Some(follows), .. } if follows == accepted.follows));
        block_on(log.append(message(999, "again"))).unwrap();
        block_on(log.close()).unwrap();
        // The old record is there, and its contents open.
        assert_eq!(tags("/restored/quarantine/1", &copy), tags("/home", &world));
        for (path, bytes) in old.everything() {
            let contents =
                path.strip_prefix("/restored/quarantine/1/content").map(|rest| Path::new("content").join(rest));
            let keys = path.strip_prefix("/restored/vault").map(Path::to_owned);
            let keys = keys.ok().filter(|rest| !rest.starts_with("content"));
            contents
                .ok()
                .or(keys)
                .into_iter()
                .for_each(|rest| old.put_deep(&Path::new("/old").join(rest), bytes.clone()));
        }
        let vault = Arc::new(Vault::new(Path::new("/old"), copy.vault_key(), Arc::clone(&copy.files)));
        let old = read(Path::new("/restored/quarantine/1/chain"), &copy.files).unsealing(vault);
        assert!(old.map(Result::unwrap).any(|stored| matches!(stored.content, Private::Open(_))));
        let keys = SigningKeys::load(Path::new(SIGNING), &*copy.files).unwrap();
        origins.push(keys.origin().to_owned());
        assert!(SigningKeys::load(Path::new("/restored/quarantine/1/signing"), &*copy.files).is_err());
    }
    origins.sort();
    origins.dedup();
    assert_eq!(origins.len(), 3, "{origins:?}");
}

#[test]
fn a_home_with_anything_in_it_is_not_restored_into() {
    let (memory, world) = used();
    back_up(&world).unwrap();
    memory.put_deep(Path::new("/restored/ephor.toml"), Vec::new());
    let before = memory.everything();
    assert!(matches!(restore_with(&world, 3), Err(RestoreError::NotEmpty(_))));
    assert_eq!(memory.everything(), before);
    memory.take_away(Path::new("/restored/ephor.toml"));
    memory.put_deep(Path::new("/restored/lock"), Vec::new());
    restore_with(&world, 3).unwrap();
    assert!(matches!(restore_with(&world, 3), Err(RestoreError::NotEmpty(_))));
}

#[test]
fn a_fault_at_every_operation_of_restoring_leaves_a_home_that_says_to_restore_again_or_a_finished_one() {
    let (memory, world) = used();
    let done = back_up(&world).unwrap();
    let wanted = tags("/home", &world);
    for operation in 1.. {
        let mut over = false;
        for fault in [Fault::Crash, Fault::Eio, Fault::Enospc, Fault::Torn] {
            let copy = memory.copy();
            copy.fail_at(operation, fault);
            let ended = restore_with(&world_on(&copy), 3).is_ok();
            over = ended && copy.operations() < operation;
            let modes = match fault {
                Fault::Crash => vec![After::PowerCut, After::Mixed(operation)],
                _ => vec![After::Kill],
            };
            for after in modes {
                let what = format!("{fault:?} at operation {operation}, {after:?}");
                let left = copy.after(after);
                let finished = check_begun(&left, ended, &what);
                // What an error leaves is what a kill leaves; that it goes on from there need not be seen each time.
                if fault == Fault::Crash || operation % 16 == 0 {
                    check_finished(&left, finished, done.head.size, &wanted, &what);
                }
            }
        }
        if over {
            assert!(operation > 100, "restoring has {operation} operations");
            return;
        }
    }
}

/// Half of it does not open; says whether it is finished.
fn check_begun(left: &Memory, ended: bool, what: &str) -> bool {
    let begun = left.paths().iter().any(|path| path.starts_with(NEW) && !path.ends_with("restoring.tmp"));
    let finished = begun
        && left.paths().contains(&PathBuf::from(SIGNING))
        && !left.paths().contains(&Path::new(NEW).join("restoring"));
    assert!(finished || !ended, "{what}: it said that it was done");
    let world = world_on(left);
    if begun && !finished {
        match open_restored(&world_on(&left.copy())) {
            Err(error @ OpenError::Restoring { .. }) => assert!(error.to_string().contains("ephor restore")),
            Err(other) => panic!("{what}: {other}"),
            Ok(_) => panic!("{what}: half of it opened"),
        }
        assert!(matches!(accept_on(&world), Err(AcceptError::Open(OpenError::Restoring { .. }))), "{what}");
    }
    finished
}

/// It goes on to the end.
fn check_finished(left: &Memory, finished: bool, size: u64, wanted: &[String], what: &str) {
    let world = world_on(left);
    if !finished {
        restore_with(&world, 5).unwrap_or_else(|error| panic!("{what}: again: {error}"));
    }
    let log = open_restored(&world).unwrap_or_else(|error| panic!("{what}: {error}"));
    let first = log.entries().next().unwrap().unwrap().entry.fact;
    assert!(matches!(first, Fact::Origin { follows: Some(follows), .. } if follows.size == size), "{what}");
    drop(log);
    let places = (1..9).map(|number| format!("{NEW}/quarantine/{number}"));
    let whole = places.filter(|place| left.paths().iter().any(|path| path.starts_with(Path::new(place).join("chain"))));
    let found: Vec<_> = whole.map(|place| tags(&place, &world)).collect();
    assert_eq!(found, [wanted.to_vec()], "{what}");
}

fn accept_on(world: &World) -> Result<Accepted, AcceptError> {
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (clock, vault, keys) = (Arc::clone(&world.clock), world.vault_key(), world.verifier());
    let config = Config::in_home(Path::new(NEW));
    accept(&config, Path::new(SIGNING), Some(&keys), vault, &world.files, clock, random, "0.1.0")
}

#[test]
fn a_home_whose_keys_have_changed_is_backed_up_and_restored_under_the_new_ones() {
    let (_, world) = used();
    let (log, _) = world.open().unwrap();
    let next = SigningKeys::generate_next(&world.verifier(), &*world.random);
    let keys = next.verifier().clone();
    block_on(log.rotate(next, OPERATOR)).unwrap();
    block_on(log.append(message(21, "under the new keys"))).unwrap();
    block_on(log.publish()).unwrap();
    block_on(log.append(plain(22))).unwrap();
    block_on(log.close()).unwrap();
    let extras = [PathBuf::from("keys/vault")];
    let done =
        backup(&world.config, &extras, Path::new(PUBLIC), Path::new(FOLDER), &keys, &world.files, |_| ()).unwrap();
    let accepted = restore_into(&world, 3, Path::new(SIGNING).into(), &keys).unwrap();
    assert_eq!((accepted.follows.size, accepted.follows.root), (done.head.size, done.head.root));
    assert_eq!(accepted.follows.origin, keys.origin());
    // The keys of either generation still verify what was restored.
    for keys in [&keys, &world.verifier()] {
        let aside = Path::new("/restored/quarantine/1");
        let head = PinnedHead::load(&aside.join("head"), &*world.files).unwrap();
        let against = Against { keys, head, vault: None, from: None };
        assert_eq!(verify(&aside.join("chain"), &world.files, against, |_| ()).unwrap().head, done.head);
    }
    assert_ne!(open_restored(&world).unwrap().keys().unwrap().origin(), keys.origin());
}

#[test]
fn restoring_destroys_the_key_of_an_erased_session_that_a_copy_still_has_and_no_other() {
    let (memory, world) = used();
    let bert = SessionId([0xbb; 16]);
    let (log, _) = world.open().unwrap();
    let subject = Subject { session: Some(bert), ..Subject::default() };
    block_on(log.append(Record { subject, ..message(31, "what Bert said") })).unwrap();
    let of = |home: &str, session: SessionId| Path::new(home).join("vault/keys").join(session.to_string());
    let (erased, kept) = (memory.get(&of("/home", SESSION)), memory.get(&of("/home", bert)));
    block_on(log.erase(SESSION, Vec::new(), "asked for".into(), OPERATOR)).unwrap();
    block_on(log.close()).unwrap();
    // As a crash leaves it between the record and the end of the key.
    memory.put_deep(&of("/home", SESSION), erased);
    back_up(&world).unwrap();
    assert!(memory.paths().contains(&of(FOLDER, SESSION)), "nothing is destroyed that the home still has");
    restore_with(&world, 3).unwrap();
    drop(open_restored(&world).unwrap());
    assert!(!memory.paths().contains(&of(NEW, SESSION)));
    assert_eq!(memory.get(&of(NEW, bert)), kept);
}

#[test]
fn a_restored_home_knows_what_was_erased_and_destroys_a_key_of_it_that_is_put_back() {
    let (memory, world) = used();
    let (log, _) = world.open().unwrap();
    let of = |home: &str, folder: &str| Path::new(home).join("vault").join(folder).join(SESSION.to_string());
    let erased = memory.get(&of("/home", "keys"));
    block_on(log.erase(SESSION, Vec::new(), "asked for".into(), OPERATOR)).unwrap();
    block_on(log.close()).unwrap();
    back_up(&world).unwrap();
    assert!(memory.paths().contains(&of(FOLDER, "erased")), "the copy says so");
    restore_with(&world, 3).unwrap();
    assert!(memory.paths().contains(&of(NEW, "erased")), "and so does what is made of it");
    // As somebody does who has an older copy.
    memory.put_deep(&of(NEW, "keys"), erased);
    drop(open_restored(&world).unwrap());
    assert!(!memory.paths().contains(&of(NEW, "keys")));
}

#[test]
fn under_a_passphrase_the_new_signing_keys_are_locked_from_the_first_moment() {
    let (memory, world) = used();
    back_up(&world).unwrap();
    let protection = Arc::new(Protection::passphrase(b"open sesame").unwrap());
    let file = KeyFile { path: SIGNING.into(), protection };
    restore_into(&world, 3, file.clone(), &world.verifier()).unwrap();
    assert!(matches!(SigningKeys::load(Path::new(SIGNING), &*world.files), Err(KeyError::Locked(_))));
    let keys = file.load(&*world.files).unwrap();
    assert_ne!(keys.origin(), world.verifier().origin());
    let mut seeds = vec![0; 64];
    let unlocked = Path::new("/unlocked");
    keys.save(unlocked, &*world.files).unwrap();
    seeds.copy_from_slice(memory.get(unlocked).get(21..85).unwrap());
    memory.take_away(unlocked);
    assert!(memory.everything().iter().all(|(_, bytes)| bytes.windows(64).all(|window| window != seeds)));
}
