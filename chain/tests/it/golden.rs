//! Bytes that must not change: whoever has written a second verifier depends on them.

use ephor_base::{CallId, Digest, Pid, Seat, Seq, SessionId, Timestamp};
use ephor_record::{Commitment, Entry, Fact, Subject, entry::ENTRY_VERSION};
use ephor_signatures::Signatures;
use ephor_tlog::Checkpoint;

use crate::common::{Seeded, World, memory::Memory};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn an_entry_has_these_bytes() {
    let subject = Subject {
        session: Some(SessionId([1; 16])),
        operator: None,
        seat: Some(Seat::root("node")),
        pid: Some(Pid(3)),
        call: Some(CallId(4)),
    };
    let content = Some(Commitment { content: Digest([2; 32]), sealed: Digest([3; 32]), length: 77 });
    let fact = Fact::Lease { secret: "token".into() };
    let time = Timestamp(1_795_226_899_004_000);
    let mut entry = Entry { version: ENTRY_VERSION, seq: Seq(5), time, subject, fact, content };
    let rest = "0105021b000660bfd59b3a6003a400500101010101010101010101010101010102646e6f64650303040404820e8165746f6b656e05835820020202020202020202020202020202020202020202020202020202020202020258200303030303030303030303030303030303030303030303030303030303030303184d";
    let golden = [
        (1, "ab13e2d5c372f0acf384679abd26ca6c8c1063f8b882ac1a51c5a3150fd90f67"),
        (2, "6f059407cc7283e11666d2b07b7421ba66279ebea10f86bb989ff08327efe1fe"),
    ];
    for (version, leaf) in golden {
        entry.version = version;
        assert_eq!(hex(&entry.to_bytes()), format!("a6000{version}{rest}"));
        assert_eq!(ephor_tlog::tree::leaf_hash(&entry.to_bytes()).to_string(), leaf);
    }
    assert_eq!(ENTRY_VERSION, 2);
}

#[test]
fn a_checkpoint_has_these_bytes() {
    // Both signatures are real; ML-DSA-65 signs with randomness, so these are the bytes of one signing.
    let golden = include_bytes!("golden.checkpoint");
    let world = World::new(Memory::default().files(), std::path::Path::new("/home"));
    let checkpoint = Checkpoint::parse(golden).unwrap();
    checkpoint.check(&world.verifier(), &Signatures).unwrap();
    assert_eq!(checkpoint.note.to_bytes(), golden);
    let text = "ephor/8b08c0163a0c4e6b0109f4e3eaef0672\n3\n5jIUOYbBNUHxzQs3KlM0Gt0GFRgPrs9Yhrsp0Gq21+w=\n";
    assert_eq!(checkpoint.note.text, text);
}

#[test]
fn the_keys_of_a_seed_are_these() {
    let keys = ephor_chain::SigningKeys::generate(&Seeded::new(42));
    assert_eq!(
        keys.verifier().ed25519(),
        "ephor/8b08c0163a0c4e6b0109f4e3eaef0672+3d5c5082+AWoh94fpej88kBejA7Equou8ZWjpPLPFe8bjAtTwdmTa"
    );
    assert_eq!(
        Digest::of(keys.verifier().ml_dsa_65().as_bytes()).to_string(),
        "33f85643efd4dcec1e854014d2a900112958e7ad285a30803e6cf3eda5df8db1"
    );
}
