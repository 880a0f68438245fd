//! Real processes on the real disk, killed with SIGKILL at random moments: while they begin a log, append, publish,
//! begin a segment, recycle one, or stop.
//!
//! After each kill the chain verifies against its pinned head, acknowledged ⊆ recovered ⊆ submitted, and each thread's
//! records stand in the order in which it submitted them. `EPHOR_KILLS` and `EPHOR_SEED` choose how many and which.

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use ephor_base::Decision;
use ephor_chain::{Config, Log, Private, disk::Disk, read};
use ephor_record::{Content, Fact};

use crate::common::{RealClock, Seeded, World, block_on, intent, message, outcome, verdict};

const HOME: &str = "EPHOR_KILLED_HOME";
const ROUND: &str = "EPHOR_KILLED_ROUND";
const THREADS: u64 = 4;
/// How many lives share a home, so that short and long logs, first starts and tenth ones are hit.
const LIVES: u64 = 20;

#[test]
fn nothing_acknowledged_is_lost_at_many_random_kills() {
    soak(number("EPHOR_KILLS").unwrap_or(150));
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|number| number.parse().unwrap())
}

/// What one process said it did.
#[derive(Default)]
struct Said {
    submitted: BTreeSet<u64>,
    acknowledged: BTreeMap<u64, u64>,
}

fn soak(kills: u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = number("EPHOR_SEED").unwrap_or(u64::from(now.subsec_nanos()));
    println!("EPHOR_SEED={seed}");
    let dice = Seeded::new(seed);
    let (mut place, mut said) = (tempfile::tempdir().unwrap(), Said::default());
    let (mut acknowledged, mut torn, mut clean) = (0, 0, 0);
    for round in 0..kills {
        if round.is_multiple_of(LIVES) && round > 0 {
            acknowledged += said.acknowledged.len();
            (place, said) = (tempfile::tempdir().unwrap(), Said::default());
        }
        live(place.path(), round, &dice, &mut said);
        let (was_torn, was_clean) = look(place.path(), &said, &format!("seed {seed}, round {round}"));
        torn += u64::from(was_torn);
        clean += u64::from(was_clean);
    }
    acknowledged += said.acknowledged.len();
    println!(
        "{kills} kills: {acknowledged} acknowledged, all there; {torn} torn ends, {clean} ended by themselves before"
    );
    assert!(acknowledged > 0);
}

/// Starts a process on the home, kills it some time after its first word, and takes down what it said.
fn live(home: &Path, round: u64, dice: &Seeded, said: &mut Said) {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "kill::one_life", "--nocapture"])
        .env(HOME, home)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The test harness speaks first. Every fifth is struck while it opens; the others after so many lines and a moment.
    while lines.next().is_some_and(|line| line.unwrap() != "opening") {}
    let (mut left, moment) = if round.is_multiple_of(5) { (0, 6_000) } else { (dice.below(300), 1_500) };
    let mut strike = Some(dice.below(moment));
    loop {
        if let Some(after) = strike.take_if(|_| left == 0) {
            thread::sleep(Duration::from_micros(after));
            child.kill().unwrap();
        }
        left = left.saturating_sub(1);
        let Some(Ok(line)) = lines.next() else { break };
        said.hear(&line);
    }
    child.wait().unwrap();
}

impl Said {
    fn hear(&mut self, line: &str) {
        match line.split(' ').collect::<Vec<_>>().as_slice() {
            ["s", id] => drop(self.submitted.insert(id.parse().unwrap())),
            // A line that is cut off says nothing.
            ["a", id, seq, "."] => drop(self.acknowledged.insert(id.parse().unwrap(), seq.parse().unwrap())),
            _ => {}
        }
    }
}

/// Holds what lies on the disk against what was said; tells whether its end was torn, and whether it stopped by itself.
fn look(home: &Path, said: &Said, what: &str) -> (bool, bool) {
    let world = world(home, 1);
    let began = world.config.folder.join("journal").read_dir().is_ok_and(|mut files| files.next().is_some());
    if !began || read(&world.config.folder, &world.files).next().is_none() {
        assert!(said.acknowledged.is_empty(), "{what}: there is nothing");
        return (false, false);
    }
    let report = world.verify(world.pinned()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let (log, recovered) = world.open().unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = found(&log);
    drop(log);
    for (id, seq) in &said.acknowledged {
        assert_eq!(found.get(id), Some(seq), "{what}: record {id} was acknowledged");
    }
    let mut last = BTreeMap::new();
    for (id, seq) in &found {
        assert!(said.submitted.contains(id), "{what}: record {id} was never submitted");
        let before = last.insert(id / LANE, *seq);
        assert!(before.is_none_or(|before| before < *seq), "{what}: record {id} stands before its predecessor");
    }
    (recovered.trimmed_bytes > 0, report.stopped)
}

/// Where each submitted record stands; its content must open and be its own.
fn found(log: &Log) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for stored in log.entries() {
        let stored = stored.unwrap();
        if let Fact::Message { id, .. } = &stored.entry.fact {
            let Private::Open(Content::Parts(parts)) = &stored.content else { panic!("message {id} has no content") };
            assert!(parts[0].text.starts_with(&format!("record {} ", id.0)));
            found.insert(id.0, stored.entry.seq.0);
        }
    }
    found
}

/// The numbers of one thread of one life.
const LANE: u64 = 1_000_000;

fn world(home: &Path, seed: u64) -> World {
    let home = home.join("home");
    let world = World::new(Arc::new(Disk), &home);
    // Small segments and quick publication, so that a short life sees many of both.
    let config = Config { segment_bytes: 48 << 10, publish_every: Duration::from_millis(1), ..world.config };
    World { config, clock: Arc::new(RealClock::default()), random: Arc::new(Seeded::new(seed)), ..world }
}

/// The process that is killed. It does nothing unless it is told where.
#[test]
#[ignore = "is started by the test above"]
fn one_life() {
    let (Some(home), Some(round)) = (env::var_os(HOME), number(ROUND)) else { return };
    let world = world(Path::new(&home), round + 100);
    say("opening");
    let (log, _) = world.open().unwrap();
    let threads: Vec<_> = (0..THREADS)
        .map(|lane| {
            let log = log.clone();
            thread::spawn(move || work(&log, (round * THREADS + lane) * LANE))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    block_on(log.close()).unwrap();
}

fn work(log: &Log, first: u64) {
    let text = "x".repeat(900);
    for id in first..first + 60 {
        say(&format!("s {id}"));
        let receipt = block_on(log.append(message(id, &format!("record {id} {text}")))).unwrap();
        say(&format!("a {id} {} .", receipt.seq.0));
        if id.is_multiple_of(3) {
            let call = 10 * id;
            let durable = block_on(log.intend(verdict(call, Decision::Permit), intent(call))).unwrap();
            block_on(log.settle(durable.seq(), outcome(call, durable.seq(), "done"))).unwrap();
        }
    }
}

/// One write, so that a kill cuts a line off at most at its end.
fn say(line: &str) {
    std::io::stdout().write_all(format!("{line}\n").as_bytes()).unwrap();
}
