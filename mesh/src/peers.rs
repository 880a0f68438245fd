//! The list of peers: who may connect, and what each may do.

use std::collections::BTreeMap;

use crate::party::{ChainKeys, Distrust, KeyCommitment, NodeId};

/// The most peers on the list, revoked ones included.
pub const MOST_PEERS: usize = 4096;

/// What a peer may do here. Each step includes those before it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Policy {
    /// It may copy and cosign what is public of the log.
    WitnessOnly,
    /// It may send messages to processes, and monitor and link them.
    Messages,
    /// It may start processes.
    Spawn,
    /// It may take sessions over when this node fails.
    Successor,
}

impl Policy {
    /// Whether a peer with this policy may do what needs `needed`.
    #[must_use]
    pub fn allows(self, needed: Self) -> bool {
        needed <= self
    }
}

/// The list has [`MOST_PEERS`] names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the list of peers is full")]
pub struct ListFull;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    Allowed(KeyCommitment, Policy),
    Revoked,
}

/// The list of peers of a node, each with what stands for its keys: a name alone would let in the first node that claims it. What is
/// not on the list is refused.
#[derive(Clone, Debug, Default)]
pub struct Peers {
    standing: BTreeMap<NodeId, Standing>,
}

impl Peers {
    /// Allows a peer with these keys, or changes its keys or what it may do. It also ends a revocation.
    ///
    /// # Errors
    /// [`ListFull`]; nothing was changed.
    pub fn allow(&mut self, node: NodeId, keys: KeyCommitment, policy: Policy) -> Result<(), ListFull> {
        self.put(node, Standing::Allowed(keys, policy))
    }

    /// Revokes a peer: from now on neither the list nor an invitation lets it in.
    ///
    /// # Errors
    /// [`ListFull`] if it was not on the list and there is no room; nothing was changed.
    pub fn revoke(&mut self, node: NodeId) -> Result<(), ListFull> {
        self.put(node, Standing::Revoked)
    }

    fn put(&mut self, node: NodeId, standing: Standing) -> Result<(), ListFull> {
        if self.standing.len() >= MOST_PEERS && !self.standing.contains_key(&node) {
            return Err(ListFull);
        }
        self.standing.insert(node, standing);
        Ok(())
    }

    /// What a peer that has proven `keys` may do.
    ///
    /// # Errors
    /// [`Distrust::UnknownChain`], [`Distrust::Revoked`] or [`Distrust::WrongKeys`].
    pub fn admit(&self, node: NodeId, keys: &ChainKeys) -> Result<Policy, Distrust> {
        let (known, policy) = self.entry(node)?;
        if known == keys.commitment() { Ok(policy) } else { Err(Distrust::WrongKeys) }
    }

    /// What a peer that was admitted may do now.
    ///
    /// # Errors
    /// [`Distrust::UnknownChain`] or [`Distrust::Revoked`].
    pub fn policy(&self, node: NodeId) -> Result<Policy, Distrust> {
        self.entry(node).map(|(_, policy)| policy)
    }

    fn entry(&self, node: NodeId) -> Result<(KeyCommitment, Policy), Distrust> {
        match self.standing.get(&node) {
            Some(Standing::Allowed(keys, policy)) => Ok((*keys, *policy)),
            Some(Standing::Revoked) => Err(Distrust::Revoked),
            None => Err(Distrust::UnknownChain),
        }
    }

    /// The peers that are allowed.
    pub fn allowed(&self) -> impl Iterator<Item = (NodeId, Policy)> {
        self.standing.iter().filter_map(|(node, standing)| match standing {
            Standing::Allowed(_, policy) => Some((*node, *policy)),
            Standing::Revoked => None,
        })
    }
}
