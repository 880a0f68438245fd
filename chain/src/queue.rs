//! The queue: gives every record its place, at once and in order, and gathers the batch that is written next.
//!
//! A record that has its place will be written: room for it on the disk is there before it is taken. So a full disk is
//! an answer to the caller, and never a reason to stop.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use ephor_base::{Digest, Receipt, Seq, SessionId, Timestamp};
use ephor_record::{
    Entry, Fact, Record, Rules, Subject,
    entry::{ENTRY_VERSION, Encoded},
};
use ephor_tlog::Head;
use tokio::sync::oneshot;

use crate::{
    clock::RecordClock,
    error::{AppendError, Failure},
    frame,
    keys::SigningKeys,
    publisher::Publisher,
    quota::{self, Quota},
    vault::{Sealed, SessionKey},
};

/// The bytes an outcome may have, entry and sealed content together, and be sure of its place on a full disk.
pub const OUTCOME_ROOM: u64 = 128 << 10;

/// The disk each intent reserves: its outcome, in a batch of its own.
pub const OUTCOME_RESERVE: u64 = OUTCOME_ROOM + frame::OVERHEAD;

/// The disk reserved for the stop.
pub(crate) const STOP_RESERVE: u64 = 1024 + frame::OVERHEAD;

/// A batch that has this much takes no more: callers wait for the next one. It bounds memory and the time of a batch.
const BATCH_BYTES: u64 = 4 << 20;

/// A snapshot that would have more is not written, and the journal goes on in its segment: in one frame with a snapshot there must
/// be room for the largest record, or for a pruning, which repeats it.
const SNAPSHOT_BYTES: u64 = 12 << 20;

/// How long a record that no caller waits for may stay in memory alone.
const LINGER: Duration = Duration::from_millis(100);

/// Who waits for a batch.
pub(crate) type Waiter = oneshot::Sender<Result<Head, Arc<Failure>>>;
/// Who waits for something else the writer does.
pub(crate) type Reply = oneshot::Sender<Result<(), AppendError>>;

/// Who waits for the key of a session.
pub(crate) type KeyReply = oneshot::Sender<Result<Option<Arc<SessionKey>>, AppendError>>;

/// Something the writer does between batches.
pub(crate) enum Chore {
    /// Reserve more disk.
    Room(u64, Reply),
    /// Read the key of a session, or make one and bring it to the disk.
    Key(SessionId, KeyReply),
    /// Read the key of a session, if it has one.
    Find(SessionId, KeyReply),
}

impl Chore {
    /// Tells the caller that waits for it that nothing comes of it.
    pub(crate) fn refuse(self, failure: &Arc<Failure>) {
        let why = Arc::clone(failure).into();
        // A caller that has gone away needs no answer.
        match self {
            Self::Room(_, reply) => drop(reply.send(Err(why))),
            Self::Key(_, reply) | Self::Find(_, reply) => drop(reply.send(Err(why))),
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
    /// The sessions that it erases: their keys are destroyed before anything else is written.
    pub(crate) erased: Vec<SessionId>,
    /// How many parts of a snapshot it begins with. With one, a segment can begin with it.
    pub(crate) snapshot_parts: usize,
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
    entry: Encoded,
    sealed: &'a [u8],
}

/// Everything about the log that changes.
pub(crate) struct Queue {
    pub(crate) phase: Phase,
    pub(crate) rules: Rules,
    pub(crate) clock: RecordClock,
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
    /// What stands is too much for a snapshot.
    pub(crate) overgrown: bool,
    /// What holds of a pruning that is planned, if any plan is still there, and the last entry of each session since then.
    pub(crate) plan: Weak<()>,
    pub(crate) talked: BTreeMap<SessionId, u64>,
    pub(crate) quota: Option<Quota>,
    /// Publishes what is taken, and has to keep up; none before the log is open.
    pub(crate) publisher: Option<Arc<Publisher>>,
}

impl Queue {
    pub(crate) fn new(rules: Rules, clock: RecordClock, head: Head) -> Self {
        let (phase, batch, chores) = (Phase::Open, Pending::default(), Vec::new());
        let (room, used, reserved, closer, snapshot_due, overgrown) = (0, 0, 0, None, false, false);
        let (plan, talked, quota, publisher) = (Weak::new(), BTreeMap::new(), None, None);
        Self {
            phase,
            rules,
            clock,
            batch,
            chores,
            room,
            head,
            used,
            reserved,
            closer,
            snapshot_due,
            overgrown,
            plan,
            talked,
            quota,
            publisher,
        }
    }

    /// What time it is on the record: no entry is earlier than the one before it.
    pub(crate) fn time(&mut self, now: (Timestamp, Duration)) -> Timestamp {
        let time = self.clock.now(now);
        self.rules.time().map_or(time, |last| last.max(time))
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
        // A snapshot is no reason to keep what it was written for waiting.
        let full = self.batch.bytes() >= BATCH_BYTES && !self.batch.is_snapshot_alone();
        if full || self.batch.successor.is_some() {
            return Err(Hold::Batch);
        }
        self.check_erased(offers)?;
        let time = self.time((time, monotonic));
        self.begin_with_snapshot(reserve, (time, monotonic))?;
        let mut drafts = Vec::with_capacity(offers.len());
        for (seq, offer) in (self.rules.size()..).zip(offers) {
            drafts.push(Draft::new(Seq(seq), time, offer).map_err(Hold::Refused)?);
        }
        self.check_frame(&drafts)?;
        self.take_drafts(&drafts, reserve, monotonic)
    }

    /// Begins the batch with a snapshot of everything so far, if one is due. It counts also without the record behind it.
    fn begin_with_snapshot(&mut self, reserve: Reserve, (time, monotonic): (Timestamp, Duration)) -> Result<(), Hold> {
        // Right behind a change of keys, a snapshot waits for the batch after the next.
        if !self.snapshot_due || !self.batch.is_empty() || self.rules.outgoing().is_some() {
            return Ok(());
        }
        let drafts = self.snapshot(time).map_err(Hold::Refused)?;
        if drafts.iter().fold(0, |sum, draft| draft.length().saturating_add(sum)) > SNAPSHOT_BYTES {
            (self.snapshot_due, self.overgrown) = (false, true);
            return Ok(());
        }
        let begun = self.take_drafts(&drafts, Reserve::None, monotonic);
        match begun {
            // What was promised room has it without a snapshot; the snapshot waits for the next batch.
            Err(Hold::Room(_)) if reserve == Reserve::Use || !matches!(self.phase, Phase::Open) => Ok(()),
            Err(hold) => Err(hold),
            Ok(_) => {
                (self.batch.snapshot_parts, self.snapshot_due) = (drafts.len(), false);
                Ok(())
            }
        }
    }

    /// Gives entries their places.
    fn take_drafts(
        &mut self,
        drafts: &[Draft<'_>],
        reserve: Reserve,
        monotonic: Duration,
    ) -> Result<Vec<Receipt>, Hold> {
        let charge = self.charge(drafts);
        // Once in the journal, and once more as it is published.
        let taken = drafts.iter().fold(charge, |sum, draft| sum.saturating_add(draft.published()));
        self.check_quota(drafts, taken, reserve)?;
        let room = self.find_room(charge, reserve)?;
        let receipts = self.admit(drafts)?;
        if self.batch.charged == 0 {
            self.batch.since = monotonic;
        }
        self.batch.charged = self.batch.charged.saturating_add(charge);
        if let Some(quota) = &mut self.quota {
            quota.take(taken);
        }
        self.room = room;
        Ok(receipts)
    }

    /// The parts of a snapshot of everything so far.
    fn snapshot(&mut self, time: Timestamp) -> Result<Vec<Draft<'static>>, AppendError> {
        let parts = self.rules.snapshot();
        let drafts = (self.rules.size()..).zip(parts.iter()).map(|(seq, part)| {
            let (subject, fact) = (Subject::default(), Fact::Snapshot(part.clone()));
            let entry = Entry { version: ENTRY_VERSION, seq: Seq(seq), time, subject, fact, content: None };
            Ok(Draft { entry: Encoded::new(entry)?, sealed: &[] })
        });
        drafts.collect()
    }

    /// Whether these fit into a frame with what the batch has; if not, perhaps into the next, or into none.
    fn check_frame(&self, drafts: &[Draft<'_>]) -> Result<(), Hold> {
        let more = drafts.iter().fold(frame::OVERHEAD, |sum, draft| sum.saturating_add(draft.length()));
        if self.batch.bytes().saturating_add(more) <= frame::MAX_FRAME {
            return Ok(());
        }
        if !self.batch.is_empty() && !self.batch.is_snapshot_alone() {
            return Err(Hold::Batch);
        }
        let (bytes, most) = (usize::try_from(more), usize::try_from(frame::MAX_FRAME));
        let (Ok(bytes), Ok(most)) = (bytes, most) else { return Err(Hold::Refused(Arc::new(Failure::Bug).into())) };
        Err(Hold::Refused(AppendError::TooLarge { bytes, most }))
    }

    fn check_erased(&self, offers: &[Offer<'_>]) -> Result<(), Hold> {
        let sealed = offers.iter().filter(|offer| offer.record.content.is_some());
        let sessions = sealed.filter_map(|offer| offer.record.subject.session);
        let erased = sessions.into_iter().find(|session| self.rules.erased().contains(session));
        erased.map_or(Ok(()), |session| Err(Hold::Refused(AppendError::Erased { session })))
    }

    /// Gives the stop its place, on the disk that was kept for it; says whether there was room in the batch.
    pub(crate) fn take_stop(&mut self, now: (Timestamp, Duration)) -> Result<bool, AppendError> {
        let fact = Fact::Stop { number: self.rules.boots() };
        let record = Record { subject: Subject::default(), fact, content: None };
        self.room = self.room.saturating_add(STOP_RESERVE);
        // A snapshot must not have what was kept for the stop.
        let due = std::mem::take(&mut self.snapshot_due);
        let taken = self.take_anyway(&[Offer { record: &record, sealed: None }], Reserve::None, now);
        self.snapshot_due = due;
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

    /// Whether what is published keeps up, and the quota has so much, and what an intent is promised. What ends something is
    /// taken in any case.
    fn check_quota(&mut self, drafts: &[Draft<'_>], taken: u64, reserve: Reserve) -> Result<(), Hold> {
        let facts = || drafts.iter().map(|draft| draft.entry.entry()).map(|entry| (&entry.subject, &entry.fact));
        if facts().all(|(subject, fact)| quota::is_always_taken(subject, fact)) {
            return Ok(());
        }
        if let Some(publisher) = &self.publisher {
            publisher.check_waiting().map_err(Hold::Refused)?;
        }
        let Some(quota) = &mut self.quota else { return Ok(()) };
        let more = if reserve == Reserve::Take { OUTCOME_RESERVE } else { 0 };
        let begins = facts().all(|(_, fact)| matches!(fact, Fact::Message { .. }));
        quota.check(taken.saturating_add(more), self.rules.intents().len(), begins).map_err(Hold::Refused)
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

    fn admit(&mut self, drafts: &[Draft<'_>]) -> Result<Vec<Receipt>, Hold> {
        if self.batch.is_empty() {
            self.batch.first = self.rules.size();
            self.rules.begin_batch();
        }
        // Of several either all have their places or none has.
        let before = (drafts.len() > 1).then(|| self.rules.clone());
        for draft in drafts {
            if let Err(rule) = self.rules.admit(draft.entry.entry()) {
                if let Some(before) = before {
                    self.rules = before;
                }
                return Err(Hold::Refused(AppendError::Misplaced(rule)));
            }
        }
        let place = |draft: &Draft<'_>| Receipt { seq: draft.entry.entry().seq, leaf: draft.entry.leaf() };
        let receipts: Vec<_> = drafts.iter().map(place).collect();
        receipts.iter().zip(drafts).for_each(|(receipt, draft)| self.batch.push(receipt.leaf, draft));
        self.follow(drafts);
        Ok(receipts)
    }

    /// While a pruning is planned, it is known who talks.
    fn follow(&mut self, drafts: &[Draft<'_>]) {
        if self.plan.strong_count() == 0 {
            self.talked.clear();
            return;
        }
        let entries = drafts.iter().map(|draft| draft.entry.entry());
        self.talked.extend(entries.filter_map(|entry| Some((entry.subject.session?, entry.seq.0))));
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

    /// Whether the writer has to hear of what was taken: the batch is due, or its time to wait begins. What only rides along does
    /// not disturb the writer.
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

    /// Whether it has nothing but a snapshot.
    pub(crate) const fn is_snapshot_alone(&self) -> bool {
        self.snapshot_parts > 0 && self.leaves.len() == self.snapshot_parts
    }

    fn bytes(&self) -> u64 {
        (self.entries.len() as u64).saturating_add(self.contents.len() as u64)
    }

    fn push(&mut self, leaf: Digest, draft: &Draft<'_>) {
        self.leaves.push(leaf);
        self.entries.extend_from_slice(&draft.entry.length().to_be_bytes());
        self.entries.extend_from_slice(draft.entry.bytes());
        self.contents.extend_from_slice(draft.sealed);
        if let Fact::Erase { session, .. } = draft.entry.entry().fact {
            self.erased.push(session);
        }
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
        Ok(Self { entry: Encoded::new(entry)?, sealed })
    }

    /// Its bytes in a frame: two for the length of the entry.
    fn length(&self) -> u64 {
        u64::from(self.entry.length()).saturating_add(self.sealed.len() as u64).saturating_add(2)
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
