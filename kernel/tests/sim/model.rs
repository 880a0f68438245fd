//! What is known of a simulation, and what must be true of it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use ephor_base::{ExitReason, Pid};
use ephor_runtime::{
    CAPACITY,
    links::{MonitorId, Signal},
    supervisor::Intensity,
};

use crate::plan::Dice;

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Waits,
    Taken,
    Dead,
    /// It waited when the node died: the next boot finds it on the record.
    Lost,
}

/// One monitor.
pub(crate) struct Watched {
    pub(crate) monitor: MonitorId,
    pub(crate) by: Pid,
    pub(crate) whom: Pid,
    pub(crate) told: u32,
    pub(crate) is_over: bool,
}

/// A process that was born on the record.
#[derive(Debug)]
pub(crate) struct Birth {
    pub(crate) ran: bool,
    pub(crate) exit: Option<ExitReason>,
}

/// The model.
#[derive(Default)]
pub(crate) struct Model {
    pub(crate) dice: Option<Dice>,
    pub(crate) trace: Vec<String>,
    pub(crate) wrong: Option<String>,
    pub(crate) births: BTreeMap<Pid, Birth>,
    /// Those that were refused by the record, and are over before they began.
    pub(crate) stillborn: BTreeSet<Pid>,
    pub(crate) fates: BTreeMap<u64, Fate>,
    pub(crate) next: u64,
    pub(crate) suspended: BTreeSet<String>,
    pub(crate) monitors: Vec<Watched>,
    /// Links that were made and not taken away, from the lower PID to the higher.
    pub(crate) links: BTreeSet<(Pid, Pid)>,
    /// Who was ever linked with whom: once, so that what each hears can be counted.
    pub(crate) pairs: BTreeSet<(Pid, Pid)>,
    /// How often one was told of the exit of another.
    pub(crate) exits: BTreeMap<(Pid, Pid), u32>,
    /// When each incarnation of a supervisor answered with a restart.
    pub(crate) restarts: BTreeMap<Pid, Vec<Duration>>,
    /// The node is dead: nobody hears anything.
    pub(crate) is_dead: bool,
}

/// Whether a process traps exits, from its first moment to its last.
pub(crate) const fn traps(pid: Pid) -> bool {
    !pid.0.is_multiple_of(3)
}

impl Model {
    pub(crate) fn roll(&mut self, bound: u64) -> u64 {
        self.dice.get_or_insert(Dice(0)).roll(bound)
    }

    pub(crate) fn note(&mut self, line: String) {
        self.trace.push(line);
    }

    /// Something is not as it must be; the first such thing counts.
    pub(crate) fn wrong(&mut self, what: String) {
        self.trace.push(format!("!! {what}"));
        self.wrong.get_or_insert(what);
    }

    pub(crate) fn born(&mut self, pid: Pid) {
        if self.births.insert(pid, Birth { ran: false, exit: None }).is_some() {
            self.wrong(format!("PID {pid} was given twice"));
        }
    }

    pub(crate) fn runs(&mut self, pid: Pid) {
        match self.births.get_mut(&pid) {
            Some(birth) if !birth.ran => birth.ran = true,
            Some(_) => self.wrong(format!("process {pid} runs twice")),
            None => self.wrong(format!("process {pid} runs and is not on the record")),
        }
    }

    pub(crate) fn exited(&mut self, pid: Pid, reason: &ExitReason) {
        let birth = self.births.get_mut(&pid);
        match birth.map(|birth| birth.exit.replace(reason.clone())) {
            Some(None) => {}
            Some(Some(_)) => self.wrong(format!("the exit of {pid} is told twice")),
            None if self.stillborn.contains(&pid) => {}
            None => self.wrong(format!("{pid} exited and was not born")),
        }
    }

    pub(crate) fn restarted(&mut self, supervisor: Pid, now: Duration, intensity: Intensity) {
        let times = self.restarts.entry(supervisor).or_default();
        times.push(now);
        let recent = times.iter().filter(|then| now.saturating_sub(**then) <= intensity.period).count();
        if recent > intensity.restarts {
            self.wrong(format!("supervisor {supervisor} restarts {recent} times in {:?}", intensity.period));
        }
    }

    /// A message leaves its port, one way or the other.
    pub(crate) fn moved(&mut self, id: u64, to: Fate) {
        match self.fates.insert(id, to) {
            Some(Fate::Waits) => {}
            before => self.wrong(format!("message {id} is {to:?} and was {before:?}")),
        }
    }

    pub(crate) fn waiting(&mut self, seat: &str, waiting: usize) {
        if waiting > CAPACITY {
            self.wrong(format!("{waiting} messages wait at {seat}"));
        }
    }

    pub(crate) fn heard(&mut self, pid: Pid, signal: &Signal) {
        match signal {
            Signal::Down { monitor, to, .. } => {
                let known = self.monitors.iter_mut().find(|one| one.monitor == *monitor && one.by == pid);
                match known {
                    Some(one) if *to == pid && one.told == 0 && !one.is_over => one.told = 1,
                    _ => self.wrong(format!("{pid} is told of an end it does not wait for: {signal:?}")),
                }
            }
            Signal::Exit { from, .. } => {
                let times = self.exits.entry((pid, *from)).or_default();
                *times += 1;
                if *times > 1 {
                    self.wrong(format!("{pid} is told twice that {from} is gone"));
                }
            }
            Signal::Die(..) => self.wrong(format!("{pid} was handed its own end")),
        }
    }

    /// The node died: what waited waits no more, and nobody lives.
    pub(crate) fn died(&mut self) {
        self.is_dead = true;
        self.fates.values_mut().filter(|fate| **fate == Fate::Waits).for_each(|fate| *fate = Fate::Lost);
        self.births.values_mut().filter(|birth| birth.exit.is_none()).for_each(|birth| {
            birth.exit = Some(ExitReason::Killed);
        });
        self.suspended.clear();
        self.monitors.clear();
        self.links.clear();
    }

    /// Nothing moves any more, and these live.
    pub(crate) fn rests(&mut self, living: &BTreeSet<Pid>) {
        let mut wrong = Vec::new();
        for (id, fate) in self.fates.iter().filter(|(_, fate)| **fate == Fate::Waits) {
            wrong.push(format!("message {id} is lost: {fate:?}"));
        }
        for (pid, birth) in &self.births {
            if birth.exit.is_none() != living.contains(pid) {
                wrong.push(format!("process {pid} lives: {}, and its exit: {:?}", living.contains(pid), birth.exit));
            }
        }
        for one in self.monitors.iter().filter(|one| living.contains(&one.by) && !one.is_over) {
            let times = u32::from(!living.contains(&one.whom));
            if one.told != times {
                wrong.push(format!("{} was told {} times that {} is gone, not {times}", one.by, one.told, one.whom));
            }
        }
        let both = self.links.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
        for (who, whom) in both.filter(|(who, whom)| living.contains(who) && !living.contains(whom)) {
            let reason = self.births.get(&whom).and_then(|birth| birth.exit.clone());
            let told = self.exits.get(&(who, whom)).copied().unwrap_or(0);
            if traps(who) && told != 1 {
                wrong.push(format!("{who} was told {told} times of the exit of {whom}, which it is linked to"));
            } else if !traps(who) && reason != Some(ExitReason::Normal) {
                wrong.push(format!("{who} lives on, and {whom}, which it is linked to, exited with {reason:?}"));
            }
        }
        wrong.into_iter().for_each(|what| self.wrong(what));
    }
}
