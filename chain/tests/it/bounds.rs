//! What is bounded: what a snapshot repeats, what it costs, how large a record may be, and whom a fault takes with it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ephor_base::{Receipt, Seat, SessionId, Timestamp};
use ephor_chain::{AppendError, Log, OpenError, order::Order};
use ephor_record::{Cause, Content, Entry, Fact, Missed, Record, Signal, Subject, snapshot::MAX_ITEM_BYTES};

use crate::{
    common::{OPERATOR, World, block_on, memory::Memory, message, outgrow, plain},
    standing::Judges,
};

fn by() -> Subject {
    Subject { operator: Some(OPERATOR), ..Subject::default() }
}

fn schedule(name: &str, cron: String) -> Record {
    let fact = Fact::Schedule { name: name.into(), cron, zone: "UTC".into(), missed: Missed::Once };
    let subject = Subject { session: Some(SessionId([7; 16])), ..by() };
    Record { subject, fact, content: None }
}

fn suspend(seat: Seat) -> Record {
    let fact = Fact::Signal { signal: Signal::Suspend, tree: false, cause: Cause::Operator, note: String::new() };
    Record { subject: Subject { seat: Some(seat), ..by() }, fact, content: None }
}

/// The bytes of the snapshots of a log, and of everything else.
fn bytes(log: &Log) -> (usize, usize) {
    block_on(log.flush()).unwrap();
    let entries = log.entries().map(|stored| stored.unwrap().entry);
    let (snapshots, others): (Vec<Entry>, Vec<Entry>) =
        entries.partition(|entry| matches!(entry.fact, Fact::Snapshot(_)));
    let count = |entries: Vec<Entry>| entries.iter().map(|entry| entry.to_bytes().len()).sum();
    (count(snapshots), count(others))
}

#[test]
fn what_would_stand_and_is_longer_than_a_snapshot_can_repeat_is_refused() {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 10_000;
    let (log, _) = world.open().unwrap();
    for length in [MAX_ITEM_BYTES, 48 << 10, 62_800] {
        let refused = block_on(log.append(schedule("x", "1".repeat(length))));
        assert!(matches!(refused, Err(AppendError::Misplaced(_))), "{refused:?}");
        let refused = block_on(log.append(suspend(Seat::root(&"s".repeat(length + 1)))));
        assert!(matches!(refused, Err(AppendError::Misplaced(_))), "{refused:?}");
    }
    block_on(log.append(schedule("x", "1".repeat(MAX_ITEM_BYTES - 100)))).unwrap();
    block_on(log.append(suspend(Seat::root(&"s".repeat(MAX_ITEM_BYTES - 100))))).unwrap();
    outgrow(&log, &world);
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    let (log, opened) = world.open().unwrap();
    assert_eq!(opened.standing.schedules().count(), 1);
    block_on(log.close()).unwrap();
}

#[test]
fn a_record_that_no_frame_or_entry_could_hold_is_refused_and_the_log_goes_on() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    let long = Fact::Lease { secret: "s".repeat(65_535) };
    let refused = block_on(log.append(Record { subject: Subject::default(), fact: long, content: None }));
    assert!(matches!(refused, Err(AppendError::TooLarge { most: 65_535, .. })), "{refused:?}");
    let content = |length| Record { content: Some(Content::Text("t".repeat(length))), ..message(1, "") };
    let refused = block_on(log.append(content(17 << 20)));
    assert!(matches!(refused, Err(AppendError::TooLarge { .. })), "{refused:?}");
    block_on(log.append(content((16 << 20) - 8))).unwrap();
    block_on(log.close()).unwrap();
    world.open().unwrap();
}

#[test]
fn erased_sessions_leave_nothing_in_snapshots_and_stay_erased() {
    let world_of = |count: u8| {
        let memory = Memory::default();
        let mut world = World::new(memory.files(), Path::new("/home"));
        world.config.segment_bytes = 10_000;
        let (log, _) = world.open().unwrap();
        for number in 0..count {
            let session = SessionId([number + 1; 16]);
            let subject = Subject { session: Some(session), ..Subject::default() };
            block_on(log.append(Record { subject, ..message(1, "") })).unwrap();
            block_on(log.erase(session, Vec::new(), String::new(), OPERATOR)).unwrap();
        }
        outgrow(&log, &world);
        block_on(log.close()).unwrap();
        (memory, world)
    };
    let largest = |world: &World| {
        let (log, _) = world.open().unwrap();
        let parts = log.entries().map(|stored| stored.unwrap().entry);
        parts.filter(|entry| matches!(entry.fact, Fact::Snapshot(_))).map(|entry| entry.to_bytes().len()).max().unwrap()
    };
    let ((_, few), (memory, many)) = (world_of(2), world_of(80));
    assert!(largest(&many) < largest(&few) + 16, "{} and {}", largest(&many), largest(&few));
    // The segment in which it was erased is gone, and it never gets another key.
    let (log, _) = many.open().unwrap();
    let subject = Subject { session: Some(SessionId([3; 16])), ..Subject::default() };
    let refused = block_on(log.append(Record { subject, ..message(1, "") }));
    assert!(matches!(refused, Err(AppendError::Erased { .. })), "{refused:?}");
    let again = block_on(log.erase(SessionId([3; 16]), Vec::new(), String::new(), OPERATOR));
    assert!(matches!(again, Err(ephor_chain::EraseError::Already(_))), "{again:?}");
    block_on(log.close()).unwrap();
    assert!(!memory.paths().iter().any(|path| path.starts_with("/home/vault/keys")), "{:?}", memory.paths());
    many.verify(many.pinned()).unwrap();
}

#[test]
fn snapshots_stay_a_part_of_what_is_written_however_much_stands() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for number in 0..4_000 {
        block_on(log.note(suspend(Seat::root(&format!("{number:0100}"))))).unwrap();
    }
    for number in 0..60 {
        block_on(log.append(plain(number))).unwrap();
        block_on(log.publish()).unwrap();
    }
    let (snapshots, others) = bytes(&log);
    assert!(snapshots < 2 * others, "{snapshots} bytes of snapshots beside {others}");
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
}

#[test]
fn both_verifiers_hold_what_stands_to_its_bounds() {
    let judges = Judges::new();
    let facts = |records: Vec<Record>| records.into_iter().map(|record| (record.subject, record.fact)).collect();
    let seat = |length| suspend(Seat::root(&"s".repeat(length)));
    let fits = vec![schedule("x", "1".repeat(MAX_ITEM_BYTES - 100)), seat(MAX_ITEM_BYTES)];
    judges.agree("as much as may be", true, facts(fits));
    judges.agree("a longer schedule", false, facts(vec![schedule("x", "1".repeat(MAX_ITEM_BYTES))]));
    judges.agree("a longer seat", false, facts(vec![seat(MAX_ITEM_BYTES + 1)]));
}

/// An order that panics where it is told to.
struct Panics {
    holds: AtomicBool,
    taken: AtomicBool,
}

impl Order for Panics {
    fn holds(&self, _: Timestamp) -> bool {
        assert!(!self.holds.swap(false, Ordering::SeqCst), "as told");
        true
    }

    fn taken(&self, _: &Record, _: Receipt, _: Timestamp) {
        assert!(!self.taken.swap(false, Ordering::SeqCst), "as told");
    }
}

#[test]
fn who_panics_while_a_record_gets_its_place_takes_nobody_with_it() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    let order = Arc::new(Panics { holds: AtomicBool::new(true), taken: AtomicBool::new(true) });
    let with = log.in_order(Arc::clone(&order) as Arc<dyn Order>);
    for _ in 0..2 {
        let panicked = catch_unwind(AssertUnwindSafe(|| block_on(with.append(plain(1)))));
        assert!(panicked.is_err());
        block_on(log.append(plain(2))).unwrap();
    }
    block_on(with.append(plain(3))).unwrap();
    drop(with);
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
}

#[test]
fn a_clock_far_in_the_future_is_refused_and_leaves_the_record_as_it_was() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    block_on(log.append(plain(1))).unwrap();
    block_on(log.close()).unwrap();
    let before = memory.everything();
    world.still.set(9_000_000_000_000_000_000);
    let refused = world.open().map(drop);
    assert!(matches!(refused, Err(OpenError::Clock { .. })), "{refused:?}");
    assert_eq!(memory.everything(), before);
    world.still.set(1_795_226_999_000_000);
    let (log, _) = world.open().unwrap();
    assert!(log.time() < Timestamp(1_795_227_000_000_000));
    // A clock that leaps while the log is open is not believed either, and one that goes back does not take it along.
    for leap in [9_000_000_000_000_000_000, 1_000_000_000_000_000] {
        world.still.set(leap);
        block_on(log.append(plain(2))).unwrap();
        let last = log.entries().last().unwrap().unwrap().entry.time;
        assert!(last < Timestamp(1_795_227_000_000_000), "{last}");
    }
}
