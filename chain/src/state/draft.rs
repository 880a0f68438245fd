//! Some entries' changes, gathered in memory, so that a row that many of them change is written once.

use std::collections::BTreeMap;

use ephor_base::{Receipt, Seq, SessionId, TicketId};

use super::{
    applied::Applied,
    change::{Change, changes, waits},
    key::{self, Group, Table},
    postings::Chunk,
    row::{Day, Dead, Row, SeatLife, Session, Ticket, TicketAnswer, Unsettled, Waiting},
    store::{Broken, Store, Write},
};
use crate::read::Stored;

/// What the next batch of rows will be.
pub(super) struct Draft<'a> {
    store: &'a Store,
    applied: Applied,
    /// Where the sessions begin that were looked up; those that are new among them.
    begun: BTreeMap<SessionId, (Seq, bool)>,
    sessions: Slots<Session>,
    waiting: Slots<Waiting>,
    tickets: Slots<Ticket>,
    dead: Slots<Dead>,
    unsettled: Slots<Unsettled>,
    seats: Slots<SeatLife>,
    days: Slots<Day>,
    lists: BTreeMap<Group, Vec<(Seq, Option<u8>)>>,
}

/// Rows of a table by key: as they are kept, and as they will be.
struct Slots<R>(BTreeMap<Vec<u8>, Slot<R>>);

struct Slot<R> {
    old: Option<Vec<u8>>,
    new: Option<R>,
}

impl<R: Row> Slots<R> {
    const fn new() -> Self {
        Self(BTreeMap::new())
    }

    fn edit(&mut self, store: &Store, key: Vec<u8>, edit: impl FnOnce(Option<R>) -> Option<R>) -> Result<(), Broken> {
        if let Some(slot) = self.0.get_mut(&key) {
            slot.new = edit(slot.new.take());
            return Ok(());
        }
        let old = store.row(&key)?;
        let row = old.as_deref().map(|bytes| parsed(R::parse(bytes))).transpose()?;
        self.0.insert(key, Slot { old, new: edit(row) });
        Ok(())
    }

    /// Takes away every row whose key begins with `prefix`.
    fn remove_all(&mut self, store: &Store, prefix: &[u8]) -> Result<(), Broken> {
        let range = prefix.to_vec()..key_after(prefix);
        let kept = store.rows(range.clone())?.map(|pair| pair.map(|pair| pair.key)).collect::<Result<Vec<_>, _>>()?;
        for key in kept {
            self.edit(store, key, |_| None)?;
        }
        self.0.range_mut(range).for_each(|(_, slot)| slot.new = None);
        Ok(())
    }

    fn merge(&mut self, store: &Store, key: Vec<u8>, later: R) -> Result<(), Broken> {
        self.edit(store, key, |row| {
            Some(match row {
                Some(row) => row.and_then(later),
                None => later,
            })
        })
    }
}

/// A row, or what is wrong without one.
pub(super) fn parsed<T>(row: Option<T>) -> Result<T, Broken> {
    row.ok_or_else(|| Broken("a row is not what it should be".to_owned()))
}

impl<'a> Draft<'a> {
    pub(super) const fn new(store: &'a Store, applied: Applied) -> Self {
        Self {
            store,
            applied,
            begun: BTreeMap::new(),
            sessions: Slots::new(),
            waiting: Slots::new(),
            tickets: Slots::new(),
            dead: Slots::new(),
            unsettled: Slots::new(),
            seats: Slots::new(),
            days: Slots::new(),
            lists: BTreeMap::new(),
        }
    }

    /// Takes the next entry in.
    pub(super) fn apply(&mut self, stored: &Stored) -> Result<(), Broken> {
        let Receipt { leaf, .. } = stored.receipt;
        for change in changes(&stored.entry) {
            self.change(stored.entry.seq, change)?;
        }
        self.applied.tree.push(leaf);
        Ok(())
    }

    fn change(&mut self, seq: Seq, change: Change) -> Result<(), Broken> {
        let store = self.store;
        match change {
            Change::Post(group, mark) => {
                self.post(group, mark, seq);
                Ok(())
            }
            Change::Session(row) => self.session(seq, row),
            Change::Asked(row, quorum) => {
                if let Some(waiting) = waits(&row, quorum) {
                    self.waiting.merge(store, key::waiting(waiting.session, waiting.ticket), waiting)?;
                }
                self.tickets.merge(store, key::ticket(row.id), row)
            }
            Change::Ruled(id, answer) => self.ruled(id, answer),
            Change::Over(session) => {
                let prefix = key::waiting_in(session);
                self.waiting.remove_all(store, &prefix)
            }
            Change::Died(row) => self.dead.merge(store, key::dead(row.message), row),
            Change::Rose(id, became) => {
                let rose = |row: Option<Dead>| row.map(|row| Dead { became: row.became.or(Some(became)), ..row });
                self.dead.edit(store, key::dead(id), rose)
            }
            Change::Began(row) => self.unsettled.merge(store, key::unsettled(row.intent.seq), row),
            Change::Settled(intent) => self.unsettled.edit(store, key::unsettled(intent), |_| None),
            Change::Seat(row) => self.seats.merge(store, key::seat(&row.seat), row),
            Change::Day(row) => self.days.merge(store, key::day(row.day), row),
        }
    }

    fn post(&mut self, group: Group, mark: Option<u8>, seq: Seq) {
        self.lists.entry(group).or_default().push((seq, mark));
    }

    /// Adds to what is said of a conversation, and to the list of its entries.
    fn session(&mut self, seq: Seq, mut row: Session) -> Result<(), Broken> {
        // The entry that erased it may be gone.
        let since = &self.applied.since;
        if since.erased.binary_search(&row.id).is_ok() {
            row.erased = since.pruning;
        }
        let first = match self.begun.get(&row.id) {
            Some((first, _)) => *first,
            None => {
                let known = self.store.row(&key::name(row.id))?.map(|bytes| parsed(key::place(&bytes))).transpose()?;
                let first = known.unwrap_or(seq);
                self.begun.insert(row.id, (first, known.is_none()));
                first
            }
        };
        let (group, mark) = Group::of_session(first);
        self.post(group, mark, seq);
        self.sessions.merge(self.store, key::session(first), row)
    }

    fn ruled(&mut self, id: TicketId, answer: TicketAnswer) -> Result<(), Broken> {
        let (store, mut session, behind) = (self.store, None, answer.clone());
        self.tickets.edit(store, key::ticket(id), |row| {
            session = row.as_ref().and_then(|row| row.session);
            row.map(|row| Ticket { answer: row.answer.or(Some(answer)), ..row })
        })?;
        let Some(session) = session else { return Ok(()) };
        let ruled = |row: Option<Waiting>| row.and_then(|row| row.ruled(&behind));
        self.waiting.edit(store, key::waiting(session, id), ruled)
    }

    /// The rows to write, what was applied among them, and that itself.
    pub(super) fn finish(self) -> Result<(Vec<Write>, Applied), Broken> {
        let Self { store, applied, begun, sessions, waiting, tickets, dead, unsettled, seats, days, lists } = self;
        let mut into = Writes { applied, writes: Vec::new() };
        for (id, (first, _)) in begun.into_iter().filter(|(_, (_, is_new))| *is_new) {
            into.put(key::name(id), None, Some(first.0.to_be_bytes().to_vec()));
        }
        into.table(sessions);
        into.table(waiting);
        into.table(tickets);
        into.table(dead);
        into.table(unsettled);
        into.table(seats);
        into.table(days);
        for (group, places) in lists {
            into.list(store, &group, &places)?;
        }
        let Writes { applied, mut writes } = into;
        writes.push(Write { key: key::applied(), value: Some(applied.to_bytes()) });
        Ok((writes, applied))
    }
}

/// Rows to write, and the sum over all rows with them.
struct Writes {
    applied: Applied,
    writes: Vec<Write>,
}

impl Writes {
    fn put(&mut self, key: Vec<u8>, old: Option<&[u8]>, value: Option<Vec<u8>>) {
        if old == value.as_deref() {
            return;
        }
        let write = Write { key, value };
        self.applied.sum.replace(old, &write);
        self.writes.push(write);
    }

    fn table<R: Row>(&mut self, slots: Slots<R>) {
        for (key, Slot { old, new }) in slots.0 {
            self.put(key, old.as_deref(), new.map(|row| row.to_bytes()));
        }
    }

    /// Adds places to the end of a group of lists.
    fn list(&mut self, store: &Store, group: &Group, places: &[(Seq, Option<u8>)]) -> Result<(), Broken> {
        let prefix = group.prefix();
        let newest = store.rows(prefix.clone()..key_after(&prefix))?.next_back().transpose()?;
        let mut old = newest.as_ref().map(|pair| pair.value.as_slice());
        let first = newest.as_ref().and_then(|pair| key::number(&pair.key));
        let mut chunk = match (first, old) {
            (Some(first), Some(bytes)) => Some(parsed(Chunk::parse(first, group.is_marked(), bytes))?),
            _ => None,
        };
        let mut put = |chunk: &Chunk, old: Option<&[u8]>| {
            let key = [&prefix[..], &chunk.first().to_be_bytes()].concat();
            self.put(key, old, Some(chunk.to_bytes()));
        };
        for (place, mark) in places {
            if chunk.as_mut().is_some_and(|chunk| chunk.push(*place, *mark)) {
                continue;
            }
            if let Some(full) = chunk.replace(Chunk::new(*place, *mark)) {
                put(&full, old.take());
            }
        }
        if let Some(last) = &chunk {
            put(last, old);
        }
        Ok(())
    }
}

/// The first key behind all that begin with `prefix`.
pub(super) fn key_after(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // Tables have small numbers, so no prefix is all ones.
    vec![Table::Waiting as u8 + 1]
}
