//! Logs of an older format: they are read and verified, and nothing is added to them.

use std::{fs, path::Path, sync::Arc};

use ephor_base::Digest;
use ephor_chain::{MigrateError, Migrated, OpenError, Private, Vault, migrate};
use ephor_record::{Content, Damage, Entry, Fact, ScanError, entry::ENTRY_VERSION};

use crate::common::{
    World, block_on,
    memory::{After, Fault, Memory},
    message, tag,
};

const FIRST: &str = "/home/chain/journal/00000000000000000000.seg";

/// The home that is kept beside this file, written in format 1: three segments, two boots, of which the first crashed in
/// the middle of a call and the second stopped in the middle of another.
fn format_1() -> (Memory, World) {
    let memory = Memory::default();
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/format1");
    copy(&kept, Path::new("/home"), &memory);
    let world = World::new(memory.files(), Path::new("/home"));
    (memory, world)
}

fn copy(from: &Path, to: &Path, memory: &Memory) {
    memory.files().create_folder(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &to, memory) } else { memory.put(&to, fs::read(&path).unwrap()) }
    }
}

fn vault(world: &World) -> Arc<Vault> {
    Arc::new(Vault::new(&world.config.vault, world.vault_key(), Arc::clone(&world.files)))
}

#[test]
fn a_log_of_format_1_is_verified_and_read_with_its_contents() {
    let (_, world) = format_1();
    let report = world.verify(world.pinned()).unwrap();
    assert_eq!((report.head.size, report.boots, report.checkpoints, report.open_intents), (38, 2, 18, 1));
    assert!(report.stopped);
    let entries = ephor_chain::read(&world.config.folder, &world.files).unsealing(vault(&world));
    let entries: Vec<_> = entries.map(Result::unwrap).collect();
    assert!(entries.iter().all(|stored| stored.entry.version == 1));
    let said = |stored: &ephor_chain::Stored| match &stored.content {
        Private::Open(Content::Parts(parts)) => parts.first().map(|part| part.text.clone()),
        _ => None,
    };
    let said: Vec<_> = entries.iter().filter_map(said).collect();
    assert_eq!(said.len(), 7);
    assert_eq!(said[..2], ["message 1", "message 2"]);
    assert!(entries.iter().all(|stored| stored.content != Private::Sealed));
}

fn migrate_it(world: &World) -> Result<Migrated, MigrateError> {
    let random: Arc<dyn ephor_base::Random> = Arc::clone(&world.random) as _;
    migrate(&world.config, world.keys(), world.vault_key(), &world.files, Arc::clone(&world.clock), random, |_| ())
}

/// Everything of the log of format 1 is there, whole, and the log goes on.
fn must_be_migrated(world: &World, what: &str) {
    let (log, recovered) = world.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    assert_eq!((recovered.boot, recovered.clean, recovered.indeterminate.len()), (3, true, 1), "{what}");
    block_on(log.append(message(99, "and on"))).unwrap();
    let entries: Vec<_> = log.entries().map(Result::unwrap).collect();
    assert!(entries.iter().all(|stored| stored.content != Private::Sealed), "{what}");
    assert_eq!(entries.iter().filter(|stored| stored.entry.version == 1).count(), 38);
    block_on(log.close()).unwrap();
    let report = world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(report.stopped && report.boots == 3 && report.published == report.head.size);
}

#[test]
fn a_log_of_format_1_is_migrated_and_goes_on() {
    let (memory, world) = format_1();
    let before: Vec<_> = memory.everything().into_iter().filter(|(path, _)| path.ends_with("checkpoint")).collect();
    let Ok(Migrated::Done(report)) = migrate_it(&world) else { panic!("it was not migrated") };
    assert_eq!((report.head.size, report.published, report.boots, report.stopped), (39, 39, 2, true));
    let journal: Vec<_> = memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/journal")).collect();
    assert_eq!(journal, [Path::new("/home/chain/journal/00000000000000000038.seg")]);
    assert!(!memory.paths().iter().any(|path| path.starts_with("/home/migrated")));
    assert_ne!(memory.get(&before[0].0), before[0].1);
    let after = memory.everything();
    assert!(matches!(migrate_it(&world), Ok(Migrated::Nothing)));
    assert_eq!(memory.everything(), after);
    must_be_migrated(&world, "migrated");
}

#[test]
fn a_damaged_log_of_format_1_is_not_migrated() {
    let (memory, world) = format_1();
    let mut bytes = memory.get(Path::new(FIRST));
    bytes[3000] ^= 1;
    memory.put(Path::new(FIRST), bytes);
    let before = memory.everything();
    assert!(matches!(migrate_it(&world), Err(MigrateError::Open(OpenError::Quarantined { .. }))));
    assert_eq!(memory.everything(), before);
}

#[test]
fn a_crash_at_every_operation_of_migrating_leaves_a_home_that_can_be_migrated() {
    let (memory, world) = format_1();
    for operation in 1.. {
        for after in [After::Kill, After::PowerCut, After::Mixed(operation)] {
            let copy = memory.copy();
            copy.fail_at(operation, Fault::Crash);
            let done = migrate_it(&world.with_files(copy.files())).is_ok();
            if done && copy.operations() < operation {
                assert!(operation > 150, "migrating has {operation} operations");
                return;
            }
            let what = format!("crash at operation {operation}, {after:?}");
            let left = world.with_files(copy.after(after).files());
            migrate_it(&left).unwrap_or_else(|error| panic!("{what}: {error}"));
            must_be_migrated(&left, &what);
        }
    }
}

#[test]
fn nothing_is_added_to_a_log_of_format_1() {
    let (memory, world) = format_1();
    let before = memory.everything();
    match world.open() {
        Err(error @ OpenError::OlderFormat { found: 1, written: 2, .. }) => {
            assert!(error.to_string().contains("`ephor migrate`"), "{error}");
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
    assert_eq!(memory.everything(), before);
}

#[test]
fn a_flipped_byte_of_a_log_of_format_1_is_found() {
    let (memory, world) = format_1();
    for path in memory.paths().into_iter().filter(|path| path.starts_with("/home/chain")) {
        let bytes = memory.get(&path);
        for at in (0..bytes.len()).step_by(211) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let copy = memory.copy();
            copy.put(&path, changed);
            let before = copy.everything();
            let finding = world.with_files(copy.files()).must_be_damaged(&format!("{} at {at}", path.display()));
            assert!(path.ends_with(&finding.file), "{}: {finding}", path.display());
            assert_eq!(copy.everything(), before);
        }
    }
}

#[test]
fn a_segment_of_format_1_is_no_segment_of_format_2() {
    let (memory, world) = format_1();
    let mut bytes = memory.get(Path::new(FIRST));
    bytes[11] = 2;
    let digest = Digest::of(&bytes[..96]);
    bytes[96..128].copy_from_slice(&digest.0);
    memory.put(Path::new(FIRST), bytes);
    assert_eq!(world.must_be_damaged("renumbered").offset, 128);
}

#[test]
fn a_log_does_not_go_back_to_an_older_format() {
    let (memory, world) = log_of_two_segments();
    let last = memory.paths().into_iter().rfind(|path| path.starts_with("/home/chain/journal")).unwrap();
    let mut bytes = memory.get(&last);
    bytes[11] = 1;
    let digest = Digest::of(&bytes[..96]);
    bytes[96..128].copy_from_slice(&digest.0);
    memory.put(&last, bytes);
    assert_eq!(world.must_be_damaged("renumbered").damage, Damage::OlderFormat);
}

fn log_of_two_segments() -> (Memory, World) {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 14_000;
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.append(message(2, "again"))).unwrap();
    block_on(log.append(message(3, "and again"))).unwrap();
    // Without a clean stop nothing is published, and no segment given back.
    drop(log);
    (memory, world)
}

#[test]
fn a_content_opens_only_beside_the_entry_that_commits_to_it() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    block_on(log.note(message(1, "yes"))).unwrap();
    block_on(log.append(message(2, "no!"))).unwrap();
    block_on(log.close()).unwrap();
    let entries: Vec<Entry> =
        ephor_chain::read(&world.config.folder, &world.files).map(|stored| stored.unwrap().entry).collect();
    let messages: Vec<_> = entries.iter().filter(|entry| matches!(entry.fact, Fact::Message { .. })).collect();
    let [yes, no] = messages[..] else { panic!("{messages:?}") };
    let sealed = sealed_contents(&memory, [yes, no]);
    let vault = vault(&world);
    assert_eq!((yes.version, no.version), (ENTRY_VERSION, ENTRY_VERSION));
    assert!(matches!(vault.unseal(yes, &sealed[0]), Ok(Some(Content::Parts(_)))));
    assert!(matches!(vault.unseal(no, &sealed[1]), Ok(Some(Content::Parts(_)))));
    assert!(vault.unseal(yes, &sealed[1]).is_err(), "{:?}", tag(&yes.fact));
    assert!(vault.unseal(no, &sealed[0]).is_err(), "{:?}", tag(&no.fact));
}

/// What the commitments of two entries in a row stand for, from the journal.
fn sealed_contents(memory: &Memory, entries: [&Entry; 2]) -> [Vec<u8>; 2] {
    let bytes = memory.get(Path::new(FIRST));
    entries.map(|entry| {
        let commitment = entry.content.unwrap();
        let found = bytes.windows(commitment.length as usize).find(|window| Digest::of(window) == commitment.sealed);
        found.unwrap().to_vec()
    })
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (memory, world) = format_1();
    let mut bytes = memory.get(Path::new(FIRST));
    bytes[11] = 3;
    let digest = Digest::of(&bytes[..96]);
    bytes[96..128].copy_from_slice(&digest.0);
    memory.put(Path::new(FIRST), bytes);
    let before = memory.everything();
    match world.open() {
        Err(error @ OpenError::NewerFormat { found: 3, .. }) => assert!(error.to_string().contains("upgrade Ephor")),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
    assert!(matches!(world.verify(None), Err(ScanError::NewerFormat { .. })));
    assert_eq!(memory.everything(), before);
}
