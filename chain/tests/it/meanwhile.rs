//! A home is copied while a session is erased or the keys are changed, stopped at the worst moments.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ephor_chain::{
    Against, BackedUp, BackupError, Config, PinnedHead, SigningKeys, backup, read, restore, restore::Taken, verify,
};
use ephor_record::Fact;
use ephor_tlog::VerifierKeys;

use crate::common::{
    OPERATOR, SESSION, Seeded, World, block_on,
    hooked::{Before, Hooked},
    memory::Memory,
    message, plain,
};

const FOLDER: &str = "/backup";
const PUBLIC: &str = "keys/log.pub";

fn home() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for number in 0..3 {
        block_on(log.append(message(number, "said"))).unwrap();
    }
    block_on(log.close()).unwrap();
    memory.put_deep(&Path::new("/home").join(PUBLIC), world.verifier().to_string().into_bytes());
    world.vault_key().save(Path::new("/home/keys/vault"), &*world.files).unwrap();
    (memory, world)
}

fn key(home: &str) -> PathBuf {
    Path::new(home).join("vault/keys").join(SESSION.to_string())
}

/// The keys of a home, as somebody reads them who begins to copy it.
fn public(memory: &Memory) -> VerifierKeys {
    String::from_utf8(memory.get(&Path::new("/home").join(PUBLIC))).unwrap().parse().unwrap()
}

fn back_up(world: &World, keys: &VerifierKeys) -> Result<BackedUp, BackupError> {
    let (public, folder) = (Path::new(PUBLIC), Path::new(FOLDER));
    backup(
        &world.config,
        &[PathBuf::from(PUBLIC), PathBuf::from("keys/vault")],
        public,
        folder,
        keys,
        &world.files,
        |_| (),
    )
}

/// Restores with the keys in the copy, as the command does.
fn restores(memory: &Memory, world: &World) -> u64 {
    let text = String::from_utf8(memory.get(&Path::new(FOLDER).join(PUBLIC))).unwrap();
    let (keys, home) = (text.parse().unwrap(), Config::in_home(Path::new("/restored")));
    let (signing, random) = (Path::new("/restored/keys/log"), Arc::new(Seeded::new(3)));
    let clock = Arc::clone(&world.clock);
    let taken = Taken { signing: signing.into(), vault: Path::new("keys/vault"), also: &[] };
    restore(Path::new(FOLDER), &home, taken, &keys, &world.files, clock, random, "0.1.0", |_| ()).unwrap().follows.size
}

fn erase(world: &World) {
    let (log, _) = world.open().unwrap();
    block_on(log.erase(SESSION, Vec::new(), "asked for".into(), OPERATOR)).unwrap();
    block_on(log.close()).unwrap();
}

#[test]
fn a_key_that_is_overwritten_and_not_removed_yet_is_not_copied() {
    for older in [false, true] {
        let (memory, world) = home();
        let before = memory.get(&key("/home"));
        if older {
            back_up(&world, &world.verifier()).unwrap();
        }
        let (copier, seen) = (world.clone(), Arc::new(Mutex::new(None)));
        let (inside, found) = (memory.clone(), Arc::clone(&seen));
        let here = world.with_files(Hooked::files(memory.files(), Before::Remove, &key("/home"), move || {
            assert_ne!(inside.get(&key("/home")), before, "it is overwritten first");
            let done = back_up(&copier, &copier.verifier()).unwrap();
            *found.lock().unwrap() =
                Some((done, inside.paths().contains(&key(FOLDER)).then(|| inside.get(&key(FOLDER)))));
            assert!(inside.everything().iter().all(|(path, bytes)| {
                !path.starts_with(FOLDER) || path == &key(FOLDER) || *bytes != inside.get(&key("/home"))
            }));
        }));
        erase(&here);
        let (_, copied) = seen.lock().unwrap().take().expect("the key was removed");
        // What was overwritten is never put over what an older backup has; the next one destroys that.
        let whole = copied.as_ref().is_some_and(|copied| copied.starts_with(b"ephor session key 1\n"));
        assert_eq!((copied.is_some(), whole), (older, older));
        back_up(&world, &world.verifier()).unwrap();
        assert!(!memory.paths().contains(&key(FOLDER)) && !memory.paths().contains(&key("/home")));
        restores(&memory, &world);
    }
}

#[test]
fn a_key_that_goes_between_its_name_and_its_bytes_is_not_in_the_copy() {
    let (memory, world) = home();
    back_up(&world, &world.verifier()).unwrap();
    // Without anything new no key would be looked at.
    drop(world.open().unwrap());
    let eraser = world.clone();
    let here = world.with_files(Hooked::files(memory.files(), Before::Open, &key("/home"), move || erase(&eraser)));
    back_up(&here, &world.verifier()).unwrap();
    assert!(!memory.paths().contains(&key(FOLDER)), "an older backup had it");
    restores(&memory, &world);
}

#[test]
fn the_copy_has_the_public_keys_that_it_was_verified_with_whenever_they_change() {
    let places = ["head", "chain/checkpoint", "vault/keys", PUBLIC];
    for place in places {
        for again in [false, true] {
            let (memory, world) = home();
            if again {
                back_up(&world, &public(&memory)).unwrap();
                drop(world.open().unwrap());
            }
            let next = || {
                SigningKeys::generate_next(
                    &World::new(Memory::default().files(), Path::new("/")).verifier(),
                    &Seeded::new(9),
                )
            };
            let (rotator, inside) = (world.clone(), memory.clone());
            let at = if place == "vault/keys" { key("/home") } else { Path::new("/home").join(place) };
            let here = world.with_files(Hooked::files(memory.files(), Before::Open, &at, move || {
                let (log, _) = rotator.open().unwrap();
                block_on(log.rotate(next(), OPERATOR)).unwrap();
                block_on(log.append(plain(9))).unwrap();
                block_on(log.publish()).unwrap();
                drop(log);
                inside.put(&Path::new("/home").join(PUBLIC), next().verifier().to_string().into_bytes());
            }));
            // The command reads them first.
            let keys = public(&memory);
            let done = back_up(&here, &keys).unwrap_or_else(|error| panic!("{place}: {error}"));
            let copied = String::from_utf8(memory.get(&Path::new(FOLDER).join(PUBLIC))).unwrap();
            assert_eq!(copied, keys.to_string(), "{place}");
            assert_eq!(restores(&memory, &world), done.head.size, "{place}");
            let aside = Path::new("/restored/quarantine/1");
            let head = PinnedHead::load(&aside.join("head"), &*world.files).unwrap();
            let against = Against { keys: &keys, head, vault: None, from: None };
            verify(&aside.join("chain"), &world.files, against, |_| ()).unwrap();
            let first = read(Path::new("/restored/chain"), &world.files).next().unwrap().unwrap().entry.fact;
            assert!(matches!(first, Fact::Origin { follows: Some(_), .. }));
        }
    }
}
