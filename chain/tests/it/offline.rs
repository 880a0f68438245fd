//! Proofs as files: an entry in a log, and a log with two histories.

use ephor_base::{Digest, Seq};
use ephor_chain::{CosignerKeys, SigningKeys};
use ephor_record::Fact;
use ephor_signatures::Signatures;
use ephor_tlog::{
    Algorithm, EntryProof, ForkProof, Head, KnownLog, Note, NoteFault, SignatureLine,
    proof::{ProofError, fork::ForkFault},
};
use ephor_verify::{CheckError, Checked, check};

use crate::common::{
    Seeded,
    history::{History, Leaves, Plain, root},
};

fn note(bytes: &[u8]) -> Note {
    Note::parse(bytes).unwrap()
}

fn stranger() -> SignatureLine {
    SignatureLine { name: "witness.example/w".into(), id: [1, 2, 3, 4], signature: vec![5; 72] }
}

#[test]
fn every_entry_is_proven_by_a_file_and_the_public_keys_alone() {
    let history = History::of(&["one", "two", "three"]);
    let known = [history.known()];
    for (index, entry) in history.entries.iter().enumerate() {
        let proof = history.prove(index);
        let bytes = proof.to_bytes();
        assert_eq!(EntryProof::parse(&bytes).unwrap(), proof);
        let Ok(Checked::Entry(checked)) = check(&bytes, None, &known, &[]) else { panic!("entry {index}") };
        assert_eq!((checked.seq, &checked.origin), (Seq(index as u64), &known[0].origin().to_owned()));
        assert_eq!((checked.entry.to_bytes(), checked.head.size), (entry.clone(), history.last().0 as u64));
        assert!(checked.witnesses.is_empty());
        let outside = EntryProof { extra: None, ..proof };
        assert!(matches!(check(&outside.to_bytes(), None, &known, &[]), Err(CheckError::NoEntry)));
        assert!(check(&outside.to_bytes(), Some(entry), &known, &[]).is_ok());
        assert!(check(&bytes, Some(entry), &known, &[]).is_ok());
    }
    let Ok(Checked::Entry(first)) = check(&history.prove(0).to_bytes(), None, &known, &[]) else { panic!() };
    assert!(matches!(first.entry.fact, Fact::Origin { .. }));
}

#[test]
fn no_byte_of_a_proof_can_be_changed_and_none_left_out() {
    let history = History::of(&["one", "two"]);
    let (known, bytes) = ([history.known()], history.prove(3).to_bytes());
    for at in 0..bytes.len() {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(check(&other, None, &known, &[]).is_err(), "byte {at} was changed");
        assert!(check(&bytes[..at], None, &known, &[]).is_err(), "cut at {at}");
    }
    assert!(check(&[bytes.as_slice(), b"\n"].concat(), None, &known, &[]).is_err());
}

#[test]
fn another_entry_place_path_key_or_log_is_refused() {
    let history = History::of(&["one", "two"]);
    let (known, good) = ([history.known()], history.prove(3));
    let refused = |proof: &EntryProof| check(&proof.to_bytes(), None, &known, &[]).unwrap_err();
    let other = EntryProof { extra: Some(history.entries[2].clone()), ..good.clone() };
    assert!(matches!(refused(&other), CheckError::Inclusion(ProofError::Root)));
    for index in (0..9).filter(|index| *index != good.index) {
        assert!(matches!(refused(&EntryProof { index, ..good.clone() }), CheckError::Inclusion(_)));
    }
    let other = EntryProof { path: good.path[1..].to_vec(), ..good.clone() };
    assert!(matches!(refused(&other), CheckError::Inclusion(ProofError::Length)));
    let given = check(&good.to_bytes(), Some(&history.entries[2]), &known, &[]);
    assert!(matches!(given, Err(CheckError::OtherEntry)));
    let stranger = KnownLog::of(SigningKeys::generate(&Seeded::new(5)).verifier()).unwrap();
    assert!(matches!(check(&good.to_bytes(), None, &[stranger], &[]), Err(CheckError::UnknownLog)));
    assert!(matches!(check(&good.to_bytes(), None, &[], &[]), Err(CheckError::UnknownLog)));
}

#[test]
fn both_signatures_are_needed_and_lines_of_strangers_say_nothing() {
    let history = History::of(&["one"]);
    let (known, good) = ([history.known()], history.prove(2));
    let with = |signatures: Vec<SignatureLine>| {
        let checkpoint = Note { signatures, ..good.checkpoint.clone() };
        check(&EntryProof { checkpoint, ..good.clone() }.to_bytes(), None, &known, &[])
    };
    let [ed25519, ml_dsa] = good.checkpoint.signatures.clone().try_into().unwrap();
    let spoilt = |line: &SignatureLine| {
        let mut line = line.clone();
        line.signature[7] ^= 1;
        line
    };
    assert!(with(vec![stranger(), ml_dsa.clone(), stranger(), ed25519.clone()]).is_ok());
    let missing = |name| move |found| matches!(found, Err(CheckError::Checkpoint(NoteFault::Missing(n))) if n == name);
    assert!(missing(Algorithm::MlDsa65)(with(vec![ed25519.clone()])));
    assert!(missing(Algorithm::Ed25519)(with(vec![ml_dsa.clone()])));
    assert!(missing(Algorithm::Ed25519)(with(vec![stranger()])));
    for wrong in [
        vec![ed25519.clone(), spoilt(&ml_dsa)],
        vec![spoilt(&ed25519), ml_dsa.clone()],
        // A good one beside it does not help a bad one.
        vec![ed25519.clone(), ml_dsa.clone(), spoilt(&ed25519)],
        vec![ed25519.clone(), SignatureLine { signature: ed25519.signature.clone(), ..ml_dsa.clone() }],
        vec![spoilt(&ed25519)],
    ] {
        assert!(matches!(with(wrong), Err(CheckError::Checkpoint(NoteFault::Wrong(_)))));
    }
}

#[test]
fn a_known_witness_is_named_and_a_wrong_cosignature_of_it_is_refused() {
    let history = History::of(&["one"]);
    let keys = CosignerKeys::generate("witness.example/w", &Seeded::new(8)).unwrap();
    let witness = crate::witness::opened(vec![history.known()], &Seeded::new(8));
    let (size, checkpoint) = history.last();
    let answer = crate::witness::submit(&witness, 0, &[], checkpoint);
    assert_eq!(answer.response.status, 200);
    let cosigned = [checkpoint.as_slice(), &answer.response.body].concat();
    let mut proof = history.prove(2);
    proof.checkpoint = note(&cosigned);
    let known = [history.known()];
    let Ok(Checked::Entry(checked)) = check(&proof.to_bytes(), None, &known, keys.verifier()) else { panic!() };
    let said: Vec<_> = checked.witnesses.iter().map(|said| (said.algorithm, said.seconds)).collect();
    assert_eq!(
        said,
        [
            (Algorithm::Ed25519, crate::witness::NOW.0 / 1_000_000),
            (Algorithm::MlDsa44, crate::witness::NOW.0 / 1_000_000)
        ]
    );
    assert_eq!(checked.head.size, *size as u64);
    for at in [2, 3] {
        for byte in [0, 7, 8, 70] {
            let mut other = proof.clone();
            other.checkpoint.signatures[at].signature[byte] ^= 1;
            let found = check(&other.to_bytes(), None, &known, keys.verifier());
            assert!(matches!(found, Err(CheckError::Cosignature(_))), "byte {byte} of line {at}");
            assert!(check(&other.to_bytes(), None, &known, &[]).is_ok(), "a stranger's line says nothing");
        }
    }
}

#[test]
fn an_entry_that_stands_where_it_does_not_say_is_the_logs_fault() {
    let history = History::of(&["one"]);
    let plain = Plain::new(1, "log.example");
    let entries = [history.entries[1].clone(), history.entries[0].clone(), b"no entry".to_vec()];
    let leaves = Leaves::of(&entries);
    let proof = |index: usize| EntryProof {
        extra: Some(entries[index].clone()),
        index: index as u64,
        path: leaves.inclusion(index, 3),
        checkpoint: note(&plain.sign(leaves.head(3))),
    };
    let check = |index| check(&proof(index).to_bytes(), None, &[plain.known()], &[]).unwrap_err();
    assert!(matches!(check(0), CheckError::Place { says: Seq(1), stands: Seq(0) }));
    assert!(matches!(check(2), CheckError::Entry(_)));
}

/// Two histories of one log that part at the second message, with checkpoints at 4, 7, 10, …
fn parted() -> (History, History) {
    (History::of(&["one", "two", "three"]), History::of(&["one", "other", "three", "four"]))
}

/// The proof out of a smaller checkpoint of the one and a larger one of the other history.
fn of_past(one: &History, at: usize, other: &History, later: usize) -> ForkProof {
    let ((small, ours), (large, theirs)) = (&one.checkpoints[at], &other.checkpoints[later]);
    let leaves = other.leaves();
    let prefix = root(&leaves.0[..*small]);
    ForkProof::of_past(note(ours), note(theirs), prefix, leaves.consistency(*small, *large))
}

#[test]
fn a_log_with_two_histories_is_proven_to_have_them() {
    let (one, other) = parted();
    let known = [one.known()];
    let same = ForkProof::same_size(note(&one.checkpoints[1].1), note(&other.checkpoints[1].1));
    let turned = ForkProof::same_size(note(&other.checkpoints[1].1), note(&one.checkpoints[1].1));
    assert_eq!(same, turned);
    for proof in [same, of_past(&one, 1, &other, 2), of_past(&one, 2, &other, 3), of_past(&other, 1, &one, 2)] {
        let bytes = proof.to_bytes();
        assert_eq!(ForkProof::parse(&bytes).unwrap(), proof);
        let Ok(Checked::Fork(fork)) = check(&bytes, None, &known, &[]) else { panic!() };
        assert!(fork.origin == known[0].origin() && fork.prefix != fork.smaller.root);
        assert!(check(&bytes, None, &[], &[]).is_err());
        for at in (0..bytes.len()).step_by(3) {
            let mut spoilt = bytes.clone();
            spoilt[at] ^= 1;
            assert!(check(&spoilt, None, &known, &[]).is_err(), "byte {at} was changed");
            assert!(check(&bytes[..at], None, &known, &[]).is_err(), "cut at {at}");
        }
    }
}

#[test]
fn an_honest_log_cannot_be_framed() {
    let (honest, parted) = parted();
    let known = [honest.known()];
    let leaves = honest.leaves();
    let refused = |proof: ForkProof| match check(&proof.to_bytes(), None, &known, &[]) {
        Ok(_) => panic!("an honest log was framed"),
        Err(error) => error,
    };
    let sizes = honest.checkpoints.len();
    for at in 0..sizes {
        let (small, ours) = &honest.checkpoints[at];
        // The same checkpoint twice, also with other lines below it.
        assert!(matches!(refused(ForkProof::same_size(note(ours), note(ours))), CheckError::Fork(ForkFault::Agree)));
        let mut lined = note(ours);
        lined.signatures.push(stranger());
        assert!(matches!(refused(ForkProof::same_size(note(ours), lined)), CheckError::Fork(ForkFault::Agree)));
        for later in 0..sizes {
            let (large, theirs) = &honest.checkpoints[later];
            // Two sizes without their past.
            refused(ForkProof::same_size(note(ours), note(theirs)));
            let truth = root(&leaves.0[..*small]);
            let lies = [Digest([0; 32]), root(&parted.leaves().0[..*small]), leaves.0[0], leaves.head(*large).root];
            let pasts: Vec<_> = (0..=*large)
                .flat_map(|old| [leaves.consistency(old, *large), leaves.inclusion(old.min(large - 1), *large)])
                .chain([parted.leaves().consistency(*small, (*large).max(*small))])
                .collect();
            for path in pasts {
                for prefix in lies.into_iter().chain([truth]) {
                    refused(ForkProof::of_past(note(ours), note(theirs), prefix, path.clone()));
                }
            }
        }
    }
    // Somebody else's signature, and a checkpoint of another log.
    let plain = Plain::new(1, known[0].origin());
    let forged = plain.sign(Head { root: Digest([1; 32]), ..leaves.head(honest.checkpoints[0].0) });
    assert!(matches!(
        refused(ForkProof::same_size(note(&honest.checkpoints[0].1), note(&forged))),
        CheckError::Checkpoint(NoteFault::Missing(_))
    ));
    let (first, second) = (Plain::new(1, "a.example"), Plain::new(2, "b.example"));
    let heads = [Head { size: 3, root: Digest([1; 32]) }, Head { size: 3, root: Digest([2; 32]) }];
    let two = ForkProof::same_size(note(&first.sign(heads[0])), note(&second.sign(heads[1])));
    let found = check(&two.to_bytes(), None, &[first.known(), second.known()], &[]);
    assert!(matches!(found, Err(CheckError::Fork(ForkFault::Origins))));
    // A log without entries has no history.
    let empty = Head { size: 0, root: Digest::of(&[]) };
    let none = Head { size: 0, root: Digest([1; 32]) };
    for other in [none, heads[0]] {
        let proof = ForkProof::of_past(note(&first.sign(empty)), note(&first.sign(other)), none.root, Vec::new());
        assert!(matches!(proof.check(&[first.known()], &Signatures), Err(ForkFault::Empty)));
        let proof = ForkProof::same_size(note(&first.sign(empty)), note(&first.sign(other)));
        assert!(matches!(proof.check(&[first.known()], &Signatures), Err(ForkFault::Empty)));
    }
}
