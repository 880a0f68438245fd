//! What somebody with the files, or with the keys, could do to a pruned log.

use std::path::{Path, PathBuf};

use ephor_chain::OpenError;
use ephor_record::{Damage, Finding, ScanError};

use super::{aged, left_below, live, minimum, prune, pruned};
use crate::common::{World, block_on, memory::Memory};

fn found(world: &World, what: &str) -> Finding {
    match world.verify(world.pinned()) {
        Err(ScanError::Damaged(finding)) => finding,
        other => panic!("{what}: {other:?}"),
    }
}

fn must_not_open(world: &World, what: &str) {
    match world.open() {
        Err(OpenError::Quarantined { finding }) => assert_eq!(finding.file, Path::new("minimum"), "{what}: {finding}"),
        Err(other) => panic!("{what}: {other}"),
        Ok(_) => panic!("{what}: it opened"),
    }
}

const MINIMUM: &str = "/home/chain/minimum";

#[test]
fn a_minimum_without_a_record_is_damage() {
    let (memory, world) = aged(300);
    for forged in ["256\n600\n", "256\n256\n", "512\n800\n", "256\n99999999\n", "", "256", "256\n", "\u{0}"] {
        let copy = memory.copy();
        copy.put(Path::new(MINIMUM), forged.as_bytes().to_vec());
        let world = world.with_files(copy.files());
        assert_eq!(found(&world, forged).file, Path::new("minimum"), "{forged:?}");
        must_not_open(&world, forged);
        // Nor with what it would allow to be gone.
        for path in left_below(&copy, 256) {
            copy.take_away(&path);
        }
        assert_eq!(found(&world, forged).file, Path::new("minimum"), "{forged:?}");
        must_not_open(&world, forged);
    }
}

#[test]
fn a_minimum_that_was_raised_is_damage() {
    let (memory, world, pruned) = pruned();
    let there = minimum(&memory).unwrap();
    let forged = [
        (there.index + 256, there.record.0),
        (there.index + 256, there.record.0 + 1),
        (there.index, there.record.0 + 1),
        (there.index, there.record.0 - 1),
    ];
    for (index, record) in forged {
        let copy = memory.copy();
        copy.put(Path::new(MINIMUM), format!("{index}\n{record}\n").into_bytes());
        let world = world.with_files(copy.files());
        assert_eq!(found(&world, "raised").file, Path::new("minimum"));
        must_not_open(&world, "raised");
        left_below(&copy, index).iter().for_each(|path| copy.take_away(path));
        assert_eq!(found(&world, "raised").file, Path::new("minimum"));
        must_not_open(&world, "raised");
    }
    assert_eq!(there.index, pruned.minimum);
}

#[test]
fn every_byte_of_the_minimum_counts() {
    let (memory, world, _) = pruned();
    let bytes = memory.get(Path::new(MINIMUM));
    for at in 0..bytes.len() {
        for bit in [0, 3, 6] {
            let (copy, mut changed) = (memory.copy(), bytes.clone());
            changed[at] ^= 1 << bit;
            copy.put(Path::new(MINIMUM), changed);
            assert_eq!(found(&world.with_files(copy.files()), "flipped").file, Path::new("minimum"));
        }
    }
}

#[test]
fn a_minimum_that_was_set_back_is_found_and_put_right_by_the_next_opening() {
    let (memory, world, pruned) = pruned();
    let (log, _) = world.open().unwrap();
    live(&log, &world, 400..500);
    let older = memory.get(Path::new(MINIMUM));
    let again = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    assert!(again.minimum > pruned.minimum);
    for set_back in [Some(older), None] {
        let copy = memory.copy();
        match set_back {
            Some(bytes) => copy.put(Path::new(MINIMUM), bytes),
            None => copy.take_away(Path::new(MINIMUM)),
        }
        let world = world.with_files(copy.files());
        let finding = found(&world, "set back");
        assert!(finding.file == Path::new("minimum") && finding.damage.to_string().contains("set back"), "{finding}");
        let (log, _) = world.open().unwrap();
        block_on(log.close()).unwrap();
        assert_eq!(minimum(&copy).unwrap().index, again.minimum);
        assert_eq!(world.verify(world.pinned()).unwrap().minimum, again.minimum);
    }
}

#[test]
fn what_is_gone_above_the_minimum_is_damage() {
    let (memory, world, pruned) = pruned();
    let index = pruned.minimum / 256;
    for folder in ["chain/tile/entries", "chain/tile/0"] {
        let copy = memory.copy();
        let path = PathBuf::from(format!("/home/{folder}/{index:03}"));
        copy.take_away(&path);
        let world = world.with_files(copy.files());
        let finding = found(&world, folder);
        assert_eq!(finding.damage, Damage::Missing, "{folder}");
        assert!(path.ends_with(&finding.file), "{finding}");
    }
    let copy = memory.copy();
    copy.take_away(Path::new(&format!("/home/vault/content/{index:03}")));
    assert_eq!(found(&world.with_files(copy.files()), "content").damage, Damage::Content);
}

#[test]
fn what_is_gone_without_a_record_is_damage() {
    let (memory, world) = aged(300);
    for path in left_below(&memory, 256) {
        let copy = memory.copy();
        copy.take_away(&path);
        let finding = found(&world.with_files(copy.files()), "gone");
        assert!(path.ends_with(&finding.file), "{finding}");
    }
    left_below(&memory, 512).iter().for_each(|path| memory.take_away(path));
    assert_eq!(found(&world, "gone").damage, Damage::Missing);
}

#[test]
fn every_file_of_a_pruned_log_counts_but_what_was_to_be_taken_away() {
    let (memory, world, _) = pruned();
    for (path, bytes) in memory.everything() {
        let counts = path.starts_with("/home/chain") || path.starts_with("/home/vault/content");
        if !counts || bytes.is_empty() {
            continue;
        }
        let step = (bytes.len() / 24).max(1);
        for at in (0..bytes.len()).step_by(step) {
            let (copy, mut changed) = (memory.copy(), bytes.clone());
            changed[at] ^= 1;
            copy.put(&path, changed);
            let world = world.with_files(copy.files());
            let verified = world.verify(world.pinned());
            assert!(matches!(verified, Err(ScanError::Damaged(_))), "byte {at} of {}: {verified:?}", path.display());
        }
    }
}

#[test]
fn what_an_interrupted_pruning_left_is_whole_or_damage() {
    let (memory, world) = aged(300);
    let before: Memory = memory.copy();
    let (log, _) = world.open().unwrap();
    let pruned = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    for path in left_below(&before, pruned.minimum) {
        let copy = memory.copy();
        copy.put_deep(&path, before.get(&path));
        let world = world.with_files(copy.files());
        world.verify(world.pinned()).unwrap();
        let is_content = path.starts_with("/home/vault");
        let mut changed = before.get(&path);
        changed[5] ^= 1;
        copy.put(&path, changed);
        assert_eq!(world.verify(world.pinned()).is_err(), !is_content, "{}", path.display());
        // Opening takes it away.
        let (log, _) = world.open().unwrap();
        block_on(log.close()).unwrap();
        assert_eq!(left_below(&copy, pruned.minimum), Vec::<PathBuf>::new());
    }
}

#[test]
fn accepting_a_loss_trusts_what_a_pruned_log_still_proves() {
    let (memory, world, pruned) = pruned();
    let (head, copy) = (world.pinned().unwrap().head, memory.copy());
    let raised = format!("{}\n99999\n", pruned.minimum + 256);
    copy.put(Path::new(MINIMUM), raised.into_bytes());
    let world = world.with_files(copy.files());
    must_not_open(&world, "forged");
    world.keys().save(Path::new("/home/signing"), &*world.files).unwrap();
    let accepted = ephor_chain::accept(
        &world.config,
        Path::new("/home/signing"),
        None,
        world.vault_key(),
        &world.files,
        world.clock.clone(),
        world.random.clone(),
        "1",
    );
    let follows = accepted.unwrap().follows;
    assert_eq!((follows.size, follows.root), (head.size, head.root));
}
