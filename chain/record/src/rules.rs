//! The rules every entry keeps: what a verifier holds against a log, and what recovery learns from it.
//!
//! Entries count up without gaps and never go back, neither in time nor in the version of their form. The first is an origin and no other is. Boots count up, and
//! after a stop only a boot follows. Once a boot has named the vault key, all name the same. An intent stands right behind the permitting verdict it names, in the same batch and
//! about the same thing. An outcome ends an intent that is still open, under the same subject. A session that was erased
//! is not erased again and gets no content, as far as the reader has read its erasure. What stands fits into a part of a
//! snapshot. New keys are named last in a batch, under the name of the log, and were never
//! used in it before. A pruning is of published entries that were kept for as long as it says, which is 180 days at least, and
//! moves the beginning of the log on. The PIDs in a list of restarts grow. What [`crate::standing`] keeps is only taken back
//! while it stands; only before its first boot does a log that follows another take over what stood there. A snapshot says exactly what the entries before it amount to, and never stands right behind a change
//! of keys, so that a reader that begins with it knows who signed what lies before it.
//!
//! A reader that begins in the middle of a log knows nothing of what came before, but perhaps the keys in force there. Until the
//! next snapshot, only places, times and changes of keys are checked.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ephor_base::{
    ActionKind, Budget, CallId, Decision, Digest, MessageId, Pid, Seq, SessionId, TicketId, Timestamp, cbor,
};
use ephor_tlog::{VerifierKeys, tile::WIDTH};

use crate::{
    entry::{ENTRY_VERSION, Entry},
    fact::{Fact, Follows, LastNumbers, Restart, RulingOn, Subject},
    minimum::Minimum,
    pruning::Pruning,
    retention::{self, Retention},
    snapshot::{self, Retired, Snapshot, Unsettled},
    standing::{Standing, StandingPart},
};

/// An intent that has no outcome yet.
#[derive(Clone, Debug)]
pub struct OpenIntent {
    /// What it concerns.
    pub subject: Subject,
    /// What was reserved for it.
    pub reserved: Budget,
}

/// The numbers a log has used up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Used {
    pid: Option<Pid>,
    call: Option<CallId>,
    message: Option<MessageId>,
    ticket: Option<TicketId>,
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
#[derive(Clone, Debug)]
pub struct Rules {
    pub(crate) size: u64,
    /// Of the last entry; 0 before the first.
    version: u16,
    pub(crate) time: Option<Timestamp>,
    pub(crate) boots: u64,
    pub(crate) stopped: bool,
    /// The vault key, by its name, once a boot has named it.
    pub(crate) vault: Option<Digest>,
    pub(crate) intents: BTreeMap<Seq, OpenIntent>,
    pub(crate) used: Used,
    /// The sessions that were erased, as far as this reader has read; their keys are destroyed, or are to be.
    pub(crate) erased: Arc<BTreeSet<SessionId>>,
    /// Holds, dead letters, schedules. Shared, so that a reader of it needs no lock meanwhile.
    pub(crate) standing: Arc<Standing>,
    /// The keys in force: they sign what comes next. None where that is not known.
    pub(crate) keys: Option<Arc<VerifierKeys>>,
    /// The keys before those, oldest first.
    pub(crate) earlier: Vec<Retired>,
    /// The keys before the last change, and the size of the log right behind that: they signed the log of this size.
    outgoing: Option<(u64, Arc<VerifierKeys>)>,
    /// Whether the log began because another was given up.
    follows: bool,
    /// The batch has named new keys, and ends with that.
    rotated: bool,
    permitted: Option<Permitted>,
    known: Known,
    /// The part that comes next of a snapshot that has begun.
    next_part: Option<u32>,
    /// The snapshot that belongs here, in its parts, once a caller wanted to know it: nothing of it changes between its parts.
    due: Option<Arc<[Snapshot]>>,
    /// Where the log begins, as the last pruning has it.
    pub(crate) pruned: Option<Minimum>,
    /// A pruning that has begun.
    pruning: Option<Begun>,
}

/// The parts of a pruning so far.
#[derive(Clone, Debug)]
struct Begun {
    first: Seq,
    next_part: u32,
    pruning: Box<Pruning>,
}

/// How much is known of what came before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Known {
    All,
    Nothing,
    /// A snapshot is being taken in.
    Some,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            size: 0,
            version: 0,
            time: None,
            boots: 0,
            stopped: false,
            vault: None,
            intents: BTreeMap::new(),
            used: Used::default(),
            erased: Arc::default(),
            standing: Arc::default(),
            keys: None,
            earlier: Vec::new(),
            outgoing: None,
            follows: false,
            rotated: false,
            permitted: None,
            known: Known::All,
            next_part: None,
            due: None,
            pruned: None,
            pruning: None,
        }
    }
}

impl Rules {
    /// How many entries there are; the place of the next one.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The time of the last entry; nothing where that is not known.
    #[must_use]
    pub const fn time(&self) -> Option<Timestamp> {
        self.time
    }

    /// How many boots there were.
    #[must_use]
    pub const fn boots(&self) -> u64 {
        self.boots
    }

    /// Whether the last boot has stopped cleanly, and nothing but snapshots was recorded since.
    #[must_use]
    pub const fn stopped(&self) -> bool {
        self.stopped
    }

    /// The vault key, by its name, once a boot has named it.
    #[must_use]
    pub const fn vault(&self) -> Option<Digest> {
        self.vault
    }

    /// The intents without an outcome, in order of their places.
    #[must_use]
    pub const fn intents(&self) -> &BTreeMap<Seq, OpenIntent> {
        &self.intents
    }

    /// The highest numbers in use.
    #[must_use]
    pub fn used(&self) -> LastNumbers {
        self.used.last()
    }

    /// The sessions that were erased, as far as this reader has read.
    #[must_use]
    pub fn erased(&self) -> &BTreeSet<SessionId> {
        &self.erased
    }

    /// What stands until it is taken back. Shared, so that a reader needs no lock meanwhile.
    #[must_use]
    pub const fn standing(&self) -> &Arc<Standing> {
        &self.standing
    }

    /// The keys in force: they sign what comes next. Nothing where that is not known.
    #[must_use]
    pub const fn keys(&self) -> Option<&Arc<VerifierKeys>> {
        self.keys.as_ref()
    }

    /// Whether the batch has named new keys, and ends with that.
    #[must_use]
    pub const fn rotated(&self) -> bool {
        self.rotated
    }

    /// Where the log begins, as the last pruning on the record has it.
    #[must_use]
    pub const fn pruned(&self) -> Option<Minimum> {
        self.pruned
    }

    /// The rules where a pruned log begins, as the parts of the pruning have it.
    ///
    /// # Errors
    /// What is wrong with the parts.
    pub fn from_pruning(parts: &[Pruning]) -> Result<Self, &'static str> {
        let first = parts.first().ok_or("the pruning has no parts")?;
        let mut rules = Self { time: Some(first.newest), ..Self::from_middle(first.minimum) };
        for (part, pruning) in (0..).zip(parts) {
            rules.load(part, &pruning.state)?;
        }
        let divided = snapshot::parts(&rules, !rules.erased.is_empty());
        if !divided.iter().eq(parts.iter().map(|pruning| &pruning.state)) {
            return Err("what the pruning keeps is not divided or ordered as a snapshot is");
        }
        rules.known = Known::All;
        Ok(rules)
    }

    /// The snapshot that belongs here, in its parts.
    pub fn snapshot(&mut self) -> Arc<[Snapshot]> {
        let due = self.due.take().unwrap_or_else(|| snapshot::parts(self, false).into());
        Arc::clone(self.due.insert(due))
    }

    /// Takes the next published entry in. Where batches end is not published.
    ///
    /// # Errors
    /// The rule it breaks.
    pub fn admit_published(&mut self, entry: &Entry) -> Result<(), &'static str> {
        self.rotated = false;
        self.admit(entry)
    }

    /// The rules for a reader that begins at the entry `size`.
    #[must_use]
    pub fn from_middle(size: u64) -> Self {
        let known = if size == 0 { Known::All } else { Known::Nothing };
        Self { size, known, ..Self::default() }
    }

    /// The same for a reader that knows who signed what lies before, and who signs from there on.
    #[must_use]
    pub fn from_signed(size: u64, signers: VerifierKeys, in_force: VerifierKeys) -> Self {
        let outgoing = (signers != in_force).then(|| (size, Arc::new(signers)));
        Self { keys: Some(Arc::new(in_force)), outgoing, ..Self::from_middle(size) }
    }

    /// A batch begins: a verdict of the one before it permits nothing here.
    pub fn begin_batch(&mut self) {
        (self.permitted, self.rotated) = (None, false);
    }

    /// The keys that sign a checkpoint of the log as it stands: those in force, or right behind a change of keys the ones
    /// before it. None where that is not known.
    #[must_use]
    pub fn signers(&self) -> Option<&Arc<VerifierKeys>> {
        self.outgoing().or(self.keys.as_ref())
    }

    /// The keys that were in force until the last entry changed them.
    #[must_use]
    pub fn outgoing(&self) -> Option<&Arc<VerifierKeys>> {
        self.outgoing.as_ref().filter(|(size, _)| *size == self.size).map(|(_, keys)| keys)
    }

    /// Takes the next entry in, or says which rule it breaks.
    ///
    /// # Errors
    /// The rule it breaks.
    pub fn admit(&mut self, entry: &Entry) -> Result<(), &'static str> {
        self.check_place(entry)?;
        self.check_fact(entry)?;
        self.size = self.size.saturating_add(1);
        (self.version, self.time) = (entry.version, Some(entry.time));
        if !matches!(entry.fact, Fact::Snapshot(_)) {
            self.stopped = matches!(entry.fact, Fact::Stop { .. });
            self.due = None;
        }
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
        if entry.content.is_some() && entry.subject.session.is_some_and(|session| self.erased.contains(&session)) {
            return Err("it has content of a session that was erased");
        }
        if self.rotated {
            return Err("it follows a change of keys in one batch");
        }
        Ok(())
    }

    fn check_fact(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let permitted = self.permitted.take();
        match &entry.fact {
            Fact::Origin { .. } if self.size > 0 => Err("an origin is only ever first"),
            Fact::Origin { ed25519, ml_dsa_65, follows } => {
                self.follows = follows.is_some();
                self.check_origin(ed25519, ml_dsa_65)
            }
            _ if self.size == 0 => Err("the first entry is not an origin"),
            Fact::Snapshot(snapshot) => self.check_snapshot(entry, snapshot),
            _ if self.next_part.is_some() => Err("it stands between the parts of a snapshot"),
            fact if self.pruning.is_some() && !matches!(fact, Fact::Prune(_)) => {
                Err("it stands between the parts of a pruning")
            }
            Fact::Keys { ed25519, ml_dsa_65 } if self.known == Known::Nothing && self.keys.is_some() => {
                self.check_keys(ed25519, ml_dsa_65)
            }
            _ if self.known == Known::Nothing => Ok(()),
            Fact::Boot { number, clean, vault, .. } => self.check_boot(*number, *clean, *vault),
            _ if self.stopped => Err("it follows a stop and is no boot"),
            Fact::Stop { number } if *number != self.boots => Err("it stops another boot"),
            Fact::Verdict { .. } => {
                self.permitted = Permitted::by(entry);
                Ok(())
            }
            Fact::Intent { .. } => self.check_intent(entry, permitted),
            Fact::Outcome { intent, .. } => self.check_outcome(*intent, &entry.subject),
            Fact::Keys { ed25519, ml_dsa_65 } => self.check_keys(ed25519, ml_dsa_65),
            Fact::Erase { session, .. } => self.check_erase(*session, entry).and_then(|()| self.stands(entry)),
            Fact::Prune(pruning) => self.check_pruning(entry, pruning),
            Fact::Restarts { restarts } => check_restarts(restarts),
            Fact::Inherited(part) => self.check_inherited(entry, part),
            _ => self.stands(entry),
        }
    }

    /// What holds of people, messages and schedules.
    fn stands(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let origin = self.keys.as_ref().map_or("", |keys| keys.origin());
        Arc::make_mut(&mut self.standing).admit(entry, origin)
    }

    fn check_origin(&mut self, ed25519: &str, ml_dsa_65: &str) -> Result<(), &'static str> {
        let keys = VerifierKeys::parse(ed25519, ml_dsa_65).filter(VerifierKeys::is_first);
        self.keys = Some(Arc::new(keys.ok_or("its keys are none that a log begins with")?));
        Ok(())
    }

    fn check_keys(&mut self, ed25519: &str, ml_dsa_65: &str) -> Result<(), &'static str> {
        let keys = VerifierKeys::parse(ed25519, ml_dsa_65).ok_or("its keys cannot be read")?;
        let Some(signing) = &self.keys else { return Err("the first entry is not an origin") };
        if **signing == keys {
            return Ok(());
        }
        if signing.origin() != keys.origin() {
            return Err("its keys are of another log");
        }
        let (old, new) = (Retired::of(signing), Retired::of(&keys));
        if new.overlaps(&old) || self.earlier.iter().any(|used| new.overlaps(used)) {
            return Err("its keys were used before");
        }
        self.earlier.push(old);
        let old = self.keys.replace(Arc::new(keys));
        self.outgoing = old.map(|old| (self.size.saturating_add(1), old));
        self.rotated = true;
        Ok(())
    }

    /// Only what begins a log can take over what stood before.
    fn check_inherited(&mut self, entry: &Entry, part: &StandingPart) -> Result<(), &'static str> {
        if !self.follows || self.boots > 0 {
            return Err("it takes over what stood before, and the log follows none or has begun");
        }
        if entry.content.is_some() || entry.subject != Subject::default() {
            return Err("it takes over what stood before, with a subject or with content");
        }
        Arc::make_mut(&mut self.standing).inherit(entry, part)
    }

    fn check_erase(&mut self, session: SessionId, entry: &Entry) -> Result<(), &'static str> {
        if entry.subject.session != Some(session) || entry.subject.operator.is_none() || entry.content.is_some() {
            return Err("it erases another session than its subject's, or for nobody, or has content");
        }
        if Arc::make_mut(&mut self.erased).insert(session) { Ok(()) } else { Err("it erases a session again") }
    }

    fn check_pruning(&mut self, entry: &Entry, pruning: &Pruning) -> Result<(), &'static str> {
        let own = Subject { operator: entry.subject.operator, ..Subject::default() };
        if entry.content.is_some() || own.operator.is_none() || entry.subject != own {
            return Err("it is a pruning for nobody, or with another subject or with content");
        }
        let begun = self.pruning.take();
        let part = begun.as_ref().map_or(0, |begun| begun.next_part);
        if pruning.state.part != part || part >= pruning.state.of {
            return Err("it is another part of a pruning than the one that comes next");
        }
        if begun.as_ref().is_some_and(|begun| begun.pruning.terms() != pruning.terms()) {
            return Err("it is a part of another pruning");
        }
        self.check_terms(entry.time, pruning)?;
        let first = begun.map_or(entry.seq, |begun| begun.first);
        let next_part = part.saturating_add(1);
        if next_part < pruning.state.of {
            self.pruning = Some(Begun { first, next_part, pruning: Box::new(pruning.clone()) });
        } else {
            self.pruned = Some(Minimum { index: pruning.minimum, record: first });
        }
        Ok(())
    }

    /// What a pruning that is recorded now must keep to, as far as it alone shows it.
    fn check_terms(&self, time: Timestamp, pruning: &Pruning) -> Result<(), &'static str> {
        let Pruning { minimum, keep_seconds, floor, newest, size, .. } = *pruning;
        if minimum == 0 || !minimum.is_multiple_of(WIDTH) {
            return Err("a log begins at a multiple of 256");
        }
        if self.pruned.is_some_and(|pruned| minimum <= pruned.index) {
            return Err("the log begins there or behind it already");
        }
        if minimum > size || size > self.size {
            return Err("it is of more entries than were published");
        }
        if keep_seconds < Retention::LEAST.seconds() {
            return Err("it keeps entries for less than 180 days");
        }
        let kept = |since: Timestamp| time.0.saturating_sub(since.0) >= retention::micros(keep_seconds);
        if newest > floor || !kept(floor) {
            return Err("what goes is younger than the entries that must be kept");
        }
        Ok(())
    }

    fn check_intent(&mut self, entry: &Entry, permitted: Option<Permitted>) -> Result<(), &'static str> {
        if permitted.is_none() || permitted != Permitted::wanted_by(entry) {
            return Err("the entry before it is not a verdict that permits it");
        }
        if let Fact::Intent { reserved, .. } = entry.fact {
            let open = Unsettled { intent: entry.seq, subject: entry.subject.clone(), reserved };
            snapshot::check_item(cbor::to_vec(&open).len())?;
            self.intents.insert(entry.seq, OpenIntent { subject: open.subject, reserved });
        }
        Ok(())
    }

    fn check_boot(&mut self, number: u64, clean: bool, vault: Option<Digest>) -> Result<(), &'static str> {
        if number != self.boots.saturating_add(1) {
            return Err("its number is not the next");
        }
        // The first boot of a log follows nothing, so nothing before it was unclean.
        if clean != (self.stopped || self.boots == 0) {
            return Err("it is wrong about whether the boot before it stopped cleanly");
        }
        if self.vault.is_some() && vault != self.vault {
            return Err("it is under another vault key than the boot before it");
        }
        (self.boots, self.vault) = (number, vault);
        Ok(())
    }

    fn check_snapshot(&mut self, entry: &Entry, snapshot: &Snapshot) -> Result<(), &'static str> {
        if entry.content.is_some() || entry.subject != Subject::default() {
            return Err("it is a snapshot with a subject or with content");
        }
        if self.outgoing().is_some() {
            return Err("it is a snapshot right behind a change of keys");
        }
        let part = self.next_part.unwrap_or(0);
        match self.known {
            // Parts of a snapshot that began before this reader did.
            Known::Nothing if snapshot.part > 0 => return Ok(()),
            Known::Nothing | Known::Some => self.load(part, snapshot)?,
            Known::All => {
                if part == 0 && !snapshot.erased.is_empty() {
                    self.due = Some(snapshot::parts(self, true).into());
                }
                if self.snapshot().get(part as usize) != Some(snapshot) {
                    return Err("it is not a snapshot of the entries before it");
                }
            }
        }
        let next = part.saturating_add(1);
        self.next_part = (next < snapshot.of).then_some(next);
        if self.next_part.is_none() {
            self.known = Known::All;
        }
        Ok(())
    }

    /// Takes over what a part of a snapshot says.
    fn load(&mut self, part: u32, snapshot: &Snapshot) -> Result<(), &'static str> {
        let Snapshot { part: found, of, boots, stopped, used, keys, open, earlier, erased, pruned, standing, vault } =
            snapshot;
        if *found != part || found >= of {
            return Err("it is another part of a snapshot than the one that comes next");
        }
        if part == 0 {
            self.intents.clear();
            self.earlier.clear();
            self.erased = Arc::default();
            self.standing = Arc::default();
            let keys = VerifierKeys::parse(&keys.ed25519, &keys.ml_dsa_65).ok_or("its keys cannot be read")?;
            if self.keys.as_ref().is_some_and(|known| **known != keys) {
                return Err("it is a snapshot that names other keys than those in force");
            }
            self.keys = Some(Arc::new(keys));
        }
        (self.boots, self.stopped, self.pruned, self.known) = (*boots, *stopped, *pruned, Known::Some);
        (self.used, self.vault) = (Used::from_last(*used), *vault);
        self.earlier.extend(earlier);
        Arc::make_mut(&mut self.erased).extend(erased);
        if let Some(standing) = standing {
            Arc::make_mut(&mut self.standing).load(standing);
        }
        for Unsettled { intent, subject, reserved } in open {
            self.intents.insert(*intent, OpenIntent { subject: subject.clone(), reserved: *reserved });
        }
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

/// PIDs only grow, from one start to the next as from one incarnation to the next.
fn check_restarts(restarts: &[Restart]) -> Result<(), &'static str> {
    if restarts.is_empty() {
        return Err("it lists no restart");
    }
    let grows = |one: &Restart| one.started.is_none() || one.exited < one.started;
    if !restarts.iter().all(grows) || !restarts.iter().filter_map(|one| one.started).is_sorted_by(|a, b| a < b) {
        return Err("it lists a start whose PID is not a new one");
    }
    Ok(())
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
            Fact::Restarts { restarts } => {
                let pids = restarts.iter().flat_map(|one| [one.exited, one.started]);
                self.pid = self.pid.max(pids.flatten().max());
            }
            Fact::TurnEnd { message, .. } | Fact::Dead { message, .. } => {
                self.message = self.message.max(Some(*message));
            }
            _ => {}
        }
    }

    fn from_last(LastNumbers { pid, call, message, ticket }: LastNumbers) -> Self {
        let used = |number| Some(number).filter(|number| *number > 0);
        Self {
            pid: used(pid).map(Pid),
            call: used(call).map(CallId),
            message: used(message).map(MessageId),
            ticket: used(ticket).map(TicketId),
        }
    }

    /// The same, as the record has them.
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

    /// Keys of the log that begins under the keys of 7. Nothing here is signed.
    fn keys(seed: u8) -> VerifierKeys {
        let digest = Digest::of(&[7; 32]).to_string();
        let (name, _) = digest.split_at(32);
        VerifierKeys::new(&format!("ephor/{name}"), &[seed; 32], &[seed; 1952]).expect("keys")
    }

    #[test]
    fn who_begins_under_known_keys_takes_others_only_from_a_change() {
        let (known, others) = (keys(1), keys(2));
        let snapshot = |keys: &VerifierKeys| {
            let of = Rules { keys: Some(Arc::new(keys.clone())), ..Rules::default() };
            Entry { seq: Seq(9), ..entry(2, 9, Fact::Snapshot(snapshot::parts(&of, false).remove(0))) }
        };
        let begin = || Rules::from_signed(9, known.clone(), known.clone());
        assert_eq!(begin().admit(&snapshot(&known)), Ok(()));
        assert!(begin().admit(&snapshot(&others)).is_err_and(|rule| rule.contains("other keys")));
        let change = |keys: &VerifierKeys| {
            let (ed25519, ml_dsa_65) = (keys.ed25519().to_owned(), keys.ml_dsa_65().to_owned());
            entry(2, 9, Fact::Keys { ed25519, ml_dsa_65 })
        };
        let mut rules = begin();
        assert_eq!(rules.admit(&change(&others)), Ok(()));
        // Those before must have signed that.
        assert!(rules.signers().is_some_and(|signers| **signers == known));
        assert!(rules.keys.is_some_and(|keys| *keys == others));
    }

    fn origin(version: u16) -> Entry {
        let keys = keys(7);
        let (ed25519, ml_dsa_65) = (keys.ed25519().to_owned(), keys.ml_dsa_65().to_owned());
        entry(version, 0, Fact::Origin { ed25519, ml_dsa_65, follows: None })
    }

    #[test]
    fn versions_of_entries_never_go_back() {
        let boot = |version| {
            entry(
                version,
                1,
                Fact::Boot { number: 1, version: String::new(), clean: true, trimmed_bytes: 0, vault: None },
            )
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
