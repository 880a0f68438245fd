//! The tick: what it makes of a log, and that nothing on the way changes it.

use std::{collections::VecDeque, time::Duration};

use ephor_base::{Confidentiality, Seq, Timestamp};
use ephor_memory::{
    chunks::{ChunkId, TextSource},
    entry::{Entry, Moment},
    graph::EdgeKind,
    index::{embed::HashedNgrams, vectors::Dimension},
    recall::{Filter, Question},
    tick::{
        Command, Embedder, Event, LONGEST_WAIT, Lag, MOST_AT_ONCE, SHORTEST_WAIT, Tick, TickError,
        entry::{Author, BadBatch, Batch, Content, LogEntry},
        mind::{LOOKS_BACK, Mind},
    },
};
use proptest::prelude::*;

use crate::common::{DIMENSION, Dice, TRUSTED, entry, foreign, id, link, material, memory, session, time};

fn said(seq: u64, in_session: u8, body: &str) -> LogEntry {
    let links = match seq {
        0 => vec![],
        _ => vec![link(id(seq - 1), id(seq), EdgeKind::Follows), link(id(seq / 2), id(seq), EdgeKind::Causes)],
    };
    let text = Some(material(seq, in_session, TRUSTED, body));
    let content = Content::Moment { entry: entry(seq, in_session), links, others: vec![], text };
    LogEntry { seq: Seq(seq), time: time(seq), author: Author::Other, content }
}

fn other(seq: u64, content: Content) -> LogEntry {
    LogEntry { seq: Seq(seq), time: time(seq), author: Author::Other, content }
}

/// A log in which everything happens: texts of several pieces, memories that are superseded and forgotten, an erased
/// session, entries of other logs, what the tick itself caused, and edges that the graph refuses.
fn log(length: u64, seed: u64) -> Vec<LogEntry> {
    const WORDS: [&str; 12] = [
        "budget", "garden", "deploy", "release", "meeting", "invoice", "Ada", "Lisbon", "tests", "database",
        "rollback", "yeast",
    ];
    let mut dice = Dice(seed | 1);
    let text = |dice: &mut Dice| {
        let paragraph = |dice: &mut Dice| {
            let words = (0..1 + dice.below(12)).map(|_| WORDS[dice.below(WORDS.len())]);
            words.collect::<Vec<_>>().join(" ")
        };
        let headings = (0..dice.below(3)).map(|_| format!("\n\n# {}", paragraph(dice))).collect::<String>();
        paragraph(dice) + &headings
    };
    (0..length)
        .map(|seq| {
            let in_session = u8::try_from(dice.below(4)).unwrap();
            let earlier = TextSource::Entry(id(dice.roll() % (seq + 1)));
            match dice.below(12) {
                0 => other(seq, Content::Nothing),
                1 => LogEntry { author: Author::Tick, ..said(seq, in_session, "what the tick said") },
                2 => other(
                    seq,
                    Content::Superseded { older: earlier, by: material(seq, in_session, TRUSTED, &text(&mut dice)) },
                ),
                3 => other(seq, Content::Forgotten(earlier)),
                4 if dice.below(4) == 0 => other(seq, Content::Erased(session(in_session))),
                5 => {
                    let elsewhere = Entry {
                        id: foreign(seq),
                        moment: Moment::foreign(foreign(seq), Seq(seq)),
                        ..entry(seq, in_session)
                    };
                    let links =
                        vec![link(foreign(seq), id(seq), EdgeKind::Causes), link(id(seq), id(seq), EdgeKind::Causes)];
                    other(
                        seq,
                        Content::Moment { entry: entry(seq, in_session), links, others: vec![elsewhere], text: None },
                    )
                }
                _ => said(seq, in_session, &text(&mut dice)),
            }
        })
        .collect()
}

fn mind() -> Mind {
    Mind::new(memory())
}

/// What carries the commands out. What it has kept outlives the tick.
struct Shell<'a> {
    log: &'a [LogEntry],
    kept: Vec<Vec<u8>>,
    embedder: Embedder,
    asked: usize,
    ngrams: HashedNgrams,
}

impl<'a> Shell<'a> {
    fn new(log: &'a [LogEntry], embedder: Embedder) -> Self {
        let ngrams = HashedNgrams::new(Dimension::new(DIMENSION).unwrap());
        Self { log, kept: vec![], embedder, asked: 0, ngrams }
    }

    /// A tick that goes on from what was kept.
    fn begin(&self) -> Tick {
        let mut mind = mind();
        for bytes in &self.kept {
            mind.take_in(&Batch::from_bytes(bytes).unwrap()).unwrap();
        }
        Tick::new(mind, self.embedder)
    }

    /// What comes of a command, if something does.
    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Read { from, most } => {
                let rest = &self.log[usize::try_from(from.0).unwrap()..];
                let entries = rest[..rest.len().min(most as usize)].to_vec();
                Some(Event::Read { entries, end: self.end() })
            }
            Command::Embed { seq, piece, text } => {
                self.asked += 1;
                let vector = self.ngrams.chunk(&text);
                Some(Event::Embedded { seq, piece, vector })
            }
            Command::Commit(batch) => {
                self.kept.push(batch.to_bytes());
                Some(Event::Committed)
            }
            Command::Wait(_) => None,
        }
    }

    fn end(&self) -> (Seq, Timestamp) {
        (Seq(self.log.len() as u64), self.log.last().map_or(Timestamp(0), |entry| entry.time))
    }

    /// Runs until everything is taken in and kept, with budgets by the dice, answers in any order, and killed now and then.
    fn run(&mut self, dice: &mut Dice, kills: bool) -> Tick {
        let mut tick = self.begin();
        let mut todo: VecDeque<Event> = VecDeque::new();
        let mut steps = 0;
        loop {
            steps += 1;
            assert!(steps < 100_000, "it does not come to an end");
            if kills && dice.below(25) == 0 {
                // Whatever was under way is lost, with every answer to it.
                (tick, todo) = (self.begin(), VecDeque::new());
            }
            let event = match dice.below(3) {
                0 => Event::Woken { budget: u32::try_from(dice.below(40)).unwrap() },
                1 => todo.pop_back().unwrap_or(Event::Woken { budget: 300 }),
                _ => todo.pop_front().unwrap_or(Event::Woken { budget: 300 }),
            };
            for command in tick.step(event).unwrap() {
                if kills && dice.below(30) == 0 {
                    // Killed before this command, and those after it, were carried out.
                    (tick, todo) = (self.begin(), VecDeque::new());
                    break;
                }
                let answer = self.carry_out(command);
                todo.extend(answer);
            }
            let kept = self.begin_cursor();
            if kept.0 == self.log.len() as u64 && tick.mind().cursor() == kept {
                return tick;
            }
        }
    }

    fn begin_cursor(&self) -> Seq {
        let last = self.kept.last().map(|bytes| Batch::from_bytes(bytes).unwrap());
        last.and_then(|batch| batch.entries().last().map(|entry| entry.entry.seq.next())).unwrap_or(Seq(0))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn killed_at_any_step_it_comes_to_the_same_bytes(length in 1_u64..60, seed in any::<u64>(), asked in any::<bool>()) {
        let log = log(length, seed);
        let embedder = if asked { Embedder::Asked } else { Embedder::BuiltIn };
        let mut straight = Shell::new(&log, embedder);
        let expected = straight.run(&mut Dice(99), false).mind().to_bytes();
        let mut killed = Shell::new(&log, embedder);
        let tick = killed.run(&mut Dice(seed | 3), true);
        prop_assert_eq!(&tick.mind().to_bytes(), &expected);
        // And so do the kept batches alone, without a search and without an embedder.
        prop_assert_eq!(&killed.begin().mind().to_bytes(), &expected);
        prop_assert_eq!(&straight.begin().mind().to_bytes(), &expected);
        // No entry was kept twice, and none is missing.
        let kept: Vec<u64> = killed.kept.iter().flat_map(|bytes| {
            Batch::from_bytes(bytes).unwrap().entries().iter().map(|entry| entry.entry.seq.0).collect::<Vec<_>>()
        }).collect();
        prop_assert_eq!(kept, (0..length).collect::<Vec<_>>());
    }
}

fn drive(tick: &mut Tick, shell: &mut Shell<'_>, budget: u32) -> Duration {
    let mut wait = Duration::ZERO;
    let mut todo = VecDeque::from([Event::Woken { budget }]);
    while let Some(event) = todo.pop_front() {
        for command in tick.step(event).unwrap() {
            if let Command::Wait(time) = command {
                wait = time;
            }
            todo.extend(shell.carry_out(command));
        }
    }
    wait
}

#[test]
fn what_was_said_is_recalled_after_a_tick() {
    let log: Vec<LogEntry> = (0..)
        .zip(["The garden meeting is on Monday.", "Ada lives in Lisbon.", "The budget meeting is on Monday."])
        .map(|(seq, body)| said(seq, 0, body))
        .collect();
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    let mut tick = shell.begin();
    assert_eq!(tick.mind().cursor(), Seq(0));
    drive(&mut tick, &mut shell, 100);
    assert_eq!(tick.lag(), Lag { entries: 3, time: time(2).since(Timestamp(0)) });
    drive(&mut tick, &mut shell, 100);
    assert_eq!(tick.lag(), Lag::default());
    let filter = Filter::clearance(Confidentiality::Internal);
    let question = Question { text: "Where does Ada live?", vector: None, most: 1, filter };
    let found = tick.mind().memory().recall(&question).unwrap();
    assert_eq!(found[0].chunk.source, TextSource::Entry(id(1)));
    assert_eq!(tick.mind().memory().graph().len(), 3);
    assert_eq!(tick.mind().left_out(), (0, None));
    // The two meetings are near to each other, and the later is less new.
    let batch = Batch::from_bytes(&shell.kept[0]).unwrap();
    let novelty: Vec<u16> = batch.entries().iter().map(|entry| entry.novelty().unwrap()).collect();
    assert_eq!(novelty[0], 1_000);
    assert!(novelty[2] < novelty[1], "{novelty:?}");
    assert_eq!(batch.entries()[2].echoes[0].chunk, ChunkId(0));
}

#[test]
fn a_budget_bounds_what_is_done_at_once() {
    let log: Vec<LogEntry> = (0..50).map(|seq| said(seq, 0, "one piece of text")).collect();
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    let mut tick = shell.begin();
    drive(&mut tick, &mut shell, 0);
    assert_eq!(tick.lag().entries, 50, "nothing was done, but it is known how much there is");
    for _ in 0..10 {
        let before = tick.mind().cursor().0;
        drive(&mut tick, &mut shell, 7);
        assert!(tick.mind().cursor().0 - before <= 7);
    }
    let mut rounds = 0;
    while tick.lag().entries > 0 {
        drive(&mut tick, &mut shell, 7);
        rounds += 1;
    }
    // An entry and its one piece are two units.
    assert!((50 * 2 / 7 - 10..=50 * 2 / 7 + 5 - 10).contains(&rounds), "{rounds}");
}

#[test]
fn it_backs_off_when_nothing_happens_and_wakes_when_something_does() {
    let log: Vec<LogEntry> = (0..3).map(|seq| said(seq, 0, "text")).collect();
    let mut shell = Shell::new(&log[..1], Embedder::BuiltIn);
    let mut tick = shell.begin();
    drive(&mut tick, &mut shell, 100);
    assert_eq!(drive(&mut tick, &mut shell, 100), SHORTEST_WAIT, "it has worked");
    let waits: Vec<Duration> = (0..10).map(|_| drive(&mut tick, &mut shell, 100)).collect();
    assert!(waits.is_sorted() && waits[0] < LONGEST_WAIT && waits[9] == LONGEST_WAIT, "{waits:?}");
    // The log has grown: what is read is worked on at once, and then it is wide awake.
    shell.log = &log;
    assert_eq!(drive(&mut tick, &mut shell, 100), Duration::ZERO);
    assert_eq!(drive(&mut tick, &mut shell, 100), SHORTEST_WAIT);
    assert_eq!(tick.lag().entries, 0);
}

#[test]
fn what_the_tick_caused_is_not_sensed() {
    let log = vec![
        said(0, 0, "Ada lives in Lisbon."),
        LogEntry { author: Author::Tick, ..said(1, 0, "Ada lives in Lisbon.") },
        LogEntry { author: Author::Tick, ..other(2, Content::Erased(session(0))) },
    ];
    let mut shell = Shell::new(&log, Embedder::Asked);
    let mut tick = shell.run(&mut Dice(1), false);
    assert_eq!(shell.asked, 1);
    assert_eq!(tick.mind().memory().graph().len(), 1);
    assert_eq!(tick.mind().memory().chunks().len(), 1);
    assert_eq!(tick.mind().cursor(), Seq(3));
    drive(&mut tick, &mut shell, 10);
    assert_eq!(shell.asked, 1);
}

#[test]
fn an_impulse_halves_in_an_hour_and_an_echo_renews_it() {
    const HOUR: u64 = 3_600_000_000;
    let at = |entry: LogEntry, micros: u64| LogEntry { time: Timestamp(micros), ..entry };
    let log = vec![
        at(said(0, 0, "the budget meeting"), 0),
        at(said(1, 0, "yeast and flour for the bread"), 0),
        at(said(2, 0, "the budget meeting again"), 2 * HOUR),
    ];
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    let tick = shell.run(&mut Dice(1), false);
    let impulse = |chunk, hours: u64| tick.mind().impulse(ChunkId(chunk), Timestamp(hours * HOUR));
    assert_eq!([impulse(1, 0), impulse(1, 1), impulse(1, 3)], [1 << 20, 1 << 19, 1 << 17]);
    assert_eq!(tick.mind().impulse(ChunkId(1), Timestamp(HOUR / 2)), (1 << 20) * 3 / 4);
    assert!(impulse(0, 2) > impulse(1, 2) + (1 << 18), "the echo came at two");
    assert_eq!((impulse(1, 40), impulse(1, u64::from(u32::MAX)), impulse(9, 0)), (0, 0, 0));
    // A clock that goes back takes nothing away.
    assert_eq!(impulse(2, 0), 1 << 20);
}

#[test]
fn a_shell_that_does_what_it_was_not_asked_is_told() {
    let mut tick = Tick::new(mind(), Embedder::Asked);
    let end = (Seq(9), time(9));
    let read = |entries| Event::Read { entries, end };
    assert!(matches!(tick.step(read(vec![])), Err(TickError::Unasked)));
    assert!(matches!(tick.step(Event::Committed), Err(TickError::NoCommit)));
    tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(tick.step(read(vec![said(1, 0, "x")])), Err(TickError::Gap { expected: Seq(0), found: Seq(1) })));
    let many = (0..u64::from(MOST_AT_ONCE) + 1).map(|seq| said(seq, 0, "x")).collect();
    assert!(matches!(tick.step(read(many)), Err(TickError::TooMany(_))));
    tick.step(read(vec![said(0, 0, "x")])).unwrap();
    let vector = |numbers: &[f32]| Some(ephor_memory::index::vectors::Vector::quantised(numbers).unwrap());
    let embedded = |piece, vector| Event::Embedded { seq: Seq(0), piece, vector };
    assert!(matches!(tick.step(embedded(0, None)), Err(TickError::NoPiece(Seq(0), 0))), "it was not asked for yet");
    tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(tick.step(embedded(1, None)), Err(TickError::NoPiece(Seq(0), 1))));
    assert!(matches!(tick.step(embedded(0, vector(&[1.0]))), Err(TickError::Vector(_))));
    tick.step(embedded(0, vector(&[1.0; DIMENSION]))).unwrap();
    assert!(matches!(tick.step(embedded(0, None)), Err(TickError::NoPiece(Seq(0), 0))));
    let commands = tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(&commands[0], Command::Commit(batch) if batch.entries().len() == 1));
}

#[test]
fn bytes_that_are_no_batch_are_refused() {
    let log: Vec<LogEntry> = (0..4).map(|seq| said(seq, 0, "text")).collect();
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    shell.run(&mut Dice(5), false);
    let bytes = shell.kept.concat();
    assert!(matches!(Batch::from_bytes(&bytes[..bytes.len() - 1]), Err(BadBatch::Encoding(_))));
    assert!(matches!(Batch::from_bytes(&[0x80]), Err(BadBatch::Gap)));
    // A batch behind a gap is refused, one that is past changes nothing.
    let batch = Batch::from_bytes(shell.kept.last().unwrap()).unwrap();
    let mut ahead = mind();
    if batch.entries()[0].entry.seq > Seq(0) {
        assert_eq!(ahead.take_in(&batch), Err(Seq(0)));
    }
    let mut whole = shell.begin();
    let before = whole.mind().to_bytes();
    whole.mind_mut().take_in(&batch).unwrap();
    assert_eq!(whole.mind().to_bytes(), before);
}

#[test]
fn an_erased_session_is_gone_from_everything_that_is_derived() {
    let mut log: Vec<LogEntry> =
        (0..20).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), &format!("secret{} word{seq}", seq % 2))).collect();
    log.push(other(20, Content::Erased(session(1))));
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    let tick = shell.run(&mut Dice(8), false);
    let bytes = tick.mind().to_bytes();
    let holds = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
    assert!(holds("secret0") && !holds("secret1"));
    assert!(tick.mind().memory().index().scores("secret1 word1", |_| true).is_empty());
    assert_eq!(tick.mind().memory().index().vectors().len(), 10);
    assert!(tick.mind().memory().graph().entries().all(|entry| entry.session == session(0)));
}

#[test]
fn what_is_forgotten_takes_no_place_among_what_is_looked_back_to() {
    let mut log = vec![said(0, 0, "the budget meeting of the board")];
    let passing = u64::try_from(LOOKS_BACK).unwrap() + 10;
    for number in 0..passing {
        log.push(said(1 + 2 * number, 0, "passing"));
        log.push(other(2 + 2 * number, Content::Forgotten(TextSource::Entry(id(1 + 2 * number)))));
    }
    log.push(said(1 + 2 * passing, 0, "the budget meeting of the board"));
    let mut shell = Shell::new(&log, Embedder::BuiltIn);
    let tick = shell.run(&mut Dice(4), false);
    assert_eq!(tick.mind().memory().chunks().len(), 2);
    let batch = Batch::from_bytes(shell.kept.last().unwrap()).unwrap();
    assert_eq!(batch.entries().last().unwrap().novelty(), Some(0));
}
