//! What the clients of one server share.

use std::{
    future::poll_fn,
    sync::{Mutex, PoisonError},
    task::Poll,
};

use tokio::sync::Notify;

use super::http::HttpLink;
use crate::{
    exchange::{Closed, Exchange, Progress, Wait},
    limits::Limits,
    wire::Returned,
};

/// The exchange behind its lock, which is never held across an await.
pub(super) struct Shared {
    pub(super) limits: Limits,
    exchange: Mutex<Exchange>,
    /// Something is to be written, or there is no client left.
    pub(super) outgoing: Notify,
    /// An answer was looked at.
    pub(super) claimed: Notify,
}

impl Shared {
    pub(super) const fn new(limits: Limits) -> Self {
        let (outgoing, claimed) = (Notify::const_new(), Notify::const_new());
        Self { limits, exchange: Mutex::new(Exchange::new(limits)), outgoing, claimed }
    }

    /// Works on the exchange. The tasks that this concerns are woken once the lock is free.
    pub(super) fn with<T>(&self, work: impl FnOnce(&mut Exchange) -> T) -> T {
        let mut exchange = self.exchange.lock().unwrap_or_else(PoisonError::into_inner);
        let done = work(&mut exchange);
        let (woken, writes) = (exchange.woken(), exchange.has_out() || exchange.is_released());
        drop(exchange);
        woken.into_iter().for_each(std::task::Waker::wake);
        if writes {
            self.outgoing.notify_one();
        }
        done
    }
}

/// The way to a server. Dropped, the server is let go.
pub(super) enum Link {
    Stream(std::sync::Arc<Shared>),
    Http(Box<HttpLink>),
}

impl Link {
    pub(super) fn shared(&self) -> &Shared {
        match self {
            Self::Stream(shared) => shared,
            Self::Http(http) => &http.shared,
        }
    }

    pub(super) fn limits(&self) -> &Limits {
        &self.shared().limits
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared().with(Exchange::release);
    }
}

/// A request that waits. Dropped before it has ended, it is given up.
pub(super) struct Waiting<'a> {
    shared: &'a Shared,
    pub(super) id: u64,
}

impl<'a> Waiting<'a> {
    /// A new one; none where too many wait.
    pub(super) fn open(shared: &'a Shared, wait: Wait) -> Option<Self> {
        shared.with(|exchange| exchange.open(wait)).map(|id| Self { shared, id })
    }

    /// Looks once; progress is handed over outside of the lock.
    pub(super) fn look(
        &self,
        waker: Option<&std::task::Waker>,
        progress: &mut (dyn FnMut(Progress) + Send),
    ) -> Option<Result<Returned, Closed>> {
        let look = self.shared.with(|exchange| exchange.look(self.id, waker));
        look.progress.into_iter().for_each(progress);
        if look.end.is_some() {
            self.shared.claimed.notify_one();
        }
        look.end
    }

    /// Waits no more, and says nothing of it: the server is done with it.
    pub(super) fn retire(&self) {
        self.shared.with(|exchange| exchange.retire(self.id));
    }

    /// Waits for the end.
    pub(super) async fn end(&self, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Returned, Closed> {
        poll_fn(|context| self.look(Some(context.waker()), progress).map_or(Poll::Pending, Poll::Ready)).await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.shared.with(|exchange| exchange.give_up(self.id));
        self.shared.claimed.notify_one();
    }
}

/// Lets other tasks run once.
pub(super) async fn breathe() {
    let mut breathed = false;
    poll_fn(|context| {
        if std::mem::replace(&mut breathed, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
