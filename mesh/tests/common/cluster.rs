//! Many memberships on one clock, with a network between them that loses, delays, doubles and reorders packets.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use ephor_base::Random;
use ephor_mesh::{
    membership::{Command, Member, Membership, Roster, settings},
    party::NodeId,
};

use foca::Config;

use super::{Seeded, node_id};

/// Lets these nodes in and no others.
pub struct Names(pub BTreeSet<NodeId>);

impl Roster for Names {
    fn may_be_member(&self, node: NodeId) -> bool {
        self.0.contains(&node)
    }
}

/// How packets fare.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// In a thousand.
    pub lost: u64,
    /// In a thousand.
    pub doubled: u64,
    pub least: Duration,
    pub most: Duration,
}

pub const CALM: Weather =
    Weather { lost: 0, doubled: 0, least: Duration::from_millis(5), most: Duration::from_millis(5) };

pub struct Cluster {
    pub now: Duration,
    pub weather: Weather,
    /// On which side of a partition each node is.
    pub side: Vec<u8>,
    pub down: BTreeMap<usize, u64>,
    pub nodes: Vec<Membership>,
    /// When each node was told that another is down: the teller, the node, the time.
    pub given_up: Vec<(usize, NodeId, Duration)>,
    pub sent: u64,
    settings: fn(NonZeroU32) -> Config,
    random: Arc<Seeded>,
    packets: BTreeMap<(Duration, u64), (usize, usize, Vec<u8>)>,
    due: BTreeSet<(Duration, usize)>,
    due_of: Vec<Option<Duration>>,
    index: BTreeMap<NodeId, usize>,
    counter: u64,
}

impl Cluster {
    pub fn new(size: usize, seed: u64) -> Self {
        Self::with(size, seed, settings)
    }

    /// A cluster with other settings of foca.
    pub fn with(size: usize, seed: u64, settings: fn(NonZeroU32) -> Config) -> Self {
        let names: BTreeSet<NodeId> = (0..size).map(|at| node_id(at as u64)).collect();
        let mut cluster = Self {
            now: Duration::ZERO,
            weather: CALM,
            side: vec![0; size],
            down: BTreeMap::new(),
            nodes: Vec::new(),
            given_up: Vec::new(),
            sent: 0,
            settings,
            random: Seeded::new(seed),
            packets: BTreeMap::new(),
            due: BTreeSet::new(),
            due_of: vec![None; size],
            index: (0..size).map(|at| (node_id(at as u64), at)).collect(),
            counter: 0,
        };
        for at in 0..size {
            let node = cluster.begin(at, 1, &names, seed);
            cluster.nodes.push(node);
        }
        cluster
    }

    fn begin(&self, at: usize, incarnation: u64, names: &BTreeSet<NodeId>, seed: u64) -> Membership {
        let own = Member { node: node_id(at as u64), incarnation };
        let size = NonZeroU32::new(u32::try_from(self.due_of.len()).unwrap()).unwrap();
        let random = Seeded::new(seed ^ (at as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ incarnation << 48);
        Membership::new(own, (self.settings)(size), Box::new(Names(names.clone())), random)
    }

    /// A number below `below`.
    pub fn draw(&self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_be_bytes(bytes) % below
    }

    /// Every node meets the first.
    pub fn meet(&mut self) {
        for at in 1..self.nodes.len() {
            self.introduce(at, 0);
        }
    }

    pub fn introduce(&mut self, from: usize, to: usize) {
        self.nodes[from].meet(self.now, node_id(to as u64)).unwrap();
        self.carry_out(from);
    }

    /// The node stops without a word.
    pub fn crash(&mut self, at: usize) {
        self.down.insert(at, self.nodes[at].own().incarnation);
        self.reschedule(at);
    }

    /// It starts again, in the incarnation after its last.
    pub fn restart(&mut self, at: usize) {
        let last = self.down.remove(&at).unwrap();
        let names = self.index.keys().copied().collect();
        self.nodes[at] = self.begin(at, last + 1, &names, self.counter);
        let to = (at + 1) % self.nodes.len();
        self.introduce(at, to);
    }

    pub fn run_until(&mut self, until: Duration) {
        loop {
            let timer = self.due.first().copied();
            let packet = self.packets.first_key_value().map(|((at, _), _)| *at);
            let next = timer.map(|(at, _)| at).into_iter().chain(packet).min();
            let Some(next) = next.filter(|next| *next <= until) else { break };
            self.now = next.max(self.now);
            if packet == Some(next) {
                let (_, (from, to, bytes)) = self.packets.pop_first().unwrap();
                if !self.down.contains_key(&to) && self.side[from] == self.side[to] {
                    // A packet that foca refuses, as one to an older incarnation, changes nothing.
                    let _refused = self.nodes[to].receive(self.now, node_id(from as u64), &bytes);
                    self.carry_out(to);
                }
            } else if let Some((_, at)) = timer {
                let _refused = self.nodes[at].tick(self.now);
                self.carry_out(at);
            }
        }
        self.now = until;
    }

    fn carry_out(&mut self, at: usize) {
        while let Some(command) = self.nodes[at].poll() {
            match command {
                Command::Send { to, packet } => self.send(at, to, packet),
                Command::Down(member) => self.given_up.push((at, member.node, self.now)),
                _ => {}
            }
        }
        self.reschedule(at);
    }

    fn send(&mut self, from: usize, to: Member, packet: Vec<u8>) {
        self.sent += 1;
        let Some(to) = self.index.get(&to.node).copied() else { return };
        if self.draw(1000) < self.weather.lost || self.side[from] != self.side[to] {
            return;
        }
        let copies = 1 + usize::from(self.draw(1000) < self.weather.doubled);
        for _ in 0..copies {
            let spread = u64::try_from((self.weather.most - self.weather.least).as_micros()).unwrap() + 1;
            let at = self.now + self.weather.least + Duration::from_micros(self.draw(spread));
            self.counter += 1;
            self.packets.insert((at, self.counter), (from, to, packet.clone()));
        }
    }

    fn reschedule(&mut self, at: usize) {
        if let Some(before) = self.due_of[at].take() {
            self.due.remove(&(before, at));
        }
        if let Some(due) = self.nodes[at].deadline().filter(|_| !self.down.contains_key(&at)) {
            self.due_of[at] = Some(due);
            self.due.insert((due, at));
        }
    }

    /// Whether each node that runs sees exactly those that run, in their present incarnations.
    pub fn agrees(&self) -> bool {
        let running: Vec<usize> = (0..self.nodes.len()).filter(|at| !self.down.contains_key(at)).collect();
        running.iter().all(|at| {
            let seen: BTreeSet<Member> = self.nodes[*at].members().collect();
            let there = running.iter().filter(|other| *other != at).map(|other| self.nodes[*other].own()).collect();
            seen == there
        })
    }
}
