//! Pruning: what is old goes, for good and on the record; what is young, or needed, stays; and nobody can pretend.

mod attacks;
mod clocks;
mod faults;
mod forged;
mod life;

use std::path::{Path, PathBuf};

use ephor_base::{EndReason, MessageId, SessionId, TurnReport};
use ephor_chain::{Log, Plan, PruneError, Pruned, Wish};
use ephor_record::{Fact, Minimum, Record, Subject};

use crate::common::{OPERATOR, World, block_on, memory::Memory, message};

pub(crate) const DAY: u64 = 86_400_000_000;

pub(crate) fn session(number: u64) -> SessionId {
    SessionId((u128::from(number) + 1).to_be_bytes())
}

fn in_session(number: u64, record: Record) -> Record {
    let subject = Subject { session: Some(session(number)), ..record.subject };
    Record { subject, ..record }
}

pub(crate) fn asked(number: u64) -> Record {
    in_session(number, message(number, "some words that were said"))
}

pub(crate) fn answered(number: u64) -> Record {
    let fact = Fact::TurnEnd { message: MessageId(number), end: EndReason::Replied, report: TurnReport::default() };
    in_session(number, Record { subject: Subject::default(), fact, content: None })
}

/// Each day a session with a message, an answer and a few entries more.
pub(crate) fn live(log: &Log, world: &World, days: std::ops::Range<u64>) {
    for day in days {
        world.later(DAY);
        block_on(log.note(asked(day))).unwrap();
        block_on(log.note(in_session(day, crate::common::plain(day)))).unwrap();
        block_on(log.append(answered(day))).unwrap();
    }
}

/// A log of so many days, stopped.
pub(crate) fn aged(days: u64) -> (Memory, World) {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    for month in 0..days.div_ceil(30) {
        live(&log, &world, month * 30..((month + 1) * 30).min(days));
        block_on(log.publish()).unwrap();
    }
    block_on(log.close()).unwrap();
    (memory, world)
}

pub(crate) fn plan(log: &Log) -> Plan {
    log.plan_pruning(Wish::default(), |_, _| ()).unwrap()
}

pub(crate) fn prune(log: &Log) -> Result<Pruned, PruneError> {
    block_on(log.publish()).unwrap();
    block_on(log.prune(&plan(log), OPERATOR))
}

/// A log of 400 days that was pruned and stopped.
pub(crate) fn pruned() -> (Memory, World, Pruned) {
    let (memory, world) = aged(400);
    let (log, _) = world.open().unwrap();
    let pruned = prune(&log).unwrap();
    block_on(log.close()).unwrap();
    (memory, world, pruned)
}

pub(crate) fn minimum(memory: &Memory) -> Option<Minimum> {
    let path = Path::new("/home/chain/minimum");
    memory.paths().iter().any(|there| there == path).then(|| Minimum::parse(&memory.get(path)).unwrap())
}

/// The files of bundles, tiles of level 0 and contents that lie below a minimum.
pub(crate) fn left_below(memory: &Memory, minimum: u64) -> Vec<PathBuf> {
    let folders = ["/home/chain/tile/entries", "/home/chain/tile/0", "/home/vault/content"];
    let number = |path: &PathBuf| {
        let name = folders.iter().find_map(|folder| path.strip_prefix(folder).ok())?;
        name.to_str()?.get(..3)?.parse::<u64>().ok()
    };
    memory.paths().into_iter().filter(|path| number(path).is_some_and(|number| number < minimum / 256)).collect()
}
