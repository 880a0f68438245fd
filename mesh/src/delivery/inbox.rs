//! Messages from one peer: each number is handed on once, and its answer kept for as long as it can be asked for again: until the sender
//! says, by its floor, that it has a fate.

use std::collections::{BTreeMap, BTreeSet};

use super::letter::{Answer, Number, Reason, WINDOW};

/// What is to be done with a message that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Taken {
    /// It is new: the node decides on it.
    New(Handed),
    /// The node decides on it already.
    Again,
    /// Its answer goes out again.
    Answered,
}

/// A message that the node was handed and owes an answer. No two have the same, whatever the peer forgets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handed(u64);

/// The peer sends what has to be turned away faster than it takes answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Flood;

/// The most bytes of bodies that wait for the node's decision, and the most messages, with those of memories that the peer has lost.
pub const MOST_UNDECIDED: usize = 16 << 20;
const MOST_HANDED: usize = 4096;

/// What became of a number that came.
#[derive(Clone, Copy, Debug)]
enum Came {
    /// The node decides on it.
    Undecided,
    /// Its answer.
    Answered(Answer),
}

/// A message that the node decides on.
#[derive(Clone, Copy, Debug)]
struct Undecided {
    length: usize,
    owed: Owed,
}

/// To which message an answer is owed.
#[derive(Clone, Copy, Debug)]
enum Owed {
    To(Number),
    /// The peer has forgotten that it sent it.
    Nothing,
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// The peer has a fate for every number below this one, and sends none of them.
    floor: u64,
    /// The numbers from the floor on that came: at most [`WINDOW`].
    came: BTreeMap<Number, Came>,
    /// What the node holds and has not decided on, also of a peer's memory that is lost.
    handed: BTreeMap<Handed, Undecided>,
    last_handed: u64,
    /// The bytes of the bodies of all that is in `handed`.
    undecided: usize,
    /// Answers for the line.
    unsent: BTreeSet<Number>,
    /// Answers that nothing is kept of: the message was refused because it cannot be remembered.
    turned_away: BTreeMap<Number, Reason>,
}

impl Inbox {
    /// Takes up what the record says: the answers that were given.
    pub(super) fn restore(&mut self, answers: impl IntoIterator<Item = (Number, Answer)>) {
        self.came.extend(answers.into_iter().map(|(number, answer)| (number, Came::Answered(answer))));
    }

    /// Takes a message with a body of `length` bytes in.
    pub(super) fn take(&mut self, number: Number, floor: Number, length: usize) -> Result<Taken, Flood> {
        self.rise(floor);
        if number.0 < self.floor {
            return self.turn_away(number, Reason::Forgotten);
        }
        match self.came.get(&number) {
            Some(Came::Undecided) => return Ok(Taken::Again),
            Some(Came::Answered(_)) => {
                self.unsent.insert(number);
                return Ok(Taken::Answered);
            }
            None => {}
        }
        // The sender may have given up what is being decided on here, so a full house is no fault of its.
        let undecided = self.undecided.saturating_add(length);
        if undecided > MOST_UNDECIDED || self.handed.len() >= MOST_HANDED {
            return self.turn_away(number, Reason::Full);
        }
        self.last_handed = self.last_handed.checked_add(1).ok_or(Flood)?;
        self.undecided = undecided;
        self.came.insert(number, Came::Undecided);
        let handed = Handed(self.last_handed);
        self.handed.insert(handed, Undecided { length, owed: Owed::To(number) });
        Ok(Taken::New(handed))
    }

    /// What is below the sender's floor is never asked for again.
    fn rise(&mut self, floor: Number) {
        if floor.0 > self.floor {
            self.floor = floor.0;
            self.came = self.came.split_off(&floor);
            self.unsent = self.unsent.split_off(&floor);
            self.turned_away = self.turned_away.split_off(&floor);
        }
    }

    fn turn_away(&mut self, number: Number, reason: Reason) -> Result<Taken, Flood> {
        // An honest peer has no more under way.
        if u64::try_from(self.turned_away.len()).is_ok_and(|waiting| waiting >= WINDOW) {
            return Err(Flood);
        }
        self.turned_away.insert(number, reason);
        Ok(Taken::Answered)
    }

    /// The node's answer to a message that it was handed: which one, if an answer is owed.
    pub(super) fn decide(&mut self, handed: Handed, answer: Answer) -> Option<Number> {
        let Undecided { length, owed } = self.handed.remove(&handed)?;
        self.undecided = self.undecided.saturating_sub(length);
        let Owed::To(number) = owed else { return None };
        if let Some(came) = self.came.get_mut(&number) {
            *came = Came::Answered(answer);
            self.unsent.insert(number);
        }
        Some(number)
    }

    /// The next answer for the line.
    pub(super) fn next(&mut self) -> Option<(Number, Answer)> {
        if let Some((number, reason)) = self.turned_away.pop_first() {
            return Some((number, Answer::Refused(reason)));
        }
        let number = self.unsent.pop_first()?;
        match self.came.get(&number)? {
            Came::Answered(answer) => Some((number, *answer)),
            Came::Undecided => None,
        }
    }

    pub(super) fn has_next(&self) -> bool {
        !self.unsent.is_empty() || !self.turned_away.is_empty()
    }

    /// Answers that did not go over the last line go when the peer asks again.
    pub(super) fn linked(&mut self) {
        self.unsent.clear();
        self.turned_away.clear();
    }

    /// The peer has lost its memory: its numbers begin anew. Decisions that are still to come have no answer to give, and count until
    /// they are made: the node holds what they are about.
    pub(super) fn reset(&mut self) {
        let mut handed = std::mem::take(&mut self.handed);
        handed.values_mut().for_each(|undecided| undecided.owed = Owed::Nothing);
        *self = Self { handed, last_handed: self.last_handed, undecided: self.undecided, ..Self::default() };
    }
}
