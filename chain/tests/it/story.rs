//! The life of a log, through the public face.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ephor_base::{Budget, CallId, Decision, MessageId, Pid, Seq, TicketId};
use ephor_chain::{Against, AppendError, Log, Private, Vault, verify};
use ephor_record::{Content, Fact, Record, Restart, Subject};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, Head};

use crate::common::{
    self, SESSION, World, block_on,
    hooked::{Before, Hooked},
    intent,
    memory::Memory,
    message, outcome, plain, subject, tag, verdict,
};

fn world() -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    (memory, world)
}

fn facts(log: &Log) -> Vec<Fact> {
    log.entries().map(|stored| stored.unwrap().entry.fact).collect()
}

#[test]
fn a_new_log_begins_with_its_origin_and_its_boot() {
    let (_, world) = world();
    let (log, recovered) = world.open().unwrap();
    assert!(recovered.fresh && recovered.clean && recovered.boot == 1);
    assert_eq!((recovered.next_pid, recovered.next_call), (Pid(1), CallId(1)));
    let facts = facts(&log);
    assert!(matches!(&facts[0], Fact::Origin { ed25519, follows: None, .. } if ed25519 == world.verifier().ed25519()));
    assert!(matches!(&facts[1], Fact::Boot { number: 1, clean: true, trimmed_bytes: 0, .. }));
}

#[test]
fn pids_in_a_list_of_restarts_are_used_up() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let restart = Restart { name: "a".into(), reason: "killed".into(), exited: Some(Pid(7)), started: Some(Pid(41)) };
    let fact = Fact::Restarts { restarts: vec![restart] };
    block_on(log.append(Record { subject: Subject::default(), fact, content: None })).unwrap();
    block_on(log.close()).unwrap();
    assert!(world.verify(world.pinned()).is_ok());
    let (_log, recovered) = world.open().unwrap();
    assert_eq!(recovered.next_pid, Pid(42));
}

#[test]
fn everything_is_there_after_a_clean_stop_and_the_numbers_go_on() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let receipt = block_on(log.append(message(7, "hello"))).unwrap();
    let noted = block_on(log.note(plain(1))).unwrap();
    let durable = block_on(log.intend(verdict(4, Decision::Permit), intent(4))).unwrap();
    assert_eq!(durable.get().record(), &intent(4));
    assert_eq!(durable.get().verdict().seq, Seq(durable.seq().0 - 1));
    block_on(log.settle(durable.seq(), outcome(4, durable.seq(), "found"))).unwrap();
    block_on(log.close()).unwrap();

    let report = world.verify(world.pinned()).unwrap();
    assert!(report.stopped && report.against_head && report.open_intents == 0 && report.torn_bytes == 0);

    let (log, recovered) = world.open().unwrap();
    assert!(recovered.clean && !recovered.fresh && recovered.boot == 2 && recovered.indeterminate.is_empty());
    assert_eq!((recovered.next_pid, recovered.next_call), (Pid(4), CallId(5)));
    assert_eq!((recovered.next_message, recovered.next_ticket), (MessageId(8), TicketId(1)));
    let stored: Vec<_> = log.entries().map(Result::unwrap).collect();
    assert_eq!(stored[2].receipt, receipt);
    assert!(matches!(&stored[2].content, Private::Open(Content::Parts(parts)) if parts[0].text == "hello"));
    assert_eq!(stored[3].receipt, noted);
    let kinds: Vec<_> = stored.iter().map(|stored| stored.entry.fact.kind()).collect();
    assert_eq!(kinds, ["origin", "boot", "message", "lease", "verdict", "intent", "outcome", "stop", "boot"]);
    assert_eq!(log.head().size, 9);
}

#[test]
fn a_note_has_its_place_at_once_and_is_on_the_disk_after_a_flush() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let receipt = block_on(log.note(plain(1))).unwrap();
    assert_eq!((receipt.seq, log.head().size), (Seq(2), 2));
    assert_eq!(block_on(log.flush()).unwrap().size, 3);
    assert_eq!(log.head().size, 3);
    assert_eq!(block_on(log.flush()).unwrap().size, 3);
}

#[test]
fn a_note_that_nobody_waits_for_comes_to_the_disk_by_itself() {
    let (_, world) = world();
    let world = World { clock: Arc::new(common::RealClock::default()), ..world };
    let (log, _) = world.open().unwrap();
    block_on(log.note(plain(1))).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while log.head().size < 3 {
        assert!(std::time::Instant::now() < deadline, "the note stayed in memory");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_checkpoint_is_published_while_there_is_traffic() {
    let (memory, mut world) = world();
    world.config.publish_every = Duration::from_millis(1);
    let (log, _) = world.open().unwrap();
    block_on(log.append(plain(1))).unwrap();
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    loop {
        let published = Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap();
        published.check(&world.verifier(), &Signatures).unwrap();
        if published.head == log.head() {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "the checkpoint was not published");
    }
    assert_eq!(world.pinned().unwrap().head, log.head());
    // A log that is being written to can be verified and read.
    assert_eq!(world.verify(world.pinned()).unwrap().head, log.head());
}

#[test]
fn a_log_that_is_being_written_can_be_verified() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let writer = std::thread::spawn(move || {
        for number in 0..200 {
            block_on(log.append(message(number, &"x".repeat(3000)))).unwrap();
        }
        block_on(log.close()).unwrap();
    });
    let mut last = 0;
    while !writer.is_finished() {
        let size = world.verify(None).unwrap().head.size;
        assert!(size >= last);
        last = size;
    }
    writer.join().unwrap();
    assert_eq!(world.verify(world.pinned()).unwrap().head.size, 203);
}

#[test]
fn a_batch_that_is_finished_between_any_two_reads_is_no_damage() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    let journal = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let sizes = ["one", "two", "three"].map(|text| {
        block_on(log.append(message(1, text))).unwrap();
        memory.get(&journal).iter().rposition(|byte| *byte != 0).unwrap()
    });
    let whole = memory.get(&journal);
    // A writer that has written half of the last batch but one.
    let mut torn = whole.clone();
    torn[sizes[0].midpoint(sizes[1])..].fill(0);
    drop(log);

    let mut seen = BTreeSet::new();
    for reads in 0.. {
        let (here, after, at) = (memory.copy(), Arc::new(AtomicBool::new(false)), journal.clone());
        here.put(&journal, torn.clone());
        let (files, writer, bytes, was) = (here.files(), here.clone(), whole.clone(), Arc::clone(&after));
        let hook = move || {
            writer.overwrite(&at, bytes);
            was.store(true, Ordering::Relaxed);
        };
        let reader = world.with_files(Hooked::files(files, Before::Read(reads), &journal, hook));
        let report = reader.verify(None).unwrap_or_else(|error| panic!("finished before read {reads}: {error}"));
        seen.insert(report.head.size);
        if !after.load(Ordering::Relaxed) {
            break;
        }
    }
    assert_eq!(seen, [3, 5].into(), "without the torn batch, or with it and the one behind it");
}

#[test]
fn the_futures_can_be_sent_to_another_thread() {
    fn sendable<T: Send>(value: T) -> T {
        value
    }
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(sendable(log.note(plain(1)))).unwrap();
    block_on(sendable(log.intend(verdict(4, Decision::Permit), intent(4)))).unwrap();
    block_on(sendable(log.clone().flush())).unwrap();
    block_on(sendable(log.close())).unwrap();
}

#[test]
fn entries_are_never_earlier_than_those_before_them() {
    let (_, world) = world();
    let clock = Arc::new(common::StillClock::at(5_000_000));
    let world = World { clock: Arc::clone(&clock) as _, ..world };
    let (log, _) = world.open().unwrap();
    clock.set(1_000_000);
    block_on(log.append(plain(1))).unwrap();
    let times: Vec<_> = log.entries().map(|stored| stored.unwrap().entry.time).collect();
    assert!(times.is_sorted() && times[2].0 >= 5_000_000, "{times:?}");
}

#[test]
fn an_intent_without_an_outcome_is_indeterminate_after_the_next_boot() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    let first = block_on(log.intend(verdict(4, Decision::Permit), intent(4))).unwrap().seq();
    let second = block_on(log.intend(verdict(5, Decision::Permit), intent(5))).unwrap().seq();
    block_on(log.settle(first, outcome(4, first, "found"))).unwrap();
    block_on(log.flush()).unwrap();
    let killed = memory.copy();
    drop(log);

    let world = world.with_files(killed.files());
    let (log, recovered) = world.open().unwrap();
    assert_eq!(recovered.indeterminate, [second]);
    assert!(!recovered.clean);
    let last = log.entries().last().unwrap().unwrap();
    assert_eq!(last.entry.subject, subject(5));
    let used = Budget { tool_calls: 1, ..Budget::ZERO };
    assert_eq!(last.entry.fact, Fact::Outcome { intent: second, end: "indeterminate".into(), used });
    // It was durable before the log was handed out.
    let (_, again) = world.with_files(killed.copy().files()).open().unwrap();
    assert!(again.indeterminate.is_empty());
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let misplaced =
        |result: Result<_, AppendError>| assert!(matches!(result, Err(AppendError::Misplaced(_))), "{result:?}");
    let intent_fact = Fact::Intent {
        action: ephor_base::ActionKind::Tool,
        attempt: 1,
        verdict: Seq(0),
        arguments: intent(4).arguments,
        reserved: Budget::ZERO,
    };
    misplaced(block_on(log.append(Record { fact: Fact::Stop { number: 1 }, ..plain(0) })));
    misplaced(block_on(log.note(Record { fact: intent_fact, ..plain(0) })));
    misplaced(block_on(log.append(outcome(4, Seq(1), "x"))));
    misplaced(block_on(log.settle(Seq(1), outcome(4, Seq(1), "x"))));
    misplaced(block_on(log.settle(Seq(1), plain(1))));
    let refused = [verdict(4, Decision::Deny), verdict(4, Decision::Defer), verdict(5, Decision::Permit), plain(1)];
    for verdict in refused {
        let result = block_on(log.intend(verdict, intent(4)));
        assert!(matches!(result, Err(AppendError::Misplaced(_))), "{result:?}");
    }
    let homeless = Record { content: Some(Content::Text("private".into())), ..plain(1) };
    assert!(matches!(block_on(log.append(homeless)), Err(AppendError::NoSession)));
    let long = Record { fact: Fact::Lease { secret: "x".repeat(70_000) }, ..plain(1) };
    assert!(matches!(block_on(log.append(long)), Err(AppendError::TooLarge { .. })));
    let large = message(1, &"x".repeat(ephor_chain::MAX_CONTENT_BYTES + 1));
    assert!(matches!(block_on(log.append(large)), Err(AppendError::TooLarge { .. })));
    assert_eq!(block_on(log.flush()).unwrap().size, 2);
    block_on(log.close()).unwrap();
    assert_eq!(world.verify(None).unwrap().head.size, 3);
}

#[test]
fn an_outcome_is_taken_once_and_only_for_its_own_call() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let intent = block_on(log.intend(verdict(4, Decision::Permit), intent(4))).unwrap().seq();
    let of_another = block_on(log.settle(intent, outcome(5, intent, "x")));
    assert!(matches!(of_another, Err(AppendError::Misplaced(_))), "{of_another:?}");
    block_on(log.settle(intent, outcome(4, intent, "x"))).unwrap();
    let twice = block_on(log.settle(intent, outcome(4, intent, "x")));
    assert!(matches!(twice, Err(AppendError::Misplaced(_))), "{twice:?}");
}

#[test]
fn a_closed_log_takes_nothing() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let other = log.clone();
    block_on(log.close()).unwrap();
    assert!(matches!(block_on(other.append(plain(1))), Err(AppendError::Closed)));
    assert!(matches!(block_on(other.flush()), Err(AppendError::Closed)));
    assert!(matches!(block_on(other.close()), Err(AppendError::Closed)));
}

#[test]
fn many_at_once_are_all_there_in_the_order_of_their_receipts() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    let _used = log.in_use(SESSION).unwrap();
    let before = memory.operations();
    let threads: Vec<_> = (0..16u64)
        .map(|thread| {
            let log = log.clone();
            std::thread::spawn(move || {
                let append = |n| block_on(log.append(message(thread * 100 + n, &"x".repeat(500)))).unwrap();
                (0..50).map(|n| (append(n), format!("m{}", thread * 100 + n))).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut acknowledged: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
    acknowledged.sort_by_key(|(receipt, _)| receipt.seq);
    let operations = memory.operations() - before;
    assert!(operations < 16 * 50 * 2, "{operations} operations: nothing was written together");
    block_on(log.close()).unwrap();
    let (log, _) = world.open().unwrap();
    let stored: Vec<_> = log.entries().map(Result::unwrap).collect();
    let found: Vec<_> = stored.iter().filter_map(|stored| Some((stored.receipt, tag(&stored.entry.fact)?))).collect();
    assert_eq!(found, acknowledged);
}

#[test]
fn a_batch_that_is_full_makes_its_callers_wait_and_loses_nothing() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    let text = "x".repeat(1 << 20);
    for number in 0..20 {
        block_on(log.note(message(number, &text))).unwrap();
    }
    block_on(log.close()).unwrap();
    let entries: Vec<_> = ephor_chain::read(&world.config.folder, &world.files).map(Result::unwrap).collect();
    assert_eq!(entries.iter().filter(|stored| stored.entry.fact.kind() == "message").count(), 20);
    world.verify(world.pinned()).unwrap();
}

#[test]
fn the_journal_goes_on_in_another_segment() {
    let (memory, mut world) = world();
    world.config.segment_bytes = 20_000;
    let (log, _) = world.open().unwrap();
    let intent = block_on(log.intend(verdict(4, Decision::Permit), intent(4))).unwrap().seq();
    for number in 0..20 {
        block_on(log.append(message(number, &"x".repeat(1000)))).unwrap();
    }
    block_on(log.settle(intent, outcome(4, intent, "late"))).unwrap();
    block_on(log.flush()).unwrap();
    let segments =
        || -> Vec<_> { memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/journal")).collect() };
    assert!(segments().len() > 2, "{:?}", segments());
    let killed = memory.copy();
    let usage = log.usage();
    block_on(log.close()).unwrap();
    // What is published is given back.
    let [last] = segments().try_into().unwrap();
    assert!(usage.used > 2 * memory.get(&last).len() as u64, "{usage:?}");
    let report = world.verify(world.pinned()).unwrap();
    assert_eq!((report.bytes, report.published), (memory.get(&last).len() as u64, report.head.size));
    for world in [world.with_files(killed.files()), world.with_files(memory.files())] {
        let (log, recovered) = world.open().unwrap();
        let stored: Vec<_> = log.entries().map(Result::unwrap).collect();
        assert!(stored.iter().enumerate().all(|(place, stored)| stored.entry.seq.0 == place as u64));
        let kinds = |kind: &str| stored.iter().filter(|stored| stored.entry.fact.kind() == kind).count();
        assert_eq!((kinds("message"), kinds("outcome")), (20, 1));
        assert!(kinds("snapshot") >= 2);
        assert!(stored.iter().all(|stored| stored.content != Private::Sealed));
        assert_eq!((recovered.boot, recovered.next_pid, recovered.next_message), (2, Pid(4), MessageId(20)));
        for place in [0, 7, stored.len() - 1] {
            assert_eq!(log.entry(Seq(place as u64)).unwrap().as_ref(), stored.get(place));
            let rest: Vec<_> = log.entries().from(Seq(place as u64)).map(Result::unwrap).collect();
            assert_eq!(rest, stored[place..]);
        }
        assert_eq!(log.entry(Seq(log.head().size)).unwrap(), None);
    }
}

#[test]
fn a_copy_without_the_vault_can_be_read_but_not_its_contents() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "the secret plan"))).unwrap();
    block_on(log.close()).unwrap();
    for (path, bytes) in memory.everything() {
        assert!(!bytes.windows(15).any(|window| window == b"the secret plan"), "{} tells it", path.display());
    }
    let sealed: Vec<_> = ephor_chain::read(&world.config.folder, &world.files).map(Result::unwrap).collect();
    assert_eq!(sealed[2].content, Private::Sealed);
    let vault = Vault::new(&world.config.vault, world.vault_key(), Arc::clone(&world.files));
    let mut open = ephor_chain::read(&world.config.folder, &world.files).unsealing(Arc::new(vault));
    assert!(matches!(open.nth(2).unwrap().unwrap().content, Private::Open(Content::Parts(_))));
    // The key of the session is gone: so is the content, and nothing else.
    let key = memory.paths().into_iter().find(|path| path.starts_with("/home/vault/keys")).unwrap();
    memory.take_away(&key);
    let vault = Vault::new(&world.config.vault, world.vault_key(), Arc::clone(&world.files));
    let mut erased = ephor_chain::read(&world.config.folder, &world.files).unsealing(Arc::new(vault));
    assert_eq!(erased.nth(2).unwrap().unwrap().content, Private::Sealed);
    assert!(world.verify(world.pinned()).is_ok());
}

#[test]
fn the_vault_key_of_another_home_opens_nothing() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.close()).unwrap();
    let other = Arc::new(ephor_chain::VaultKey::generate(&common::Seeded::new(99)));
    let vault = Vault::new(&world.config.vault, other, Arc::clone(&world.files));
    let mut entries = ephor_chain::read(&world.config.folder, &world.files).unsealing(Arc::new(vault));
    assert!(entries.nth(2).unwrap().is_err());
}

#[test]
fn the_same_content_is_sealed_differently_each_time() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    let commitments: Vec<_> = log.entries().filter_map(|stored| stored.unwrap().entry.content).collect();
    assert_ne!(commitments[0].content, commitments[1].content);
    assert_ne!(commitments[0].sealed, commitments[1].sealed);
}

#[test]
fn a_torn_end_after_a_crash_is_trimmed_and_reported() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(log.append(plain(1))).unwrap();
    let intact = memory.copy();
    // Longer than what is written over it at the next boot.
    block_on(log.append(message(2, &"x".repeat(20_000)))).unwrap();
    let path = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let (short, long) = (intact.get(&path), memory.get(&path));
    let grown = long.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let start = short.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for cut in (start + 1..grown).step_by(397) {
        let torn = intact.copy();
        torn.put(&path, long[..cut].to_vec());
        let world = world.with_files(torn.files());
        assert_eq!(world.verify(world.pinned()).unwrap().torn_bytes, (cut - start) as u64);
        let (log, recovered) = world.open().unwrap();
        assert_eq!((recovered.trimmed_bytes, recovered.clean), ((cut - start) as u64, false));
        let tags: Vec<_> = facts(&log).iter().filter_map(tag).collect();
        assert_eq!(tags, ["n1"], "cut at {cut}");
        // Nothing of it is left, also if this boot does not last.
        assert_eq!(world.with_files(torn.copy().files()).verify(None).unwrap().torn_bytes, 0, "cut at {cut}");
        block_on(log.append(plain(3))).unwrap();
        block_on(log.close()).unwrap();
        assert!(world.verify(world.pinned()).is_ok(), "cut at {cut}");
    }
    drop(log);
}

#[test]
fn the_writer_of_a_dropped_log_ends_and_leaves_what_was_recorded() {
    let (_, world) = world();
    let (log, _) = world.open().unwrap();
    block_on(log.note(plain(1))).unwrap();
    drop(log);
    let (log, recovered) = world.open().unwrap();
    assert!(!recovered.clean);
    assert_eq!(facts(&log).iter().filter_map(tag).collect::<Vec<_>>(), ["n1"]);
}

#[test]
fn the_keys_of_a_log_are_two_lines_and_read_back() {
    let (_, world) = world();
    let text = world.verifier().to_string();
    assert_eq!(text.parse::<ephor_tlog::VerifierKeys>().unwrap(), world.verifier());
    let swapped: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
    for other in [text.replace('+', "-"), swapped, text.replacen("ephor/", "other/", 2), String::new()] {
        assert!(other.parse::<ephor_tlog::VerifierKeys>().is_err(), "{other}");
    }
}

#[test]
fn a_verification_goes_on_where_an_earlier_one_ended() {
    let (memory, mut world) = world();
    world.config.segment_bytes = 20_000;
    let (log, _) = world.open().unwrap();
    for number in 0..300 {
        block_on(log.note(plain(number))).unwrap();
    }
    let head = block_on(log.publish()).unwrap();
    let kept = Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap();
    assert_eq!(kept.head, head);
    for number in 300..320 {
        block_on(log.append(message(number, &"x".repeat(2000)))).unwrap();
    }
    block_on(log.close()).unwrap();
    let keys = world.verifier();
    let verify_from = |world: &World, from: &Checkpoint| {
        let against = Against { keys: &keys, head: world.pinned(), vault: Some(&world.config.vault), from: Some(from) };
        let mut told = Vec::new();
        let report = verify(&world.config.folder, &world.files, against, |progress| told.push(progress));
        report.map(|report| (report, told))
    };
    let whole = world.verify(world.pinned()).unwrap();
    let (report, told) = verify_from(&world, &kept).unwrap();
    assert_eq!((report.since, report.head, report.boots), (head.size, whole.head, 1));
    assert!(told.iter().all(|progress| progress.entries <= progress.total && progress.entries > head.size));
    // What was known is not read again, and what follows is.
    let copy = memory.copy();
    let damage = |name: &str| {
        let path = Path::new("/home/chain").join(name);
        let mut bytes = copy.get(&path);
        bytes[40] ^= 1;
        copy.put(&path, bytes);
    };
    damage("tile/entries/000");
    let left = world.with_files(copy.files());
    assert!(left.verify(None).is_err() && verify_from(&left, &kept).is_ok());
    let wrong = Head { root: ephor_base::Digest::of(b"another"), ..head };
    assert!(verify_from(&left, &Checkpoint { head: wrong, ..kept.clone() }).is_err());
    damage(&format!("tile/entries/001.p/{}", whole.head.size - 256));
    assert!(verify_from(&left, &kept).is_err());
}

#[test]
fn what_the_journal_holds_and_the_published_part_lacks_is_published_again() {
    let (memory, world) = world();
    let (log, _) = world.open().unwrap();
    for number in 0..300 {
        block_on(log.note(message(number, "text"))).unwrap();
    }
    block_on(log.close()).unwrap();
    let published = |path: &Path| path.starts_with("/home/chain/tile") || path.starts_with("/home/vault/content");
    let before: Vec<_> = memory.everything().into_iter().filter(|(path, _)| published(path)).collect();
    for (path, bytes) in &before {
        for change in [None, Some(bytes[1..].to_vec()), Some([&bytes[..], b"more"].concat())] {
            let copy = memory.copy();
            copy.take_away(path);
            if let Some(bytes) = change {
                copy.put(path, bytes);
            }
            let world = world.with_files(copy.files());
            block_on(world.open().unwrap().0.close()).unwrap();
            world.verify(world.pinned()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}
