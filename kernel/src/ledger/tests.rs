//! Purses, and a tree of them that lives at random.

use std::sync::Arc;

use ephor_base::{Budget, Exhausted, Resource, Seat};
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

use super::{Ledger, NotCarved, Purse, Reservation};

const fn tokens(tokens: u64) -> Budget {
    Budget { tokens, ..Budget::ZERO }
}

/// So many tokens, and room for children.
const fn room(tokens: u64) -> Budget {
    Budget { tokens, children: 10, depth: 3, ..Budget::ZERO }
}

fn root(limit: Budget) -> (Arc<Ledger>, Purse) {
    let ledger = Arc::new(Ledger::default());
    let purse = ledger.root(Seat::root("node"), limit);
    (ledger, purse.unwrap())
}

fn seat(name: &str) -> Seat {
    Seat::root("node").child(name)
}

#[test]
fn a_reservation_counts_at_once_and_is_settled_once() {
    let (ledger, parent) = root(room(100));
    let child = parent.carve(seat("a"), tokens(80)).unwrap();
    let first = ledger.reserve(&seat("a"), tokens(60)).unwrap();
    let refused = ledger.reserve(&seat("a"), tokens(30)).unwrap_err();
    assert_eq!((refused.resource, refused.needed, refused.left), (Resource::Tokens, 30, 20));
    first.settle(tokens(10));
    assert_eq!(child.account().used, tokens(10));
    assert_eq!(parent.account().used, tokens(10));
    assert_eq!(parent.account().reserved, Budget { children: 1, ..Budget::ZERO });
}

#[test]
fn a_seat_without_an_account_has_nothing() {
    let ledger = Arc::new(Ledger::default());
    assert!(ledger.reserve(&seat("a"), tokens(1)).is_err());
    assert!(ledger.reserve(&seat("a"), Budget::ZERO).is_ok());
    let (ledger, parent) = root(room(100));
    drop(parent.carve(seat("a"), tokens(1)).unwrap());
    assert!(ledger.reserve(&seat("a"), tokens(1)).is_err(), "not even what its parent has");
}

#[test]
fn a_sibling_spends_what_the_parent_has() {
    let (ledger, parent) = root(room(100));
    let _seats = [parent.carve(seat("a"), tokens(80)).unwrap(), parent.carve(seat("ab"), tokens(80)).unwrap()];
    let held = ledger.reserve(&seat("a"), tokens(80)).unwrap();
    assert!(ledger.reserve(&seat("ab"), tokens(30)).is_err());
    drop(held);
    assert_eq!(parent.account().used, tokens(80), "a lost reservation counts as used");
}

#[test]
fn a_child_never_has_what_its_parent_has_not() {
    let (ledger, parent) = root(room(100));
    let child = parent.carve(seat("a"), Budget::MAX).unwrap();
    assert_eq!(child.account().limit, Budget { depth: 2, ..room(100) }, "asked for everything");
    ledger.grant(&seat("a"), Budget::MAX).unwrap();
    assert_eq!(child.account().limit, Budget { depth: 2, ..room(100) }, "raised beyond its parent");
    ledger.grant(&Seat::root("node"), room(7)).unwrap();
    assert_eq!(child.account().limit.tokens, 7, "its parent was lowered");
    ledger.grant(&Seat::root("node"), room(1000)).unwrap();
    assert_eq!(child.account().limit.tokens, 1000);
}

#[test]
fn a_raised_budget_keeps_what_was_used() {
    let (ledger, parent) = root(room(100));
    let child = parent.carve(seat("a"), tokens(10)).unwrap();
    ledger.reserve(&seat("a"), tokens(10)).unwrap().settle(tokens(12));
    assert!(ledger.reserve(&seat("a"), tokens(1)).is_err());
    ledger.grant(&seat("a"), tokens(20)).unwrap();
    assert_eq!(child.account().used, tokens(12));
    assert!(ledger.reserve(&seat("a"), tokens(9)).is_err());
    assert!(ledger.reserve(&seat("a"), tokens(8)).is_ok());
}

#[test]
fn children_and_generations_are_bounded_and_a_child_that_goes_makes_room() {
    let (_ledger, parent) = root(Budget { children: 2, depth: 2, ..room(1) });
    let a = parent.carve(seat("a"), Budget::MAX).unwrap();
    let b = a.carve(seat("a").child("b"), Budget::MAX).unwrap();
    let refused = b.carve(seat("a").child("b").child("c"), Budget::MAX).unwrap_err();
    assert_eq!(refused, Exhausted { resource: Resource::Depth, needed: 1, left: 0 }.into());
    let refused = parent.carve(seat("d"), Budget::MAX).unwrap_err();
    assert_eq!(
        refused,
        Exhausted { resource: Resource::Children, needed: 1, left: 0 }.into(),
        "a grandchild counts too"
    );
    drop(b);
    assert!(parent.carve(seat("d"), Budget::MAX).is_ok());
}

#[test]
fn nothing_books_more_than_twice_what_was_set_aside_and_no_sum_overflows() {
    let (ledger, parent) = root(room(100));
    let _child = parent.carve(seat("a"), Budget::MAX).unwrap();
    let held = ledger.reserve(&seat("a"), tokens(10)).unwrap();
    assert_eq!(held.settle(Budget::MAX), tokens(20), "of nothing else was anything set aside");
    assert_eq!((parent.account().used, ledger.account(&seat("a")).unwrap().used), (tokens(20), tokens(20)));
    // Where the limit is all that can be counted, what may be booked still can be.
    ledger.grant(&Seat::root("node"), Budget::MAX).unwrap();
    ledger.grant(&seat("a"), Budget::MAX).unwrap();
    let half = ledger.reserve(&seat("a"), tokens(u64::MAX / 2 - 20)).unwrap();
    assert!(ledger.reserve(&seat("a"), tokens(u64::MAX / 2)).is_err());
    assert!(ledger.reserve(&seat("a"), Budget::MAX).is_err());
    half.settle(Budget::MAX);
    assert_eq!(ledger.account(&seat("a")).unwrap().used.tokens, u64::MAX - 21);
    assert!(ledger.reserve(&seat("a"), tokens(20)).is_err());
}

#[test]
fn a_seat_that_is_filled_is_never_filled_twice_and_goes_on_with_its_account() {
    let (ledger, parent) = root(room(100));
    let child = parent.carve(seat("a"), tokens(80)).unwrap();
    assert_eq!(parent.carve(seat("a"), tokens(80)).unwrap_err(), NotCarved::Taken(seat("a")));
    ledger.reserve(&seat("a"), tokens(30)).unwrap().settle(tokens(30));
    drop(child);
    assert_eq!(ledger.account(&seat("a")), None);
    let again = parent.carve(seat("a"), tokens(50)).unwrap();
    // What the record says of it is known here already.
    again.begin(&tokens(30)).unwrap();
    assert_eq!((again.account().used, again.account().limit.tokens), (tokens(30), 50));
    assert_eq!(parent.account().used, tokens(30), "and was booked once");
    let other = parent.carve(seat("b"), tokens(50)).unwrap();
    other.begin(&tokens(7)).unwrap();
    other.begin(&tokens(7)).unwrap();
    assert_eq!((other.account().used, parent.account().used), (tokens(7), tokens(37)));
    assert!(parent.carve(seat("c"), tokens(1)).unwrap().begin(&Budget::MAX).is_err());
}

#[test]
fn what_is_in_flight_is_booked_when_its_seat_is_gone_and_whoever_fills_it_next_pays_for_it() {
    let (ledger, parent) = root(room(100));
    let child = parent.carve(seat("a"), tokens(80)).unwrap();
    let flying = ledger.reserve(&seat("a"), tokens(30)).unwrap();
    drop(child);
    assert_eq!(parent.account().reserved, tokens(30));
    let again = parent.carve(seat("a"), tokens(80)).unwrap();
    flying.settle(tokens(25));
    assert_eq!((parent.account().used, parent.account().reserved.tokens), (tokens(25), 0));
    assert_eq!(again.account().used, tokens(25));
}

/// A step of a random life of a tree.
#[derive(Clone, Debug)]
enum Step {
    Carve(prop::sample::Index, u64),
    Close(prop::sample::Index),
    Reserve(prop::sample::Index, u64),
    Settle(prop::sample::Index, u64),
    Crash(prop::sample::Index),
    Grant(prop::sample::Index, u64),
}

fn step() -> impl Strategy<Value = Step> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), 0..200_u64).prop_map(|(at, n)| Step::Carve(at, n)),
        at().prop_map(Step::Close),
        (at(), 0..60_u64).prop_map(|(at, n)| Step::Reserve(at, n)),
        (at(), 0..90_u64).prop_map(|(at, n)| Step::Settle(at, n)),
        at().prop_map(Step::Crash),
        (at(), 0..300_u64).prop_map(|(at, n)| Step::Grant(at, n)),
    ]
}

/// The tree as the test keeps it.
struct Model {
    ledger: Arc<Ledger>,
    /// Purses with their seat, their parent's place, and what was booked on them and below.
    purses: Vec<(Seat, Option<usize>, Option<Purse>, u64)>,
    /// Reservations in flight, and the place of their seat.
    flying: Vec<(usize, Reservation)>,
    /// The most that was ever settled beyond a reservation, in sum.
    beyond: u64,
    /// The greatest limit the root ever had.
    most: u64,
}

impl Model {
    fn new() -> Self {
        let limit = Budget { tokens: 200, children: 6, depth: 4, ..Budget::ZERO };
        let (ledger, root) = root(limit);
        Self { ledger, purses: vec![(Seat::root("node"), None, Some(root), 0)], flying: vec![], beyond: 0, most: 200 }
    }

    fn ancestry(&self, at: usize) -> Vec<usize> {
        std::iter::successors(Some(at), |at| self.purses[*at].1).collect()
    }

    fn book(&mut self, at: usize, used: u64) {
        for place in self.ancestry(at) {
            self.purses[place].3 += used;
        }
    }

    fn take(&mut self, step: Step) {
        let places = self.purses.len();
        match step {
            Step::Carve(at, asked) => {
                let at = at.index(places);
                let name = self.purses[at].0.child(&format!("s{places}"));
                let asked = Budget { tokens: asked, children: 4, depth: 9, ..Budget::ZERO };
                let made = self.purses[at].2.as_ref().and_then(|purse| purse.carve(name.clone(), asked).ok());
                if made.is_some() {
                    self.purses.push((name, Some(at), made, 0));
                }
            }
            // The root is closed with the node.
            Step::Close(at) if at.index(places) > 0 => self.purses[at.index(places)].2 = None,
            Step::Reserve(at, amount) => {
                let at = at.index(places);
                if self.purses[at].2.is_none() {
                    assert!(amount == 0 || self.ledger.reserve(&self.purses[at].0, tokens(amount)).is_err());
                } else if let Ok(held) = self.ledger.reserve(&self.purses[at].0, tokens(amount)) {
                    self.flying.push((at, held));
                }
            }
            Step::Settle(at, used) if !self.flying.is_empty() => {
                let (at, held) = self.flying.swap_remove(at.index(self.flying.len()));
                let reserved = held.amount().tokens;
                let used = held.settle(tokens(used)).tokens;
                self.beyond += used.saturating_sub(reserved);
                self.book(at, used);
            }
            Step::Crash(at) if !self.flying.is_empty() => {
                let (at, held) = self.flying.swap_remove(at.index(self.flying.len()));
                self.book(at, held.amount().tokens);
                drop(held);
            }
            Step::Grant(at, limit) => {
                let at = at.index(places);
                let given = Budget { tokens: limit, children: 6, depth: 4, ..Budget::ZERO };
                self.ledger.grant(&self.purses[at].0, given);
                if at == 0 {
                    self.most = self.most.max(limit);
                }
            }
            Step::Settle(..) | Step::Crash(_) | Step::Close(_) => {}
        }
    }

    fn check(&self) {
        for (place, (seat, parent, purse, booked)) in self.purses.iter().enumerate() {
            let Some(purse) = purse else { continue };
            let account = purse.account();
            assert_eq!(account.used.tokens, *booked, "{seat}: what was used stays used, and nothing else is");
            let below = self.flying.iter().filter(|(at, _)| self.ancestry(*at).contains(&place));
            let flying: u64 = below.map(|(_, held)| held.amount().tokens).sum();
            assert_eq!(account.reserved.tokens, flying, "{seat}: exactly what is in flight is set aside");
            let live = |(at, purse): &(usize, &Option<Purse>)| {
                *at != place && purse.is_some() && self.ancestry(*at).contains(&place)
            };
            let children = self.purses.iter().map(|one| &one.2).enumerate().filter(live).count();
            assert_eq!(account.reserved.children, children as u64, "{seat}: exactly those that are there count");
            if let Some(Some(above)) = parent.map(|parent| &self.purses[parent].2) {
                let limit = above.account().limit;
                assert_eq!(account.limit, account.limit.meet(&limit), "{seat}: more than its parent");
                assert!(account.limit.depth < limit.depth.max(1), "{seat}: as deep as its parent");
            }
        }
        let (.., root, used) = &self.purses[0];
        assert!(*used <= self.most + self.beyond, "the root was overshot by more than estimates were wrong");
        assert!(root.is_some());
    }
}

proptest! {
    #[test]
    fn no_life_of_a_tree_launders_leaks_or_overshoots(steps in prop::collection::vec(step(), 0..120)) {
        let mut model = Model::new();
        for step in steps {
            model.take(step);
            model.check();
        }
        model.flying.clear();
        let root = model.purses[0].2.as_ref().unwrap();
        assert_eq!(root.account().reserved.tokens, 0, "nothing stays set aside");
    }
}
