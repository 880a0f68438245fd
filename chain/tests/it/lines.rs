//! Partial tiles, and signature lines of others, as C2SP has them.

use std::path::{Path, PathBuf};

use ephor_chain::Log;
use ephor_record::{Damage, ScanError};

use crate::common::{World, block_on, memory::Memory, plain};

const CHECKPOINT: &str = "/home/chain/checkpoint";

fn published(count: u64) -> (Memory, World, Log) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for number in 0..count {
        block_on(log.append(plain(number))).unwrap();
    }
    block_on(log.publish()).unwrap();
    (memory, world, log)
}

#[test]
fn partial_tiles_stay_for_earlier_checkpoints_until_the_full_one_is_published() {
    let (memory, world, log) = published(2);
    let mut sizes = vec![log.head().size];
    for number in 0..5 {
        block_on(log.append(plain(100 + number))).unwrap();
        block_on(log.publish()).unwrap();
        sizes.push(log.head().size);
    }
    let partial = |kind: &str, size: u64| PathBuf::from(format!("/home/chain/tile/{kind}/000.p/{size}"));
    for size in &sizes {
        for kind in ["entries", "0"] {
            assert!(memory.paths().contains(&partial(kind, *size)), "{kind} of {size}: {:?}", memory.paths());
        }
    }
    world.verify(world.pinned()).unwrap();
    while log.head().size <= 256 {
        block_on(log.append(plain(200 + log.head().size))).unwrap();
    }
    block_on(log.publish()).unwrap();
    let first = |path: &PathBuf| path.to_str().unwrap().contains("/000.p/") && !path.starts_with("/home/chain/tile/1");
    assert!(!memory.paths().iter().any(first), "{:?}", memory.paths());
    block_on(log.close()).unwrap();
    drop(world.open().unwrap());
    world.verify(world.pinned()).unwrap();
}

#[test]
fn lines_of_unknown_keys_on_a_checkpoint_say_nothing_and_a_wrong_one_of_ours_spoils_it() {
    let (memory, world, log) = published(3);
    block_on(log.close()).unwrap();
    let own = memory.get(Path::new(CHECKPOINT));
    let with = |line: &str| {
        memory.put(Path::new(CHECKPOINT), [own.as_slice(), line.as_bytes(), b"\n"].concat());
    };
    with(&format!("— witness.example/one {}=", "A".repeat(91)));
    world.verify(world.pinned()).unwrap();
    let text = String::from_utf8(own.clone()).unwrap();
    let ours = text.lines().find(|line| line.starts_with('—')).unwrap();
    let place = ours.rfind(' ').unwrap() + 20;
    let other = if &ours[place..=place] == "A" { "B" } else { "A" };
    with(&format!("{}{other}{}", &ours[..place], &ours[place + 1..]));
    match world.verify(world.pinned()) {
        Err(ScanError::Damaged(finding)) => {
            assert!(matches!(finding.damage, Damage::PublishedForeign | Damage::Signature(_)), "{finding}")
        }
        other => panic!("{other:?}"),
    }
    with(&format!("— witness.example/one {}=", "A".repeat(91)));
    drop(world.open().unwrap());
}
