//! The signing keys change, on the record.

use std::{path::Path, sync::Arc};

use ephor_base::{Random, files::Files};
use ephor_chain::{Against, AppendError, KeyFile, Log, OpenError, Report, SigningKeys, verify};
use ephor_record::{Damage, Fact, ScanError};
use ephor_signatures::Signatures;
use ephor_tlog::VerifierKeys;

use crate::common::{
    OPERATOR, Seeded, World, block_on,
    memory::{After, Fault, Memory},
    outgrow, plain,
};

const SIGNING: &str = "/home/keys/signing";

fn world() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    world.keys().save(Path::new(SIGNING), &*world.files).unwrap();
    (memory, world)
}

/// A home whose journal holds two or three batches before it goes on in another segment.
fn short() -> (Memory, World) {
    let (memory, mut world) = world();
    world.config.segment_bytes = 10_000;
    (memory, world)
}

fn key_file() -> KeyFile {
    KeyFile::from(Path::new(SIGNING))
}

/// Opens with the keys that lie in the home and settles their files, as the node does.
fn open(world: &World) -> Result<Log, OpenError> {
    let signers = key_file().signers(&*world.files).unwrap();
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    let (log, _) = Log::open(world.config.clone(), signers, vault, files, clock, random, "0.1.0")?;
    key_file().settle(&log.keys().unwrap(), &*world.files, &*world.random).unwrap();
    Ok(log)
}

/// Changes the keys, as the node does.
fn rotate(log: &Log, world: &World) -> Result<VerifierKeys, Box<dyn std::error::Error>> {
    let next = SigningKeys::generate_next(&log.keys().unwrap(), &*world.random);
    let verifier = next.verifier().clone();
    key_file().prepare(&next, &*world.files, &*world.random)?;
    block_on(log.rotate(next, OPERATOR))?;
    key_file().settle(&verifier, &*world.files, &*world.random)?;
    Ok(verifier)
}

fn check(world: &World, keys: &VerifierKeys) -> Result<Report, Damage> {
    match verify(
        &world.config.folder,
        &world.files,
        Against { keys, head: world.pinned(), vault: Some(&world.config.vault), from: None },
        |_| (),
    ) {
        Ok(report) => Ok(report),
        Err(ScanError::Damaged(finding)) => Err(finding.damage),
        Err(error) => panic!("{error}"),
    }
}

fn everything_is_well(files: &dyn Files, keys: &VerifierKeys) {
    assert_eq!(key_file().load(files).unwrap().verifier(), keys);
    assert!(matches!(SigningKeys::load(&key_file().next(), files), Err(ephor_chain::KeyError::Missing(_))));
}

#[test]
fn the_log_keeps_its_name_and_is_verified_with_the_keys_of_any_generation() {
    let (_, world) = world();
    let log = open(&world).unwrap();
    let first = log.keys().unwrap();
    block_on(log.append(plain(1))).unwrap();
    let second = rotate(&log, &world).unwrap();
    block_on(log.append(plain(2))).unwrap();
    let third = rotate(&log, &world).unwrap();
    everything_is_well(&*world.files, &third);
    block_on(log.close()).unwrap();
    for keys in [&first, &second, &third] {
        assert_eq!(keys.origin(), first.origin());
        assert_eq!(keys.to_string().parse::<VerifierKeys>().unwrap(), *keys);
        let report = check(&world, keys).unwrap();
        assert_eq!(report.origin, first.origin());
    }
    assert!(first.is_first() && !second.is_first() && !third.is_first());
    let log = open(&world).unwrap();
    assert_eq!(log.keys(), Some(third));
    let named: Vec<_> = log.entries().map(|stored| stored.unwrap().entry).collect();
    let named: Vec<_> = named.iter().filter(|entry| matches!(entry.fact, Fact::Keys { .. })).collect();
    assert_eq!(named.len(), 4, "each change is recorded, and confirmed under the new keys");
    assert!(named.iter().all(|entry| entry.subject.operator == Some(OPERATOR)));
}

#[test]
fn the_published_checkpoint_is_signed_by_the_new_keys_and_the_old_ones_are_overwritten() {
    let (memory, world) = world();
    let log = open(&world).unwrap();
    let old = memory.get(Path::new(SIGNING));
    let second = rotate(&log, &world).unwrap();
    block_on(log.close()).unwrap();
    let published = ephor_tlog::Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap();
    published.check(&second, &Signatures).unwrap();
    let seeds = &old[21..85];
    assert!(memory.everything().iter().all(|(_, bytes)| !bytes.windows(64).any(|window| window == seeds)));
}

#[test]
fn keys_of_another_log_or_used_before_are_refused() {
    let (_, world) = world();
    let log = open(&world).unwrap();
    let misplaced = |keys: SigningKeys| {
        let refused = block_on(log.rotate(keys, OPERATOR));
        assert!(matches!(refused, Err(AppendError::Misplaced(_))), "{refused:?}");
    };
    misplaced(SigningKeys::generate(&Seeded::new(5)));
    misplaced(world.keys());
    let next = || SigningKeys::generate_next(&world.verifier(), &Seeded::new(6));
    block_on(log.rotate(next(), OPERATOR)).unwrap();
    misplaced(next());
    misplaced(world.keys());
    block_on(log.append(plain(1))).unwrap();
}

#[test]
fn many_records_around_a_rotation_all_land() {
    let (_, world) = world();
    let log = open(&world).unwrap();
    let threads: Vec<_> = (0..4u64)
        .map(|thread| {
            let log = log.clone();
            std::thread::spawn(move || {
                (0..20).for_each(|n| {
                    block_on(log.append(plain(thread * 100 + n))).unwrap();
                })
            })
        })
        .collect();
    for _ in 0..3 {
        rotate(&log, &world).unwrap();
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let last = log.keys().unwrap();
    block_on(log.close()).unwrap();
    assert!(check(&world, &last).unwrap().head.size > 80);
}

/// A log under `keys`, begun by others: what somebody can write who has the first keys of a log, after they were changed.
fn forged(signers: SigningKeys, next: Option<SigningKeys>, confirm: bool) -> World {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    let (log, _) = Log::open(world.config.clone(), signers, vault, files, clock, random, "0.1.0").unwrap();
    block_on(log.append(plain(666))).unwrap();
    if let Some(next) = next {
        block_on(log.rotate(next, OPERATOR)).unwrap();
    }
    drop(log);
    if confirm {
        return world;
    }
    world.with_files(cut_after_rotation(&memory).files())
}

/// The home as it is when nothing follows the batch that names new keys.
fn cut_after_rotation(memory: &Memory) -> Memory {
    let copy = memory.copy();
    let segment = copy.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let mut bytes = copy.get(&segment);
    let frames: Vec<_> =
        bytes.windows(8).enumerate().filter(|(_, window)| window == b"EphFrame").map(|(at, _)| at).collect();
    bytes.truncate(*frames.last().unwrap());
    copy.put(&segment, bytes);
    copy.take_away(Path::new("/home/head"));
    copy
}

#[test]
fn whoever_has_the_old_keys_cannot_make_a_log_that_the_new_ones_vouch_for() {
    let first = || SigningKeys::generate(&Seeded::new(42));
    let second = || SigningKeys::generate_next(first().verifier(), &Seeded::new(77));
    // The real one, up to the change and beyond.
    let real = forged(first(), Some(second()), true);
    check(&real, second().verifier()).unwrap();
    check(&real, first().verifier()).unwrap();
    // Another history by the old keys, that names the new ones and ends there.
    let other = forged(first(), Some(second()), false);
    assert_eq!(check(&other, second().verifier()).unwrap_err(), Damage::KeysUnused);
    // Another history by the old keys that knows of no change: the state before, or a fork.
    let before = forged(first(), None, true);
    assert_eq!(check(&before, second().verifier()).unwrap_err(), Damage::Keys);
    // A log begun by the new keys under the old name.
    let random: Arc<dyn Random> = Arc::new(Seeded::new(1));
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    let begun = Log::open(world.config.clone(), second(), vault, files, clock, random, "0.1.0");
    assert!(begun.is_err(), "a log began under keys that its name is not derived from");
}

#[test]
fn a_home_rolled_back_to_before_the_change_does_not_open_with_the_new_keys() {
    let (memory, world) = world();
    block_on(open(&world).unwrap().close()).unwrap();
    let before = memory.copy();
    let log = open(&world).unwrap();
    let second = rotate(&log, &world).unwrap();
    block_on(log.close()).unwrap();
    for (path, bytes) in memory.everything() {
        if path.starts_with("/home/keys") {
            before.put(&path, bytes);
        }
    }
    let rolled = world.with_files(before.files());
    assert_eq!(check(&rolled, &second).unwrap_err(), Damage::Keys);
    let everything = before.everything();
    assert!(matches!(open(&rolled), Err(OpenError::Quarantined { finding }) if finding.damage == Damage::Keys));
    assert_eq!(before.everything(), everything, "something was written");
    // And with the old ones, it is found by the head that was pinned.
    let pinned = world.pinned();
    let first = world.verifier();
    let found = verify(
        &rolled.config.folder,
        &rolled.files,
        Against { keys: &first, head: pinned, vault: None, from: None },
        |_| (),
    );
    assert!(matches!(found, Err(ScanError::Damaged(finding)) if matches!(finding.damage, Damage::CutBack { .. })));
}

#[test]
fn a_checkpoint_by_the_wrong_generation_is_found() {
    let (memory, world) = world();
    let log = open(&world).unwrap();
    let next = || SigningKeys::generate_next(&world.verifier(), &Seeded::new(77));
    block_on(log.append(plain(1))).unwrap();
    block_on(log.rotate(next(), OPERATOR)).unwrap();
    block_on(log.append(plain(2))).unwrap();
    block_on(log.close()).unwrap();
    // Each batch in turn, its signatures replaced by those of the other generation over the same text.
    let segment = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let bytes = memory.get(&segment);
    let notes: Vec<_> = find_notes(&bytes, world.keys().origin());
    assert!(notes.len() >= 5);
    let later =
        |note: &[u8]| ephor_tlog::Checkpoint::parse(note).unwrap().check(next().verifier(), &Signatures).is_ok();
    let turn = notes.iter().position(|(from, to)| later(&bytes[*from..*to])).unwrap();
    assert!(notes[turn..].iter().all(|(from, to)| later(&bytes[*from..*to])));
    assert_eq!(notes[..turn].iter().filter(|(from, to)| later(&bytes[*from..*to])).count(), 0);
}

/// Where the checkpoints of a segment lie.
fn find_notes(bytes: &[u8], origin: &str) -> Vec<(usize, usize)> {
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let frames = bytes.windows(8).enumerate().filter(|(_, window)| window == b"EphFrame").map(|(at, _)| at);
    frames
        .map(|at| {
            let from = at + 36 + number(at + 24) + number(at + 28);
            assert!(bytes[from..].starts_with(origin.as_bytes()));
            (from, from + number(at + 32))
        })
        .collect()
}

/// Changes the keys with a crash at every operation, in a home after a clean stop; `then` goes on until the crash comes.
fn crash_everywhere(memory: &Memory, world: &World, then: &dyn Fn(&Log)) {
    let first = open(&world.with_files(memory.copy().files())).unwrap().keys().unwrap();
    let mut generations = [0, 0];
    for operation in 1.. {
        let (mut done, mut over) = (false, true);
        for after in [After::Kill, After::PowerCut, After::Mixed(operation)] {
            let copy = memory.copy();
            let here = world.with_files(copy.files());
            let log = open(&here).unwrap();
            let limit = copy.operations() + operation;
            copy.fail_at(limit, Fault::Crash);
            let rotated = rotate(&log, &here);
            done = rotated.is_ok();
            if done {
                then(&log);
            }
            over &= copy.operations() < limit;
            let left = copy.after(after);
            copy.die();
            drop(log);
            let here = world.with_files(left.files());
            let what = format!("crash at operation {operation}, {after:?}");
            let log = open(&here).unwrap_or_else(|error| panic!("{what}: {error}"));
            let keys = log.keys().unwrap();
            generations[usize::from(keys != first)] += 1;
            assert!(!done || rotated.unwrap() == keys, "{what}: acknowledged and lost");
            everything_is_well(&*here.files, &keys);
            block_on(log.close()).unwrap();
            for keys in [&keys, &first, &world.verifier()] {
                check(&here, keys).unwrap_or_else(|damage| panic!("{what}: {damage}"));
            }
        }
        if done && over {
            break;
        }
    }
    assert!(generations.iter().all(|count| *count > 5), "{generations:?}");
}

#[test]
fn a_crash_at_every_operation_of_a_rotation_leaves_a_home_that_opens() {
    let (memory, world) = world();
    block_on(open(&world).unwrap().close()).unwrap();
    crash_everywhere(&memory, &world, &|_| ());
}

#[test]
fn a_crash_at_every_operation_of_a_rotation_and_recycling_leaves_a_home_that_opens() {
    let (memory, world) = short();
    let log = open(&world).unwrap();
    outgrow(&log, &world);
    rotate(&log, &world).unwrap();
    outgrow(&log, &world);
    block_on(log.close()).unwrap();
    crash_everywhere(&memory, &world, &|log| {
        for number in 0..4 {
            drop(block_on(log.append(plain(number))));
            drop(block_on(log.publish()));
        }
    });
}

#[test]
fn keys_that_only_the_published_part_names_are_never_used_again() {
    let (_, world) = short();
    let log = open(&world).unwrap();
    let next = || SigningKeys::generate_next(&world.verifier(), &Seeded::new(6));
    outgrow(&log, &world);
    block_on(log.rotate(next(), OPERATOR)).unwrap();
    outgrow(&log, &world);
    let third = SigningKeys::generate_next(&world.verifier(), &Seeded::new(8));
    key_file().prepare(&third, &*world.files, &*world.random).unwrap();
    block_on(log.rotate(third, OPERATOR)).unwrap();
    outgrow(&log, &world);
    block_on(log.close()).unwrap();
    let third = SigningKeys::load(&key_file().next(), &*world.files).unwrap().verifier().clone();
    for keys in [&world.verifier(), next().verifier(), &third] {
        check(&world, keys).unwrap();
    }
    let log = open(&world).unwrap();
    for used in [next(), world.keys()] {
        let refused = block_on(log.rotate(used, OPERATOR));
        assert!(matches!(refused, Err(AppendError::Misplaced("its keys were used before"))), "{refused:?}");
    }
    block_on(log.append(plain(1))).unwrap();
}

#[test]
fn a_home_of_which_the_chain_was_rolled_back_begins_another_only_when_the_loss_is_accepted() {
    let (memory, world) = short();
    block_on(open(&world).unwrap().close()).unwrap();
    let before = memory.copy();
    let log = open(&world).unwrap();
    rotate(&log, &world).unwrap();
    block_on(log.close()).unwrap();
    for (path, bytes) in memory.everything() {
        if path.starts_with("/home/keys") {
            before.put(&path, bytes);
        }
    }
    let here = world.with_files(before.files());
    assert!(open(&here).is_err());
    let random: Arc<dyn Random> = Arc::clone(&here.random) as _;
    let (clock, vault) = (Arc::clone(&here.clock), here.vault_key());
    let accepted =
        ephor_chain::accept(&here.config, key_file(), None, vault, &here.files, clock, random, "0.1.0").unwrap();
    // Nothing there is signed by the keys of the home.
    assert_eq!((accepted.follows.size, accepted.follows.origin.as_str()), (0, world.verifier().origin()));
    open(&here).unwrap();
}
