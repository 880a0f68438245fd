//! Erasing a session: its key is destroyed, and with it whatever was sealed under it.
//!
//! The erasure is on the record first, and on the disk, before the key goes; from the moment it has its place in the log,
//! nothing more is sealed for the session. Nothing else is written before the key is gone. So a crash in between leaves a key that
//! the last batch calls destroyed, and the next opening destroys it. No proof changes, because the log never held more than commitments and sealed bytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
};

use ephor_base::{MessageId, OperatorId, Seq, SessionId};
use ephor_record::{Because, Entry, Fact, Record, Subject};

use crate::{
    error::AppendError,
    log::{self, Log},
    queue::{Chore, Reserve},
    read::{Entries, ReadError},
};

/// A session that was erased.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Erased {
    /// Where the record says so.
    pub seq: Seq,
    /// The sessions that came out of it and were not erased by this.
    pub derived: Vec<SessionId>,
}

/// A session was not erased.
#[derive(Debug, thiserror::Error)]
pub enum EraseError {
    /// It has no key here: nothing was ever sealed for it. The caller's mistake. Nothing was recorded.
    #[error("there is nothing to erase: session `{0}` has no private content in this home")]
    Unknown(SessionId),
    /// It was erased before. Nothing was recorded.
    #[error("session `{0}` was erased before")]
    Already(SessionId),
    /// The erasure was not recorded, or the key not destroyed. If it is on the record, the next start destroys the key.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Log {
    /// The sessions that came out of a session by delegation, however far, as the record has it. The first call reads all of the
    /// record, so it takes as long as that is, and a later one what was recorded since; call it where a thread may wait.
    ///
    /// # Errors
    /// [`ReadError`] if the record cannot be read.
    pub fn derived(&self, session: SessionId) -> Result<Vec<SessionId>, ReadError> {
        let mut descent = self.descent();
        descent.catch_up(self.entries_sealed())?;
        Ok(descent.of(session))
    }

    /// Records that a session is erased, waits until that is on the disk, and destroys its key. `derived` is what
    /// [`Log::derived`] said; `reason` is public for good. Sessions that are still talked in fail from here on.
    ///
    /// # Errors
    /// [`EraseError`] says what was recorded and done.
    pub fn erase(
        &self,
        session: SessionId,
        derived: Vec<SessionId>,
        reason: String,
        operator: OperatorId,
    ) -> impl Future<Output = Result<Erased, EraseError>> + Send + 'static + use<> {
        let shared = Arc::clone(self.shared());
        async move {
            if shared.lock().rules.erased().contains(&session) {
                return Err(EraseError::Already(session));
            }
            match log::ask(&shared, |reply| Chore::Find(session, reply)).await {
                Ok(Some(_)) => {}
                Ok(None) => return Err(EraseError::Unknown(session)),
                Err(AppendError::Erased { .. }) => return Err(EraseError::Already(session)),
                Err(error) => return Err(error.into()),
            }
            let subject = Subject { session: Some(session), operator: Some(operator), ..Subject::default() };
            let fact = Fact::Erase { session, derived: derived.clone(), reason };
            let record = Record { subject, fact, content: None };
            let (receipts, waiter) = log::take(&shared, &[&record], Reserve::None, log::wait).await?;
            log::settled(waiter).await?;
            Ok(Erased { seq: log::first(receipts)?.seq, derived })
        }
    }
}

/// Which sessions came out of which, as far as the record was read: those that one told something, those its dead letters were
/// replayed into, and those its schedules sent to.
#[derive(Debug, Default)]
pub(crate) struct Descent {
    /// The first entry that was not read yet.
    next: u64,
    children: BTreeMap<SessionId, BTreeSet<SessionId>>,
    dead: BTreeMap<MessageId, SessionId>,
    schedules: BTreeMap<String, SessionId>,
}

impl Descent {
    /// Reads what was not read yet.
    pub(crate) fn catch_up(&mut self, entries: Entries) -> Result<(), ReadError> {
        for stored in entries.from(Seq(self.next)) {
            let entry = stored?.entry;
            self.next = entry.seq.0.saturating_add(1);
            self.take(entry);
        }
        Ok(())
    }

    fn take(&mut self, entry: Entry) {
        let Some(session) = entry.subject.session else { return };
        match entry.fact {
            Fact::Message { from, because, .. } => {
                let because = match because {
                    Some(Because::Replay(letter)) => self.dead.remove(&letter),
                    Some(Because::Fire { name, .. }) => self.schedules.get(&name).copied(),
                    None => None,
                };
                for parent in from.into_iter().chain(because) {
                    self.children.entry(parent).or_default().insert(session);
                }
            }
            Fact::Dead { message, .. } => drop(self.dead.insert(message, session)),
            Fact::Schedule { name, .. } => drop(self.schedules.insert(name, session)),
            _ => {}
        }
    }

    /// The sessions that came out of `session`, in the order of their ids. Over and above what it said: a session that was told by
    /// one of them counts too, at whatever time.
    pub(crate) fn of(&self, session: SessionId) -> Vec<SessionId> {
        let (mut found, mut todo) = (BTreeSet::new(), vec![session]);
        while let Some(next) = todo.pop() {
            let children = self.children.get(&next).into_iter().flatten();
            todo.extend(children.filter(|child| **child != session && found.insert(**child)));
        }
        found.into_iter().collect()
    }
}
