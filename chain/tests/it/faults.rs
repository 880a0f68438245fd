//! A fault at every single operation of a history: acknowledged ⊆ recovered ⊆ submitted, in order, and the log verifies.

use std::{path::Path, sync::Arc, time::Duration};

use ephor_base::Decision;
use ephor_chain::{AppendError, Log, OpenError};

use crate::common::{
    Seeded, World, block_on, intent,
    memory::{After, Fault, Memory},
    message, outcome, plain, tag, verdict,
};

/// What a history has asked for, in order, and up to where it was promised.
#[derive(Default, Debug)]
struct Book {
    submitted: Vec<String>,
    acknowledged: Vec<String>,
    noted: Vec<String>,
    intents: u64,
}

impl Book {
    /// Everything noted so far is on the disk.
    fn flushed(&mut self) {
        self.acknowledged.append(&mut self.noted);
    }

    fn append(&mut self, log: &Log, number: u64) -> Result<(), AppendError> {
        self.submitted.push(format!("m{number}"));
        block_on(log.append(message(number, "text")))?;
        self.flushed();
        self.acknowledged.push(format!("m{number}"));
        Ok(())
    }

    fn note(&mut self, log: &Log, number: u64) -> Result<(), AppendError> {
        self.submitted.push(format!("n{number}"));
        block_on(log.note(plain(number)))?;
        self.noted.push(format!("n{number}"));
        Ok(())
    }

    fn call(&mut self, log: &Log, number: u64) -> Result<(), AppendError> {
        let name = format!("i{}", intent(number).arguments.short());
        self.submitted.push(name.clone());
        self.intents += 1;
        let durable = block_on(log.intend(verdict(number, Decision::Permit), intent(number)))?;
        self.flushed();
        self.acknowledged.push(name);
        self.submitted.push("odone".into());
        block_on(log.settle(durable.seq(), outcome(number, durable.seq(), "found")))?;
        self.noted.push("odone".into());
        Ok(())
    }
}

/// A full disk is an answer, and the history goes on.
fn go_on<E>(result: Result<(), AppendError>, end: E) -> Result<(), E> {
    match result {
        Ok(()) | Err(AppendError::Full { .. }) => Ok(()),
        Err(_) => Err(end),
    }
}

/// Publishes, an hour after the last time. An error in it is no error of the log.
fn publish(log: &Log, world: &World) -> Result<(), ()> {
    world.later(3_600_000_000);
    match block_on(log.publish()) {
        Ok(_) | Err(AppendError::Unpublished(_) | AppendError::Full { .. }) => Ok(()),
        Err(_) => Err(()),
    }
}

fn history(world: &World, book: &mut Book) -> Result<(), ()> {
    let (log, _) = world.open().map_err(drop)?;
    go_on(book.append(&log, 1), ())?;
    go_on(book.note(&log, 2), ())?;
    go_on(book.call(&log, 3), ())?;
    publish(&log, world)?;
    go_on(book.append(&log, 4), ())?;
    go_on(book.note(&log, 5), ())?;
    publish(&log, world)?;
    go_on(book.call(&log, 9), ())?;
    publish(&log, world)?;
    block_on(log.close()).map_err(drop)?;
    book.flushed();
    let (log, _) = world.open().map_err(drop)?;
    go_on(book.call(&log, 6), ())?;
    go_on(book.append(&log, 7), ())?;
    drop(log);
    let (log, _) = world.open().map_err(drop)?;
    go_on(book.append(&log, 8), ())?;
    block_on(log.close()).map_err(drop)?;
    book.flushed();
    Ok(())
}

fn is_subsequence(part: &[String], whole: &[String]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|wanted| whole.any(|found| found == wanted))
}

fn world_on(memory: &Memory) -> World {
    let mut world = World::new(memory.files(), Path::new("/home"));
    // So small that the history crosses into other segments.
    world.config.segment_bytes = 12_000;
    world
}

/// Reopens what a crash left, and holds it against the book.
fn check(left: &Memory, book: &Book, what: &str) {
    let world = world_on(left);
    let verified = world.verify(world.pinned().filter(|_| book.submitted.len() > 1));
    if !book.acknowledged.is_empty() {
        verified.unwrap_or_else(|error| panic!("{what}: before reopening: {error}"));
    }
    let (log, recovered) = world.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    let entries: Vec<_> =
        log.entries().map(|stored| stored.unwrap_or_else(|error| panic!("{what}: {error}"))).collect();
    let found: Vec<_> = entries.iter().filter_map(|stored| tag(&stored.entry.fact)).collect();
    assert!(is_subsequence(&book.acknowledged, &found), "{what}: {:?} of {found:?}", book.acknowledged);
    assert!(is_subsequence(&found, &book.submitted), "{what}: {found:?} of {:?}", book.submitted);
    let kinds = |kind: &str| entries.iter().filter(|stored| stored.entry.fact.kind() == kind).count();
    assert_eq!(kinds("intent"), kinds("outcome"), "{what}: every intent has an outcome");
    assert!(recovered.indeterminate.len() as u64 <= book.intents);
    block_on(log.append(plain(99))).unwrap_or_else(|error| panic!("{what}: {error}"));
    block_on(log.close()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let report = world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: after reopening: {error}"));
    assert!(report.stopped && report.open_intents == 0 && report.torn_bytes == 0);
    check_cut(&left.after(After::PowerCut), book, what);
}

/// All of it is on the disk, and not only in memory where it could be read.
fn check_cut(left: &Memory, book: &Book, what: &str) {
    let world = world_on(left);
    world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: after the power went: {error}"));
    let (log, _) = world.open().unwrap_or_else(|error| panic!("{what}: after the power went: {error}"));
    let facts = log.entries().map(|stored| stored.unwrap_or_else(|error| panic!("{what}: {error}")).entry.fact);
    let found: Vec<_> = facts.filter_map(|fact| tag(&fact)).collect();
    assert!(is_subsequence(&book.acknowledged, &found), "{what}: {:?} of {found:?}", book.acknowledged);
    assert!(found.contains(&tag(&plain(99).fact).unwrap()), "{what}: {found:?}");
}

/// Runs the history with a fault at each operation, until one comes after its end.
fn every_operation(fault: Fault, afters: impl Fn(u64) -> Vec<After>) {
    for operation in 1.. {
        let memory = Memory::default();
        memory.fail_at(operation, fault);
        let mut book = Book::default();
        let ended = history(&world_on(&memory), &mut book);
        for after in afters(operation) {
            check(&memory.after(after), &book, &format!("{fault:?} at operation {operation}, {after:?}"));
        }
        if memory.operations() < operation {
            assert!(ended.is_ok() && operation > 450, "the history has {operation} operations");
            let left = |folder: &str| memory.paths().iter().filter(|path| path.starts_with(folder)).count();
            assert!(left("/home/chain/checkpoints") > 2 && left("/home/chain/journal") == 1, "{:?}", memory.paths());
            return;
        }
    }
}

#[test]
fn a_kill_or_power_cut_at_every_operation_loses_nothing_that_was_acknowledged() {
    every_operation(Fault::Crash, |operation| {
        let power = if operation.is_multiple_of(3) { After::PowerCut } else { After::Mixed(operation) };
        vec![After::Kill, power]
    });
}

#[test]
fn an_input_or_output_error_at_every_operation_loses_nothing_that_was_acknowledged() {
    every_operation(Fault::Eio, kill_or_power_cut);
}

#[test]
fn a_sync_that_fails_once_anywhere_loses_nothing_that_was_acknowledged_before_or_since() {
    for sync in 1.. {
        let memory = Memory::default();
        memory.fail_sync(sync);
        let mut book = Book::default();
        let ended = history(&world_on(&memory), &mut book);
        if memory.syncs() < sync {
            assert!(ended.is_ok() && sync > 60, "the history has {sync} syncs");
            return;
        }
        for after in [After::Kill, After::PowerCut, After::Mixed(sync)] {
            check(&memory.after(after), &book, &format!("sync {sync} failed, {after:?}"));
        }
    }
}

#[test]
fn what_a_failed_round_left_is_written_anew_also_after_a_kill_and_only_then_leaves_the_journal() {
    for sync in 1.. {
        let memory = Memory::default();
        let world = world_on(&memory);
        let mut book = Book::default();
        let (log, _) = world.open().unwrap();
        for number in 1..4 {
            book.append(&log, number).unwrap();
        }
        memory.fail_sync(memory.syncs() + sync);
        let failed = block_on(log.publish()).is_err();
        // A node that is killed where it believes that it failed, and one that goes on.
        for killed in [true, false] {
            let left = if killed { memory.after(After::Kill) } else { memory.clone() };
            let world = world_on(&left);
            let (mut log, mut more) = (log.clone(), Book { submitted: book.submitted.clone(), ..Book::default() });
            more.acknowledged = book.acknowledged.clone();
            if killed {
                log = world.open().unwrap().0;
            }
            if go_on(more.append(&log, 50), ()).is_err() {
                continue;
            }
            let _again = block_on(log.publish());
            drop(log);
            check(&left.after(After::PowerCut), &more, &format!("sync {sync}, killed {killed}"));
        }
        if !failed && sync > 3 {
            return;
        }
    }
}

#[test]
fn a_torn_write_at_every_operation_loses_nothing_that_was_acknowledged() {
    every_operation(Fault::Torn, kill_or_power_cut);
}

#[test]
fn a_full_disk_at_every_operation_loses_nothing_that_was_acknowledged() {
    every_operation(Fault::Enospc, kill_or_power_cut);
}

fn kill_or_power_cut(operation: u64) -> Vec<After> {
    let power = if operation.is_multiple_of(3) { After::PowerCut } else { After::Mixed(operation) };
    vec![if operation.is_multiple_of(2) { After::Kill } else { power }]
}

#[test]
fn a_short_read_or_write_at_every_operation_is_not_noticed() {
    for operation in 1..60 {
        let memory = Memory::default();
        memory.fail_at(operation, Fault::Short);
        let mut book = Book::default();
        history(&world_on(&memory), &mut book).unwrap();
        check(&memory.after(After::PowerCut), &book, &format!("short at operation {operation}"));
    }
}

#[test]
fn after_an_error_nothing_more_is_acknowledged_and_everyone_is_told() {
    let memory = Memory::default();
    let world = world_on(&memory);
    let (log, _) = world.open().unwrap();
    memory.die();
    let failed = block_on(log.append(plain(1)));
    assert!(
        matches!(&failed, Err(AppendError::Failed(failure)) if failure.to_string().contains("start the node again"))
    );
    assert!(matches!(block_on(log.note(plain(2))), Err(AppendError::Failed(_))));
    assert!(matches!(block_on(log.flush()), Err(AppendError::Failed(_))));
    assert_eq!(log.head().size, 2);
    assert!(matches!(block_on(log.close()), Err(AppendError::Failed(_))));
}

#[test]
fn on_a_full_disk_an_intent_is_refused_and_the_outcomes_of_earlier_ones_still_land() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    let early: Vec<_> =
        (1..5).map(|n| block_on(log.intend(verdict(n, Decision::Permit), intent(n))).unwrap().seq()).collect();
    memory.limit(Some(memory.used()));
    let mut refused = None;
    let mut late = Vec::new();
    for number in 5..100 {
        match block_on(log.intend(verdict(number, Decision::Permit), intent(number))) {
            Ok(durable) => late.push((number, durable.seq())),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(AppendError::Full { .. })), "{refused:?}");
    let size = log.head().size;
    // One at a time, each in a batch of its own, and each as large as the reservation allows.
    let text = "x".repeat(usize::try_from(ephor_chain::OUTCOME_ROOM).unwrap() - 500);
    let early = early.into_iter().enumerate().map(|(index, seq)| (index as u64 + 1, seq));
    let mut settled = 0;
    for (number, seq) in early.chain(late) {
        block_on(log.settle(seq, outcome(number, seq, &text))).unwrap();
        block_on(log.flush()).unwrap();
        settled += 1;
    }
    assert_eq!(log.head().size, size + settled);
    memory.limit(None);
    block_on(log.close()).unwrap();
    assert_eq!(world.verify(world.pinned()).unwrap().open_intents, 0);
}

#[test]
fn on_a_full_disk_nothing_opens_and_nothing_is_lost() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    block_on(log.append(plain(1))).unwrap();
    block_on(log.close()).unwrap();
    memory.limit(Some(memory.used()));
    match world.open() {
        Err(error @ OpenError::Full { .. }) => assert!(error.to_string().contains("free at least")),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opened"),
    }
    memory.limit(None);
    let (log, recovered) = world.open().unwrap();
    assert!(recovered.clean);
    assert_eq!(log.head().size, 5);
}

#[test]
fn histories_of_many_threads_survive_a_kill_at_random_moments() {
    let chance = Seeded::new(1);
    for round in 0..40 {
        let memory = Memory::default();
        let mut world = world_on(&memory);
        // So that publishing gets in between.
        world.config.publish_every = Duration::from_micros(100);
        let (log, _) = world.open().unwrap();
        memory.fail_at(memory.operations() + 1 + chance.below(60), Fault::Crash);
        let threads: Vec<_> = (0..4u64)
            .map(|thread| {
                let log = log.clone();
                std::thread::spawn(move || {
                    let numbers = (0..20).map(|n| thread * 100 + n);
                    numbers.take_while(|n| block_on(log.append(message(*n, "text"))).is_ok()).collect::<Vec<_>>()
                })
            })
            .collect();
        let acknowledged: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        drop(log);
        let left = memory.after(if round % 2 == 0 { After::Kill } else { After::Mixed(round) });
        let (log, _) = world.with_files(left.files()).open().unwrap();
        let found: Vec<_> = log.entries().filter_map(|stored| tag(&stored.unwrap().entry.fact)).collect();
        for number in acknowledged {
            assert!(found.contains(&format!("m{number}")), "round {round}: m{number} is lost");
        }
        // One thread's records are in its own order.
        for thread in 0..4 {
            let of_thread = |number: &u64| number / 100 == thread;
            let mine: Vec<u64> = found.iter().map(|tag| tag[1..].parse().unwrap()).filter(of_thread).collect();
            assert!(mine.is_sorted());
        }
        drop(Arc::new(log));
    }
}
