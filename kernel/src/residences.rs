//! Where the sessions live that are open: found by their names and by their seats.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Bound,
    sync::Arc,
};

use ephor_base::{Seat, SessionId};
use ephor_record::standing::is_at_or_below;
use ephor_runtime::Address;

use crate::{chronicle::Chronicle, kernel::AGENT, process::Body};

/// Where a session lives.
#[derive(Clone)]
pub(crate) struct Residence {
    pub(crate) group: Address<Chronicle>,
    pub(crate) agent: Address<Chronicle>,
    /// What its agents run.
    pub(crate) body: Arc<dyn Body>,
}

/// All of them. A look by a seat costs no more where many are open.
#[derive(Default)]
pub(crate) struct Residences {
    homes: HashMap<SessionId, Residence>,
    /// By the seat of the group.
    seats: BTreeMap<Seat, SessionId>,
}

impl Residences {
    pub(crate) fn insert(&mut self, session: SessionId, home: Residence) {
        self.seats.insert(home.group.seat().clone(), session);
        self.homes.insert(session, home);
    }

    pub(crate) fn get(&self, session: SessionId) -> Option<&Residence> {
        self.homes.get(&session)
    }

    pub(crate) fn remove(&mut self, session: SessionId) -> Option<Residence> {
        let home = self.homes.remove(&session)?;
        self.seats.remove(home.group.seat());
        Some(home)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SessionId, &Residence)> {
        self.homes.iter().map(|(session, home)| (*session, home))
    }

    /// Whether `seat` is that of a group.
    pub(crate) fn is_group(&self, seat: &Seat) -> bool {
        self.seats.contains_key(seat)
    }

    /// The sessions whose agent is in `seat` or, with `tree`, below it. The group of a session stands for its agent.
    pub(crate) fn at(&self, seat: &Seat, tree: bool) -> Vec<SessionId> {
        let group = seat.as_str().strip_suffix(AGENT).and_then(|path| path.strip_suffix('/'));
        let own = group.and_then(|group| self.seats.get(group)).or_else(|| self.seats.get(seat));
        let below = self.seats.range::<str, _>((Bound::Excluded(seat.as_str()), Bound::Unbounded));
        let below = below.take_while(|(group, _)| tree && group.as_str().starts_with(seat.as_str()));
        let below = below.filter(|(group, _)| is_at_or_below(group, seat)).map(|(_, session)| session);
        own.into_iter().chain(below).copied().collect()
    }
}
