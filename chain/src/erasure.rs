//! Erasing a session: its key is destroyed, and with it whatever was sealed under it.
//!
//! The erasure is on the record first, and on the disk, before the key goes; from the moment it has its place in the log,
//! nothing more is sealed for the session. A crash in between leaves a key that the record calls destroyed: the next
//! opening destroys it. No proof changes, because the log never held more than commitments and sealed bytes.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    sync::Arc,
};

use ephor_base::{OperatorId, Seq, SessionId};

use crate::{
    error::AppendError,
    log::{self, Log},
    queue::{Chore, Reserve},
    read::{Entries, ReadError},
    record::{Fact, Record, Subject},
    standing::Because,
    vault::VaultError,
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
    /// Whether it has a key cannot be seen. The store's fault. Nothing was recorded.
    #[error(transparent)]
    Vault(#[from] VaultError),
    /// The erasure was not recorded, or the key not destroyed. If it is on the record, the next start destroys the key.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl Log {
    /// The sessions that came out of a session by delegation, however far, as the record has it. Reads all of the
    /// record, so it takes as long as that is; call it where a thread may wait.
    ///
    /// # Errors
    /// [`ReadError`] if the record cannot be read.
    pub fn derived(&self, session: SessionId) -> Result<Vec<SessionId>, ReadError> {
        derived(self.entries_sealed(), session)
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
            if shared.lock().rules.erased.contains(&session) {
                return Err(EraseError::Already(session));
            }
            if shared.vault.find(session)?.is_none() {
                return Err(EraseError::Unknown(session));
            }
            let subject = Subject { session: Some(session), operator: Some(operator), ..Subject::default() };
            let fact = Fact::Erase { session, derived: derived.clone(), reason };
            let record = Record { subject, fact, content: None };
            let (receipts, waiter) = log::take(&shared, &[&record], Reserve::None, log::wait).await?;
            log::settled(waiter).await?;
            log::ask(&shared, |reply| Chore::Destroy(session, reply)).await?;
            Ok(Erased { seq: log::first(receipts)?.seq, derived })
        }
    }
}

/// The sessions that came out of `session`, in the order of their ids: those it told something, those its dead letters were
/// replayed into, and those its schedules sent to. Over and above what it said: whoever was told by one of them counts too, at
/// whatever time.
pub(crate) fn derived(entries: Entries, session: SessionId) -> Result<Vec<SessionId>, ReadError> {
    let mut children: BTreeMap<SessionId, BTreeSet<SessionId>> = BTreeMap::new();
    let (mut dead, mut schedules) = (BTreeMap::new(), BTreeMap::new());
    for stored in entries {
        let entry = stored?.entry;
        let Some(session) = entry.subject.session else { continue };
        match entry.fact {
            Fact::Message { from, because, .. } => {
                let because = match because {
                    Some(Because::Replay(letter)) => dead.remove(&letter),
                    Some(Because::Fire { name, .. }) => schedules.get(&name).copied(),
                    None => None,
                };
                for parent in from.into_iter().chain(because) {
                    children.entry(parent).or_default().insert(session);
                }
            }
            Fact::Dead { message, .. } => drop(dead.insert(message, session)),
            Fact::Schedule { name, .. } => drop(schedules.insert(name, session)),
            _ => {}
        }
    }
    let (mut found, mut todo) = (BTreeSet::new(), vec![session]);
    while let Some(next) = todo.pop() {
        let new = children.remove(&next).unwrap_or_default();
        todo.extend(new.into_iter().filter(|child| *child != session && found.insert(*child)));
    }
    Ok(found.into_iter().collect())
}
