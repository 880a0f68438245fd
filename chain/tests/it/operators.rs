//! Operators, their roles and the law that they enact: what counts, what survives, and what both verifiers refuse.

use std::sync::Arc;

use ed25519_dalek::SigningKey;
use ephor_base::{Digest, OperatorId, Seq};
use ephor_chain::{AppendError, Log, disk::Disk};
use ephor_record::{Decree, Fact, Record, Role, Subject, Terms, operators::operator_id};

use crate::{
    common::{World, block_on, outgrow},
    document::Second,
    standing::Judges,
};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn id(seed: u8) -> OperatorId {
    operator_id(key(seed).verifying_key().as_bytes())
}

fn enrol(seed: u8, name: &str, role: Role) -> Decree {
    Decree::Enrol { key: key(seed).verifying_key().to_bytes(), name: name.into(), role }
}

const fn rank(operator: OperatorId, role: Role) -> Decree {
    Decree::Rank { operator, role }
}

const fn dismiss(operator: OperatorId) -> Decree {
    Decree::Dismiss { operator }
}

fn enact(text: &[u8]) -> Decree {
    let terms = Terms {
        constitution: Digest::of(text),
        capabilities: Vec::new(),
        never: Vec::new(),
        models: ephor_base::Reach::default(),
    };
    Decree::Enact { policy: Digest::of(b"all of it"), terms, environment: "dev".into() }
}

fn by(seed: u8) -> Subject {
    Subject { operator: Some(id(seed)), ..Subject::default() }
}

/// Decrees of owner 1, one after another; the first stands at entry 2.
fn decreed(origin: &str, decrees: Vec<Decree>) -> Vec<(Subject, Fact)> {
    let after = |at: usize| if at == 0 { Seq(0) } else { Seq(at as u64 + 1) };
    let signed = |(at, decree): (usize, Decree)| (by(1), decree.sign(origin, after(at), &key(1)));
    decrees.into_iter().enumerate().map(signed).collect()
}

#[test]
fn both_verifiers_let_only_owners_in_office_say_who_operates_and_under_which_law() {
    use Role::{Approver, Owner, Viewer};
    let judges = Judges::new();
    let origin = judges.origin();
    let first = || enrol(1, "ada", Owner);
    let all = |decrees: Vec<Decree>| decreed(&origin, decrees);
    // The last is another's, or signed otherwise.
    let then = |decrees: Vec<Decree>, subject: Subject, fact: Fact| {
        let mut facts = all(decrees);
        facts.push((subject, fact));
        facts
    };
    let two = || vec![first(), enrol(2, "bob", Approver)];
    let cases = vec![
        ("an owner, and whom the owner enrols", true, all(two())),
        (
            "another role, dismissal, a law",
            true,
            all([two(), vec![rank(id(2), Owner), dismiss(id(2)), enact(b"x")]].concat()),
        ),
        (
            "the first owner leaves when there is another",
            true,
            then([two(), vec![rank(id(2), Owner)]].concat(), by(1), dismiss(id(1)).sign(&origin, Seq(4), &key(1))),
        ),
        (
            "the new owner decrees",
            true,
            then([two(), vec![rank(id(2), Owner)]].concat(), by(2), dismiss(id(1)).sign(&origin, Seq(4), &key(2))),
        ),
        ("a name of one who was dismissed", true, all([two(), vec![dismiss(id(2)), enrol(3, "bob", Viewer)]].concat())),
        ("the first is no owner", false, all(vec![enrol(1, "ada", Approver)])),
        ("the first is enrolled by another", false, vec![(by(2), first().sign(&origin, Seq(0), &key(2)))]),
        ("the first in another's name", false, vec![(by(2), first().sign(&origin, Seq(0), &key(1)))]),
        ("a law before anybody was enrolled", false, all(vec![enact(b"x")])),
        ("by nobody", false, vec![(Subject::default(), first().sign(&origin, Seq(0), &key(1)))]),
        (
            "a second one vouches for itself",
            false,
            then(vec![first()], by(2), enrol(2, "bob", Owner).sign(&origin, Seq(2), &key(2))),
        ),
        ("an approver enrols", false, then(two(), by(2), enrol(3, "eve", Viewer).sign(&origin, Seq(3), &key(2)))),
        (
            "an approver in an owner's name",
            false,
            then(two(), by(1), enrol(3, "eve", Viewer).sign(&origin, Seq(3), &key(2))),
        ),
        (
            "an approver makes himself an owner",
            false,
            then(two(), by(2), rank(id(2), Owner).sign(&origin, Seq(3), &key(2))),
        ),
        ("an approver changes the law", false, then(two(), by(2), enact(b"x").sign(&origin, Seq(3), &key(2)))),
        (
            "an owner who was dismissed",
            false,
            then(
                [two(), vec![rank(id(2), Owner), dismiss(id(2))]].concat(),
                by(2),
                enact(b"x").sign(&origin, Seq(5), &key(2)),
            ),
        ),
        (
            "for another log",
            false,
            then(vec![first()], by(1), enrol(2, "bob", Viewer).sign("ephor/0", Seq(2), &key(1))),
        ),
        ("for another place", false, then(two(), by(1), enrol(3, "eve", Viewer).sign(&origin, Seq(2), &key(1)))),
        (
            "the same again",
            false,
            then(
                [two(), vec![rank(id(2), Viewer), rank(id(2), Owner)]].concat(),
                by(1),
                rank(id(2), Viewer).sign(&origin, Seq(3), &key(1)),
            ),
        ),
        ("without a signature", false, then(vec![first()], by(1), enrol(2, "bob", Viewer).signed(Vec::new()))),
        ("the last owner is dismissed", false, all([two(), vec![dismiss(id(1))]].concat())),
        ("the last owner gets less", false, all([two(), vec![rank(id(1), Approver)]].concat())),
        ("a key for the second time", false, all([two(), vec![dismiss(id(2)), enrol(2, "bob", Viewer)]].concat())),
        ("a name for the second time", false, all([two(), vec![enrol(3, "bob", Viewer)]].concat())),
        ("no name", false, all(vec![first(), enrol(2, "", Viewer)])),
        ("a name with a line feed", false, all(vec![first(), enrol(2, "bob\n", Viewer)])),
        (
            "a key of small order",
            false,
            all(vec![first(), Decree::Enrol { key: [0; 32], name: "bob".into(), role: Viewer }]),
        ),
        ("nobody's role", false, all(vec![first(), rank(id(2), Viewer)])),
        ("nobody's dismissal", false, all(vec![first(), dismiss(id(2))])),
    ];
    for (name, holds, facts) in cases {
        judges.agree(name, holds, facts);
    }
}

fn decree(log: &Log, decree: Decree) -> Result<Seq, AppendError> {
    let (origin, after) =
        (log.keys().unwrap().origin().to_owned(), log.standing(|standing| standing.operators().latest()));
    let record = Record { subject: by(1), fact: decree.sign(&origin, after, &key(1)), content: None };
    block_on(log.append(record)).map(|receipt| receipt.seq)
}

#[test]
fn operators_and_the_law_outlive_reboots_and_the_journal_they_were_written_in() {
    let home = tempfile::tempdir().unwrap();
    let mut world = World::new(Arc::new(Disk), home.path());
    world.config.segment_bytes = 4096;
    let (log, recovered) = world.open().unwrap();
    assert!(recovered.standing.operators().is_empty());
    for one in [enrol(1, "ada", Role::Owner), enrol(2, "bob", Role::Approver), enrol(3, "eve", Role::Owner)] {
        decree(&log, one).unwrap();
    }
    decree(&log, dismiss(id(3))).unwrap();
    // More than fits into one part of a snapshot.
    for number in 10_u8..=250 {
        for half in ["a", "b"] {
            let key = SigningKey::from_bytes(
                Digest::of(format!("{half}{number}").as_bytes()).0.as_slice().try_into().unwrap(),
            );
            let name = format!("{half}-{number}-{}", "x".repeat(50));
            decree(&log, Decree::Enrol { key: key.verifying_key().to_bytes(), name, role: Role::Viewer }).unwrap();
        }
    }
    let law = decree(&log, enact(b"the law")).unwrap();
    let before = log.standing(|standing| standing.operators().clone());
    outgrow(&log, &world);
    drop(log);
    let (log, after) = world.open().unwrap();
    let operators = after.standing.operators();
    assert_eq!(*operators, before, "read from a snapshot alone");
    assert_eq!((operators.role(id(2)), operators.role(id(3))), (Some(Role::Approver), None));
    assert_eq!(operators.law().map(|one| (one.since, one.constitution)), Some((law, Digest::of(b"the law"))));
    assert_eq!(operators.latest(), law);
    // Who was dismissed is remembered as such.
    let again = decree(&log, enrol(3, "eve", Role::Viewer));
    assert!(matches!(again, Err(AppendError::Misplaced(_))), "{again:?}");
    decree(&log, rank(id(2), Role::Owner)).unwrap();
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    if let Some(second) = Second::find() {
        std::fs::write(home.path().join("keys"), world.verifier().to_string()).unwrap();
        second.chain(home.path()).unwrap();
    }
}
