//! The DEMOCRITUS tick: how memory follows the log. A pure step; the shell around it reads, writes and waits.
//!
//! Sense → embed → update → commit; what a text is near to is searched when it is asked for. The tick asks the shell for the entries
//! behind its cursor, has the texts in them embedded, adds all of it to the [`Mind`], and asks the shell to keep what was found out of
//! the texts. It works only when it is woken, as much as the budget says, and waits longer the longer nothing happens.
//!
//! What makes it safe to kill at any moment: a mind follows from the entries of the log and what was [resolved](Resolved) of their texts.
//! How much is done at once, when, and how often it is begun anew, changes nothing. It begins anew at the beginning of the log; what was
//! kept is handed back beside the entries, and is not asked for again.
//!
//! What is forgotten, superseded or erased is gone as soon as it is told of by [`Event::Ended`], whatever the tick has come to; from then
//! on no text of it is handed out to be embedded.
//!
//! [`Tick`] is the machine, [`mind`] what it has made, [`entry`] what it reads, [`part`] what is kept.

pub mod entry;
pub mod mind;
pub mod part;

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use ephor_base::{Label, Seq, SessionId, Timestamp};

use self::{
    entry::{LogEntry, MOST_LINKS},
    mind::{Mind, TooManyEndings},
    part::{MOST_TEXTS, Part, Resolved},
};
use crate::{
    chunks::{Ending, MOST_BODY, cut},
    entry::EntryRef,
    index::{
        embed::{Embedder, Embedding},
        vectors::{Vector, VectorError},
    },
};

/// The most entries that are read at once.
pub const MOST_AT_ONCE: u32 = 256;
/// The most bytes of text that are read at once, but for the last entry's: the shell hands over no more entries behind so much.
pub const MOST_READ_BYTES: usize = 4 * MOST_BODY;
/// The most pieces that are with the shell to be embedded.
pub const MOST_ASKED: usize = 64;
/// The most vectors that wait to be kept, but for the last text's.
const MOST_VECTORS: usize = 8_192;
/// How long it waits after work, and at most.
pub const SHORTEST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait: an entry is sensed within this time, even if nothing tells the tick of it.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// What the shell did wrong. The tick is as it was.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TickError {
    /// It was handed entries that it had not asked for.
    #[error("entries that were not asked for")]
    Unasked,
    /// The entries do not go on where the cursor stands.
    #[error("entry {found}, expected {expected}")]
    Gap {
        /// The sequence number it goes on from.
        expected: Seq,
        /// What it was handed.
        found: Seq,
    },
    /// More than [`MOST_AT_ONCE`], or than [`MOST_READ_BYTES`] of text before the last.
    #[error("{0} entries at once, at most {MOST_AT_ONCE} and {MOST_READ_BYTES} bytes of text")]
    TooMany(usize),
    /// An entry with more than [`MOST_LINKS`] edges or entries of other logs.
    #[error("entry {0} has more than {MOST_LINKS} edges or entries of other logs")]
    TooManyLinks(Seq),
    /// The content of an entry is that of another place.
    #[error("what entry {0} says stands elsewhere")]
    Misplaced(Seq),
    /// A part of another log, or by another embedder.
    #[error("a part of another log, or by another embedder")]
    OtherPart,
    /// It was told of something kept that it had not asked for.
    #[error("something was kept that was not asked for")]
    NotAsked,
    /// A vector for a piece that waits for none.
    #[error("a vector for piece {1} of entry {0}, which waits for none")]
    NoPiece(Seq, u16),
    /// A vector that does not fit the others.
    #[error("the vector does not fit the index")]
    Vector(#[from] VectorError),
    /// More endings than it keeps. It is to be woken first.
    #[error(transparent)]
    Endings(#[from] TooManyEndings),
}

/// What happens to the tick.
#[derive(Clone, Debug)]
pub enum Event {
    /// It may work: so many units, each an entry or a piece of text that is cut and embedded, or taken in. What it does beyond them, since
    /// a text is not divided, it does less the next times.
    Woken {
        /// The units.
        budget: u32,
    },
    /// The entries that it asked for, from its cursor on; none if there are none.
    Read {
        /// The entries, without gaps.
        entries: Vec<LogEntry>,
        /// What was kept of their texts, and can be unsealed.
        kept: Vec<Part>,
        /// The end of the log: the number that the next entry will have, and the time of the last.
        end: (Seq, Timestamp),
    },
    /// The vector of a piece that it asked for.
    Embedded {
        /// The entry.
        seq: Seq,
        /// The piece of its text, from 0.
        piece: u16,
        /// The vector; none if the piece has none.
        embedding: Option<Embedding>,
    },
    /// Something has come to an end: the entry that says so is on the record, wherever the cursor stands.
    Ended {
        /// That entry.
        at: Seq,
        /// What has come to an end.
        ending: Ending,
    },
    /// The parts that it handed over are kept.
    Kept,
}

/// What the shell is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Read entries and hand them over, with what was kept of them.
    Read {
        /// The first.
        from: Seq,
        /// How many at most.
        most: u32,
    },
    /// Have a piece of text embedded.
    Embed {
        /// The entry.
        seq: Seq,
        /// The piece of its text, from 0.
        piece: u16,
        /// The piece.
        text: String,
    },
    /// Have no piece of this entry embedded any more: it has come to an end. No answer is expected.
    Withdraw {
        /// The entry.
        seq: Seq,
    },
    /// Keep these, each sealed with the key of its session, and say so. Where that key is gone there is nothing to keep.
    Keep(Vec<Part>),
    /// Wake it after this time, or earlier if the log grows.
    Wait(Duration),
}

/// How far behind the log a tick is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lag {
    /// The entries that it has not taken in.
    pub entries: u64,
    /// The time from the last that it has taken in to the last of the log; zero if it has taken in all.
    pub time: Duration,
}

/// An entry that was read and is not taken in.
#[derive(Debug)]
struct Waiting {
    entry: LogEntry,
    kept: Option<Resolved>,
    /// None before its text is cut.
    pieces: Option<Vec<Piece>>,
}

#[derive(Debug)]
enum Piece {
    /// It is to be embedded.
    Text(String),
    Asked,
    Done(Option<Vector>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asking {
    Idle,
    Asked,
}

/// The machine.
#[derive(Debug)]
pub struct Tick {
    mind: Mind,
    sensed: VecDeque<Waiting>,
    /// What was found out and is not kept, with the session of each text.
    found: Vec<(SessionId, Resolved)>,
    /// The last entry that was taken in.
    last: Option<EntryRef>,
    reading: Asking,
    keeping: Asking,
    end: (Seq, Timestamp),
    wait: Duration,
    /// What it did beyond its budgets: 0 or less.
    balance: i64,
}

impl Tick {
    /// A tick from the beginning of the log. `endings` are all that the log tells of so far, so that nothing of them is handed out or told
    /// on the way.
    ///
    /// # Errors
    /// [`TooManyEndings`].
    pub fn new(mut mind: Mind, endings: impl IntoIterator<Item = (Seq, Ending)>) -> Result<Self, TooManyEndings> {
        for (at, ending) in endings {
            mind.end(at, &ending)?;
        }
        let end = (mind.cursor(), mind.time());
        Ok(Self {
            mind,
            sensed: VecDeque::new(),
            found: Vec::new(),
            last: None,
            reading: Asking::Idle,
            keeping: Asking::Idle,
            end,
            wait: SHORTEST_WAIT,
            balance: 0,
        })
    }

    /// What it has made so far.
    #[must_use]
    pub const fn mind(&self) -> &Mind {
        &self.mind
    }

    /// What it has made, to have the index built.
    pub const fn mind_mut(&mut self) -> &mut Mind {
        &mut self.mind
    }

    /// How far it is behind the log, as far as it was told of it.
    #[must_use]
    pub const fn lag(&self) -> Lag {
        let entries = self.end.0.0.saturating_sub(self.mind.cursor().0);
        let time = if entries == 0 { Duration::ZERO } else { self.end.1.since(self.mind.time()) };
        Lag { entries, time }
    }

    /// Takes an event in and says what is to be done.
    ///
    /// # Errors
    /// [`TickError`] if the shell did what it was not asked to.
    pub fn step(&mut self, event: Event) -> Result<Vec<Command>, TickError> {
        let mut commands = Vec::new();
        match event {
            Event::Woken { budget } => return Ok(self.work(budget)),
            Event::Read { entries, kept, end } => self.read(entries, kept, end)?,
            Event::Embedded { seq, piece, embedding } => self.embedded(seq, piece, embedding)?,
            Event::Ended { at, ending } => self.ended(at, &ending, &mut commands)?,
            Event::Kept if self.keeping == Asking::Asked => self.keeping = Asking::Idle,
            Event::Kept => return Err(TickError::NotAsked),
        }
        let has_more = !self.found.is_empty() && self.keeping == Asking::Idle;
        let can_go_on = has_more || self.sensed.front().is_some_and(Waiting::is_ready);
        if can_go_on || self.sensed.iter().any(Waiting::wants) {
            commands.push(Command::Wait(Duration::ZERO));
        }
        Ok(commands)
    }

    /// Takes in what is ready, asks for what is missing, and hands over what was found out.
    fn work(&mut self, budget: u32) -> Vec<Command> {
        let mut commands = Vec::new();
        let before = i64::from(budget) + self.balance;
        let left = self.prepare(before, &mut commands);
        let left = self.update(left);
        self.balance = left.min(0);
        self.keep(&mut commands);
        // Nothing to be read is found out only by reading, so a read alone is no work.
        let is_idle = left == before && before > 0 && commands.is_empty();
        self.sense(&mut commands);
        self.wait = if is_idle { (self.wait * 2).min(LONGEST_WAIT) } else { SHORTEST_WAIT };
        commands.push(Command::Wait(self.wait));
        commands
    }

    /// Cuts the first texts that wait, and asks for their vectors, or makes them.
    fn prepare(&mut self, mut left: i64, commands: &mut Vec<Command>) -> i64 {
        let asked = |waiting: &Waiting| waiting.pieces.iter().flatten().filter(|piece| piece.is_asked()).count();
        let mut room = MOST_ASKED.saturating_sub(self.sensed.iter().map(asked).sum());
        let embedder = self.mind.memory().index().embedder();
        for waiting in &mut self.sensed {
            if waiting.pieces.is_none() {
                if left <= 0 {
                    break;
                }
                let pieces = waiting.cut(embedder, self.mind.is_over(&waiting.entry));
                left -= 1 + i64::try_from(pieces.len()).unwrap_or(i64::MAX);
                waiting.pieces = Some(pieces);
            }
            for (number, piece) in (0_u16..).zip(waiting.pieces.iter_mut().flatten()) {
                let Piece::Text(text) = piece else { continue };
                if room == 0 {
                    return left;
                }
                room -= 1;
                let text = std::mem::take(text);
                commands.push(Command::Embed { seq: waiting.entry.seq, piece: number, text });
                *piece = Piece::Asked;
            }
        }
        left
    }

    /// Takes in the entries whose vectors are all there, as long as there is room for what was found out.
    fn update(&mut self, mut left: i64) -> i64 {
        let mut vectors: usize = self.found.iter().map(|(_, resolved)| resolved.vectors.len()).sum();
        while left > 0 && self.found.len() < MOST_TEXTS && vectors < MOST_VECTORS {
            let ready = self.sensed.pop_front_if(|first| first.is_ready());
            let Some(Waiting { entry, kept, pieces }) = ready else { break };
            let done = |piece| if let Piece::Done(vector) = piece { vector } else { None };
            let made: Vec<Option<Vector>> = pieces.into_iter().flatten().map(done).collect();
            left -= 1 + i64::try_from(made.len()).unwrap_or(i64::MAX);
            let recorded: Option<Label> = kept.as_ref().map(|kept| kept.label);
            let label = self.mind.take(&entry, &made, recorded);
            self.last = Some(EntryRef { origin: self.mind.memory().graph().own(), seq: entry.seq, leaf: entry.leaf });
            // What is over by now has no vectors, which says nothing against those that were kept.
            let is_new = kept.is_none_or(|kept| made.iter().any(Option::is_some) && kept.vectors != made);
            if let (Some(label), Some((content, _)), true) = (label, entry.text(), is_new) {
                vectors += made.len();
                self.found.push((content.entry.session, Resolved::of(&entry, label, made)));
            }
        }
        left
    }

    /// Hands over what was found out, one part for each session.
    fn keep(&mut self, commands: &mut Vec<Command>) {
        let Some(made_at) = self.last.filter(|_| self.keeping == Asking::Idle && !self.found.is_empty()) else {
            return;
        };
        let mut sessions: BTreeMap<SessionId, Vec<Resolved>> = BTreeMap::new();
        for (session, resolved) in self.found.drain(..) {
            sessions.entry(session).or_default().push(resolved);
        }
        let embedder = self.mind.memory().index().embedder().name();
        let part = |(session, texts)| Part { made_at, embedder: embedder.clone(), session, texts };
        commands.push(Command::Keep(sessions.into_iter().map(part).collect()));
        self.keeping = Asking::Asked;
    }

    fn sense(&mut self, commands: &mut Vec<Command>) {
        if self.reading == Asking::Idle && self.sensed.is_empty() {
            self.reading = Asking::Asked;
            commands.push(Command::Read { from: self.mind.cursor(), most: MOST_AT_ONCE });
        }
    }

    fn read(&mut self, entries: Vec<LogEntry>, kept: Vec<Part>, end: (Seq, Timestamp)) -> Result<(), TickError> {
        if self.reading == Asking::Idle {
            return Err(TickError::Unasked);
        }
        self.check(&entries)?;
        let (own, embedder) = (self.mind.memory().graph().own(), self.mind.memory().index().embedder().name());
        if kept.iter().any(|part| part.log() != own || part.embedder != *embedder) {
            return Err(TickError::OtherPart);
        }
        self.reading = Asking::Idle;
        if !entries.is_empty() {
            self.wait = SHORTEST_WAIT;
        }
        self.end = end;
        let texts = kept.into_iter().flat_map(|part| part.texts.into_iter().map(move |text| (part.session, text)));
        let mut texts: BTreeMap<Seq, (SessionId, Resolved)> = texts.map(|text| (text.1.seq, text)).collect();
        self.sensed.extend(entries.into_iter().map(|entry| {
            let kept = texts.remove(&entry.seq).filter(|(session, kept)| {
                kept.leaf == entry.leaf && entry.text().is_some_and(|(content, _)| content.entry.session == *session)
            });
            Waiting { entry, kept: kept.map(|(_, kept)| kept), pieces: None }
        }));
        Ok(())
    }

    /// Whether these are entries to go on with.
    fn check(&self, entries: &[LogEntry]) -> Result<(), TickError> {
        let size = |entry: &LogEntry| entry.text().map_or(0, |(_, text)| text.body.len());
        let bytes: usize = entries.split_last().map_or(0, |(_, before)| before.iter().map(size).sum());
        if entries.len() > MOST_AT_ONCE as usize || bytes > MOST_READ_BYTES {
            return Err(TickError::TooMany(entries.len()));
        }
        let own = self.mind.memory().graph().own();
        let mut expected = self.mind.cursor();
        for entry in entries {
            if entry.seq != expected {
                return Err(TickError::Gap { expected, found: entry.seq });
            }
            expected = expected.next();
            let Some(content) = &entry.content else { continue };
            if content.links.len() > MOST_LINKS || content.others.len() > MOST_LINKS {
                return Err(TickError::TooManyLinks(entry.seq));
            }
            let place = EntryRef { origin: own, seq: entry.seq, leaf: entry.leaf };
            if content.entry.id != place || !content.entry.moment.fits(&place, own) {
                return Err(TickError::Misplaced(entry.seq));
            }
        }
        Ok(())
    }

    fn embedded(&mut self, seq: Seq, piece: u16, embedding: Option<Embedding>) -> Result<(), TickError> {
        if let Some(embedding) = &embedding {
            self.mind.memory().index().embedder().own(embedding)?;
        }
        let mut waiting = self.sensed.iter_mut().filter(|waiting| waiting.entry.seq == seq);
        let place = waiting.next().and_then(|waiting| waiting.pieces.as_mut()?.get_mut(usize::from(piece)));
        match place {
            Some(place @ Piece::Asked) => *place = Piece::Done(embedding.map(|embedding| embedding.vector)),
            // An answer may have been under way when the text came to an end.
            Some(Piece::Done(None)) => {}
            _ => return Err(TickError::NoPiece(seq, piece)),
        }
        Ok(())
    }

    fn ended(&mut self, at: Seq, ending: &Ending, commands: &mut Vec<Command>) -> Result<(), TickError> {
        self.mind.end(at, ending)?;
        for waiting in &mut self.sensed {
            if self.mind.is_over(&waiting.entry) {
                let pieces = waiting.pieces.iter_mut().flatten();
                let asked =
                    pieces.filter_map(|piece| std::mem::replace(piece, Piece::Done(None)).is_asked().then_some(()));
                if asked.count() > 0 {
                    commands.push(Command::Withdraw { seq: waiting.entry.seq });
                }
            }
        }
        if let Ending::Session(session) = ending {
            self.found.retain(|(of, _)| of != session);
        }
        Ok(())
    }
}

impl Waiting {
    /// Whether every piece has its vector, or none to come.
    fn is_ready(&self) -> bool {
        self.pieces.as_ref().is_some_and(|pieces| pieces.iter().all(|piece| matches!(piece, Piece::Done(_))))
    }

    /// Whether it is to be cut, or a piece of it is to be embedded.
    fn wants(&self) -> bool {
        self.pieces.as_ref().is_none_or(|pieces| pieces.iter().any(|piece| matches!(piece, Piece::Text(_))))
    }

    /// The pieces of its text, with the vectors that were kept, or that are made here. What is over has none.
    fn cut(&self, embedder: &Embedder, is_over: bool) -> Vec<Piece> {
        let body = self.entry.text().filter(|_| !is_over).map_or("", |(_, text)| text.body.as_str());
        // What is too long to be cut is refused when it is taken in, so it needs no vector.
        let ranges = cut(body).unwrap_or_default();
        let fits = |vector: &Option<Vector>| vector.as_ref().is_none_or(|v| embedder.dimension().check(v).is_ok());
        let kept =
            self.kept.as_ref().filter(|kept| kept.vectors.len() == ranges.len() && kept.vectors.iter().all(fits));
        if let Some(kept) = kept {
            return kept.vectors.iter().cloned().map(Piece::Done).collect();
        }
        let text = |range| body.get::<std::ops::Range<usize>>(range).unwrap_or_default();
        let made = |text: &str| match embedder.is_built_in() {
            true => Piece::Done(embedder.chunk(text)),
            false => Piece::Text(text.to_owned()),
        };
        ranges.into_iter().map(text).map(made).collect()
    }
}

impl Piece {
    const fn is_asked(&self) -> bool {
        matches!(self, Self::Asked)
    }
}
