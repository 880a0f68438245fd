//! The rules every entry keeps: what a verifier holds against a log, and what recovery learns from it.
//!
//! Entries count up without gaps and never go back, neither in time nor in the version of their form. The first is an origin and no other is. Boots count up, and
//! after a stop only a boot follows. An intent stands right behind the permitting verdict it names, in the same batch and
//! about the same thing. An outcome ends an intent that is still open, under the same subject.

use std::collections::BTreeMap;

use ephor_base::{ActionKind, Budget, CallId, Decision, Digest, MessageId, Pid, Seq, TicketId, Timestamp};

use crate::{
    entry::{ENTRY_VERSION, Entry},
    record::{Fact, Follows, LastNumbers, RulingOn, Subject},
};

/// An intent that has no outcome yet.
#[derive(Clone, Debug)]
pub(crate) struct OpenIntent {
    pub(crate) subject: Subject,
    pub(crate) reserved: Budget,
}

/// The numbers a log has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pub(crate) pid: Option<Pid>,
    pub(crate) call: Option<CallId>,
    pub(crate) message: Option<MessageId>,
    pub(crate) ticket: Option<TicketId>,
}

/// A permitting verdict, as far as its intent must match it.
#[derive(Clone, PartialEq, Debug)]
struct Permitted {
    seq: Seq,
    subject: Subject,
    action: ActionKind,
    attempt: u32,
    arguments: Digest,
}

/// What the entries so far amount to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) size: u64,
    /// Of the last entry; 0 before the first.
    pub(crate) version: u16,
    pub(crate) time: Option<Timestamp>,
    pub(crate) boots: u64,
    pub(crate) stopped: bool,
    pub(crate) intents: BTreeMap<Seq, OpenIntent>,
    pub(crate) used: Used,
    permitted: Option<Permitted>,
}

impl Rules {
    /// A batch begins: a verdict of the one before it permits nothing here.
    pub(crate) fn begin_batch(&mut self) {
        self.permitted = None;
    }

    /// Takes the next entry in, or says which rule it breaks.
    pub(crate) fn admit(&mut self, entry: &Entry) -> Result<(), &'static str> {
        self.check_place(entry)?;
        self.check_fact(entry)?;
        self.size = self.size.saturating_add(1);
        (self.version, self.time) = (entry.version, Some(entry.time));
        self.stopped = matches!(entry.fact, Fact::Stop { .. });
        self.used.note(entry);
        Ok(())
    }

    fn check_place(&self, entry: &Entry) -> Result<(), &'static str> {
        if !(1..=ENTRY_VERSION).contains(&entry.version) {
            return Err("its version is not one that this format has");
        }
        if entry.version < self.version {
            return Err("its version is older than that of the entry before it");
        }
        if entry.seq.0 != self.size {
            return Err("its sequence is not the next");
        }
        if self.time.is_some_and(|time| entry.time < time) {
            return Err("it is earlier than the entry before it");
        }
        if entry.content.is_some() && entry.subject.session.is_none() {
            return Err("it has content and no session");
        }
        Ok(())
    }

    fn check_fact(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let permitted = self.permitted.take();
        match &entry.fact {
            Fact::Origin { .. } if self.size > 0 => Err("an origin is only ever first"),
            Fact::Origin { .. } => Ok(()),
            _ if self.size == 0 => Err("the first entry is not an origin"),
            Fact::Boot { number, clean, .. } => self.check_boot(*number, *clean),
            _ if self.stopped => Err("it follows a stop and is no boot"),
            Fact::Stop { number } if *number != self.boots => Err("it stops another boot"),
            Fact::Verdict { .. } => {
                self.permitted = Permitted::by(entry);
                Ok(())
            }
            Fact::Intent { .. } => self.check_intent(entry, permitted),
            Fact::Outcome { intent, .. } => self.check_outcome(*intent, &entry.subject),
            _ => Ok(()),
        }
    }

    fn check_intent(&mut self, entry: &Entry, permitted: Option<Permitted>) -> Result<(), &'static str> {
        if permitted.is_none() || permitted != Permitted::wanted_by(entry) {
            return Err("the entry before it is not a verdict that permits it");
        }
        if let Fact::Intent { reserved, .. } = entry.fact {
            self.intents.insert(entry.seq, OpenIntent { subject: entry.subject.clone(), reserved });
        }
        Ok(())
    }

    fn check_boot(&mut self, number: u64, clean: bool) -> Result<(), &'static str> {
        if number != self.boots.saturating_add(1) {
            return Err("its number is not the next");
        }
        // The first boot of a log follows nothing, so nothing before it was unclean.
        if clean != (self.stopped || self.boots == 0) {
            return Err("it is wrong about whether the boot before it stopped cleanly");
        }
        self.boots = number;
        Ok(())
    }

    fn check_outcome(&mut self, intent: Seq, subject: &Subject) -> Result<(), &'static str> {
        match self.intents.get(&intent) {
            Some(open) if open.subject == *subject => {}
            Some(_) => return Err("it ends an intent of another subject"),
            None => return Err("it ends no open intent"),
        }
        self.intents.remove(&intent);
        Ok(())
    }
}

impl Permitted {
    /// What a verdict permits.
    fn by(entry: &Entry) -> Option<Self> {
        let Fact::Verdict { action, attempt, arguments, verdict, .. } = &entry.fact else { return None };
        let permitted = Self {
            seq: entry.seq,
            subject: entry.subject.clone(),
            action: *action,
            attempt: *attempt,
            arguments: *arguments,
        };
        (verdict.decision == Decision::Permit).then_some(permitted)
    }

    /// What an intent needs to be permitted.
    fn wanted_by(entry: &Entry) -> Option<Self> {
        let Fact::Intent { action, attempt, verdict, arguments, .. } = entry.fact else { return None };
        Some(Self { seq: verdict, subject: entry.subject.clone(), action, attempt, arguments })
    }
}

impl Used {
    fn note(&mut self, entry: &Entry) {
        self.pid = self.pid.max(entry.subject.pid);
        self.call = self.call.max(entry.subject.call);
        match &entry.fact {
            Fact::Origin { follows: Some(Follows { used, .. }), .. } => {
                self.pid = Some(Pid(used.pid));
                self.call = Some(CallId(used.call));
                self.message = Some(MessageId(used.message));
                self.ticket = Some(TicketId(used.ticket));
            }
            Fact::Message { id, .. } => self.message = self.message.max(Some(*id)),
            Fact::Ticket { id, .. } => self.ticket = self.ticket.max(Some(*id)),
            Fact::Ruling { on: RulingOn::Ticket(id), .. } => self.ticket = self.ticket.max(Some(*id)),
            Fact::TurnEnd { message, .. } => self.message = self.message.max(Some(*message)),
            _ => {}
        }
    }

    /// The same, for the log that follows this one.
    pub(crate) fn last(&self) -> LastNumbers {
        LastNumbers {
            pid: self.pid.map_or(0, |pid| pid.0),
            call: self.call.map_or(0, |call| call.0),
            message: self.message.map_or(0, |message| message.0),
            ticket: self.ticket.map_or(0, |ticket| ticket.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: u16, seq: u64, fact: Fact) -> Entry {
        Entry { version, seq: Seq(seq), time: Timestamp(1), subject: Subject::default(), fact, content: None }
    }

    fn origin(version: u16) -> Entry {
        entry(version, 0, Fact::Origin { ed25519: String::new(), ml_dsa_65: String::new(), follows: None })
    }

    #[test]
    fn versions_of_entries_never_go_back() {
        let boot = |version| {
            entry(version, 1, Fact::Boot { number: 1, version: String::new(), clean: true, trimmed_bytes: 0 })
        };
        for (first, second, kept) in [(1, 1, true), (1, 2, true), (2, 2, true), (2, 1, false)] {
            let mut rules = Rules::default();
            assert_eq!(rules.admit(&origin(first)), Ok(()));
            assert_eq!(rules.admit(&boot(second)).is_ok(), kept, "{second} after {first}");
        }
        for unknown in [0, 3, u16::MAX] {
            assert!(Rules::default().admit(&origin(unknown)).is_err(), "{unknown}");
        }
    }
}
