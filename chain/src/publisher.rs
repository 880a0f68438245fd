//! Publishes what the journal has, pins heads and recycles segments, at most once in a while, without holding up the writer.
//!
//! The writer hands its batches over in memory. When that would be too much it lets go of them, and they are read back from
//! the journal. A round writes what is new, waits for all of it at once, replaces the checkpoint, pins the head, and only
//! then takes away what is not needed any more. An error in a round is no error of the log: the next one begins again at what
//! is published, and the head is made durable all the same. While rounds fail, so many bytes may wait and no more: then the log
//! takes only what ends something.

use std::{
    collections::VecDeque,
    io,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use ephor_base::{Clock, Timestamp, files::Files};
use ephor_record::{Minimum, ScanError};
use ephor_tlog::{Head, checkpoint};
use ephor_verify::folder;
use tokio::sync::oneshot;

use crate::{
    durable,
    error::AppendError,
    head::HeadFile,
    press::Press,
    pruner::Below,
    segment,
    tail::{Handed, Tail},
};

/// A head and its signed checkpoint.
pub(crate) type Signed = (Head, Vec<u8>);

/// What is handed over is kept in memory up to this many bytes; beyond, it is read back from the journal.
const HANDED_BYTES: usize = 16 << 20;

/// While rounds fail, what waits to be published may have so many bytes. The journal is all that holds it.
const MOST_WAITING: u64 = 64 << 20;

/// A round's pause is taken in so many slices. After each, what was handed over is written, and not waited for.
const SLICES: u32 = 10;

/// Micro-seconds of the time within which one checkpoint is kept for good.
const KEPT_EVERY: u64 = 3_600_000_000;

/// Where things lie.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) chain: PathBuf,
    pub(crate) vault: PathBuf,
}

/// What the writer and the publishing thread share.
pub(crate) struct Publisher {
    files: Arc<dyn Files>,
    places: Places,
    head: HeadFile,
    every: Duration,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    work: Condvar,
    shop: Mutex<Shop>,
    published: AtomicU64,
    recycled: AtomicU64,
    /// Where the log begins, as far as everything before that is taken away.
    pruned: AtomicU64,
    /// How many bytes were taken away by that.
    taken_away: AtomicU64,
    /// How many bytes of partial tiles were written.
    partial: AtomicU64,
    /// How many bytes were handed over since the log was opened, and how many of them are published.
    offered: AtomicU64,
    placed: AtomicU64,
    /// Why the last round failed.
    trouble: Mutex<Option<String>>,
}

#[derive(Default)]
struct State {
    handed: VecDeque<Handed>,
    bytes: usize,
    latest: Option<Signed>,
    /// The checkpoints of changes of keys that are not kept yet.
    changes: Vec<Signed>,
    /// Where the log begins, as the record has it.
    pruned: Option<Minimum>,
    asked: Vec<oneshot::Sender<io::Result<()>>>,
    ending: bool,
}

/// What the next round has to do.
struct Due {
    signed: Option<Signed>,
    asked: Vec<oneshot::Sender<io::Result<()>>>,
}

/// What the publisher works with.
struct Shop {
    /// None after an error: what it had in memory may not be what is in the files.
    press: Option<Press>,
    /// The hour of the last kept checkpoint.
    kept: Option<u64>,
}

/// Where publishing begins.
pub(crate) struct Begin {
    /// The first entry the journal holds: from here on everything is published anew, if it is not there as it should be.
    pub(crate) from: u64,
    /// The size that is published.
    pub(crate) published: u64,
    /// How many entries the journal has.
    pub(crate) size: u64,
    /// The time of the last entry.
    pub(crate) last: Option<Timestamp>,
    /// The checkpoints of the changes of keys that the journal holds.
    pub(crate) changes: Vec<Signed>,
    /// Where the log begins, as the record has it.
    pub(crate) pruned: Option<Minimum>,
}

impl Publisher {
    pub(crate) fn new(
        files: &Arc<dyn Files>,
        places: Places,
        head: HeadFile,
        every: Duration,
        clock: Arc<dyn Clock>,
        begin: Begin,
        press: Press,
    ) -> io::Result<Self> {
        press.tidy(begin.from, begin.size)?;
        let shop = Shop { press: Some(press), kept: begin.last.map(hour) };
        Ok(Self {
            files: Arc::clone(files),
            places,
            head,
            every,
            clock,
            state: Mutex::new(State { changes: begin.changes, pruned: begin.pruned, ..State::default() }),
            work: Condvar::new(),
            shop: Mutex::new(shop),
            published: AtomicU64::new(begin.published),
            recycled: AtomicU64::new(0),
            pruned: AtomicU64::new(0),
            taken_away: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            offered: AtomicU64::new(0),
            placed: AtomicU64::new(0),
            trouble: Mutex::default(),
        })
    }

    /// Notes the head of a batch at once, and hands it over to be published. `pruned` is where the record has the log begin.
    pub(crate) fn offer(&self, signed: Signed, batch: Handed, changes_keys: bool, pruned: Option<Minimum>) {
        if let Err(error) = self.head.note(signed.0) {
            // The batch is on the disk. What suffers is only how soon a cut-back log would be noticed.
            tracing::warn!(%error, "the pinned head could not be written");
        }
        let mut state = self.lock();
        state.pruned = pruned;
        if changes_keys {
            state.changes.push(signed.clone());
        }
        let idle = state.latest.replace(signed).is_none();
        self.offered.fetch_add(batch.bytes() as u64, Ordering::AcqRel);
        state.bytes = state.bytes.saturating_add(batch.bytes());
        if state.bytes > HANDED_BYTES {
            state.handed.clear();
            state.bytes = 0;
        } else {
            state.handed.push_back(batch);
        }
        drop(state);
        // Who has something to do already need not be woken.
        if idle {
            self.work.notify_one();
        }
    }

    /// Why the last round failed; nothing if it succeeded.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether more may wait to be published.
    pub(crate) fn check_waiting(&self) -> Result<(), AppendError> {
        let waiting = self.offered.load(Ordering::Acquire).saturating_sub(self.placed.load(Ordering::Acquire));
        match self.trouble().filter(|_| waiting > MOST_WAITING) {
            Some(why) => Err(AppendError::Backlog { waiting, why }),
            None => Ok(()),
        }
    }

    /// How many entries are published.
    pub(crate) fn published(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Where the log begins, as far as everything before that is taken away.
    pub(crate) fn pruned(&self) -> u64 {
        self.pruned.load(Ordering::Acquire)
    }

    /// How many bytes of partial tiles were written; they stay until the full ones are published.
    pub(crate) fn partial(&self) -> u64 {
        self.partial.load(Ordering::Relaxed)
    }

    /// How many bytes were taken away because they were pruned, or full tiles replaced them.
    pub(crate) fn taken_away(&self) -> u64 {
        self.taken_away.load(Ordering::Relaxed)
    }

    /// How many bytes of the journal were given back.
    pub(crate) fn recycled(&self) -> u64 {
        self.recycled.load(Ordering::Relaxed)
    }

    /// Publishes up to this checkpoint and pins its head, and waits for all of it to be on the disk.
    pub(crate) fn publish(&self, signed: &Signed, stopped: bool) -> io::Result<()> {
        let mut shop = self.shop();
        let offered = self.offered.load(Ordering::Acquire);
        let done = self.place(&mut shop, signed);
        match &done {
            Ok(_) => self.placed.store(offered, Ordering::Release),
            Err(_) => shop.press = None,
        }
        // Whatever became of the rest: what was acknowledged is not to be cut off unseen.
        let pinned = self.head.pin(signed.0, stopped && done.is_ok());
        let result = done.and_then(|news| pinned.map(|()| news));
        let told = result.as_ref().err().map(ToString::to_string);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = told;
        let news = result?;
        self.tidy(&mut shop, news.map(|before| (signed, before)));
        Ok(())
    }

    /// What a panic left of a press is thrown away: what it had in memory may not be what is in the files.
    fn shop(&self) -> MutexGuard<'_, Shop> {
        self.shop.lock().unwrap_or_else(|poisoned| {
            let mut shop = poisoned.into_inner();
            shop.press = None;
            self.shop.clear_poison();
            shop
        })
    }

    /// Asks for a round as soon as may be.
    pub(crate) fn ask(&self) -> oneshot::Receiver<io::Result<()>> {
        let (reply, answer) = oneshot::channel();
        let mut state = self.lock();
        // No thread answers once this one ends; a caller that asks then learns it by the reply being dropped.
        if !state.ending {
            state.asked.push(reply);
        }
        drop(state);
        self.work.notify_one();
        answer
    }

    /// Starts the thread that publishes.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<thread::JoinHandle<()>> {
        let publisher = Arc::clone(self);
        thread::Builder::new().name("chain-publish".into()).spawn(move || publisher.run())
    }

    /// Lets the thread end. What it has not published yet stays unpublished.
    pub(crate) fn end(&self) {
        let mut state = self.lock();
        state.ending = true;
        state.asked.clear();
        drop(state);
        self.work.notify_one();
    }

    fn run(&self) {
        // However this thread ends, no caller waits for it any more.
        let _ended = Ended(self);
        // Opening has just published, so the first wait is a whole one.
        while self.pause() {
            let Some(Due { signed, asked }) = self.next() else { return };
            let done = match &signed {
                Some(signed) => self.publish(signed, false),
                None => {
                    self.tidy(&mut self.shop(), None);
                    Ok(())
                }
            };
            if let Err(error) = &done {
                // The journal is the truth; the next round tries again.
                tracing::error!(%error, "the chain could not be published");
                let mut state = self.lock();
                state.latest = state.latest.take().or(signed);
            }
            for reply in asked {
                // A caller that has gone away needs no answer.
                let _ = reply.send(done.as_ref().copied().map_err(|error| error.kind().into()));
            }
        }
    }

    /// Waits for the length of a round; says whether to go on.
    fn pause(&self) -> bool {
        for _ in 0..SLICES {
            let idle = |state: &mut State| !state.ending && state.asked.is_empty();
            let wait = self.work.wait_timeout_while(self.lock(), self.every / SLICES, idle);
            let (state, _) = wait.unwrap_or_else(PoisonError::into_inner);
            if state.ending || !state.asked.is_empty() {
                return !state.ending;
            }
            let much = state.bytes > HANDED_BYTES / 4;
            drop(state);
            if much {
                self.drain();
            }
        }
        true
    }

    /// Writes what is full, so that less is left in memory and for the end of the round.
    fn drain(&self) {
        let mut shop = self.shop();
        let reached = shop.press.as_ref().map_or(0, Press::size);
        let size = self.lock().handed.back().map_or(reached, Handed::end);
        if let Err(error) = self.catch_up(&mut shop.press, size) {
            tracing::warn!(%error, "the chain could not be published");
            shop.press = None;
        }
    }

    /// Waits for something to publish, or for a caller that asks for it.
    fn next(&self) -> Option<Due> {
        let idle = |state: &mut State| state.latest.is_none() && state.asked.is_empty() && !state.ending;
        let mut state = self.work.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        let due = Due { signed: state.latest.take(), asked: std::mem::take(&mut state.asked) };
        (!state.ending).then_some(due)
    }

    /// Publishes up to a checkpoint; says what was published before, if that was less.
    fn place(&self, shop: &mut Shop, (head, note): &Signed) -> io::Result<Option<u64>> {
        let published = self.published();
        if head.size <= published {
            return Ok(None);
        }
        let press = self.catch_up(&mut shop.press, head.size)?;
        let partial = press.settle()?;
        self.partial.fetch_add(partial, Ordering::Relaxed);
        durable::replace(&*self.files, &checkpoint::path(&self.places.chain), note)?;
        self.published.store(head.size, Ordering::Release);
        Ok(Some(published))
    }

    /// Everything that counts is on the disk; what is done here can wait for a round that has more luck.
    fn tidy(&self, shop: &mut Shop, news: Option<(&Signed, u64)>) {
        let mut tidied = || {
            if let Some((signed, before)) = news {
                let size = signed.0.size;
                self.keep_changes(size).and_then(|()| self.keep(&mut shop.kept, signed))?;
                self.clean_up(shop, before, size)?;
            }
            self.prune(shop)
        };
        if let Err(error) = tidied() {
            tracing::warn!(%error, "the chain folder could not be tidied");
        }
    }

    /// Takes away what lies below where the record has the log begin, as soon as that record is published and the journal
    /// begins behind it.
    fn prune(&self, _shop: &Shop) -> io::Result<()> {
        let Some(due) = self.lock().pruned else { return Ok(()) };
        let done = due.index <= self.pruned() || due.record.0 >= self.published();
        if done {
            return Ok(());
        }
        let segments = folder::list(&*self.files, &segment::folder(&self.places.chain))?;
        if segments.iter().filter_map(|name| segment::first_of(name)).min().is_some_and(|first| first < due.index) {
            return Ok(());
        }
        let (Places { chain, vault }, path) = (&self.places, self.places.chain.join(Minimum::FILE));
        durable::replace(&*self.files, &path, &due.to_bytes())?;
        let below = Below::find(chain, vault, &*self.files, due.index)?;
        if !below.is_nothing() {
            let bytes = below.bytes(&*self.files)?;
            let trees = [self.files.tree(chain)?, self.files.tree(vault)?];
            below.remove(&*self.files)?;
            trees.iter().try_for_each(|tree| tree.sync())?;
            self.taken_away.fetch_add(bytes, Ordering::Relaxed);
            tracing::info!(minimum = due.index, bytes, "the chain was pruned");
        }
        self.pruned.store(due.index, Ordering::Release);
        Ok(())
    }

    /// Brings the press to `size`.
    fn catch_up<'a>(&self, press: &'a mut Option<Press>, size: u64) -> io::Result<&'a mut Press> {
        let press = match press {
            Some(press) => press,
            None => {
                let published = self.published();
                let new = Press::at((&self.places.chain, &self.places.vault), &self.files, published, published)
                    .map_err(as_io)?;
                new.tidy(published, size)?;
                press.insert(new)
            }
        };
        while let Some(batch) = self.handed(size) {
            if batch.first > press.size() {
                self.read_back(press, batch.first)?;
            }
            if batch.first == press.size() {
                press.take(&batch)?;
            }
        }
        self.read_back(press, size)?;
        Ok(press)
    }

    /// Takes what is missing up to `size` from the journal.
    fn read_back(&self, press: &mut Press, size: u64) -> io::Result<()> {
        if press.size() >= size {
            return Ok(());
        }
        let mut tail = Tail::open(&self.places.chain, &self.files, press.size())?;
        while press.size() < size {
            let batch = tail.next()?.filter(|batch| batch.first == press.size());
            press.take(&batch.ok_or_else(|| io::Error::other("the journal does not hold what is to be published"))?)?;
        }
        Ok(())
    }

    /// The next batch that was handed over, if it belongs to a log of `size` entries.
    fn handed(&self, size: u64) -> Option<Handed> {
        let mut state = self.lock();
        state.handed.front().filter(|batch| batch.end() <= size)?;
        let batch = state.handed.pop_front()?;
        state.bytes = state.bytes.saturating_sub(batch.bytes());
        Some(batch)
    }

    /// Keeps the first checkpoint of each hour.
    fn keep(&self, kept: &mut Option<u64>, (head, note): &Signed) -> io::Result<()> {
        let now = hour(self.clock.now());
        if *kept == Some(now) {
            return Ok(());
        }
        self.keep_one(head.size, note)?;
        *kept = Some(now);
        Ok(())
    }

    /// Keeps the checkpoints of the changes of keys among the first `size` entries, before the journal lets go of them:
    /// each shows that the old keys named the new ones.
    fn keep_changes(&self, size: u64) -> io::Result<()> {
        let changes = self.lock().changes.clone();
        let is_due = |(head, _): &&Signed| head.size <= size;
        changes.iter().filter(is_due).try_for_each(|(head, note)| self.keep_one(head.size, note))?;
        self.lock().changes.retain(|change| !is_due(&change));
        Ok(())
    }

    fn keep_one(&self, size: u64, note: &[u8]) -> io::Result<()> {
        let path = checkpoint::kept_path(&self.places.chain, size);
        durable::make_folder(&*self.files, durable::parent(&path))?;
        durable::replace(&*self.files, &path, note)
    }

    /// Takes away what no reader of this or the last checkpoint needs.
    fn clean_up(&self, shop: &Shop, last: u64, size: u64) -> io::Result<()> {
        let Some(press) = &shop.press else { return Ok(()) };
        let cleared = press.clear(last, size)?;
        self.taken_away.fetch_add(cleared, Ordering::Relaxed);
        let bytes = press.recycle(size)?;
        self.recycled.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets go of everybody who waits, also after a panic.
struct Ended<'a>(&'a Publisher);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let why = "a bug in the thread that publishes; start the node again and report it".to_owned();
            *self.0.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        }
        self.0.end();
    }
}

/// The hour a time lies in.
fn hour(time: Timestamp) -> u64 {
    time.0 / KEPT_EVERY
}

fn as_io(error: ScanError) -> io::Error {
    match error {
        ScanError::Io { source, .. } => source,
        other => io::Error::new(io::ErrorKind::InvalidData, other.to_string()),
    }
}
