//! Any sequence of legal facts of any legal size, with snapshots at every place: what was acknowledged reopens and verifies.

use std::{path::Path, sync::Arc};

use ed25519_dalek::SigningKey;
use ephor_base::{
    Budget, Decision, Digest, EffectVector, MessageId, OperatorId, Random, Receipt, Seat, Seq, SessionId, TicketId,
    Timestamp,
};
use ephor_chain::{Against, AppendError, IntentRecord, Log, SigningKeys, verify};
use ephor_record::{
    Always, Cause, Content, Decree, Fact, Missed, Record, Role, RulingOn, Signal, Subject, Undelivered,
    operators::operator_id,
};
use ephor_tlog::VerifierKeys;

use crate::common::{Seeded, World, block_on, intent, memory::Memory, message, verdict};

/// Sizes next to which something could give way: a part of a snapshot, an entry, two entries.
const LIMITS: [u64; 4] = [16 << 10, 48 << 10, 65_535, 131_070];

/// A home in which anything may happen that is legal.
struct Play {
    random: Seeded,
    world: World,
    /// Nothing only while it is opened again.
    handle: Option<Log>,
    /// The keys that sign, by their seed, once they were changed.
    changed: Option<u64>,
    owner: SigningKey,
    numbers: u64,
    /// What was acknowledged.
    receipts: Vec<Receipt>,
    refused: u64,
}

impl Play {
    fn begin(seed: u64) -> Self {
        let random = Seeded::new(seed);
        let mut world = World::new(Memory::default().files(), Path::new("/home"));
        world.config.segment_bytes = [1, 1, 20_000, 200_000][random.below(4) as usize];
        let handle = Some(world.open().unwrap().0);
        let owner = SigningKey::from_bytes(&[1; 32]);
        let (changed, numbers, receipts, refused) = (None, 0, Vec::new(), 0);
        let mut play = Self { random, world, handle, changed, owner, numbers, receipts, refused };
        let (key, role) = (play.owner.verifying_key().to_bytes(), Role::Owner);
        let founding = Decree::Enrol { key, name: "ada".into(), role };
        let fact = founding.sign(play.world.verifier().origin(), Seq(0), &play.owner);
        play.append(Subject::default(), fact, None);
        play
    }

    fn log(&self) -> &Log {
        self.handle.as_ref().unwrap()
    }

    fn owner(&self) -> OperatorId {
        operator_id(self.owner.verifying_key().as_bytes())
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// A text of any size, most often short or next to a limit.
    fn text(&self) -> String {
        let length = match self.random.below(8) {
            0..4 => self.random.below(200),
            4 => self.random.below(70_000),
            _ => {
                let limit = LIMITS[self.random.below(4) as usize];
                (limit + 64).saturating_sub(self.random.below(4_000))
            }
        };
        "x".repeat(usize::try_from(length).unwrap())
    }

    fn took(&mut self, taken: Result<Receipt, AppendError>) {
        match taken {
            Ok(receipt) => self.receipts.push(receipt),
            Err(AppendError::Failed(failure)) => panic!("the log has stopped: {failure}"),
            Err(_) => self.refused += 1,
        }
    }

    fn append(&mut self, subject: Subject, fact: Fact, content: Option<Content>) {
        let subject = Subject { operator: Some(self.owner()), ..subject };
        let record = Record { subject, fact, content };
        let waits = self.random.below(2) == 0;
        let taken = if waits { block_on(self.log().append(record)) } else { block_on(self.log().note(record)) };
        self.took(taken);
    }

    fn session(&self) -> SessionId {
        SessionId([u8::try_from(self.random.below(4)).unwrap(); 16])
    }

    fn of(&self, session: SessionId) -> Subject {
        Subject { session: Some(session), ..Subject::default() }
    }

    fn step(&mut self) {
        match self.random.below(14) {
            0 => self.append(Subject::default(), Fact::Lease { secret: self.text() }, None),
            1 => self.schedule(),
            2 => {
                self.append(Subject::default(), Fact::Unscheduled { name: format!("s{}", self.random.below(9)) }, None)
            }
            3 => self.signal(),
            4 => self.call(),
            5 => self.always(),
            6 => self.enrol(),
            7 => self.die(),
            8 => drop(block_on(self.log().erase(self.session(), Vec::new(), self.text(), self.owner()))),
            9 => self.rotate(),
            10 => self.append(Subject::default(), Fact::Exit { reason: self.text() }, None),
            11 => self.again(),
            12 => assert!(block_on(self.log().publish()).is_ok()),
            _ => {
                let (number, text) = (self.number(), self.text());
                self.append(self.of(self.session()), message(number, "").fact, Some(Content::Text(text)));
            }
        }
    }

    fn schedule(&mut self) {
        let (name, cron, zone) = (format!("s{}", self.random.below(9)), self.text(), self.text());
        let fact = Fact::Schedule { name, cron, zone, missed: Missed::Once };
        self.append(self.of(self.session()), fact, Some(Content::Text(String::new())));
    }

    fn signal(&mut self) {
        let seat = Some(Seat::root("node").child(&self.text()));
        let signal = [Signal::Suspend, Signal::Stop, Signal::Resume][self.random.below(3) as usize];
        let fact = Fact::Signal { signal, tree: true, cause: Cause::Operator, note: self.text() };
        self.append(Subject { seat, ..Subject::default() }, fact, None);
    }

    fn call(&mut self) {
        let call = self.number();
        let (seat, session) = (Seat::root("node").child(&self.text()), self.session());
        let intent = IntentRecord { seat, session, ..intent(call) };
        let given = Record { subject: intent.subject(), ..verdict(call, Decision::Permit) };
        match block_on(self.log().intend(given, intent.clone())) {
            Ok(durable) if self.random.below(2) == 0 => {
                let fact = Fact::Outcome { intent: durable.seq(), end: self.text(), used: Budget::ZERO };
                let content = Some(Content::Text(self.text()));
                let settled =
                    block_on(self.log().settle(durable.seq(), Record { subject: intent.subject(), fact, content }));
                self.took(settled);
            }
            Ok(_) => {}
            Err(error) => self.took(Err(error)),
        }
    }

    fn always(&mut self) {
        let always = Always {
            seat: Seat::root("node").child(&self.text()),
            tool: "mail.send".parse().unwrap(),
            registration: Digest::of(b"registration"),
            free: vec![self.text(); self.random.below(3) as usize],
            reasons: vec![self.text()],
            effects: EffectVector::new(100, 0, 10, 250, 0),
            until: Timestamp(1_795_226_899_000_000 + 86_400_000_000),
        };
        let fact = Fact::Ruling {
            on: RulingOn::Ticket(TicketId(self.number())),
            decision: Decision::Permit,
            signature: vec![8; 64],
            how: "answered".into(),
            policy: Some(Digest::of(b"policy")),
            note: Some(self.text()),
            always: Some(Box::new(always)),
        };
        self.append(self.of(self.session()), fact, None);
    }

    fn enrol(&mut self) {
        let after = self.log().standing(|standing| standing.operators().latest());
        let number = self.number();
        let key = SigningKey::from_bytes(&Digest::of(&number.to_be_bytes()).0).verifying_key().to_bytes();
        let decree = Decree::Enrol { key, name: format!("n{number}"), role: Role::Approver };
        let fact = decree.sign(self.world.verifier().origin(), after, &self.owner);
        self.append(Subject::default(), fact, None);
    }

    fn die(&mut self) {
        let (number, session) = (self.number(), self.session());
        let mut record = message(number, "");
        record.subject = self.of(session);
        if let Fact::Message { owed, .. } = &mut record.fact {
            *owed = true;
        }
        let Ok(receipt) = block_on(self.log().note(record)) else { return };
        let fact = Fact::Dead { message: MessageId(number), accepted: receipt.seq, why: Undelivered::Nobody };
        self.append(self.of(session), fact, None);
    }

    fn rotate(&mut self) {
        let seed = 1000 + self.number();
        if block_on(self.log().rotate(self.keys(seed), self.owner())).is_ok() {
            self.changed = Some(seed);
        }
    }

    fn keys(&self, seed: u64) -> SigningKeys {
        SigningKeys::generate_next(&self.world.verifier(), &Seeded::new(seed))
    }

    fn verifier(&self) -> VerifierKeys {
        self.changed.map_or_else(|| self.world.verifier(), |seed| self.keys(seed).verifier().clone())
    }

    /// Ends the log, cleanly or not, and opens it again.
    fn again(&mut self) {
        let log = self.handle.take().unwrap();
        if self.random.below(2) == 0 {
            block_on(log.close()).unwrap();
        } else {
            drop(log);
        }
        let world = &self.world;
        let keys = self.changed.map_or_else(|| world.keys(), |seed| self.keys(seed));
        let (files, clock) = (Arc::clone(&world.files), Arc::clone(&world.clock));
        let opened = Log::open(
            world.config.clone(),
            keys,
            world.vault_key(),
            files,
            clock,
            Arc::clone(&world.random) as Arc<dyn Random>,
            "0.1.0",
        );
        self.handle = Some(opened.unwrap_or_else(|error| panic!("{error}")).0);
    }

    /// Everything that was acknowledged is there.
    fn check(mut self) -> u64 {
        self.again();
        let keys = self.verifier();
        let head = self.world.pinned();
        let against = Against { keys: &keys, head, vault: Some(&self.world.config.vault), from: None };
        verify(&self.world.config.folder, &self.world.files, against, |_| ()).unwrap_or_else(|error| panic!("{error}"));
        let stored: Vec<_> =
            self.log().entries().map(|stored| stored.unwrap_or_else(|error| panic!("{error}"))).collect();
        for receipt in &self.receipts {
            let found = &stored[usize::try_from(receipt.seq.0).unwrap()];
            assert_eq!(found.receipt, *receipt);
        }
        self.refused
    }
}

fn play(seed: u64) -> u64 {
    let mut play = Play::begin(seed);
    for _ in 0..4 + play.random.below(12) {
        play.step();
    }
    play.check()
}

fn play_all(seeds: std::ops::Range<u64>) {
    let count = seeds.end - seeds.start;
    let mut refused = 0;
    for seed in seeds {
        let played = std::panic::catch_unwind(|| play(seed));
        refused += played.unwrap_or_else(|_| panic!("sequence {seed} does not hold"));
        if seed % 5_000 == 4_999 {
            println!("{} sequences hold, {refused} records were refused", seed + 1);
        }
    }
    println!("{count} sequences hold, {refused} records were refused");
    assert!(refused > count / 20, "records that are too large are tried as well, and {refused} were");
}

#[test]
fn any_sequence_of_legal_facts_of_any_legal_size_reopens_and_verifies() {
    play_all(0..150);
}

#[test]
#[ignore = "the long form: `just legal-sequences`"]
fn a_hundred_thousand_sequences_of_legal_facts_reopen_and_verify() {
    let count = std::env::var("EPHOR_LEGAL_SEQUENCES").ok().and_then(|count| count.parse().ok());
    play_all(0..count.unwrap_or(100_000));
}
