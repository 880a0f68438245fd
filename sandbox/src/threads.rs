//! Threads that wait for a disk.
//!
//! A read of a disk that does not answer, as that of a hung mount, cannot be cut off: its thread is inside the kernel until the kernel
//! lets it go. So its caller gives it up in time, its slot is free again, and the thread is counted until it ends: those of
//! one session are few, so that no session takes the tools of another away.

use ephor_base::SessionId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Threads that work for a caller at once; one more waits for its turn.
pub(crate) const SLOTS: usize = 32;

/// Threads of one session that were given up and have not ended: with one more it gets no tool until one ends.
pub(crate) const GIVEN_UP_BY_ONE: usize = 3;

/// The same of all sessions together. Each keeps its instance, so there are as many instances more.
pub(crate) const GIVEN_UP_BY_ALL: usize = 96;

/// How long after its time a thread is waited for that is inside the kernel.
pub(crate) const GRACE: Duration = Duration::from_secs(1);

/// No thread was begun.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum NoThread {
    /// Too many of this session wait for a disk.
    #[error(
        "{0} earlier tool calls of this session still wait for a disk that does not answer; the session gets no tool until \
         one of them ends: look for a mount that hangs"
    )]
    Session(usize),
    /// Too many of all sessions do.
    #[error(
        "{0} tool calls still wait for a disk that does not answer; no tool runs until one of them ends: look for a mount that hangs"
    )]
    All(usize),
    /// The node is at its end, or broken.
    #[error("{0}")]
    Broken(String),
}

#[derive(Clone)]
pub(crate) struct Threads {
    slots: Arc<Semaphore>,
    given_up: Arc<Mutex<BTreeMap<Option<SessionId>, usize>>>,
}

/// What a thread was, is, and comes to.
enum Standing {
    /// A caller waits for it.
    Working(#[expect(dead_code, reason = "it is held, and given back when it is dropped")] OwnedSemaphorePermit),
    /// Nobody does any more.
    GivenUp,
    /// It has ended.
    Over,
}

struct Shared {
    threads: Threads,
    owner: Option<SessionId>,
    standing: Mutex<Standing>,
    stop: AtomicBool,
}

/// Held by the thread.
pub(crate) struct Work(Arc<Shared>);

/// Held by the caller that waits for it.
struct Wait(Arc<Shared>);

impl Threads {
    pub(crate) fn new() -> Self {
        Self { slots: Arc::new(Semaphore::new(SLOTS)), given_up: Arc::default() }
    }

    /// Threads that work, also those that nobody waits for any more.
    pub(crate) fn running(&self) -> usize {
        let given_up: usize = self.given_up().values().sum();
        SLOTS.saturating_sub(self.slots.available_permits()).saturating_add(given_up)
    }

    /// For a session, or for the node itself, runs `body` on a thread of its own and waits for it for `time` at most. Dropping this
    /// gives the thread up.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        owner: Option<SessionId>,
        time: Duration,
        body: impl FnOnce(&Work) -> T + Send + 'static,
    ) -> Result<Option<T>, NoThread> {
        self.check(owner)?;
        let permit = self.slots.clone().acquire_owned().await.map_err(|error| NoThread::Broken(error.to_string()))?;
        // Meanwhile others may have been given up.
        self.check(owner)?;
        let standing = Mutex::new(Standing::Working(permit));
        let shared = Arc::new(Shared { threads: self.clone(), owner, standing, stop: AtomicBool::new(false) });
        let (work, _wait) = (Work(shared.clone()), Wait(shared));
        let thread = tokio::task::spawn_blocking(move || body(&work));
        match tokio::time::timeout(time, thread).await {
            Ok(Ok(made)) => Ok(Some(made)),
            Ok(Err(error)) => Err(NoThread::Broken(error.to_string())),
            Err(_) => {
                tracing::warn!("a disk does not answer; a thread that waits for it is left to the kernel");
                Ok(None)
            }
        }
    }

    fn check(&self, owner: Option<SessionId>) -> Result<(), NoThread> {
        let given_up = self.given_up();
        let own = given_up.get(&owner).copied().unwrap_or_default();
        let all: usize = given_up.values().sum();
        if own >= GIVEN_UP_BY_ONE {
            return Err(NoThread::Session(own));
        }
        if all >= GIVEN_UP_BY_ALL { Err(NoThread::All(all)) } else { Ok(()) }
    }

    fn given_up(&self) -> MutexGuard<'_, BTreeMap<Option<SessionId>, usize>> {
        // Nothing foreign runs under it, so that it is never poisoned.
        self.given_up.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Shared {
    fn change(&self, change: impl FnOnce(&mut Standing)) {
        change(&mut self.standing.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    }
}

impl Work {
    /// Whether a caller still waits for it.
    pub(crate) fn goes_on(&self) -> bool {
        !self.0.stop.load(Ordering::Relaxed)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.0.change(|standing| {
            if matches!(std::mem::replace(standing, Standing::Over), Standing::GivenUp) {
                let mut given_up = self.0.threads.given_up();
                let left = given_up.get(&self.0.owner).copied().unwrap_or_default().saturating_sub(1);
                match left {
                    0 => drop(given_up.remove(&self.0.owner)),
                    left => drop(given_up.insert(self.0.owner, left)),
                }
            }
        });
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.0.stop.store(true, Ordering::Relaxed);
        self.0.change(|standing| {
            if matches!(standing, Standing::Working(_)) {
                let mut given_up = self.0.threads.given_up();
                let more = given_up.get(&self.0.owner).copied().unwrap_or_default().saturating_add(1);
                given_up.insert(self.0.owner, more);
                *standing = Standing::GivenUp;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    const SOON: Duration = Duration::from_millis(1);

    fn session(digit: &str) -> SessionId {
        digit.repeat(32).parse().unwrap()
    }

    /// A thread that is inside the kernel until the test lets it go.
    fn hangs(until: Receiver<()>) -> impl FnOnce(&Work) + Send + 'static {
        move |_| {
            let _over = until.recv();
        }
    }

    #[tokio::test]
    async fn a_disk_that_hangs_takes_the_tools_of_one_session_and_of_no_other() {
        let threads = Threads::new();
        let (hung, other) = (Some(session("1")), Some(session("2")));
        let mut ends = Vec::new();
        for _ in 0..GIVEN_UP_BY_ONE {
            let (end, until) = channel();
            ends.push(end);
            assert_eq!(threads.run(hung, SOON, hangs(until)).await, Ok(None));
        }
        let refused = threads.run(hung, SOON, |_| ()).await.unwrap_err();
        assert_eq!(refused, NoThread::Session(GIVEN_UP_BY_ONE));
        assert!(refused.to_string().contains("look for a mount that hangs"));
        for _ in 0..100 {
            assert_eq!(threads.run(other, Duration::from_secs(60), |_| 7).await, Ok(Some(7)));
        }
        assert_eq!(threads.running(), GIVEN_UP_BY_ONE);
        // The disk answers: the session has its tools again.
        drop(ends);
        while threads.running() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(threads.run(hung, Duration::from_secs(60), |_| 7).await, Ok(Some(7)));
    }

    #[tokio::test]
    async fn a_thread_whose_caller_is_gone_is_counted_until_it_ends() {
        let threads = Threads::new();
        let (end, until) = channel();
        {
            let mut call = std::pin::pin!(threads.run(None, Duration::from_secs(60), hangs(until)));
            assert!(futures_util::poll!(call.as_mut()).is_pending());
        }
        assert_eq!((threads.running(), threads.slots.available_permits()), (1, SLOTS));
        drop(end);
        while threads.running() > 0 {
            tokio::task::yield_now().await;
        }
    }
}
