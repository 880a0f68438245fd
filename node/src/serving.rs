//! The node itself: one process that writes a home and answers its clients.

mod api;
pub(crate) use api::short_path;
mod authority;
mod boot;
mod connection;
mod console;
mod judging;
mod keys;
mod operating;
mod restoring;
mod rests;
mod schedules;
mod secrets;
mod signals;
mod undoing;
mod upkeep;

use std::{
    fs::OpenOptions,
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::Context;
use ephor_kernel::LOST_THREADS;
use rustix::stdio;
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use zeroize::Zeroizing;

use crate::{
    home::Home,
    passphrase::{self, Unlocked},
    terminal,
};

pub(crate) use authority::only_looks;
pub(crate) use boot::accept_loss;
pub(crate) use restoring::{Restored, restore};
pub(crate) use upkeep::Upkeep;

/// How long a node that was started for a client waits for the first one.
const FIRST_CLIENT: Duration = Duration::from_secs(10);

/// Why a node does not run.
const FULL: &str = "a node has no room to begin";
/// How long a node that lost its threads may take to stop in good order.
const LAST_STOP: Duration = Duration::from_secs(10);

/// How long a node runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stay {
    /// Until it is told to stop.
    UntilStopped,
    /// Until its last client has left and no session has anything to do.
    UntilIdle,
}

/// The one line a node that was started by a client prints: how its start went.
#[derive(Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Report {
    /// It takes clients.
    Ready,
    /// Another node runs on this home.
    Locked,
    /// It does not run, and why.
    Failed(String),
}

/// The clients of a node.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    here: AtomicUsize,
    ever: AtomicUsize,
    left: Notify,
}

/// One client; gone when this is dropped.
#[derive(Debug)]
pub(crate) struct Client(Arc<Clients>);

impl Clients {
    pub(crate) fn arrive(self: &Arc<Self>) -> Client {
        self.here.fetch_add(1, Ordering::SeqCst);
        self.ever.fetch_add(1, Ordering::SeqCst);
        Client(self.clone())
    }

    /// Resolves when the last client has left, or none came in time.
    async fn all_gone(&self, patience: Duration) {
        if self.ever.load(Ordering::SeqCst) == 0 {
            let waited = tokio::time::timeout(patience, self.left.notified()).await;
            if waited.is_err() && self.ever.load(Ordering::SeqCst) == 0 {
                return;
            }
        }
        while self.here.load(Ordering::SeqCst) > 0 {
            self.left.notified().await;
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.0.here.fetch_sub(1, Ordering::SeqCst);
        self.0.left.notify_one();
    }
}

/// How a node ended that had been started.
pub(crate) enum Ended {
    /// It was told to, or nobody was left.
    Stopped,
    /// Processes that do not yield hold its threads, and it had better begin anew, with the passphrase that it was given.
    ThreadsLost(Option<Zeroizing<Vec<u8>>>),
}

/// Runs a node on `home` until it has to stop, and leaves the home in good order.
pub(crate) async fn serve(home: Home, stay: Stay) -> anyhow::Result<Ended> {
    // A client looks after its own time, and may be better served by the node that is there already.
    let lock = match stay {
        Stay::UntilStopped => home.lock()?,
        Stay::UntilIdle => home.try_lock()?,
    };
    let mut signals = signals::Signals::listen()?;
    boot::check_quota(&home)?;
    let Unlocked { protection, words } = passphrase::unlock(&home)?;
    let node = Arc::new(boot::boot(&home, protection).await?);
    if let Err(full) = node.can_begin() {
        node.stop().await?;
        return Err(full.context(FULL));
    }
    let clients = Arc::new(Clients::default());
    node.start_api(&home, clients.clone()).await?;
    let mut patience = FIRST_CLIENT;
    match stay {
        // The client that started it is gone, and others that come too late for this node start one of their own.
        Stay::UntilIdle => {
            if !report(&Report::Ready) {
                patience = Duration::ZERO;
            }
            let_go()?;
        }
        Stay::UntilStopped => {
            node.start_schedules().await?;
            terminal::tell(&format!("ephor: a node runs on `{}`; Ctrl-C stops it\n", home.path().display()));
        }
    }
    let idle = async {
        match stay {
            // What clients left behind is finished first.
            Stay::UntilIdle => loop {
                clients.all_gone(patience).await;
                node.kernel.at_rest().await;
                // The next node would have to begin it again.
                node.compiled().await;
                if clients.here.load(Ordering::SeqCst) == 0 {
                    break;
                }
            },
            Stay::UntilStopped => std::future::pending().await,
        }
    };
    let mut lost = node.kernel.lost_threads();
    let (over, too_many) = (node.kernel.over(), lost.wait_for(|lost| *lost >= LOST_THREADS));
    let ended = tokio::select! {
        () = signals.next() => Ok(Ended::Stopped),
        () = idle => Ok(Ended::Stopped),
        () = node.full() => node.can_begin().context("the node has stopped").map(|()| Ended::Stopped),
        // Its sender lives as long as the kernel.
        _ = too_many => Ok(Ended::ThreadsLost(words)),
        reason = over => Err(anyhow::anyhow!("the tree of the node gave up: {reason:?}")),
    };
    // A client that comes from here on finds no socket and starts a node of its own.
    let _gone = std::fs::remove_file(home.socket());
    let closed = match ended {
        // What spins cannot be stopped, and the next boot finds out what it left open.
        Ok(Ended::ThreadsLost(_)) => tokio::time::timeout(LAST_STOP, node.stop()).await.unwrap_or(Ok(())),
        _ => node.stop().await,
    };
    drop(lock);
    closed.and(ended)
}

/// Holds nothing any more that came from the client which started this node.
fn let_go() -> anyhow::Result<()> {
    let nothing =
        OpenOptions::new().read(true).write(true).open("/dev/null").context("`/dev/null` cannot be opened")?;
    stdio::dup2_stdin(&nothing).and_then(|()| stdio::dup2_stdout(&nothing)).context("the node cannot leave its client")
}

/// Tells the client that started this node how it went; false if none listens.
pub(crate) fn report(report: &Report) -> bool {
    let mut out = std::io::stdout().lock();
    let Ok(line) = serde_json::to_string(report) else { return false };
    writeln!(out, "{line}").and_then(|()| out.flush()).is_ok()
}
