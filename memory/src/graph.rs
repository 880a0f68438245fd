//! The causal graph: entries of the log, and how the earlier bear on the later.
//!
//! Every edge runs from a lower place in the order of [`Moment`] to a higher one. The order is total
//! and no entry's place changes, so there is no cycle, and no check for one. An entry is known outside by its
//! [`EntryRef`] alone: petgraph uses its indices again.
//!
//! [`Graph`] is the graph, [`walk`] asks it, [`svg`] draws a part of it.

mod edge;
mod layout;
pub mod svg;
pub mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use ephor_base::{Seq, SessionId};
use minicbor::Encode;
use petgraph::{
    Direction,
    stable_graph::{NodeIndex, StableDiGraph},
    visit::EdgeRef as _,
};

pub use self::edge::{EdgeKind, EdgeKinds, Evidence, Link, MOST_EVIDENCE};
use crate::entry::{Entry, EntryRef, Moment, Origin};

/// The most entries a graph may be made for, and the most edges. Below the 2³² − 1 of petgraph's indices.
pub const MOST_ELEMENTS: usize = 1 << 31;

/// The most edges that begin at an entry, and that end at one. What an entry led to so often needs no more edges to be shown; and what is
/// done with one entry is bounded by it.
pub const MOST_DEGREE: usize = 4_096;

/// Why the graph did not take something. It is unchanged then.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GraphError {
    /// A graph for more than [`MOST_ELEMENTS`].
    #[error("a graph for {0} elements, at most {MOST_ELEMENTS}")]
    Capacity(usize),
    /// The moment is not one that the entry can have in this node's log.
    #[error("the moment of entry {} does not fit its reference", .0.seq)]
    Misplaced(EntryRef),
    /// Another entry has the reference or the place.
    #[error("the place of entry {} is taken by another", .0.seq)]
    Taken(EntryRef),
    /// There are as many entries, or edges, as the graph was made for.
    #[error("the graph holds the most it was made for: {0}")]
    Full(usize),
    /// An end of the edge is not in the graph.
    #[error("entry {} is not in the graph", .0.seq)]
    Unknown(EntryRef),
    /// The edge would run from the later entry to the earlier, or from an entry to itself.
    #[error("an edge from entry {from} to entry {to} does not go forward in the log")]
    Backward {
        /// The place where it would begin, in its log.
        from: Seq,
        /// The place where it would end, in its log.
        to: Seq,
    },
    /// [`MOST_DEGREE`] edges begin, or end, at the entry already.
    #[error("entry {} has {MOST_DEGREE} edges already", .0.seq)]
    Crowded(EntryRef),
    /// An edge that no record shows.
    #[error("an edge that no record shows")]
    NoEvidence,
    /// An edge that names more than [`MOST_EVIDENCE`] records.
    #[error("an edge with {0} records, at most {MOST_EVIDENCE}")]
    TooMuchEvidence(usize),
}

/// How much a graph may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    entries: usize,
    edges: usize,
}

impl Capacity {
    /// So many entries, and so many edges.
    ///
    /// # Errors
    /// [`GraphError::Capacity`] above [`MOST_ELEMENTS`].
    pub const fn new(entries: usize, edges: usize) -> Result<Self, GraphError> {
        let more = if entries > edges { entries } else { edges };
        if more > MOST_ELEMENTS {
            return Err(GraphError::Capacity(more));
        }
        Ok(Self { entries, edges })
    }
}

#[derive(Debug)]
struct Edge {
    kind: EdgeKind,
    shown_by: Evidence,
}

/// The graph of one node: its own log, and what that names of others.
#[derive(Debug)]
pub struct Graph {
    own: Origin,
    capacity: Capacity,
    graph: StableDiGraph<Entry, Edge>,
    /// Where each entry is in `graph`. An index is in here exactly as long as its entry is there.
    indices: BTreeMap<EntryRef, NodeIndex>,
    order: BTreeMap<Moment, NodeIndex>,
    sessions: BTreeMap<SessionId, BTreeSet<Moment>>,
}

/// What a graph amounts to, in the one order. Equal graphs have equal bytes, however they came about.
#[derive(Encode)]
struct Whole<'a> {
    #[n(0)]
    entries: Vec<&'a Entry>,
    #[n(1)]
    links: Vec<Link>,
}

impl Graph {
    /// An empty graph of the node whose log is `own`.
    #[must_use]
    pub fn new(own: Origin, capacity: Capacity) -> Self {
        Self {
            own,
            capacity,
            graph: StableDiGraph::new(),
            indices: BTreeMap::new(),
            order: BTreeMap::new(),
            sessions: BTreeMap::new(),
        }
    }

    /// Takes an entry in. An entry that is there already, and is the same, changes nothing.
    ///
    /// # Errors
    /// [`GraphError::Misplaced`], [`GraphError::Taken`] or [`GraphError::Full`].
    pub fn add(&mut self, entry: Entry) -> Result<(), GraphError> {
        if self.entry(&entry.id) == Some(&entry) {
            return Ok(());
        }
        if !entry.moment.fits(&entry.id, self.own) {
            return Err(GraphError::Misplaced(entry.id));
        }
        if self.indices.contains_key(&entry.id) || self.order.contains_key(&entry.moment) {
            return Err(GraphError::Taken(entry.id));
        }
        if self.indices.len() >= self.capacity.entries {
            return Err(GraphError::Full(self.capacity.entries));
        }
        let (id, moment, session) = (entry.id, entry.moment, entry.session);
        let index = self.graph.add_node(entry);
        self.indices.insert(id, index);
        self.order.insert(moment, index);
        self.sessions.entry(session).or_default().insert(moment);
        Ok(())
    }

    /// Joins two entries. Where an edge of that kind is there already, the records that show it are joined: the
    /// earliest [`MOST_EVIDENCE`] stay.
    ///
    /// # Errors
    /// [`GraphError::Unknown`], [`GraphError::Backward`], [`GraphError::Crowded`] or [`GraphError::Full`].
    pub fn link(&mut self, link: &Link) -> Result<(), GraphError> {
        let (from, to) = (self.index(&link.from)?, self.index(&link.to)?);
        if self.moment(from) >= self.moment(to) {
            return Err(GraphError::Backward { from: link.from.seq, to: link.to.seq });
        }
        // An entry is named by more later ones than it names earlier ones, so the edges that end are fewer.
        let mut there = self.graph.edges_directed(to, Direction::Incoming);
        if let Some(id) = there.find(|e| e.source() == from && e.weight().kind == link.kind).map(|e| e.id()) {
            if let Some(edge) = self.graph.edge_weight_mut(id) {
                edge.shown_by = edge.shown_by.joined(&link.shown_by);
            }
            return Ok(());
        }
        if self.graph.edge_count() >= self.capacity.edges {
            return Err(GraphError::Full(self.capacity.edges));
        }
        for (index, direction) in [(from, Direction::Outgoing), (to, Direction::Incoming)] {
            if self.graph.edges_directed(index, direction).count() >= MOST_DEGREE {
                return Err(GraphError::Crowded(if index == from { link.from } else { link.to }));
            }
        }
        self.graph.add_edge(from, to, Edge { kind: link.kind, shown_by: link.shown_by.clone() });
        Ok(())
    }

    /// Removes the entries of an erased session with their edges, and returns their references in order.
    pub fn erase(&mut self, session: &SessionId) -> Vec<EntryRef> {
        let moments = self.sessions.remove(session).unwrap_or_default();
        let indices: Vec<NodeIndex> = moments.iter().filter_map(|moment| self.order.remove(moment)).collect();
        // The latest first: petgraph finds the latest edge of a neighbour first.
        let entries = indices.into_iter().rev().filter_map(|index| self.graph.remove_node(index));
        let mut erased: Vec<EntryRef> = entries.map(|entry| entry.id).collect();
        erased.reverse();
        erased.iter().for_each(|id| {
            self.indices.remove(id);
        });
        erased
    }

    /// The log of the node.
    #[must_use]
    pub const fn own(&self) -> Origin {
        self.own
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// How many edges there are.
    #[must_use]
    pub fn edges(&self) -> usize {
        self.graph.edge_count()
    }

    /// The entry of that reference.
    #[must_use]
    pub fn entry(&self, id: &EntryRef) -> Option<&Entry> {
        self.indices.get(id).and_then(|index| self.graph.node_weight(*index))
    }

    /// The entries between two moments, both included, in order.
    pub fn window(&self, moments: RangeInclusive<Moment>) -> impl DoubleEndedIterator<Item = &Entry> {
        // A range that ends before it begins makes a `BTreeMap` panic.
        let range = (moments.start() <= moments.end()).then(|| self.order.range(moments));
        range.into_iter().flatten().filter_map(|(_, index)| self.graph.node_weight(*index))
    }

    /// All entries, in order.
    pub fn entries(&self) -> impl DoubleEndedIterator<Item = &Entry> {
        self.order.values().filter_map(|index| self.graph.node_weight(*index))
    }

    /// The last entries of a session, the latest first.
    pub fn session(&self, session: &SessionId) -> impl Iterator<Item = &Entry> {
        let moments = self.sessions.get(session).into_iter().flat_map(|moments| moments.iter().rev());
        moments.filter_map(|moment| self.graph.node_weight(*self.order.get(moment)?))
    }

    /// The edges that end at an entry, by the place of where they begin and then by kind.
    #[must_use]
    pub fn into_entry(&self, id: &EntryRef) -> Vec<Link> {
        self.links(id, Direction::Incoming)
    }

    /// The edges that begin at an entry, by the place of where they end and then by kind.
    #[must_use]
    pub fn out_of_entry(&self, id: &EntryRef) -> Vec<Link> {
        self.links(id, Direction::Outgoing)
    }

    /// The canonical bytes of the whole graph: equal for equal graphs, whatever the way they were made.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let entries: Vec<&Entry> = self.entries().collect();
        let links = entries.iter().flat_map(|entry| self.out_of_entry(&entry.id)).collect();
        ephor_base::cbor::to_vec(&Whole { entries, links })
    }

    fn links(&self, id: &EntryRef, direction: Direction) -> Vec<Link> {
        let Some(index) = self.indices.get(id) else { return Vec::new() };
        let mut found: Vec<(Moment, Link)> = self
            .graph
            .edges_directed(*index, direction)
            .filter_map(|edge| {
                let from = self.graph.node_weight(edge.source())?;
                let to = self.graph.node_weight(edge.target())?;
                let other = if direction == Direction::Incoming { from } else { to };
                let Edge { kind, shown_by } = edge.weight();
                let link = Link { from: from.id, to: to.id, kind: *kind, shown_by: shown_by.clone() };
                Some((other.moment, link))
            })
            .collect();
        found.sort_unstable_by_key(|(moment, link)| (*moment, link.kind));
        found.into_iter().map(|(_, link)| link).collect()
    }

    /// The latest edges of an entry that began to be there, with the entries at their other ends.
    fn latest(
        &self,
        index: NodeIndex,
        direction: Direction,
        most: usize,
    ) -> impl Iterator<Item = (EdgeKind, NodeIndex, &Entry)> {
        self.graph.edges_directed(index, direction).take(most).filter_map(move |edge| {
            let other = if direction == Direction::Incoming { edge.source() } else { edge.target() };
            Some((edge.weight().kind, other, self.graph.node_weight(other)?))
        })
    }

    fn index(&self, id: &EntryRef) -> Result<NodeIndex, GraphError> {
        self.indices.get(id).copied().ok_or(GraphError::Unknown(*id))
    }

    fn moment(&self, index: NodeIndex) -> Option<Moment> {
        self.graph.node_weight(index).map(|entry| entry.moment)
    }
}
