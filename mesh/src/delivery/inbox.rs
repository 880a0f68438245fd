//! Messages from one peer: each number is handed on once, and its answer kept for as long as it can be asked for again.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::SessionId;

use super::{
    letter::{Answer, Number, Reason},
    outbox::{MOST_SESSIONS, WINDOW},
};

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

/// Answers to what was turned away that wait for the line: as many as an honest peer can have under way.
const MOST_TURNED_AWAY: usize = MOST_SESSIONS * 32;

#[derive(Debug, Default)]
struct Session {
    /// The highest number that came.
    highest: u64,
    undecided: BTreeSet<Number>,
    /// All answers to numbers within the window that ends with the highest.
    answers: BTreeMap<Number, Answer>,
}

impl Session {
    /// The numbers up to this one are forgotten: the peer has an answer to each, or has given it up.
    const fn floor(&self) -> u64 {
        self.highest.saturating_sub(WINDOW)
    }

    fn rise(&mut self, number: Number) {
        self.highest = self.highest.max(number.0);
        let floor = Number(self.floor());
        self.answers.retain(|number, _| *number > floor);
    }
}

#[derive(Debug, Default)]
pub(super) struct Inbox {
    sessions: BTreeMap<SessionId, Session>,
    handed: BTreeMap<Handed, (SessionId, Number)>,
    last_handed: u64,
    /// Answers for the line.
    unsent: BTreeSet<(SessionId, Number)>,
    /// Answers that nothing is kept of: the message was refused because it cannot be remembered.
    turned_away: BTreeMap<(SessionId, Number), Reason>,
}

impl Inbox {
    /// Takes up what the record says of a session: the answers that were given.
    pub(super) fn restore(&mut self, session: SessionId, answers: impl IntoIterator<Item = (Number, Answer)>) {
        let entry = self.sessions.entry(session).or_default();
        for (number, answer) in answers {
            entry.answers.insert(number, answer);
            entry.rise(number);
        }
    }

    pub(super) fn take(&mut self, session: SessionId, number: Number) -> Result<Taken, Flood> {
        if !self.sessions.contains_key(&session) && self.sessions.len() >= MOST_SESSIONS {
            return self.turn_away(session, number, Reason::Full);
        }
        let known = self.sessions.entry(session).or_default();
        if known.undecided.contains(&number) {
            return Ok(Taken::Again);
        }
        if known.answers.contains_key(&number) {
            self.unsent.insert((session, number));
            return Ok(Taken::Answered);
        }
        if number.0 <= known.floor() {
            return self.turn_away(session, number, Reason::Forgotten);
        }
        // The sender may have given up what is being decided on here, so a full house is no fault of its.
        if u64::try_from(known.undecided.len()).is_ok_and(|undecided| undecided >= WINDOW) {
            return self.turn_away(session, number, Reason::Full);
        }
        known.rise(number);
        known.undecided.insert(number);
        self.last_handed = self.last_handed.checked_add(1).ok_or(Flood)?;
        let handed = Handed(self.last_handed);
        self.handed.insert(handed, (session, number));
        Ok(Taken::New(handed))
    }

    fn turn_away(&mut self, session: SessionId, number: Number, reason: Reason) -> Result<Taken, Flood> {
        if self.turned_away.len() >= MOST_TURNED_AWAY {
            return Err(Flood);
        }
        self.turned_away.insert((session, number), reason);
        Ok(Taken::Answered)
    }

    /// The node's answer to a message that it was handed; whether it was owed one.
    pub(super) fn decide(&mut self, handed: Handed, answer: Answer) -> Option<(SessionId, Number)> {
        let (session, number) = self.handed.remove(&handed)?;
        let known = self.sessions.get_mut(&session)?;
        known.undecided.remove(&number);
        known.answers.insert(number, answer);
        self.unsent.insert((session, number));
        Some((session, number))
    }

    /// The next answer for the line.
    pub(super) fn next(&mut self) -> Option<(SessionId, Number, Answer)> {
        if let Some(((session, number), reason)) = self.turned_away.pop_first() {
            return Some((session, number, Answer::Refused(reason)));
        }
        while let Some((session, number)) = self.unsent.pop_first() {
            let answer = self.sessions.get(&session).and_then(|session| session.answers.get(&number));
            if let Some(answer) = answer {
                return Some((session, number, *answer));
            }
        }
        None
    }

    pub(super) fn has_next(&self) -> bool {
        !self.unsent.is_empty() || !self.turned_away.is_empty()
    }

    /// Answers that did not go over the last line go when the peer asks again.
    pub(super) fn linked(&mut self) {
        self.unsent.clear();
        self.turned_away.clear();
    }

    /// The peer has lost its memory: its numbers begin anew. Decisions that are still to come have no answer to give.
    pub(super) fn reset(&mut self) {
        *self = Self { last_handed: self.last_handed, ..Self::default() };
    }

    /// Forgets a session in which nothing is being decided.
    pub(super) fn forget(&mut self, session: SessionId) -> bool {
        let idle = self.sessions.get(&session).is_some_and(|session| session.undecided.is_empty());
        idle && self.sessions.remove(&session).is_some()
    }
}
