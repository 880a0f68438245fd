//! The world: nodes, the connections between them, and what goes wrong with both.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ephor_base::Random;
use ephor_mesh::{
    delivery::{Answer, DeliveryEvent, Reason},
    frame::{Priority, Purpose, StreamId},
    handshake::{Handshake, MlKem768},
    link::{Limits, Link, LinkError, LinkEvent},
    links::LinkId,
    membership::Command,
    planted::LinkDefect,
    stream::{FIRST_CREDIT, Message},
};

use super::{
    ledger::{Ledger, Violation},
    node::{Chain, NODES, SimNode},
};
use crate::common::{Seeded, node_id};

const TICK: Duration = Duration::from_millis(50);
const ROUGH: Duration = Duration::from_secs(40);
const QUIET: Duration = Duration::from_secs(150);

/// A defect that the world has from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Plant {
    Nothing,
    DoubledFrame,
    LostCredit,
}

enum Phase {
    Handshake(Box<Handshake>),
    Link(Box<Link>),
}

/// One end of a connection.
struct End {
    node: usize,
    phase: Phase,
    delivery: Option<StreamId>,
    membership: Option<StreamId>,
    /// Letters and packets that have come in part.
    parts: BTreeMap<StreamId, Vec<u8>>,
}

/// A connection: two ends and the bytes between them. The first end dialled.
struct Connection {
    /// What both ends call it.
    id: LinkId,
    ends: [End; 2],
    /// Towards each end: when a piece arrives, and what.
    wire: [VecDeque<(Duration, Vec<u8>)>; 2],
    /// Something was done to its bytes, so it may break.
    tampered: bool,
}

pub(crate) struct World {
    pub(crate) ledger: Ledger,
    pub(crate) links: usize,
    /// What was done to the world, in words.
    pub(crate) story: Vec<String>,
    now: Duration,
    dials: u64,
    plant: Plant,
    random: Arc<Seeded>,
    nodes: Vec<SimNode>,
    connections: BTreeMap<(usize, usize), Connection>,
    /// When a pair dials again.
    redial: BTreeMap<(usize, usize), Duration>,
    sides: Vec<u8>,
    heals: Duration,
    restarts: BTreeMap<usize, Duration>,
    broke: Vec<Violation>,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Plant) -> Self {
        Self {
            ledger: Ledger::default(),
            links: 0,
            story: Vec::new(),
            now: Duration::ZERO,
            dials: 0,
            plant,
            random: Seeded::new(seed ^ 0xface),
            nodes: (0..NODES).map(|at| SimNode::new(at, seed)).collect(),
            connections: BTreeMap::new(),
            redial: (0..NODES).flat_map(|a| (a + 1..NODES).map(move |b| ((a, b), Duration::ZERO))).collect(),
            sides: vec![0; NODES],
            heals: Duration::ZERO,
            restarts: BTreeMap::new(),
            broke: Vec::new(),
        }
    }

    fn draw(&self, below: u64) -> u64 {
        let mut bytes = [0; 8];
        self.random.fill(&mut bytes);
        u64::from_be_bytes(bytes) % below
    }

    fn draw_node(&self) -> usize {
        usize::try_from(self.draw(NODES as u64)).unwrap()
    }

    fn millis(&self, below: u64) -> Duration {
        Duration::from_millis(self.draw(below))
    }

    pub(crate) fn run(&mut self) {
        while self.now < ROUGH + QUIET {
            self.now += TICK;
            let rough = self.now < ROUGH;
            if rough && self.draw(20) == 0 {
                self.go_wrong();
            }
            self.mend(!rough);
            if rough {
                self.talk();
            }
            self.dial();
            // What a tick sends within a node's reach arrives in later ones.
            for pair in self.connections.keys().copied().collect::<Vec<_>>() {
                self.arrive(pair);
            }
            (0..NODES).for_each(|at| self.think(at));
            for pair in self.connections.keys().copied().collect::<Vec<_>>() {
                self.pump(pair);
            }
        }
    }

    fn go_wrong(&mut self) {
        match self.draw(6) {
            0 => {
                let at = self.draw_node();
                if self.nodes[at].running {
                    self.story.push(format!("{at} crashes"));
                    self.nodes[at].running = false;
                    self.cut(|(a, b)| a == at || b == at);
                    let back = self.now + self.millis(6000);
                    self.restarts.insert(at, back);
                }
            }
            1 => {
                self.sides = (0..NODES).map(|_| u8::from(self.draw(2) == 0)).collect();
                self.heals = self.now + self.millis(15_000);
                self.story.push(format!("parted as {:?}", self.sides));
                // A partition is silence: nothing is told to either end.
            }
            2 => {
                let (a, b) = (self.draw_node(), self.draw_node());
                self.cut(|pair| pair == (a, b));
            }
            _ => self.tamper(),
        }
    }

    /// Connections end as when a cable is pulled and both ends notice.
    fn cut(&mut self, which: impl Fn((usize, usize)) -> bool) {
        let pairs: Vec<_> = self.connections.keys().copied().filter(|pair| which(*pair)).collect();
        pairs.into_iter().for_each(|pair| self.drop_connection(pair));
    }

    fn drop_connection(&mut self, pair: (usize, usize)) {
        if let Some(connection) = self.connections.remove(&pair) {
            let again = self.now + self.millis(2000);
            self.redial.insert(pair, again);
            let (a, b) = pair;
            for (at, peer) in [(a, b), (b, a)] {
                let peer = self.nodes[at].peers.get_mut(&peer).unwrap();
                peer.delivery.unlinked(connection.id);
                peer.held = None;
            }
        }
    }

    /// Loses, doubles, changes or reorders something that is under way.
    fn tamper(&mut self) {
        let how = self.draw(4);
        let (a, towards) = (self.draw_node(), usize::try_from(self.draw(2)).unwrap());
        let Some((_, connection)) = self.connections.range_mut((a, 0)..).next() else { return };
        let wire = &mut connection.wire[towards];
        match how {
            0 => drop(wire.pop_front()),
            1 => wire.front().cloned().into_iter().for_each(|piece| wire.insert(1, piece)),
            2 if wire.len() > 1 => wire.swap(0, 1),
            _ => wire.iter_mut().take(1).for_each(|(_, bytes)| bytes[0] ^= 1),
        }
        connection.tampered = true;
        self.story.push(format!("tampered {how} from {a}"));
    }

    fn mend(&mut self, all: bool) {
        if all || self.now >= self.heals {
            self.sides.fill(0);
        }
        let back: Vec<usize> =
            self.restarts.iter().filter(|(_, at)| all || **at <= self.now).map(|(node, _)| *node).collect();
        for at in back {
            self.restarts.remove(&at);
            let memory = (self.draw(5) == 0).then(|| self.draw(1 << 40));
            self.story.push(format!("{at} is back, its memory lost: {}", memory.is_some()));
            for id in self.nodes[at].restart(memory) {
                self.ledger.lost(id);
            }
        }
    }

    fn talk(&mut self) {
        if self.draw(3) > 0 {
            return;
        }
        let (from, to) = (self.draw_node(), self.draw_node());
        if from == to || !self.nodes[from].running {
            return;
        }
        let length = if self.draw(6) == 0 { self.draw(200_000) } else { self.draw(300) };
        let deadline = self.now + Duration::from_secs(2) + self.millis(if self.draw(2) == 0 { 5000 } else { 80_000 });
        let id = self.ledger.sent();
        let peer = self.nodes[from].peers.get_mut(&to).unwrap();
        if !peer.send(id, usize::try_from(length).unwrap(), deadline) {
            self.ledger.unsent(id);
        }
    }

    fn dial(&mut self) {
        let due: Vec<_> = self.redial.iter().filter(|(_, at)| **at <= self.now).map(|(pair, _)| *pair).collect();
        for (a, b) in due {
            let reachable = self.nodes[a].running && self.nodes[b].running && self.sides[a] == self.sides[b];
            if !reachable || self.connections.contains_key(&(a, b)) {
                continue;
            }
            self.redial.remove(&(a, b));
            let random = |at: usize| Arc::clone(&self.nodes[at].random) as Arc<dyn Random>;
            let kem = || Box::new(MlKem768::default());
            let (dialler, first) = Handshake::initiator(&self.nodes[a].key, &random(a), kem(), self.now).unwrap();
            let answerer = Handshake::responder(Arc::clone(&self.nodes[b].key), random(b), kem(), self.now);
            let end = |node, machine| End {
                node,
                phase: Phase::Handshake(Box::new(machine)),
                delivery: None,
                membership: None,
                parts: BTreeMap::new(),
            };
            let wire = [VecDeque::new(), VecDeque::from([(self.now + self.latency(), first)])];
            let ends = [end(a, dialler), end(b, answerer)];
            self.dials += 1;
            let id = LinkId(self.dials);
            self.connections.insert((a, b), Connection { id, ends, wire, tampered: false });
        }
    }

    fn latency(&self) -> Duration {
        Duration::from_millis(2) + self.millis(60)
    }

    /// Lets what has arrived on a connection take effect.
    fn arrive(&mut self, pair: (usize, usize)) {
        for side in 0..2 {
            loop {
                let parted = self.sides[pair.0] != self.sides[pair.1];
                let Some(connection) = self.connections.get_mut(&pair) else { return };
                let arrived = connection.wire[side].front().is_some_and(|(at, _)| *at <= self.now && !parted);
                if !arrived {
                    break;
                }
                let Some((_, bytes)) = connection.wire[side].pop_front() else { break };
                if let Err(why) = self.take_in(pair, side, &bytes) {
                    self.broken(pair, why);
                    return;
                }
            }
        }
    }

    fn broken(&mut self, pair: (usize, usize), why: Option<String>) {
        let tampered = self.connections.get(&pair).is_some_and(|connection| connection.tampered);
        if let Some(why) = why.filter(|_| !tampered) {
            self.broke.push(Violation::LinkBroke(why));
        }
        self.drop_connection(pair);
    }

    /// Gives bytes to one end. An error that the network explains has no text.
    fn take_in(&mut self, pair: (usize, usize), side: usize, bytes: &[u8]) -> Result<(), Option<String>> {
        let mut rest = bytes.to_vec();
        let latency = self.latency();
        while !rest.is_empty() {
            let Some(connection) = self.connections.get_mut(&pair) else { return Ok(()) };
            let end = &mut connection.ends[side];
            let at = end.node;
            match &mut end.phase {
                Phase::Handshake(machine) => {
                    let mut out = Vec::new();
                    let progress = machine.receive(self.now, &rest, &mut Chain(at), &mut out);
                    let progress = progress.map_err(|refusal| Some(format!("{refusal:?}")))?;
                    rest.drain(..progress.consumed);
                    if !out.is_empty() {
                        post(&mut connection.wire[1 - side], self.now + latency, out);
                    }
                    if let Some(established) = progress.link {
                        self.established(pair, side, *established);
                    }
                }
                Phase::Link(link) => {
                    let received = link.receive(self.now, &rest).map_err(|error| Some(format!("{error:?}")))?;
                    rest.drain(..received.consumed);
                    let chunk = match received.event {
                        Some(LinkEvent::Opened { stream, purpose, .. }) => {
                            match purpose {
                                Purpose::MEMBERSHIP => end.membership = Some(stream),
                                _ => end.delivery = Some(stream),
                            }
                            None
                        }
                        Some(LinkEvent::Chunk { stream, last, bytes, credit }) => {
                            let part = end.parts.entry(stream).or_default();
                            part.extend_from_slice(bytes);
                            Some((stream, last, credit))
                        }
                        _ => None,
                    };
                    if let Some((stream, last, credit)) = chunk {
                        link.consume(stream, credit).unwrap();
                        if last {
                            let whole = end.parts.remove(&stream).unwrap();
                            let of_delivery = end.delivery == Some(stream);
                            self.message(pair, side, of_delivery, &whole)?;
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn established(&mut self, pair: (usize, usize), side: usize, established: ephor_mesh::handshake::Established) {
        let limits = Limits::default().with_room(FIRST_CREDIT, 600_000).unwrap();
        let limits = limits.with_key(400_000, Duration::from_secs(8)).unwrap();
        let mut link = Link::new(established, limits, self.now);
        match self.plant {
            Plant::Nothing => {}
            Plant::DoubledFrame => link.plant(LinkDefect::DoubledFrame),
            Plant::LostCredit => link.plant(LinkDefect::LostCredit),
        }
        let connection = self.connections.get_mut(&pair).unwrap();
        let (id, end) = (connection.id, &mut connection.ends[side]);
        if side == 0 {
            end.membership = Some(link.open(Priority::Heartbeat, Purpose::MEMBERSHIP).unwrap());
            end.delivery = Some(link.open(Priority::Data, Purpose::DELIVERY).unwrap());
        }
        end.phase = Phase::Link(Box::new(link));
        self.links += 1;
        let (at, peer) = if side == 0 { pair } else { (pair.1, pair.0) };
        let node = &mut self.nodes[at];
        node.peers.get_mut(&peer).unwrap().delivery.linked(id);
        node.membership.meet(self.now, node_id(peer as u64)).unwrap();
    }

    fn message(
        &mut self,
        pair: (usize, usize),
        side: usize,
        of_delivery: bool,
        bytes: &[u8],
    ) -> Result<(), Option<String>> {
        let (at, peer) = if side == 0 { pair } else { (pair.1, pair.0) };
        let over = self.connections[&pair].id;
        let node = &mut self.nodes[at];
        if !of_delivery {
            // A packet to an incarnation that is over is refused, which changes nothing.
            let _refused = node.membership.receive(self.now, node_id(peer as u64), bytes);
            return Ok(());
        }
        let state = node.peers.get_mut(&peer).unwrap();
        state.delivery.receive(over, bytes).map_err(|error| Some(format!("{error:?}")))?;
        self.follow(at, peer);
        Ok(())
    }

    /// Does what a delivery says.
    fn follow(&mut self, at: usize, peer: usize) {
        let state = self.nodes[at].peers.get_mut(&peer).unwrap();
        while let Some(event) = state.delivery.poll(self.now) {
            match event {
                DeliveryEvent::Met { memory } => state.note_memory(memory),
                DeliveryEvent::Deliver { handed, body, .. } => {
                    let id = u64::from_be_bytes(*body.first_chunk().unwrap());
                    state.undecided.push_back((handed, id));
                }
                DeliveryEvent::Settled { number, fate } => {
                    let id = state.settled(number);
                    self.ledger.fated(id, fate);
                }
            }
        }
    }

    /// What a node does of its own accord.
    fn think(&mut self, at: usize) {
        if !self.nodes[at].running {
            return;
        }
        for peer in (0..NODES).filter(|peer| *peer != at) {
            self.follow(at, peer);
            if self.draw(4) > 0 {
                continue;
            }
            let answer = if self.draw(8) == 0 { Answer::Refused(Reason::Full) } else { Answer::Accepted };
            let state = self.nodes[at].peers.get_mut(&peer).unwrap();
            while let Some((handed, id)) = state.undecided.pop_front() {
                if state.decide(handed, answer) && answer == Answer::Accepted {
                    self.ledger.recorded(id);
                }
            }
        }
        let membership = &mut self.nodes[at].membership;
        let _refused = membership.tick(self.now);
        let commands: Vec<Command> = std::iter::from_fn(|| membership.poll()).collect();
        for command in commands {
            let Command::Send { to, packet } = command else { continue };
            let Some(peer) = (0..NODES).find(|peer| node_id(*peer as u64) == to.node) else { continue };
            let pair = (at.min(peer), at.max(peer));
            let Some(connection) = self.connections.get_mut(&pair) else { continue };
            let end = &mut connection.ends[usize::from(at > peer)];
            if let (Phase::Link(link), Some(stream)) = (&mut end.phase, end.membership) {
                let _full = link.send(stream, Message::from(&*packet));
            }
        }
    }

    /// Moves letters into streams and frames onto the wire.
    fn pump(&mut self, pair: (usize, usize)) {
        for side in 0..2 {
            if let Err(why) = self.pump_end(pair, side) {
                self.broken(pair, why);
                return;
            }
        }
    }

    fn pump_end(&mut self, pair: (usize, usize), side: usize) -> Result<(), Option<String>> {
        let latency = self.latency();
        let Some(connection) = self.connections.get_mut(&pair) else { return Ok(()) };
        let (at, peer) = if side == 0 { pair } else { (pair.1, pair.0) };
        let end = &mut connection.ends[side];
        let link = match &mut end.phase {
            Phase::Handshake(machine) if self.now >= machine.deadline() => return Err(None),
            Phase::Link(link) => link,
            _ => return Ok(()),
        };
        let state = self.nodes[at].peers.get_mut(&peer).unwrap();
        loop {
            while let Some(stream) = end.delivery
                && let Some(letter) = state.held.take().or_else(|| state.delivery.transmit(connection.id))
            {
                if link.may_send(stream, letter.len()).is_err() {
                    state.held = Some(letter);
                    break;
                }
                link.send(stream, Message::from(&*letter)).unwrap();
            }
            let sent = match link.transmit(self.now) {
                Ok(sent) => sent,
                // The network may be parted: silence is what a link is to find.
                Err(LinkError::Silent(_)) => return Err(None),
                Err(error) => return Err(Some(format!("{error:?}"))),
            };
            if sent.bytes.is_empty() {
                return Ok(());
            }
            post(&mut connection.wire[1 - side], self.now + latency, sent.bytes.to_vec());
        }
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        let mut found = self.ledger.violations();
        found.extend(self.broke.iter().take(5).cloned());
        let stalled = self.connections.values().flat_map(|connection| &connection.ends).any(|end| match &end.phase {
            Phase::Link(link) => link.stopped().next().is_some(),
            _ => false,
        });
        found.extend(stalled.then_some(Violation::Stalled));
        for a in 0..NODES {
            for b in a + 1..NODES {
                let linked = self
                    .connections
                    .get(&(a, b))
                    .is_some_and(|connection| connection.ends.iter().all(|end| matches!(end.phase, Phase::Link(_))));
                if !linked {
                    found.push(Violation::Unlinked(a, b));
                }
            }
        }
        let agree = self.nodes.iter().all(|node| {
            let mut seen: Vec<_> = node.membership.members().collect();
            let others = self.nodes.iter().filter(|other| other.at != node.at);
            let mut there: Vec<_> = others.map(|other| other.membership.own()).collect();
            seen.sort_unstable();
            there.sort_unstable();
            seen == there
        });
        found.extend((!agree).then_some(Violation::Disagree));
        found
    }
}

/// Puts a piece on a wire, behind what is on it: a connection keeps its order unless it is tampered with.
fn post(wire: &mut VecDeque<(Duration, Vec<u8>)>, at: Duration, bytes: Vec<u8>) {
    let at = wire.back().map_or(at, |(last, _)| at.max(*last));
    wire.push_back((at, bytes));
}
