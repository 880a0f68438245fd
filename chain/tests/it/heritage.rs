//! What stood on a log that is given up, and stands on in the one that follows it.

use std::path::Path;

use ed25519_dalek::SigningKey;
use ephor_base::{Digest, Seat, Seq};
use ephor_chain::{Against, Log, SigningKeys, verify};
use ephor_record::{
    Cause, Content, Credential, Decree, Enactment, Errand, Fact, Follows, Hold, HoldKind, LastNumbers, Missed, Record,
    Role, Signal, Standing, Subject, Terms, operators::operator_id, standing::StandingPart,
};

use crate::{
    accept::{SIGNING, accept_on, open_as_it_is},
    common::{SESSION, World, block_on, memory::Memory, message},
    standing::Judges,
};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn write(log: &Log, subject: Subject, fact: Fact) -> Seq {
    block_on(log.append(Record { subject, fact, content: None })).unwrap().seq
}

fn by(seed: u8) -> Subject {
    Subject { operator: Some(operator_id(key(seed).verifying_key().as_bytes())), ..Subject::default() }
}

/// The owner decrees, behind the latest decree.
fn decree(log: &Log, decree: Decree) -> Seq {
    let origin = log.keys().unwrap().origin().to_owned();
    let after = log.standing(|standing| standing.operators().latest());
    write(log, by(1), decree.sign(&origin, after, &key(1)))
}

fn enrol(seed: u8, name: &str, role: Role) -> Decree {
    Decree::Enrol { key: key(seed).verifying_key().to_bytes(), name: name.into(), role }
}

fn signal(log: &Log, signal: Signal, seat: &str, tree: bool, cause: Cause) {
    let subject = Subject { seat: Some(Seat::root(seat)), ..by(1) };
    write(log, subject, Fact::Signal { signal, tree, cause, note: String::new() });
}

const LAW: &[u8] = b"forbid (principal, action, resource);";

/// Everything that can stand.
fn stand(log: &Log) {
    decree(log, enrol(1, "ada", Role::Owner));
    decree(log, enrol(2, "bert", Role::Approver));
    decree(log, enrol(3, "carl", Role::Operator));
    decree(log, Decree::Dismiss { operator: by(3).operator.unwrap() });
    for part in Fact::document(LAW) {
        write(log, Subject::default(), part);
    }
    let terms = Terms {
        constitution: Digest::of(LAW),
        capabilities: Vec::new(),
        never: Vec::new(),
        models: ephor_base::Reach::default(),
    };
    decree(log, Decree::Enact { policy: Digest::of(b"all of it"), terms, environment: "dev".into() });
    signal(log, Signal::Stop, "node", true, Cause::Operator);
    signal(log, Signal::Suspend, "node/agents/a/loop", false, Cause::Operator);
    signal(log, Signal::Suspend, "node/agents/b/loop", false, Cause::Budget);
    block_on(log.append(message(1, "hello"))).unwrap();
    let errand = Errand { parts: Vec::new(), workspace: "/work".into(), model: None, agent: None, scope: None };
    let (cron, zone, missed) = ("0 7 * * *".into(), "UTC".into(), Missed::Once);
    let fact = Fact::Schedule { name: "a".into(), cron, zone, missed };
    let subject = Subject { session: Some(SESSION), ..by(1) };
    block_on(log.append(Record { subject, fact, content: Some(Content::Errand(errand)) })).unwrap();
}

fn held(standing: &Standing) -> Vec<(String, HoldKind, bool)> {
    standing.holds().iter().map(|hold| (hold.seat.to_string(), hold.kind, hold.tree)).collect()
}

#[test]
fn operators_the_law_and_a_stop_stand_on_behind_a_loss_and_nothing_that_ends_with_it() {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    world.keys().save(Path::new(SIGNING), &*world.files).unwrap();
    let (log, _) = world.open().unwrap();
    stand(&log);
    block_on(log.close()).unwrap();
    let segment = memory.paths().into_iter().find(|path| path.starts_with("/home/chain/journal")).unwrap();
    let mut bytes = memory.get(&segment);
    bytes[200] ^= 1;
    memory.put(&segment, bytes);
    accept_on(&world).unwrap();

    let log = open_as_it_is(&world).unwrap();
    let inherited = log.entries().map(|stored| stored.unwrap().entry).find(|one| one.fact.kind() == "inherited");
    let since = inherited.expect("nothing was taken over").seq;
    log.standing(|standing| {
        let operators = standing.operators();
        let role = |seed| operators.role(by(seed).operator.unwrap());
        assert_eq!([role(1), role(2), role(3)], [Some(Role::Owner), Some(Role::Approver), None]);
        assert_eq!(operators.law(), Some(Enactment { since, constitution: Digest::of(LAW) }));
        assert_eq!(operators.latest(), since, "what is decreed next is bound to it");
        let (stopped, suspended) = (HoldKind::Stopped, HoldKind::Suspended);
        let expected = [("node".into(), stopped, true), ("node/agents/a/loop".into(), suspended, false)];
        assert_eq!(held(standing), expected);
        assert_eq!((standing.schedules().count(), standing.dead().count(), standing.unanswered().count()), (0, 0, 0));
    });
    // The text of the law is there as well, for who has to decide by it.
    let text =
        |fact: Fact| matches!(fact, Fact::Document { digest, bytes, .. } if digest == Digest::of(LAW) && bytes == LAW);
    assert!(log.entries().any(|stored| text(stored.unwrap().entry.fact)));
    // A key that was dismissed never counts again, and the owner goes on from there.
    decree(&log, enrol(4, "dora", Role::Viewer));
    let again = enrol(3, "carl", Role::Operator).sign(
        log.keys().unwrap().origin(),
        log.standing(|s| s.operators().latest()),
        &key(1),
    );
    let refused = block_on(log.append(Record { subject: by(1), fact: again, content: None }));
    assert!(refused.is_err(), "{refused:?}");
    block_on(log.close()).unwrap();
    let keys = SigningKeys::load(Path::new(SIGNING), &*world.files).unwrap().verifier().clone();
    verify(&world.config.folder, &world.files, Against { keys: &keys, head: None, vault: None, from: None }, |_| ())
        .unwrap();
    let log = open_as_it_is(&world).unwrap();
    assert_eq!(log.standing(held).len(), 2, "over a boot as well");
    block_on(log.close()).unwrap();
}

/// What a part takes over, of operators by the seeds of their keys.
fn part(operators: &[(u8, &str, Option<Role>)]) -> StandingPart {
    let credential = |(seed, name, role): &(u8, &str, Option<Role>)| Credential {
        key: key(*seed).verifying_key().to_bytes(),
        name: (*name).to_owned(),
        since: Seq(7),
        role: *role,
    };
    let operators = Some(operators.iter().map(credential).collect::<Vec<_>>()).filter(|all| !all.is_empty());
    StandingPart { operators, ..StandingPart::default() }
}

#[test]
fn both_verifiers_let_a_log_take_over_what_stood_before_only_where_it_begins() {
    let judges = Judges::new();
    let follows = || {
        let (origin, reason, used) = ("ephor/before".into(), "lost".into(), LastNumbers::default());
        Some(Follows { origin, size: 9, root: Digest::of(b"root"), reason, used })
    };
    let boot = || Fact::Boot { number: 1, version: "1".into(), clean: true, trimmed_bytes: 0, vault: None };
    let own = |fact| (Subject::default(), fact);
    let ada = || part(&[(1, "ada", Some(Role::Owner)), (2, "bert", None), (3, "bert", Some(Role::Viewer))]);
    let law = || Some(Enactment { since: Seq(7), constitution: Digest::of(LAW) });
    let hold = |kind| StandingPart { holds: vec![Hold { seat: Seat::root("node"), kind, tree: true }], ..part(&[]) };
    let whole = || StandingPart { law: law(), ..ada() };
    let decreed = |after| {
        let fact = enrol(4, "dora", Role::Viewer).sign(&judges.origin(), Seq(after), &key(1));
        (by(1), fact)
    };
    let resumed = || {
        let (signal, tree, cause, note) = (Signal::Resume, true, Cause::Operator, String::new());
        let fact = Fact::Signal { signal, tree, cause, note };
        (Subject { seat: Some(Seat::root("node")), ..by(1) }, fact)
    };
    let heirs = |parts: Vec<StandingPart>| parts.into_iter().map(|part| own(Fact::Inherited(part))).collect::<Vec<_>>();
    let begun = |parts: Vec<StandingPart>, then: Vec<(Subject, Fact)>| [heirs(parts), vec![own(boot())], then].concat();
    let stopped = || hold(HoldKind::Stopped);
    let cases = vec![
        ("taken over, and decreed behind it", true, begun(vec![whole(), stopped()], vec![decreed(1), resumed()])),
        ("a decree bound to what the old log had", false, begun(vec![whole()], vec![decreed(7)])),
        ("taken over behind a boot", false, vec![own(boot()), own(Fact::Inherited(whole()))]),
        ("the same key twice", false, begun(vec![ada(), part(&[(1, "eve", Some(Role::Owner))])], vec![])),
        ("a name that is taken", false, begun(vec![ada(), part(&[(5, "ada", Some(Role::Viewer))])], vec![])),
        ("a name that is none", false, begun(vec![part(&[(1, "A da", Some(Role::Owner))])], vec![])),
        ("a second law", false, begun(vec![whole(), StandingPart { law: law(), ..part(&[]) }], vec![])),
        ("nothing", false, begun(vec![part(&[])], vec![])),
        ("a budget that was spent", false, begun(vec![hold(HoldKind::Spent)], vec![])),
        ("with a subject", false, vec![(by(1), Fact::Inherited(whole())), own(boot())]),
    ];
    for (name, holds, facts) in cases {
        judges.agree_on(name, holds, follows(), facts);
    }
    judges.agree_on("by a log that follows none", false, None, begun(vec![whole()], vec![]));
    // Who is in office may send, and so no schedule of theirs is withheld.
    let (cron, zone, missed) = ("0 7 * * *".to_owned(), "UTC".to_owned(), Missed::Once);
    let schedule = Fact::Schedule { name: "a".into(), cron, zone, missed };
    let made = (Subject { session: Some(SESSION), ..by(1) }, schedule);
    for (seed, holds) in [(1, false), (2, true), (3, true)] {
        let facts = begun(vec![ada()], vec![made.clone(), (by(seed), Fact::Withheld { name: "a".into() })]);
        judges.agree_on("withheld", holds, follows(), facts);
    }
}
