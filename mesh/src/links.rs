//! Which link counts when two nodes have reached each other twice.
//!
//! A node dials a peer only while it has neither a link to it nor a dial under way. When both dial at once, the dial of the node with the
//! lower name stands: that node refuses the other dial, and the other gives its own up. A link that comes up later takes the place of
//! the one before, which its peer no longer had when it dialled. So both come to the same link, and say nothing about it.

use std::collections::BTreeMap;

use crate::party::{Distrust, NodeId};

/// One connection of this node to a peer, dialled or accepted. No two have the same since the node started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u64);

/// Why a peer is not to be dialled.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotNow {
    /// There is a link to it.
    #[error("there is a link to the peer")]
    Linked,
    /// A dial is under way.
    #[error("the peer is being dialled")]
    Dialling,
    /// Every id was used.
    #[error("the node has no link left")]
    UsedUp,
}

/// Another link to the peer has come up meanwhile: this one is to be left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("another link to the peer is used instead")]
pub struct Replaced;

/// A link that is used from now on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accepted {
    /// Its id.
    pub link: LinkId,
    /// What it takes the place of: a link, to be left with [`crate::frame::Farewell::Replaced`], or a dial, to be given up.
    pub instead_of: Option<LinkId>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Bond {
    Dialling(LinkId),
    Linked(LinkId),
}

impl Bond {
    const fn id(self) -> LinkId {
        match self {
            Self::Dialling(id) | Self::Linked(id) => id,
        }
    }
}

/// What this node has with each of its peers: a dial or a link, and not both.
#[derive(Debug)]
pub struct Links {
    own: NodeId,
    last: u64,
    bonds: BTreeMap<NodeId, Bond>,
}

impl Links {
    /// No links, of the node `own`.
    #[must_use]
    pub const fn new(own: NodeId) -> Self {
        Self { own, last: 0, bonds: BTreeMap::new() }
    }

    /// The link to a peer.
    #[must_use]
    pub fn link(&self, peer: NodeId) -> Option<LinkId> {
        match self.bonds.get(&peer) {
            Some(Bond::Linked(link)) => Some(*link),
            Some(Bond::Dialling(_)) | None => None,
        }
    }

    /// Begins to dial a peer.
    ///
    /// # Errors
    /// [`NotNow`]; nothing was changed.
    pub fn dial(&mut self, peer: NodeId) -> Result<LinkId, NotNow> {
        match self.bonds.get(&peer) {
            Some(Bond::Linked(_)) => Err(NotNow::Linked),
            Some(Bond::Dialling(_)) => Err(NotNow::Dialling),
            None => {
                let link = self.draw()?;
                self.bonds.insert(peer, Bond::Dialling(link));
                Ok(link)
            }
        }
    }

    /// Whether a peer that dialled may be let in. [`crate::party::Party::admit`] asks it as a responder.
    ///
    /// # Errors
    /// [`Distrust::Crossed`] if this node's own dial stands.
    pub fn may_accept(&self, peer: NodeId) -> Result<(), Distrust> {
        match self.bonds.get(&peer) {
            Some(Bond::Dialling(_)) if self.own < peer => Err(Distrust::Crossed),
            _ => Ok(()),
        }
    }

    /// A link is up that the peer dialled, or one to a peer whose name was not known when it was dialled.
    ///
    /// # Errors
    /// [`NotNow::UsedUp`]; nothing was changed.
    pub fn accepted(&mut self, peer: NodeId) -> Result<Accepted, NotNow> {
        let link = self.draw()?;
        let instead_of = self.bonds.insert(peer, Bond::Linked(link)).map(Bond::id);
        Ok(Accepted { link, instead_of })
    }

    /// A dial has become a link.
    ///
    /// # Errors
    /// [`Replaced`] if it was given up meanwhile.
    pub fn reached(&mut self, peer: NodeId, link: LinkId) -> Result<(), Replaced> {
        match self.bonds.get_mut(&peer) {
            Some(bond) if *bond == Bond::Dialling(link) => {
                *bond = Bond::Linked(link);
                Ok(())
            }
            _ => Err(Replaced),
        }
    }

    /// A dial has failed, or a link has ended. Of one that was replaced nothing is left to end.
    pub fn ended(&mut self, peer: NodeId, link: LinkId) {
        if self.bonds.get(&peer).is_some_and(|bond| bond.id() == link) {
            self.bonds.remove(&peer);
        }
    }

    fn draw(&mut self) -> Result<LinkId, NotNow> {
        self.last = self.last.checked_add(1).ok_or(NotNow::UsedUp)?;
        Ok(LinkId(self.last))
    }
}
