//! What the tests share: a file system in memory with faults, a clock, randomness, and a small world around a log.

pub(crate) mod forge;
pub(crate) mod history;
pub(crate) mod hooked;
pub(crate) mod memory;

use std::{
    future::Future,
    path::Path,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
    time::Duration,
};

use ephor_base::{
    ActionKind, Budget, CallId, Clock, Decision, Digest, EffectVector, MessageId, OperatorId, Part, PartKind, Pid,
    Random, Seat, Seq, SessionId, Timestamp, Verdict, files::Files,
};
use ephor_chain::{Config, IntentRecord, Log, OpenError, Recovered, SigningKeys, VaultKey};
use ephor_record::{Content, Fact, Record, Subject};
use ephor_tlog::VerifierKeys;

/// Runs a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(value) => return value,
            Poll::Pending => thread::park(),
        }
    }
}

/// A wall clock that moves on by a millisecond each time it is read, and a monotonic clock that stands still, so that
/// nothing happens because time passes.
pub(crate) struct StillClock(AtomicU64);

impl StillClock {
    pub(crate) fn at(micros: u64) -> Self {
        Self(AtomicU64::new(micros))
    }
    pub(crate) fn later(&self, micros: u64) {
        self.0.fetch_add(micros, Ordering::Relaxed);
    }
    pub(crate) fn set(&self, micros: u64) {
        self.0.store(micros, Ordering::Relaxed);
    }
}

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.fetch_add(1000, Ordering::Relaxed))
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

/// The real monotonic clock.
pub(crate) struct RealClock(std::time::Instant);

impl Default for RealClock {
    fn default() -> Self {
        Self(std::time::Instant::now())
    }
}

impl Clock for RealClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_226_899_000_000 + u64::try_from(self.0.elapsed().as_micros()).unwrap())
    }
    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// SplitMix64: the same bytes for the same seed.
pub(crate) struct Seeded(Mutex<u64>);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
    pub(crate) fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = *state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }
}

impl Random for Seeded {
    fn fill(&self, into: &mut [u8]) {
        for chunk in into.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// A home, its keys, and what is injected.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) still: Arc<StillClock>,
    pub(crate) random: Arc<Seeded>,
    pub(crate) config: Config,
    pub(crate) seed: u64,
    pub(crate) verifier: VerifierKeys,
}

impl World {
    pub(crate) fn new(files: Arc<dyn Files>, home: &Path) -> Self {
        let config = Config { publish_every: Duration::MAX, ..Config::in_home(home) };
        let clock = Arc::new(StillClock::at(1_795_226_899_000_000));
        let verifier = SigningKeys::generate(&Seeded::new(42)).verifier().clone();
        let still = Arc::clone(&clock);
        Self { files, clock, still, random: Arc::new(Seeded::new(7)), config, seed: 42, verifier }
    }

    /// Time passes, on the clock the world began with.
    pub(crate) fn later(&self, micros: u64) {
        self.still.later(micros);
    }

    /// The same home, with other signing keys.
    pub(crate) fn with_seed(&self, seed: u64) -> Self {
        let verifier = SigningKeys::generate(&Seeded::new(seed)).verifier().clone();
        Self { seed, verifier, ..self.clone() }
    }

    pub(crate) fn with_files(&self, files: Arc<dyn Files>) -> Self {
        Self { files, ..self.clone() }
    }

    pub(crate) fn keys(&self) -> SigningKeys {
        SigningKeys::generate(&Seeded::new(self.seed))
    }

    pub(crate) fn verifier(&self) -> VerifierKeys {
        self.verifier.clone()
    }

    pub(crate) fn vault_key(&self) -> Arc<VaultKey> {
        Arc::new(VaultKey::generate(&Seeded::new(43)))
    }

    pub(crate) fn open(&self) -> Result<(Log, Recovered), OpenError> {
        let random: Arc<dyn Random> = Arc::clone(&self.random) as _;
        Log::open(
            self.config.clone(),
            self.keys(),
            self.vault_key(),
            Arc::clone(&self.files),
            Arc::clone(&self.clock),
            random,
            "0.1.0",
        )
    }

    pub(crate) fn verify(
        &self,
        head: Option<ephor_chain::PinnedHead>,
    ) -> Result<ephor_chain::Report, ephor_record::ScanError> {
        let keys = self.verifier();
        let against = ephor_chain::Against { keys: &keys, head, vault: Some(&self.config.vault), from: None };
        ephor_chain::verify(&self.config.folder, &self.files, against, |_| ())
    }

    pub(crate) fn pinned(&self) -> Option<ephor_chain::PinnedHead> {
        ephor_chain::PinnedHead::load(&self.config.head, &*self.files).unwrap()
    }

    /// Verifies and opens: both must find something wrong. Returns what the verifier found.
    pub(crate) fn must_be_damaged(&self, what: &str) -> ephor_record::Finding {
        let found = match self.verify(self.pinned()) {
            Err(ephor_record::ScanError::Damaged(finding)) => finding,
            other => panic!("{what}: verify said {other:?}"),
        };
        match self.open() {
            Err(OpenError::Quarantined { .. }) => {}
            Err(other) => panic!("{what}: open said {other}"),
            Ok(_) => panic!("{what}: the log opened"),
        }
        found
    }
}

pub(crate) const SESSION: SessionId = SessionId([9; 16]);
pub(crate) const OPERATOR: OperatorId = OperatorId([5; 16]);

pub(crate) fn subject(call: u64) -> Subject {
    intent(call).subject()
}

/// A record without content, told apart by a number.
pub(crate) fn plain(number: u64) -> Record {
    Record { subject: Subject::default(), fact: Fact::Lease { secret: format!("n{number}") }, content: None }
}

/// A message with content, told apart by a number.
pub(crate) fn message(number: u64, text: &str) -> Record {
    let subject = Subject { session: Some(SESSION), ..Subject::default() };
    let parts = vec![Part { kind: PartKind::Typed, text: text.to_owned() }];
    let fact = Fact::Message {
        id: MessageId(number),
        spans: Vec::new(),
        from: None,
        because: None,
        owed: false,
        scope: None,
        offset: None,
    };
    Record { subject, fact, content: Some(Content::Parts(parts)) }
}

pub(crate) fn verdict(call: u64, decision: Decision) -> Record {
    let verdict = Verdict { decision, reasons: Vec::new(), effects: EffectVector::NONE, policy: Digest::of(b"policy") };
    let IntentRecord { action, attempt, arguments, .. } = intent(call);
    let fact =
        Fact::Verdict { action, target: "fs.read".into(), attempt, arguments, verdict, ruling: None, grounds: None };
    Record { subject: subject(call), fact, content: Some(Content::Text(format!("arguments of call {call}"))) }
}

pub(crate) fn intent(call: u64) -> IntentRecord {
    IntentRecord {
        session: SESSION,
        operator: OPERATOR,
        seat: Seat::root("node").child("agent"),
        pid: Pid(3),
        call: CallId(call),
        action: ActionKind::Tool,
        attempt: 1,
        arguments: Digest::of(&call.to_be_bytes()),
        reserved: Budget { tool_calls: 1, ..Budget::ZERO },
        kept: Vec::new(),
    }
}

pub(crate) fn outcome(call: u64, intent: Seq, text: &str) -> Record {
    let fact = Fact::Outcome { intent, end: "done".into(), used: Budget::ZERO };
    Record { subject: subject(call), fact, content: Some(Content::Text(text.to_owned())) }
}

/// What a record is recognised by.
pub(crate) fn tag(fact: &Fact) -> Option<String> {
    match fact {
        Fact::Lease { secret } => Some(secret.clone()),
        Fact::Message { id, .. } => Some(format!("m{id}")),
        Fact::Intent { arguments, .. } => Some(format!("i{}", arguments.short())),
        Fact::Outcome { end, .. } if end != "indeterminate" => Some(format!("o{end}")),
        _ => None,
    }
}

/// Goes on until the journal no longer reaches back to where the log stood, and everything up to here is published.
pub(crate) fn outgrow(log: &Log, world: &World) {
    let folder = world.config.folder.join("journal");
    let oldest = || {
        world.files.list(&folder).unwrap().into_iter().filter(|name| name.extension().is_some_and(|e| e == "seg")).min()
    };
    let before = world.files.list(&folder).unwrap();
    for number in 0..40 {
        block_on(log.append(plain(number))).unwrap();
        block_on(log.publish()).unwrap();
        if oldest().is_some_and(|oldest| !before.contains(&oldest)) {
            return;
        }
    }
    panic!("the journal was not recycled: {before:?}");
}
