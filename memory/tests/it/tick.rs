//! The tick: what it makes of a log, and that nothing on the way changes it.

use std::{
    collections::{BTreeSet, VecDeque},
    time::Duration,
};

use ephor_base::{Confidentiality, Digest, Integrity, Seq, SessionId, Timestamp};
use ephor_memory::{
    chunks::{Ending, Material, UNKNOWN},
    entry::{Entry, EntryRef, Moment},
    graph::EdgeKind,
    index::embed::Embedder,
    recall::{Filter, Question},
    tick::{
        Command, Event, LONGEST_WAIT, Lag, MOST_ASKED, MOST_AT_ONCE, SHORTEST_WAIT, Tick, TickError,
        entry::{Author, Content, LogEntry, MOST_LINKS},
        mind::{LeftOut, Mind},
        part::Part,
    },
};
use proptest::prelude::*;

use crate::common::{
    DIMENSION, Dice, OTHER, SECRET, TRUSTED, asked, built_in, embedding, entry, foreign, id, link, material, memory_by,
    piece, session, source, time,
};

fn silent(seq: u64) -> LogEntry {
    LogEntry { seq: Seq(seq), leaf: id(seq).leaf, time: time(seq), author: Author::Other, ends: None, content: None }
}

fn says(seq: u64, in_session: u8, text: Option<Material>) -> LogEntry {
    let links = match seq {
        0 => vec![],
        _ => vec![link(id(seq - 1), id(seq), EdgeKind::Follows), link(id(seq / 2), id(seq), EdgeKind::Causes)],
    };
    let content = Content { entry: entry(seq, in_session), links, others: vec![], text };
    LogEntry { content: Some(content), ..silent(seq) }
}

fn said(seq: u64, in_session: u8, body: &str) -> LogEntry {
    says(seq, in_session, Some(material(seq, in_session, TRUSTED, body)))
}

fn ends(entry: LogEntry, ending: Ending) -> LogEntry {
    LogEntry { ends: Some(ending), ..entry }
}

/// A log in which everything happens: texts of several pieces, memories that are superseded and forgotten, erased
/// sessions, entries of other logs, what the tick itself caused, and edges that the graph refuses.
fn log(length: u64, seed: u64) -> Vec<LogEntry> {
    const WORDS: [&str; 12] = [
        "budget", "garden", "deploy", "release", "meeting", "invoice", "Ada", "Lisbon", "tests", "database",
        "rollback", "yeast",
    ];
    let mut dice = Dice(seed | 1);
    let text = |dice: &mut Dice| {
        let paragraph = |dice: &mut Dice| {
            let words = (0..1 + dice.below(150)).map(|_| WORDS[dice.below(WORDS.len())]);
            words.collect::<Vec<_>>().join(" ")
        };
        let headings = (0..dice.below(3)).map(|_| format!("\n\n# {}", paragraph(dice))).collect::<String>();
        paragraph(dice) + &headings
    };
    // What follows an erased session is another.
    let mut sessions = [0, 1, 2, 3];
    (0..length)
        .map(|seq| {
            let at = dice.below(4);
            let in_session = sessions[at];
            let earlier = Ending::Text(source(dice.roll() % (seq + 1)));
            let label = if dice.below(3) == 0 { SECRET } else { TRUSTED };
            let saying = says(seq, in_session, Some(material(seq, in_session, label, &text(&mut dice))));
            match dice.below(12) {
                0 => silent(seq),
                1 => LogEntry { author: Author::Tick, ..saying },
                2 | 3 => ends(saying, earlier),
                4 => ends(says(seq, in_session, None), earlier),
                5 if dice.below(2) == 0 => {
                    sessions[at] += 4;
                    let last = if dice.below(2) == 0 { saying } else { silent(seq) };
                    ends(last, Ending::Session(session(in_session)))
                }
                6 => {
                    let elsewhere = Entry {
                        id: foreign(seq),
                        moment: Moment::foreign(foreign(seq), Seq(seq)),
                        session: session(77),
                        ..entry(seq, in_session)
                    };
                    let links =
                        vec![link(foreign(seq), id(seq), EdgeKind::Causes), link(id(seq), id(seq), EdgeKind::Causes)];
                    let content = Content { entry: entry(seq, in_session), links, others: vec![elsewhere], text: None };
                    LogEntry { content: Some(content), ..silent(seq) }
                }
                _ => saying,
            }
        })
        .collect()
}

fn endings(log: &[LogEntry]) -> Vec<(Seq, Ending)> {
    log.iter().filter_map(|entry| Some((entry.seq, entry.ends.clone()?))).collect()
}

/// What carries the commands out. What it has kept outlives the tick.
struct Shell {
    log: Vec<LogEntry>,
    /// How much of the log is on the record by now, and how much of it the tick was told of.
    end: usize,
    told: usize,
    kept: Vec<Part>,
    embedder: Embedder,
    /// The texts that went to the embedder.
    asked: Vec<(Seq, String)>,
}

impl Shell {
    fn new(log: Vec<LogEntry>, embedder: Embedder) -> Self {
        let end = log.len();
        Self { log, end, told: end, kept: vec![], embedder, asked: vec![] }
    }

    /// A tick that knows what has ended so far.
    fn begin(&mut self) -> Tick {
        self.told = self.end;
        Tick::new(Mind::new(memory_by(self.embedder.clone())), endings(&self.log[..self.end])).unwrap()
    }

    /// Whether the key of a session is gone, which an entry at `seq` or later belongs to.
    fn is_erased(&self, session: SessionId, seq: Seq) -> bool {
        endings(&self.log[..self.end]).iter().any(|(at, ending)| *ending == Ending::Session(session) && *at >= seq)
    }

    /// What comes of a command, if something does.
    fn carry_out(&mut self, command: Command) -> Option<Event> {
        match command {
            Command::Read { from, most } => {
                let from = usize::try_from(from.0).unwrap();
                let entries: Vec<LogEntry> = self.log[from.min(self.end)..self.end]
                    .iter()
                    .take(most as usize)
                    .map(|entry| {
                        let session = entry.content.as_ref().map(|content| content.entry.session);
                        let is_gone = session.is_some_and(|session| self.is_erased(session, entry.seq));
                        LogEntry { content: entry.content.clone().filter(|_| !is_gone), ..entry.clone() }
                    })
                    .collect();
                let of = |part: &&Part| part.texts.iter().any(|text| entries.iter().any(|entry| entry.seq == text.seq));
                let kept = self.kept.iter().filter(of).cloned().collect();
                let end = (Seq(self.end as u64), self.log[..self.end].last().map_or(Timestamp(0), |entry| entry.time));
                Some(Event::Read { entries, kept, end })
            }
            Command::Embed { seq, piece, text } => {
                let content = self.log[usize::try_from(seq.0).unwrap()].content.clone().unwrap();
                let source = Ending::Text(content.text.unwrap().source);
                let of = |(at, ending): &(Seq, Ending)| {
                    *at > seq && (*ending == source || *ending == Ending::Session(content.entry.session))
                };
                assert!(!endings(&self.log[..self.told]).iter().any(of), "it was over when it was handed out");
                let vector = built_in().chunk(&text);
                self.asked.push((seq, text));
                Some(Event::Embedded { seq, piece, embedding: vector.map(|vector| embedding(&self.embedder, vector)) })
            }
            Command::Keep(parts) => {
                let parts = parts.into_iter().filter(|part| !self.is_erased(part.session, part.texts[0].seq));
                let parts: Vec<Part> = parts.map(|part| Part::from_bytes(&part.to_bytes()).unwrap()).collect();
                self.kept.extend(parts);
                Some(Event::Kept)
            }
            Command::Wait(_) | Command::Withdraw { .. } => None,
        }
    }

    /// Runs until everything is taken in and kept, with budgets by the dice, answers in any order, told of endings ahead of the tick, and
    /// killed now and then.
    fn run(&mut self, dice: &mut Dice, kills: bool) -> Tick {
        let mut tick = self.begin();
        let mut todo: VecDeque<Event> = VecDeque::new();
        let (mut steps, mut calm) = (0, 0);
        while calm < 9 {
            steps += 1;
            let is_done = tick.mind().cursor().0 == self.log.len() as u64;
            calm = if is_done { calm + 1 } else { 0 };
            assert!(steps < 100_000, "it does not come to an end");
            if self.end < self.log.len() && dice.below(2) == 0 {
                let entry = &self.log[self.end];
                (self.end, self.told) = (self.end + 1, self.end + 1);
                if let Some(ending) = entry.ends.clone() {
                    let at = entry.seq;
                    let commands = tick.step(Event::Ended { at, ending }).unwrap();
                    assert!(commands.iter().all(|c| matches!(c, Command::Withdraw { .. } | Command::Wait(_))));
                    // An answer that was under way is lost.
                    for command in commands {
                        if let Command::Withdraw { seq } = command {
                            todo.retain(|event| !matches!(event, Event::Embedded { seq: of, .. } if *of == seq));
                        }
                    }
                }
            }
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
        }
        // What was under way comes to its end.
        for event in todo {
            for command in tick.step(event).unwrap() {
                self.carry_out(command);
            }
        }
        while drive(&mut tick, self, 1_000) < LONGEST_WAIT {}
        tick
    }
}

/// What everything in a log amounts to, taken in at one go, with nothing known ahead.
fn straight(log: Vec<LogEntry>, embedder: Embedder) -> (Vec<u8>, Vec<Part>) {
    let mut shell = Shell::new(log, embedder);
    // Endings are read with their entries alone.
    let mut tick = Tick::new(Mind::new(memory_by(shell.embedder.clone())), []).unwrap();
    shell.told = 0;
    while drive(&mut tick, &mut shell, 100_000) < LONGEST_WAIT {}
    (tick.mind().to_bytes(), shell.kept)
}

fn drive(tick: &mut Tick, shell: &mut Shell, budget: u32) -> Duration {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn killed_at_any_step_it_comes_to_the_same_bytes(length in 1_u64..60, seed in any::<u64>(), own in any::<bool>()) {
        let log = log(length, seed);
        let embedder = if own { built_in() } else { asked() };
        let mut grown = Shell { end: 0, ..Shell::new(log.clone(), embedder.clone()) };
        let tick = grown.run(&mut Dice(seed | 3), true);
        let bytes = tick.mind().to_bytes();
        let texts: Vec<Seq> = grown.kept.iter().flat_map(|part| part.texts.iter().map(|text| text.seq)).collect();
        // What is kept, and the log, are enough: no embedder is asked, and nothing is kept twice.
        let (asked_before, kept_before) = (grown.asked.len(), grown.kept.len());
        let again = grown.run(&mut Dice(99), false);
        prop_assert_eq!(&again.mind().to_bytes(), &bytes);
        prop_assert_eq!((grown.asked.len(), grown.kept.len()), (asked_before, kept_before));
        prop_assert_eq!(texts.len(), texts.iter().collect::<BTreeSet<_>>().len());
        // What is erased is as if it had never been there.
        let erased = |entry: &LogEntry| entry.content.as_ref().is_some_and(|c| grown.is_erased(c.entry.session, entry.seq));
        let never: Vec<LogEntry> = log.iter().map(|entry| LogEntry {
            content: entry.content.clone().filter(|_| !erased(entry)), ..entry.clone()
        }).collect();
        let mut never = Shell { kept: grown.kept.clone(), ..Shell::new(never, embedder) };
        prop_assert_eq!(&never.run(&mut Dice(98), false).mind().to_bytes(), &bytes);
    }
}

#[test]
fn the_order_of_the_log_alone_says_what_there_is() {
    // What is over is known ahead in the one run and not in the other.
    for seed in 0..20 {
        let log = log(50, seed);
        let (bytes, kept) = straight(log.clone(), built_in());
        let mut ahead = Shell { kept, ..Shell::new(log, built_in()) };
        assert_eq!(ahead.run(&mut Dice(seed | 1), false).mind().to_bytes(), bytes, "seed {seed}");
    }
}

fn recalled(tick: &Tick, text: &str) -> Vec<u64> {
    let filter = Filter::clearance(Confidentiality::Confidential);
    let found = tick.mind().memory().recall(&Question { text, embedding: None, most: 5, filter }).unwrap();
    found.iter().map(|recalled| recalled.chunk.id.entry.0).collect()
}

#[test]
fn what_was_said_is_recalled_after_a_tick() {
    let said: Vec<LogEntry> = (0..)
        .zip(["The garden meeting is on Monday.", "Ada lives in Lisbon.", "The budget meeting is on Monday."])
        .map(|(seq, body)| said(seq, 0, body))
        .collect();
    let mut shell = Shell::new(said, built_in());
    let mut tick = shell.begin();
    assert_eq!(tick.mind().cursor(), Seq(0));
    drive(&mut tick, &mut shell, 100);
    assert_eq!(tick.lag(), Lag { entries: 3, time: time(2).since(Timestamp(0)) });
    drive(&mut tick, &mut shell, 100);
    assert_eq!(tick.lag(), Lag::default());
    assert_eq!(recalled(&tick, "Where does Ada live?")[0], 1);
    assert_eq!(tick.mind().memory().graph().len(), 3);
    assert_eq!(tick.mind().left_out(), (0, None));
}

#[test]
fn what_is_over_is_in_no_answer_before_the_tick_comes_to_it_and_goes_to_no_embedder() {
    let mut log: Vec<LogEntry> =
        (0..4).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), "Ada lives in Lisbon.")).collect();
    log.extend(
        (4..8).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), &format!("Ada moved to Porto {seq} times."))),
    );
    let mut shell = Shell::new(log, asked());
    let mut tick = shell.begin();
    // Four are taken in; four wait for an answer that does not come.
    shell.end = 4;
    while drive(&mut tick, &mut shell, 100) < LONGEST_WAIT {}
    shell.end = 8;
    assert_eq!(recalled(&tick, "Ada Lisbon"), [0]);
    let read = tick.step(Event::Woken { budget: 100 }).unwrap();
    let read = read.into_iter().find_map(|command| shell.carry_out(command)).unwrap();
    tick.step(read).unwrap();
    let waiting = tick.step(Event::Woken { budget: 100 }).unwrap();
    assert_eq!(waiting.iter().filter(|command| matches!(command, Command::Embed { .. })).count(), 4);
    // Text 2 is forgotten, session 1 is erased, and text 6 too, which the tick has read and not taken in.
    let mut withdrawn = Vec::new();
    for (at, ending) in [(8, Ending::Text(source(2))), (9, Ending::Session(session(1))), (10, Ending::Text(source(6)))]
    {
        for command in tick.step(Event::Ended { at: Seq(at), ending }).unwrap() {
            if let Command::Withdraw { seq } = command {
                withdrawn.push(seq.0);
            }
        }
    }
    assert_eq!(withdrawn, [5, 7, 6]);
    assert_eq!(recalled(&tick, "Ada Lisbon"), [0]);
    assert!(tick.mind().memory().chunks().of_source(&source(2)).next().is_none());
    assert!(tick.mind().memory().graph().entries().all(|entry| entry.session == session(0)));
    // Its answer is no more than late; and what is taken in now is not recalled either.
    let late = embedding(&asked(), built_in().chunk("Ada").unwrap());
    tick.step(Event::Embedded { seq: Seq(5), piece: 0, embedding: Some(late.clone()) }).unwrap();
    tick.step(Event::Embedded { seq: Seq(4), piece: 0, embedding: Some(late) }).unwrap();
    tick.step(Event::Woken { budget: 100 }).unwrap();
    assert_eq!(tick.mind().cursor(), Seq(8));
    assert_eq!(recalled(&tick, "Ada Porto Lisbon times").into_iter().collect::<BTreeSet<_>>(), BTreeSet::from([0, 4]));
    assert!(tick.mind().memory().graph().entries().all(|entry| entry.session == session(0)));
    // What begins anew knows it from the beginning.
    let known = [(Seq(8), Ending::Session(session(0)))];
    let mut anew = Tick::new(Mind::new(memory_by(asked())), known).unwrap();
    shell.asked.clear();
    while drive(&mut anew, &mut shell, 100) < LONGEST_WAIT {}
    assert!(!shell.asked.is_empty() && shell.asked.iter().all(|(seq, _)| seq.0 % 2 == 1));
}

#[test]
fn what_the_tick_caused_is_not_sensed_and_nothing_is_kept_of_it() {
    let mut shell = Shell::new(vec![said(0, 0, "Ada lives in Lisbon.")], asked());
    let mut tick = shell.begin();
    let mut rounds = 0;
    // Every part that is kept, and every text that is embedded, makes an entry of the log.
    while drive(&mut tick, &mut shell, 100) < LONGEST_WAIT {
        let caused = u64::try_from(1 + shell.kept.len() + shell.asked.len()).unwrap();
        for seq in shell.log.len() as u64..caused {
            shell.log.push(LogEntry { author: Author::Tick, ..said(seq, 0, "Ada lives in Lisbon.") });
        }
        shell.end = shell.log.len();
        rounds += 1;
        assert!(rounds < 20, "it follows itself");
    }
    assert_eq!((shell.asked.len(), shell.kept.len(), tick.mind().cursor()), (1, 1, Seq(3)));
    assert_eq!(tick.mind().memory().graph().len(), 1);
    assert_eq!(tick.mind().memory().chunks().len(), 1);
}

#[test]
fn a_budget_bounds_what_is_done_at_once() {
    let log: Vec<LogEntry> = (0..50).map(|seq| said(seq, 0, "one piece of text")).collect();
    let mut shell = Shell::new(log, built_in());
    let mut tick = shell.begin();
    drive(&mut tick, &mut shell, 0);
    assert_eq!(tick.lag().entries, 50, "nothing was done, but it is known how much there is");
    let mut rounds = 0;
    while tick.lag().entries > 0 {
        let before = tick.mind().cursor().0;
        drive(&mut tick, &mut shell, 7);
        assert!(tick.mind().cursor().0 - before <= 4);
        rounds += 1;
    }
    // Cutting an entry with one piece, and taking it in, are two units each.
    assert!((50 * 4 / 7..=50 * 4 / 7 + 2).contains(&rounds), "{rounds}");
}

#[test]
fn a_long_text_uses_up_the_budgets_to_come() {
    let long = "# word\n".to_owned() + &"word ".repeat(100_000);
    let log: Vec<LogEntry> = (0..3).map(|seq| said(seq, 0, &long)).collect();
    let mut shell = Shell::new(log, built_in());
    let mut tick = shell.begin();
    drive(&mut tick, &mut shell, 1);
    let pieces = ephor_memory::chunks::cut(&long).unwrap().len();
    let mut rounds = 0;
    while tick.lag().entries > 0 {
        let before = tick.mind().cursor().0;
        drive(&mut tick, &mut shell, 20);
        assert!(tick.mind().cursor().0 - before <= 1);
        rounds += 1;
    }
    // The last is cut and taken in at one go each, on credit.
    assert!(rounds >= (5 * (1 + pieces)) / 20, "{rounds}");
    assert_eq!(tick.mind().memory().chunks().len(), 3 * pieces);
}

#[test]
fn no_more_is_with_the_embedder_than_it_is_to_be_given() {
    let long = "word ".repeat(100_000);
    let mut shell = Shell::new(vec![said(0, 0, &long)], asked());
    let mut tick = shell.begin();
    let mut todo = VecDeque::from([Event::Woken { budget: 10_000 }]);
    let (mut with, mut most) = (0_usize, 0);
    while let Some(event) = todo.pop_front() {
        with -= usize::from(matches!(event, Event::Embedded { .. }));
        for command in tick.step(event).unwrap() {
            with += usize::from(matches!(command, Command::Embed { .. }));
            most = most.max(with);
            if matches!(command, Command::Wait(Duration::ZERO)) {
                todo.push_back(Event::Woken { budget: 10_000 });
            }
            todo.extend(shell.carry_out(command));
        }
    }
    assert_eq!((most, tick.mind().cursor()), (MOST_ASKED, Seq(1)));
    assert_eq!(shell.asked.len(), tick.mind().memory().chunks().len());
}

#[test]
fn it_backs_off_when_nothing_happens_and_wakes_when_something_does() {
    let log: Vec<LogEntry> = (0..3).map(|seq| said(seq, 0, "text")).collect();
    let mut shell = Shell { end: 1, ..Shell::new(log, built_in()) };
    let mut tick = shell.begin();
    drive(&mut tick, &mut shell, 100);
    assert_eq!(drive(&mut tick, &mut shell, 100), SHORTEST_WAIT, "it has worked");
    let waits: Vec<Duration> = (0..10).map(|_| drive(&mut tick, &mut shell, 100)).collect();
    assert!(waits.is_sorted() && waits[0] < LONGEST_WAIT && waits[9] == LONGEST_WAIT, "{waits:?}");
    // The log has grown: what is read is worked on at once, and then it is wide awake.
    shell.end = 3;
    assert_eq!(drive(&mut tick, &mut shell, 100), Duration::ZERO);
    assert_eq!(drive(&mut tick, &mut shell, 100), SHORTEST_WAIT);
    assert_eq!(tick.lag().entries, 0);
}

#[test]
fn a_shell_that_does_what_it_was_not_asked_is_told() {
    let mut tick = Tick::new(Mind::new(memory_by(asked())), []).unwrap();
    let end = (Seq(9), time(9));
    let read = |entries| Event::Read { entries, kept: vec![], end };
    assert!(matches!(tick.step(read(vec![])), Err(TickError::Unasked)));
    assert!(matches!(tick.step(Event::Kept), Err(TickError::NotAsked)));
    tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(tick.step(read(vec![said(1, 0, "x")])), Err(TickError::Gap { expected: Seq(0), found: Seq(1) })));
    let many = (0..u64::from(MOST_AT_ONCE) + 1).map(|seq| said(seq, 0, "x")).collect();
    assert!(matches!(tick.step(read(many)), Err(TickError::TooMany(_))));
    let large = (0..6).map(|seq| said(seq, 0, &"x".repeat(1 << 20))).collect();
    assert!(matches!(tick.step(read(large)), Err(TickError::TooMany(6))));
    let mut crowded = said(0, 0, "x");
    crowded.content.as_mut().unwrap().links = vec![link(id(0), id(1), EdgeKind::Causes); MOST_LINKS + 1];
    assert!(matches!(tick.step(read(vec![crowded])), Err(TickError::TooManyLinks(Seq(0)))));
    let moved = LogEntry { content: said(1, 0, "x").content, ..said(0, 0, "x") };
    assert!(matches!(tick.step(read(vec![moved])), Err(TickError::Misplaced(Seq(0)))));
    tick.step(read(vec![said(0, 0, "x")])).unwrap();
    let vector = |numbers: &[f32]| ephor_memory::index::vectors::Vector::quantised(numbers).unwrap();
    let embedded = |piece, by: &Embedder, numbers: &[f32]| Event::Embedded {
        seq: Seq(0),
        piece,
        embedding: Some(embedding(by, vector(numbers))),
    };
    let whole = [1.0; DIMENSION];
    assert!(matches!(tick.step(embedded(0, &asked(), &whole)), Err(TickError::NoPiece(Seq(0), 0))), "not asked yet");
    tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(tick.step(embedded(1, &asked(), &whole)), Err(TickError::NoPiece(Seq(0), 1))));
    assert!(matches!(tick.step(embedded(0, &asked(), &[1.0])), Err(TickError::Vector(_))));
    assert!(matches!(tick.step(embedded(0, &built_in(), &whole)), Err(TickError::Vector(_))));
    tick.step(embedded(0, &asked(), &whole)).unwrap();
    assert!(matches!(tick.step(embedded(0, &asked(), &whole)), Err(TickError::NoPiece(Seq(0), 0))));
    let commands = tick.step(Event::Woken { budget: 9 }).unwrap();
    assert!(matches!(&commands[0], Command::Keep(parts) if parts.len() == 1 && parts[0].texts.len() == 1));
}

/// What a log of two sessions leaves, kept at one go.
fn parts() -> Vec<Part> {
    let log = (0..6).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), &format!("Secret number {seq}"))).collect();
    straight(log, asked()).1
}

#[test]
fn a_part_is_of_one_session_and_holds_no_text() {
    let parts = parts();
    assert_eq!(parts.iter().map(|part| part.session).collect::<Vec<_>>(), [session(0), session(1)]);
    for part in &parts {
        assert_eq!((part.made_at, &part.embedder), (id(5), asked().name()));
        assert!(part.texts.iter().all(|text| session(u8::try_from(text.seq.0 % 2).unwrap()) == part.session));
        assert!(part.texts.iter().all(|text| text.leaf == id(text.seq.0).leaf));
        let bytes = part.to_bytes();
        assert!(!bytes.windows(6).any(|window| window.eq_ignore_ascii_case(b"secret")));
        assert_eq!(&Part::from_bytes(&bytes).unwrap(), part);
    }
}

#[test]
fn bytes_that_are_no_part_are_refused() {
    let part = parts().remove(0);
    let bytes = part.to_bytes();
    assert!(Part::from_bytes(&bytes[..bytes.len() - 1]).is_err());
    assert!(Part::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
    let refused = |change: &dyn Fn(&mut Part)| {
        let mut part = part.clone();
        change(&mut part);
        assert!(Part::from_bytes(&part.to_bytes()).is_err());
    };
    refused(&|part| part.texts.clear());
    refused(&|part| part.texts.reverse());
    refused(&|part| part.made_at.seq = Seq(3));
    refused(&|part| part.texts[0].vectors = vec![None; ephor_memory::chunks::MOST_PIECES + 1]);
    refused(&|part| {
        let (text, most) = (part.texts[0].clone(), 300);
        part.made_at.seq = Seq(most);
        part.texts =
            (0..most).map(|seq| ephor_memory::tick::part::Resolved { seq: Seq(seq), ..text.clone() }).collect();
    });
    // A length that no bytes stand for takes no room.
    let at = bytes.windows(3).rposition(|window| window == [0x81, 0x59, 0x01]).unwrap();
    let mut lying = bytes[..at].to_vec();
    lying.extend([0x9B, 0, 0, 0, 0xFF, 0, 0, 0, 0]);
    assert!(Part::from_bytes(&lying).is_err());
}

#[test]
fn a_part_counts_for_its_log_its_leaf_its_session_and_its_embedder_alone() {
    let kept = |change: &dyn Fn(&mut Part)| {
        let mut part = parts().remove(0);
        change(&mut part);
        let log =
            (0..6).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), &format!("Secret number {seq}"))).collect();
        let mut shell = Shell { kept: vec![part], ..Shell::new(log, asked()) };
        let mut tick = shell.begin();
        let read = tick.step(Event::Woken { budget: 100 }).unwrap().remove(0);
        let read = shell.carry_out(read).unwrap();
        tick.step(read)?;
        let commands = tick.step(Event::Woken { budget: 100 }).unwrap();
        Ok(commands.iter().filter(|command| matches!(command, Command::Embed { .. })).count())
    };
    assert!(matches!(kept(&|_| ()), Ok(3)), "three are known, three are asked for");
    assert!(matches!(
        kept(&|part| part.made_at = EntryRef { origin: OTHER, ..part.made_at }),
        Err(TickError::OtherPart)
    ));
    assert!(matches!(kept(&|part| part.embedder = built_in().name().clone()), Err(TickError::OtherPart)));
    assert!(matches!(kept(&|part| part.session = session(1)), Ok(6)));
    assert!(matches!(kept(&|part| part.texts[0].leaf = Digest([1; 32])), Ok(4)));
    assert!(matches!(kept(&|part| part.texts[1].vectors.clear()), Ok(4)));
    let short = ephor_memory::index::vectors::Vector::quantised(&[1.0]).unwrap();
    assert!(matches!(kept(&|part| part.texts[1].vectors = vec![Some(short.clone())]), Ok(4)));
}

#[test]
fn an_erased_session_is_gone_from_everything_that_is_derived() {
    let mut log: Vec<LogEntry> =
        (0..20).map(|seq| said(seq, u8::try_from(seq % 2).unwrap(), &format!("secret{} word{seq}", seq % 2))).collect();
    log.push(ends(silent(20), Ending::Session(session(1))));
    let mut shell = Shell { end: 0, ..Shell::new(log, built_in()) };
    let tick = shell.run(&mut Dice(8), false);
    let bytes = tick.mind().to_bytes();
    let holds = |needle: &str| bytes.windows(needle.len()).any(|window| window == needle.as_bytes());
    assert!(holds("secret0") && !holds("secret1"));
    let index = tick.mind().memory().index();
    assert!(index.scores("secret1 word1", Confidentiality::Confidential).best(9, |_| true).is_empty());
    assert_eq!(index.vectors(Confidentiality::Internal).unwrap().len(), 10);
    assert!(tick.mind().memory().graph().entries().all(|entry| entry.session == session(0)));
}

#[test]
fn what_an_erased_entry_ended_stays_over_and_what_took_its_place_keeps_its_label() {
    let untrusted = crate::common::UNTRUSTED;
    let log = vec![
        said(0, 0, "The old address."),
        // Session 1 takes its place, and session 2 that of session 1's.
        ends(says(1, 1, Some(material(1, 1, untrusted, "A planted address."))), Ending::Text(source(0))),
        ends(says(2, 2, Some(material(2, 2, TRUSTED, "The planted address in other words."))), Ending::Text(source(1))),
        ends(silent(3), Ending::Session(session(1))),
    ];
    let mut shell = Shell { end: 3, ..Shell::new(log, built_in()) };
    let mut tick = shell.begin();
    while drive(&mut tick, &mut shell, 100) < LONGEST_WAIT {}
    shell.end = 4;
    while drive(&mut tick, &mut shell, 100) < LONGEST_WAIT {}
    let label = |tick: &Tick| tick.mind().memory().chunks().chunk(piece(2, 0)).unwrap().label;
    assert_eq!(label(&tick).integrity, Integrity::Untrusted);
    assert_eq!(label(&tick).confidentiality, Confidentiality::Internal);
    // Made anew, from what is left.
    let mut anew = shell.begin();
    while drive(&mut anew, &mut shell, 100) < LONGEST_WAIT {}
    assert_eq!(anew.mind().to_bytes(), tick.mind().to_bytes());
    assert_eq!(recalled(&anew, "address"), [2]);
    // Without what was kept, it may have been anything.
    shell.kept.clear();
    let mut bare = shell.begin();
    while drive(&mut bare, &mut shell, 100) < LONGEST_WAIT {}
    assert_eq!(label(&bare), UNKNOWN);
}

#[test]
fn an_entry_that_ends_something_is_a_node_and_what_is_left_out_is_told() {
    let mut log = vec![said(0, 0, "One."), ends(said(1, 0, "Two."), Ending::Text(source(0)))];
    log.push(ends(says(2, 0, None), Ending::Text(source(1))));
    let mut wrong = said(3, 0, "Three.");
    wrong.content.as_mut().unwrap().links.push(link(id(3), id(0), EdgeKind::Causes));
    log.push(wrong);
    let mut shell = Shell::new(log, built_in());
    let tick = shell.run(&mut Dice(2), false);
    let graph = tick.mind().memory().graph();
    assert_eq!((graph.len(), graph.into_entry(&id(2)).len()), (4, 2));
    assert_eq!(recalled(&tick, "one two three"), [3]);
    let (count, last) = tick.mind().left_out();
    assert!(count == 1 && matches!(last, Some((Seq(3), LeftOut::Graph(_)))));
}
