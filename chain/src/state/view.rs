//! What can be asked.

use std::{collections::BTreeMap, ops::Range};

use ephor_base::{MessageId, Seat, Seq, SessionId, TicketId, Timestamp};

use super::{
    change::day_of,
    draft::{key_after, parsed},
    key::{self, Group, List, Table},
    postings::Chunk,
    row::{Became, Day, Dead, Row, SeatLife, Session, Ticket, Unsettled, Waiting},
    store::{Broken, Pair, Rows, Store},
};

/// Which end comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The newest.
    Newest,
    /// The oldest.
    Oldest,
}

/// A part of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Page {
    /// Which end comes first.
    pub order: Order,
    /// The number that ended the page before; the page begins behind it. Nothing for the first page.
    pub behind: Option<u64>,
    /// The most it has.
    pub most: usize,
}

impl Page {
    /// The numbers that are still to come.
    const fn numbers(&self) -> Range<u64> {
        match (self.order, self.behind) {
            (_, None) => 0..u64::MAX,
            (Order::Newest, Some(behind)) => 0..behind,
            (Order::Oldest, Some(behind)) => behind.saturating_add(1)..u64::MAX,
        }
    }
}

/// Projections as they were after a catch-up. The iterators read as they go; after an error they end.
pub struct View<'a> {
    store: &'a Store,
    first: u64,
    size: u64,
}

impl<'a> View<'a> {
    pub(super) const fn new(store: &'a Store, first: u64, size: u64) -> Self {
        Self { store, first, size }
    }

    /// The first entry of the chain they are made from: 0 unless it was pruned.
    #[must_use]
    pub const fn first(&self) -> Seq {
        Seq(self.first)
    }

    /// How many entries of the chain they are made from.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// A session.
    ///
    /// # Errors
    /// [`Broken`], as everything here.
    pub fn session(&self, id: SessionId) -> Result<Option<Session>, Broken> {
        self.first_of(id)?.map_or(Ok(None), |first| self.row(&key::session(first)))
    }

    /// Where a session begins.
    fn first_of(&self, id: SessionId) -> Result<Option<Seq>, Broken> {
        self.store.row(&key::name(id))?.map(|bytes| parsed(key::place(&bytes))).transpose()
    }

    /// Sessions by the place of their first entry.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn sessions(&self, page: Page) -> Result<impl Iterator<Item = Result<Session, Broken>> + use<'a>, Broken> {
        Ok(self.numbered(Table::Sessions, page)?.map(read_row))
    }

    /// A ticket.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn ticket(&self, id: TicketId) -> Result<Option<Ticket>, Broken> {
        self.row(&key::ticket(id))
    }

    /// Tickets by number.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn tickets(&self, page: Page) -> Result<impl Iterator<Item = Result<Ticket, Broken>> + use<'a>, Broken> {
        Ok(self.numbered(Table::Tickets, page)?.map(read_row))
    }

    /// The tickets that wait for a person, by session.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn waiting(&self) -> Result<impl Iterator<Item = Result<Waiting, Broken>> + use<'a>, Broken> {
        let prefix = Table::Waiting.key(&[]);
        Ok(self.store.rows(prefix.clone()..key_after(&prefix))?.map(read_row))
    }

    /// A dead letter.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn dead_letter(&self, message: MessageId) -> Result<Option<Dead>, Broken> {
        self.row(&key::dead(message))?.map(|letter| self.unless_erased(letter)).transpose()
    }

    /// Dead letters, also those that were replayed, dropped or erased, by message.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn dead(&self, page: Page) -> Result<impl Iterator<Item = Result<Dead, Broken>> + use<'_, 'a>, Broken> {
        Ok(self.numbered(Table::Dead, page)?.map(|row| self.unless_erased(read_row(row)?)))
    }

    /// The erasure of its session drops a letter.
    fn unless_erased(&self, letter: Dead) -> Result<Dead, Broken> {
        let session = letter.session.filter(|_| letter.became.is_none()).map(|id| self.session(id)).transpose()?;
        let erased = session.flatten().and_then(|session| session.erased);
        let dropped = erased.map(|when| Became { when, replayed: None });
        Ok(Dead { became: letter.became.or(dropped), ..letter })
    }

    /// Intents without an outcome, by place.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn unsettled(&self, page: Page) -> Result<impl Iterator<Item = Result<Unsettled, Broken>> + use<'a>, Broken> {
        Ok(self.numbered(Table::Unsettled, page)?.map(read_row))
    }

    /// Days by number.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn days(&self, page: Page) -> Result<impl Iterator<Item = Result<Day, Broken>> + use<'a>, Broken> {
        Ok(self.numbered(Table::Days, page)?.map(read_row))
    }

    /// What the record says of a seat.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn seat(&self, seat: &Seat) -> Result<Option<SeatLife>, Broken> {
        self.row(&key::seat(seat))
    }

    /// All seats in which anything ever started or ended, by path.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn seats(&self) -> Result<impl Iterator<Item = Result<SeatLife, Broken>> + use<'a>, Broken> {
        let prefix = Table::Seats.key(&[]);
        Ok(self.store.rows(prefix.clone()..key_after(&prefix))?.map(read_row))
    }

    /// How many sessions there are.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn session_count(&self) -> Result<u64, Broken> {
        let all = Page { order: Order::Oldest, behind: None, most: usize::MAX };
        self.numbered(Table::Sessions, all)?.try_fold(0u64, |count, pair| pair.map(|_| count.saturating_add(1)))
    }

    /// How many entries there are of each kind that there are any of, as [`ephor_record::Fact::kind`] says it.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn kinds(&self) -> Result<BTreeMap<String, u64>, Broken> {
        let (prefix, mut kinds) = (key::kinds(), BTreeMap::new());
        for pair in self.store.rows(prefix.clone()..key_after(&prefix))? {
            let pair = pair?;
            let kind = parsed(key::kind_of(&pair.key))?;
            let chunk = parsed(key::number(&pair.key).and_then(|first| Chunk::parse(first, false, &pair.value)))?;
            let count: &mut u64 = kinds.entry(kind.to_owned()).or_default();
            *count = count.saturating_add(chunk.count());
        }
        Ok(kinds)
    }

    /// The first entry of the day of `time`, or of the next day that has any. Nothing before it is as late as `time`.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn since(&self, time: Timestamp) -> Result<Seq, Broken> {
        let page = Page { order: Order::Oldest, behind: day_of(time).checked_sub(1), most: 1 };
        let first = self.days(page)?.next().transpose()?.map(|day| day.first);
        Ok(first.unwrap_or(Seq(self.size)))
    }

    /// The entries that are on all of these lists.
    ///
    /// # Errors
    /// [`Broken`].
    pub fn entries(
        &self,
        lists: &[List],
        page: Page,
    ) -> Result<impl Iterator<Item = Result<Seq, Broken>> + use<'a>, Broken> {
        let Range { start, end } = page.numbers();
        let mut span = start.max(self.first)..end.min(self.size);
        let is_day = |list: &&List| matches!(list, List::Day(_));
        for list in lists.iter().filter(is_day) {
            if let List::Day(day) = list {
                let entries = self.of_day(*day)?;
                span = span.start.max(entries.start)..span.end.min(entries.end);
            }
        }
        let mut streams: Vec<Places<'a>> = Vec::new();
        for list in lists.iter().filter(|list| !is_day(list)) {
            streams.push(self.posted(list, span.clone(), page.order)?);
        }
        if streams.is_empty() {
            streams.push(whole(span, page.order));
        }
        Ok(Common { streams, order: page.order }.take(page.most))
    }

    fn row<R: Row>(&self, key: &[u8]) -> Result<Option<R>, Broken> {
        self.store.row(key)?.map(|bytes| parsed(R::parse(&bytes))).transpose()
    }

    /// The rows of a table whose names are numbers.
    fn numbered(
        &self,
        table: Table,
        page: Page,
    ) -> Result<impl Iterator<Item = Result<Pair, Broken>> + use<'a>, Broken> {
        let Range { start, end } = page.numbers();
        let rows = self.store.rows(table.key(&start.to_be_bytes())..table.key(&end.to_be_bytes()))?;
        Ok(Ordered { rows, order: page.order }.take(page.most))
    }

    fn of_day(&self, day: u64) -> Result<Range<u64>, Broken> {
        let row = self.row::<Day>(&key::day(day))?;
        Ok(row.map_or(0..0, |day| day.first.0..day.last.0.saturating_add(1)))
    }

    fn posted(&self, list: &List, span: Range<u64>, order: Order) -> Result<Places<'a>, Broken> {
        let group = match list {
            List::Session(id) => self.first_of(*id)?.map(Group::of_session),
            List::Pid(pid) => Some(Group::of_pid(*pid)),
            List::Call(call) => Some(Group::of_call(*call)),
            List::Kind(kind) => Some(Group::of_kind(kind)),
            List::Day(_) => None,
        };
        let Some((group, mark)) = group else { return Ok(Box::new(std::iter::empty())) };
        let (prefix, is_marked) = (group.prefix(), group.is_marked());
        let key = |place: u64| [&prefix[..], &place.to_be_bytes()].concat();
        // The chunk that begins before the span may reach into it.
        let before = self.store.rows(prefix.clone()..key(span.start))?.next_back().transpose()?;
        let start = before.map_or_else(|| key(span.start), |pair| pair.key);
        let chunks = Ordered { rows: self.store.rows(start..key(span.end))?, order };
        let within = move |place: &Result<Seq, Broken>| place.as_ref().map_or(true, |place| span.contains(&place.0));
        let places = chunks.flat_map(move |pair| match unpack(pair, is_marked) {
            Err(broken) => vec![Err(broken)],
            Ok(chunk) if order == Order::Oldest => chunk.places(mark).map(Ok).collect(),
            Ok(chunk) => chunk.places(mark).rev().map(Ok).collect(),
        });
        Ok(Box::new(places.filter(within)))
    }
}

/// Places, one after another in some order.
type Places<'a> = Box<dyn Iterator<Item = Result<Seq, Broken>> + 'a>;

fn whole<'a>(places: Range<u64>, order: Order) -> Places<'a> {
    let places = places.map(|place| Ok(Seq(place)));
    match order {
        Order::Newest => Box::new(places.rev()),
        Order::Oldest => Box::new(places),
    }
}

fn read_row<R: Row>(pair: Result<Pair, Broken>) -> Result<R, Broken> {
    parsed(R::parse(&pair?.value))
}

fn unpack(pair: Result<Pair, Broken>, is_marked: bool) -> Result<Chunk, Broken> {
    let pair = pair?;
    parsed(key::number(&pair.key).and_then(|first| Chunk::parse(first, is_marked, &pair.value)))
}

/// Rows from one end or the other.
struct Ordered<'a> {
    rows: Rows<'a>,
    order: Order,
}

impl Iterator for Ordered<'_> {
    type Item = Result<Pair, Broken>;
    fn next(&mut self) -> Option<Self::Item> {
        match self.order {
            Order::Newest => self.rows.next_back(),
            Order::Oldest => self.rows.next(),
        }
    }
}

/// The places that all of these streams have, each of which is in order.
struct Common<'a> {
    streams: Vec<Places<'a>>,
    order: Order,
}

impl Iterator for Common<'_> {
    type Item = Result<Seq, Broken>;

    /// Turns from stream to stream; each goes on to the place that is wanted, or names one behind it.
    fn next(&mut self) -> Option<Self::Item> {
        let (all, mut wanted, mut agreed) = (self.streams.len(), None, 0usize);
        loop {
            for stream in &mut self.streams {
                let found = loop {
                    match (stream.next()?, wanted) {
                        (Ok(place), Some(wanted)) if is_before(self.order, place, wanted) => {}
                        (found, _) => break found,
                    }
                };
                let place = match found {
                    Ok(place) => place,
                    Err(broken) => return Some(Err(broken)),
                };
                agreed = if wanted == Some(place) { agreed.saturating_add(1) } else { 1 };
                wanted = Some(place);
                if agreed == all {
                    return Some(Ok(place));
                }
            }
        }
    }
}

const fn is_before(order: Order, place: Seq, wanted: Seq) -> bool {
    match order {
        Order::Newest => place.0 > wanted.0,
        Order::Oldest => place.0 < wanted.0,
    }
}
