//! Sessions in use: their keys stay in memory, and no pruning takes their beginnings away.

use std::{io, sync::Arc};

use ephor_base::SessionId;

use crate::vault::Vault;

/// A session is used, until this is dropped. With the last one of it the session rests, and its key leaves the memory.
pub struct InUse {
    vault: Arc<Vault>,
    session: SessionId,
}

impl InUse {
    pub(crate) fn begin(vault: &Arc<Vault>, session: SessionId) -> io::Result<Self> {
        vault.begin_use(session)?;
        Ok(Self { vault: Arc::clone(vault), session })
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        self.vault.end_use(self.session);
    }
}

impl std::fmt::Debug for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("InUse").field(&self.session).finish()
    }
}
