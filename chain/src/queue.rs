//! The queue: gives every record its place, at once and in order, and gathers the batch that is written next.
//!
//! A record that has its place will be written: room for it on the disk is there before it is taken. So a full disk is
//! an answer to the caller, and never a reason to stop.

use std::{sync::Arc, time::Duration};

use ephor_base::{Digest, Receipt, Seq, SessionId, Timestamp};
use tokio::sync::oneshot;

use crate::{
    checkpoint::Head,
    entry::{ENTRY_VERSION, Entry, MAX_ENTRY_BYTES},
    error::{AppendError, Failure},
    frame,
    keys::SigningKeys,
    quota::{self, Quota},
    record::{Fact, Record, Subject},
    rules::Rules,
    snapshot,
    vault::Sealed,
};

/// The bytes an outcome may have, entry and sealed content together, and be sure of its place on a full disk.
pub const OUTCOME_ROOM: u64 = 128 << 10;

/// The disk each intent reserves: its outcome, in a batch of its own.
pub const OUTCOME_RESERVE: u64 = OUTCOME_ROOM + frame::OVERHEAD;

/// The disk reserved for the stop.
pub(crate) const STOP_RESERVE: u64 = 1024 + frame::OVERHEAD;

/// A batch that has this much takes no more: callers wait for the next one. It bounds memory and the time of a batch.
const BATCH_BYTES: u64 = 4 << 20;

/// How long a record that nobody waits for may stay in memory alone.
const LINGER: Duration = Duration::from_millis(100);

/// Who waits for a batch.
pub(crate) type Waiter = oneshot::Sender<Result<Head, Arc<Failure>>>;
/// Who waits for something else the writer does.
pub(crate) type Reply = oneshot::Sender<Result<(), AppendError>>;

/// Something the writer does between batches.
pub(crate) enum Chore {
    /// Reserve more disk.
    Room(u64, Reply),
    /// Make sure that a session has a key on the disk.
    Key(SessionId, Reply),
    /// Destroy the key of a session.
    Destroy(SessionId, Reply),
}

impl Chore {
    /// Who waits for it.
    pub(crate) fn into_reply(self) -> Reply {
        match self {
            Self::Room(_, reply) | Self::Key(_, reply) | Self::Destroy(_, reply) => reply,
        }
    }
}

/// Where the log stands.
pub(crate) enum Phase {
    /// It takes records.
    Open,
    /// It takes no more, and writes what it has.
    Closing,
    /// Its last handle is gone: as `Closing`, but without a stop.
    Abandoned,
    /// It was closed.
    Closed,
    /// It stopped.
    Failed(Arc<Failure>),
}

/// The batch that is written next.
#[derive(Default)]
pub(crate) struct Pending {
    pub(crate) first: u64,
    pub(crate) leaves: Vec<Digest>,
    pub(crate) entries: Vec<u8>,
    pub(crate) contents: Vec<u8>,
    pub(crate) waiters: Vec<Waiter>,
    /// The keys that sign from the next batch on; the last entry of this one names them.
    pub(crate) successor: Option<Box<SigningKeys>>,
    /// The room it was given.
    pub(crate) charged: u64,
    /// It begins with a snapshot, and so a segment can begin with it.
    pub(crate) begins_segment: bool,
    since: Duration,
    /// The writer was told that it has begun.
    told: bool,
}

/// What a record does to the reservations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reserve {
    /// Nothing.
    None,
    /// It reserves disk for its outcome.
    Take,
    /// It is an outcome, and uses what its intent reserved.
    Use,
}

/// Why a record was not taken yet, or at all.
pub(crate) enum Hold {
    /// The batch is full: try again with the next.
    Batch,
    /// This much more disk has to be reserved first.
    Room(u64),
    /// Not at all.
    Refused(AppendError),
}

/// A record, its content sealed.
pub(crate) struct Offer<'a> {
    pub(crate) record: &'a Record,
    pub(crate) sealed: Option<Sealed>,
}

/// An entry that is ready to be taken.
struct Draft<'a> {
    entry: Entry,
    bytes: Vec<u8>,
    sealed: &'a [u8],
}

/// Everything about the log that changes.
pub(crate) struct Queue {
    pub(crate) phase: Phase,
    pub(crate) rules: Rules,
    pub(crate) batch: Pending,
    pub(crate) chores: Vec<Chore>,
    /// Reserved disk that nothing has been promised.
    pub(crate) room: u64,
    pub(crate) head: Head,
    pub(crate) used: u64,
    pub(crate) reserved: u64,
    pub(crate) closer: Option<Reply>,
    /// The next batch should begin with a snapshot.
    pub(crate) snapshot_due: bool,
    pub(crate) quota: Option<Quota>,
}

impl Queue {
    pub(crate) fn new(rules: Rules, head: Head) -> Self {
        let (phase, batch, chores) = (Phase::Open, Pending::default(), Vec::new());
        let (room, used, reserved, closer, snapshot_due, quota) = (0, 0, 0, None, false, None);
        Self { phase, rules, batch, chores, room, head, used, reserved, closer, snapshot_due, quota }
    }

    /// Whether records are taken.
    pub(crate) fn check_open(&self) -> Result<(), AppendError> {
        match &self.phase {
            Phase::Open => Ok(()),
            Phase::Failed(failure) => Err(Arc::clone(failure).into()),
            _ => Err(AppendError::Closed),
        }
    }

    /// Takes records, all or none, as neighbours in one batch.
    pub(crate) fn take(
        &mut self,
        offers: &[Offer<'_>],
        reserve: Reserve,
        now: (Timestamp, Duration),
    ) -> Result<Vec<Receipt>, Hold> {
        self.check_open().map_err(Hold::Refused)?;
        self.take_anyway(offers, reserve, now)
    }

    /// As [`Queue::take`], also while the log is being closed.
    pub(crate) fn take_anyway(
        &mut self,
        offers: &[Offer<'_>],
        reserve: Reserve,
        (time, monotonic): (Timestamp, Duration),
    ) -> Result<Vec<Receipt>, Hold> {
        if self.batch.bytes() >= BATCH_BYTES || self.batch.successor.is_some() {
            return Err(Hold::Batch);
        }
        self.check_erased(offers)?;
        let time = self.rules.time.map_or(time, |last| last.max(time));
        // Right behind a change of keys, a snapshot waits for the batch after the next.
        if self.snapshot_due && self.batch.leaves.is_empty() && self.rules.outgoing().is_none() {
            match self.take_drafts(self.snapshot(time), offers, reserve, (time, monotonic)) {
                // What was promised room has it without a snapshot; the snapshot waits for the next batch.
                Err(Hold::Room(_)) if reserve == Reserve::Use || !matches!(self.phase, Phase::Open) => {}
                taken => return taken,
            }
        }
        self.take_drafts(Vec::new(), offers, reserve, (time, monotonic))
    }

    /// Takes records behind the parts of a snapshot, if there are any.
    fn take_drafts<'a>(
        &mut self,
        mut drafts: Vec<Draft<'a>>,
        offers: &'a [Offer<'_>],
        reserve: Reserve,
        (time, monotonic): (Timestamp, Duration),
    ) -> Result<Vec<Receipt>, Hold> {
        let parts = drafts.len();
        let first = self.rules.size.saturating_add(parts as u64);
        for (seq, offer) in (first..).zip(offers) {
            drafts.push(Draft::new(Seq(seq), time, offer).map_err(Hold::Refused)?);
        }
        let charge = self.charge(&drafts);
        // Once in the journal, and once more as it is published.
        let taken = drafts.iter().fold(charge, |sum, draft| sum.saturating_add(draft.published()));
        self.check_quota(&drafts, taken, reserve)?;
        let room = self.find_room(charge, reserve)?;
        if parts > 0 {
            self.check_all(&drafts)?;
            (self.batch.begins_segment, self.snapshot_due) = (true, false);
        }
        let mut receipts = self.admit(drafts)?;
        if self.batch.charged == 0 {
            self.batch.since = monotonic;
        }
        self.batch.charged = self.batch.charged.saturating_add(charge);
        if let Some(quota) = &mut self.quota {
            quota.take(taken);
        }
        self.room = room;
        Ok(receipts.split_off(parts))
    }

    /// The parts of a snapshot of everything so far.
    fn snapshot(&self, time: Timestamp) -> Vec<Draft<'static>> {
        let drafts = (self.rules.size..).zip(snapshot::parts(&self.rules)).map(|(seq, part)| {
            let (subject, fact) = (Subject::default(), Fact::Snapshot(part));
            let entry = Entry { version: ENTRY_VERSION, seq: Seq(seq), time, subject, fact, content: None };
            let bytes = entry.to_bytes();
            Draft { entry, bytes, sealed: &[] }
        });
        drafts.collect()
    }

    /// Whether all of these would be admitted. A snapshot must not stay alone when the record behind it is refused.
    fn check_all(&self, drafts: &[Draft<'_>]) -> Result<(), Hold> {
        let mut trial = self.rules.clone();
        trial.begin_batch();
        let admitted = drafts.iter().try_for_each(|draft| trial.admit(&draft.entry));
        admitted.map_err(|rule| Hold::Refused(AppendError::Misplaced(rule)))
    }

    fn check_erased(&self, offers: &[Offer<'_>]) -> Result<(), Hold> {
        let sealed = offers.iter().filter(|offer| offer.record.content.is_some());
        let sessions = sealed.filter_map(|offer| offer.record.subject.session);
        let erased = sessions.into_iter().find(|session| self.rules.erased.contains(session));
        erased.map_or(Ok(()), |session| Err(Hold::Refused(AppendError::Erased { session })))
    }

    /// Gives the stop its place, on the disk that was kept for it; says whether there was room in the batch.
    pub(crate) fn take_stop(&mut self, now: (Timestamp, Duration)) -> Result<bool, AppendError> {
        let fact = Fact::Stop { number: self.rules.boots };
        let record = Record { subject: Subject::default(), fact, content: None };
        self.room = self.room.saturating_add(STOP_RESERVE);
        let taken = self.take_anyway(&[Offer { record: &record, sealed: None }], Reserve::None, now);
        if taken.is_err() {
            self.room = self.room.saturating_sub(STOP_RESERVE);
        }
        match taken {
            Ok(_) => Ok(true),
            Err(Hold::Batch) => Ok(false),
            Err(Hold::Refused(error)) => Err(error),
            Err(Hold::Room(_)) => Err(Arc::new(Failure::Bug).into()),
        }
    }

    /// Whether the quota has so much, and what an intent is promised. What ends something is taken in any case.
    fn check_quota(&mut self, drafts: &[Draft<'_>], taken: u64, reserve: Reserve) -> Result<(), Hold> {
        let Some(quota) = &mut self.quota else { return Ok(()) };
        if drafts.iter().all(|draft| quota::is_always_taken(&draft.entry.subject, &draft.entry.fact)) {
            return Ok(());
        }
        let more = if reserve == Reserve::Take { OUTCOME_RESERVE } else { 0 };
        let begins = drafts.iter().all(|draft| matches!(draft.entry.fact, Fact::Message { .. } | Fact::Snapshot(_)));
        quota.check(taken.saturating_add(more), self.rules.intents.len(), begins).map_err(Hold::Refused)
    }

    /// What these entries take on the disk. The first of a batch pays for what each batch costs.
    fn charge(&self, drafts: &[Draft<'_>]) -> u64 {
        let overhead = if self.batch.charged == 0 { frame::OVERHEAD } else { 0 };
        drafts.iter().fold(overhead, |sum, draft| sum.saturating_add(draft.length()))
    }

    /// The room that is left after `charge`, if there is enough.
    fn find_room(&self, charge: u64, reserve: Reserve) -> Result<u64, Hold> {
        let (more, needed) = match reserve {
            Reserve::None => (0, charge),
            Reserve::Take => (0, charge.saturating_add(OUTCOME_RESERVE)),
            Reserve::Use => (OUTCOME_RESERVE, charge),
        };
        let available = self.room.saturating_add(more);
        available.checked_sub(needed).ok_or(Hold::Room(needed.saturating_sub(available)))
    }

    fn admit(&mut self, drafts: Vec<Draft<'_>>) -> Result<Vec<Receipt>, Hold> {
        if self.batch.leaves.is_empty() {
            self.batch.first = self.rules.size;
            self.rules.begin_batch();
        }
        let mut receipts = Vec::with_capacity(drafts.len());
        for draft in drafts {
            self.rules.admit(&draft.entry).map_err(|rule| Hold::Refused(AppendError::Misplaced(rule)))?;
            let leaf = Entry::leaf(&draft.bytes);
            receipts.push(Receipt { seq: draft.entry.seq, leaf });
            self.batch.push(leaf, &draft);
        }
        Ok(receipts)
    }

    /// Takes the batch out, for the writer, if it should be written now.
    pub(crate) fn due(&mut self, now: Duration) -> Option<Pending> {
        let batch = &self.batch;
        let waited = batch.charged > 0 && now.saturating_sub(batch.since) >= LINGER;
        (self.is_due() || waited).then(|| std::mem::take(&mut self.batch))
    }

    /// Whether the batch should be written however long it has waited.
    fn is_due(&self) -> bool {
        let ending = !matches!(self.phase, Phase::Open) && self.batch.charged > 0;
        !self.batch.waiters.is_empty() || self.batch.bytes() >= BATCH_BYTES || ending
    }

    /// Whether the writer has to hear of what was taken: the batch is due, or its time to wait begins. What only rides
    /// along disturbs nobody.
    pub(crate) fn is_news(&mut self) -> bool {
        !std::mem::replace(&mut self.batch.told, true) || self.is_due()
    }

    /// How long the writer may sleep.
    pub(crate) fn rest(&self, now: Duration) -> Option<Duration> {
        (self.batch.charged > 0).then(|| LINGER.saturating_sub(now.saturating_sub(self.batch.since)))
    }
}

impl Pending {
    /// Whether nothing has its place in it yet.
    pub(crate) const fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    fn bytes(&self) -> u64 {
        (self.entries.len() as u64).saturating_add(self.contents.len() as u64)
    }

    fn push(&mut self, leaf: Digest, draft: &Draft<'_>) {
        // An entry is checked to be shorter than 2¹⁶ bytes.
        let length = u16::try_from(draft.bytes.len()).unwrap_or(u16::MAX);
        self.leaves.push(leaf);
        self.entries.extend_from_slice(&length.to_be_bytes());
        self.entries.extend_from_slice(&draft.bytes);
        self.contents.extend_from_slice(draft.sealed);
    }
}

impl<'a> Draft<'a> {
    fn new(seq: Seq, time: Timestamp, offer: &'a Offer<'_>) -> Result<Self, AppendError> {
        let Record { subject, fact, .. } = offer.record;
        let content = offer.sealed.as_ref().map(|sealed| sealed.commitment);
        let sealed = offer.sealed.as_ref().map_or(&[][..], |sealed| &sealed.bytes);
        let fact = match fact.clone() {
            // An intent stands right behind its verdict.
            Fact::Intent { action, attempt, arguments, reserved, .. } => {
                Fact::Intent { action, attempt, verdict: Seq(seq.0.saturating_sub(1)), arguments, reserved }
            }
            fact => fact,
        };
        let entry = Entry { version: ENTRY_VERSION, seq, time, subject: subject.clone(), fact, content };
        let bytes = entry.to_bytes();
        if bytes.len() > MAX_ENTRY_BYTES {
            return Err(AppendError::TooLarge { bytes: bytes.len(), most: MAX_ENTRY_BYTES });
        }
        Ok(Self { entry, bytes, sealed })
    }

    /// Its bytes in a frame: two for the length of the entry.
    fn length(&self) -> u64 {
        (self.bytes.len() as u64).saturating_add(self.sealed.len() as u64).saturating_add(2)
    }

    /// Its bytes in a bundle, in the contents, and in a tile of hashes.
    fn published(&self) -> u64 {
        self.length().saturating_add(32)
    }
}

/// Which facts a caller may append: the others have ways of their own into the log.
pub(crate) fn check_appendable(fact: &Fact) -> Result<(), AppendError> {
    match fact {
        Fact::Origin { .. } | Fact::Boot { .. } | Fact::Stop { .. } | Fact::Snapshot(_) => {
            Err(AppendError::Misplaced("the log itself writes origins, boots, stops and snapshots"))
        }
        Fact::Intent { .. } => Err(AppendError::Misplaced("an intent goes through `intend`")),
        Fact::Outcome { .. } => Err(AppendError::Misplaced("an outcome goes through `settle`")),
        Fact::Keys { .. } => Err(AppendError::Misplaced("new keys go through `rotate`")),
        Fact::Erase { .. } => Err(AppendError::Misplaced("an erasure goes through `erase`")),
        Fact::Prune(_) => Err(AppendError::Misplaced("a pruning goes through `prune`")),
        _ => Ok(()),
    }
}
