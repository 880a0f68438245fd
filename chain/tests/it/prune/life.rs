//! What a user notices of a log that is pruned.

use std::{collections::BTreeMap, path::Path};

use ephor_base::{Decision, MessageId, OperatorId, Seat, Seq, Timestamp};
use ephor_chain::{
    AppendError, Log, Plan, Private, PruneError, State, Wish,
    disk::Disk,
    read,
    state::{List, Order, Page, Reading, Reason},
};
use ephor_record::{
    Because, Cause, Fact, Missed, Record, Retention, RulingOn, ScanError, Signal, Subject, Undelivered, blockers::Why,
};
use ephor_tlog::Checkpoint;
use ephor_verify::Folder;
use ephor_verify::{ProveError, Prover};

use super::{DAY, aged, answered, asked, left_below, live, minimum, plan, prune, pruned, session};
use crate::common::{OPERATOR, World, block_on, forge, intent, memory::Memory, outcome, plain, verdict};

#[test]
fn what_is_older_than_the_retention_goes_and_the_rest_is_proven_as_before() {
    let (memory, world) = aged(400);
    let whole = memory.copy();
    let (log, _) = world.open().unwrap();
    block_on(log.publish()).unwrap();
    let before: Vec<_> = log.entries().map(Result::unwrap).collect();
    let planned = plan(&log);
    assert_eq!((planned.from, planned.minimum % 256, planned.keep_days), (0, 0, 180));
    let at = usize::try_from(planned.minimum).unwrap();
    let age = before.last().unwrap().entry.time.0 - before[at - 1].entry.time.0;
    assert!((180 * DAY..270 * DAY).contains(&age), "{}", age / DAY);
    assert!(planned.bytes > 50_000 && planned.entries() == planned.minimum, "{planned:?}");
    assert_eq!((planned.oldest, planned.newest), (Some(before[0].entry.time), Some(before[at - 1].entry.time)));

    let pruned = block_on(log.prune(&planned, OPERATOR)).unwrap();
    assert_eq!(pruned.minimum, planned.minimum);
    let after: Vec<_> = log.entries().map(Result::unwrap).collect();
    assert_eq!(after[..before.len() - at], before[at..]);
    assert!(log.entry(Seq(planned.minimum - 1)).unwrap().is_none());
    assert_eq!(log.entry(Seq(planned.minimum)).unwrap().unwrap(), before[at]);
    block_on(log.close()).unwrap();

    assert_eq!(minimum(&memory).unwrap().record, pruned.seq);
    assert_eq!(left_below(&memory, pruned.minimum), Vec::<std::path::PathBuf>::new());
    let journal = memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/journal")).count();
    assert_eq!(journal, 1, "the journal still holds what was pruned");
    let report = world.verify(world.pinned()).unwrap();
    assert_eq!((report.minimum, report.since, report.against_head), (pruned.minimum, pruned.minimum, true));
    assert_eq!(world.with_files(whole.files()).verify(None).unwrap().minimum, 0);

    let mut prover = Prover::open(&Folder::source(&world.config.folder, &world.files)).unwrap().unwrap();
    for seq in [pruned.minimum, pruned.minimum + 255, before.len() as u64 - 1] {
        assert_eq!(
            prover.prove(Seq(seq)).unwrap().extra.unwrap(),
            before[usize::try_from(seq).unwrap()].entry.to_bytes()
        );
    }
    match prover.prove(Seq(pruned.minimum - 1)) {
        Err(error @ ProveError::Scan(ScanError::Pruned { .. })) => {
            assert!(error.to_string().contains(&format!("begins at entry {}", pruned.minimum)), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // Nothing more is old enough, and nothing is recorded of that.
    let (log, _) = world.open().unwrap();
    assert!(matches!(prune(&log), Err(PruneError::Nothing)));
    live(&log, &world, 400..600);
    let again = prune(&log).unwrap();
    assert!(again.minimum > pruned.minimum);
    block_on(log.close()).unwrap();
    assert_eq!(world.verify(world.pinned()).unwrap().minimum, again.minimum);
    assert_eq!(left_below(&memory, again.minimum), Vec::<std::path::PathBuf>::new());
}

#[test]
fn a_node_goes_on_from_a_pruned_home_as_from_one_that_was_not() {
    let (memory, world) = aged(300);
    let (log, _) = world.open().unwrap();
    // Something of everything that a resume needs, left open by a crash.
    block_on(log.append(asked(1000))).unwrap();
    let intended = block_on(log.intend(verdict(7, Decision::Permit), intent(7))).unwrap().seq();
    block_on(log.publish()).unwrap();
    let planned = plan(&log);
    let copy = memory.copy();
    block_on(log.prune(&planned, OPERATOR)).unwrap();
    drop(log);
    let mut seen = Vec::new();
    for left in [memory, copy] {
        let world = world.with_files(left.files());
        let (log, recovered) = world.open().unwrap();
        assert_eq!(recovered.indeterminate, [intended]);
        let mine = |stored: &ephor_chain::Stored| {
            let own = [session(1000), crate::common::SESSION];
            stored.entry.subject.session.is_some_and(|session| own.contains(&session)) && stored.entry.seq <= intended
        };
        let kept: Vec<_> = log.entries().map(Result::unwrap).filter(mine).collect();
        let numbers =
            (recovered.boot, recovered.next_pid, recovered.next_call, recovered.next_message, recovered.next_ticket);
        seen.push((numbers, recovered.clean, log.keys(), kept));
        block_on(log.append(asked(1001))).unwrap();
        block_on(log.close()).unwrap();
        world.verify(world.pinned()).unwrap();
    }
    assert_eq!(seen[0], seen[1]);
    assert!(seen[0].3.len() == 3 && matches!(seen[0].3[0].content, Private::Open(_)));
}

fn held(world: &World, what: impl FnOnce(&Log)) -> (u64, Vec<Why>) {
    let (log, _) = world.open().unwrap();
    live(&log, world, 0..10);
    let oldest = log.head().size;
    what(&log);
    live(&log, world, 10..400);
    block_on(log.publish()).unwrap();
    let planned = plan(&log);
    assert!(planned.old_enough > oldest, "{planned:?}");
    if !planned.held.is_empty() {
        assert!(planned.minimum <= oldest + 8 && planned.held[0].seq.0 >= oldest, "{planned:?}");
    }
    block_on(log.close()).unwrap();
    (planned.minimum, planned.held.iter().map(|held| held.why).collect())
}

fn fresh() -> World {
    World::new(Memory::default().files(), Path::new("/home"))
}

#[test]
fn what_is_left_to_do_is_held_from_its_first_entry_on() {
    let note = |log: &Log, record| {
        block_on(log.append(record)).unwrap();
    };
    let (_, why) = held(&fresh(), |log| note(log, asked(1000)));
    assert!(matches!(why[..], [Why::Unanswered { session: held, .. }] if held == session(1000)));
    let (none, why) = held(&fresh(), |log| {
        note(log, asked(1000));
        note(log, answered(1000));
    });
    assert!(none > 0 && why.is_empty());
    // Somebody has it open, however long nothing was said.
    let world = fresh();
    held(&world, |log| {
        note(log, asked(1000));
        note(log, answered(1000));
    });
    let (log, _) = world.open().unwrap();
    let open = log.plan_pruning(Wish { open: vec![session(1000)], ..Wish::default() }, |_, _| ()).unwrap();
    assert!(open.minimum == 0 && matches!(open.held[..], [held] if held.why == Why::Open { session: session(1000) }));
    // Whoever does not want it any more says so.
    let (_, why) = held(&fresh(), |log| {
        note(log, asked(1000));
        block_on(log.erase(session(1000), Vec::new(), "gone".into(), OPERATOR)).unwrap();
    });
    assert!(why.is_empty());
    let (_, why) = held(&fresh(), |log| drop(block_on(log.intend(verdict(7, Decision::Permit), intent(7))).unwrap()));
    assert!(matches!(why[..], [Why::Unfinished { .. }]), "{why:?}");
    let ticket = |expires| {
        let (id, arguments, policy) = (ephor_base::TicketId(1), intent(1).arguments, intent(1).arguments);
        let (quorum, registration) = (None, None);
        let fact = Fact::Ticket { id, target: "fs.read".into(), arguments, policy, expires, quorum, registration };
        Record { subject: Subject::default(), fact, content: None }
    };
    let (_, why) = held(&fresh(), |log| note(log, ticket(Timestamp(u64::MAX))));
    assert!(matches!(why[..], [Why::Asked { .. }]), "{why:?}");
    let (_, why) = held(&fresh(), |log| note(log, ticket(Timestamp(0))));
    assert!(why.is_empty(), "an expired question waits for nobody");
    let (_, why) = held(&fresh(), |log| {
        note(log, ticket(Timestamp(u64::MAX)));
        let (on, how) = (RulingOn::Ticket(ephor_base::TicketId(1)), "answered".to_owned());
        let fact = Fact::Ruling {
            on,
            decision: Decision::Deny,
            signature: Vec::new(),
            how,
            policy: None,
            note: None,
            always: None,
        };
        note(log, Record { subject: Subject::default(), fact, content: None });
    });
    assert!(why.is_empty());
}

#[test]
fn a_dead_letter_is_held_until_it_is_replayed_or_dropped_and_a_schedule_until_it_ends() {
    let write = |log: &Log, of: Option<u64>, fact| {
        let subject = Subject { session: of.map(session), operator: Some(OPERATOR), ..Subject::default() };
        block_on(log.append(Record { subject, fact, content: None })).unwrap().seq
    };
    let message = |id, because| Fact::Message {
        id: MessageId(id),
        spans: Vec::new(),
        from: None,
        because,
        owed: true,
        scope: None,
        offset: None,
    };
    let dies = |log: &Log| {
        let accepted = write(log, Some(1000), message(1000, None));
        write(log, Some(1000), Fact::Dead { message: MessageId(1000), accepted, why: Undelivered::Stopped });
    };
    let (_, why) = held(&fresh(), dies);
    assert!(matches!(why[..], [Why::Unanswered { session: held, .. }] if held == session(1000)), "{why:?}");
    let (_, why) = held(&fresh(), |log| {
        dies(log);
        write(log, None, Fact::Buried { message: MessageId(1000), note: String::new() });
    });
    assert!(why.is_empty(), "{why:?}");
    // Replayed into another session it waits there.
    let again = |log: &Log| {
        dies(log);
        write(log, Some(1001), message(1001, Some(Because::Replay(MessageId(1000)))));
    };
    let (_, why) = held(&fresh(), again);
    assert!(matches!(why[..], [Why::Unanswered { session: held, .. }] if held == session(1001)), "{why:?}");
    let (_, why) = held(&fresh(), |log| {
        again(log);
        block_on(log.append(answered(1001))).unwrap();
    });
    assert!(why.is_empty(), "{why:?}");
    let schedule = |log: &Log| {
        let (cron, zone) = ("30 2 * * *".into(), "UTC".into());
        write(log, Some(1000), Fact::Schedule { name: "a".into(), cron, zone, missed: Missed::Skip })
    };
    let mut at = None;
    let (_, why) = held(&fresh(), |log| at = Some(schedule(log)));
    assert!(matches!(why[..], [Why::Scheduled { made }] if Some(made) == at), "{why:?}");
    let (_, why) = held(&fresh(), |log| {
        schedule(log);
        write(log, None, Fact::Unscheduled { name: "a".into() });
    });
    assert!(why.is_empty(), "{why:?}");
}

#[test]
fn a_conversation_that_goes_on_stays_whole() {
    let world = fresh();
    let (log, _) = world.open().unwrap();
    block_on(log.append(asked(1000))).unwrap();
    block_on(log.append(answered(1000))).unwrap();
    live(&log, &world, 0..400);
    let subject = Subject { session: Some(session(1000)), ..Subject::default() };
    block_on(log.append(Record { subject, ..plain(1) })).unwrap();
    block_on(log.publish()).unwrap();
    let planned = plan(&log);
    assert!(planned.minimum == 0 && planned.old_enough > 0, "{planned:?}");
    assert!(matches!(planned.held[0].why, Why::Talked { session: held } if held == session(1000)));
    assert!(matches!(block_on(log.prune(&planned, OPERATOR)), Err(PruneError::Nothing)));
}

#[test]
fn a_conversation_that_is_taken_up_after_a_plan_keeps_its_beginning() {
    let world = fresh();
    let (log, _) = world.open().unwrap();
    block_on(log.append(asked(1000))).unwrap();
    block_on(log.append(answered(1000))).unwrap();
    live(&log, &world, 0..400);
    block_on(log.publish()).unwrap();
    let refused = |planned: &Plan| {
        let pruned = block_on(log.prune(planned, OPERATOR));
        assert!(matches!(pruned, Err(PruneError::TakenUp(taken)) if taken == session(1000)), "{pruned:?}");
    };
    // Somebody has it open, and has said nothing yet.
    let planned = plan(&log);
    assert!(planned.minimum > 0);
    let used = log.in_use(session(1000)).unwrap();
    refused(&planned);
    assert_eq!(plan(&log).minimum, 0, "a new plan knows of it");
    drop(used);
    // Somebody said something and left.
    let planned = plan(&log);
    assert!(planned.minimum > 0);
    let subject = Subject { session: Some(session(1000)), ..Subject::default() };
    block_on(log.append(Record { subject, ..plain(1) })).unwrap();
    refused(&planned);
    block_on(log.publish()).unwrap();
    assert_eq!(plan(&log).minimum, 0);
    assert!(log.entry(Seq(2)).unwrap().is_some());
}

#[test]
fn the_registrations_in_force_stay() {
    let world = fresh();
    let policy = || {
        let fact = Fact::Policy { digest: intent(1).arguments, environment: "dev".into(), terms: None };
        Record { subject: Subject::default(), fact, content: None }
    };
    let (log, _) = world.open().unwrap();
    block_on(log.append(policy())).unwrap();
    live(&log, &world, 0..400);
    block_on(log.publish()).unwrap();
    let planned = plan(&log);
    assert!(planned.minimum == 0 && matches!(planned.held[..], [held] if held.why == Why::InForce), "{planned:?}");
    drop(log);
    // The next boot records them anew; one that does not changes nothing.
    let (log, _) = world.open().unwrap();
    block_on(log.publish()).unwrap();
    assert_eq!(plan(&log).minimum, 0);
    block_on(log.append(policy())).unwrap();
    block_on(log.publish()).unwrap();
    assert!(plan(&log).minimum > 0);
}

#[test]
fn more_can_be_kept_than_is_configured_and_never_less() {
    let (_, mut world) = aged(500);
    world.config.keep = Retention::of_days(300).unwrap();
    let (log, _) = world.open().unwrap();
    let plan = |wish| log.plan_pruning(wish, |_, _| ());
    let ordinary = plan(Wish::default()).unwrap();
    let longer = plan(Wish { keep: Some(Retention::of_days(400).unwrap()), before: None, ..Wish::default() }).unwrap();
    assert!(0 < longer.minimum && longer.minimum < ordinary.minimum, "{longer:?} {ordinary:?}");
    let error = plan(Wish { keep: Some(Retention::LEAST), before: None, ..Wish::default() }).unwrap_err();
    assert!(error.to_string().contains("kept for 300d"), "{error}");
    let before = read(&world.config.folder, &world.files).nth(300).unwrap().unwrap().entry.time;
    let earlier = plan(Wish { keep: None, before: Some(before), ..Wish::default() }).unwrap();
    assert_eq!(earlier.minimum, 256);
    assert_eq!(plan(Wish { keep: None, before: Some(Timestamp(0)), ..Wish::default() }).unwrap().minimum, 0);
    assert_eq!(
        plan(Wish { keep: None, before: Some(Timestamp(u64::MAX)), ..Wish::default() }).unwrap().minimum,
        ordinary.minimum
    );
}

#[test]
fn heads_from_before_the_minimum_are_told_apart_from_damage() {
    let (memory, world) = aged(400);
    let old = world.pinned().unwrap();
    let (log, _) = world.open().unwrap();
    block_on(log.publish()).unwrap();
    let kept: Vec<_> = memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/checkpoints")).collect();
    let first = Checkpoint::parse(&memory.get(&kept[1])).unwrap();
    let last = Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap();
    let pruned = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    assert!(first.head.size < pruned.minimum && old.head.size > pruned.minimum);
    assert!(world.verify(Some(old.clone())).is_ok());
    let early = ephor_chain::PinnedHead::of(&first);
    assert!(matches!(world.verify(Some(early)), Err(ScanError::Pruned { .. })));
    let keys = world.verifier();
    let from = |known: &Checkpoint| {
        let against = ephor_chain::Against { keys: &keys, head: None, vault: None, from: Some(known) };
        ephor_chain::verify(&world.config.folder, &world.files, against, |_| ())
    };
    assert!(matches!(from(&first), Err(ScanError::Pruned { .. })));
    let report = from(&last).unwrap();
    assert_eq!((report.since, report.minimum), (last.head.size, pruned.minimum));
    // No kept checkpoint is left that nobody could check.
    let left = memory.paths().into_iter().filter(|path| path.starts_with("/home/chain/checkpoints"));
    let sizes = left.map(|path| path.file_name().unwrap().to_str().unwrap().parse::<u64>().unwrap());
    assert!(sizes.min().unwrap() >= pruned.minimum);
}

#[test]
fn projections_are_those_of_what_is_left() {
    let (memory, world) = aged(400);
    let folder = tempfile::tempdir().unwrap();
    let origin = world.verifier().origin().to_owned();
    let mut state = State::open(&folder.path().join("state"), &origin);
    let all = Page { order: Order::Oldest, behind: None, most: usize::MAX };
    let reading = || Reading::whole(&world.config.folder, &world.files).unwrap();
    state.catch_up(&reading(), &mut |_| ()).unwrap();
    let (log, _) = world.open().unwrap();
    // Erased in the part that goes, and in the part that stays.
    for day in [3, 399] {
        block_on(log.erase(session(day), Vec::new(), "gone".into(), OPERATOR)).unwrap();
    }
    let pruned = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    let caught_up = state.catch_up(&reading(), &mut |_| ()).unwrap();
    assert_eq!(caught_up.rebuilt, Some(Reason::Pruned));
    let seen = state.ask(&reading(), &mut |_| (), |view| {
        let sessions: Vec<_> = view.sessions(all)?.collect::<Result<_, _>>()?;
        let entries: Vec<_> = view.entries(&[], all)?.collect::<Result<_, _>>()?;
        let messages: Vec<_> = view.entries(&[List::Kind("message".into())], all)?.collect::<Result<_, _>>()?;
        Ok((view.first(), sessions, entries, messages))
    });
    let (first, sessions, entries, messages) = seen.unwrap();
    assert_eq!((first, entries[0]), (Seq(pruned.minimum), Seq(pruned.minimum)));
    assert!(messages[0] >= first && sessions.iter().all(|row| row.last.seq >= first));
    assert!(sessions.iter().any(|row| row.id == session(399) && row.erased.is_some()));
    // Those that are made anew are the same, and they go on.
    let mut anew = State::open(&folder.path().join("anew"), &origin);
    anew.catch_up(&reading(), &mut |_| ()).unwrap();
    let ids = |state: &mut State| {
        state.ask(&reading(), &mut |_| (), |view| view.sessions(all)?.collect::<Result<Vec<_>, _>>()).unwrap()
    };
    assert_eq!(ids(&mut state), ids(&mut anew));
    let (log, _) = world.open().unwrap();
    block_on(log.append(asked(2000))).unwrap();
    block_on(log.close()).unwrap();
    assert_eq!(state.catch_up(&reading(), &mut |_| ()).unwrap().rebuilt, None);
    assert!(memory.paths().len() > 3);
}

/// Prunes what is older than the entry `seq`.
fn prune_before(log: &Log, seq: u64) -> ephor_chain::Pruned {
    block_on(log.publish()).unwrap();
    let before = log.entry(Seq(seq)).unwrap().unwrap().entry.time;
    let plan = log.plan_pruning(Wish { keep: None, before: Some(before), ..Wish::default() }, |_, _| ()).unwrap();
    block_on(log.prune(&plan, OPERATOR)).unwrap()
}

#[test]
fn a_session_that_is_partly_pruned_can_still_be_erased() {
    let world = fresh();
    let (log, _) = world.open().unwrap();
    for _ in 0..100 {
        block_on(log.note(asked(5000))).unwrap();
    }
    block_on(log.append(answered(5000))).unwrap();
    live(&log, &world, 0..50);
    for number in 0..300 {
        block_on(log.note(asked(5000 + number % 2))).unwrap();
    }
    for number in [5000, 5001] {
        block_on(log.append(answered(number))).unwrap();
    }
    // Messages share a number here, so one answer ends them.
    live(&log, &world, 50..400);
    let pruned = prune_before(&log, 400);
    let left = |log: &Log| {
        let own =
            log.entries().map(Result::unwrap).filter(|stored| stored.entry.subject.session == Some(session(5000)));
        own.map(|stored| stored.content).collect::<Vec<_>>()
    };
    let before = left(&log);
    assert!(before.iter().any(|content| matches!(content, Private::Open(_))) && before.len() < 250, "{}", before.len());
    assert_eq!(pruned.minimum, 256);
    block_on(log.erase(session(5000), log.derived(session(5000)).unwrap(), "gone".into(), OPERATOR)).unwrap();
    assert!(left(&log).iter().all(|content| !matches!(content, Private::Open(_))));
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
}

#[test]
fn an_outcome_is_held_against_its_intent_also_where_that_was_pruned() {
    let world = fresh();
    let (log, _) = world.open().unwrap();
    for number in 0..120u64 {
        block_on(log.note(plain(number))).unwrap();
    }
    // Many intents, so that some outcome stands behind the minimum and its intent before it.
    let mut open = Vec::new();
    for call in 0..100u64 {
        let seq = block_on(log.intend(verdict(call, Decision::Permit), intent(call))).unwrap().seq();
        open.push((call, seq));
    }
    for (call, seq) in &open {
        block_on(log.settle(*seq, outcome(*call, *seq, "found"))).unwrap();
    }
    live(&log, &world, 0..300);
    let pruned = prune_before(&log, 300);
    block_on(log.close()).unwrap();
    let across = |stored: &ephor_chain::Stored| matches!(stored.entry.fact, Fact::Outcome { intent, .. } if intent.0 < pruned.minimum);
    let found = read(&world.config.folder, &world.files).map(Result::unwrap).filter(across).count();
    assert!(found > 10, "{found}");
    assert_eq!(world.verify(world.pinned()).unwrap().open_intents, 0);
}

#[test]
fn pruning_gives_room_within_a_quota_and_an_operator_is_told() {
    let (memory, mut world) = aged(400);
    let used = memory.used();
    world.config.quota = Some(used + (2 << 20));
    let (log, _) = world.open().unwrap();
    let before = log.space().unwrap().used;
    prune(&log).unwrap();
    let after = log.space().unwrap().used;
    assert!(after + 50_000 < before, "{before} {after}");
    drop(log);
    world.config.quota = Some(1);
    let (log, _) = world.open().unwrap();
    match block_on(log.append(asked(1))) {
        Err(error @ AppendError::Quota { .. }) => assert!(error.to_string().contains("ephor chain prune"), "{error}"),
        other => panic!("{other:?}"),
    }
    live_without_quota(&log);
}

fn live_without_quota(log: &Log) {
    assert!(matches!(prune(log), Err(PruneError::Nothing)));
}

#[test]
fn a_full_quota_does_not_stop_a_pruning() {
    let (_, mut world) = aged(400);
    world.config.quota = Some(1);
    let (log, _) = world.open().unwrap();
    assert!(prune(&log).unwrap().minimum > 0);
}

#[test]
fn a_caller_cannot_append_a_pruning_by_another_way() {
    let (_, world) = aged(400);
    let (log, _) = world.open().unwrap();
    prune(&log).unwrap();
    let fact = log.entries().map(Result::unwrap).find(|stored| matches!(stored.entry.fact, Fact::Prune(_))).unwrap();
    let record = Record { subject: fact.entry.subject, fact: fact.entry.fact, content: None };
    assert!(matches!(block_on(log.append(record.clone())), Err(AppendError::Misplaced(_))));
    assert!(matches!(block_on(log.note(record)), Err(AppendError::Misplaced(_))));
}

#[test]
fn a_pruned_log_is_backed_up_and_restored() {
    let (memory, world, pruned) = pruned();
    let disk = tempfile::tempdir().unwrap();
    let write = |memory: &Memory, home: &Path| {
        for (path, bytes) in memory.everything() {
            forge::write(&home.join(path.strip_prefix("/home").unwrap()), &bytes);
        }
    };
    let home = disk.path().join("home");
    write(&memory, &home);
    let files: std::sync::Arc<dyn ephor_base::files::Files> = std::sync::Arc::new(Disk);
    let on_disk =
        World { config: ephor_chain::Config { ..ephor_chain::Config::in_home(&home) }, ..world.with_files(files) };
    let copy = disk.path().join("copy");
    let keys = world.verifier();
    world.vault_key().save(&home.join("keys/vault"), &Disk).unwrap();
    let back_up = |from: &World| {
        let extras = ["keys/vault".into()];
        ephor_chain::backup(&from.config, &extras, Path::new("keys/log.pub"), &copy, &keys, &from.files, |_| ())
    };
    let backed_up = back_up(&on_disk).unwrap();
    assert_eq!(backed_up.head, world.pinned().unwrap().head);
    assert!(copy.join("chain/minimum").exists() && !copy.join("chain/tile/0/000").exists());
    assert_eq!(back_up(&on_disk).unwrap().before, backed_up.head.size);
    let (restored, signing) = (disk.path().join("restored"), disk.path().join("restored/keys/signing"));
    let config = ephor_chain::Config::in_home(&restored);
    let accepted = ephor_chain::restore(
        &copy,
        &config,
        ephor_chain::restore::Taken { signing: signing.as_path().into(), vault: Path::new("keys/vault"), also: &[] },
        &keys,
        &on_disk.files,
        world.clock.clone(),
        world.random.clone(),
        "1",
        |_| (),
    );
    let accepted = accepted.unwrap();
    assert_eq!((accepted.follows.size, accepted.follows.root), (backed_up.head.size, backed_up.head.root));
    assert_eq!(accepted.follows.used.message, 399, "numbers are used up also by what was pruned");
    let old = read(&accepted.moved_to.join("chain"), &on_disk.files).next().unwrap().unwrap();
    assert_eq!(old.entry.seq.0, pruned.minimum);
}

#[test]
fn a_backup_that_is_brought_up_to_date_is_pruned_with_its_home() {
    let (memory, world) = aged(400);
    let keys = world.verifier();
    let back_up = || {
        ephor_chain::backup(
            &world.config,
            &[],
            Path::new("keys/log.pub"),
            Path::new("/copy"),
            &keys,
            &world.files,
            |_| (),
        )
    };
    let first = back_up().unwrap();
    let (log, _) = world.open().unwrap();
    let pruned = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    assert_eq!(back_up().unwrap().before, first.head.size);
    let left = memory.paths().into_iter().filter(|path| path.starts_with("/copy/chain/tile/entries/000")).count();
    assert_eq!(left, 0);
    assert!(pruned.minimum >= 256);
    // One that ends before the minimum cannot be shown to be continued.
    let (log, _) = world.open().unwrap();
    live(&log, &world, 400..800);
    let again = prune(&log).unwrap();
    assert!(again.minimum > first.head.size + 20);
    block_on(log.close()).unwrap();
    let error = back_up().unwrap_err();
    assert!(matches!(error, ephor_chain::BackupError::Outdated { .. }), "{error}");
}

#[test]
fn nobody_prunes_for_nobody_and_the_record_says_who_did() {
    let (_, world, pruned) = pruned();
    let kinds: BTreeMap<_, _> = read(&world.config.folder, &world.files)
        .map(|stored| stored.unwrap().entry)
        .map(|entry| (entry.seq, (entry.fact.kind(), entry.subject.operator)))
        .collect();
    assert_eq!(kinds[&pruned.seq], ("prune", Some(OPERATOR)));
    assert_ne!(OPERATOR, OperatorId([0; 16]));
    assert_eq!(kinds[&Seq(pruned.seq.0 - 1)].0, "snapshot", "the segment begins with what is needed to open the log");
}

#[test]
fn what_goes_may_amount_to_more_than_one_entry_holds() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for number in 10_000..10_030 {
        block_on(log.veil(session(number))).unwrap();
        block_on(log.erase(session(number), Vec::new(), "gone".into(), OPERATOR)).unwrap();
    }
    for number in 0..700 {
        let (signal, cause) = (Signal::Suspend, Cause::Operator);
        let fact = Fact::Signal { signal, tree: false, cause, note: String::new() };
        let seat = Some(Seat::root(&format!("{number:0100}")));
        let subject = Subject { seat, operator: Some(OPERATOR), ..Subject::default() };
        block_on(log.note(Record { subject, fact, content: None })).unwrap();
    }
    live(&log, &world, 0..300);
    let copy = memory.copy();
    let pruned = prune(&log).unwrap();
    assert!(pruned.minimum > 700);
    let parts = log.entries().map(Result::unwrap).filter(|stored| matches!(stored.entry.fact, Fact::Prune(_))).count();
    assert_eq!(parts, 2);
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    // What is erased stays so, here and in a copy that was not pruned.
    for left in [memory, copy] {
        let world = world.with_files(left.files());
        let (log, _) = world.open().unwrap();
        assert!(matches!(block_on(log.append(asked(10_000))), Err(AppendError::Erased { .. })));
        block_on(log.append(asked(14_000))).unwrap();
    }
}
