//! Publishes checkpoints and pins heads, at most once in a while, without holding up the writer.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

use ephor_base::files::Files;

use crate::{
    checkpoint::{self, Head},
    durable,
    head::HeadFile,
};

/// A head and its signed checkpoint.
pub(crate) type Signed = (Head, Vec<u8>);

/// What the writer and the publishing thread share.
pub(crate) struct Publisher {
    files: Arc<dyn Files>,
    chain: PathBuf,
    head: HeadFile,
    every: Duration,
    state: Mutex<State>,
    work: Condvar,
}

#[derive(Default)]
struct State {
    latest: Option<Signed>,
    ending: bool,
}

impl Publisher {
    pub(crate) fn new(files: &Arc<dyn Files>, chain: &Path, head: HeadFile, every: Duration) -> Self {
        let (files, chain) = (Arc::clone(files), chain.to_owned());
        Self { files, chain, head, every, state: Mutex::default(), work: Condvar::new() }
    }

    /// Notes the head of a batch at once, and hands its checkpoint over to be published.
    pub(crate) fn offer(&self, signed: Signed) {
        if let Err(error) = self.head.note(signed.0) {
            // The batch is on the disk. What suffers is only how soon a cut-back log would be noticed.
            tracing::warn!(%error, "the pinned head could not be written");
        }
        // Who has something to do already need not be woken.
        if self.lock().latest.replace(signed).is_none() {
            self.work.notify_one();
        }
    }

    /// Publishes a checkpoint and pins its head, and waits for both to be on the disk.
    pub(crate) fn publish(&self, (head, note): &Signed, stopped: bool) -> io::Result<()> {
        durable::replace(&*self.files, &checkpoint::path(&self.chain), note)?;
        self.head.pin(*head, stopped)
    }

    /// Pins a head alone.
    pub(crate) fn pin(&self, head: Head) -> io::Result<()> {
        self.head.pin(head, false)
    }

    /// Starts the thread that publishes.
    pub(crate) fn start(self: &Arc<Self>) -> io::Result<thread::JoinHandle<()>> {
        let publisher = Arc::clone(self);
        thread::Builder::new().name("chain-publish".into()).spawn(move || publisher.run())
    }

    /// Lets the thread end. What it has not published yet stays unpublished.
    pub(crate) fn end(&self) {
        self.lock().ending = true;
        self.work.notify_one();
    }

    fn run(&self) {
        // Opening has just published, so the first wait is a whole one.
        while self.pause() {
            let Some(signed) = self.next() else { return };
            if let Err(error) = self.publish(&signed, false) {
                // The journal is the truth; the next round tries again.
                tracing::warn!(%error, "the checkpoint could not be published");
            }
        }
    }

    /// Waits for the length of a round; says whether to go on.
    fn pause(&self) -> bool {
        let wait = self.work.wait_timeout_while(self.lock(), self.every, |state| !state.ending);
        !wait.unwrap_or_else(PoisonError::into_inner).0.ending
    }

    /// Waits for something to publish.
    fn next(&self) -> Option<Signed> {
        let idle = |state: &mut State| state.latest.is_none() && !state.ending;
        let mut state = self.work.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
        if state.ending { None } else { state.latest.take() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
