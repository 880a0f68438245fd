//! Links, monitors, names and groups of the processes that have any.
//!
//! A process enters the table with its first relation, so that the others cost nothing. Whether the other is still there is
//! decided under its row's lock: it is related, and its end is told, or it is gone, and that is told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, MutexGuard},
};

use ephor_base::{ExitReason, Pid};

use super::{Host, NotSent, Shared, row::Row};
use crate::{
    links::{Links, MonitorId, NotNamed, Related, Signal},
    supervisor::Kind,
};

/// Which processes are related to which.
#[derive(Default)]
pub(super) struct Relations {
    links: Links,
    groups: Groups,
}

/// Process groups, by topic.
#[derive(Default)]
struct Groups {
    members: BTreeMap<Arc<str>, BTreeSet<Pid>>,
    topics: BTreeMap<Pid, BTreeSet<Arc<str>>>,
}

impl Groups {
    fn join(&mut self, topic: &str, pid: Pid) {
        let topic: Arc<str> = topic.into();
        self.members.entry(topic.clone()).or_default().insert(pid);
        self.topics.entry(pid).or_default().insert(topic);
    }

    fn leave(&mut self, topic: &str, pid: Pid) -> bool {
        let Some(members) = self.members.get_mut(topic) else { return false };
        let was_there = members.remove(&pid);
        if members.is_empty() {
            self.members.remove(topic);
        }
        if let Some(topics) = self.topics.get_mut(&pid) {
            topics.remove(topic);
        }
        was_there
    }

    fn end(&mut self, pid: Pid) {
        for topic in self.topics.remove(&pid).unwrap_or_default() {
            self.leave(&topic, pid);
        }
    }
}

impl<H: Host> Shared<H> {
    /// What a process has to do with.
    pub(super) fn related(&self, pid: Pid) -> Related {
        self.relations().links.related(pid)
    }

    fn relations(&self) -> MutexGuard<'_, Relations> {
        crate::lock::enter(&self.relations)
    }

    /// Enters a process, with room for so many signals; false if it is over.
    fn enter(&self, relations: &mut Relations, row: Option<&Arc<Row<H>>>, pid: Pid, room: usize) -> bool {
        let is_there = row.is_some_and(|row| row.relate(pid, room));
        if is_there {
            relations.links.begin(pid);
        }
        if let Some(Kind::Supervisor) = row.filter(|_| is_there).map(|row| row.kind()) {
            relations.links.trap(pid, true);
        }
        is_there
    }

    /// Enters a process that acts: not a fenced one, though it is still there.
    fn enter_actor(&self, relations: &mut Relations, row: &Arc<Row<H>>, pid: Pid, room: usize) -> bool {
        row.is_live(pid) && self.enter(relations, Some(row), pid, room)
    }

    pub(super) fn link(&self, row: &Arc<Row<H>>, pid: Pid, other: Pid) {
        let other_row = self.table.row(other);
        let signal = {
            let mut relations = self.relations();
            let is_linked = relations.links.are_linked(pid, other);
            if pid == other || is_linked || !self.enter_actor(&mut relations, row, pid, 1) {
                return;
            }
            // A process that is over and has not been told of yet is told of by this link, too.
            self.enter(&mut relations, other_row.as_ref(), other, 1);
            relations.links.link(pid, other)
        };
        self.deliver(signal);
    }

    pub(super) fn unlink(&self, row: &Row<H>, pid: Pid, other: Pid) {
        let mut relations = self.relations();
        if row.is_live(pid) && relations.links.are_linked(pid, other) {
            relations.links.unlink(pid, other);
            row.unrelate(pid);
            if let Some(other_row) = self.table.row(other) {
                other_row.unrelate(other);
            }
        }
    }

    pub(super) fn monitor(&self, row: &Arc<Row<H>>, pid: Pid, other: Pid) -> MonitorId {
        let other_row = self.table.row(other);
        let (monitor, signal) = {
            let mut relations = self.relations();
            if !self.enter_actor(&mut relations, row, pid, 1) {
                return relations.links.monitor_of_nobody();
            }
            self.enter(&mut relations, other_row.as_ref(), other, 0);
            relations.links.monitor(pid, other)
        };
        self.deliver(signal);
        monitor
    }

    pub(super) fn demonitor(&self, row: &Row<H>, pid: Pid, monitor: MonitorId) -> bool {
        let mut relations = self.relations();
        let is_own = row.is_live(pid) && relations.links.is_monitor_of(monitor, pid);
        let was_there = is_own && relations.links.demonitor(monitor);
        if was_there {
            row.unrelate(pid);
        }
        was_there
    }

    pub(super) fn trap(&self, row: &Arc<Row<H>>, pid: Pid, traps: bool) {
        let mut relations = self.relations();
        if self.enter_actor(&mut relations, row, pid, 0) {
            relations.links.trap(pid, traps);
        }
    }

    /// One process wants another gone.
    pub(super) fn exit(&self, from: Pid, to: Pid, reason: ExitReason) -> Result<(), NotSent> {
        let row = self.table.row(to).ok_or(NotSent::Gone)?;
        let signal = {
            let mut relations = self.relations();
            if !self.enter(&mut relations, Some(&row), to, 0) {
                return Err(NotSent::Gone);
            }
            relations.links.exit(from, to, reason)
        };
        match signal {
            None => Ok(()),
            Some(Signal::Die(..)) => {
                self.deliver(signal);
                Ok(())
            }
            Some(_) if row.kind() == Kind::Supervisor => Ok(()),
            Some(signal) => {
                let is_told = row.signal(to, signal, false);
                is_told.then_some(()).ok_or(NotSent::Full(super::CAPACITY))
            }
        }
    }

    /// A related process is over: tells the others.
    pub(super) fn unrelate(&self, pid: Pid, reason: &ExitReason) {
        let signals = {
            let mut relations = self.relations();
            relations.groups.end(pid);
            relations.links.end(pid, reason)
        };
        self.deliver(signals);
    }

    fn deliver(&self, signals: impl IntoIterator<Item = Signal>) {
        for signal in signals {
            let (Signal::Die(to, _) | Signal::Exit { to, .. } | Signal::Down { to, .. }) = signal;
            let Some(row) = self.table.row(to) else { continue };
            // A supervisor traps exits, and those of strangers mean nothing to it.
            if row.kind() == Kind::Supervisor && !matches!(signal, Signal::Die(_, ExitReason::Killed)) {
                continue;
            }
            match signal {
                Signal::Die(_, ExitReason::Killed) => row.kill(Some(to)),
                Signal::Die(_, reason) => row.doom(to, reason),
                signal => row.signal(to, signal, true),
            };
        }
    }

    pub(super) fn register(&self, row: &Arc<Row<H>>, pid: Pid, name: &str) -> Result<(), NotNamed> {
        let mut relations = self.relations();
        if !self.enter_actor(&mut relations, row, pid, 0) {
            return Err(NotNamed::NoProcess(pid));
        }
        relations.links.register(name, pid)
    }

    pub(super) fn unregister(&self, row: &Row<H>, name: &str, pid: Pid) -> bool {
        let mut relations = self.relations();
        let is_own = row.is_live(pid) && relations.links.whereis(name) == Some(pid);
        is_own && relations.links.unregister(name).is_some()
    }

    pub(super) fn whereis(&self, name: &str) -> Option<Pid> {
        self.relations().links.whereis(name)
    }

    pub(super) fn join(&self, row: &Arc<Row<H>>, pid: Pid, topic: &str) -> bool {
        let mut relations = self.relations();
        let is_there = self.enter_actor(&mut relations, row, pid, 0);
        if is_there {
            relations.groups.join(topic, pid);
        }
        is_there
    }

    pub(super) fn leave_group(&self, row: &Row<H>, pid: Pid, topic: &str) -> bool {
        let mut relations = self.relations();
        row.is_live(pid) && relations.groups.leave(topic, pid)
    }

    pub(super) fn members(&self, topic: &str) -> Vec<Pid> {
        self.relations().groups.members.get(topic).map(|members| members.iter().copied().collect()).unwrap_or_default()
    }
}
