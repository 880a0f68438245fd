//! The children of one supervisor: a slab, linked in the order of their start, with an index of their names.

use std::{collections::HashMap, time::Duration};

use super::{ChildId, Counted, Kind, Name, Restart, Shutdown, Spec};

/// No place.
const NONE: u32 = u32::MAX;

/// Where a child stands, as the engine sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The place is free.
    Free,
    /// It does not run.
    Stopped,
    /// It is being started.
    Starting,
    /// It runs.
    Running,
    /// It exited, and the engine has not come to it yet.
    Exited,
    /// It is to be started again.
    Restarting,
}

/// One child.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: Option<Name>,
    pub(super) shutdown: Shutdown,
    /// Grows from child to child, so that two places can be compared.
    pub(super) rank: u64,
    before: u32,
    after: u32,
    run: u32,
    first_run: u32,
    pub(super) crashes: u32,
    /// When it was last started, in milliseconds of the supervisor's clock.
    since: u64,
    state: State,
    pub(super) restart: Restart,
    pub(super) kind: Kind,
    pub(super) significant: bool,
}

/// All of them.
#[derive(Debug)]
pub(super) struct Children {
    entries: Vec<Entry>,
    names: HashMap<Name, u32>,
    first: u32,
    last: u32,
    /// The head of the list of free places, linked by `after`.
    free: u32,
    next_rank: u64,
    counted: Counted,
    restarting: usize,
    /// Significant children that run or will.
    significant: usize,
}

impl Children {
    pub(super) fn new() -> Self {
        Self {
            entries: Vec::new(),
            names: HashMap::new(),
            first: NONE,
            last: NONE,
            free: NONE,
            next_rank: 1,
            counted: Counted::default(),
            restarting: 0,
            significant: 0,
        }
    }

    /// Adds a child at the end, stopped. `None` only where four billion are there already.
    pub(super) fn add(&mut self, spec: &Spec, is_named: bool) -> Option<u32> {
        let name = is_named.then(|| spec.name.clone());
        let place = self.room()?;
        let (rank, last) = (self.next_rank, self.last);
        let entry = self.entry_mut(place)?;
        let first_run = entry.run.wrapping_add(1);
        *entry = Entry {
            name: name.clone(),
            shutdown: spec.shutdown,
            rank,
            before: last,
            after: NONE,
            run: entry.run,
            first_run,
            crashes: 0,
            since: 0,
            state: State::Stopped,
            restart: spec.restart,
            kind: spec.kind,
            significant: spec.significant,
        };
        self.next_rank += 1;
        self.link(last, place);
        self.last = place;
        self.counted.specs += 1;
        match spec.kind {
            Kind::Worker => self.counted.workers += 1,
            Kind::Supervisor => self.counted.supervisors += 1,
        }
        if let Some(name) = name {
            self.names.insert(name, place);
        }
        Some(place)
    }

    /// Takes a child away; its place may be used again.
    pub(super) fn remove(&mut self, place: u32) {
        if self.state(place) == State::Free {
            return;
        }
        self.enter(place, State::Stopped);
        let free = self.free;
        let Some(entry) = self.entry_mut(place) else { return };
        let (before, after, kind, name) = (entry.before, entry.after, entry.kind, entry.name.take());
        (entry.state, entry.after, entry.before) = (State::Free, free, NONE);
        self.free = place;
        self.link(before, after);
        if after == NONE {
            self.last = before;
        }
        if let Some(name) = name {
            self.names.remove(&name);
        }
        self.counted.specs -= 1;
        match kind {
            Kind::Worker => self.counted.workers -= 1,
            Kind::Supervisor => self.counted.supervisors -= 1,
        }
    }

    /// Changes where a child stands.
    pub(super) fn enter(&mut self, place: u32, state: State) {
        let Some(entry) = self.entry_mut(place) else { return };
        let was = std::mem::replace(&mut entry.state, state);
        let is_significant = entry.significant;
        let one = |is: bool| usize::from(is);
        self.counted.active = self.counted.active + one(state == State::Running) - one(was == State::Running);
        self.restarting = self.restarting + one(state == State::Restarting) - one(was == State::Restarting);
        let lives = |state| is_significant && !matches!(state, State::Free | State::Stopped);
        self.significant = self.significant + one(lives(state)) - one(lives(was));
    }

    /// Begins the next incarnation.
    pub(super) fn begin(&mut self, place: u32, now: Duration) -> ChildId {
        self.enter(place, State::Starting);
        let since = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        let run = self.entry_mut(place).map_or(0, |entry| {
            entry.run = entry.run.wrapping_add(1);
            entry.since = since;
            entry.run
        });
        ChildId { place, run }
    }

    /// Takes the incarnation back that was begun: it never ran, so a caller that knows the one before still means this child.
    pub(super) fn unbegin(&mut self, place: u32) {
        if let Some(entry) = self.entry_mut(place) {
            entry.run = entry.run.wrapping_sub(1);
        }
    }

    /// The current incarnation.
    pub(super) fn id(&self, place: u32) -> ChildId {
        ChildId { place, run: self.entry(place).map_or(0, |entry| entry.run) }
    }

    /// Where a place stands, if `id` is its current incarnation.
    pub(super) fn state_of(&self, id: ChildId) -> State {
        self.entry(id.place).filter(|entry| entry.run == id.run).map_or(State::Free, |entry| entry.state)
    }

    pub(super) fn state(&self, place: u32) -> State {
        self.entry(place).map_or(State::Free, |entry| entry.state)
    }

    /// Whether `id` is, or was, an incarnation of the child that has this place now.
    pub(super) fn is_of_tenant(&self, id: ChildId) -> bool {
        // One that was taken back counts too: its timer may still come.
        self.entry(id.place)
            .is_some_and(|entry| entry.state != State::Free && id.run.wrapping_add(1) >= entry.first_run)
    }

    /// For how long a child has run.
    pub(super) fn age(&self, place: u32, now: Duration) -> Duration {
        let since = self.entry(place).map_or(0, |entry| entry.since);
        now.saturating_sub(Duration::from_millis(since))
    }

    pub(super) fn entry(&self, place: u32) -> Option<&Entry> {
        self.entries.get(usize::try_from(place).ok()?)
    }

    pub(super) fn entry_mut(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.get_mut(usize::try_from(place).ok()?)
    }

    pub(super) fn rank(&self, place: u32) -> u64 {
        self.entry(place).map_or(0, |entry| entry.rank)
    }

    pub(super) fn named(&self, name: &Name) -> Option<u32> {
        self.names.get(name).copied()
    }

    pub(super) fn first(&self) -> Option<u32> {
        (self.first != NONE).then_some(self.first)
    }

    pub(super) fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }

    pub(super) fn after(&self, place: u32) -> Option<u32> {
        self.entry(place).map(|entry| entry.after).filter(|after| *after != NONE)
    }

    pub(super) fn before(&self, place: u32) -> Option<u32> {
        self.entry(place).map(|entry| entry.before).filter(|before| *before != NONE)
    }

    pub(super) const fn counted(&self) -> Counted {
        self.counted
    }

    pub(super) const fn restarting(&self) -> usize {
        self.restarting
    }

    pub(super) const fn significant(&self) -> usize {
        self.significant
    }

    /// A free place: one that was used before, or a new one.
    fn room(&mut self) -> Option<u32> {
        if self.free != NONE {
            let place = self.free;
            self.free = self.entry(place)?.after;
            return Some(place);
        }
        let place = u32::try_from(self.entries.len()).ok().filter(|place| *place != NONE)?;
        self.entries.push(Entry {
            name: None,
            shutdown: Shutdown::Brutal,
            rank: 0,
            before: NONE,
            after: NONE,
            run: 0,
            first_run: 0,
            crashes: 0,
            since: 0,
            state: State::Free,
            restart: Restart::Temporary,
            kind: Kind::Worker,
            significant: false,
        });
        Some(place)
    }

    /// Makes two places neighbours; either may be the end of the list.
    fn link(&mut self, before: u32, after: u32) {
        match self.entry_mut(before) {
            Some(entry) => entry.after = after,
            None => self.first = after,
        }
        if let Some(entry) = self.entry_mut(after) {
            entry.before = before;
        }
    }
}
