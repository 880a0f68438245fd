//! A chain and its vault have no more bytes than they were given, and stop cleanly when they have them.

use std::path::Path;

use ephor_base::{Decision, EndReason, MessageId, TicketId, TurnReport};
use ephor_chain::{AppendError, Log, OUTCOME_RESERVE, SigningKeys, Space};
use ephor_record::{Content, Fact, Record, RulingOn, Subject};

use crate::common::{
    OPERATOR, SESSION, World, block_on, intent, memory::Memory, message, outcome, plain, tag, verdict,
};

fn of_session(fact: Fact) -> Record {
    Record { subject: Subject { session: Some(SESSION), ..Subject::default() }, fact, content: None }
}

fn turn_end() -> Record {
    of_session(Fact::TurnEnd { message: MessageId(1), end: EndReason::Replied, report: TurnReport::default() })
}

fn ruling() -> Record {
    let (on, how) = (RulingOn::Ticket(TicketId(1)), "withdrawn".to_owned());
    of_session(Fact::Ruling {
        on,
        decision: Decision::Deny,
        signature: Vec::new(),
        how,
        policy: None,
        note: None,
        always: None,
    })
}

fn world_with(memory: &Memory, quota: u64) -> World {
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.quota = Some(quota);
    world
}

/// Appends until the quota says no; says how many there were.
fn fill(log: &Log, from: u64) -> u64 {
    for number in from.. {
        match block_on(log.append(message(number, &"words ".repeat(2000)))) {
            Ok(_) => {}
            Err(AppendError::Quota { .. }) => return number - from,
            Err(error) => panic!("{error}"),
        }
    }
    0
}

fn space(log: &Log) -> Space {
    log.space().unwrap()
}

#[test]
fn a_quota_reached_in_the_middle_of_a_call_still_records_its_outcome_and_the_end() {
    let memory = Memory::default();
    let world = world_with(&memory, 1 << 20);
    let (log, _) = world.open().unwrap();
    let durable = block_on(log.intend(verdict(1, Decision::Permit), intent(1))).unwrap();
    assert!(fill(&log, 1) > 5);
    assert!(space(&log).is_short() && space(&log).used <= space(&log).quota, "{:?}", space(&log));
    // Nothing new is taken.
    let refused = |result: Result<_, AppendError>| match result {
        Err(error @ AppendError::Quota { .. }) => assert!(error.to_string().contains("raise `quota`"), "{error}"),
        other => panic!("{:?}", other.map(drop)),
    };
    refused(block_on(log.intend(verdict(2, Decision::Permit), intent(2))).map(drop));
    refused(block_on(log.append(message(999, &"words ".repeat(2000)))).map(drop));
    for number in 0.. {
        assert!(number < 10_000, "notes are always taken");
        if let Err(error) = block_on(log.note(plain(number))) {
            assert!(matches!(error, AppendError::Quota { .. }), "{error}");
            break;
        }
    }
    // What was begun is ended.
    let large = "found ".repeat(10_000);
    block_on(log.settle(durable.seq(), outcome(1, durable.seq(), &large))).unwrap();
    block_on(log.append(ruling())).unwrap();
    block_on(log.append(turn_end())).unwrap();
    let before = log.head().size;
    block_on(log.close()).unwrap();
    let report = world.verify(world.pinned()).unwrap();
    assert_eq!((report.head.size, report.open_intents, report.stopped), (before + 1, 0, true));
}

#[test]
fn a_raised_quota_lets_the_chain_go_on() {
    let memory = Memory::default();
    let world = world_with(&memory, 1 << 19);
    let (log, _) = world.open().unwrap();
    let first = fill(&log, 1);
    block_on(log.close()).unwrap();
    // It starts at its quota, and takes nothing new.
    let (log, recovered) = world.open().unwrap();
    assert!(recovered.clean);
    let second = fill(&log, 1000);
    block_on(log.close()).unwrap();
    let (log, _) = world_with(&memory, 1 << 21).open().unwrap();
    let third = fill(&log, 2000);
    assert!(third > first + second, "{first} {second} {third}");
    let kept = log.entries().filter_map(|stored| tag(&stored.unwrap().entry.fact)).count() as u64;
    assert_eq!(kept, first + second + third);
    block_on(log.close()).unwrap();
}

#[test]
fn what_is_counted_is_never_less_than_what_lies_there() {
    let memory = Memory::default();
    let mut world = world_with(&memory, 8 << 20);
    world.config.segment_bytes = 200_000;
    for round in 0..4u64 {
        let (log, _) = world.open().unwrap();
        for number in 0..60 {
            block_on(log.append(message(round * 100 + number, &"words ".repeat(1000)))).unwrap();
            if number % 20 == 0 {
                block_on(log.publish()).unwrap();
            }
        }
        block_on(log.publish()).unwrap();
        let (counted, reserved) = (space(&log).used, log.usage().reserved);
        let there: u64 = memory
            .everything()
            .iter()
            .filter(|(path, _)| !path.starts_with("/home/head"))
            .map(|(_, bytes)| bytes.len() as u64)
            .sum();
        // Checkpoints, the tiles of hashes of hashes and partial tiles of a round that begins a start are not counted as they come.
        let there = there - reserved;
        assert!(counted + 32_768 >= there && counted <= there * 2 + (1 << 20), "{counted} of {there}");
        block_on(log.close()).unwrap();
    }
}

#[test]
fn an_open_intent_counts_what_it_was_promised() {
    let memory = Memory::default();
    let (log, _) = world_with(&memory, 8 << 20).open().unwrap();
    let before = space(&log).used;
    let durable = block_on(log.intend(verdict(1, Decision::Permit), intent(1))).unwrap();
    let open = space(&log).used;
    assert!(open >= before + OUTCOME_RESERVE);
    let ended = Record { content: Some(Content::Text("x".into())), ..outcome(1, durable.seq(), "") };
    block_on(log.settle(durable.seq(), ended)).unwrap();
    assert!(space(&log).used < open);
    assert!(World::new(memory.copy().files(), Path::new("/home")).config.quota.is_none());
}

#[test]
fn at_the_quota_a_session_is_still_erased_and_the_keys_still_change() {
    let memory = Memory::default();
    let world = world_with(&memory, 1 << 19);
    let (log, _) = world.open().unwrap();
    fill(&log, 1);
    while block_on(log.note(plain(1))).is_ok() {}
    let next = SigningKeys::generate_next(&world.verifier(), &*world.random);
    let keys = next.verifier().clone();
    block_on(log.erase(SESSION, Vec::new(), "asked for".into(), OPERATOR)).unwrap();
    block_on(log.rotate(next, OPERATOR)).unwrap();
    assert_eq!(log.keys(), Some(keys));
    assert!(matches!(block_on(log.note(plain(2))), Err(AppendError::Quota { .. })));
    block_on(log.close()).unwrap();
}
