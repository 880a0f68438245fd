//! What an operator does to the record itself: erases sessions, changes the keys, prunes. The running node does it, or a command
//! that holds the home alone.

use std::sync::Arc;

use anyhow::{Context, bail};
use ephor_base::{OperatorId, Seq, SessionId, files::Files};
use ephor_chain::{KeyFile, Log, Plan, Protection, Pruned, SigningKeys, Wish, disk::Disk};
use ephor_record::Role;
use ephor_tlog::VerifierKeys;

use super::{boot, keys};
use crate::{home::Home, host::SystemRandom};

/// The record of a home and its keys, in the hands of who may change them.
#[derive(Clone)]
pub(crate) struct Upkeep {
    home: Home,
    log: Log,
    protection: Arc<Protection>,
}

impl Upkeep {
    pub(super) fn new(home: Home, log: Log, protection: Arc<Protection>) -> Self {
        Self { home, log, protection }
    }

    /// Opens the record of a locked home on which no node runs.
    pub(crate) fn alone(home: &Home, protection: Arc<Protection>) -> anyhow::Result<Self> {
        let log = boot::open_log(home, &protection)?;
        Ok(Self { home: home.clone(), log, protection })
    }

    /// Only an owner changes the record, also where no node runs that would ask.
    pub(crate) fn check_owner(&self, operator: OperatorId) -> anyhow::Result<()> {
        let role = self.log.standing(|standing| {
            let operators = standing.operators();
            // A chain in which no operator was ever enrolled belongs to the user of the home.
            if operators.is_empty() { Some(Role::Owner) } else { operators.role(operator) }
        });
        match role {
            Some(Role::Owner) => Ok(()),
            Some(role) => bail!("that takes the role `owner`, and this operator is `{}`", role.name()),
            None => bail!("not an operator of this node"),
        }
    }

    /// The sessions that were delegated from one, however far.
    pub(crate) async fn derived(&self, session: SessionId) -> anyhow::Result<Vec<SessionId>> {
        let log = self.log.clone();
        Ok(tokio::task::spawn_blocking(move || log.derived(session)).await??)
    }

    /// Erases a session; where the record says so.
    pub(crate) async fn erase(&self, operator: OperatorId, session: SessionId, reason: String) -> anyhow::Result<Seq> {
        let derived = self.derived(session).await?;
        Ok(self.log.erase(session, derived, reason, operator).await?.seq)
    }

    /// What could be pruned. `progress` hears how many entries were read of how many.
    pub(crate) async fn plan(
        &self,
        wish: Wish,
        progress: impl FnMut(u64, u64) + Send + 'static,
    ) -> anyhow::Result<Plan> {
        let log = self.log.clone();
        // Only what is published can go.
        log.publish().await?;
        Ok(tokio::task::spawn_blocking(move || log.plan_pruning(wish, progress)).await??)
    }

    /// Takes away what a plan names.
    pub(crate) async fn prune(&self, operator: OperatorId, plan: &Plan) -> anyhow::Result<Pruned> {
        Ok(self.log.prune(plan, operator).await?)
    }

    /// Signs the log with new keys; where the record names them, and which they are.
    pub(crate) async fn rotate(&self, operator: OperatorId) -> anyhow::Result<(Seq, VerifierKeys)> {
        let files: &dyn Files = &Disk;
        let now = self.log.keys().context("the chain has no keys")?;
        let next = SigningKeys::generate_next(&now, &SystemRandom);
        let named = next.verifier().clone();
        let file = KeyFile { path: self.home.signing_keys(), protection: self.protection.clone() };
        file.prepare(&next, files, &SystemRandom)?;
        let seq = self.log.rotate(next, operator).await?;
        // From here on the record says so, and the next start would do the rest as well.
        keys::settle(&self.home, files, &SystemRandom, &self.protection, &named, false)?;
        Ok((seq, named))
    }

    /// Leaves the record in good order.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        self.log.close().await.context("the chain was not closed")
    }
}
