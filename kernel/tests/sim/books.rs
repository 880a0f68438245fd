//! Budgets in a simulation: every seat has a purse of the real ledger, and there are books of what must be in it.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard},
};

use ephor_base::{Budget, Seat};
use ephor_kernel::ledger::{Ledger, Purse, Reservation};

/// What a call asks for, and what it comes to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bill {
    /// In tokens.
    pub(crate) estimate: u64,
    pub(crate) actual: u64,
}

/// What became of calls: those that there were, those that were refused, those that came to more than they had set aside, those that
/// left a seat beyond its limit, and those that were lost with whoever held them.
#[derive(Clone, Copy, Default)]
pub(crate) struct Tally {
    calls: u64,
    refused: u64,
    dearer: u64,
    beyond: u64,
    lost: u64,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.refused += other.refused;
        self.dearer += other.dearer;
        self.beyond += other.beyond;
        self.lost += other.lost;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, refused, dearer, beyond, lost } = self;
        write!(
            f,
            "{calls} calls, {refused} refused, {dearer} dearer than estimated, {beyond} of these beyond a limit, {lost} lost"
        )
    }
}

/// One purse, also when it is closed.
struct Entry {
    seat: Seat,
    above: Option<usize>,
    purse: Option<Purse>,
    used: Budget,
    /// By how much there may be more than the limit: what the estimates of calls were wrong that were in flight when it was reached, and
    /// what was taken away by a lower limit.
    slack: Budget,
}

/// One call in flight.
struct Flying {
    entry: usize,
    amount: Budget,
}

/// The books of a boot.
#[derive(Clone)]
pub(crate) struct Books(Arc<Inner>);

struct Inner {
    ledger: Arc<Ledger>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: Vec<Entry>,
    flights: BTreeMap<u64, Flying>,
    next: u64,
    tally: Tally,
    wrong: Option<String>,
}

/// A call in flight: it lands, or is lost with whoever holds it and counts in full.
pub(crate) struct Flight {
    books: Books,
    number: u64,
    reserved: Option<Reservation>,
}

impl Books {
    pub(crate) fn new() -> Self {
        let ledger = Arc::new(Ledger::default());
        let limit = Budget { tokens: 9000, tool_calls: 80, children: 14, depth: 3, ..Budget::ZERO };
        let (seat, used, slack) = (Seat::root("r"), Budget::ZERO, Budget::ZERO);
        let purse = Some(ledger.root(seat.clone(), limit).unwrap());
        let state = State { entries: vec![Entry { seat, above: None, purse, used, slack }], ..State::default() };
        Self(Arc::new(Inner { ledger, state: Mutex::new(state) }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap()
    }

    /// Gives a seat a purse out of the one above it, unless it has one, or may have none.
    pub(crate) fn enter(&self, seat: &Seat) {
        if let Some(branch) = above(seat) {
            let asked = Budget { tokens: 4000, tool_calls: 30, children: 6, depth: 9, ..Budget::ZERO };
            self.open(&branch, asked);
            self.open(seat, Budget { tokens: 1500, tool_calls: 12, ..asked });
        }
    }

    fn open(&self, seat: &Seat, asked: Budget) {
        let mut state = self.state();
        if state.place(seat).is_some() {
            return;
        }
        let Some(above) = above(seat).and_then(|one| state.place(&one)) else { return };
        let made = state.entries[above].purse.as_ref().unwrap().carve(seat.clone(), asked);
        if let Ok(purse) = made {
            // Whoever fills a seat again goes on with its account.
            match state.entries.iter().position(|one| one.seat == *seat) {
                Some(place) => {
                    state.entries[place].purse = Some(purse);
                    state.entries[place].slack = state.over(&self.0.ledger, place);
                }
                None => {
                    let (used, slack) = (Budget::ZERO, Budget::ZERO);
                    state.entries.push(Entry {
                        seat: seat.clone(),
                        above: Some(above),
                        purse: Some(purse),
                        used,
                        slack,
                    });
                }
            }
        }
        drop(state);
        self.check();
    }

    /// The seats that have a purse, but for the root.
    pub(crate) fn seats(&self) -> Vec<Seat> {
        let state = self.state();
        state.entries.iter().skip(1).filter(|one| one.purse.is_some()).map(|one| one.seat.clone()).collect()
    }

    /// The seat is gone, and another of its name may come.
    pub(crate) fn close(&self, seat: &Seat) {
        let mut state = self.state();
        if let Some(place) = state.place(seat) {
            drop(state.entries[place].purse.take());
        }
        drop(state);
        self.check();
    }

    /// Another limit; what is over it by that is nobody's mistake.
    pub(crate) fn grant(&self, seat: &Seat, tokens: u64) {
        if let Some(account) = self.0.ledger.account(seat) {
            self.0.ledger.grant(seat, Budget { tokens, ..account.limit });
            let mut state = self.state();
            for place in 0..state.entries.len() {
                let over = state.over(&self.0.ledger, place);
                state.entries[place].slack = over;
            }
        }
        self.check();
    }

    /// Begins a call: its estimate is set aside on its seat and all above, or on none.
    pub(crate) fn depart(&self, seat: &Seat, bill: Bill) -> Option<Flight> {
        let amount = Budget { tokens: bill.estimate, tool_calls: 1, ..Budget::ZERO };
        let reserved = self.0.ledger.reserve(seat, amount);
        self.state().tally.calls += 1;
        self.state().tally.refused += u64::from(reserved.is_err());
        let flight = reserved.ok().map(|reserved| {
            let mut state = self.state();
            state.next += 1;
            let number = state.next;
            match state.place(seat) {
                Some(entry) => drop(state.flights.insert(number, Flying { entry, amount })),
                None => state.wrong(format!("{seat} has no purse, and {amount:?} was set aside on it")),
            }
            Flight { books: self.clone(), number, reserved: Some(reserved) }
        });
        self.check();
        flight
    }

    /// A call is over, and came to this.
    fn land(&self, number: u64, used: Budget) {
        let mut state = self.state();
        let Some(Flying { entry, amount }) = state.flights.remove(&number) else { return };
        let error = used.minus(&amount);
        state.tally.dearer += u64::from(error != Budget::ZERO);
        for place in state.ancestry(entry) {
            let booked = state.entries[place].used.plus(&used).unwrap();
            state.entries[place].used = booked;
            let (slack, over) = (state.entries[place].slack.plus(&error).unwrap(), state.over(&self.0.ledger, place));
            state.tally.beyond += u64::from(place == entry && over != Budget::ZERO);
            state.entries[place].slack = if over == Budget::ZERO { over } else { slack };
        }
        drop(state);
        self.check();
    }

    /// Holds the ledger against the books.
    fn check(&self) {
        let mut state = self.state();
        for place in 0..state.entries.len() {
            if let Some(wrong) = state.look(&self.0.ledger, place) {
                state.wrong(wrong);
            }
        }
    }

    /// What all accounts say.
    pub(crate) fn accounts(&self) -> Vec<Option<ephor_kernel::Account>> {
        self.state().entries.iter().map(|one| self.0.ledger.account(&one.seat)).collect()
    }

    /// What became of its calls.
    pub(crate) fn tally(&self) -> Tally {
        self.state().tally
    }

    /// What was not as it must be.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.state().wrong.take()
    }

    /// Nothing moves any more: what is set aside still?
    pub(crate) fn rest(&self) {
        let mut state = self.state();
        if let Some((number, flying)) = state.flights.first_key_value() {
            let wrong = format!("call {number} is in flight for ever, and {:?} set aside", flying.amount);
            state.wrong(wrong);
        }
    }

    /// Every seat but the root is gone.
    pub(crate) fn end(&self) {
        self.seats().iter().for_each(|seat| self.close(seat));
        self.rest();
        let left = self.0.ledger.account(&Seat::root("r")).map(|account| account.reserved);
        if left != Some(Budget::ZERO) {
            self.state().wrong(format!("nobody is there, and set aside is {left:?}"));
        }
    }
}

/// The seat above.
fn above(seat: &Seat) -> Option<Seat> {
    seat.as_str().rsplit_once('/').map(|(above, _)| Seat::root(above))
}

impl State {
    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// The purse that a seat has now.
    fn place(&self, seat: &Seat) -> Option<usize> {
        self.entries.iter().position(|one| one.seat == *seat && one.purse.is_some())
    }

    fn ancestry(&self, place: usize) -> Vec<usize> {
        std::iter::successors(Some(place), |place| self.entries[*place].above).collect()
    }

    /// By how much the purse of a place is beyond its limit.
    fn over(&self, ledger: &Ledger, place: usize) -> Budget {
        let entry = &self.entries[place];
        let account = entry.purse.as_ref().and_then(|_| ledger.account(&entry.seat));
        let over = account.map(|account| account.used.plus(&account.reserved).unwrap().minus(&account.limit));
        Budget { depth: 0, ..over.unwrap_or(Budget::ZERO) }
    }

    /// What is wrong with one purse.
    fn look(&self, ledger: &Ledger, place: usize) -> Option<String> {
        let entry = &self.entries[place];
        entry.purse.as_ref()?;
        let seat = &entry.seat;
        let Some(account) = ledger.account(seat) else { return Some(format!("{seat} has a purse and no account")) };
        let is_below = |one: usize| self.ancestry(one).contains(&place);
        let flying = self.flights.values().filter(|one| is_below(one.entry));
        let flying = flying.fold(Budget::ZERO, |sum, one| sum.plus(&one.amount).unwrap());
        let seats = (0..self.entries.len()).filter(|one| *one != place && self.entries[*one].purse.is_some());
        let children = u64::try_from(seats.filter(|one| is_below(*one)).count()).unwrap();
        let reserved = Budget { children, ..flying };
        if account.reserved != reserved {
            return Some(format!("{seat} has set aside {:?}, and in flight is {reserved:?}", account.reserved));
        }
        if account.used != entry.used {
            return Some(format!("{seat} has used {:?}, and was billed {:?}", account.used, entry.used));
        }
        let over = self.over(ledger, place);
        if entry.slack.covers(&over).is_err() {
            return Some(format!(
                "{seat} is {over:?} beyond its limit, and the estimates were wrong by {:?}",
                entry.slack
            ));
        }
        let parent = self.entries[entry.above?].purse.as_ref().and_then(|_| ledger.account(&above(seat)?))?;
        let is_less = account.limit == account.limit.meet(&parent.limit) && account.limit.depth < parent.limit.depth;
        (!is_less).then(|| format!("{seat} may use {:?}, and its parent {:?}", account.limit, parent.limit))
    }
}

impl Flight {
    /// It is over by itself, or was cancelled and says what it used.
    pub(crate) fn land(mut self, tokens: u64) {
        let used = Budget { tokens, tool_calls: 1, ..Budget::ZERO };
        let booked = self.reserved.take().map_or(used, |reserved| reserved.settle(used));
        self.books.land(self.number, booked);
    }
}

impl Drop for Flight {
    /// Whoever held it is gone.
    fn drop(&mut self) {
        if let Some(reserved) = self.reserved.take() {
            let amount = reserved.amount();
            drop(reserved);
            self.books.state().tally.lost += 1;
            self.books.land(self.number, amount);
        }
    }
}
