//! What a seat may do and use.

use std::sync::Arc;

use ephor_base::{Budget, Exhausted, Seat};
use ephor_governance::Rights;

use crate::ledger::{Ledger, NotCarved, Purse};

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
    ///
    /// # Errors
    /// [`NotCarved::Taken`]: there is one.
    pub(crate) fn of_node(ledger: &Arc<Ledger>, seat: Seat, rights: Rights, limit: Budget) -> Result<Self, NotCarved> {
        Ok(Self { rights, purse: ledger.root(seat, limit)? })
    }

    /// That of a child in `seat`: what is asked for, as far as there is that much here.
    ///
    /// # Errors
    /// [`NotCarved`]: nothing was made.
    pub(crate) fn carve(&self, seat: Seat, rights: &Rights, budget: Budget) -> Result<Self, NotCarved> {
        Ok(Self { rights: self.rights.intersect(rights), purse: self.purse.carve(seat, budget)? })
    }

    /// Books what the seat used before this node ran, unless its account knows already.
    ///
    /// # Errors
    /// [`Exhausted`]: it is more than can be counted. Nothing was booked.
    pub(crate) fn begin(&self, used: &Budget) -> Result<(), Exhausted> {
        self.purse.begin(used)
    }

    /// What it may ask of the door.
    pub(crate) const fn rights(&self) -> &Rights {
        &self.rights
    }
}
