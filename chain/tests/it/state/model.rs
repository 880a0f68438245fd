//! What projections must answer, worked out from the entries in the plainest way, and histories to work it out for.

use std::{cell::Cell, collections::BTreeSet};

use ephor_base::{
    ActionKind, Budget, CallId, Decision, Digest, EffectVector, EndReason, MessageId, OperatorId, Pid, Receipt, Seat,
    Seq, SessionId, TicketId, Timestamp, TurnReport, Verdict,
};
use ephor_chain::{
    Private, ReadError, Stored,
    state::{
        Broken, Day, EXITS, List, Moment, Order, Page, SeatLife, Session, Source, Ticket, TicketAnswer, Unsettled,
        Verdicts, View, Waiting, day_of,
    },
};
use ephor_record::{Entry, Fact, RulingOn, Subject};
use ephor_tlog::{Head, Tree};

pub(super) const DAY: u64 = 86_400_000_000;
const START: u64 = 1_795_226_899_000_000;

/// A chain in memory.
#[derive(Clone)]
pub(super) struct History {
    pub(super) entries: Vec<Stored>,
    /// How many entries were read so far.
    pub(super) read: Cell<u64>,
    /// While it is made: intents without an outcome, and the tickets.
    open: Vec<Seq>,
    tickets: u64,
}

impl Source for History {
    fn head(&self) -> Head {
        let mut tree = Tree::new();
        self.entries.iter().for_each(|stored| tree.push(stored.receipt.leaf));
        Head { size: tree.size(), root: tree.root() }
    }

    fn entries(&self, from: Seq) -> Box<dyn Iterator<Item = Result<Stored, ReadError>> + '_> {
        let rest = self.entries.iter().skip(usize::try_from(from.0).unwrap());
        Box::new(rest.cloned().map(Ok).inspect(|_| self.read.set(self.read.get() + 1)))
    }
}

/// One step of a random history: what happens, to whom, and how much later.
pub(super) type Step = (u8, u8, u8, u16);

impl History {
    pub(super) fn new(steps: &[Step]) -> Self {
        let mut history = Self { entries: Vec::new(), read: Cell::new(0), open: Vec::new(), tickets: 0 };
        let mut time = START;
        for step in steps {
            time += u64::from(step.3) * 4_000_000;
            history.take(*step, Timestamp(time));
        }
        history
    }

    /// A history of a certain length, always the same for the same seed.
    pub(super) fn of(length: usize, seed: u64) -> Self {
        let random = crate::common::Seeded::new(seed);
        let step = |_| {
            let [kind, who, call, low, high, ..] = random.next().to_le_bytes();
            (kind, who, call, u16::from_le_bytes([low, high]) / 64)
        };
        Self::new(&(0..length).map(step).collect::<Vec<_>>())
    }

    /// The first entries of it.
    pub(super) fn up_to(&self, size: usize) -> Self {
        Self { entries: self.entries[..size].to_vec(), read: Cell::new(0), ..self.clone() }
    }

    fn take(&mut self, (kind, who, call, _): Step, time: Timestamp) {
        let (who, call) = (u64::from(who % 5), u64::from(call % 40));
        let seat = Seat::root("node").child(&"a".repeat(usize::try_from(who).unwrap() + 1));
        let mut subject = Subject {
            session: Some(SessionId([u8::try_from(who).unwrap(); 16])),
            operator: Some(OperatorId([5; 16])).filter(|_| kind % 2 == 0),
            seat: Some(seat).filter(|_| call % 3 > 0),
            pid: Some(Pid(who * 100 + call % 7)),
            call: Some(CallId(call)),
        };
        let fact = self.fact(kind, who, call, time);
        if matches!(fact, Fact::Boot { .. } | Fact::Lease { .. }) {
            subject = Subject::default();
        }
        let seq = Seq(self.entries.len() as u64);
        let entry = Entry { version: 1, seq, time, subject, fact, content: None };
        let receipt = Receipt { seq, leaf: ephor_tlog::tree::leaf_hash(&entry.to_bytes()) };
        self.entries.push(Stored { entry, receipt, content: Private::None });
    }

    fn fact(&mut self, kind: u8, who: u64, call: u64, time: Timestamp) -> Fact {
        let digest = Digest::of(&[kind]);
        let decision = [Decision::Permit, Decision::Defer, Decision::Deny][usize::try_from(call % 3).unwrap()];
        let action = [ActionKind::Model, ActionKind::Tool, ActionKind::Reply][usize::try_from(who % 3).unwrap()];
        let budget = Budget { tokens: call, micro_usd: who, wall_ms: 1, tool_calls: 1, ..Budget::ZERO };
        let verdict = Verdict { decision, reasons: Vec::new(), effects: EffectVector::NONE, policy: digest };
        let (attempt, arguments) = (1, digest);
        match kind % 13 {
            0 => Fact::Boot { number: 1, version: "0".into(), clean: true, trimmed_bytes: 0, vault: None },
            1 => Fact::Lease { secret: format!("s{call}") },
            2 => Fact::Message {
                id: MessageId(call),
                spans: Vec::new(),
                from: None,
                because: None,
                owed: false,
                scope: None,
                offset: None,
            },
            3 => Fact::Spawn { parent: None, incarnation: call % 4 },
            4 => Fact::Exit {
                reason: ["normal", "panicked", "error", "killed"][usize::try_from(call % 4).unwrap()].into(),
            },
            5 => Fact::Verdict { action, target: "t".into(), attempt, arguments, verdict, ruling: None, grounds: None },
            6 | 7 => {
                self.open.push(Seq(self.entries.len() as u64));
                Fact::Intent { action, attempt, verdict: Seq(0), arguments, reserved: budget }
            }
            8 => Fact::Outcome { intent: self.end_an_intent(call), end: "done".into(), used: budget },
            9 => {
                self.tickets += 1;
                let id = TicketId(self.tickets);
                Fact::Ticket {
                    id,
                    target: format!("t{call}"),
                    arguments,
                    policy: digest,
                    expires: Timestamp(time.0 + 1),
                    quorum: Some(u32::try_from(call % 3).unwrap()).filter(|quorum| *quorum > 1),
                    registration: None,
                }
            }
            10 => {
                let how = if who.is_multiple_of(2) { "answered" } else { "expired" };
                let on = if call.is_multiple_of(5) {
                    RulingOn::Tools(Vec::new())
                } else {
                    RulingOn::Ticket(TicketId(call % 9))
                };
                Fact::Ruling {
                    on,
                    decision,
                    signature: Vec::new(),
                    how: how.into(),
                    policy: None,
                    note: None,
                    always: None,
                }
            }
            11 => Fact::Erase {
                session: SessionId([u8::try_from(who).unwrap(); 16]),
                derived: Vec::new(),
                reason: String::new(),
            },
            _ => Fact::TurnEnd { message: MessageId(call), end: EndReason::Replied, report: TurnReport::default() },
        }
    }

    /// Ends one that is open, if any is.
    fn end_an_intent(&mut self, call: u64) -> Seq {
        let at = usize::try_from(call).unwrap() % self.open.len().max(1);
        if at < self.open.len() { self.open.swap_remove(at) } else { Seq(0) }
    }

    fn all(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|stored| &stored.entry)
    }

    fn sessions(&self) -> Vec<Session> {
        let mut ids = Vec::new();
        for id in self.all().filter_map(|entry| entry.subject.session) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        ids.into_iter().map(|id| self.session(id)).collect()
    }

    fn session(&self, id: SessionId) -> Session {
        let own: Vec<&Entry> = self.all().filter(|entry| entry.subject.session == Some(id)).collect();
        let count = |wanted: &dyn Fn(&Fact) -> bool| own.iter().filter(|entry| wanted(&entry.fact)).count() as u64;
        let decided =
            |wanted| count(&|fact| matches!(fact, Fact::Verdict { verdict, .. } if verdict.decision == wanted));
        let mut used = Budget::ZERO;
        for entry in &own {
            if let Fact::Outcome { used: more, .. } = &entry.fact {
                used = used.plus(more).unwrap();
            }
        }
        Session {
            id,
            first: moment(own[0]),
            last: moment(own[own.len() - 1]),
            operator: own.iter().find_map(|entry| entry.subject.operator),
            seat: own.iter().find_map(|entry| entry.subject.seat.clone()),
            entries: own.len() as u64,
            erased: own.iter().find(|entry| matches!(entry.fact, Fact::Erase { .. })).map(|entry| moment(entry)),
            messages: count(&|fact| matches!(fact, Fact::Message { .. })),
            turns: count(&|fact| matches!(fact, Fact::TurnEnd { .. })),
            tool_calls: count(&|fact| matches!(fact, Fact::Intent { action: ActionKind::Tool, .. })),
            verdicts: Verdicts {
                permit: decided(Decision::Permit),
                defer: decided(Decision::Defer),
                deny: decided(Decision::Deny),
            },
            used,
        }
    }

    fn tickets(&self) -> Vec<Ticket> {
        let asked = self.all().filter_map(|entry| {
            let Fact::Ticket { id, target, expires, .. } = &entry.fact else { return None };
            let Subject { session, seat, pid, call, .. } = entry.subject.clone();
            let (target, answer) = (target.clone(), self.answer(*id, entry.seq));
            Some(Ticket { id: *id, asked: moment(entry), session, seat, pid, call, target, expires: *expires, answer })
        });
        asked.collect()
    }

    /// The first ruling on a ticket behind its question.
    fn answer(&self, ticket: TicketId, asked: Seq) -> Option<TicketAnswer> {
        self.all().filter(|entry| entry.seq > asked).find_map(|entry| match &entry.fact {
            Fact::Ruling { on: RulingOn::Ticket(id), decision, how, .. } if *id == ticket => Some(TicketAnswer {
                ruled: moment(entry),
                decision: *decision,
                how: how.clone(),
                by: entry.subject.operator.filter(|_| how == "answered"),
            }),
            _ => None,
        })
    }

    /// The tickets that nothing has settled.
    fn waiting(&self) -> Vec<Waiting> {
        let mut open: Vec<Waiting> = Vec::new();
        for Entry { subject, fact, .. } in self.all() {
            match (fact, subject.session) {
                (Fact::Ticket { id, target, expires, quorum, .. }, Some(session)) => open.push(Waiting {
                    ticket: *id,
                    session,
                    seat: subject.seat.clone(),
                    call: subject.call,
                    tool: target.clone(),
                    expires: *expires,
                    quorum: quorum.unwrap_or(1),
                    permitted: BTreeSet::new(),
                }),
                (Fact::Ruling { on: RulingOn::Ticket(id), decision, how, .. }, _) => open.retain_mut(|one| {
                    let permits = how == "answered" && *decision == Decision::Permit;
                    one.permitted.extend(subject.operator.filter(|_| how == "answered" && one.ticket == *id));
                    one.ticket != *id || (permits && one.permitted.len() < usize::try_from(one.quorum).unwrap())
                }),
                (Fact::TurnEnd { .. } | Fact::Erase { .. }, Some(over)) => open.retain(|one| one.session != over),
                _ => {}
            }
        }
        open.sort_by_key(|one| (one.session, one.ticket));
        open
    }

    fn unsettled(&self) -> Vec<Unsettled> {
        let settled = |seq| self.all().any(|entry| matches!(entry.fact, Fact::Outcome { intent, .. } if intent == seq));
        let open = self.all().filter_map(|entry| {
            let Fact::Intent { action, attempt, reserved, .. } = entry.fact else { return None };
            let Subject { session, seat, pid, call, .. } = entry.subject.clone();
            let open = Unsettled { intent: moment(entry), session, seat, pid, call, action, attempt, reserved };
            (!settled(entry.seq)).then_some(open)
        });
        open.collect()
    }

    fn seats(&self) -> Vec<SeatLife> {
        let lived = |entry: &&Entry| matches!(entry.fact, Fact::Spawn { .. } | Fact::Exit { .. });
        let seats: BTreeSet<Seat> = self.all().filter(lived).filter_map(|entry| entry.subject.seat.clone()).collect();
        let life = |seat: Seat| {
            let own: Vec<&Entry> =
                self.all().filter(lived).filter(|entry| entry.subject.seat.as_ref() == Some(&seat)).collect();
            let count = |wanted: &dyn Fn(&Fact) -> bool| own.iter().filter(|entry| wanted(&entry.fact)).count() as u64;
            let mut exits = own.iter().filter_map(|entry| match &entry.fact {
                Fact::Exit { reason } => Some(reason.clone()),
                _ => None,
            });
            let started = own.iter().filter(|entry| matches!(entry.fact, Fact::Spawn { .. }));
            SeatLife {
                first: moment(own[0]),
                last: moment(own[own.len() - 1]),
                pid: started.filter_map(|entry| entry.subject.pid).next_back(),
                starts: count(&|fact| matches!(fact, Fact::Spawn { .. })),
                restarts: count(&|fact| matches!(fact, Fact::Spawn { incarnation, .. } if *incarnation > 1)),
                failures: count(
                    &|fact| matches!(fact, Fact::Exit { reason } if reason == "panicked" || reason == "error"),
                ),
                exit: exits.next_back(),
                exits: ends(&own),
                seat,
            }
        };
        seats.into_iter().map(life).collect()
    }

    fn days(&self) -> Vec<Day> {
        let days: BTreeSet<u64> = self.all().map(|entry| entry.time.0 / DAY).collect();
        let day = |day| {
            let own: Vec<Seq> = self.all().filter(|entry| entry.time.0 / DAY == day).map(|entry| entry.seq).collect();
            Day { day, first: own[0], last: own[own.len() - 1] }
        };
        days.into_iter().map(day).collect()
    }

    fn lists(&self) -> Vec<Vec<List>> {
        let mut single = BTreeSet::from([List::Kind("none".into()), List::Pid(Pid(u64::MAX)), List::Day(0)]);
        for entry in self.all() {
            let Subject { session, pid, call, .. } = entry.subject.clone();
            single.extend(session.map(List::Session));
            single.extend(pid.map(List::Pid));
            single.extend(call.map(List::Call));
            single.insert(List::Kind(entry.fact.kind().to_owned()));
            single.insert(List::Day(day_of(entry.time)));
        }
        let single: Vec<List> = single.into_iter().collect();
        let pairs = single.iter().zip(single.iter().rev().cycle().skip(3)).map(|(a, b)| vec![a.clone(), b.clone()]);
        let triples =
            single.windows(3).map(|lists| vec![lists[0].clone(), lists[2].clone(), List::Kind("intent".into())]);
        [vec![]].into_iter().chain(single.iter().map(|list| vec![list.clone()])).chain(pairs).chain(triples).collect()
    }

    fn on(&self, lists: &[List]) -> Vec<Seq> {
        let on = |entry: &Entry, list: &List| match list {
            List::Session(id) => entry.subject.session == Some(*id),
            List::Pid(pid) => entry.subject.pid == Some(*pid),
            List::Call(call) => entry.subject.call == Some(*call),
            List::Kind(kind) => entry.fact.kind() == kind,
            List::Day(day) => entry.time.0 / DAY == *day,
        };
        self.all().filter(|entry| lists.iter().all(|list| on(entry, list))).map(|entry| entry.seq).collect()
    }

    /// What must be answered.
    pub(super) fn answers(&self) -> Answers {
        Answers {
            size: self.entries.len() as u64,
            sessions: self.sessions(),
            tickets: self.tickets(),
            waiting: self.waiting(),
            unsettled: self.unsettled(),
            seats: self.seats(),
            days: self.days(),
            lists: self.lists().iter().map(|lists| self.on(lists)).collect(),
        }
    }

    /// What is answered. Both orders, in pages, must say the same.
    pub(super) fn asked(&self, view: &View<'_>) -> Result<Answers, Broken> {
        let sessions = paged(|page| view.sessions(page)?.collect(), |row| row.first.seq.0)?;
        let tickets = paged(|page| view.tickets(page)?.collect(), |row| row.id.0)?;
        for row in &sessions {
            assert_eq!(view.session(row.id)?.as_ref(), Some(row));
        }
        for row in &tickets {
            assert_eq!(view.ticket(row.id)?.as_ref(), Some(row));
        }
        let lists = self.lists().into_iter();
        Ok(Answers {
            size: view.size(),
            sessions,
            tickets,
            waiting: view.waiting()?.collect::<Result<_, _>>()?,
            unsettled: paged(|page| view.unsettled(page)?.collect(), |row| row.intent.seq.0)?,
            seats: view.seats()?.collect::<Result<_, _>>()?,
            days: paged(|page| view.days(page)?.collect(), |row| row.day)?,
            lists: lists
                .map(|lists| paged(|page| view.entries(&lists, page)?.collect(), |seq| seq.0))
                .collect::<Result<_, _>>()?,
        })
    }
}

/// All there is to ask.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Answers {
    size: u64,
    sessions: Vec<Session>,
    tickets: Vec<Ticket>,
    waiting: Vec<Waiting>,
    unsettled: Vec<Unsettled>,
    seats: Vec<SeatLife>,
    days: Vec<Day>,
    lists: Vec<Vec<Seq>>,
}

/// All rows, oldest first: in one page, and both ways in pages of seven, which must agree.
fn paged<T: Clone + PartialEq + std::fmt::Debug>(
    ask: impl Fn(Page) -> Result<Vec<T>, Broken>,
    number: impl Fn(&T) -> u64,
) -> Result<Vec<T>, Broken> {
    let whole = ask(Page { order: Order::Oldest, behind: None, most: usize::MAX })?;
    for order in [Order::Oldest, Order::Newest] {
        let (mut rows, mut behind) = (Vec::new(), None);
        loop {
            let page = ask(Page { order, behind, most: 7 })?;
            assert!(page.len() <= 7);
            let Some(last) = page.last() else { break };
            behind = Some(number(last));
            rows.extend(page);
        }
        if order == Order::Newest {
            rows.reverse();
        }
        assert_eq!(rows, whole);
    }
    Ok(whole)
}

/// The latest ends of a seat.
fn ends(own: &[&Entry]) -> Vec<Seq> {
    let mut ends = own.iter().filter(|entry| matches!(entry.fact, Fact::Exit { .. })).map(|entry| entry.seq);
    let mut latest: Vec<Seq> = ends.by_ref().collect();
    latest.split_off(latest.len().saturating_sub(EXITS))
}

fn moment(entry: &Entry) -> Moment {
    Moment { seq: entry.seq, time: entry.time }
}
