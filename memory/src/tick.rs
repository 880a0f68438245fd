//! The DEMOCRITUS tick: how memory follows the log. A pure step; the shell around it reads, writes and waits.
//!
//! Sense → embed → search → update → commit. The tick asks the shell for the entries behind its cursor, has the texts in them
//! embedded, looks what they are near to, adds all of it to the [`Mind`], and asks the shell to keep the batch. It works only
//! when it is woken, as much as the budget says, and waits longer the longer nothing happens.
//!
//! What makes it safe to kill at any moment: a mind changes only by [`Resolved`] entries, in the order of the log, and a
//! resolved entry says everything that its change depends on. So how much is done at once, when, and how often it is begun
//! anew, changes nothing; the batches that were kept, and the log behind them, give the same mind to the byte.
//!
//! [`Tick`] is the machine, [`mind`] what it has made, [`entry`] what it reads and keeps.

pub mod entry;
pub mod mind;

use std::{collections::VecDeque, ops::Range, time::Duration};

use ephor_base::{Seq, Timestamp};

use self::{
    entry::{Author, Batch, Content, LogEntry, Resolved},
    mind::Mind,
};
use crate::{
    chunks::cut,
    index::vectors::{Vector, VectorError},
};

/// The most entries that are read at once, and that one batch holds.
pub const MOST_AT_ONCE: u32 = 256;
/// How long it waits after work, and at most.
pub const SHORTEST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait: an entry is sensed within this time, even if nothing tells the tick of it.
pub const LONGEST_WAIT: Duration = Duration::from_secs(2);

/// Who makes the vectors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Embedder {
    /// The built-in one, within the step.
    BuiltIn,
    /// Another, which the shell asks; what it answers is recorded before it is handed over.
    Asked,
}

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
    /// More than [`MOST_AT_ONCE`].
    #[error("{0} entries at once, at most {MOST_AT_ONCE}")]
    TooMany(usize),
    /// It was told of a commit that it had not asked for.
    #[error("a commit that was not asked for")]
    NoCommit,
    /// A vector for a piece that waits for none.
    #[error("a vector for piece {1} of entry {0}, which waits for none")]
    NoPiece(Seq, usize),
    /// A vector that does not fit the others.
    #[error("the vector does not fit the index")]
    Vector(#[from] VectorError),
}

/// What happens to the tick.
#[derive(Clone, Debug)]
pub enum Event {
    /// It may work: so many units, each an entry or a piece of text.
    Woken {
        /// The units.
        budget: u32,
    },
    /// The entries that it asked for, from its cursor on; none if there are none.
    Read {
        /// The entries, without gaps.
        entries: Vec<LogEntry>,
        /// The end of the log: the number that the next entry will have, and the time of the last.
        end: (Seq, Timestamp),
    },
    /// The vector of a piece that it asked for.
    Embedded {
        /// The entry.
        seq: Seq,
        /// The piece of its text, from 0.
        piece: usize,
        /// The vector; none if the piece has none.
        vector: Option<Vector>,
    },
    /// The batch that it handed over is kept.
    Committed,
}

/// What the shell is to do.
#[derive(Clone, PartialEq, Debug)]
pub enum Command {
    /// Read entries and hand them over.
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
        piece: usize,
        /// The piece.
        text: String,
    },
    /// Keep a batch, and say so.
    Commit(Batch),
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

/// An entry that waits for its vectors.
#[derive(Debug)]
struct Waiting {
    entry: LogEntry,
    pieces: Vec<Piece>,
}

#[derive(Debug)]
enum Piece {
    /// It is to be embedded.
    Text(String),
    Asked,
    Done(Option<Vector>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reading {
    Idle,
    Asked,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Committing {
    Idle,
    /// How many entries of the batch in the making are with the shell.
    Asked(usize),
}

/// The machine.
#[derive(Debug)]
pub struct Tick {
    embedder: Embedder,
    mind: Mind,
    /// What was read and not taken in.
    sensed: VecDeque<Waiting>,
    /// What was taken in and is not kept.
    taken: Vec<Resolved>,
    reading: Reading,
    committing: Committing,
    end: (Seq, Timestamp),
    wait: Duration,
}

impl Tick {
    /// A tick that goes on from a mind: an empty one, or what the kept batches make of one.
    #[must_use]
    pub const fn new(mind: Mind, embedder: Embedder) -> Self {
        let end = (mind.cursor(), mind.time());
        Self {
            embedder,
            mind,
            sensed: VecDeque::new(),
            taken: Vec::new(),
            reading: Reading::Idle,
            committing: Committing::Idle,
            end,
            wait: SHORTEST_WAIT,
        }
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
        match event {
            Event::Woken { budget } => return Ok(self.work(budget)),
            Event::Read { entries, end } => self.read(entries, end)?,
            Event::Embedded { seq, piece, vector } => self.embedded(seq, piece, vector)?,
            Event::Committed => self.committed()?,
        }
        let has_work = self.sensed.front().is_some_and(Waiting::is_ready) || !self.taken.is_empty();
        let can_go_on = has_work || self.sensed.iter().any(Waiting::wants);
        Ok(if can_go_on { vec![Command::Wait(Duration::ZERO)] } else { Vec::new() })
    }

    /// Takes in what is ready, asks for what is missing, and hands over what was made.
    fn work(&mut self, budget: u32) -> Vec<Command> {
        let mut commands = Vec::new();
        let left = self.embed(budget, &mut commands);
        let left = self.update(left);
        self.commit(&mut commands);
        self.sense(&mut commands);
        let is_idle = left == budget && commands.is_empty();
        // Nothing to be read is found out only by reading, so a read alone is no work.
        let is_reading = matches!(commands.as_slice(), [Command::Read { .. }]) && left == budget;
        self.wait = if is_idle || is_reading { (self.wait * 2).min(LONGEST_WAIT) } else { SHORTEST_WAIT };
        commands.push(Command::Wait(self.wait));
        commands
    }

    /// Asks for the vectors of the first entries that wait, or makes them.
    fn embed(&mut self, mut left: u32, commands: &mut Vec<Command>) -> u32 {
        for Waiting { entry, pieces } in &mut self.sensed {
            for (number, piece) in pieces.iter_mut().enumerate() {
                let Piece::Text(text) = piece else { continue };
                if left == 0 {
                    return 0;
                }
                left -= 1;
                *piece = match self.embedder {
                    Embedder::BuiltIn => Piece::Done(self.mind.memory().index().embedder().chunk(text)),
                    Embedder::Asked => {
                        let text = std::mem::take(text);
                        commands.push(Command::Embed { seq: entry.seq, piece: number, text });
                        Piece::Asked
                    }
                };
            }
        }
        left
    }

    /// Takes in the entries whose vectors are all there, as long as the batch has room.
    fn update(&mut self, mut left: u32) -> u32 {
        while left > 0 && self.taken.len() < MOST_AT_ONCE as usize {
            let ready = self.sensed.pop_front_if(|first| first.is_ready());
            let Some(Waiting { entry, pieces }) = ready else { break };
            left -= 1;
            let vectors = pieces.into_iter().map(|piece| if let Piece::Done(vector) = piece { vector } else { None });
            let resolved = self.mind.resolve(entry, vectors.collect());
            self.mind.apply(&resolved);
            self.taken.push(resolved);
        }
        left
    }

    fn commit(&mut self, commands: &mut Vec<Command>) {
        if self.committing == Committing::Idle
            && let Some(batch) = Batch::of(&self.taken)
        {
            self.committing = Committing::Asked(self.taken.len());
            commands.push(Command::Commit(batch));
        }
    }

    fn sense(&mut self, commands: &mut Vec<Command>) {
        if self.reading == Reading::Idle && self.sensed.is_empty() {
            self.reading = Reading::Asked;
            commands.push(Command::Read { from: self.mind.cursor(), most: MOST_AT_ONCE });
        }
    }

    fn read(&mut self, entries: Vec<LogEntry>, end: (Seq, Timestamp)) -> Result<(), TickError> {
        if self.reading == Reading::Idle {
            return Err(TickError::Unasked);
        }
        if entries.len() > MOST_AT_ONCE as usize {
            return Err(TickError::TooMany(entries.len()));
        }
        let mut expected = self.mind.cursor();
        for entry in &entries {
            if entry.seq != expected {
                return Err(TickError::Gap { expected, found: entry.seq });
            }
            expected = expected.next();
        }
        self.reading = Reading::Idle;
        if !entries.is_empty() {
            self.wait = SHORTEST_WAIT;
        }
        self.end = end;
        self.sensed.extend(entries.into_iter().map(Waiting::new));
        Ok(())
    }

    fn embedded(&mut self, seq: Seq, piece: usize, vector: Option<Vector>) -> Result<(), TickError> {
        if let Some(vector) = &vector {
            self.mind.memory().index().vectors().check(vector)?;
        }
        let mut waiting = self.sensed.iter_mut().filter(|waiting| waiting.entry.seq == seq);
        match waiting.next().and_then(|waiting| waiting.pieces.get_mut(piece)) {
            Some(place @ Piece::Asked) => *place = Piece::Done(vector),
            _ => return Err(TickError::NoPiece(seq, piece)),
        }
        Ok(())
    }

    fn committed(&mut self) -> Result<(), TickError> {
        let Committing::Asked(kept) = self.committing else { return Err(TickError::NoCommit) };
        self.taken.drain(..kept.min(self.taken.len()));
        self.committing = Committing::Idle;
        Ok(())
    }
}

impl Waiting {
    /// Whether every piece has its vector, or none to come.
    fn is_ready(&self) -> bool {
        self.pieces.iter().all(|piece| matches!(piece, Piece::Done(_)))
    }

    /// Whether there is a piece that is to be embedded.
    fn wants(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Text(_)))
    }

    /// An entry with the pieces of its text. What the tick itself caused has none, and is not sensed.
    fn new(entry: LogEntry) -> Self {
        let body = match (&entry.author, &entry.content) {
            (
                Author::Other,
                Content::Moment { text: Some(material), .. } | Content::Superseded { by: material, .. },
            ) => material.body.as_str(),
            _ => "",
        };
        // What is too long to be cut is refused when it is taken in, so it needs no vector.
        let ranges = cut(body).unwrap_or_default();
        let text = |range: Range<usize>| Piece::Text(body.get(range).unwrap_or_default().to_owned());
        let pieces = ranges.into_iter().map(text).collect();
        Self { entry, pieces }
    }
}
