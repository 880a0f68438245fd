//! The writer: the one thread that writes the journal.
//!
//! Whatever gathers in the queue while a batch is on its way to the disk is the next batch. After any error it stops for
//! good: what a disk holds after a failed write is not known before it is read again, and that is what opening does.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use ephor_base::{Clock, Digest, Random, SessionId};
use ephor_record::Minimum;
use ephor_tlog::{Head, Tree};
use tokio::sync::{Notify, oneshot};

use crate::{
    durable,
    error::{AppendError, Failure},
    frame,
    journal::{Journal, STEP},
    keys::SigningKeys,
    publisher::{Publisher, Signed},
    queue::{Chore, Pending, Phase, Queue},
    signer::Signer,
    tail::Handed,
    vault::{SessionKey, Vault},
};

/// What the handles and the writer share.
pub(crate) struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    /// The writer sleeps, or is about to. It says so while it holds the queue, so a thread that changed the queue after that sees
    /// it, and everyone else is spared a call of the system.
    resting: AtomicBool,
    /// A batch was taken, so there is room in the next.
    pub(crate) turn: Notify,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Random>,
    pub(crate) vault: Arc<Vault>,
}

impl Shared {
    pub(crate) fn new(queue: Queue, clock: Arc<dyn Clock>, random: Arc<dyn Random>, vault: Arc<Vault>) -> Self {
        let (queue, work, resting) = (Mutex::new(queue), Condvar::new(), AtomicBool::new(false));
        Self { queue, work, resting, turn: Notify::new(), clock, random, vault }
    }

    /// The queue. A panic under its lock may have left it between two states, so the log stops: what is on the disk is whole, and
    /// opening begins with that.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(|poisoned| stopped(poisoned.into_inner()))
    }

    /// Tells the writer that there is something to do.
    pub(crate) fn wake(&self) {
        if self.resting.swap(false, Ordering::AcqRel) {
            self.work.notify_one();
        }
    }

    /// Sleeps until there is something to do, for `rest` at most.
    fn sleep<'a>(&'a self, queue: MutexGuard<'a, Queue>, rest: Option<Duration>) -> MutexGuard<'a, Queue> {
        self.resting.store(true, Ordering::Release);
        let slept = match rest {
            None => self.work.wait(queue).map_err(PoisonError::into_inner),
            Some(rest) => {
                let slept = self.work.wait_timeout(queue, rest);
                slept.map(|(queue, _)| queue).map_err(|poisoned| poisoned.into_inner().0)
            }
        };
        slept.unwrap_or_else(stopped)
    }

    /// Ends the log and tells everyone who waits. Nothing is taken from here on, so the caller that made it fail is told last.
    fn fail(&self, failure: Failure) -> Arc<Failure> {
        tracing::error!(%failure, "the chain has stopped");
        let failure = Arc::new(failure);
        let (batch, chores, closer) = {
            let mut queue = self.lock();
            queue.phase = Phase::Failed(Arc::clone(&failure));
            (std::mem::take(&mut queue.batch), std::mem::take(&mut queue.chores), queue.closer.take())
        };
        refuse(batch, &failure);
        chores.into_iter().for_each(|chore| chore.refuse(&failure));
        if let Some(closer) = closer {
            // A caller that has gone away needs no answer.
            let _ = closer.send(Err(Arc::clone(&failure).into()));
        }
        self.turn.notify_waiters();
        failure
    }
}

/// A queue whose contents are not known any more.
fn stopped(mut queue: MutexGuard<'_, Queue>) -> MutexGuard<'_, Queue> {
    if !matches!(queue.phase, Phase::Failed(_)) {
        queue.phase = Phase::Failed(Arc::new(Failure::Bug));
    }
    queue
}

fn refuse(batch: Pending, failure: &Arc<Failure>) {
    for waiter in batch.waiters {
        let _ = waiter.send(Err(Arc::clone(failure)));
    }
}

/// The state of the writing thread.
pub(crate) struct Writer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) journal: Journal,
    pub(crate) tree: Tree,
    pub(crate) keys: Arc<SigningKeys>,
    /// Signs beside this thread, once that has started.
    pub(crate) signer: Option<Signer>,
    pub(crate) publisher: Arc<Publisher>,
    /// The last batch's head and its checkpoint, as they stand in the journal.
    pub(crate) last: Option<Signed>,
}

enum Work {
    Chores(Vec<Chore>),
    Batch(Pending),
    /// Nothing is left; whether this is a clean stop.
    End(bool),
    /// The log has stopped.
    Failed,
}

impl Writer {
    /// Starts the threads.
    pub(crate) fn start(mut self) -> std::io::Result<thread::JoinHandle<()>> {
        self.signer = Some(Signer::start()?);
        let publishing = self.publisher.start()?;
        thread::Builder::new().name("chain-write".into()).spawn(move || self.run(publishing))
    }

    fn run(mut self, publishing: thread::JoinHandle<()>) {
        // A panic here must not leave anyone waiting for an answer that never comes.
        let served = catch_unwind(AssertUnwindSafe(|| self.serve()));
        let ended = served.unwrap_or_else(|_| Err(self.shared.fail(Failure::Bug)));
        self.publisher.end();
        let _ = publishing.join();
        if let Ok(clean) = ended {
            self.finish(clean);
        }
    }

    /// Works until there is nothing left to do.
    fn serve(&mut self) -> Result<bool, Arc<Failure>> {
        self.prepare(0).map_err(|failure| self.shared.fail(failure))?;
        loop {
            match self.next_work() {
                Work::Chores(chores) => self.do_chores(chores)?,
                Work::Batch(batch) => self.serve_batch(batch)?,
                Work::End(clean) => return Ok(clean),
                Work::Failed => return Err(self.shared.fail(Failure::Bug)),
            }
        }
    }

    fn next_work(&self) -> Work {
        let mut queue = self.shared.lock();
        loop {
            // What a panic left of a batch is not written.
            if matches!(queue.phase, Phase::Failed(_)) {
                return Work::Failed;
            }
            if !queue.chores.is_empty() {
                return Work::Chores(std::mem::take(&mut queue.chores));
            }
            let now = self.shared.clock.monotonic();
            if let Some(batch) = queue.due(now) {
                return Work::Batch(batch);
            }
            match queue.phase {
                Phase::Open => {}
                // The closer comes only once the stop has its place.
                Phase::Closing if queue.closer.is_none() => {}
                Phase::Closing => return Work::End(true),
                _ => return Work::End(false),
            }
            let rest = queue.rest(now);
            queue = self.shared.sleep(queue, rest);
        }
    }

    fn serve_batch(&mut self, mut batch: Pending) -> Result<(), Arc<Failure>> {
        self.shared.turn.notify_waiters();
        match self.commit(&mut batch) {
            Ok(head) => {
                if let Some(successor) = batch.successor.take() {
                    self.keys = Arc::new(*successor);
                }
                // A caller that has gone away needs no answer.
                batch.waiters.into_iter().for_each(|waiter| drop(waiter.send(Ok(head))));
                self.prepare(batch.charged).map_err(|failure| self.shared.fail(failure))
            }
            Err(failure) => {
                let failure = self.shared.fail(failure);
                refuse(batch, &failure);
                Err(failure)
            }
        }
    }

    /// Makes disk ready for batches like this one, while no caller waits for it.
    fn prepare(&mut self, batch: u64) -> Result<(), Failure> {
        let wanted = batch.saturating_mul(2).max(STEP / 2);
        let short = {
            let queue = self.shared.lock();
            matches!(queue.phase, Phase::Open) && queue.room < wanted
        };
        if short && let Err(Undone::Failed(failure)) = self.make_room(wanted) {
            // On a full disk the caller that needs the room is told.
            return Err(failure);
        }
        self.journal.prime().map_err(|source| Failure::Io { doing: "preparing the journal", source })
    }

    /// Brings a batch to the disk, under a checkpoint with both signatures, and hands its bytes over to be published.
    pub(crate) fn commit(&mut self, batch: &mut Pending) -> Result<Head, Failure> {
        if batch.leaves.is_empty() {
            return Ok(self.shared.lock().head);
        }
        let before = Head { size: self.tree.size(), root: self.tree.root() };
        batch.leaves.iter().for_each(|leaf| self.tree.push(*leaf));
        let head = Head { size: self.tree.size(), root: self.tree.root() };
        let note = self.sign(head)?;
        let frame = frame::build(batch.first, batch.leaves.len(), &batch.entries, &batch.contents, &note);
        let frame = frame.ok_or(Failure::Bug)?;
        let length = frame.len() as u64;
        let more = if batch.snapshot_parts > 0 { self.rotate(before)? } else { 0 };
        let entries = batch.entries.len() as u64;
        self.journal.write(&frame, entries).map_err(|source| Failure::Io { doing: "writing the journal", source })?;
        let snapshot_due = self.journal.is_due(self.publisher.published() >= before.size);
        let room = more.saturating_add(batch.charged.saturating_sub(length));
        let (pruned, overgrown) = self.settle_accounts(head, room, snapshot_due);
        if overgrown {
            self.journal.put_off();
            tracing::warn!(
                "what stands is too much for a snapshot: the journal goes on in its segment, and nothing can be pruned"
            );
        }
        let handed = Handed {
            first: batch.first,
            leaves: std::mem::take(&mut batch.leaves),
            entries: std::mem::take(&mut batch.entries),
            contents: std::mem::take(&mut batch.contents),
        };
        self.publisher.offer((head, note.clone()), handed, batch.successor.is_some(), pruned);
        self.last = Some((head, note));
        self.destroy_keys(&batch.erased)?;
        Ok(head)
    }

    /// The signed checkpoint of a head.
    fn sign(&self, head: Head) -> Result<Vec<u8>, Failure> {
        let text = head.text(self.keys.origin());
        let note = match &self.signer {
            Some(signer) => signer.sign(&self.keys, text)?,
            None => self.keys.sign(text).map_err(Failure::Signature)?,
        };
        Ok(note.to_bytes())
    }

    /// Begins a segment, unless one has just been begun.
    fn rotate(&mut self, before: Head) -> Result<u64, Failure> {
        if self.journal.is_empty() {
            return Ok(0);
        }
        self.journal.rotate(before).map_err(|source| Failure::Io { doing: "beginning a segment", source })
    }

    /// Says where the record has the log begin, and whether more stands than a snapshot can repeat.
    fn settle_accounts(&self, head: Head, room: u64, snapshot_due: bool) -> (Option<Minimum>, bool) {
        let mut queue = self.shared.lock();
        queue.snapshot_due = snapshot_due;
        queue.head = head;
        queue.room = queue.room.saturating_add(room);
        queue.used = self.journal.used();
        queue.reserved = self.journal.ahead();
        (queue.rules.pruned(), std::mem::take(&mut queue.overgrown))
    }

    /// Disk is reserved in steps, and one step often serves everyone who asked.
    fn do_chores(&mut self, chores: Vec<Chore>) -> Result<(), Arc<Failure>> {
        let mut spare: u64 = 0;
        for chore in chores {
            match chore {
                Chore::Room(more, reply) => {
                    let found = self.find_room(more, &mut spare);
                    self.answer(reply, found)?;
                }
                Chore::Key(session, reply) => self.answer(reply, self.make_key(session).map(Some))?,
                Chore::Find(session, reply) => self.answer(reply, self.find_key(session))?,
            }
        }
        Ok(())
    }

    fn answer<T>(
        &self,
        reply: oneshot::Sender<Result<T, AppendError>>,
        result: Result<T, Undone>,
    ) -> Result<(), Arc<Failure>> {
        let (answer, failed) = match result {
            Ok(done) => (Ok(done), Ok(())),
            Err(Undone::Refused(error)) => (Err(error), Ok(())),
            Err(Undone::Failed(failure)) => {
                let failure = self.shared.fail(failure);
                (Err(Arc::clone(&failure).into()), Err(failure))
            }
        };
        // A caller that has gone away needs no answer.
        let _ = reply.send(answer);
        failed
    }

    /// Takes from what was reserved for others in this round and not needed by them, or reserves more.
    fn find_room(&mut self, more: u64, spare: &mut u64) -> Result<(), Undone> {
        if *spare < more {
            let by = self.make_room(more)?;
            *spare = spare.saturating_add(by);
        }
        *spare = spare.saturating_sub(more);
        Ok(())
    }

    /// Reserves more disk; says how much.
    pub(crate) fn make_room(&mut self, more: u64) -> Result<u64, Undone> {
        let by = self.journal.grow(more);
        let by = by.map_err(|error| Undone::new(error, more, "reserving disk for the journal"))?;
        let mut queue = self.shared.lock();
        queue.room = queue.room.saturating_add(by);
        Ok(by)
    }

    /// The record says that they are gone, and nothing stands behind it before they are. So the process that opens the log after a
    /// crash finds in the last batch what is left to destroy, and no snapshot has to repeat it.
    fn destroy_keys(&self, sessions: &[SessionId]) -> Result<(), Failure> {
        let (vault, random) = (&self.shared.vault, &*self.shared.random);
        let destroyed = sessions.iter().try_for_each(|session| vault.destroy(*session, random));
        destroyed.map_err(|source| Failure::Io { doing: "destroying the key of a session", source })
    }

    /// The key of a session, unless that was erased.
    fn find_key(&self, session: SessionId) -> Result<Option<Arc<SessionKey>>, Undone> {
        let vault = &self.shared.vault;
        let erased = self.shared.lock().rules.erased().contains(&session);
        if erased || vault.is_erased(session).map_err(|error| Undone::Refused(error.into()))? {
            return Err(Undone::Refused(AppendError::Erased { session }));
        }
        vault.find(session).map_err(|error| Undone::Refused(error.into()))
    }

    fn make_key(&self, session: SessionId) -> Result<Arc<SessionKey>, Undone> {
        if let Some(key) = self.find_key(session)? {
            return Ok(key);
        }
        let key = Arc::new(SessionKey::generate(&*self.shared.random));
        let stored = self.shared.vault.store(session, &key, &*self.shared.random);
        stored.map_err(|error| Undone::new(error, KEY_FILE, "storing the key of a session"))?;
        Ok(key)
    }

    fn finish(&self, clean: bool) {
        let result = if clean { self.stop() } else { Ok(()) };
        let closer = {
            let mut queue = self.shared.lock();
            queue.phase = Phase::Closed;
            queue.closer.take()
        };
        self.shared.turn.notify_waiters();
        if let Some(closer) = closer {
            let _ = closer.send(result);
        }
    }

    /// Records the stop and leaves everything in order, without a thread ever having been started.
    pub(crate) fn stop_at_once(&mut self) -> Result<(), AppendError> {
        let shared = Arc::clone(&self.shared);
        let mut batch = {
            let mut queue = shared.lock();
            queue.take_stop((shared.clock.now(), shared.clock.monotonic()))?;
            std::mem::take(&mut queue.batch)
        };
        self.commit(&mut batch).map_err(Arc::new)?;
        self.stop()
    }

    /// The stop is on the disk: gives back what was reserved, and pins where it stopped.
    fn stop(&self) -> Result<(), AppendError> {
        let io = |doing| move |source| AppendError::from(Arc::new(Failure::Io { doing, source }));
        self.journal.trim().map_err(io("trimming the journal"))?;
        self.publish(true).map_err(io("publishing the last checkpoint"))
    }

    /// Publishes the checkpoint of the last batch and pins its head.
    pub(crate) fn publish(&self, stopped: bool) -> std::io::Result<()> {
        self.last.as_ref().map_or(Ok(()), |last| self.publisher.publish(last, stopped))
    }
}

/// Something between batches that was not done.
pub(crate) enum Undone {
    /// The caller is told, and the log goes on.
    Refused(AppendError),
    /// The log ends.
    Failed(Failure),
}

impl Undone {
    /// A full disk is an answer; any other error ends the log.
    fn new(error: std::io::Error, needed: u64, doing: &'static str) -> Self {
        if durable::is_full(&error) {
            Self::Refused(AppendError::Full { needed })
        } else {
            Self::Failed(Failure::Io { doing, source: error })
        }
    }
}

impl From<Undone> for AppendError {
    fn from(undone: Undone) -> Self {
        match undone {
            Undone::Refused(error) => error,
            Undone::Failed(failure) => Arc::new(failure).into(),
        }
    }
}

/// The room a small file takes: a block, on most file systems.
const KEY_FILE: u64 = 4096;

/// The origin line as a segment has it.
pub(crate) fn origin_digest(keys: &SigningKeys) -> Digest {
    Digest::of(keys.origin().as_bytes())
}
