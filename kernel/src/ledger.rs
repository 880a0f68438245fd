//! Budgets down the tree: reserved before something is done, settled after it, by a seat and every seat above it.
//!
//! A [`Purse`] is carved from the purse above it and made in no other way, so that no seat ever has what its parent has
//! not. Reserving climbs from a seat to the root and costs as many steps as the tree is deep, however many seats there are.
//!
//! No sum here can be more than can be counted: what is set aside leaves room for the most that may be booked for it, and
//! nothing books more than that, whatever a driver reports.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
};

use ephor_base::{Budget, Exhausted, Resource, Seat};

#[cfg(test)]
mod tests;

/// The accounts of all seats, by seat. It finds purses and makes none but the first. A node has one, which only its door can reach.
///
/// A seat has one account for as long as the node runs. When its purse is gone the account is closed; the process that fills the
/// seat next goes on with it, so that what was used is neither forgotten nor booked twice.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<Seat, Arc<Node>>>);

/// A purse was not made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotCarved {
    /// There may be no more seats there, or none so deep.
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The seat is filled: two would share one account.
    #[error("the seat `{0}` is filled; try again when it is free")]
    Taken(Seat),
}

/// One seat's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// What it may use: what it was given, and no more than any seat above it may.
    pub limit: Budget,
    /// What it and the seats below it have used.
    pub used: Budget,
    /// What is set aside for calls in flight and for seats that are there.
    pub reserved: Budget,
}

impl Account {
    /// What is left of it; of depth, all of it.
    #[must_use]
    pub const fn left(&self) -> Budget {
        self.limit.minus(&self.used).minus(&self.reserved)
    }
}

/// The budget of a seat. Not `Clone`: dropping it closes the account, gives back the child it was, and leaves what it
/// used with the seats above.
#[derive(Debug)]
pub struct Purse {
    node: Arc<Node>,
    ledger: Arc<Ledger>,
    /// The child that this seat is to all above it.
    _place: Option<Reservation>,
}

/// Budget set aside. Settle it; a dropped one counts as used in full, so that nothing leaks out.
#[derive(Debug)]
pub struct Reservation {
    /// None where nothing was set aside.
    node: Option<Arc<Node>>,
    amount: Budget,
    /// The most that may be booked for it.
    most: Budget,
    /// What is booked when it is dropped.
    used: Budget,
}

/// An account in the tree. It outlives its purse while something is reserved on it.
#[derive(Debug)]
struct Node {
    parent: Option<Arc<Node>>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    given: Budget,
    used: Budget,
    reserved: Budget,
    closed: bool,
    /// Whether anything was ever booked.
    begun: bool,
}

impl Ledger {
    /// The purse of a root: the one carved from nothing.
    ///
    /// # Errors
    /// [`NotCarved::Taken`]: there is one.
    pub fn root(self: &Arc<Self>, seat: Seat, limit: Budget) -> Result<Purse, NotCarved> {
        self.enter(seat, None, limit, None)
    }

    /// Opens the account of a seat that no process fills.
    fn enter(
        self: &Arc<Self>,
        seat: Seat,
        parent: Option<&Arc<Node>>,
        limit: Budget,
        place: Option<Reservation>,
    ) -> Result<Purse, NotCarved> {
        let mut nodes = self.nodes();
        let node = match nodes.get(&seat) {
            Some(known) if known.reopen(parent, limit) => known.clone(),
            Some(_) => return Err(NotCarved::Taken(seat)),
            None => {
                let node = Arc::new(Node::new(parent.cloned(), limit));
                nodes.insert(seat, node.clone());
                node
            }
        };
        drop(nodes);
        Ok(Purse { node, ledger: self.clone(), _place: place })
    }

    /// The account of `seat`; none after its purse is gone.
    #[must_use]
    pub fn account(&self, seat: &Seat) -> Option<Account> {
        self.find(seat).map(|node| node.account())
    }

    /// Sets `amount` aside on `seat` and every seat above it, or on none. Without an account there is nothing to use.
    ///
    /// # Errors
    /// [`Exhausted`]: there or above is less left. Nothing was set aside.
    pub fn reserve(&self, seat: &Seat, amount: Budget) -> Result<Reservation, Exhausted> {
        match self.find(seat) {
            Some(node) => node.reserve(amount),
            None => {
                Budget::ZERO.covers(&amount).map(|()| Reservation { node: None, amount, most: amount, used: amount })
            }
        }
    }

    /// Whether what once ran out could be set aside on `seat` now.
    #[must_use]
    pub fn would_cover(&self, seat: &Seat, spent: Exhausted) -> bool {
        let reserved = self.reserve(seat, Budget::of(spent.resource, spent.needed));
        // It was a question.
        reserved.map(|reserved| reserved.settle(Budget::ZERO)).is_ok()
    }

    /// Gives `seat` another limit; says what it may use now, which is no more than the seats above it may. What it has
    /// used stays used.
    pub fn grant(&self, seat: &Seat, limit: Budget) -> Option<Account> {
        let node = self.find(seat)?;
        node.state().given = limit;
        Some(node.account())
    }

    fn find(&self, seat: &Seat) -> Option<Arc<Node>> {
        self.nodes().get(seat).filter(|node| !node.state().closed).cloned()
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<Seat, Arc<Node>>> {
        ephor_runtime::lock::enter(&self.0)
    }
}

impl Purse {
    /// Makes the purse of a child out of this one: of each thing what was asked for, and no more than is given here; one
    /// generation less; and one child more for this seat and all above it.
    ///
    /// # Errors
    /// [`NotCarved`]: nothing was made.
    pub fn carve(&self, seat: Seat, asked: Budget) -> Result<Self, NotCarved> {
        let given = self.node.account().limit;
        let Some(depth) = given.depth.checked_sub(1) else {
            return Err(Exhausted { resource: Resource::Depth, needed: 1, left: 0 }.into());
        };
        let place = self.node.reserve(Budget { children: 1, ..Budget::ZERO })?.lent();
        let limit = asked.meet(&Budget { depth, ..given });
        self.ledger.enter(seat, Some(&self.node), limit, Some(place))
    }

    /// Books what the seat used before this node ran, here and above; nothing, if the account knows already.
    ///
    /// # Errors
    /// [`Exhausted`]: it is more than can be counted. Nothing was booked.
    pub fn begin(&self, used: &Budget) -> Result<(), Exhausted> {
        if self.node.state().begun {
            return Ok(());
        }
        let mut node = Some(&self.node);
        while let Some(at) = node {
            at.state().after(&Budget::ZERO, used)?;
            node = at.parent.as_ref();
        }
        self.node.book(&Budget::ZERO, used);
        Ok(())
    }

    /// The account.
    #[cfg(test)]
    fn account(&self) -> Account {
        self.node.account()
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.node.state().closed = true;
    }
}

impl Node {
    const fn new(parent: Option<Arc<Self>>, given: Budget) -> Self {
        let state = State { given, used: Budget::ZERO, reserved: Budget::ZERO, closed: false, begun: false };
        Self { parent, state: Mutex::new(state) }
    }

    /// Opens a closed account again, below the same seat; false if it is open.
    fn reopen(&self, parent: Option<&Arc<Self>>, given: Budget) -> bool {
        let is_below = self.parent.as_ref().map(Arc::as_ptr) == parent.map(Arc::as_ptr);
        let mut state = self.state();
        if !state.closed || !is_below {
            return false;
        }
        (state.closed, state.given) = (false, given);
        true
    }

    fn account(&self) -> Account {
        let above = self.parent.as_ref().map(|parent| parent.account().limit);
        let state = self.state();
        Account { limit: state.within(above), used: state.used, reserved: state.reserved }
    }

    fn reserve(self: &Arc<Self>, amount: Budget) -> Result<Reservation, Exhausted> {
        let most = amount.plus(&amount)?;
        self.set_aside(&amount)?;
        Ok(Reservation { node: Some(self.clone()), amount, most, used: amount })
    }

    /// Sets `amount` aside here and above, or nowhere. Locks are taken from a seat upwards and never down, so that no two
    /// wait for each other.
    fn set_aside(&self, amount: &Budget) -> Result<(), Exhausted> {
        let mut state = self.state();
        if state.closed {
            Budget::ZERO.covers(amount)?;
        }
        // Depth cannot be used up.
        let left = Budget { depth: u64::MAX, ..state.given.minus(&state.used).minus(&state.reserved) };
        left.covers(amount)?;
        let reserved = state.reserved.plus(amount)?;
        state.after(&reserved, &reserved)?;
        if let Some(parent) = &self.parent {
            parent.set_aside(amount)?;
        }
        state.reserved = reserved;
        Ok(())
    }

    /// Gives back what was set aside and books what was used, here and above.
    fn book(&self, reserved: &Budget, used: &Budget) {
        let mut node = Some(self);
        while let Some(at) = node {
            let mut state = at.state();
            state.reserved = state.reserved.minus(reserved);
            state.begun = true;
            match state.used.plus(used) {
                Ok(sum) => state.used = sum,
                // What was set aside left room for it. An account that cannot be counted in any more gives nothing.
                Err(_) => state.closed = true,
            }
            drop(state);
            node = at.parent.as_deref();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        ephor_runtime::lock::enter(&self.state)
    }
}

impl State {
    /// What would have been used if these were booked as well.
    fn after(&self, one: &Budget, other: &Budget) -> Result<Budget, Exhausted> {
        self.used.plus(one)?.plus(other)
    }

    /// What was given, as far as the seat above still has it.
    fn within(&self, above: Option<Budget>) -> Budget {
        match above {
            Some(above) => self.given.meet(&Budget { depth: above.depth.saturating_sub(1), ..above }),
            None => self.given,
        }
    }
}

impl Reservation {
    /// What is set aside.
    #[must_use]
    pub const fn amount(&self) -> Budget {
        self.amount
    }

    /// The most that is booked for it: twice what is set aside, since an estimate may be wrong.
    #[must_use]
    pub const fn most(&self) -> Budget {
        self.most
    }

    /// Books `used`, and no more than [`Self::most`]; frees the rest, and says what was booked.
    pub fn settle(mut self, used: Budget) -> Budget {
        self.used = used.meet(&self.most);
        self.used
    }

    /// What cannot be used up: it is given back when this is dropped.
    const fn lent(mut self) -> Self {
        self.used = Budget::ZERO;
        self
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(node) = &self.node {
            node.book(&self.amount, &self.used);
        }
    }
}
