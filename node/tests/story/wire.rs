//! The channel to a node, spoken by hand: what the client of the binary says, and what it never would.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use ed25519_dalek::{Signer, SigningKey};
use ephor_base::Digest;
use ephor_kernel::operator_id;
use ephor_signatures::Signatures;
use ephor_tlog::VerifierKeys;
use serde_json::{Value, json};
use snow::{Builder, TransportState};

/// How a session is set up.
pub(crate) const PATTERN: &str = "Noise_NN_25519_ChaChaPoly_SHA256";
pub(crate) const PROLOGUE: &[u8] = b"ephor socket";
/// What fits into one frame of a session besides its tag and its last byte.
const PART: usize = 65_535 - 17;

/// A channel on which keys were exchanged. Who speaks was not said yet.
pub(crate) struct Wire {
    stream: UnixStream,
    noise: TransportState,
    /// The hash of the handshake.
    pub(crate) hash: [u8; 32],
    /// What the node has signed it with.
    pub(crate) vouched: Vec<u8>,
    /// How many requests were signed.
    pub(crate) number: u64,
    /// How long ago requests were signed, as they say.
    pub(crate) age: Duration,
    pub(crate) key: SigningKey,
}

/// Connects, with limits of time that only turn a hung node into a failed test.
pub(crate) fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// The first line of a node.
pub(crate) fn greeting(stream: &UnixStream) -> Option<String> {
    let mut line = String::new();
    let read = BufReader::with_capacity(4096, stream).read_line(&mut line);
    read.ok().filter(|length| *length > 0).map(|_| line)
}

impl Wire {
    /// Exchanges keys with whatever answers on `socket`; nothing where it hangs up.
    pub(crate) fn open(socket: &Path, key: &SigningKey) -> Option<Self> {
        Self::on(connect(socket), key)
    }

    /// The same on a connection that is there.
    pub(crate) fn on(mut stream: UnixStream, key: &SigningKey) -> Option<Self> {
        let greeting = greeting(&stream)?;
        let hello: Value = serde_json::from_str(&greeting).ok()?;
        let theirs = bytes(hello["challenge"].as_str().filter(|digits| digits.is_ascii())?)?;
        let mut noise = Builder::new(PATTERN.parse().unwrap()).prologue(PROLOGUE).unwrap().build_responder().unwrap();
        noise.read_message(&theirs, &mut []).ok()?;
        let mut mine = [0; 128];
        let length = noise.write_message(&[], &mut mine).ok()?;
        stream.write_all(&mine[..length]).ok()?;
        let hash = exchange(noise.get_handshake_hash(), &greeting);
        let noise = noise.into_transport_mode().unwrap();
        let (vouched, key) = (Vec::new(), key.clone());
        let mut wire = Self { stream, noise, hash, vouched, number: 0, age: Duration::ZERO, key };
        wire.vouched = wire.take()?;
        Some(wire)
    }

    /// Whether the keys of the home have signed this handshake.
    pub(crate) fn is_of(&self, home: &Path) -> bool {
        let keys: VerifierKeys = fs::read_to_string(home.join("keys/log.pub")).unwrap().parse().unwrap();
        keys.vouches("socket", &Digest(self.hash), &self.vouched, &Signatures)
    }

    /// Says for whom it speaks; what the node answers to that.
    pub(crate) fn introduce(&mut self) -> Option<Value> {
        let operator = operator_id(&self.key.verifying_key());
        self.say(&json!({"say": "authenticate", "operator": operator}));
        self.hear()
    }

    /// Says something, signed as it should be.
    pub(crate) fn say(&mut self, request: &Value) {
        self.say_bytes(request.to_string().as_bytes());
    }

    pub(crate) fn say_bytes(&mut self, request: &[u8]) {
        let message = self.signed(self.number, request);
        self.number += 1;
        self.put(&message);
    }

    /// A request of this number with its signature.
    pub(crate) fn signed(&self, number: u64, request: &[u8]) -> Vec<u8> {
        let signed = booted().saturating_sub(self.age).as_millis() as u64;
        let (Digest(digest), signed) = (Digest::of(request), signed.to_be_bytes());
        let statement = [b"ephor request v2\n", self.hash.as_slice(), &number.to_be_bytes(), &signed, &digest].concat();
        [self.key.sign(&statement).to_bytes().as_slice(), &signed, request].concat()
    }

    /// Sends a message as it is. A node that has hung up does not hear it.
    pub(crate) fn put(&mut self, message: &[u8]) {
        let mut parts = message.chunks(PART).peekable();
        while let Some(part) = parts.next() {
            let plain = [part, &[u8::from(parts.peek().is_some())]].concat();
            let mut frame = vec![0; plain.len() + 16];
            self.noise.write_message(&plain, &mut frame).unwrap();
            let length = u16::try_from(frame.len()).unwrap().to_be_bytes();
            if self.stream.write_all(&[length.as_slice(), &frame].concat()).is_err() {
                return;
            }
        }
    }

    /// Says nothing more.
    pub(crate) fn ends(&self) {
        let _gone = self.stream.shutdown(Shutdown::Write);
    }

    /// The next message; nothing if there is none, or it was changed.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let mut length = [0; 2];
            self.stream.read_exact(&mut length).ok()?;
            let mut frame = vec![0; usize::from(u16::from_be_bytes(length))];
            self.stream.read_exact(&mut frame).ok()?;
            let mut plain = vec![0; frame.len()];
            let opened = self.noise.read_message(&frame, &mut plain).ok()?;
            plain.truncate(opened);
            let more = plain.pop()?;
            message.extend(plain);
            if more == 0 {
                return Some(message);
            }
        }
    }

    /// The next answer; nothing if the node has closed the connection.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        self.take().map(|message| serde_json::from_slice(&message).unwrap())
    }

    /// Says something, and hears what it is answered; what is seen in between is passed by.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.say(request);
        self.until(|answer| answer["say"] != "seen")
    }

    pub(crate) fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let answer = self.hear().expect("the node goes on talking");
            if is_it(&answer) {
                return answer;
            }
        }
    }
}

/// How long ago the machine was started.
fn booted() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn bytes(hex: &str) -> Option<Vec<u8>> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
}

/// What both sides sign: the hash of the handshake, and the greeting that began it.
pub(crate) fn exchange(handshake: &[u8], greeting: &str) -> [u8; 32] {
    let Digest(exchange) = Digest::of(&[handshake, greeting.as_bytes()].concat());
    exchange
}

/// The credential in a file that no passphrase locks.
pub(crate) fn credential(file: &Path) -> SigningKey {
    SigningKey::from_bytes(&fs::read(file).unwrap().try_into().unwrap())
}
