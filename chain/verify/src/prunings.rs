//! Verifies prunings: that each was allowed, as far as what is left of the log shows it.
//!
//! Rules that need nothing but the entries so far are in [`ephor_record::rules`]. Here is what needs more: how old what was pruned
//! was, the root that is named, and, where what was to be pruned can still be read, the state that it amounts to.

use ephor_base::{Seq, Timestamp};
use ephor_record::{
    Damage, Entry, Fact, Finding, Pruning, Rules, ScanError,
    retention::{self, Ages},
    snapshot,
};
use ephor_tlog::{
    Head, Tile,
    tile::{Kind, WIDTH},
};

use crate::published::Published;

/// The prunings of a log, as they are met.
#[derive(Clone, Debug)]
pub struct Prunings {
    ages: Ages,
    /// Where reading began, and what was known there. Without that, states cannot be compared.
    begin: Option<(u64, Rules)>,
    /// Parts that were met, with their places.
    met: Vec<(Seq, Pruning)>,
}

impl Prunings {
    /// Of a log that is read from `begin` on. `before` is the time of the entry before that, if it is known.
    pub fn new(begin: u64, before: Option<Timestamp>, rules: Option<Rules>) -> Self {
        let ages = Ages::new(begin, before, Timestamp(u64::MAX));
        Self { ages, begin: rules.map(|rules| (begin, rules)), met: Vec::new() }
    }

    /// Takes the next entry in.
    pub fn pass(&mut self, entry: &Entry) -> Result<(), Damage> {
        self.ages.pass(entry);
        let Fact::Prune(pruning) = &entry.fact else { return Ok(()) };
        if let Some(age) = self.ages.before(pruning.minimum) {
            if age.time != pruning.newest {
                return Err(Damage::Pruning("it says another time of the last entry that goes"));
            }
            if self.ages.lived().saturating_sub(age.lived) < retention::micros(pruning.keep_seconds) {
                return Err(Damage::Pruning("what goes had not been kept for long enough"));
            }
        }
        self.met.push((entry.seq, pruning.clone()));
        Ok(())
    }

    /// Holds what was met against the tree, and against the entries that were to go, as far as they are still there.
    pub fn check(&mut self, published: &Published) -> Result<(), ScanError> {
        let (mut replay, mut state) = (self.begin.clone(), Vec::new());
        for (seq, pruning) in std::mem::take(&mut self.met) {
            let wrong = |what| Finding { seq: Some(seq), ..place(seq, Damage::Pruning(what)) };
            let under = Head { size: pruning.size, root: pruning.root };
            if under.size > published.size() {
                return Err(wrong("it was decided under a checkpoint that was never published").into());
            }
            let begin = self.begin.as_ref().map_or(u64::MAX, |(begin, _)| *begin);
            if under.size >= begin && published.head(under.size)? != under {
                return Err(wrong("it was decided under a checkpoint of another history").into());
            }
            if let Some((at, rules)) = replay.as_mut().filter(|(at, _)| *at < pruning.minimum) {
                replay_to(published, at, rules, pruning.minimum)?;
            }
            let known = replay.as_ref().filter(|(at, _)| *at == pruning.minimum && *at > begin);
            let Some((_, rules)) = known else { continue };
            // The parts of one pruning stand right behind one another.
            if pruning.state.part == 0 {
                state = snapshot::parts(rules, !pruning.state.erased.is_empty());
            }
            if state.get(pruning.state.part as usize) != Some(&pruning.state) {
                return Err(wrong("what it keeps of the entries that go is not what they amount to").into());
            }
        }
        Ok(())
    }
}

/// Takes the published entries up to `end` in once more.
fn replay_to(published: &Published, at: &mut u64, rules: &mut Rules, end: u64) -> Result<(), ScanError> {
    while *at < end {
        let from = *at;
        for (entry, _) in published.entries(*at)?.into_iter().filter(|(entry, _)| entry.seq.0 >= from) {
            let seq = entry.seq;
            rules.admit_published(&entry).map_err(|rule| place(seq, Damage::Rule(rule)))?;
            *at = at.saturating_add(1);
        }
    }
    Ok(())
}

fn place(seq: Seq, damage: Damage) -> Finding {
    let tile = Tile::full(Kind::Entries, seq.0 / WIDTH);
    Finding { seq: Some(seq), ..crate::published::finding(tile, damage) }
}
