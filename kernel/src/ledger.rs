//! Budgets down the tree: reserved before something is done, settled after it, by a seat and every seat above it.
//!
//! A [`Purse`] is carved from the purse above it and made in no other way, so that no seat ever has what its parent has
//! not. Reserving climbs from a seat to the root and costs as many steps as the tree is deep, however many seats there are.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use ephor_base::{Budget, Exhausted, Resource, Seat};

#[cfg(test)]
mod tests;

/// The accounts of all seats, by seat. It finds purses and makes none but the first. A node has one, which only its door can reach.
#[derive(Debug, Default)]
pub struct Ledger(Mutex<HashMap<Seat, Weak<Node>>>);

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
    seat: Seat,
    node: Arc<Node>,
    ledger: Arc<Ledger>,
    /// The child that this seat is to all above it.
    _place: Option<Reservation>,
}

/// Budget set aside. Settle it; one that is dropped counts as used in full, so that nothing leaks out.
#[derive(Debug)]
pub struct Reservation {
    /// None where nothing was set aside.
    node: Option<Arc<Node>>,
    amount: Budget,
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
}

impl Ledger {
    /// The purse of a root: the one that is carved from nothing.
    #[must_use]
    pub fn root(self: &Arc<Self>, seat: Seat, limit: Budget) -> Purse {
        self.enter(seat, Node::new(None, limit), None)
    }

    fn enter(self: &Arc<Self>, seat: Seat, node: Node, place: Option<Reservation>) -> Purse {
        let node = Arc::new(node);
        self.nodes().insert(seat.clone(), Arc::downgrade(&node));
        Purse { seat, node, ledger: self.clone(), _place: place }
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
            None => Budget::ZERO.covers(&amount).map(|()| Reservation { node: None, amount, used: amount }),
        }
    }

    /// Whether what once ran out could be set aside on `seat` now.
    #[must_use]
    pub fn would_cover(&self, seat: &Seat, spent: Exhausted) -> bool {
        let reserved = self.reserve(seat, Budget::of(spent.resource, spent.needed));
        // It was a question.
        reserved.map(|reserved| reserved.settle(Budget::ZERO)).is_ok()
    }

    /// Books what `seat` used before its account was there, here and above.
    pub fn charge(&self, seat: &Seat, used: &Budget) {
        if let Some(node) = self.find(seat) {
            node.book(&Budget::ZERO, used);
        }
    }

    /// Gives `seat` another limit; says what it may use now, which is no more than the seats above it may. What it has
    /// used stays used.
    pub fn grant(&self, seat: &Seat, limit: Budget) -> Option<Account> {
        let node = self.find(seat)?;
        node.state().given = limit;
        Some(node.account())
    }

    fn find(&self, seat: &Seat) -> Option<Arc<Node>> {
        self.nodes().get(seat).and_then(Weak::upgrade).filter(|node| !node.state().closed)
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<Seat, Weak<Node>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Purse {
    /// Makes the purse of a child out of this one: of each thing what was asked for, and no more than is given here; one
    /// generation less; and one child more for this seat and all above it.
    ///
    /// # Errors
    /// [`Exhausted`]: there may be no more children here, or none so deep. Nothing was made.
    pub fn carve(&self, seat: Seat, asked: Budget) -> Result<Self, Exhausted> {
        let given = self.node.account().limit;
        let Some(depth) = given.depth.checked_sub(1) else {
            return Err(Exhausted { resource: Resource::Depth, needed: 1, left: 0 });
        };
        let place = self.node.reserve(Budget { children: 1, ..Budget::ZERO })?.lent();
        let limit = asked.meet(&Budget { depth, ..given });
        Ok(self.ledger.enter(seat, Node::new(Some(self.node.clone()), limit), Some(place)))
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
        let mut nodes = self.ledger.nodes();
        // Another may have the seat by now.
        if nodes.get(&self.seat).is_some_and(|held| std::ptr::eq(held.as_ptr(), &raw const *self.node)) {
            nodes.remove(&self.seat);
        }
    }
}

impl Node {
    const fn new(parent: Option<Arc<Self>>, given: Budget) -> Self {
        let state = State { given, used: Budget::ZERO, reserved: Budget::ZERO, closed: false };
        Self { parent, state: Mutex::new(state) }
    }

    fn account(&self) -> Account {
        let above = self.parent.as_ref().map(|parent| parent.account().limit);
        let state = self.state();
        Account { limit: state.within(above), used: state.used, reserved: state.reserved }
    }

    fn reserve(self: &Arc<Self>, amount: Budget) -> Result<Reservation, Exhausted> {
        self.set_aside(&amount)?;
        Ok(Reservation { node: Some(self.clone()), amount, used: amount })
    }

    /// Sets `amount` aside here and above, or nowhere. Locks are taken from a seat upwards and never down, so that no two
    /// wait for each other.
    fn set_aside(&self, amount: &Budget) -> Result<(), Exhausted> {
        let mut state = self.state();
        if state.closed {
            Budget::ZERO.covers(amount)?;
        }
        // Depth is nobody's to use up.
        let left = Budget { depth: u64::MAX, ..state.given.minus(&state.used).minus(&state.reserved) };
        left.covers(amount)?;
        if let Some(parent) = &self.parent {
            parent.set_aside(amount)?;
        }
        state.reserved = state.reserved.plus(amount);
        Ok(())
    }

    /// Gives back what was set aside and books what was used, here and above.
    fn book(&self, reserved: &Budget, used: &Budget) {
        let mut node = Some(self);
        while let Some(at) = node {
            let mut state = at.state();
            state.reserved = state.reserved.minus(reserved);
            state.used = state.used.plus(used);
            drop(state);
            node = at.parent.as_deref();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
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

    /// Books `used` and frees the rest.
    pub fn settle(mut self, used: Budget) {
        self.used = used;
    }

    /// What nobody can use up: it is given back when this is dropped.
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
