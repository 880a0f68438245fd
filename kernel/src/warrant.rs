//! What a seat may do and use.

use std::sync::Arc;

use ephor_base::{Budget, Exhausted, Seat};
use ephor_governance::Rights;

use crate::ledger::{Ledger, Purse};

/// The rights and the budget of a seat. Not `Clone`, and made in two ways only: the node has one by its operator's policy,
/// and every other is carved from the one above. So what a child may do and use is a part of what its parent may, and
/// there is no check of that which could be forgotten.
#[derive(Debug)]
pub(crate) struct Warrant {
    rights: Rights,
    purse: Purse,
}

impl Warrant {
    /// That of the root of a tree.
    pub(crate) fn of_node(ledger: &Arc<Ledger>, seat: Seat, rights: Rights, limit: Budget) -> Self {
        Self { rights, purse: ledger.root(seat, limit) }
    }

    /// That of a child in `seat`: what is asked for, as far as there is that much here.
    ///
    /// # Errors
    /// [`Exhausted`]: there may be no more children here, or none so deep. Nothing was made.
    pub(crate) fn carve(&self, seat: Seat, rights: &Rights, budget: Budget) -> Result<Self, Exhausted> {
        Ok(Self { rights: self.rights.intersect(rights), purse: self.purse.carve(seat, budget)? })
    }

    /// What it may ask of the door.
    pub(crate) const fn rights(&self) -> &Rights {
        &self.rights
    }
}
