//! What stands until it is taken back: holds on seats, dead letters, schedules, answers that are owed, operators, the law
//! that they enacted, and the answers of theirs that are used again.
//!
//! The entries alone say what stands, and a snapshot repeats it, so that neither a reboot nor the end of old entries loses
//! it. A replay is the acceptance of a message that names the dead letter it comes from, and so is a firing: one entry does
//! both, and there is no moment at which a message is both dead and accepted again, or a schedule due again.

use std::{collections::BTreeMap, ops::Bound};

use ephor_base::{Decision, MessageId, Seat, Seq, SessionId, Timestamp, cbor};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{
    entry::Entry,
    fact::{Fact, flag, is_false},
    judgment::{self, Always, Judgment, Reused},
    operators::{Credential, Enactment, Operators, Role},
    snapshot::check_item,
};

/// What is done to processes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Signal {
    /// Nothing new begins until it is resumed; what is under way ends.
    #[n(0)]
    Suspend,
    /// It may go on: ends what an operator suspended or stopped.
    #[n(1)]
    Resume,
    /// What is under way is cancelled, and nothing runs until it is resumed.
    #[n(2)]
    Stop,
    /// It ends at once; its supervisor decides what follows.
    #[n(3)]
    Kill,
}

/// Why a signal was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// An operator wants it.
    #[n(0)]
    Operator,
    /// The budget of the seat is spent. Only a suspension has this cause, and only another limit ends it.
    #[n(1)]
    Budget,
    /// The seat is gone for good. Only a resumption has this cause; it ends every hold at and below the seat.
    #[n(2)]
    Gone,
}

/// What holds a seat.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum HoldKind {
    /// An operator suspended it.
    #[n(0)]
    Suspended,
    /// Its budget is spent.
    #[n(1)]
    Spent,
    /// An operator stopped it.
    #[n(2)]
    Stopped,
}

/// A hold on a seat.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Hold {
    /// Which seat.
    #[n(0)]
    pub seat: Seat,
    /// What holds it.
    #[n(1)]
    pub kind: HoldKind,
    /// Whether it holds everything below as well.
    #[n(2)]
    pub tree: bool,
}

/// Why a message was accepted that no person sent just now.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Because {
    /// An operator replayed this dead letter, which is none any more.
    #[n(0)]
    Replay(#[n(0)] MessageId),
    /// A schedule was due.
    #[n(1)]
    Fire {
        /// Its name.
        #[n(0)]
        name: String,
        /// The instant it was due.
        #[n(1)]
        at: Timestamp,
    },
}

/// Why a message could not be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Undelivered {
    /// The mailbox was full.
    #[n(0)]
    Full,
    /// No process was there to take it.
    #[n(1)]
    Nobody,
    /// Its agent crashed more often than its supervisor allows.
    #[n(2)]
    GaveUp,
    /// Its agent was stopped.
    #[n(3)]
    Stopped,
    /// The node ended before it was answered.
    #[n(4)]
    NodeEnded,
}

/// A message that could not be delivered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct DeadLetter {
    /// The message.
    #[n(0)]
    pub message: MessageId,
    /// Where its acceptance stands, with its content.
    #[n(1)]
    pub accepted: Seq,
    /// The conversation it was for.
    #[n(2)]
    pub session: SessionId,
    /// Why it could not.
    #[n(3)]
    pub why: Undelivered,
}

/// What becomes of instants that pass while they cannot be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// The latest of them fires, once.
    #[n(0)]
    Once,
    /// They are passed over.
    #[n(1)]
    Skip,
}

/// A schedule, and how far it has come.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Scheduled {
    /// Its name.
    #[n(0)]
    pub name: String,
    /// When: a cron expression of five fields.
    #[n(1)]
    pub cron: String,
    /// The time zone it is read in, as the IANA names it.
    #[n(2)]
    pub zone: String,
    /// What becomes of missed instants.
    #[n(3)]
    pub missed: Missed,
    /// Where it was made, with its content.
    #[n(4)]
    pub made: Seq,
    /// When it was made.
    #[n(5)]
    pub since: Timestamp,
    /// The conversation under whose key its content is sealed.
    #[n(6)]
    pub session: SessionId,
    /// The latest instant that fired or was passed over.
    #[n(7)]
    pub last: Option<Timestamp>,
    /// Whether it is withheld, since the operator who made it may not send anything any more.
    #[cbor(n(8), with = "flag", has_nil)]
    #[serde(default, skip_serializing_if = "is_false")]
    pub withheld: bool,
}

/// A message that is owed an answer, and has neither been answered nor died.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Unanswered {
    /// The message.
    #[n(0)]
    pub message: MessageId,
    /// Where its acceptance stands.
    #[n(1)]
    pub accepted: Seq,
    /// The conversation.
    #[n(2)]
    pub session: SessionId,
}

/// The bytes of what one entry takes over from the log before.
const HERITAGE_BYTES: usize = 48 << 10;

/// Which seats are held, and by what: each kind with whether it holds everything below as well. A seat without a hold is not
/// in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Holds(BTreeMap<Seat, BTreeMap<HoldKind, bool>>);

/// Everything that stands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Standing {
    holds: Holds,
    dead: BTreeMap<MessageId, DeadLetter>,
    schedules: BTreeMap<String, Scheduled>,
    unanswered: BTreeMap<MessageId, Unanswered>,
    operators: Operators,
    reused: BTreeMap<Seq, Reused>,
}

/// A part of what stands, as a snapshot has it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Encode, Decode)]
pub struct StandingPart {
    /// Holds, by seat and kind.
    #[n(0)]
    pub holds: Vec<Hold>,
    /// Dead letters, by message.
    #[n(1)]
    pub dead: Vec<DeadLetter>,
    /// Schedules, by name.
    #[n(2)]
    pub schedules: Vec<Scheduled>,
    /// Messages that are owed an answer, by number.
    #[n(3)]
    pub unanswered: Vec<Unanswered>,
    /// Operators, by id, with those who were dismissed. Nothing if there are none.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operators: Option<Vec<Credential>>,
    /// The constitution that an owner put in force.
    #[n(6)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub law: Option<Enactment>,
    /// Answers that are used again, by their entries. Nothing if there are none.
    #[n(7)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reused: Option<Vec<Reused>>,
}

/// One thing that stands.
pub(crate) enum Item {
    Hold(Hold),
    Dead(DeadLetter),
    Schedule(Scheduled),
    Unanswered(Unanswered),
    Operator(Credential),
    Law(Enactment),
    Reused(Box<Reused>),
}

/// Whether `seat` is `above` or lies below it.
#[must_use]
pub fn is_at_or_below(seat: &Seat, above: &Seat) -> bool {
    seat.as_str().strip_prefix(above.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl Holds {
    /// The holds, by seat and kind.
    pub fn iter(&self) -> impl Iterator<Item = Hold> {
        let of = |(seat, kinds): (&Seat, &BTreeMap<HoldKind, bool>)| {
            let hold = |(kind, tree): (&HoldKind, &bool)| Hold { seat: seat.clone(), kind: *kind, tree: *tree };
            kinds.iter().map(hold).collect::<Vec<_>>()
        };
        self.0.iter().flat_map(of)
    }

    /// What holds `seat`: it itself, or with its tree a seat above it. Of several the one that holds hardest. Looks as often as
    /// the seat is deep, however many are held.
    #[must_use]
    pub fn on(&self, seat: &Seat) -> Option<HoldKind> {
        // Most of the time nothing is held at all.
        if self.0.is_empty() {
            return None;
        }
        let path = seat.as_str();
        let above = path.match_indices('/').filter_map(|(end, _)| path.get(..end));
        let held =
            above.chain([path]).filter_map(|held| self.0.get(held).map(|kinds| (held.len() == path.len(), kinds)));
        let kinds = held.flat_map(|(is_itself, kinds)| {
            kinds.iter().filter(move |(_, tree)| is_itself || **tree).map(|(kind, _)| *kind)
        });
        kinds.max_by_key(|kind| match kind {
            HoldKind::Spent => 0,
            HoldKind::Suspended => 1,
            HoldKind::Stopped => 2,
        })
    }

    /// Whether `seat` or a seat below it is held by itself.
    #[must_use]
    pub fn any_at_or_below(&self, seat: &Seat) -> bool {
        let from = self.0.range::<str, _>((Bound::Included(seat.as_str()), Bound::Unbounded));
        let mut from = from.map(|(held, _)| held).take_while(|held| held.as_str().starts_with(seat.as_str()));
        from.any(|held| is_at_or_below(held, seat))
    }

    /// Takes a signal in.
    ///
    /// # Errors
    /// The rule it breaks: a cause that such a signal does not have. Then nothing changed.
    pub fn apply(&mut self, signal: Signal, seat: &Seat, tree: bool, cause: Cause) -> Result<(), &'static str> {
        match (signal, cause) {
            (Signal::Suspend, Cause::Operator) => self.hold(seat, HoldKind::Suspended, tree),
            (Signal::Suspend, Cause::Budget) => self.hold(seat, HoldKind::Spent, tree),
            (Signal::Stop, Cause::Operator) => self.hold(seat, HoldKind::Stopped, tree),
            (Signal::Kill, Cause::Operator) => {}
            (Signal::Resume, Cause::Operator) => self.0.retain(|held, kinds| {
                if held == seat || (tree && is_at_or_below(held, seat)) {
                    kinds.retain(|kind, _| *kind == HoldKind::Spent);
                }
                !kinds.is_empty()
            }),
            (Signal::Resume, Cause::Gone) => self.0.retain(|held, _| !is_at_or_below(held, seat)),
            _ => return Err("its cause is not one that such a signal has"),
        }
        Ok(())
    }

    /// The seat was given another limit.
    pub fn raised(&mut self, seat: &Seat) {
        if let Some(kinds) = self.0.get_mut(seat) {
            kinds.remove(&HoldKind::Spent);
            if kinds.is_empty() {
                self.0.remove(seat);
            }
        }
    }

    fn hold(&mut self, seat: &Seat, kind: HoldKind, tree: bool) {
        // A narrower signal does not take a wider hold back.
        let held = self.0.entry(seat.clone()).or_default().entry(kind).or_default();
        *held = *held || tree;
    }
}

impl Standing {
    /// The holds.
    #[must_use]
    pub const fn holds(&self) -> &Holds {
        &self.holds
    }

    /// The dead letters, by message.
    pub fn dead(&self) -> impl Iterator<Item = &DeadLetter> {
        self.dead.values()
    }

    /// The schedules, by name.
    pub fn schedules(&self) -> impl Iterator<Item = &Scheduled> {
        self.schedules.values()
    }

    /// The messages that are owed an answer, by number.
    pub fn unanswered(&self) -> impl Iterator<Item = &Unanswered> {
        self.unanswered.values()
    }

    /// Who may operate the node.
    #[must_use]
    pub const fn operators(&self) -> &Operators {
        &self.operators
    }

    /// The answers that are used again, by their entries. One whose time is up stands until another comes, and counts for nothing.
    pub fn reused(&self) -> impl Iterator<Item = &Reused> {
        self.reused.values()
    }

    /// Takes an entry of the log of this origin in, or says which rule it breaks; then nothing changed.
    pub(crate) fn admit(&mut self, entry: &Entry, origin: &str) -> Result<(), &'static str> {
        match &entry.fact {
            Fact::Enrolled { .. } | Fact::Ranked { .. } | Fact::Dismissed { .. } | Fact::Enacted { .. } => {
                self.operators.admit(entry, origin)
            }
            Fact::Message { id, because, owed, .. } => self.accept(entry, *id, because.as_ref(), *owed),
            Fact::TurnEnd { message, .. } => self.answer(*message),
            Fact::Signal { signal, tree, cause, .. } => self.signal(entry, *signal, *tree, *cause),
            Fact::Limit { .. } => self.limit(entry),
            Fact::Dead { message, accepted, why } => self.die(entry, *message, *accepted, *why),
            Fact::Buried { message, .. } => self.bury(entry, *message),
            Fact::Ruling { always: Some(always), .. } => self.reuse(entry, always),
            Fact::Revoked { ruling, .. } => {
                self.judged(entry, origin)?;
                self.reused.remove(ruling).map(drop).ok_or("it revokes what is not used again")
            }
            Fact::Lifted { .. } => self.judged(entry, origin),
            Fact::Appointed(agent) if agent.is_said_by(entry) => Ok(()),
            Fact::Appointed(_) => {
                Err("it says what an agent is in no session or seat, for somebody, in secret, or with no p0")
            }
            Fact::Schedule { .. } => self.schedule(entry),
            Fact::Skipped { name, at } => self.pass(name, *at),
            Fact::Unscheduled { name } => self.unschedule(entry, name),
            Fact::Withheld { name } => self.withhold(entry, name),
            Fact::Erase { session, .. } => {
                // What cannot be read any more can be neither replayed nor sent.
                self.dead.retain(|_, letter| letter.session != *session);
                self.schedules.retain(|_, schedule| schedule.session != *session);
                self.reused.retain(|_, one| one.session != *session);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// An answer is to be used again. Those whose time is up go.
    fn reuse(&mut self, entry: &Entry, always: &Always) -> Result<(), &'static str> {
        let one = Reused::of(entry.seq, &entry.subject, &entry.fact);
        let one = one.ok_or("it is used again, and answers no ticket, or is nobody's, or of no law")?;
        if self.operators.role(one.operator) < Some(Role::Approver) {
            return Err("it is used again, and is no approver's");
        }
        if always.until <= entry.time || always.until.since(entry.time) > judgment::LONGEST {
            return Err("it is used again for no time, or for longer than 90 days");
        }
        if one.decision == Decision::Defer {
            return Err("it is used again, and decides nothing");
        }
        check_item(cbor::to_vec(&one).len())?;
        self.reused.retain(|_, one| one.always.until > entry.time);
        self.reused.insert(entry.seq, one);
        Ok(())
    }

    /// A judgment bears the signature of an approver in office.
    fn judged(&self, entry: &Entry, origin: &str) -> Result<(), &'static str> {
        let judgment = Judgment::of(&entry.subject, &entry.fact);
        let (judgment, note, signature) = judgment.ok_or("it judges no session")?;
        let approver = entry.subject.operator.ok_or("it is a judgment of nobody")?;
        let message = judgment.signed_bytes(origin, note);
        let may = self.operators.role(approver) >= Some(Role::Approver);
        if may && self.operators.verify(approver, &message, signature) {
            Ok(())
        } else {
            Err("it is a judgment that no approver in office has signed for this log")
        }
    }

    fn accept(
        &mut self,
        entry: &Entry,
        id: MessageId,
        because: Option<&Because>,
        owed: bool,
    ) -> Result<(), &'static str> {
        let session = entry.subject.session;
        if owed && (session.is_none() || self.unanswered.contains_key(&id)) {
            return Err("it is owed an answer in no session, or is owed one already");
        }
        match because {
            None => {}
            Some(Because::Replay(dead)) => {
                self.dead.remove(dead).ok_or("it replays what is no dead letter")?;
            }
            Some(Because::Fire { name, at }) => {
                self.pass(name, *at)?;
                // The operator who made it may send again.
                self.schedules.get_mut(name).into_iter().for_each(|schedule| schedule.withheld = false);
            }
        }
        if let Some(session) = session.filter(|_| owed) {
            self.unanswered.insert(id, Unanswered { message: id, accepted: entry.seq, session });
        }
        Ok(())
    }

    fn answer(&mut self, message: MessageId) -> Result<(), &'static str> {
        if self.dead.contains_key(&message) {
            return Err("it answers a dead letter");
        }
        self.unanswered.remove(&message);
        Ok(())
    }

    fn signal(&mut self, entry: &Entry, signal: Signal, tree: bool, cause: Cause) -> Result<(), &'static str> {
        let subject = &entry.subject;
        let Some(seat) = &subject.seat else { return Err("it signals no seat") };
        if cause == Cause::Operator && subject.operator.is_none() {
            return Err("it is an operator's act, and names none");
        }
        check_item(seat.as_str().len())?;
        self.holds.apply(signal, seat, tree, cause)
    }

    fn limit(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let subject = &entry.subject;
        let (Some(seat), Some(_)) = (&subject.seat, subject.operator) else {
            return Err("it limits no seat, or for nobody");
        };
        self.holds.raised(seat);
        Ok(())
    }

    fn die(&mut self, entry: &Entry, message: MessageId, accepted: Seq, why: Undelivered) -> Result<(), &'static str> {
        let Some(Unanswered { session, .. }) = self.unanswered.get(&message).copied() else {
            return Err("the message is owed no answer: it was answered, or died before");
        };
        if entry.subject.session != Some(session)
            || self.unanswered.get(&message).is_none_or(|one| one.accepted != accepted)
        {
            return Err("the dead letter is of another session or was accepted elsewhere");
        }
        self.unanswered.remove(&message);
        self.dead.insert(message, DeadLetter { message, accepted, session, why });
        Ok(())
    }

    fn bury(&mut self, entry: &Entry, message: MessageId) -> Result<(), &'static str> {
        entry.subject.operator.ok_or("it buries a dead letter for nobody")?;
        self.dead.remove(&message).map(drop).ok_or("it buries what is no dead letter")
    }

    fn schedule(&mut self, entry: &Entry) -> Result<(), &'static str> {
        let Fact::Schedule { name, cron, zone, missed } = &entry.fact else { return Ok(()) };
        let (Some(session), Some(_)) = (entry.subject.session, entry.subject.operator) else {
            return Err("it schedules without a session, or for nobody");
        };
        if self.schedules.contains_key(name) {
            return Err("there is a schedule of that name");
        }
        let made = Scheduled {
            name: name.clone(),
            cron: cron.clone(),
            zone: zone.clone(),
            missed: *missed,
            made: entry.seq,
            since: entry.time,
            session,
            last: None,
            withheld: false,
        };
        check_item(cbor::to_vec(&made).len())?;
        self.schedules.insert(name.clone(), made);
        Ok(())
    }

    /// An instant is used up; it and those before it never come again.
    fn pass(&mut self, name: &str, at: Timestamp) -> Result<(), &'static str> {
        let schedule = self.schedules.get_mut(name).ok_or("there is no schedule of that name")?;
        if schedule.last.is_some_and(|last| at <= last) {
            return Err("the schedule has come past that instant before");
        }
        schedule.last = Some(at);
        Ok(())
    }

    fn withhold(&mut self, entry: &Entry, name: &str) -> Result<(), &'static str> {
        let operator = entry.subject.operator.ok_or("it withholds a schedule of nobody")?;
        if self.operators.role(operator) >= Some(Role::Operator) {
            return Err("it withholds a schedule of somebody who may send");
        }
        let schedule = self.schedules.get_mut(name).filter(|schedule| !schedule.withheld);
        schedule.ok_or("there is no schedule of that name, or it is withheld already")?.withheld = true;
        Ok(())
    }

    /// What of it stands on in a log that follows this one: operators, the law, and what they hold. A budget that is spent ends with
    /// its session. Dead letters and schedules are sealed under keys of sessions of this log, and stay with it.
    pub fn heritage(&self) -> Vec<StandingPart> {
        let (mut parts, mut part, mut bytes) = (Vec::new(), StandingPart::default(), 0usize);
        let passes_on = |item: &Item| match item {
            Item::Hold(hold) => hold.kind != HoldKind::Spent,
            Item::Operator(_) | Item::Law(_) => true,
            _ => false,
        };
        for item in self.items().filter(passes_on) {
            bytes = bytes.saturating_add(item.length());
            if bytes > HERITAGE_BYTES {
                bytes = item.length();
                parts.push(std::mem::take(&mut part));
            }
            part.push(item);
        }
        parts.push(part);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// Takes over what stood on the log before, or says which rule it breaks. Each change counts as made by this entry.
    pub(crate) fn inherit(&mut self, entry: &Entry, part: &StandingPart) -> Result<(), &'static str> {
        let StandingPart { holds, operators, law, .. } = part;
        let own =
            StandingPart { holds: holds.clone(), operators: operators.clone(), law: *law, ..StandingPart::default() };
        if own != *part || own.is_empty() || holds.iter().any(|hold| hold.kind == HoldKind::Spent) {
            return Err("it takes over what ends with its log, or nothing");
        }
        self.operators.inherit(operators.as_deref().unwrap_or_default(), *law, entry.seq)?;
        for Hold { seat, kind, tree } in holds {
            self.holds.hold(seat, *kind, *tree);
        }
        Ok(())
    }

    fn unschedule(&mut self, entry: &Entry, name: &str) -> Result<(), &'static str> {
        entry.subject.operator.ok_or("it ends a schedule for nobody")?;
        self.schedules.remove(name).map(drop).ok_or("there is no schedule of that name")
    }

    /// Everything a snapshot repeats, in its order.
    pub(crate) fn items(&self) -> impl Iterator<Item = Item> {
        let dead = self.dead.values().map(|letter| Item::Dead(*letter));
        let schedules = self.schedules.values().cloned().map(Item::Schedule);
        let unanswered = self.unanswered.values().map(|one| Item::Unanswered(*one));
        let operators = self.operators.credentials().cloned().map(Item::Operator);
        let law = self.operators.law().map(Item::Law);
        let reused = self.reused.values().map(|one| Item::Reused(Box::new(one.clone())));
        let holds = self.holds.iter().map(Item::Hold);
        holds.chain(dead).chain(schedules).chain(unanswered).chain(operators).chain(law).chain(reused)
    }

    /// Takes a part of a snapshot in.
    pub(crate) fn load(&mut self, part: &StandingPart) {
        let StandingPart { holds, dead, schedules, unanswered, operators, law, reused } = part;
        for Hold { seat, kind, tree } in holds {
            self.holds.0.entry(seat.clone()).or_default().insert(*kind, *tree);
        }
        self.dead.extend(dead.iter().map(|letter| (letter.message, *letter)));
        self.schedules.extend(schedules.iter().map(|schedule| (schedule.name.clone(), schedule.clone())));
        self.unanswered.extend(unanswered.iter().map(|one| (one.message, *one)));
        self.operators.load(operators.as_deref().unwrap_or_default(), *law);
        self.reused.extend(reused.iter().flatten().map(|one| (one.ruling, one.clone())));
    }
}

impl StandingPart {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn push(&mut self, item: Item) {
        match item {
            Item::Hold(hold) => self.holds.push(hold),
            Item::Dead(letter) => self.dead.push(letter),
            Item::Schedule(schedule) => self.schedules.push(schedule),
            Item::Unanswered(one) => self.unanswered.push(one),
            Item::Operator(one) => self.operators.get_or_insert_default().push(one),
            Item::Law(law) => self.law = Some(law),
            Item::Reused(one) => self.reused.get_or_insert_default().push(*one),
        }
    }
}

impl Item {
    /// How many bytes it takes in a snapshot.
    pub(crate) fn length(&self) -> usize {
        let bytes = match self {
            Self::Hold(hold) => cbor::to_vec(hold),
            Self::Dead(letter) => cbor::to_vec(letter),
            Self::Schedule(schedule) => cbor::to_vec(schedule),
            Self::Unanswered(one) => cbor::to_vec(one),
            Self::Operator(one) => cbor::to_vec(one),
            Self::Law(law) => cbor::to_vec(law),
            Self::Reused(one) => cbor::to_vec(one),
        };
        bytes.len()
    }
}
