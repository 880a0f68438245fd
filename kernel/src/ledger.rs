//! Budgets: reserved before a call, settled after it, by seat and every seat above it.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use ephor_base::{Budget, Exhausted, Seat};

/// The accounts of all seats.
#[derive(Debug, Default)]
pub(crate) struct Ledger(Mutex<BTreeMap<Seat, Account>>);

/// One seat's account.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Account {
    /// What it may use.
    pub limit: Budget,
    /// What it and the seats below it have used.
    pub used: Budget,
    /// What is set aside for calls in flight.
    pub reserved: Budget,
}

impl Account {
    fn left(&self) -> Budget {
        self.limit.minus(&self.used).minus(&self.reserved)
    }
}

/// Budget set aside for one call. Settle it; one that is dropped counts as used in full, so that nothing leaks out.
#[derive(Debug)]
pub(crate) struct Reservation<'a> {
    ledger: &'a Ledger,
    seat: Seat,
    amount: Budget,
    settled: bool,
}

impl Ledger {
    /// Opens an account for `seat`. One that exists keeps what it has used.
    pub(crate) fn open(&self, seat: Seat, limit: Budget) {
        let account = Account { limit, used: Budget::ZERO, reserved: Budget::ZERO };
        self.accounts().entry(seat).and_modify(|account| account.limit = limit).or_insert(account);
    }

    /// The account of `seat`.
    #[must_use]
    pub(crate) fn account(&self, seat: &Seat) -> Option<Account> {
        self.accounts().get(seat).copied()
    }

    /// Closes the account of `seat`; what it used stays with the seats above.
    pub(crate) fn close(&self, seat: &Seat) {
        self.accounts().remove(seat);
    }

    /// Sets `amount` aside on `seat` and every seat above that has an account, or on none.
    pub(crate) fn reserve(&self, seat: &Seat, amount: Budget) -> Result<Reservation<'_>, Exhausted> {
        let mut accounts = self.accounts();
        for (_, account) in accounts.iter().filter(|(holder, _)| is_at_or_above(holder, seat)) {
            account.left().covers(&amount)?;
        }
        for (_, account) in accounts.iter_mut().filter(|(holder, _)| is_at_or_above(holder, seat)) {
            account.reserved = account.reserved.plus(&amount);
        }
        Ok(Reservation { ledger: self, seat: seat.clone(), amount, settled: false })
    }

    fn accounts(&self) -> std::sync::MutexGuard<'_, BTreeMap<Seat, Account>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_at_or_above(holder: &Seat, seat: &Seat) -> bool {
    seat.as_str().strip_prefix(holder.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Reservation<'_> {
    pub(crate) const fn amount(&self) -> Budget {
        self.amount
    }

    /// Books `used` and frees the rest.
    pub(crate) fn settle(mut self, used: Budget) {
        self.book(used);
    }

    fn book(&mut self, used: Budget) {
        self.settled = true;
        let mut accounts = self.ledger.accounts();
        for (_, account) in accounts.iter_mut().filter(|(holder, _)| is_at_or_above(holder, &self.seat)) {
            account.reserved = account.reserved.minus(&self.amount);
            account.used = account.used.plus(&used);
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if !self.settled {
            self.book(self.amount);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ledger;
    use ephor_base::{Budget, Resource, Seat};

    const fn tokens(tokens: u64) -> Budget {
        Budget { tokens, ..Budget::ZERO }
    }

    #[test]
    fn a_reservation_counts_at_once_and_is_settled_once() {
        let ledger = Ledger::default();
        let (parent, child) = (Seat::root("node"), Seat::root("node").child("a"));
        ledger.open(parent.clone(), tokens(100));
        ledger.open(child.clone(), tokens(80));
        let first = ledger.reserve(&child, tokens(60)).unwrap();
        let refused = ledger.reserve(&child, tokens(30)).unwrap_err();
        assert_eq!((refused.resource, refused.needed, refused.left), (Resource::Tokens, 30, 20));
        first.settle(tokens(10));
        assert_eq!(ledger.account(&child).unwrap().used, tokens(10));
        assert_eq!(ledger.account(&parent).unwrap().used, tokens(10));
        assert_eq!(ledger.account(&parent).unwrap().reserved, Budget::ZERO);
    }

    #[test]
    fn a_sibling_spends_what_the_parent_has() {
        let ledger = Ledger::default();
        let parent = Seat::root("node");
        ledger.open(parent.clone(), tokens(100));
        ledger.open(parent.child("a"), tokens(80));
        ledger.open(parent.child("ab"), tokens(80));
        let held = ledger.reserve(&parent.child("a"), tokens(80)).unwrap();
        assert!(ledger.reserve(&parent.child("ab"), tokens(30)).is_err());
        drop(held);
        assert_eq!(ledger.account(&parent).unwrap().used, tokens(80), "a lost reservation counts as used");
    }
}
