//! Holds, dead letters and schedules: what stands, what survives, and what both verifiers refuse.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{Budget, Digest, EndReason, MessageId, Part, PartKind, Seat, Seq, SessionId, Timestamp, TurnReport};
use ephor_chain::{
    Against, AppendError, Log, State,
    disk::Disk,
    state::{Order, Page, Reading},
    verify,
};
use ephor_record::{
    Appointment, Because, Cause, Content, Entry, Fact, Follows, Hold, HoldKind, Holds, Missed, Pin, Pinned, Record,
    Signal, Standing, Subject, Undelivered, standing::is_at_or_below,
};
use ephor_tlog::{Head, VerifierKeys};

use crate::{
    common::{
        OPERATOR, SESSION, Seeded, World, block_on,
        forge::{self, Forge, Tiles},
        outgrow,
    },
    document::Second,
};

fn seat(path: &str) -> Seat {
    path.split('/').skip(1).fold(Seat::root("node"), |seat, name| seat.child(name))
}

fn on(path: &str) -> Subject {
    Subject { seat: Some(seat(path)), operator: Some(OPERATOR), ..Subject::default() }
}

fn signal(signal: Signal, tree: bool, cause: Cause) -> Fact {
    Fact::Signal { signal, tree, cause, note: "words".into() }
}

fn by_operator(of: Signal, tree: bool) -> Fact {
    signal(of, tree, Cause::Operator)
}

fn message(id: u64, because: Option<Because>) -> Fact {
    Fact::Message { id: MessageId(id), spans: Vec::new(), from: None, because, owed: true, scope: None, offset: None }
}

fn dead(message: u64, accepted: u64) -> Fact {
    Fact::Dead { message: MessageId(message), accepted: Seq(accepted), why: Undelivered::Stopped }
}

fn buried(message: u64) -> Fact {
    Fact::Buried { message: MessageId(message), note: String::new() }
}

fn ended(message: u64) -> Fact {
    Fact::TurnEnd { message: MessageId(message), end: EndReason::Replied, report: TurnReport::default() }
}

fn schedule(name: &str) -> Fact {
    Fact::Schedule { name: name.into(), cron: "30 2 * * *".into(), zone: "Europe/Berlin".into(), missed: Missed::Skip }
}

fn appointed(p0: u16) -> Fact {
    Fact::Appointed(Appointment {
        agent: "digest".into(),
        role: "reader".into(),
        namespace: "press".into(),
        p0,
        tools: Some(vec!["fs.read".parse().unwrap()]),
        zone: Some("Europe/Berlin".into()),
        planned: true,
    })
}

/// The configuration says something else of an agent.
pub(crate) fn record_of_appointment() -> Record {
    let seat = Some(Seat::root("node").child("agents").child("a").child("loop"));
    Record {
        subject: Subject { session: Some(SESSION), seat, ..Subject::default() },
        fact: appointed(100),
        content: None,
    }
}

/// A message for whose turn it is pinned where a tool may act.
pub(crate) fn pinned() -> Content {
    let parts = vec![Part { kind: PartKind::Typed, text: "write it down".into() }];
    Content::Pinned(Pinned { parts, pins: vec![pin()], looks: false })
}

/// A tool, and where it may act.
pub(crate) fn pin() -> Pin {
    Pin { tool: "fs.write".parse().unwrap(), targets: Some(vec!["notes.md".into()]) }
}

fn fire(name: &str, at: u64) -> Option<Because> {
    Some(Because::Fire { name: name.into(), at: Timestamp(at) })
}

const fn limit() -> Fact {
    Fact::Limit { limit: Budget { tokens: 7, children: 2, ..Budget::ZERO }, note: String::new() }
}

/// Logs that keep the rules and that break one. The facts stand behind an origin and a boot, so the first is entry 2.
#[expect(clippy::type_complexity, reason = "a table, read in one place")]
fn cases() -> Vec<(&'static str, bool, Vec<(Subject, Fact)>)> {
    let of = || Subject { session: Some(SESSION), operator: Some(OPERATOR), ..Subject::default() };
    let nobody = Subject::default;
    let session = || Subject { operator: None, ..of() };
    let in_seat = || Subject { session: Some(SESSION), seat: Some(Seat::root("node")), ..Subject::default() };
    let (stop, resume) = (by_operator(Signal::Stop, true), by_operator(Signal::Resume, true));
    let skipped = |at| Fact::Skipped { name: "a".into(), at: Timestamp(at) };
    let unscheduled = || Fact::Unscheduled { name: "a".into() };
    let withheld = || Fact::Withheld { name: "a".into() };
    let fired = |id, at| message(id, fire("a", at));
    let replay = |id| Some(Because::Replay(MessageId(id)));
    let erased = || Fact::Erase { session: SESSION, derived: Vec::new(), reason: "asked for".into() };
    let other = || Subject { session: Some(SessionId([8; 16])), ..of() };
    vec![
        (
            "withheld, fired and withheld again",
            true,
            vec![
                (of(), schedule("a")),
                (of(), withheld()),
                (nobody(), skipped(1)),
                (of(), fired(1, 2)),
                (of(), withheld()),
            ],
        ),
        ("appointed", true, vec![(in_seat(), appointed(250))]),
        ("appointed by somebody", false, vec![(of(), appointed(250))]),
        ("appointed in no seat", false, vec![(session(), appointed(250))]),
        ("appointed with no null", false, vec![(in_seat(), appointed(0))]),
        ("appointed with a null of all", false, vec![(in_seat(), appointed(1000))]),
        ("withheld twice", false, vec![(of(), schedule("a")), (of(), withheld()), (of(), withheld())]),
        ("withheld for nobody", false, vec![(of(), schedule("a")), (nobody(), withheld())]),
        ("withheld, and there is none", false, vec![(of(), withheld())]),
        ("held and resumed", true, vec![(on("node"), stop.clone()), (on("node"), resume.clone())]),
        ("resumed though not held", true, vec![(on("node"), resume)]),
        (
            "spent and raised",
            true,
            vec![
                (session_seat(), signal(Signal::Suspend, false, Cause::Budget)),
                (on("node/agents/a/loop"), limit()),
                (session_seat(), signal(Signal::Resume, true, Cause::Gone)),
            ],
        ),
        ("a signal without a seat", false, vec![(of(), stop.clone())]),
        ("an operator's signal by nobody", false, vec![(Subject { operator: None, ..on("node") }, stop)]),
        ("a stop for the budget", false, vec![(on("node"), signal(Signal::Stop, false, Cause::Budget))]),
        ("a kill by the kernel", false, vec![(on("node"), signal(Signal::Kill, false, Cause::Gone))]),
        ("a limit by nobody", false, vec![(Subject { operator: None, ..on("node") }, limit())]),
        ("a limit for no seat", false, vec![(of(), limit())]),
        ("died and replayed", true, vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), message(2, replay(1)))]),
        ("died and buried", true, vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), buried(1))]),
        (
            "replayed twice",
            false,
            vec![
                (of(), message(1, None)),
                (of(), dead(1, 2)),
                (of(), message(2, replay(1))),
                (of(), message(3, replay(1))),
            ],
        ),
        ("replayed alive", false, vec![(of(), message(1, None)), (of(), message(2, replay(1)))]),
        (
            "buried twice",
            false,
            vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), buried(1)), (of(), buried(1))],
        ),
        ("buried by nobody", false, vec![(of(), message(1, None)), (of(), dead(1, 2)), (nobody(), buried(1))]),
        ("dead and answered", false, vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), ended(1))]),
        (
            "answered when it was replayed",
            true,
            vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), message(2, replay(1))), (of(), ended(2))],
        ),
        ("dies twice", false, vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), dead(1, 2))]),
        ("dies before it is accepted", false, vec![(of(), dead(1, 2))]),
        ("dies though it was answered", false, vec![(of(), message(1, None)), (of(), ended(1)), (of(), dead(1, 2))]),
        ("dies in another place", false, vec![(of(), message(1, None)), (of(), dead(1, 1))]),
        ("dies for no session", false, vec![(of(), message(1, None)), (nobody(), dead(1, 2))]),
        (
            "fires",
            true,
            vec![
                (of(), schedule("a")),
                (of(), message(1, fire("a", 10))),
                (nobody(), skipped(11)),
                (of(), message(2, fire("a", 12))),
                (of(), unscheduled()),
                (of(), schedule("a")),
                (of(), message(3, fire("a", 12))),
            ],
        ),
        (
            "fires twice",
            false,
            vec![(of(), schedule("a")), (of(), message(1, fire("a", 10))), (of(), message(2, fire("a", 10)))],
        ),
        (
            "fires what was passed over",
            false,
            vec![(of(), schedule("a")), (nobody(), skipped(11)), (of(), message(2, fire("a", 10)))],
        ),
        ("fires unscheduled", false, vec![(of(), message(1, fire("a", 10)))]),
        ("scheduled twice", false, vec![(of(), schedule("a")), (of(), schedule("a"))]),
        ("scheduled by nobody", false, vec![(session(), schedule("a"))]),
        ("unscheduled by nobody", false, vec![(of(), schedule("a")), (nobody(), unscheduled())]),
        (
            "died, scheduled and erased",
            true,
            vec![
                (of(), message(1, None)),
                (of(), dead(1, 2)),
                (of(), schedule("a")),
                (of(), erased()),
                (other(), schedule("a")),
                (other(), message(2, fire("a", 10))),
            ],
        ),
        (
            "replayed though erased",
            false,
            vec![(of(), message(1, None)), (of(), dead(1, 2)), (of(), erased()), (other(), message(2, replay(1)))],
        ),
        (
            "fires though erased",
            false,
            vec![(of(), schedule("a")), (of(), erased()), (other(), message(1, fire("a", 10)))],
        ),
        ("unscheduled twice", false, vec![(of(), schedule("a")), (of(), unscheduled()), (of(), unscheduled())]),
    ]
}

fn session_seat() -> Subject {
    Subject { session: Some(SESSION), operator: None, ..on("node/agents/a/loop") }
}

#[test]
fn both_verifiers_hold_the_rules_of_what_stands() {
    let judges = Judges::new();
    for (name, holds, facts) in cases() {
        judges.agree(name, holds, facts);
    }
}

/// Both verifiers, over a log that is made up.
pub(crate) struct Judges {
    forge: Forge,
    second: Option<Second>,
}

impl Judges {
    pub(crate) fn new() -> Self {
        Self { forge: Forge::new(&Seeded::new(42)), second: Second::find() }
    }

    /// The name of the log.
    pub(crate) fn origin(&self) -> String {
        self.keys().origin().to_owned()
    }

    fn keys(&self) -> VerifierKeys {
        self.forge.lines().map(|line| line + "\n").concat().parse().unwrap()
    }

    /// Holds these facts, behind an origin and a boot, against the rules.
    pub(crate) fn agree(&self, name: &str, holds: bool, facts: Vec<(Subject, Fact)>) {
        let boot = Fact::Boot { number: 1, version: "1".into(), clean: true, trimmed_bytes: 0, vault: None };
        let all = [(Subject::default(), boot)].into_iter().chain(facts);
        self.agree_on(name, holds, None, all.collect());
    }

    /// Holds these facts, behind an origin, against the rules.
    pub(crate) fn agree_on(&self, name: &str, holds: bool, follows: Option<Follows>, facts: Vec<(Subject, Fact)>) {
        let forge = &self.forge;
        let [ed25519, ml_dsa_65] = forge.lines();
        let origin = Fact::Origin { ed25519, ml_dsa_65, follows };
        let all = [(Subject::default(), origin)].into_iter().chain(facts);
        let entry = |(seq, (subject, fact)): (u64, (Subject, Fact))| {
            Entry { version: 2, seq: Seq(seq), time: Timestamp(1), subject, fact, content: None }.to_bytes()
        };
        let entries: Vec<Vec<u8>> = (0..).zip(all).map(entry).collect();
        let home = tempfile::tempdir().unwrap();
        let chain = home.path().join("chain");
        let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| forge::write(&chain.join(path), bytes));
        entries.iter().for_each(|entry| tiles.push(entry));
        let checkpoint = forge.checkpoint(tiles.finish());
        forge::write(&chain.join("checkpoint"), &checkpoint);
        let empty = Head { size: 0, root: Digest::of(&[]) };
        let segment = forge.segment(empty, &entries, &[], &checkpoint);
        forge::write(&chain.join(format!("journal/{:020}.seg", 0)), &segment);
        let keys = self.keys();
        forge::write(&home.path().join("keys"), keys.to_string().as_bytes());
        let against = Against { keys: &keys, head: None, vault: None, from: None };
        let first = verify(&chain, &(Arc::new(Disk) as _), against, |_| ());
        assert_eq!(first.is_ok(), holds, "{name}: {first:?}");
        if let Some(second) = &self.second {
            let said = second.run(&[Path::new("chain"), &chain, &home.path().join("keys")]);
            assert_eq!(said.is_ok(), holds, "{name}: {said:?}");
        }
    }
}

#[test]
fn who_is_held_is_found_by_the_path_as_by_looking_at_every_hold() {
    let paths = ["", "/agents", "/agents/a", "/agents/a/loop", "/agents/a-b", "/agents/ab", "/agents/ab/loop"];
    let seats: Vec<Seat> = paths.iter().map(|path| seat(&format!("node{path}"))).collect();
    let acts = [
        (Signal::Suspend, Cause::Operator),
        (Signal::Suspend, Cause::Budget),
        (Signal::Stop, Cause::Operator),
        (Signal::Resume, Cause::Operator),
        (Signal::Resume, Cause::Gone),
    ];
    let (mut holds, chance) = (Holds::default(), Seeded::new(3));
    let below = |most: usize| usize::try_from(chance.below(most as u64)).unwrap();
    for _ in 0..2000 {
        let (seat, (signal, cause)) = (&seats[below(seats.len())], acts[below(acts.len())]);
        holds.apply(signal, seat, below(2) == 0, cause).unwrap();
        for seat in &seats {
            let holding = |hold: &Hold| hold.seat == *seat || (hold.tree && is_at_or_below(seat, &hold.seat));
            let hardest = |hold: &Hold| match hold.kind {
                HoldKind::Spent => 0,
                HoldKind::Suspended => 1,
                HoldKind::Stopped => 2,
            };
            let hardest = holds.iter().filter(holding).max_by_key(hardest).map(|hold| hold.kind);
            assert_eq!(holds.on(seat), hardest, "{seat}");
            assert_eq!(holds.any_at_or_below(seat), holds.iter().any(|hold| is_at_or_below(&hold.seat, seat)));
        }
    }
}

fn write(log: &Log, subject: Subject, fact: Fact) -> Result<Seq, AppendError> {
    block_on(log.append(Record { subject, fact, content: None })).map(|receipt| receipt.seq)
}

/// Everything that stands.
fn told(standing: &Standing) -> String {
    let [holds, dead, schedules] = [
        format!("{:?}", standing.holds().iter().collect::<Vec<_>>()),
        format!("{:?}", standing.dead().collect::<Vec<_>>()),
        format!("{:?}", standing.schedules().collect::<Vec<_>>()),
    ];
    format!("{holds}\n{dead}\n{schedules}\n{:?}", standing.unanswered().collect::<Vec<_>>())
}

#[test]
fn what_stands_outlives_reboots_and_the_journal_it_was_written_in() {
    let home = tempfile::tempdir().unwrap();
    let mut world = World::new(Arc::new(Disk), home.path());
    world.config.segment_bytes = 4096;
    let (log, recovered) = world.open().unwrap();
    assert_eq!(recovered.standing, Standing::default());
    let of = Subject { session: Some(SESSION), operator: Some(OPERATOR), ..Subject::default() };
    write(&log, on("node"), by_operator(Signal::Stop, true)).unwrap();
    write(&log, on("node/agents/b"), by_operator(Signal::Suspend, false)).unwrap();
    write(&log, on("node/agents/b"), by_operator(Signal::Suspend, true)).unwrap();
    write(&log, on("node/agents/c"), signal(Signal::Suspend, false, Cause::Budget)).unwrap();
    write(&log, on("node/agents/c"), by_operator(Signal::Resume, true)).unwrap();
    write(&log, on("node/agents/d"), by_operator(Signal::Suspend, true)).unwrap();
    write(&log, on("node/agents/d"), signal(Signal::Resume, true, Cause::Gone)).unwrap();
    let accepted = write(&log, of.clone(), message(1, None)).unwrap();
    write(&log, of.clone(), message(2, None)).unwrap();
    write(&log, of.clone(), dead(1, accepted.0)).unwrap();
    // More than fits into one part of a snapshot.
    for number in 1000..2200 {
        let record = Record { subject: of.clone(), fact: message(number, None), content: None };
        let accepted = block_on(log.note(record)).unwrap().seq;
        block_on(log.note(Record { subject: of.clone(), fact: dead(number, accepted.0), content: None })).unwrap();
    }
    let mut made = Vec::new();
    for (name, number) in [("a", 3), ("b", 4)] {
        made.push(write(&log, of.clone(), schedule(name)).unwrap());
        write(&log, of.clone(), message(number, fire(name, 5))).unwrap();
    }
    write(&log, of.clone(), ended(4)).unwrap();
    write(&log, of.clone(), schedule("never")).unwrap();
    block_on(log.close()).unwrap();
    let (log, before) = world.open().unwrap();
    let holds: Vec<_> =
        before.standing.holds().iter().map(|hold| (hold.seat.to_string(), hold.kind, hold.tree)).collect();
    let expected = [
        ("node".to_owned(), HoldKind::Stopped, true),
        ("node/agents/b".to_owned(), HoldKind::Suspended, true),
        ("node/agents/c".to_owned(), HoldKind::Spent, false),
    ];
    assert_eq!(holds, expected);
    assert_eq!(before.standing.dead().count(), 1201);
    assert_eq!(before.standing.unanswered().map(|one| one.message.0).collect::<Vec<_>>(), [2, 3]);
    let schedules: Vec<_> = before.standing.schedules().map(|one| (one.name.as_str(), one.made, one.last)).collect();
    let last = Some(Timestamp(5));
    assert_eq!(schedules[..2], [("a", made[0], last), ("b", made[1], last)]);
    assert_eq!((schedules[2].0, schedules[2].2), ("never", None));

    outgrow(&log, &world);
    let refused = write(&log, of.clone(), message(9, Some(Because::Replay(MessageId(77)))));
    assert!(matches!(refused, Err(AppendError::Misplaced(_))), "{refused:?}");
    let refused = write(&log, of.clone(), message(9, fire("a", 5)));
    assert!(matches!(refused, Err(AppendError::Misplaced(_))), "{refused:?}");
    drop(log);
    let (log, after) = world.open().unwrap();
    assert_eq!(told(&after.standing), told(&before.standing), "read from a snapshot alone");
    write(&log, of.clone(), message(10, Some(Because::Replay(MessageId(1))))).unwrap();
    let again = write(&log, of, message(11, Some(Because::Replay(MessageId(1)))));
    assert!(matches!(again, Err(AppendError::Misplaced(_))), "{again:?}");
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    if let Some(second) = Second::find() {
        std::fs::write(home.path().join("keys"), world.verifier().to_string()).unwrap();
        second.chain(home.path()).unwrap();
    }
}

#[test]
fn projections_list_dead_letters_and_what_became_of_them() {
    let home = tempfile::tempdir().unwrap();
    let world = World::new(Arc::new(Disk), home.path());
    let (log, _) = world.open().unwrap();
    let of =
        Subject { session: Some(SESSION), operator: Some(OPERATOR), seat: Some(seat("node/a")), ..Subject::default() };
    for number in 1..=3 {
        let accepted = write(&log, of.clone(), message(number, None)).unwrap();
        write(&log, of.clone(), dead(number, accepted.0)).unwrap();
    }
    let rose = write(&log, of.clone(), message(4, Some(Because::Replay(MessageId(1))))).unwrap();
    write(&log, of, buried(3)).unwrap();
    block_on(log.publish()).unwrap();
    let mut state = State::open(&home.path().join("state"), world.verifier().origin());
    let chain = Reading::up_to(&world.config.folder, &world.files, log.head());
    let page = Page { order: Order::Oldest, behind: None, most: 10 };
    let rows = state.ask(&chain, &mut |_| (), |view| view.dead(page)?.collect::<Result<Vec<_>, _>>()).unwrap();
    let became: Vec<_> = rows.iter().map(|row| row.became.map(|became| became.replayed)).collect();
    assert_eq!(became, [Some(Some(MessageId(4))), None, Some(None)]);
    assert_eq!(rows[0].became.unwrap().when.seq, rose);
    assert_eq!(
        (rows[1].why, rows[1].session, rows[1].seat.clone()),
        (Undelivered::Stopped, Some(SESSION), Some(seat("node/a")))
    );
    let one = state.ask(&chain, &mut |_| (), |view| view.dead_letter(MessageId(2))).unwrap().unwrap();
    assert_eq!(one, rows[1]);
}
