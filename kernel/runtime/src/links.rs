//! Links, monitors, exit trapping and names between processes, as OTP has them: a table and what follows from its changes.
//!
//! It starts and stops nothing: what is to happen to which process comes back as [`Signal`]s, for the code that runs them. Each
//! end of a process is told once to each of its links and monitors. An operation costs as much as the process it concerns
//! has relations, however many processes there are.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use ephor_base::{ExitReason, Pid};

/// One monitor; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MonitorId(u64);

/// How a process that is linked or monitored went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gone {
    /// It exited.
    Exited(ExitReason),
    /// It was not there any more when it was linked or monitored (OTP `noproc`).
    NoProcess,
}

impl Gone {
    /// Whether it takes along who is linked and does not trap exits.
    const fn is_abnormal(&self) -> bool {
        // OTP's links spare a process only after `normal`: `shutdown` ends what is linked.
        !matches!(self, Self::Exited(ExitReason::Normal))
    }

    /// What the process that is taken along exits with.
    fn into_reason(self) -> ExitReason {
        match self {
            Self::Exited(reason) => reason,
            Self::NoProcess => ExitReason::Error("it was linked to a process that is not there".to_owned()),
        }
    }
}

/// What is to happen to a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Signal {
    /// It exits with this reason; report its exit as any other.
    Die(Pid, ExitReason),
    /// It traps exits, and is told that the other is gone, or wants it gone (OTP `{'EXIT', Pid, Reason}`).
    Exit {
        /// Who is told.
        to: Pid,
        /// Who is gone.
        from: Pid,
        /// How.
        gone: Gone,
    },
    /// A process that it monitors is gone (OTP `{'DOWN', …}`).
    Down {
        /// Who is told.
        to: Pid,
        /// The monitor, which is spent.
        monitor: MonitorId,
        /// Who is gone.
        from: Pid,
        /// How.
        gone: Gone,
    },
}

/// A name was not given. Nothing changed; the caller's fault.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotNamed {
    /// Another process has it.
    #[error("`{0}` is the name of process {1}")]
    Taken(Arc<str>, Pid),
    /// The process has a name.
    #[error("the process is called `{0}` already")]
    Named(Arc<str>),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(Pid),
}

/// The relations of one process.
#[derive(Debug, Default)]
struct Relations {
    traps: bool,
    links: BTreeSet<Pid>,
    /// Monitors it set.
    watches: BTreeSet<MonitorId>,
    /// Monitors on it.
    watched_by: BTreeSet<MonitorId>,
    name: Option<Arc<str>>,
}

/// The relations of all living processes.
#[derive(Debug, Default)]
pub struct Links {
    processes: HashMap<Pid, Relations>,
    /// Which process monitors which.
    monitors: HashMap<MonitorId, (Pid, Pid)>,
    names: HashMap<Arc<str>, Pid>,
    next_monitor: u64,
}

/// What a process has to do with.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Related {
    /// Those it is linked to.
    pub links: Vec<Pid>,
    /// Those it monitors.
    pub monitors: Vec<Pid>,
    /// Its name.
    pub name: Option<String>,
    /// Whether it is told of exits instead of dying of them.
    pub traps: bool,
}

impl Links {
    /// What `pid` has to do with.
    #[must_use]
    pub fn related(&self, pid: Pid) -> Related {
        let Some(relations) = self.processes.get(&pid) else { return Related::default() };
        let watched = relations.watches.iter().filter_map(|monitor| self.monitors.get(monitor));
        Related {
            links: relations.links.iter().copied().collect(),
            monitors: watched.map(|(_, other)| *other).collect(),
            name: relations.name.as_deref().map(str::to_owned),
            traps: relations.traps,
        }
    }

    /// A process has begun.
    pub fn begin(&mut self, pid: Pid) {
        self.processes.entry(pid).or_default();
    }

    /// A process has exited: what that means to those it was related to. The second report of the same exit means nothing.
    #[must_use]
    pub fn end(&mut self, pid: Pid, reason: &ExitReason) -> Vec<Signal> {
        let Some(mut gone) = self.processes.remove(&pid) else { return Vec::new() };
        if let Some(name) = gone.name.take() {
            self.names.remove(&name);
        }
        for monitor in gone.watches {
            if let Some((_, target)) = self.monitors.remove(&monitor) {
                self.change(target, |relations| relations.watched_by.remove(&monitor));
            }
        }
        let mut signals = Vec::with_capacity(gone.watched_by.len() + gone.links.len());
        for monitor in gone.watched_by {
            if let Some((to, _)) = self.monitors.remove(&monitor) {
                self.change(to, |relations| relations.watches.remove(&monitor));
                signals.push(Signal::Down { to, monitor, from: pid, gone: Gone::Exited(reason.clone()) });
            }
        }
        for peer in gone.links {
            self.change(peer, |relations| relations.links.remove(&pid));
            signals.extend(self.exit_signal(peer, pid, Gone::Exited(reason.clone())));
        }
        signals
    }

    /// Links two processes, each to the other; twice is once. If the other is not there, this one hears of it.
    #[must_use]
    pub fn link(&mut self, pid: Pid, other: Pid) -> Option<Signal> {
        if pid == other || !self.processes.contains_key(&pid) {
            return None;
        }
        if !self.processes.contains_key(&other) {
            return self.exit_signal(pid, other, Gone::NoProcess);
        }
        self.change(pid, |relations| relations.links.insert(other));
        self.change(other, |relations| relations.links.insert(pid));
        None
    }

    /// Takes a link away, from whichever side. From now on neither hears of the other's end by it.
    pub fn unlink(&mut self, pid: Pid, other: Pid) {
        self.change(pid, |relations| relations.links.remove(&other));
        self.change(other, |relations| relations.links.remove(&pid));
    }

    /// Has `pid` told when `other` exits: once for each monitor. If the other is not there, at once.
    #[must_use]
    pub fn monitor(&mut self, pid: Pid, other: Pid) -> (MonitorId, Option<Signal>) {
        let monitor = self.monitor_of_nobody();
        if !self.processes.contains_key(&other) {
            return (monitor, Some(Signal::Down { to: pid, monitor, from: other, gone: Gone::NoProcess }));
        }
        if self.processes.contains_key(&pid) {
            self.monitors.insert(monitor, (pid, other));
            self.change(pid, |relations| relations.watches.insert(monitor));
            self.change(other, |relations| relations.watched_by.insert(monitor));
        }
        (monitor, None)
    }

    /// A monitor that tells no process of any: what one gets that is over or fenced.
    pub fn monitor_of_nobody(&mut self) -> MonitorId {
        let monitor = MonitorId(self.next_monitor);
        self.next_monitor += 1;
        monitor
    }

    /// Whether two processes are linked.
    #[must_use]
    pub fn are_linked(&self, pid: Pid, other: Pid) -> bool {
        self.processes.get(&pid).is_some_and(|relations| relations.links.contains(&other))
    }

    /// Whether the process has set this monitor, and was not told yet.
    #[must_use]
    pub fn is_monitor_of(&self, monitor: MonitorId, pid: Pid) -> bool {
        self.monitors.get(&monitor).is_some_and(|(watcher, _)| *watcher == pid)
    }

    /// Takes a monitor away; says whether it was still there.
    pub fn demonitor(&mut self, monitor: MonitorId) -> bool {
        let Some((pid, other)) = self.monitors.remove(&monitor) else { return false };
        self.change(pid, |relations| relations.watches.remove(&monitor));
        self.change(other, |relations| relations.watched_by.remove(&monitor));
        true
    }

    /// Whether a process is told of exits instead of dying of them (OTP `trap_exit`).
    pub fn trap(&mut self, pid: Pid, traps: bool) {
        self.change(pid, |relations| std::mem::replace(&mut relations.traps, traps));
    }

    /// One process wants another gone (OTP `exit/2`). A kill cannot be trapped, and what dies of it was killed; `normal` ends
    /// only the one who says it of itself.
    #[must_use]
    pub fn exit(&self, from: Pid, to: Pid, reason: ExitReason) -> Option<Signal> {
        let relations = self.processes.get(&to)?;
        if reason == ExitReason::Killed {
            return Some(Signal::Die(to, ExitReason::Killed));
        }
        if relations.traps {
            return Some(Signal::Exit { to, from, gone: Gone::Exited(reason) });
        }
        (reason != ExitReason::Normal || from == to).then_some(Signal::Die(to, reason))
    }

    /// Gives a process a name until it exits.
    ///
    /// # Errors
    /// [`NotNamed`]: a name has one process and a process one name.
    pub fn register(&mut self, name: &str, pid: Pid) -> Result<(), NotNamed> {
        let Some(relations) = self.processes.get_mut(&pid) else { return Err(NotNamed::NoProcess(pid)) };
        if let Some((name, holder)) = self.names.get_key_value(name) {
            return Err(NotNamed::Taken(name.clone(), *holder));
        }
        if let Some(known) = &relations.name {
            return Err(NotNamed::Named(known.clone()));
        }
        let name: Arc<str> = name.into();
        relations.name = Some(name.clone());
        self.names.insert(name, pid);
        Ok(())
    }

    /// Takes a name away; says who had it.
    pub fn unregister(&mut self, name: &str) -> Option<Pid> {
        let pid = self.names.remove(name)?;
        self.change(pid, |relations| relations.name.take());
        Some(pid)
    }

    /// Who has a name.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.names.get(name).copied()
    }

    /// Whether nothing is kept of anybody.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.processes.is_empty() && self.monitors.is_empty() && self.names.is_empty()
    }

    /// What the end of `from` is to `to`, who was linked to it.
    fn exit_signal(&self, to: Pid, from: Pid, gone: Gone) -> Option<Signal> {
        let relations = self.processes.get(&to)?;
        if relations.traps {
            return Some(Signal::Exit { to, from, gone });
        }
        gone.is_abnormal().then(|| Signal::Die(to, gone.into_reason()))
    }

    fn change<T>(&mut self, pid: Pid, f: impl FnOnce(&mut Relations) -> T) {
        if let Some(relations) = self.processes.get_mut(&pid) {
            f(relations);
        }
    }
}
