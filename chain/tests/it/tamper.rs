//! Whatever is changed in a log is found, and the place named; opening it writes nothing.

use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::Decision;
use ephor_chain::OpenError;
use ephor_record::{Damage, Finding, ScanError};
use ephor_tlog::Checkpoint;

use crate::common::{World, block_on, intent, memory::Memory, message, outcome, plain, verdict};

const SEGMENT_HEADER: usize = 128;

/// A small log after a clean stop: all of it is published, and the journal still holds all of it.
fn small() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.close()).unwrap();
    (memory, world)
}

/// A log of which the journal holds only the end.
fn recycled(notes: u64) -> (Memory, World) {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 10_000;
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    for number in 0..notes {
        block_on(log.note(plain(number))).unwrap();
    }
    block_on(log.append(message(2, "you"))).unwrap();
    block_on(log.publish()).unwrap();
    block_on(log.append(message(3, "there"))).unwrap();
    block_on(log.close()).unwrap();
    let journal: Vec<_> =
        chain_files(&memory).into_iter().filter(|path| path.starts_with("/home/chain/journal")).collect();
    assert!(!journal.contains(&PathBuf::from("/home/chain/journal/00000000000000000000.seg")), "{journal:?}");
    (memory, world)
}

/// A log with several batches in one segment, after a clean stop.
fn longer() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for number in 1..4 {
        let seq = block_on(log.intend(verdict(number, Decision::Permit), intent(number))).unwrap().seq();
        block_on(log.settle(seq, outcome(number, seq, "found"))).unwrap();
        block_on(log.append(plain(number))).unwrap();
    }
    block_on(log.close()).unwrap();
    (memory, world)
}

fn chain_files(memory: &Memory) -> Vec<PathBuf> {
    memory.paths().into_iter().filter(|path| path.starts_with("/home/chain")).collect()
}

fn only_segment(memory: &Memory) -> PathBuf {
    let mut segments = chain_files(memory).into_iter().filter(|path| path.starts_with("/home/chain/journal"));
    let first = segments.next().unwrap();
    assert!(segments.next().is_none());
    first
}

/// Where the frames of a segment lie.
fn frames(segment: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = SEGMENT_HEADER;
    while at < segment.len() {
        let length = u32::from_be_bytes(segment[at + 8..at + 12].try_into().unwrap()) as usize;
        found.push((at, at + length));
        at += length;
    }
    found
}

/// A frame with other sections and a right checksum.
fn reframe(frame: &[u8], change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>)) -> Vec<u8> {
    let number = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap()) as usize;
    let (entries, contents, checkpoint) = (number(24), number(28), number(32));
    let mut sections = [frame[36..36 + entries].to_vec(), Vec::new(), Vec::new()];
    sections[1] = frame[36 + entries..36 + entries + contents].to_vec();
    sections[2] = frame[36 + entries + contents..36 + entries + contents + checkpoint].to_vec();
    let [a, b, c] = &mut sections;
    change(a, b, c);
    let mut new = frame[..8].to_vec();
    let length = 40 + sections.iter().map(Vec::len).sum::<usize>();
    new.extend(u32::try_from(length).unwrap().to_be_bytes());
    new.extend(&frame[12..24]);
    sections.iter().for_each(|section| new.extend(u32::try_from(section.len()).unwrap().to_be_bytes()));
    sections.iter().for_each(|section| new.extend(section));
    let checksum = crc32fast::hash(&new);
    new.extend(checksum.to_be_bytes());
    new
}

/// Runs a case on a copy, and sees that the verifier finds it. Opening refuses and writes nothing; or else what is wrong was
/// published, and opening, which has the journal, publishes it again or leaves it to the verifier.
fn must_find(memory: &Memory, world: &World, what: &str, change: impl FnOnce(&Memory)) -> Finding {
    let copy = memory.copy();
    change(&copy);
    let before = copy.everything();
    let world = world.with_files(copy.files());
    let finding = must_verify_as_damaged(&world, what);
    assert_eq!(copy.everything(), before, "{what}: verifying wrote something");
    match world.open() {
        Err(OpenError::Quarantined { .. }) => {
            assert_eq!(copy.everything(), before, "{what}: something was written");
        }
        Err(other) => panic!("{what}: open said {other}"),
        Ok(_) => {
            let published = ["tile", "checkpoints", "vault"].iter().any(|folder| finding.file.starts_with(folder));
            assert!(published, "{what}: the log opened with {finding}");
        }
    }
    finding
}

fn must_verify_as_damaged(world: &World, what: &str) -> Finding {
    match world.verify(world.pinned()) {
        Err(ScanError::Damaged(finding)) => finding,
        other => panic!("{what}: verify said {other:?}"),
    }
}

/// Everything the verifier is given: the chain and the sealed contents.
fn given(memory: &Memory) -> Vec<(PathBuf, PathBuf)> {
    let named = |path: PathBuf| {
        let name = path.strip_prefix("/home/chain").or_else(|_| path.strip_prefix("/home")).ok()?.to_owned();
        (path.starts_with("/home/chain") || name.starts_with("vault/content")).then_some((path, name))
    };
    memory.paths().into_iter().filter_map(named).collect()
}

/// Flips a bit in every byte whose number is `part` modulo `parts`, in every file. Of so many of those the log is opened too.
fn flip_each_byte((memory, world): &(Memory, World), part: usize, parts: usize, opened: usize) {
    let changing = memory.copy();
    let here = world.with_files(changing.files());
    let mut flipped = 0;
    for (path, name) in given(memory) {
        let bytes = memory.get(&path);
        let starts: Vec<_> = if name.starts_with("journal") { frames(&bytes) } else { Vec::new() };
        for at in (part..bytes.len()).step_by(parts) {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            let what = format!("{} flipped at {at}", name.display());
            flipped += 1;
            let finding = if flipped % opened == 0 {
                must_find(memory, world, &what, |copy| copy.put(&path, changed))
            } else {
                changing.put(&path, changed);
                must_verify_as_damaged(&here, &what)
            };
            assert_eq!(finding.file, name, "{what}: {finding}");
            if name.starts_with("journal") {
                let frame = starts.iter().rfind(|(start, _)| *start <= at).map_or(0, |(start, _)| *start);
                assert_eq!(finding.offset, frame as u64, "{what}: {finding}");
            }
        }
        changing.put(&path, bytes);
    }
    here.verify(here.pinned()).unwrap();
    assert!(flipped > 500, "only {flipped} bytes were flipped");
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is_first_half() {
    flip_each_byte(&small(), 0, 2, 1);
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is_second_half() {
    flip_each_byte(&small(), 1, 2, 1);
}

#[test]
fn every_flipped_byte_is_found_where_the_journal_no_longer_reaches_first_half() {
    flip_each_byte(&recycled(4), 0, 2, 11);
}

#[test]
fn every_flipped_byte_is_found_where_the_journal_no_longer_reaches_second_half() {
    flip_each_byte(&recycled(4), 1, 2, 11);
}

/// The head is written three times over, so that a flipped byte is no loss: it is never taken for what it is not, and a log
/// that was cut back is found all the same.
#[test]
fn a_flipped_byte_of_the_head_neither_hurts_a_whole_log_nor_hides_one_that_was_cut_back() {
    let (memory, world) = recycled(3);
    let path = Path::new("/home/head");
    let (head, whole) = (memory.get(path), world.verify(world.pinned()).unwrap().head);
    let journal = chain_files(&memory).into_iter().rfind(|path| path.starts_with("/home/chain/journal")).unwrap();
    let segment = memory.get(&journal);
    let last = *frames(&segment).last().unwrap();
    let cut = memory.copy();
    cut.put(&journal, segment[..last.0].to_vec());
    let (here, there) = (world.with_files(memory.files()), world.with_files(cut.files()));
    // Between the slots lie zeros that say nothing.
    for at in (0..head.len()).filter(|at| at % 4096 < 256 || at % 997 == 0) {
        let mut changed = head.clone();
        changed[at] ^= 1 << (at % 8);
        memory.put(path, changed.clone());
        let pinned = here.pinned().unwrap();
        assert!(pinned.origin == world.verifier().origin() && pinned.head.size <= whole.size, "head flipped at {at}");
        assert_eq!(here.verify(Some(pinned)).unwrap().head, whole, "head flipped at {at}");
        cut.put(path, changed);
        there.verify(there.pinned()).unwrap_err();
    }
    memory.put(path, vec![b'x'; head.len()]);
    assert!(ephor_chain::PinnedHead::load(path, &*here.files).is_err());
}

/// Of the public keys every byte counts: a flipped one gives no keys, or some under which the log is another's.
#[test]
fn a_flipped_byte_of_the_public_keys_never_verifies_the_log() {
    let (_, world) = recycled(3);
    let text = world.verifier().to_string().into_bytes();
    let (mut unread, mut foreign) = (0, 0);
    for at in 0..text.len() {
        for bit in [1u8 << (at % 7), 0x20] {
            let mut changed = text.clone();
            changed[at] ^= bit;
            let keys = String::from_utf8(changed).ok().and_then(|text| text.parse::<ephor_tlog::VerifierKeys>().ok());
            // White space around the lines is none of the keys.
            let Some(keys) = keys.filter(|keys| *keys != world.verifier()) else {
                unread += 1;
                continue;
            };
            let against =
                ephor_chain::Against { keys: &keys, head: None, vault: Some(&world.config.vault), from: None };
            let verified = ephor_chain::verify(&world.config.folder, &world.files, against, |_| ());
            assert!(matches!(verified, Err(ScanError::Damaged(_))), "byte {at}: {verified:?}");
            foreign += 1;
        }
    }
    println!("{unread} give no other keys, and {foreign} those of another log");
}

#[test]
fn a_flipped_byte_is_found_in_tiles_and_bundles_that_are_full() {
    let log = recycled(300);
    let names: Vec<_> = given(&log.0).into_iter().map(|(_, name)| name).collect();
    for name in ["tile/0/000", "tile/1/000.p/1", "tile/entries/000", "vault/content/000", "vault/content/001"] {
        assert!(names.contains(&PathBuf::from(name)), "{name} of {names:?}");
    }
    flip_each_byte(&log, 5, 41, 1);
}

#[test]
fn a_file_cut_anywhere_is_found() {
    for (memory, world) in [small(), recycled(3)] {
        for (path, name) in given(&memory) {
            let bytes = memory.get(&path);
            for length in (0..bytes.len()).step_by(29).chain(bytes.len() - 40.min(bytes.len())..bytes.len()) {
                let what = format!("{} cut at {length}", path.display());
                let finding = must_find(&memory, &world, &what, |copy| copy.put(&path, bytes[..length].to_vec()));
                assert!(finding.file == name || finding.damage.to_string().contains("comes next"), "{what}: {finding}");
            }
        }
    }
}

#[test]
fn a_file_that_is_gone_or_does_not_belong_is_found() {
    for (memory, world) in [small(), recycled(3), recycled(300)] {
        let partial = |name: &Path| name.parent().is_some_and(|folder| folder.extension().is_some());
        for (path, name) in given(&memory) {
            // What was kept beyond the published checkpoint is not missed, nor what an earlier checkpoint needed.
            if name.starts_with("checkpoints") || partial(&name) && is_superseded(&memory, &name) {
                continue;
            }
            let finding = must_find(&memory, &world, &format!("{} gone", path.display()), |copy| copy.take_away(&path));
            assert!(finding.file == name || name.starts_with("journal"), "{} gone: {finding}", name.display());
        }
        let strange = [
            "other",
            "journal/00000000000000000007.bak",
            "journal/7.seg",
            "tile/other",
            "tile/0/0",
            "tile/0/000.bak",
            "tile/entries/000.p/256",
            "tile/entries/x000/000",
            "checkpoints/7",
            "checkpoints/other",
        ];
        for name in strange {
            let path = Path::new("/home/chain").join(name);
            let finding = must_find(&memory, &world, name, |copy| copy.put_deep(&path, b"x".to_vec()));
            assert_eq!((finding.damage, finding.file), (Damage::UnknownFile, PathBuf::from(name)));
        }
    }
}

/// Whether a wider tile of the same index lies beside it.
fn is_superseded(memory: &Memory, name: &Path) -> bool {
    let width = |path: &Path| path.file_name()?.to_str()?.parse::<u32>().ok();
    let path = Path::new("/home/chain").join(name);
    let beside = memory.paths().into_iter().filter(|other| other.parent() == path.parent());
    let whole = path.parent().unwrap().with_extension("");
    memory.paths().contains(&whole) || beside.into_iter().any(|other| width(&other) > width(&path))
}

#[test]
fn published_files_swapped_with_each_other_are_found() {
    let (memory, world) = recycled(300);
    let files: Vec<_> = given(&memory).into_iter().filter(|(_, name)| !name.starts_with("journal")).collect();
    for (number, (one, _)) in files.iter().enumerate() {
        for (other, _) in &files[number + 1..] {
            let (first, second) = (memory.get(one), memory.get(other));
            if first == second {
                continue;
            }
            must_find(&memory, &world, &format!("{} for {}", one.display(), other.display()), |copy| {
                copy.put(one, second);
                copy.put(other, first);
            });
        }
    }
}

#[test]
fn entries_of_a_bundle_swapped_dropped_or_repeated_are_found() {
    let (memory, world) = recycled(3);
    let width = Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap().head.size;
    let name = PathBuf::from(format!("tile/entries/000.p/{width}"));
    let path = Path::new("/home/chain").join(&name);
    let bytes = memory.get(&path);
    let entries = ephor_tlog::tile::bundle::parse(&bytes, u16::try_from(width).unwrap()).unwrap();
    let must_find = |what: String, order: Vec<usize>| {
        let mut bundle = Vec::new();
        order.iter().for_each(|place| ephor_tlog::tile::bundle::push(&mut bundle, entries[*place]).unwrap());
        let finding = must_find(&memory, &world, &what, |copy| copy.put(&path, bundle));
        assert_eq!(finding.file, name, "{what}");
    };
    let all: Vec<_> = (0..entries.len()).collect();
    for at in 0..entries.len() {
        let (mut dropped, mut repeated) = (all.clone(), all.clone());
        dropped.remove(at);
        repeated.insert(at, at);
        must_find(format!("entry {at} dropped"), dropped);
        must_find(format!("entry {at} repeated"), repeated);
        for other in at + 1..entries.len() {
            let mut swapped = all.clone();
            swapped.swap(at, other);
            must_find(format!("entries {at} and {other} swapped"), swapped);
        }
    }
}

#[test]
fn a_published_log_cut_back_to_any_earlier_checkpoint_is_found_with_the_pinned_head() {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 10_000;
    let (log, _) = world.open().unwrap();
    let mut earlier = Vec::new();
    for number in 0..6 {
        block_on(log.append(message(number, "hello"))).unwrap();
        block_on(log.publish()).unwrap();
        earlier.push(memory.copy());
    }
    block_on(log.close()).unwrap();
    let head = memory.get(Path::new("/home/head"));
    for (number, copy) in earlier.into_iter().enumerate() {
        // From the folder alone it cannot be seen.
        let world = world.with_files(copy.files());
        assert!(world.verify(None).is_ok());
        copy.put(Path::new("/home/head"), head.clone());
        let finding = world.must_be_damaged(&format!("cut back to round {number}"));
        assert!(matches!(finding.damage, Damage::CutBack { .. }), "{finding}");
    }
}

#[test]
fn bytes_after_a_clean_stop_are_found_and_zeros_are_not_bytes() {
    let (memory, world) = longer();
    let path = only_segment(&memory);
    let bytes = memory.get(&path);
    let finding = must_find(&memory, &world, "garbage", |copy| copy.put(&path, [&bytes[..], b"\0\0more"].concat()));
    assert_eq!((finding.damage, finding.offset), (Damage::AfterStop, bytes.len() as u64));
    memory.put(&path, [&bytes[..], &[0; 9000]].concat());
    assert!(world.verify(world.pinned()).is_ok());
    world.open().unwrap();
}

#[test]
fn batches_swapped_dropped_or_repeated_are_found() {
    let (memory, world) = longer();
    let path = only_segment(&memory);
    let bytes = memory.get(&path);
    let frames = frames(&bytes);
    assert!(frames.len() >= 6);
    let rebuild = |order: &[usize]| {
        let mut new = bytes[..SEGMENT_HEADER].to_vec();
        order.iter().for_each(|index| new.extend(&bytes[frames[*index].0..frames[*index].1]));
        new
    };
    let all: Vec<_> = (0..frames.len()).collect();
    for at in 0..frames.len() {
        let mut dropped = all.clone();
        dropped.remove(at);
        must_find(&memory, &world, &format!("batch {at} dropped"), |copy| copy.put(&path, rebuild(&dropped)));
        let mut repeated = all.clone();
        repeated.insert(at, at);
        let finding =
            must_find(&memory, &world, &format!("batch {at} repeated"), |copy| copy.put(&path, rebuild(&repeated)));
        assert_eq!(finding.offset, frames[at].1 as u64);
        for other in at + 1..frames.len() {
            let mut swapped = all.clone();
            swapped.swap(at, other);
            let what = format!("batches {at} and {other} swapped");
            let finding = must_find(&memory, &world, &what, |copy| copy.put(&path, rebuild(&swapped)));
            assert_eq!(finding.offset, frames[at].0 as u64, "{what}");
        }
    }
}

#[test]
fn entries_and_contents_changed_with_a_right_checksum_are_found() {
    let (memory, world) = longer();
    let path = only_segment(&memory);
    let bytes = memory.get(&path);
    let (start, end) = frames(&bytes)[1];
    let put = |copy: &Memory, frame: Vec<u8>| copy.put(&path, [&bytes[..start], &frame, &bytes[end..]].concat());
    let frame = &bytes[start..end];
    type Change = fn(&mut Vec<u8>, &mut Vec<u8>, &mut Vec<u8>);
    let cases: [(&str, Change); 6] = [
        ("an entry dropped", |entries, _, _| {
            let length = usize::from(u16::from_be_bytes([entries[0], entries[1]])) + 2;
            entries.drain(..length);
        }),
        ("an entry repeated", |entries, _, _| {
            let length = usize::from(u16::from_be_bytes([entries[0], entries[1]])) + 2;
            let first = entries[..length].to_vec();
            entries.splice(0..0, first);
        }),
        ("a byte of an entry", |entries, _, _| *entries.last_mut().unwrap() ^= 1),
        ("a byte of a content", |_, contents, _| contents[30] ^= 1),
        ("a content cut", |_, contents, _| contents.truncate(contents.len() - 1)),
        ("a content added", |_, contents, _| contents.push(0)),
    ];
    for (what, change) in cases {
        let finding = must_find(&memory, &world, what, |copy| put(copy, reframe(frame, change)));
        assert_eq!(finding.offset, start as u64, "{what}");
    }
    assert_eq!(reframe(frame, |_, _, _| ()), frame);
}

/// Replaces the signature lines of every checkpoint in the log, also the published one.
fn resign(memory: &Memory, change: impl Fn(&str, &mut Vec<String>)) {
    let path = only_segment(memory);
    let bytes = memory.get(&path);
    let rewrite = |note: &[u8]| {
        let text = String::from_utf8(note.to_vec()).unwrap();
        let (body, lines) = text.split_once("\n\n").unwrap();
        let mut lines: Vec<_> = lines.lines().map(str::to_owned).collect();
        change(&format!("{body}\n"), &mut lines);
        format!("{body}\n\n{}\n", lines.join("\n")).into_bytes()
    };
    let mut new = bytes[..SEGMENT_HEADER].to_vec();
    for (start, end) in frames(&bytes) {
        new.extend(reframe(&bytes[start..end], |_, _, note| *note = rewrite(note)));
    }
    memory.put(&path, new);
    let published = Path::new("/home/chain/checkpoint");
    memory.put(published, rewrite(&memory.get(published)));
}

#[test]
fn a_signature_of_another_key_or_one_algorithm_alone_is_found() {
    let (memory, world) = longer();
    let other = Memory::default();
    let stranger = World::new(other.files(), Path::new("/home")).with_seed(1000);
    let (log, _) = stranger.open().unwrap();
    block_on(log.close()).unwrap();
    let foreign = Checkpoint::parse(&other.get(Path::new("/home/chain/checkpoint"))).unwrap().note.signatures;

    must_find(&memory, &world, "Ed25519 alone", |copy| resign(copy, |_, lines| lines.truncate(1)));
    must_find(&memory, &world, "ML-DSA alone", |copy| resign(copy, |_, lines| drop(lines.remove(0))));
    for index in 0..2 {
        let what = format!("signature {index} of another key");
        let finding = must_find(&memory, &world, &what, |copy| {
            resign(copy, |_, lines| {
                // Our name and key id over another key's signature.
                let (name, own) = lines[index].rsplit_once(' ').unwrap();
                let mut bytes = BASE64.decode(own).unwrap();
                bytes.splice(4.., foreign[index].signature.clone());
                lines[index] = format!("{name} {}", BASE64.encode(bytes));
            });
        });
        assert!(matches!(finding.damage, Damage::Signature(_)), "{what}: {finding}");
    }
}

#[test]
fn a_wrong_signature_in_the_middle_is_found_by_the_verifier() {
    let (memory, world) = longer();
    let path = only_segment(&memory);
    let bytes = memory.get(&path);
    let (start, end) = frames(&bytes)[2];
    let frame = reframe(&bytes[start..end], |_, _, note| {
        let at = note.len() - 200;
        note[at] = if note[at] == b'A' { b'B' } else { b'A' };
    });
    memory.put(&path, [&bytes[..start], &frame, &bytes[end..]].concat());
    match world.verify(world.pinned()) {
        Err(ScanError::Damaged(Finding { offset, damage: Damage::Signature(_), .. })) => {
            assert_eq!(offset, start as u64)
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_log_of_another_origin_is_found() {
    let (_, world) = longer();
    let stranger = world.with_seed(1000);
    match stranger.verify(None) {
        Err(ScanError::Damaged(finding)) => assert_eq!(finding.damage, Damage::Keys),
        other => panic!("{other:?}"),
    }
    assert!(matches!(stranger.open(), Err(OpenError::Quarantined { .. })));
}

#[test]
fn a_log_cut_back_to_an_earlier_checkpoint_is_found_with_the_pinned_head() {
    let (memory, world) = longer();
    let path = only_segment(&memory);
    let bytes = memory.get(&path);
    let frames = frames(&bytes);
    for (start, end) in &frames[..frames.len() - 1] {
        let frame = &bytes[*start..*end];
        let copy = memory.copy();
        copy.put(&path, bytes[..*end].to_vec());
        let mut note = Vec::new();
        reframe(frame, |_, _, found| note.clone_from(found));
        copy.put(Path::new("/home/chain/checkpoint"), note);
        let world = world.with_files(copy.files());
        // From the folder alone it cannot be seen.
        assert!(world.verify(None).is_ok());
        let before = copy.everything();
        let finding = world.must_be_damaged("cut back");
        assert!(matches!(finding.damage, Damage::CutBack { .. }), "{finding}");
        assert_eq!(copy.everything(), before);
    }
}

#[test]
fn a_head_that_is_gone_garbled_or_of_another_log_is_found() {
    let (memory, world) = longer();
    let head = Path::new("/home/head");
    let open = |change: &dyn Fn(&Memory)| {
        let copy = memory.copy();
        change(&copy);
        let before = copy.everything();
        let result = world.with_files(copy.files()).open();
        assert_eq!(copy.everything(), before);
        match result {
            Err(OpenError::Quarantined { finding }) => finding.damage,
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it opened"),
        }
    };
    assert_eq!(open(&|copy| copy.take_away(head)), Damage::HeadMissing);
    assert_eq!(open(&|copy| copy.put(head, b"nonsense".to_vec())), Damage::Head);
    let other = Memory::default();
    let stranger = World::new(other.files(), Path::new("/home")).with_seed(1000);
    block_on(stranger.open().unwrap().0.close()).unwrap();
    assert_eq!(open(&|copy| copy.put(head, other.get(head))), Damage::HeadForeign);
}

#[test]
fn keys_of_sessions_without_a_journal_are_a_lost_journal() {
    let (memory, world) = small();
    for path in memory.paths().into_iter().filter(|path| !path.starts_with("/home/vault")) {
        memory.take_away(&path);
    }
    let before = memory.everything();
    match world.open() {
        Err(OpenError::Quarantined { finding }) => assert_eq!(finding.damage, Damage::JournalMissing),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
    assert_eq!(memory.everything(), before);
}
