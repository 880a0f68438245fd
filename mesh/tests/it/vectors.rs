//! The vectors that `docs/mesh.md` offers to a second implementation, made from fixed keys; and a first check that the description
//! suffices: the handshake once more, from snow, HMAC and the text alone.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use ephor_base::{Digest, Random, Secret};
use ephor_mesh::{
    delivery::{Answer, Delivery, DeliveryEvent, MemoryId},
    frame::{Farewell, Frame, Priority, Purpose, StreamId},
    handshake::{Handshake, Kem, PROTOCOL, libraries},
    invite::Words,
    links::LinkId,
    membership::{Command, Member, Membership, settings},
    party::{HandshakeHash, Role, Statement},
    seal::{MOST_SEALED, Room},
};
use hmac::{Hmac, Mac};
use serde_json::{Map, Value, json};
use sha2::Sha256;
use snow::{Builder, HandshakeState};

use crate::{
    common::{Keys, acquainted, cluster::Names, feed, node_id},
    other_kem::OtherKem,
};

/// Where the vectors stand.
const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/vectors/mesh.json");

/// The secret keys: each byte of one is the same.
const INITIATOR: [u8; 2] = [0x11, 0x12];
const RESPONDER: [u8; 2] = [0x21, 0x22];

/// Draws the same byte again and again.
struct Same(u8);

impl Random for Same {
    fn fill(&self, into: &mut [u8]) {
        into.fill(self.0);
    }
}

fn hex(bytes: &[u8]) -> Value {
    Value::String(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The four flights of a handshake, and the hash.
struct Flights {
    bytes: [Vec<u8>; 4],
    hash: HandshakeHash,
    frames: Vec<Value>,
}

fn flights() -> Flights {
    let (mut alice, mut bob) = acquainted();
    alice.key = Arc::new(Secret::new([INITIATOR[0]; 32]));
    bob.key = Arc::new(Secret::new([RESPONDER[0]; 32]));
    let random: Arc<dyn Random> = Arc::new(Same(INITIATOR[1]));
    let (mut dialler, first) =
        Handshake::initiator(&alice.key, &random, Box::new(OtherKem::new(1)), Duration::ZERO).unwrap();
    let random = Arc::new(Same(RESPONDER[1]));
    let mut answerer = Handshake::responder(Arc::clone(&bob.key), random, Box::new(OtherKem::new(2)), Duration::ZERO);
    let (second, _) = feed(&mut answerer, &mut bob, &first).unwrap();
    let (third, _) = feed(&mut dialler, &mut alice, &second).unwrap();
    let (fourth, _) = feed(&mut answerer, &mut bob, &third).unwrap();
    let (_, link) = feed(&mut dialler, &mut alice, &fourth).unwrap();
    let mut link = link.unwrap();
    let mut room = Room::new(MOST_SEALED);
    let frames = frames()
        .into_iter()
        .map(|(name, plain)| {
            link.seal.seal(&plain, &mut room).unwrap();
            if name == "rekey" {
                link.seal.rekey_outgoing();
            }
            json!({ "frame": name, "plain": hex(&plain), "wire": hex(room.bytes()) })
        })
        .collect();
    Flights { bytes: [first, second, third, fourth], hash: link.hash, frames }
}

/// One frame of each kind, the change of the key in their middle.
fn frames() -> Vec<(&'static str, Vec<u8>)> {
    let stream = StreamId(1);
    let all = [
        ("open", Frame::Open { stream, priority: Priority::Data, purpose: Purpose::DELIVERY }),
        ("data", Frame::Data { stream, offset: 0, last: true, chunk: b"hello" }),
        ("ping", Frame::Ping { token: 1 }),
        ("rekey", Frame::Rekey { generation: 1 }),
        ("pong", Frame::Pong { token: 7 }),
        ("credit", Frame::Credit { stream: StreamId(2), limit: 131_072 }),
        ("close", Frame::Close { stream }),
        ("bye", Frame::Bye { reason: Farewell::Stopping }),
    ];
    all.into_iter()
        .map(|(name, frame)| {
            let mut plain = Vec::new();
            frame.encode(&mut plain);
            (name, plain)
        })
        .collect()
}

const LINK: LinkId = LinkId(1);

/// The letters of a delivery: both hellos, a message, its answer.
fn letters() -> Value {
    let (mut a, mut b) = (Delivery::new(MemoryId([0xa1; 16])), Delivery::new(MemoryId([0xb2; 16])));
    a.linked(LINK);
    b.linked(LINK);
    let (hello, other) = (a.transmit(LINK).unwrap(), b.transmit(LINK).unwrap());
    a.receive(LINK, &other).unwrap();
    b.receive(LINK, &hello).unwrap();
    a.send(b"hello".to_vec(), Duration::from_secs(1)).unwrap();
    let message = a.transmit(LINK).unwrap();
    b.receive(LINK, &message).unwrap();
    let handed = std::iter::from_fn(|| b.poll(Duration::ZERO)).find_map(|event| match event {
        DeliveryEvent::Deliver { handed, .. } => Some(handed),
        _ => None,
    });
    let Some(handed) = handed else { panic!("nothing came") };
    b.decide(handed, Answer::Accepted).unwrap();
    json!({ "hello": hex(&hello), "message": hex(&message), "accepted": hex(&b.transmit(LINK).unwrap()) })
}

fn invitation() -> Value {
    let words = Words::parse("legal winner thank year wave sausage worth useful legal winner thank yellow").unwrap();
    let hash = HandshakeHash(Digest([0x33; 32]));
    json!({
        "words": words.text().unwrap().expose(),
        "id": words.id().to_string(),
        "handshake_hash": hash.0.to_string(),
        "initiator_proof": hex(&words.introduce(Role::Initiator, &hash).proof),
        "responder_proof": hex(&words.introduce(Role::Responder, &hash).proof),
    })
}

/// What node 1 in incarnation 3 says to node 2, which it does not know yet.
fn membership() -> Value {
    let own = Member { node: node_id(1), incarnation: 3 };
    let names = Names([node_id(1), node_id(2)].into());
    let mut node = Membership::new(own, settings(NonZeroU32::MIN), Box::new(names), Arc::new(Same(0)));
    node.meet(Duration::ZERO, node_id(2)).unwrap();
    let Some(Command::Send { packet, .. }) = node.poll() else { panic!("nothing is said") };
    json!({ "announce": hex(&packet) })
}

fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(message);
    mac.finalize().into_bytes().into()
}

/// The handshake from its description: messages without their preface and lengths, the psk, the hash.
struct Described {
    messages: [Vec<u8>; 3],
    after_second: Vec<u8>,
    shared: [u8; 32],
    psk: [u8; 32],
    hash: Vec<u8>,
    /// The plaintext of both credentials, as the flights carry them.
    credentials: [Vec<u8>; 2],
}

fn described(flights: &Flights) -> Described {
    let side = |keys: [u8; 2], initiator: bool| -> HandshakeState {
        let builder = Builder::with_resolver(PROTOCOL.parse().unwrap(), libraries(Arc::new(Same(keys[1]))));
        let key = [keys[0]; 32];
        let builder = builder.prologue(b"ephor-mesh/1").unwrap().local_private_key(&key).unwrap();
        if initiator { builder.build_initiator().unwrap() } else { builder.build_responder().unwrap() }
    };
    let (mut dials, mut answers) = (side(INITIATOR, true), side(RESPONDER, false));
    let (mut ours, mut theirs) = (OtherKem::new(1), OtherKem::new(2));
    let mut buffer = vec![0; 2000];
    let mut payload = vec![0; 2000];

    let length = dials.write_message(ours.generate().unwrap().as_slice(), &mut buffer).unwrap();
    let first = buffer[..length].to_vec();
    let length = answers.read_message(&first, &mut payload).unwrap();
    let (ciphertext, shared) = theirs.encapsulate(&payload[..length].try_into().unwrap()).unwrap();
    let length = answers.write_message(ciphertext.as_slice(), &mut buffer).unwrap();
    let second = buffer[..length].to_vec();
    dials.read_message(&second, &mut payload).unwrap();

    let after_second = dials.get_handshake_hash().to_vec();
    let psk = hmac(&hmac(&after_second, shared.expose()), b"ephor-mesh/1 psk\x01");
    dials.set_psk(3, &psk).unwrap();
    answers.set_psk(3, &psk).unwrap();
    let length = dials.write_message(&[], &mut buffer).unwrap();
    let third = buffer[..length].to_vec();
    answers.read_message(&third, &mut payload).unwrap();
    let hash = dials.get_handshake_hash().to_vec();

    let (mut dials, mut answers) = (dials.into_transport_mode().unwrap(), answers.into_transport_mode().unwrap());
    let sealed = [(&mut answers, &flights.bytes[2][2 + third.len()..]), (&mut dials, &flights.bytes[3][..])];
    let credentials = sealed.map(|(reader, message)| {
        let mut plain = vec![0; message.len()];
        let length = reader.read_message(&message[2..], &mut plain).unwrap();
        plain.truncate(length);
        plain
    });
    Described { messages: [first, second, third], after_second, shared: *shared.expose(), psk, hash, credentials }
}

fn vectors() -> Value {
    let flights = flights();
    let described = described(&flights);
    let [first, second, third, fourth] = &flights.bytes;
    let mut handshake = Map::new();
    let mut put = |name: &str, bytes: &[u8]| handshake.insert(name.to_owned(), hex(bytes));
    put("initiator_static", &[INITIATOR[0]; 32]);
    put("initiator_ephemeral", &[INITIATOR[1]; 32]);
    put("responder_static", &[RESPONDER[0]; 32]);
    put("responder_ephemeral", &[RESPONDER[1]; 32]);
    for (name, seed, coin) in
        [("initiator_ml_kem_d", 1, "d"), ("initiator_ml_kem_z", 1, "z"), ("responder_ml_kem_m", 2, "m")]
    {
        put(name, &Digest::of_parts(&[coin.as_bytes(), &u64::to_be_bytes(seed)]).0);
    }
    put("flight_1", first);
    put("flight_2", second);
    put("hash_after_message_2", &described.after_second);
    put("ml_kem_shared_secret", &described.shared);
    put("psk", &described.psk);
    put("flight_3", third);
    put("handshake_hash", &flights.hash.0.0);
    put("initiator_statement", Statement::of(Role::Initiator, &flights.hash).bytes());
    put("responder_statement", Statement::of(Role::Responder, &flights.hash).bytes());
    put("flight_4", fourth);
    for (name, seed, credential) in
        [("initiator", 1, &described.credentials[0]), ("responder", 2, &described.credentials[1])]
    {
        put(&format!("{name}_node"), &node_id(seed).0.0);
        put(&format!("{name}_chain_seed"), &Digest::of_parts(&[b"keys", &seed.to_be_bytes()]).0);
        put(&format!("{name}_credential"), credential);
        put(&format!("{name}_key_commitment"), &Keys::new(seed).public().commitment().0.0);
    }
    json!({
        "protocol": PROTOCOL,
        "handshake": handshake,
        "initiator_frames": flights.frames,
        "letters": letters(),
        "invitation": invitation(),
        "membership": membership(),
    })
}

#[test]
fn the_machine_does_what_the_text_says() {
    let flights = flights();
    let described = described(&flights);
    let length = |message: &[u8]| u16::try_from(message.len()).unwrap().to_be_bytes();
    let [first, second, third] = &described.messages;
    assert_eq!(flights.bytes[0], [b"ephmesh\x01", &length(first)[..], first].concat());
    assert_eq!(flights.bytes[1], [b"ephmesh\x01", &length(second)[..], second].concat());
    assert!(flights.bytes[2].starts_with(&[&length(third)[..], third].concat()));
    assert_eq!(flights.hash.0.0.as_slice(), described.hash);
    let statement = [b"ephor-mesh/1\x01".as_slice(), &described.hash].concat();
    assert_eq!(Statement::of(Role::Initiator, &flights.hash).bytes(), statement);
    for (seed, role) in [(1, 1), (2, 2)] {
        let (keys, statement) = (Keys::new(seed), [b"ephor-mesh/1", &[role][..], &described.hash].concat());
        let (public, signatures) = (keys.public(), keys.sign(&statement));
        let mut credential = vec![1];
        credential.extend_from_slice(&node_id(seed).0.0);
        credential.extend_from_slice(&public.ed25519);
        credential.extend_from_slice(public.ml_dsa_65.as_slice());
        credential.extend_from_slice(&signatures.ed25519);
        credential.extend_from_slice(signatures.ml_dsa_65.as_slice());
        credential.extend_from_slice(&[0; 1 + 16 + 32]);
        assert_eq!(described.credentials[usize::from(role) - 1], credential);
        assert_eq!(credential.len(), 5439);
    }
}

#[test]
fn the_vectors_are_those_of_the_file() {
    let text = std::fs::read_to_string(PATH).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), vectors());
}

/// Not a test: writes the file anew, after a change of the protocol that is meant.
#[test]
#[ignore = "writes the vectors instead of checking them"]
fn write_the_vectors() {
    let text = serde_json::to_string_pretty(&vectors()).unwrap();
    std::fs::write(PATH, text + "\n").unwrap();
}
