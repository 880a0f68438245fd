//! Answers that are used again, and what approvers end: what counts, what survives, and what both verifiers refuse.

use std::{path::Path, sync::Arc, time::Duration};

use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{Arguments, Decision, Digest, EffectVector, OperatorId, Seat, Seq, SessionId, TicketId, Timestamp};
use ephor_chain::{AppendError, disk::Disk};
use ephor_record::{
    Always, Content, Decree, Fact, Judgment, Record, Role, RulingOn, Subject, judgment, operators::operator_id,
};

use crate::{
    common::{SESSION, World, block_on, memory::Memory, outgrow},
    document::Second,
    standing::Judges,
};

fn key(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

fn id(seed: u8) -> OperatorId {
    operator_id(key(seed).verifying_key().as_bytes())
}

/// A person in a session.
fn by(seed: u8) -> Subject {
    Subject { session: Some(SESSION), operator: Some(id(seed)), ..Subject::default() }
}

fn always(until: Timestamp) -> Always {
    Always {
        seat: Seat::root("node").child("agents"),
        tool: "mail.send".parse().unwrap(),
        registration: Digest::of(b"registration"),
        free: vec!["body".into()],
        reasons: vec!["argument-to-is-untrusted".into()],
        effects: EffectVector::new(100, 0, 10, 250, 0),
        until,
    }
}

fn answer(always: Always) -> Fact {
    Fact::Ruling {
        on: RulingOn::Ticket(TicketId(1)),
        decision: Decision::Permit,
        signature: vec![8; 64],
        how: "answered".into(),
        policy: Some(Digest::of(b"policy")),
        note: Some("as every week".into()),
        always: Some(Box::new(always)),
    }
}

fn judged(judgment: Judgment, origin: &str, seed: u8) -> Fact {
    let note = "no more";
    let signature = key(seed).sign(&judgment.signed_bytes(origin, note)).to_bytes().to_vec();
    judgment.signed(note.into(), signature)
}

/// One of each for the vectors, the first at `first`. The owner of those is the holder of key 5.
pub(crate) fn records(first: u64) -> Vec<Record> {
    let origin = World::new(Memory::default().files(), Path::new("/home")).verifier().origin().to_owned();
    let of = |fact, content| Record { subject: by(5), fact, content };
    let given = || {
        let fixed = Arguments::parse(r#"{"to":"a@b.example"}"#).unwrap();
        of(
            answer(always(Timestamp(1_795_300_000_000_000))),
            Some(Content::Same { workspace: "/home/a".into(), arguments: fixed }),
        )
    };
    let revoke = judged(Judgment::Revoke { ruling: Seq(first) }, &origin, 5);
    let lift = judged(Judgment::Lift { session: SESSION, since: Seq(first - 1) }, &origin, 5);
    vec![given(), given(), of(revoke, None), of(lift, None)]
}

#[test]
fn both_verifiers_take_what_is_used_again_and_what_ends_it_from_approvers_alone() {
    let judges = Judges::new();
    let origin = judges.origin();
    let enrol = |seed, role, after| {
        let decree = Decree::Enrol { key: key(seed).verifying_key().to_bytes(), name: format!("n-{seed}"), role };
        (Subject { operator: Some(id(1)), ..Subject::default() }, decree.sign(&origin, Seq(after), &key(1)))
    };
    // Entries 2 to 4, so that what follows stands at 5 and 6. All of it happens in one moment.
    let people = || vec![enrol(1, Role::Owner, 0), enrol(2, Role::Approver, 2), enrol(3, Role::Operator, 3)];
    let behind = |facts: Vec<(Subject, Fact)>| [people(), facts].concat();
    let given = |seed| (by(seed), answer(always(Timestamp(2))));
    let revoke = Judgment::Revoke { ruling: Seq(5) };
    let lift = Judgment::Lift { session: SESSION, since: Seq(4) };
    let changed = |change: &dyn Fn(&mut Fact)| {
        let mut fact = answer(always(Timestamp(2)));
        change(&mut fact);
        behind(vec![(by(2), fact)])
    };
    let longest = |more: u64| Timestamp(1 + u64::try_from(judgment::LONGEST.as_micros()).unwrap() + more);
    let nobody = Subject { operator: None, ..by(2) };
    let unsigned = |judgment: Judgment| judgment.signed("no more".into(), vec![0; 64]);
    let other_words = |judgment: Judgment| {
        let signature = key(2).sign(&judgment.signed_bytes(&origin, "no more")).to_bytes().to_vec();
        judgment.signed("go on".into(), signature)
    };
    let cases = vec![
        ("an approver's answer", true, behind(vec![given(2)])),
        ("an owner's, for as long as may be", true, behind(vec![(by(1), answer(always(longest(0))))])),
        ("for longer", false, behind(vec![(by(1), answer(always(longest(1))))])),
        ("for no time", false, behind(vec![(by(2), answer(always(Timestamp(1))))])),
        ("an operator's answer", false, behind(vec![given(3)])),
        ("a stranger's answer", false, behind(vec![given(9)])),
        ("nobody's answer", false, behind(vec![(nobody.clone(), answer(always(Timestamp(2))))])),
        ("in no session", false, behind(vec![(Subject { session: None, ..by(2) }, answer(always(Timestamp(2))))])),
        (
            "on tools",
            false,
            changed(&|fact| {
                if let Fact::Ruling { on, .. } = fact {
                    *on = RulingOn::Tools(Vec::new());
                }
            }),
        ),
        (
            "of no law",
            false,
            changed(&|fact| {
                if let Fact::Ruling { policy, .. } = fact {
                    *policy = None;
                }
            }),
        ),
        (
            "that nobody gave",
            false,
            changed(&|fact| {
                if let Fact::Ruling { how, .. } = fact {
                    *how = "expired".into();
                }
            }),
        ),
        (
            "that decides nothing",
            false,
            changed(&|fact| {
                if let Fact::Ruling { decision, .. } = fact {
                    *decision = Decision::Defer;
                }
            }),
        ),
        ("another approver revokes it", true, behind(vec![given(1), (by(2), judged(revoke, &origin, 2))])),
        (
            "revoked twice",
            false,
            behind(vec![given(1), (by(2), judged(revoke, &origin, 2)), (by(2), judged(revoke, &origin, 2))]),
        ),
        ("what was never given is revoked", false, behind(vec![(by(2), judged(revoke, &origin, 2))])),
        ("an operator revokes it", false, behind(vec![given(2), (by(3), judged(revoke, &origin, 3))])),
        ("an operator in an approver's name", false, behind(vec![given(2), (by(2), judged(revoke, &origin, 3))])),
        ("without a signature", false, behind(vec![given(2), (by(2), unsigned(revoke))])),
        ("in other words than were signed", false, behind(vec![given(2), (by(2), other_words(revoke))])),
        ("for another log", false, behind(vec![given(2), (by(2), judged(revoke, "ephor/0", 2))])),
        (
            "of another answer than was signed",
            false,
            behind(vec![
                given(2),
                given(2),
                (by(2), {
                    let Fact::Revoked { note, signature, .. } = judged(revoke, &origin, 2) else { panic!() };
                    Fact::Revoked { ruling: Seq(6), note, signature }
                }),
            ]),
        ),
        (
            "of an erased session",
            false,
            behind(vec![
                given(2),
                (by(1), Fact::Erase { session: SESSION, derived: Vec::new(), reason: String::new() }),
                (Subject { session: None, ..by(2) }, judged(revoke, &origin, 2)),
            ]),
        ),
        ("a seat may act again", true, behind(vec![(by(2), judged(lift, &origin, 2))])),
        ("an operator lifts it", false, behind(vec![(by(3), judged(lift, &origin, 3))])),
        ("a lift without a signature", false, behind(vec![(by(2), unsigned(lift))])),
        (
            "the lift of another session",
            false,
            behind(vec![(Subject { session: Some(SessionId([77; 16])), ..by(2) }, judged(lift, &origin, 2))]),
        ),
        ("a lift of no session", false, behind(vec![(Subject { session: None, ..by(2) }, judged(lift, &origin, 2))])),
    ];
    for (name, holds, facts) in cases {
        judges.agree(name, holds, facts);
    }
}

#[test]
fn what_is_used_again_outlives_reboots_and_the_journal_it_was_written_in() {
    let home = tempfile::tempdir().unwrap();
    let mut world = World::new(Arc::new(Disk), home.path());
    world.config.segment_bytes = 4096;
    let (log, _) = world.open().unwrap();
    let origin = log.keys().unwrap().origin().to_owned();
    let write = |log: &ephor_chain::Log, subject, fact| {
        block_on(log.append(Record { subject, fact, content: None })).map(|receipt| receipt.seq)
    };
    let enrol = Decree::Enrol { key: key(1).verifying_key().to_bytes(), name: "ada".into(), role: Role::Owner };
    write(&log, by(1), enrol.sign(&origin, Seq(0), &key(1))).unwrap();
    let until = world.clock.now().plus(Duration::from_secs(86_400));
    let given: Vec<Seq> = (0..3).map(|_| write(&log, by(1), answer(always(until))).unwrap()).collect();
    write(&log, by(1), judged(Judgment::Revoke { ruling: given[1] }, &origin, 1)).unwrap();
    outgrow(&log, &world);
    drop(log);
    let (log, after) = world.open().unwrap();
    let stands: Vec<Seq> = after.standing.reused().map(|one| one.ruling).collect();
    assert_eq!(stands, [given[0], given[2]], "read from a snapshot alone");
    let again = write(&log, by(1), judged(Judgment::Revoke { ruling: given[1] }, &origin, 1));
    assert!(matches!(again, Err(AppendError::Misplaced(_))), "{again:?}");
    write(&log, by(1), judged(Judgment::Revoke { ruling: given[0] }, &origin, 1)).unwrap();
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
    if let Some(second) = Second::find() {
        std::fs::write(home.path().join("keys"), world.verifier().to_string()).unwrap();
        second.chain(home.path()).unwrap();
    }
}
