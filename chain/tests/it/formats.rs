//! Journals of another format are refused by name, and contents belong to one entry.

use std::{path::Path, sync::Arc};

use ephor_base::Digest;
use ephor_chain::{OpenError, Vault};
use ephor_record::{Content, Entry, Fact, ScanError, entry::ENTRY_VERSION};

use crate::common::{World, block_on, memory::Memory, message, tag};

const FIRST: &str = "/home/chain/journal/00000000000000000000.seg";

fn vault(world: &World) -> Arc<Vault> {
    Arc::new(Vault::new(&world.config.vault, world.vault_key(), Arc::clone(&world.files)))
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
fn a_journal_of_another_format_is_refused_by_name_and_left_alone() {
    for format in [1, 3, 255] {
        for last in [false, true] {
            let (memory, world) = log_of_two_segments();
            let mut segments = memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/journal"));
            let segment = if last { segments.next_back() } else { segments.next() }.unwrap();
            let mut bytes = memory.get(&segment);
            bytes[11] = format;
            let digest = Digest::of(&bytes[..96]);
            bytes[96..128].copy_from_slice(&digest.0);
            memory.put(&segment, bytes);
            let before = memory.everything();
            match world.open() {
                Err(OpenError::OtherFormat(error)) => {
                    assert_eq!((error.found, error.known), (u32::from(format), 2));
                    assert!(error.to_string().contains("use the version that wrote it"), "{error}");
                }
                Err(other) => panic!("{other}"),
                Ok(_) => panic!("it opened"),
            }
            assert!(matches!(world.verify(None), Err(ScanError::OtherFormat(_))));
            assert_eq!(memory.everything(), before);
        }
    }
}
