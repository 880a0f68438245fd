//! The calls under way of each session, also of a session that is over.
//!
//! What a call comes to stands on the record only when it has ended. So a session is come back to when none of its calls is
//! under way any more: then the record has all that the session follows from.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ephor_base::SessionId;
use tokio::sync::watch;

/// How many calls each session has under way.
#[derive(Debug)]
pub(crate) struct Ongoing {
    calls: Mutex<HashMap<SessionId, usize>>,
    /// Counts what ended.
    ended: watch::Sender<u64>,
}

/// A call under way, until it is dropped.
#[derive(Debug)]
pub(crate) struct UnderWay {
    ongoing: Arc<Ongoing>,
    session: SessionId,
}

impl Default for Ongoing {
    fn default() -> Self {
        Self { calls: Mutex::default(), ended: watch::Sender::new(0) }
    }
}

impl Ongoing {
    /// A call of a session begins.
    pub(crate) fn begin(self: &Arc<Self>, session: SessionId) -> UnderWay {
        let mut calls = self.calls();
        let count = calls.entry(session).or_default();
        *count = count.saturating_add(1);
        drop(calls);
        UnderWay { ongoing: self.clone(), session }
    }

    /// Whether a session has none.
    pub(crate) fn has_none(&self, session: SessionId) -> bool {
        !self.calls().contains_key(&session)
    }

    /// Something of a session ended: a call, or the session.
    pub(crate) fn changed(&self) {
        self.ended.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// Waits until `is_over`, which is looked at whenever something has ended.
    pub(crate) async fn until(&self, is_over: impl Fn() -> bool) {
        let mut ended = self.ended.subscribe();
        // Its sender lives as long as this.
        let _ended: Result<_, _> = ended.wait_for(|_| is_over()).await;
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        ephor_runtime::lock::enter(&self.calls)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut calls = self.ongoing.calls();
        let left = calls.get(&self.session).and_then(|count| count.checked_sub(1)).filter(|left| *left > 0);
        match left {
            Some(left) => drop(calls.insert(self.session, left)),
            None => drop(calls.remove(&self.session)),
        }
        drop(calls);
        self.ongoing.changed();
    }
}
