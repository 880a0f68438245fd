//! An operator accepts a loss.

use std::{path::Path, sync::Arc};

use ephor_base::Random;
use ephor_chain::{AcceptError, Accepted, Log, OpenError, Private, SigningKeys, accept, read};
use ephor_record::Fact;

use crate::common::{
    World, block_on,
    memory::{After, Fault, Memory},
    message, plain,
};

pub(crate) const SIGNING: &str = "/home/keys/signing";

/// A home with a log of which the third batch is damaged.
fn damaged() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    world.keys().save(Path::new(SIGNING), &*world.files).unwrap();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.append(plain(2))).unwrap();
    block_on(log.append(plain(3))).unwrap();
    // Without a clean stop, only what was there at the start is published.
    drop(log);
    let segment = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let mut bytes = memory.get(&segment);
    let third = bytes.windows(8).enumerate().filter(|(_, window)| window == b"EphFrame").nth(2).unwrap().0;
    bytes[third + 100] ^= 1;
    memory.put(&segment, bytes);
    (memory, world)
}

pub(crate) fn accept_on(world: &World) -> Result<Accepted, AcceptError> {
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (clock, vault) = (Arc::clone(&world.clock), world.vault_key());
    accept(&world.config, Path::new(SIGNING), Some(&world.verifier()), vault, &world.files, clock, random, "0.1.0")
}

/// Opens with the keys that lie in the home, as the node does.
pub(crate) fn open_as_it_is(world: &World) -> Result<Log, OpenError> {
    let keys = SigningKeys::load(Path::new(SIGNING), &*world.files).unwrap();
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    Log::open(world.config.clone(), keys, vault, files, clock, random, "0.1.0").map(|(log, _)| log)
}

#[test]
fn the_old_chain_is_moved_aside_whole_and_the_new_one_names_its_head() {
    let (memory, world) = damaged();
    let old: Vec<_> = memory.everything().into_iter().filter(|(path, _)| path.starts_with("/home/chain")).collect();
    let mut seeds = [0; 32];
    crate::common::Seeded::new(world.seed).fill(&mut seeds);
    assert!(memory.get(Path::new(SIGNING)).windows(seeds.len()).any(|window| window == seeds));
    let signing = world.files.open(Path::new(SIGNING), ephor_base::files::Open::Read).unwrap();
    let accepted = accept_on(&world).unwrap();
    assert_eq!((accepted.follows.size, accepted.follows.origin.as_str()), (3, world.keys().origin()));
    assert!(accepted.follows.reason.contains("entry 3"), "{}", accepted.follows.reason);
    assert_eq!(accepted.moved_to, Path::new("/home/quarantine/1"));
    for (path, bytes) in old {
        let moved = Path::new("/home/quarantine/1/chain").join(path.strip_prefix("/home/chain").unwrap());
        assert_eq!(memory.get(&moved), bytes);
    }
    let public = String::from_utf8(memory.get(Path::new("/home/quarantine/1/verifier"))).unwrap();
    assert_eq!(public, world.verifier().to_string());
    // Who takes the whole disk cannot sign the old history again.
    let mut left = vec![0; usize::try_from(signing.len().unwrap()).unwrap()];
    assert_eq!(signing.read_at(&mut left, 0).unwrap(), left.len());
    let files = memory.everything().into_iter().map(|(_, bytes)| bytes).chain([left]);
    assert_eq!(files.filter(|bytes| bytes.windows(seeds.len()).any(|window| window == seeds)).count(), 0);

    let log = open_as_it_is(&world).unwrap();
    let first = log.entries().next().unwrap().unwrap().entry.fact;
    assert!(matches!(first, Fact::Origin { follows: Some(follows), .. } if follows == accepted.follows));
    // The vault still opens what could be read of the old one.
    block_on(log.append(message(2, "again"))).unwrap();
    assert!(matches!(log.entries().last().unwrap().unwrap().content, Private::Open(_)));
    block_on(log.close()).unwrap();
    assert_eq!(read(Path::new("/home/quarantine/1/chain"), &world.files).filter(Result::is_ok).count(), 3);
}

#[test]
fn what_is_published_is_trusted_although_the_journal_is_damaged() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    world.keys().save(Path::new(SIGNING), &*world.files).unwrap();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.close()).unwrap();
    let segment = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let mut bytes = memory.get(&segment);
    bytes[200] ^= 1;
    memory.put(&segment, bytes);
    assert!(matches!(open_as_it_is(&world), Err(OpenError::Quarantined { .. })));
    let accepted = accept_on(&world).unwrap();
    assert_eq!(accepted.follows.size, 4);
    // The old contents went with their chain, and those of the new one do not meet them.
    let log = open_as_it_is(&world).unwrap();
    block_on(log.append(message(2, "again"))).unwrap();
    block_on(log.close()).unwrap();
    let contents = |folder: &str| memory.get(&Path::new(folder).join("content/000"));
    assert_ne!(contents("/home/vault"), contents("/home/quarantine/1"));
    let keys = SigningKeys::load(Path::new(SIGNING), &*world.files).unwrap().verifier().clone();
    let against = ephor_chain::Against { keys: &keys, head: None, vault: Some(&world.config.vault), from: None };
    ephor_chain::verify(&world.config.folder, &world.files, against, |_| ()).unwrap();
}

#[test]
fn a_chain_that_is_whole_is_left_alone() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    world.keys().save(Path::new(SIGNING), &*world.files).unwrap();
    block_on(world.open().unwrap().0.close()).unwrap();
    let before = memory.everything();
    assert!(matches!(accept_on(&world), Err(AcceptError::NothingWrong)));
    assert_eq!(memory.everything(), before);
}

#[test]
fn a_crash_at_every_operation_of_accepting_leaves_a_home_that_can_still_be_accepted() {
    let (memory, world) = damaged();
    for operation in 1.. {
        for after in [After::Kill, After::PowerCut, After::Mixed(operation)] {
            let copy = memory.copy();
            copy.fail_at(operation, Fault::Crash);
            let done = accept_on(&world.with_files(copy.files())).is_ok();
            if done && copy.operations() < operation {
                assert!(operation > 40, "accepting has {operation} operations");
                return;
            }
            let left = world.with_files(copy.after(after).files());
            let what = format!("crash at operation {operation}, {after:?}");
            // Until all is done the home does not open; afterwards there is nothing to accept.
            match open_as_it_is(&left) {
                Ok(log) => drop(log),
                Err(OpenError::Quarantined { .. }) => {
                    accept_on(&left).unwrap_or_else(|error| panic!("{what}: {error}"));
                }
                Err(error) => panic!("{what}: {error}"),
            }
            let log = open_as_it_is(&left).unwrap_or_else(|error| panic!("{what}: {error}"));
            let first = log.entries().next().unwrap().unwrap().entry.fact;
            assert!(
                matches!(first, Fact::Origin { follows: Some(follows), .. } if follows.size == 3),
                "{what}: the new chain does not name the old one"
            );
        }
    }
}
