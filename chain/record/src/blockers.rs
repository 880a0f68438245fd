//! Retention blockers: what a node that goes on may still need, so that no pruning reaches it.
//!
//! Counters, keys, boots and erasures are no reason to keep entries: snapshots carry them. Kept whole, from their first
//! entry on, are conversations in which something young stands or something is left to do, the registrations in force,
//! the schedules that stand, and the answers that are used again.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{MessageId, Seq, SessionId, TicketId, Timestamp};
use serde::{Deserialize, Serialize};

use crate::{
    entry::Entry,
    fact::{Fact, RulingOn},
    judgment::Reused,
    standing::Because,
};

/// Why something stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Why {
    /// This session is open.
    Open {
        /// Which.
        session: SessionId,
    },
    /// This session was talked in within the retention.
    Talked {
        /// Which.
        session: SessionId,
    },
    /// A message in this session has no answer.
    Unanswered {
        /// Which session.
        session: SessionId,
        /// Which message.
        message: MessageId,
    },
    /// An intent has no outcome.
    Unfinished {
        /// Which.
        intent: Seq,
    },
    /// A question waits for a person.
    Asked {
        /// Which ticket.
        ticket: TicketId,
    },
    /// A schedule stands, whose message is sealed here.
    Scheduled {
        /// Where it was made.
        made: Seq,
    },
    /// An answer is used again, and the arguments that it speaks of are sealed here.
    Reused {
        /// The answer.
        ruling: Seq,
    },
    /// The operators, policy and tools in force were recorded from here on.
    InForce,
}

/// Something that stays, and everything behind it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Held {
    /// Its first entry.
    pub seq: Seq,
    /// The time of that.
    pub since: Timestamp,
    /// Why.
    #[serde(flatten)]
    pub why: Why,
}

/// An entry.
#[derive(Clone, Copy, Debug)]
struct Place {
    seq: Seq,
    time: Timestamp,
}

/// What the entries so far say of one conversation.
#[derive(Debug)]
struct Life {
    first: Place,
    /// How much time had been lived through at its last entry.
    lived: u64,
    /// Messages without an answer, each with the entry.
    waiting: BTreeMap<MessageId, Place>,
    erased: bool,
}

/// What is needed of the entries so far.
#[derive(Debug, Default)]
pub struct Blockers {
    open: Vec<SessionId>,
    sessions: BTreeMap<SessionId, Life>,
    intents: BTreeMap<Seq, (Place, Option<SessionId>)>,
    tickets: BTreeMap<TicketId, (Place, Option<SessionId>, Timestamp)>,
    /// Dead letters, each with the session whose message it is.
    dead: BTreeMap<MessageId, SessionId>,
    schedules: BTreeMap<String, (Place, Option<SessionId>)>,
    /// Answers that are used again, each with its session and until when.
    reused: BTreeMap<Seq, (Place, SessionId, Timestamp)>,
    boot: Option<Place>,
    in_force: Option<Place>,
}

impl Blockers {
    /// While these sessions are open.
    pub fn new(open: Vec<SessionId>) -> Self {
        Self { open, ..Self::default() }
    }

    /// Takes the next entry in; `lived` is how much time has been lived through at it.
    pub fn pass(&mut self, entry: &Entry, lived: u64) {
        let place = Place { seq: entry.seq, time: entry.time };
        let session = entry.subject.session;
        let life = session.map(|session| {
            let new = || Life { first: place, lived, waiting: BTreeMap::new(), erased: false };
            self.sessions.entry(session).or_insert_with(new)
        });
        if let Some(life) = life {
            life.lived = lived;
            match &entry.fact {
                Fact::Message { id, .. } => drop(life.waiting.insert(*id, place)),
                Fact::TurnEnd { message, .. } => drop(life.waiting.remove(message)),
                Fact::Erase { .. } => life.erased = true,
                _ => {}
            }
        }
        self.note(entry, place, session);
    }

    /// What does not belong to one conversation alone. Each kind of fact says here whether anything goes on from it.
    fn note(&mut self, entry: &Entry, place: Place, session: Option<SessionId>) {
        match &entry.fact {
            Fact::Boot { .. } => self.boot = Some(place),
            Fact::Policy { .. } => self.in_force = self.boot.or(Some(place)),
            Fact::Intent { .. } => drop(self.intents.insert(entry.seq, (place, session))),
            Fact::Outcome { intent, .. } => drop(self.intents.remove(intent)),
            Fact::Ticket { id, expires, .. } => drop(self.tickets.insert(*id, (place, session, *expires))),
            Fact::Ruling { on: RulingOn::Ticket(id), .. } => {
                self.tickets.remove(id);
                let reused = Reused::of(entry.seq, &entry.subject, &entry.fact);
                self.reused.extend(reused.map(|one| (entry.seq, (place, one.session, one.always.until))));
            }
            Fact::Revoked { ruling, .. } => drop(self.reused.remove(ruling)),
            // A dead letter can be replayed, from the entry that accepted it.
            Fact::Dead { message, .. } => self.dead.extend(session.map(|session| (*message, session))),
            Fact::Buried { message, .. } => self.rise(*message),
            Fact::Message { because: Some(Because::Replay(message)), .. } => self.rise(*message),
            Fact::Schedule { name, .. } => drop(self.schedules.insert(name.clone(), (place, session))),
            Fact::Unscheduled { name } => drop(self.schedules.remove(name)),
            Fact::Erase { session, .. } => {
                self.schedules.retain(|_, (_, of)| *of != Some(*session));
                self.reused.retain(|_, (_, of, _)| of != session);
            }
            // Snapshots and prunings carry what these amount to.
            Fact::Origin { .. } | Fact::Stop { .. } | Fact::Keys { .. } => {}
            Fact::Snapshot(_) | Fact::Prune(_) => {}
            Fact::Signal { .. } | Fact::Limit { .. } | Fact::Skipped { .. } => {}
            Fact::Withheld { .. } | Fact::Inherited(_) | Fact::Forbidden { .. } => {}
            Fact::Enrolled { .. } | Fact::Ranked { .. } | Fact::Dismissed { .. } => {}
            // Its text is recorded anew by each boot; until then it stays with what the last one recorded.
            Fact::Enacted { .. } => {}
            // Recorded anew by each boot, together with the policy.
            Fact::Operator { .. } | Fact::Tool { .. } | Fact::Document { .. } => {}
            // Each belongs to a conversation, and stays with it.
            Fact::Opened { .. } | Fact::Message { .. } | Fact::TurnEnd { .. } | Fact::Verdict { .. } => {}
            Fact::Appointed(_) => {}
            Fact::Ruling { on: RulingOn::Tools(_), .. } | Fact::Lease { .. } | Fact::Lifted { .. } => {}
            // What ran before the last boot is gone.
            Fact::Spawn { .. } | Fact::Exit { .. } | Fact::Restarts { .. } => {}
        }
    }

    /// A dead letter was replayed or dropped: nothing waits for it any more.
    fn rise(&mut self, message: MessageId) {
        if let Some(life) = self.dead.remove(&message).and_then(|session| self.sessions.get_mut(&session)) {
            life.waiting.remove(&message);
        }
    }

    /// The sessions that began before `end`, and were not erased.
    pub fn began_before(&self, end: u64) -> BTreeSet<SessionId> {
        let there = self.sessions.iter().filter(|(_, life)| !life.erased && life.first.seq.0 < end);
        there.map(|(session, _)| *session).collect()
    }

    /// What stays of the entries before `end`, in their order. Young is what was lived through after `young`.
    pub fn before(&self, end: u64, young: u64, now: Timestamp) -> Vec<Held> {
        let mut held = Vec::new();
        let mut hold = |Place { seq, time }: Place, why| held.push(Held { seq, since: time, why });
        for (session, life) in self.sessions.iter().filter(|(_, life)| !life.erased) {
            if self.open.contains(session) {
                hold(life.first, Why::Open { session: *session });
            } else if life.lived > young {
                hold(life.first, Why::Talked { session: *session });
            } else if let Some(message) = life.waiting.keys().next() {
                hold(life.first, Why::Unanswered { session: *session, message: *message });
            }
        }
        let whole = |session: &Option<SessionId>, place: Place| {
            session.and_then(|session| self.sessions.get(&session)).map_or(place, |life| life.first)
        };
        for (intent, (place, session)) in &self.intents {
            hold(whole(session, *place), Why::Unfinished { intent: *intent });
        }
        for (ticket, (place, session, expires)) in &self.tickets {
            if *expires > now {
                hold(whole(session, *place), Why::Asked { ticket: *ticket });
            }
        }
        for (place, session) in self.schedules.values() {
            hold(whole(session, *place), Why::Scheduled { made: place.seq });
        }
        for (ruling, (place, session, until)) in &self.reused {
            if *until > now {
                hold(whole(&Some(*session), *place), Why::Reused { ruling: *ruling });
            }
        }
        self.in_force.into_iter().for_each(|place| hold(place, Why::InForce));
        held.retain(|held| held.seq.0 < end);
        held.sort_by_key(|held| held.seq);
        held
    }
}
