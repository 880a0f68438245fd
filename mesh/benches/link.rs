//! A handshake beside bare snow XX, ML-KEM and the signatures; a link beside a bare snow transport. Ratios within one run.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark stops at the first surprise and prints"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::{Node, Seeded, acquainted, establish, verify};
use ephor_mesh::{
    frame::{MOST_CHUNK, Priority, Purpose},
    handshake::{Established, Kem, MlKem768, libraries},
    invite::Introduction,
    link::{Limits, Link, LinkEvent},
    party::{
        CannotSign, ChainKeys, Claim, Distrust, HandshakeHash, ML_DSA_65_KEY, ML_DSA_65_SIGNATURE, NodeId, Party, Role,
        Signatures, Statement,
    },
    seal::MOST_PLAIN,
    stream::Message,
};
use snow::{Builder, HandshakeState, TransportState};

const ROUNDS: usize = 15;
const HANDSHAKES: usize = 40;
const FRAMES: usize = 1000;

fn main() {
    // `cargo test` runs benchmarks as well; it asks for tests and gets none.
    if std::env::args().any(|argument| argument == "--test") {
        return;
    }
    let (mut alice, mut bob) = acquainted();
    let (mut alone, mut bare, mut probes) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        alone.push(timed(HANDSHAKES, || drop(unsigned_handshake(&alice, &bob))));
        bare.push(timed(HANDSHAKES, || drop(bare_handshake())));
        probes.push(timed(HANDSHAKES, || signatures(&alice, &bob)));
    }
    let [alone, bare, probes] = [alone, bare, probes].map(median);
    let ratio = |ours: Duration, rival: Duration| ours.as_secs_f64() / rival.as_secs_f64();
    println!(
        "handshake without signatures, both sides: {alone:?}; snow XX + ML-KEM-768: {bare:?}; the signatures: {probes:?}"
    );
    println!(
        "ratio {:.2} with signatures (at most 1.3), {:.2} without",
        ratio(alone + probes, bare + probes),
        ratio(alone, bare)
    );

    let (mut link, mut snow) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        link.push(linked(&mut alice, &mut bob));
        snow.push(bare_transport());
    }
    let [link, snow] = [link, snow].map(median);
    let rate = |time: Duration, frame: usize| (FRAMES * frame) as f64 / time.as_secs_f64() / 1e6;
    let (ours, rival) = (rate(link, MOST_CHUNK), rate(snow, MOST_PLAIN));
    println!("link: {ours:.0} MB/s, snow: {rival:.0} MB/s, one core for both sides");
    println!("ratio {:.2} (at least 0.9)", ours / rival);
}

fn timed(count: usize, mut run: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..count).for_each(|_| run());
    start.elapsed() / u32::try_from(count).unwrap_or(1)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn side(seed: u64, initiator: bool) -> HandshakeState {
    let builder = Builder::with_resolver("Noise_XX_25519_AESGCM_SHA256".parse().unwrap(), libraries(Seeded::new(seed)));
    let key = [u8::try_from(seed).unwrap(); 32];
    let builder = builder.local_private_key(&key).unwrap();
    if initiator { builder.build_initiator().unwrap() } else { builder.build_responder().unwrap() }
}

/// Noise XX with ML-KEM in its payloads, and nothing around it.
fn bare_handshake() -> [TransportState; 2] {
    let (mut dials, mut answers) = (side(1, true), side(2, false));
    let (mut kem, mut buffer, mut payload) = (MlKem768::default(), vec![0; 2000], vec![0; 2000]);
    let length = dials.write_message(kem.generate().unwrap().as_slice(), &mut buffer).unwrap();
    let length = answers.read_message(&buffer[..length], &mut payload).unwrap();
    let (ciphertext, _) = MlKem768::default().encapsulate(&payload[..length].try_into().unwrap()).unwrap();
    let length = answers.write_message(ciphertext.as_slice(), &mut buffer).unwrap();
    let length = dials.read_message(&buffer[..length], &mut payload).unwrap();
    kem.decapsulate(&payload[..length].try_into().unwrap()).unwrap();
    let length = dials.write_message(&[], &mut buffer).unwrap();
    answers.read_message(&buffer[..length], &mut payload).unwrap();
    [dials.into_transport_mode().unwrap(), answers.into_transport_mode().unwrap()]
}

/// A node whose signatures cost nothing, so that they do not hide what the handshake does.
struct Unsigned(NodeId);

impl Party for Unsigned {
    fn node(&self) -> NodeId {
        self.0
    }

    fn keys(&self) -> ChainKeys {
        ChainKeys { ed25519: [0; 32], ml_dsa_65: Box::new([0; ML_DSA_65_KEY]) }
    }

    fn sign(&self, _: &Statement) -> Result<Signatures, CannotSign> {
        Ok(Signatures { ed25519: [0; 64], ml_dsa_65: Box::new([0; ML_DSA_65_SIGNATURE]) })
    }

    fn verify(&self, _: &Claim, _: &Statement) -> bool {
        true
    }

    fn admit(&mut self, _: Role, _: &Claim, _: &HandshakeHash) -> Result<(), Distrust> {
        Ok(())
    }

    fn introduce(&mut self, _: Role, _: &HandshakeHash) -> Option<Introduction> {
        None
    }
}

fn unsigned_handshake(alice: &Node, bob: &Node) -> Established {
    let (mut dials, mut answers) = (Unsigned(alice.id), Unsigned(bob.id));
    let ((mut dialler, first), mut answerer) = (alice.dial(), bob.answer());
    let mut to_alice = Vec::new();
    answerer.receive(Duration::ZERO, &first, &mut answers, &mut to_alice).unwrap();
    let mut to_bob = Vec::new();
    dialler.receive(Duration::ZERO, &to_alice, &mut dials, &mut to_bob).unwrap();
    let mut last = Vec::new();
    answerer.receive(Duration::ZERO, &to_bob, &mut answers, &mut last).unwrap();
    *dialler.receive(Duration::ZERO, &last, &mut dials, &mut Vec::new()).unwrap().link.unwrap()
}

/// Both signatures of both sides, and their checks.
fn signatures(alice: &Node, bob: &Node) {
    for node in [alice, bob] {
        let signatures = node.keys.sign(&[7; 45]);
        assert!(verify(&node.keys.public(), &[7; 45], &signatures));
    }
}

/// Moves frames through two links; the reader gives credit as it goes. A message is made right before it is sent, here and below.
fn linked(alice: &mut Node, bob: &mut Node) -> Duration {
    let (ours, theirs) = establish(alice, bob);
    let limits = Limits::default().with_room(8 << 20, 64 << 20).unwrap();
    let (mut a, mut b) = (Link::new(ours, limits, Duration::ZERO), Link::new(theirs, limits, Duration::ZERO));
    let stream = a.open(Priority::Bulk, Purpose::DELIVERY).unwrap();
    let text = vec![7; MOST_CHUNK];
    let mut came = 0;
    let start = Instant::now();
    while came < FRAMES {
        a.send(stream, Message::from(&*text)).unwrap();
        loop {
            let wire = a.transmit(Duration::ZERO).unwrap().bytes;
            if wire.is_empty() {
                break;
            }
            let chunk = match b.receive(Duration::ZERO, wire).unwrap().event {
                Some(LinkEvent::Chunk { stream, last, credit, .. }) => Some((stream, last, credit)),
                _ => None,
            };
            if let Some((stream, last, credit)) = chunk {
                b.consume(stream, credit).unwrap();
                came += usize::from(last);
            }
        }
        loop {
            let wire = b.transmit(Duration::ZERO).unwrap().bytes;
            if wire.is_empty() {
                break;
            }
            a.receive(Duration::ZERO, wire).unwrap();
        }
    }
    start.elapsed()
}

fn bare_transport() -> Duration {
    let [mut a, mut b] = bare_handshake();
    // Buffers that lie a multiple of a page apart slow copies down; these do not.
    let (text, mut wire, mut plain) = (vec![7; MOST_PLAIN], vec![0; 67_000], vec![0; 68_500]);
    let start = Instant::now();
    for _ in 0..FRAMES {
        let payload = text.clone();
        let length = a.write_message(&payload, &mut wire).unwrap();
        b.read_message(&wire[..length], &mut plain).unwrap();
    }
    start.elapsed()
}
