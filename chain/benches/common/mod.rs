//! What the benchmarks share: a log on a real disk with real clocks and randomness, a record of a known size, and probes
//! of what the machine itself can do.

use std::{
    fmt::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ephor_base::{
    CallId, Clock, MessageId, OperatorId, Part, PartKind, Pid, Random, Seat, SessionId, SpanId, Timestamp, files::Files,
};
use ephor_chain::{Config, Log, SigningKeys, VaultKey, disk::Disk};
use ephor_record::{Content, Fact, Record, Subject};

/// The encoded bytes of the entry of [`record`], with a commitment to content.
pub(crate) const ENTRY: usize = 400;
/// The sealed bytes of its content.
pub(crate) const SEALED: usize = 1024;

/// The text of a checkpoint, for the probes.
pub(crate) const TEXT: &[u8] =
    b"ephor/8b08c0163a0c4e6b0109f4e3eaef0672\n1000000\n5jIUOYbBNUHxzQs3KlM0Gt0GFRgPrs9Yhrsp0Gq21+w=\n";

struct SystemClock(Instant);

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap())
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

pub(crate) struct SystemRandom;

impl Random for SystemRandom {
    fn fill(&self, into: &mut [u8]) {
        getrandom::fill(into).unwrap();
    }
}

/// A home on the disk that holds the build products. The usual folder for temporary files is memory on many machines.
pub(crate) struct Home {
    /// How often is published.
    pub(crate) publish_every: Duration,
    folder: tempfile::TempDir,
    seeds: Arc<dyn Random>,
    pub(crate) keys: SigningKeys,
}

impl Home {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let keys = SigningKeys::generate(&SystemRandom);
        keys.save(&folder.path().join("keys"), &Disk).unwrap();
        Self { publish_every: Duration::from_secs(1), folder, seeds: Arc::new(SystemRandom), keys }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn config(&self) -> Config {
        Config { publish_every: self.publish_every, ..Config::in_home(self.path()) }
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(Disk)
    }

    pub(crate) fn open(&self) -> Log {
        let keys = SigningKeys::load(&self.path().join("keys"), &Disk).unwrap();
        let vault = Arc::new(VaultKey::generate(&SystemRandom));
        let clock = Arc::new(SystemClock(Instant::now()));
        Log::open(self.config(), keys, vault, self.files(), clock, Arc::clone(&self.seeds), "bench").unwrap().0
    }
}

/// A message of [`ENTRY`] bytes; with content, that has [`SEALED`] bytes once it is sealed.
pub(crate) fn record(appender: u64, number: u64, with_content: bool) -> Record {
    // The numbers take the same room whatever they are.
    let number = (1 << 40) + number;
    let subject = Subject {
        session: Some(session(appender)),
        operator: Some(OperatorId([5; 16])),
        seat: Some(Seat::root("node").child("agents").child("researcher-0000000")),
        pid: Some(Pid(number)),
        call: Some(CallId(number)),
    };
    let spans = if with_content { 23 } else { 31 };
    let spans = (0..spans).map(|span| SpanId((1 << 40) + span)).collect();
    let part = Part { kind: PartKind::Typed, text: "x".repeat(959) };
    let content = with_content.then(|| Content::Parts(vec![part]));
    Record {
        subject,
        fact: Fact::Message {
            id: MessageId(number),
            spans,
            from: None,
            because: None,
            owed: false,
            scope: None,
            offset: None,
        },
        content,
    }
}

pub(crate) fn session(appender: u64) -> SessionId {
    let mut id = [9; 16];
    id[..8].copy_from_slice(&appender.to_be_bytes());
    SessionId(id)
}

/// Durations, to be summed up.
#[derive(Default)]
pub(crate) struct Times(Vec<Duration>);

impl Times {
    /// How long each of `count` calls takes.
    pub(crate) fn of(count: usize, mut call: impl FnMut()) -> Self {
        let once = |_| {
            let began = Instant::now();
            call();
            began.elapsed()
        };
        (0..count).map(once).collect()
    }

    /// The time that `percent` of a hundred did not exceed.
    pub(crate) fn at(&self, percent: usize) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let last = sorted.len().saturating_sub(1);
        sorted.get(last * percent / 100).copied().unwrap_or_default()
    }

    pub(crate) fn line(&self) -> String {
        let mut line = String::new();
        for (name, percent) in [("p50", 50), ("p99", 99), ("max", 100)] {
            write!(line, "{name} {:>8.3} ms  ", self.at(percent).as_secs_f64() * 1e3).unwrap();
        }
        line
    }
}

impl FromIterator<Duration> for Times {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        Self(times.into_iter().collect())
    }
}

impl Extend<Duration> for Times {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, times: T) {
        self.0.extend(times);
    }
}
