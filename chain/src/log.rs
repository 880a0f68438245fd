//! The handle to an open chain.

use std::{
    any::Any,
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use ephor_base::{Clock, Decision, Random, Receipt, Seq, SessionId, Timestamp, files::Files};
use ephor_record::{Content, Fact, Record, Retention, Standing};
use ephor_tlog::Head;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::{
    erasure::Descent,
    error::{AppendError, Failure, OpenError},
    in_use::InUse,
    intent::{Durable, Intent, IntentRecord},
    open,
    order::{InAnyOrder, Order},
    publisher::Publisher,
    queue::{self, Chore, Hold, Offer, Phase, Queue, Reserve},
    quota::{Quota, Space},
    read::{Entries, ReadError, Stored},
    recovered::Recovered,
    rotation::Signers,
    vault::{Sealed, SessionKey, VaultError, VaultKey, sealed_length},
    veil::Veil,
    writer::Shared,
};

/// The most bytes of private content one record may have.
pub const MAX_CONTENT_BYTES: usize = 16 << 20;

/// Where a chain lies, and its sizes.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder of the chain. Nothing else may lie in it.
    pub folder: PathBuf,
    /// The folder of the session keys.
    pub vault: PathBuf,
    /// The file of the pinned head. It lies outside the folder of the chain, so that cutting that back is noticed.
    pub head: PathBuf,
    /// A segment takes no further batch beyond this many bytes: large enough that a year of agent work is a few files,
    /// small enough to copy one at a time.
    pub segment_bytes: u64,
    /// The checkpoint is published and the head made durable at most this often while there is traffic. More often costs
    /// the disk; less often widens what a power cut and a cut-back log together could hide.
    pub publish_every: Duration,
    /// Whether a chain may begin where there is none. If the keys have signed one before, it was taken away, and a second
    /// one under the same name would hide that.
    pub may_begin: bool,
    /// How many bytes the chain and the vault may have; none for as many as the disk has. At the quota only what ends
    /// something is still recorded. Disk that is reserved ahead, a few MiB, is not counted.
    pub quota: Option<u64>,
    /// How long entries stay at least. Nothing goes by itself: see [`Log::prune`].
    pub keep: Retention,
}

impl Config {
    /// The places below a home.
    #[must_use]
    pub fn in_home(home: &Path) -> Self {
        Self {
            folder: home.join("chain"),
            vault: home.join("vault"),
            head: home.join("head"),
            segment_bytes: 64 << 20,
            publish_every: Duration::from_secs(1),
            may_begin: true,
            quota: None,
            keep: Retention::LEAST,
        }
    }
}

/// The bytes of a journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Usage {
    /// In use.
    pub used: u64,
    /// Reserved on the disk beyond those.
    pub reserved: u64,
}

/// An open chain. A clone is another handle to the same.
///
/// Every record gets its place in the order of the calls. A future of this type that is dropped before it is ready may
/// leave its record in the log.
#[derive(Clone)]
pub struct Log {
    handle: Arc<Handle>,
    order: Arc<dyn Order>,
}

struct Handle {
    shared: Arc<Shared>,
    publisher: Arc<Publisher>,
    thread: Mutex<Option<JoinHandle<()>>>,
    config: Config,
    files: Arc<dyn Files>,
    descent: Mutex<Descent>,
}

impl Log {
    /// Opens the chain, or begins it. Checks everything but the signatures of earlier checkpoints, trims a torn end, and
    /// records the boot and the outcomes that are missing. All that is on the disk when it returns.
    ///
    /// One process opens a home at a time; the caller holds the lock.
    ///
    /// # Errors
    /// [`OpenError`]. If the chain is quarantined, nothing was written.
    pub fn open(
        config: Config,
        keys: impl Into<Signers>,
        vault: Arc<VaultKey>,
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
        random: Arc<dyn Random>,
        version: &str,
    ) -> Result<(Self, Recovered), OpenError> {
        let world = open::World { config: &config, files: &files, clock, random };
        let (writer, recovered) = open::open(world, keys.into(), vault, version, None)?;
        let shared = Arc::clone(&writer.shared);
        let publisher = Arc::clone(&writer.publisher);
        let thread = writer.start().map_err(open::io("starting the writer"))?;
        let (thread, descent) = (Mutex::new(Some(thread)), Mutex::default());
        let handle = Handle { shared, publisher, thread, config, files, descent };
        Ok((Self { handle: Arc::new(handle), order: Arc::new(InAnyOrder) }, recovered))
    }

    /// The same log; what is recorded through this handle takes part in `order`.
    #[must_use]
    pub fn in_order(&self, order: Arc<dyn Order>) -> Self {
        Self { handle: Arc::clone(&self.handle), order }
    }

    /// Records something without waiting for the disk. It has its place at once and goes with the next batch, within
    /// a tenth of a second at most. Waits only while the queue is full.
    ///
    /// # Errors
    /// [`AppendError`] if it was not taken.
    pub fn note(&self, record: Record) -> impl Future<Output = Result<Receipt, AppendError>> + Send + 'static + use<> {
        let (shared, order) = (Arc::clone(&self.handle.shared), Arc::clone(&self.order));
        async move {
            queue::check_appendable(&record.fact)?;
            let (receipts, ()) = take_in(&*order, &shared, &[&record], Reserve::None, |_| ()).await?;
            first(receipts)
        }
    }

    /// Records something and waits until it is on the disk under a checkpoint with both signatures.
    ///
    /// # Errors
    /// [`AppendError`] if it was not taken, or is not known to be on the disk.
    pub fn append(
        &self,
        record: Record,
    ) -> impl Future<Output = Result<Receipt, AppendError>> + Send + 'static + use<> {
        let (shared, order) = (Arc::clone(&self.handle.shared), Arc::clone(&self.order));
        async move {
            queue::check_appendable(&record.fact)?;
            let (receipts, waiter) = take_in(&*order, &shared, &[&record], Reserve::None, wait).await?;
            settled(waiter).await?;
            first(receipts)
        }
    }

    /// Records a permitting verdict and the intent that follows from it, reserves the disk for the outcome, and waits
    /// until both are on the disk.
    ///
    /// # Errors
    /// [`AppendError`]. Without a value there is no proof, and nothing may be done.
    pub fn intend(
        &self,
        verdict: Record,
        intent: IntentRecord,
    ) -> impl Future<Output = Result<Durable<Intent>, AppendError>> + Send + 'static + use<> {
        let (shared, order) = (Arc::clone(&self.handle.shared), Arc::clone(&self.order));
        async move {
            check_pair(&verdict, &intent)?;
            let records = [&verdict, &intent_record(&intent)];
            let (receipts, waiter) = take_in(&*order, &shared, &records, Reserve::Take, wait).await?;
            settled(waiter).await?;
            let [verdict, receipt] = receipts.as_slice() else { return Err(bug()) };
            Ok(Durable::new(Intent::new(intent, *verdict), *receipt))
        }
    }

    /// Records the outcome of an intent, on the disk that was reserved for it. As [`Log::note`], it does not wait for
    /// the disk. An outcome larger than [`queue::OUTCOME_ROOM`] may meet a full disk; a smaller one then still fits.
    ///
    /// # Errors
    /// [`AppendError`] if it was not taken: then the intent is still open.
    pub fn settle(
        &self,
        intent: Seq,
        record: Record,
    ) -> impl Future<Output = Result<Receipt, AppendError>> + Send + 'static + use<> {
        let (shared, order) = (Arc::clone(&self.handle.shared), Arc::clone(&self.order));
        async move {
            if !matches!(&record.fact, Fact::Outcome { intent: ended, .. } if *ended == intent) {
                return Err(AppendError::Misplaced("it is no outcome of this intent"));
            }
            let (receipts, ()) = take_in(&*order, &shared, &[&record], Reserve::Use, |_| ()).await?;
            first(receipts)
        }
    }

    /// What digests the private things of a session for the public part of the record. A session without a key gets one.
    ///
    /// # Errors
    /// [`AppendError`] if the key cannot be had.
    pub fn veil(&self, session: SessionId) -> impl Future<Output = Result<Veil, AppendError>> + Send + 'static + use<> {
        let (shared, used) = (Arc::clone(&self.handle.shared), self.in_use(session));
        async move {
            let used = used?;
            Ok(find_key(&shared, session).await?.veil(used))
        }
    }

    /// Uses a session: as long as this is there, its key stays in memory, and no pruning takes its beginning away. A caller that
    /// takes a session up asks for this first and reads then.
    ///
    /// # Errors
    /// [`AppendError`] if the keys cannot be used any more.
    pub fn in_use(&self, session: SessionId) -> Result<InUse, AppendError> {
        let used = InUse::begin(&self.handle.shared.vault, session);
        used.map_err(|source| VaultError::Io { session, source }.into())
    }

    /// What time it is on the record: that of the clock, as far as that moves on by steps that a clock takes, and never before the
    /// last entry. Whatever is to end on the record is counted from here.
    #[must_use]
    pub fn time(&self) -> Timestamp {
        let now = now(&self.handle.shared);
        self.handle.shared.lock().time(now)
    }

    /// Waits until everything recorded so far is on the disk.
    ///
    /// # Errors
    /// [`AppendError`] if the log has stopped or is closed.
    pub fn flush(&self) -> impl Future<Output = Result<Head, AppendError>> + Send + 'static + use<> {
        let shared = Arc::clone(&self.handle.shared);
        async move {
            let waiter = {
                let mut queue = shared.lock();
                queue.check_open()?;
                wait(&mut queue)
            };
            shared.wake();
            settled(waiter).await
        }
    }

    /// Brings everything recorded so far to the disk and publishes it, instead of waiting for the next round.
    ///
    /// # Errors
    /// [`AppendError`] if the log has stopped or is closed, or it could not be published: then the next round tries again.
    pub fn publish(&self) -> impl Future<Output = Result<Head, AppendError>> + Send + 'static + use<> {
        let (flushed, publisher, shared) =
            (self.flush(), Arc::clone(&self.handle.publisher), Arc::clone(&self.handle.shared));
        async move {
            let head = flushed.await?;
            match publisher.ask().await {
                Ok(Ok(())) => Ok(head),
                Ok(Err(source)) => Err(AppendError::Unpublished(source)),
                // The thread that publishes has ended, and with it the log.
                Err(_) => Err(shared.lock().check_open().err().unwrap_or(AppendError::Closed)),
            }
        }
    }

    /// Why the chain cannot be published; nothing while it can. What was acknowledged is in the journal.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.handle.publisher.trouble()
    }

    /// The head of what is on the disk.
    #[must_use]
    pub fn head(&self) -> Head {
        self.handle.shared.lock().head
    }

    /// Looks at what stands: holds, dead letters, schedules. What was recorded counts, also while it is not on the disk.
    /// The log goes on meanwhile.
    pub fn standing<T>(&self, look: impl FnOnce(&Standing) -> T) -> T {
        let standing = Arc::clone(self.handle.shared.lock().rules.standing());
        look(&standing)
    }

    /// The bytes of the journal.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let queue = self.handle.shared.lock();
        Usage { used: queue.used.saturating_sub(self.handle.publisher.recycled()), reserved: queue.reserved }
    }

    /// The bytes of the chain and the vault, if there is a quota for them.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        let queue = self.handle.shared.lock();
        queue.quota.as_ref().map(|quota| quota.space(queue.rules.intents().len()))
    }

    /// Whether the quota leaves room for anything to begin. That it does not is a refusal like any other: [`Log::full`] resolves.
    ///
    /// # Errors
    /// [`AppendError::Quota`] says what is full, and where.
    pub fn can_begin(&self) -> Result<(), AppendError> {
        let queue = self.handle.shared.lock();
        let Some(quota) = &queue.quota else { return Ok(()) };
        quota.can_begin(queue.rules.intents().len()).inspect_err(|_| quota.full.notify_one())
    }

    /// Resolves when something was refused because of the quota and nothing more can begin; never, if there is no quota.
    /// The process that runs the log should end then: only what was begun is still taken.
    pub fn full(&self) -> impl Future<Output = ()> + Send + 'static + use<> {
        let full = self.handle.shared.lock().quota.as_ref().map(|quota| Arc::clone(&quota.full));
        async move {
            match full {
                Some(full) => full.notified().await,
                None => std::future::pending().await,
            }
        }
    }

    /// Reads everything that is on the disk now, contents opened.
    #[must_use]
    pub fn entries(&self) -> Entries {
        self.entries_sealed().unsealing(Arc::clone(&self.handle.shared.vault))
    }

    /// The entry `seq`, if it is on the disk, its content opened.
    ///
    /// # Errors
    /// [`ReadError`] if it is there and cannot be read.
    pub fn entry(&self, seq: Seq) -> Result<Option<Stored>, ReadError> {
        let end = self.head().size.min(seq.0.saturating_add(1));
        self.entries().from(seq).up_to(end).next().transpose()
    }

    /// As [`Log::entries`], contents sealed.
    pub(crate) fn entries_sealed(&self) -> Entries {
        let (size, pruned) = {
            let queue = self.handle.shared.lock();
            (queue.head.size, queue.rules.pruned())
        };
        // What the record calls pruned may be there for a moment, and a reader must not build on it.
        let from = Seq(pruned.map_or(0, |pruned| pruned.index));
        Entries::open(&self.handle.config.folder, &self.handle.files).from(from).up_to(size)
    }

    /// What was read so far of which sessions came out of which. Behind a panic it is read anew.
    pub(crate) fn descent(&self) -> MutexGuard<'_, Descent> {
        self.handle.descent.lock().unwrap_or_else(|poisoned| {
            self.handle.descent.clear_poison();
            let mut descent = poisoned.into_inner();
            *descent = Descent::default();
            descent
        })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.handle.shared
    }

    pub(crate) fn config(&self) -> &Config {
        &self.handle.config
    }

    pub(crate) fn files(&self) -> &Arc<dyn Files> {
        &self.handle.files
    }

    /// Where the log begins, as far as everything before that was taken away.
    pub(crate) fn pruned(&self) -> u64 {
        self.handle.publisher.pruned()
    }

    /// Records the stop, brings everything to the disk, publishes the checkpoint, pins the head, gives back the disk that
    /// was reserved, and ends the writer. Other handles take nothing from here on.
    ///
    /// # Errors
    /// [`AppendError`] if the log had stopped, was closed, or could not be left in order. What was acknowledged is on the
    /// disk in any case.
    pub async fn close(self) -> Result<(), AppendError> {
        let shared = Arc::clone(&self.handle.shared);
        begin_close(&shared)?;
        take_stop(&shared).await?;
        let (reply, closed) = oneshot::channel();
        shared.lock().closer = Some(reply);
        shared.wake();
        let result = closed.await.unwrap_or_else(|_| Err(bug()));
        self.handle.join();
        result
    }
}

impl Handle {
    fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The writer catches its own panics.
        let _ = thread.map(JoinHandle::join);
    }
}

impl Drop for Handle {
    /// Without a close the log ends as after a crash, except that what was recorded is written.
    fn drop(&mut self) {
        {
            let mut queue = self.shared.lock();
            if matches!(queue.phase, Phase::Open | Phase::Closing) {
                queue.phase = Phase::Abandoned;
            }
        }
        self.shared.wake();
        self.join();
    }
}

fn begin_close(shared: &Shared) -> Result<(), AppendError> {
    let mut queue = shared.lock();
    queue.check_open()?;
    queue.phase = Phase::Closing;
    Ok(())
}

/// Gives the stop its place.
async fn take_stop(shared: &Shared) -> Result<(), AppendError> {
    loop {
        let turn = shared.turn.notified();
        {
            let mut queue = shared.lock();
            if let Phase::Failed(failure) = &queue.phase {
                return Err(Arc::clone(failure).into());
            }
            if queue.take_stop(now(shared))? {
                return Ok(());
            }
        }
        turn.await;
    }
}

/// Puts the caller among those who wait for the next batch.
pub(crate) fn wait(queue: &mut Queue) -> Waiting {
    let (waiter, waiting) = oneshot::channel();
    queue.batch.waiters.push(waiter);
    waiting
}

pub(crate) type Waiting = oneshot::Receiver<Result<Head, Arc<Failure>>>;

pub(crate) async fn settled(waiting: Waiting) -> Result<Head, AppendError> {
    Ok(waiting.await.map_err(|_| bug())??)
}

/// Gives records their places, and does something else under the same lock.
pub(crate) async fn take<T>(
    shared: &Shared,
    records: &[&Record],
    reserve: Reserve,
    also: impl Fn(&mut Queue) -> T,
) -> Result<(Vec<Receipt>, T), AppendError> {
    take_in(&InAnyOrder, shared, records, reserve, also).await
}

/// As [`take`], if `order` still holds.
async fn take_in<T>(
    order: &dyn Order,
    shared: &Shared,
    records: &[&Record],
    reserve: Reserve,
    also: impl Fn(&mut Queue) -> T,
) -> Result<(Vec<Receipt>, T), AppendError> {
    let offers = prepare(shared, records).await?;
    loop {
        let (turn, now) = (shared.turn.notified(), now(shared));
        let (placed, news, warning) = {
            let mut queue = shared.lock();
            let placed =
                place(order, &mut queue, records, (&offers, reserve, now)).map(|receipts| (receipts, also(&mut queue)));
            let news = !queue.batch.is_empty() && queue.is_news();
            (placed, news, queue.quota.as_mut().and_then(Quota::warning))
        };
        if news {
            shared.wake();
        }
        if let Some(warning) = warning {
            warning.say();
        }
        match placed {
            Ok(taken) => return Ok(taken),
            Err(Unplaced::Overtaken) => return Err(AppendError::Overtaken),
            Err(Unplaced::Panicked(panic)) => resume_unwind(panic),
            Err(Unplaced::Hold(Hold::Refused(error))) => return Err(error),
            Err(Unplaced::Hold(Hold::Batch)) => turn.await,
            Err(Unplaced::Hold(Hold::Room(more))) => ask(shared, |reply| Chore::Room(more, reply)).await?,
        }
    }
}

/// Why records have no place.
enum Unplaced {
    /// The log has none for them yet, or at all.
    Hold(Hold),
    /// The order does not hold any more.
    Overtaken,
    /// The order panicked. Whatever it keeps is its own: the queue is as it was, or the records have their places.
    Panicked(Box<dyn Any + Send>),
}

/// Gives records their places, if `order` still holds. What is not of this crate runs under the lock nowhere else, and its panics are
/// passed on once the lock is free.
fn place(
    order: &dyn Order,
    queue: &mut Queue,
    records: &[&Record],
    (offers, reserve, (time, monotonic)): (&[Offer<'_>], Reserve, (Timestamp, Duration)),
) -> Result<Vec<Receipt>, Unplaced> {
    let time = queue.time((time, monotonic));
    if !catch_unwind(AssertUnwindSafe(|| order.holds(time))).map_err(Unplaced::Panicked)? {
        return Err(Unplaced::Overtaken);
    }
    let receipts = queue.take(offers, reserve, (time, monotonic)).map_err(Unplaced::Hold)?;
    let tell = || records.iter().zip(&receipts).for_each(|(record, receipt)| order.taken(record, *receipt, time));
    catch_unwind(AssertUnwindSafe(tell)).map_err(Unplaced::Panicked)?;
    Ok(receipts)
}

/// Seals the contents of records, before anyone waits for the lock.
async fn prepare<'a>(shared: &Shared, records: &[&'a Record]) -> Result<Vec<Offer<'a>>, AppendError> {
    let mut offers = Vec::with_capacity(records.len());
    for record in records {
        let sealed = match (&record.content, record.subject.session) {
            (None, _) => None,
            (Some(_), None) => return Err(AppendError::NoSession),
            (Some(content), Some(session)) => {
                let key = find_key(shared, session).await?;
                Some(seal(&key, session, content, &*shared.random)?)
            }
        };
        offers.push(Offer { record, sealed });
    }
    Ok(offers)
}

fn seal(key: &SessionKey, session: SessionId, content: &Content, random: &dyn Random) -> Result<Sealed, AppendError> {
    let too_large = |bytes| AppendError::TooLarge { bytes, most: MAX_CONTENT_BYTES };
    let sealed = key.seal(session, content, random).ok_or_else(|| too_large(u32::MAX as usize))?;
    let bytes = sealed.bytes.len();
    if bytes > sealed_length(MAX_CONTENT_BYTES) { Err(too_large(bytes)) } else { Ok(sealed) }
}

/// The key of a session; made and stored if it has none yet.
async fn find_key(shared: &Shared, session: SessionId) -> Result<Arc<SessionKey>, AppendError> {
    if let Some(key) = shared.vault.kept(session)? {
        return Ok(key);
    }
    // The writer's thread may wait for the disk.
    ask(shared, |reply| Chore::Key(session, reply)).await?.ok_or_else(bug)
}

/// Has the writer do something.
pub(crate) async fn ask<T>(
    shared: &Shared,
    chore: impl FnOnce(oneshot::Sender<Result<T, AppendError>>) -> Chore,
) -> Result<T, AppendError> {
    let (reply, answer) = oneshot::channel();
    {
        let mut queue = shared.lock();
        queue.check_open()?;
        queue.chores.push(chore(reply));
    }
    shared.wake();
    answer.await.map_err(|_| bug())?
}

/// An intent follows only from a verdict that permits the same thing for the same subject.
fn check_pair(verdict: &Record, intent: &IntentRecord) -> Result<(), AppendError> {
    let Fact::Verdict { action, attempt, arguments, verdict: given, .. } = &verdict.fact else {
        return Err(AppendError::Misplaced("an intent follows from a verdict"));
    };
    if given.decision != Decision::Permit {
        return Err(AppendError::Misplaced("an intent follows from a verdict that permits"));
    }
    let same = (*action, *attempt, *arguments) == (intent.action, intent.attempt, intent.arguments);
    if !same || verdict.subject != intent.subject() {
        return Err(AppendError::Misplaced("the verdict is about something else than the intent"));
    }
    Ok(())
}

fn intent_record(intent: &IntentRecord) -> Record {
    let IntentRecord { action, attempt, arguments, reserved, ref kept, .. } = *intent;
    // The queue puts in where the verdict stands.
    let fact = Fact::Intent { action, attempt, verdict: Seq(0), arguments, reserved };
    let content = (!kept.is_empty()).then(|| Content::Kept(kept.clone()));
    Record { subject: intent.subject(), fact, content }
}

fn now(shared: &Shared) -> (Timestamp, Duration) {
    (shared.clock.now(), shared.clock.monotonic())
}

pub(crate) fn first(receipts: Vec<Receipt>) -> Result<Receipt, AppendError> {
    receipts.first().copied().ok_or_else(bug)
}

fn bug() -> AppendError {
    Arc::new(Failure::Bug).into()
}
