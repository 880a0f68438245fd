//! Bytes that must not change: whoever has written a second verifier depends on them.

use ephor_base::{CallId, Digest, Pid, Seat, Seq, SessionId, Timestamp};
use ephor_chain::{Checkpoint, Commitment, Entry, Fact, Subject, entry::ENTRY_VERSION};

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
    let entry = Entry { version: ENTRY_VERSION, seq: Seq(5), time, subject, fact, content };
    assert_eq!(hex(&entry.to_bytes()), "GOLDEN_ENTRY");
    assert_eq!(Entry::leaf(&entry.to_bytes()).to_string(), "GOLDEN_LEAF");
}

#[test]
fn a_checkpoint_has_these_bytes() {
    // Both signatures are real; ML-DSA-65 signs with randomness, so these are the bytes of one signing.
    let golden = include_bytes!("golden.checkpoint");
    let world = World::new(Memory::default().files(), std::path::Path::new("/home"));
    let checkpoint = Checkpoint::parse(golden).unwrap();
    checkpoint.check(&world.verifier()).unwrap();
    assert_eq!(checkpoint.note.to_bytes(), golden);
    let text = "GOLDEN_TEXT";
    assert_eq!(checkpoint.note.text, text);
}

#[test]
fn the_keys_of_a_seed_are_these() {
    let keys = ephor_chain::SigningKeys::generate(&Seeded::new(42));
    assert_eq!(keys.verifier().ed25519(), "GOLDEN_ED");
    assert_eq!(Digest::of(keys.verifier().ml_dsa_65().as_bytes()).to_string(), "GOLDEN_ML");
}
