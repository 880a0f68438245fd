//! Pruning: what lies before some entry is taken away, after the record says so.
//!
//! # In which order
//! 1. The pruning is recorded: where the log will begin, how long entries stay, how old what goes is, under which
//!    checkpoint that was decided, and what the entries that go amount to. It stands in a new segment of the journal,
//!    behind a snapshot.
//! 2. It is published, and the segments before it are recycled.
//! 3. `chain/minimum` is replaced.
//! 4. What lies below is taken away (`pruner`).
//!
//! A crash anywhere leaves a log that opens, and the next opening goes on: snapshots carry the last pruning, so the
//! record says what is to be done also where the journal no longer has it.
//!
//! # What never goes
//! Entries younger than the retention ([`ephor_record::retention`]); what a node that goes on may need (`holds`), whole; tiles
//! above level 0, without which what is left could not be proven. Keys of sessions stay too: pruning is not erasing.

use std::{collections::BTreeSet, future::Future, io, sync::Arc};

use ephor_base::{OperatorId, Seq, SessionId, Timestamp};
use ephor_record::{
    Entry, Fact, Pruning, Record, Retention, Rules, ScanError, Subject,
    blockers::{Blockers, Held},
    minimum::Begin,
    retention::Ages,
    snapshot,
};
use ephor_tlog::{Head, tile::WIDTH};
use serde::{Deserialize, Serialize};

use crate::{
    error::AppendError,
    log::{self, Log, Waiting},
    marks,
    pruner::Below,
    queue::{Chore, Hold, Offer, Queue, Reserve},
    read::ReadError,
    writer::Shared,
};

/// What the caller wants to be pruned.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wish {
    /// Keep entries for longer than the configuration says.
    pub keep: Option<Retention>,
    /// Keep entries of this time and later.
    pub before: Option<Timestamp>,
    /// The sessions that are open, whenever they were last talked in.
    pub open: Vec<SessionId>,
}

/// What would be pruned.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Where the log begins now.
    pub from: u64,
    /// Where it would begin; the same if nothing can go.
    pub minimum: u64,
    /// How many bytes of files would go, beside what of the journal is recycled.
    pub bytes: u64,
    /// The time of the first entry that would go.
    pub oldest: Option<Timestamp>,
    /// The time of the last entry that would go.
    pub newest: Option<Timestamp>,
    /// Where it could begin if nothing were held.
    pub old_enough: u64,
    /// How many days entries are kept.
    pub keep_days: u64,
    /// What stays though it is old enough, oldest first.
    pub held: Vec<Held>,
    #[serde(skip)]
    ready: Ready,
}

/// What is recorded if a plan is carried out, and what it rests on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Ready {
    parts: Vec<Pruning>,
    /// The sessions whose beginnings go, and so rest.
    going: BTreeSet<SessionId>,
    /// How many entries had been looked at, and how many had their places by then.
    size: u64,
    placed: u64,
    /// While it is there, the log knows who talks.
    following: Option<Arc<()>>,
}

impl Plan {
    /// How many entries would go.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.minimum.saturating_sub(self.from)
    }
}

/// A log that was pruned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pruned {
    /// Where the record says so.
    pub seq: Seq,
    /// Where the log begins now.
    pub minimum: u64,
}

/// A log was not pruned, or not wholly.
#[derive(Debug, thiserror::Error)]
pub enum PruneError {
    /// Entries are kept for longer. The caller's mistake. Nothing was recorded.
    #[error(
        "entries of this home are kept for {keep}, so `{asked}` is too short: `keep` under `[chain]` in ephor.toml says so"
    )]
    BelowKeep {
        /// What was asked for.
        asked: Retention,
        /// What is configured.
        keep: Retention,
    },
    /// There is nothing that can go. Nothing was recorded.
    #[error("nothing can be pruned")]
    Nothing,
    /// A session whose beginning would go was taken up after that was decided. Nothing was recorded.
    #[error("session {0} was taken up meanwhile, and nothing was pruned: run `ephor chain prune` again")]
    TakenUp(SessionId),
    /// The record cannot be read. Nothing was recorded.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The bytes of the files cannot be counted. The store's fault. Nothing was recorded.
    #[error("looking at the files of the chain failed: {0}")]
    Look(#[source] io::Error),
    /// The pruning was not recorded, or is not known to be.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// It is on the record, and not everything was taken away yet. The log goes on, and tries again with the next round and
    /// the next start.
    #[error(
        "the pruning is on the record (entry {seq}), and what it names is not all gone yet: the node goes on with it by itself"
    )]
    Unfinished {
        /// Where the record says so.
        seq: Seq,
    },
}

impl From<ScanError> for PruneError {
    fn from(error: ScanError) -> Self {
        Self::Read(error.into())
    }
}

impl Log {
    /// What could be pruned now. Nothing is changed. Reads all of the record, so it takes as long as that is; `progress` hears
    /// how many entries were read of how many. Call it where a thread may wait, and publish before.
    ///
    /// # Errors
    /// [`PruneError`].
    pub fn plan_pruning(&self, wish: Wish, mut progress: impl FnMut(u64, u64)) -> Result<Plan, PruneError> {
        let keep = wish.keep.unwrap_or(self.config().keep);
        if keep < self.config().keep {
            return Err(PruneError::BelowKeep { asked: keep, keep: self.config().keep });
        }
        let begin = self.begin()?;
        let now = self.shared().clock.now();
        let (following, placed) = follow(&mut self.shared().lock());
        let open = self.shared().vault.used().map_err(PruneError::Look)?;
        let mut survey = Survey::new(begin.as_ref(), now, open.into_iter().chain(wish.open).collect());
        let total = self.head().size;
        for stored in self.entries_sealed() {
            let entry = stored?.entry;
            survey.pass(&entry);
            if entry.seq.0 % 4096 == 0 {
                progress(entry.seq.0, total);
            }
        }
        let published = marks::read_published(&self.config().folder, self.files())?;
        let under = published.map_or_else(Head::empty, |(_, checkpoint)| checkpoint.head);
        let mut plan = self.finish(survey.decide(keep, wish.before, under.size), begin, keep, under)?;
        (plan.ready.size, plan.ready.placed, plan.ready.following) = (total, placed, Some(following));
        Ok(plan)
    }

    /// Takes away what a plan names: records it, waits until that is on the disk, publishes it, and only then deletes.
    ///
    /// # Errors
    /// [`PruneError`] says what was recorded and done.
    pub fn prune(
        &self,
        plan: &Plan,
        operator: OperatorId,
    ) -> impl Future<Output = Result<Pruned, PruneError>> + Send + 'static + use<> {
        let (log, ready, minimum) = (self.clone(), plan.ready.clone(), plan.minimum);
        async move {
            if ready.parts.is_empty() {
                return Err(PruneError::Nothing);
            }
            let subject = Subject { operator: Some(operator), ..Subject::default() };
            let record = |part| Record { subject: subject.clone(), fact: Fact::Prune(part), content: None };
            let records: Vec<_> = ready.parts.iter().cloned().map(record).collect();
            log.check_unread(&ready).await?;
            let (seq, waiting) = take_first(log.shared(), &records, &ready).await?;
            log::settled(waiting).await?;
            log.publish().await?;
            if log.pruned() < minimum {
                return Err(PruneError::Unfinished { seq });
            }
            Ok(Pruned { seq, minimum })
        }
    }

    /// What had its place when the plan began, and was not on the disk yet.
    async fn check_unread(&self, ready: &Ready) -> Result<(), PruneError> {
        if ready.size >= ready.placed {
            return Ok(());
        }
        self.flush().await?;
        for stored in self.entries_sealed().from(Seq(ready.size)).up_to(ready.placed) {
            let session = stored?.entry.subject.session.filter(|session| ready.going.contains(session));
            session.map_or(Ok(()), |session| Err(PruneError::TakenUp(session)))?;
        }
        Ok(())
    }

    /// What is known where the log begins, if it was pruned.
    fn begin(&self) -> Result<Option<Begin>, PruneError> {
        let Some(minimum) = self.shared().lock().rules.pruned() else { return Ok(None) };
        let entries = self.entries_sealed().from(minimum.record).map(|stored| match stored {
            Ok(stored) => Ok(stored.entry),
            Err(ReadError::Scan(error)) => Err(error),
            Err(ReadError::Vault(_)) => Err(ScanError::minimum("the record of it cannot be read")),
        });
        Ok(Some(minimum.begin(entries)?))
    }

    /// Adds to a plan what the record of it says.
    fn finish(&self, decided: Decided, begin: Option<Begin>, keep: Retention, under: Head) -> Result<Plan, PruneError> {
        let Decided { from, minimum, old_enough, oldest, newest, floor, held, going } = decided;
        let mut plan = Plan {
            from,
            minimum,
            bytes: 0,
            oldest,
            newest,
            old_enough,
            keep_days: keep.days(),
            held,
            ready: Ready { going, ..Ready::default() },
        };
        let (Some(newest), Some(floor)) = (newest, floor) else { return Ok(plan) };
        let mut rules = begin.map_or_else(Rules::default, |begin| begin.rules);
        for stored in self.entries_sealed().from(Seq(from)).up_to(minimum) {
            let entry = stored?.entry;
            let rule = |rule| ScanError::found("journal", 0, Some(entry.seq.0), ephor_record::Damage::Rule(rule));
            rules.admit_published(&entry).map_err(rule)?;
        }
        let Head { size, root } = under;
        let part = |state| Pruning { minimum, keep_seconds: keep.seconds(), floor, newest, size, root, state };
        plan.ready.parts = snapshot::parts(&rules, false).into_iter().map(part).collect();
        let (config, files) = (self.config(), &**self.files());
        let below = Below::find(&config.folder, &config.vault, files, minimum).map_err(PruneError::Look)?;
        plan.bytes = below.bytes(files).map_err(PruneError::Look)?;
        Ok(plan)
    }
}

/// From here on it is known which sessions talk, until the last plan is gone that asked for it.
fn follow(queue: &mut Queue) -> (Arc<()>, u64) {
    let following = queue.plan.upgrade().unwrap_or_default();
    queue.plan = Arc::downgrade(&following);
    (following, queue.rules.size())
}

/// Whether what was planned may still be done: whose beginning goes still rests, and has rested since.
fn check_rest(shared: &Shared, queue: &Queue, ready: &Ready) -> Result<(), PruneError> {
    let used = shared.vault.used().map_err(PruneError::Look)?;
    let talked = |session: &&SessionId| queue.talked.get(session).is_some_and(|last| *last >= ready.size);
    let taken_up = ready.going.iter().find(|session| used.contains(session) || talked(session));
    taken_up.map_or(Ok(()), |session| Err(PruneError::TakenUp(*session)))
}

/// Gives the parts of a pruning their places, first in a batch, behind a snapshot with which a segment begins.
async fn take_first(shared: &Arc<Shared>, records: &[Record], ready: &Ready) -> Result<(Seq, Waiting), PruneError> {
    let offers: Vec<_> = records.iter().map(|record| Offer { record, sealed: None }).collect();
    loop {
        let (room, waiting) = {
            let now = (shared.clock.now(), shared.clock.monotonic());
            let mut queue = shared.lock();
            queue.check_open()?;
            check_rest(shared, &queue, ready)?;
            queue.snapshot_due |= queue.batch.is_empty();
            let begins = queue.batch.is_empty() || queue.batch.is_snapshot_alone();
            let taken = if begins { queue.take(&offers, Reserve::None, now) } else { Err(Hold::Batch) };
            match taken {
                Ok(receipts) => {
                    let waiting = log::wait(&mut queue);
                    drop(queue);
                    shared.wake();
                    return Ok((log::first(receipts)?.seq, waiting));
                }
                Err(Hold::Refused(error)) => return Err(error.into()),
                Err(Hold::Batch) => (None, Some(log::wait(&mut queue))),
                Err(Hold::Room(more)) => (Some(more), None),
            }
        };
        shared.wake();
        if let Some(more) = room {
            log::ask(shared, |reply| Chore::Room(more, reply)).await?;
        }
        if let Some(waiting) = waiting {
            log::settled(waiting).await?;
        }
    }
}

/// What is learnt of a record before anything is decided.
struct Survey {
    from: u64,
    now: Timestamp,
    ages: Ages,
    holds: Blockers,
    /// Where a log cannot begin: between a verdict and its intent, between parts, or right behind a change of keys.
    closed: BTreeSet<u64>,
    oldest: Option<Timestamp>,
}

/// What is decided.
struct Decided {
    from: u64,
    minimum: u64,
    old_enough: u64,
    oldest: Option<Timestamp>,
    newest: Option<Timestamp>,
    floor: Option<Timestamp>,
    held: Vec<Held>,
    going: BTreeSet<SessionId>,
}

impl Survey {
    fn new(begin: Option<&Begin>, now: Timestamp, open: Vec<SessionId>) -> Self {
        let (from, before) = begin.map_or((0, None), |begin| (begin.minimum.index, Some(begin.before)));
        let (ages, holds) = (Ages::new(from, before, now), Blockers::new(open));
        Self { from, now, ages, holds, closed: BTreeSet::new(), oldest: None }
    }

    fn pass(&mut self, entry: &Entry) {
        self.ages.pass(entry);
        self.holds.pass(entry, self.ages.lived());
        self.oldest = self.oldest.or(Some(entry.time));
        let inside = match &entry.fact {
            Fact::Intent { .. } => true,
            Fact::Snapshot(snapshot) => snapshot.part > 0,
            Fact::Prune(pruning) => pruning.state.part > 0,
            _ => false,
        };
        if inside {
            self.closed.insert(entry.seq.0);
        }
        if matches!(entry.fact, Fact::Keys { .. }) {
            self.closed.insert(entry.seq.0.saturating_add(1));
        }
    }

    /// The furthest place at which the log may begin.
    fn decide(self, keep: Retention, before: Option<Timestamp>, published: u64) -> Decided {
        let Self { from, now, ages, holds, closed, oldest } = self;
        let young = ages.lived().saturating_sub(keep.micros());
        let age = |end: &u64| ages.before(*end);
        let ends = (from / WIDTH + 1..=published / WIDTH).map(|number| number.saturating_mul(WIDTH));
        let old = |end: &u64| age(end).is_some_and(|age| ages.lived().saturating_sub(age.lived) >= keep.micros());
        let old: Vec<u64> = ends.take_while(old).collect();
        let floor = old.last().and_then(age).map(|age| age.time);
        let wanted = |end: &&u64| before.is_none_or(|before| age(end).is_some_and(|age| age.time < before));
        let old_enough = old.iter().take_while(wanted).last().copied().unwrap_or(from);
        let now = ages.last().map_or(now, |last| last.min(now));
        let held = holds.before(old_enough, young, now);
        let limit = held.first().map_or(old_enough, |held| held.seq.0.min(old_enough));
        let minimum = old.into_iter().filter(|end| *end <= limit && !closed.contains(end)).max().unwrap_or(from);
        let goes = minimum > from;
        let going = holds.began_before(minimum);
        let newest = age(&minimum).filter(|_| goes).map(|age| age.time);
        Decided {
            from,
            minimum,
            old_enough,
            oldest: oldest.filter(|_| goes),
            newest,
            floor: floor.filter(|_| goes),
            held,
            going,
        }
    }
}
