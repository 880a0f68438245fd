//! Membership: which nodes are there, by SWIM (A. Das and others, 2002), as foca has it.
//!
//! Packets travel over authenticated links, so who sent one is known and not claimed. An identity is the name of a chain and an
//! incarnation; a node that was given up takes the next incarnation by itself and is back, and nodes that were given up are asked
//! again now and then, so that partitions heal.
//!
//! A packet is taken apart as a whole, and counts only if its sender may be a member; what it says about other nodes that may not is
//! left out before foca sees it, and no packet goes to one of them. So a member that lies can neither fill the memory nor bring
//! strangers in. Only what a node says itself raises the incarnation that it is known to have reached. Others may be wrong about it by
//! [`MOST_AHEAD`] at most, and the node steps over every incarnation within that bound; so none can be put out of its own reach.
//!
//! The engine is pure: packets and times go in, commands come out by [`Membership::poll`].

mod codec;

use std::{
    collections::{BTreeMap, VecDeque},
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

use ephor_base::Random;
use foca::{Config, Foca, Identity, NoCustomBroadcast, Notification, PeriodicParams, Runtime, Timer};

pub use self::codec::BadPacket;
use self::codec::{Layout, Packet};
use crate::{link::QUEUE, party::NodeId, stream::FIRST_CREDIT};

/// The longest packet, in bytes: some 380 updates. Links carry far longer ones; what a newcomer is told at once is what it need not
/// be told later.
pub const MOST_PACKET: usize = 16_384;
/// An incarnation counts the starts of a node, and the times it was given up wrongly: no honest one begins beyond this.
pub const MOST_FIRST_INCARNATION: u64 = 1 << 32;
// A packet goes over a new stream before there is any credit, and into a queue that is empty.
const _: () = assert!(MOST_PACKET as u64 <= FIRST_CREDIT && MOST_PACKET <= QUEUE);

/// The highest incarnation. One more claim about a node is always within the numbers.
pub const MOST_INCARNATION: u64 = u64::MAX >> 1;
/// How far ahead of what a node has said itself, or of [`MOST_FIRST_INCARNATION`], other members may say that it is.
pub const MOST_AHEAD: u64 = 1 << 16;
/// How often this node asks members for all that they know, and nodes that were given up whether they are back; and how many of each.
const ASK: Duration = Duration::from_secs(10);
const ASK_MEMBERS: usize = 1;
const ASK_DOWN: usize = 2;

/// A node in one of its incarnations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    /// The name of its chain.
    pub node: NodeId,
    /// Higher than in any life before; at most [`MOST_INCARNATION`].
    pub incarnation: u64,
}

impl Member {
    /// The node in the incarnation after `incarnation`, if there is one.
    fn after(&self, incarnation: u64) -> Option<Self> {
        let next = incarnation.checked_add(1).filter(|next| *next <= MOST_INCARNATION);
        next.map(|incarnation| Self { incarnation, ..*self })
    }
}

impl Identity for Member {
    type Addr = NodeId;

    fn renew(&self) -> Option<Self> {
        #[cfg(feature = "planted")]
        if crate::planted::renews_stale() {
            return self.incarnation.checked_sub(1).map(|incarnation| Self { incarnation, ..*self });
        }
        self.after(self.incarnation)
    }

    fn addr(&self) -> NodeId {
        self.node
    }

    fn win_addr_conflict(&self, adversary: &Self) -> bool {
        self.incarnation > adversary.incarnation
    }
}

/// A packet, or a step of foca, that went wrong. Membership goes on with what it knew.
#[derive(Debug, thiserror::Error)]
pub enum MembershipError {
    /// The peer's packet is malformed.
    #[error("a packet of the peer is malformed")]
    Malformed(#[source] BadPacket),
    /// The packet is longer than [`MOST_PACKET`].
    #[error("a packet of {0} bytes is too long")]
    TooLong(usize),
    /// The packet names another sender than the link it came over.
    #[error("a packet names `{claimed}` as its sender, and came from `{link}`")]
    Forged {
        /// Who it says.
        claimed: NodeId,
        /// Who the link says.
        link: NodeId,
    },
    /// The packet is for another node than this one.
    #[error("a packet is for `{0}`")]
    Misdirected(NodeId),
    /// The sender may not be a member.
    #[error("`{0}` may not be a member, and sends packets")]
    NotAMember(NodeId),
    /// foca refused, and says why.
    #[error("the membership engine refused")]
    Refused(#[source] foca::Error),
}

/// What the node has to do, or to know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Command {
    /// Send a packet over the link to a node. Without a link it is dropped, which SWIM takes as a loss.
    Send {
        /// Where to.
        to: Member,
        /// The packet.
        packet: Vec<u8>,
    },
    /// A node is there.
    Up(Member),
    /// A node was given up, or left.
    Down(Member),
    /// A node is there in a newer incarnation.
    Renamed {
        /// Before.
        before: Member,
        /// Now.
        now: Member,
    },
    /// This node was given up and has taken its next incarnation. A restart has to begin above it.
    Renewed(Member),
    /// This node was given up and has no incarnation left. It has to be started anew.
    Defunct,
}

/// Which nodes may be members: those on the list of peers whose policy allows it. Packets of other nodes are refused, none goes to
/// them, and what is said about them is left out.
pub trait Roster: Send {
    /// Whether `node` may be a member.
    fn may_be_member(&self, node: NodeId) -> bool;
}

/// The members as this node sees them.
pub struct Membership {
    foca: Foca<Member, Layout, Injected, NoCustomBroadcast>,
    /// The highest incarnation that each node has said of itself.
    said: BTreeMap<NodeId, u64>,
    shell: Shell,
}

/// What foca wants done, kept until it is asked for.
struct Shell {
    now: Duration,
    roster: Box<dyn Roster>,
    timers: BTreeMap<(Duration, u64), Timer<Member>>,
    /// Where the last timer of each slot was put.
    slots: BTreeMap<Slot, (Duration, u64)>,
    scheduled: u64,
    commands: VecDeque<Command>,
}

/// Timers of which foca heeds the last alone: the one before is taken away, so that they do not gather.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Slot {
    Probe,
    Announce,
    AnnounceDown,
    Gossip,
    Remove(NodeId),
}

impl Slot {
    const fn of(timer: &Timer<Member>) -> Option<Self> {
        match timer {
            Timer::ProbeRandomMember(_) => Some(Self::Probe),
            Timer::PeriodicAnnounce(_) => Some(Self::Announce),
            Timer::PeriodicAnnounceDown(_) => Some(Self::AnnounceDown),
            Timer::PeriodicGossip(_) => Some(Self::Gossip),
            Timer::RemoveDown(member) => Some(Self::Remove(member.node)),
            // A suspicion counts from its first timer. Both end within seconds.
            Timer::SendIndirectProbe { .. } | Timer::ChangeSuspectToDown { .. } => None,
        }
    }
}

impl Runtime<Member> for Shell {
    fn notify(&mut self, notification: Notification<'_, Member>) {
        self.commands.extend(match notification {
            Notification::MemberUp(member) => Some(Command::Up(*member)),
            Notification::MemberDown(member) => Some(Command::Down(*member)),
            Notification::Rename(before, now) => Some(Command::Renamed { before: *before, now: *now }),
            Notification::Rejoin(member) => Some(Command::Renewed(*member)),
            Notification::Defunct => Some(Command::Defunct),
            // Whether other nodes are there follows from the members.
            _ => None,
        });
    }

    fn send_to(&mut self, to: Member, data: &[u8]) {
        if self.roster.may_be_member(to.node) {
            self.commands.push_back(Command::Send { to, packet: data.to_vec() });
        }
    }

    fn submit_after(&mut self, event: Timer<Member>, after: Duration) {
        self.scheduled = self.scheduled.wrapping_add(1);
        let place = (self.now.saturating_add(after), self.scheduled);
        if let Some(slot) = Slot::of(&event)
            && let Some(before) = self.slots.insert(slot, place)
        {
            self.timers.remove(&before);
        }
        self.timers.insert(place, event);
    }
}

struct Injected(Arc<dyn Random>);

impl rand_core::TryRng for Injected {
    type Error = std::convert::Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
        let mut bytes = [0; 4];
        self.0.fill(&mut bytes);
        Ok(u32::from_le_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        Ok(u64::from_le_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Self::Error> {
        self.0.fill(into);
        Ok(())
    }
}

/// foca's settings for a cluster of about `nodes` on lines of ordinary quality.
#[must_use]
pub fn settings(nodes: NonZeroU32) -> Config {
    let every = |count| NonZeroUsize::new(count).map(|num_members| PeriodicParams { frequency: ASK, num_members });
    let packet = NonZeroUsize::new(MOST_PACKET).unwrap_or(NonZeroUsize::MIN);
    Config {
        max_packet_size: packet,
        notify_down_members: true,
        periodic_announce: every(ASK_MEMBERS),
        periodic_announce_to_down_members: every(ASK_DOWN),
        ..Config::new_lan(nodes)
    }
}

impl Membership {
    /// Begins as `own`, whose incarnation is above all that were used before.
    #[must_use]
    pub fn new(own: Member, settings: Config, roster: Box<dyn Roster>, random: Arc<dyn Random>) -> Self {
        let foca = Foca::new(own, settings, Injected(random), Layout);
        let shell = Shell {
            now: Duration::ZERO,
            roster,
            timers: BTreeMap::new(),
            slots: BTreeMap::new(),
            scheduled: 0,
            commands: VecDeque::new(),
        };
        Self { foca, said: BTreeMap::new(), shell }
    }

    /// This node, in its present incarnation.
    #[must_use]
    pub fn own(&self) -> Member {
        *self.foca.identity()
    }

    /// The other nodes that are there.
    pub fn members(&self) -> impl Iterator<Item = Member> {
        self.foca.iter_members().map(|member| *member.id())
    }

    /// A link to `node` is up: announces this node to it, if it may be a member.
    ///
    /// # Errors
    /// [`MembershipError::Refused`].
    pub fn meet(&mut self, now: Duration, node: NodeId) -> Result<(), MembershipError> {
        self.shell.now = now;
        let incarnation = self.said.get(&node).copied().unwrap_or(0);
        self.foca.announce(Member { node, incarnation }, &mut self.shell).map_err(MembershipError::Refused)
    }

    /// Takes a packet in that came over the link to `from`.
    ///
    /// # Errors
    /// [`MembershipError`]; but for [`MembershipError::Refused`] nothing was changed.
    pub fn receive(&mut self, now: Duration, from: NodeId, packet: &[u8]) -> Result<(), MembershipError> {
        if packet.len() > MOST_PACKET {
            return Err(MembershipError::TooLong(packet.len()));
        }
        let packet = Packet::parse(packet).map_err(MembershipError::Malformed)?;
        let (own, source, to) = (self.own(), packet.header.src, packet.header.dst);
        if source.node != from {
            return Err(MembershipError::Forged { claimed: source.node, link: from });
        }
        if to.node != own.node {
            return Err(MembershipError::Misdirected(to.node));
        }
        if !self.shell.roster.may_be_member(from) {
            return Err(MembershipError::NotAMember(from));
        }
        self.shell.now = now;
        let said = self.said.entry(from).or_insert(source.incarnation);
        *said = source.incarnation.max(*said);
        let believed = packet.with_updates(|about| self.believes(own, about));
        self.foca.handle_data(&believed, &mut self.shell).map_err(MembershipError::Refused)?;
        let claimed = packet.about(own.node).map_or(0, |about| about.incarnation);
        self.step_over(claimed.max(to.incarnation))
    }

    /// Whether foca is to see an update.
    fn believes(&self, own: Member, about: Member) -> bool {
        if about.node == own.node {
            // It would tell the others that this node is down in any other incarnation.
            return about == own;
        }
        let said = self.said.get(&about.node).copied().unwrap_or(0);
        self.shell.roster.may_be_member(about.node) && about.incarnation <= reach(said)
    }

    /// A member that knows this node in a later incarnation than its own is wrong, and would not listen to this one.
    fn step_over(&mut self, claimed: u64) -> Result<(), MembershipError> {
        let own = self.own();
        if claimed <= own.incarnation || claimed > reach(own.incarnation) {
            return Ok(());
        }
        let Some(renewed) = own.after(claimed) else { return Ok(()) };
        self.foca.change_identity(renewed, &mut self.shell).map_err(MembershipError::Refused)?;
        self.shell.commands.push_back(Command::Renewed(renewed));
        Ok(())
    }

    /// Does what is due at `now`.
    ///
    /// # Errors
    /// [`MembershipError::Refused`]; what else was due is done by the next call.
    pub fn tick(&mut self, now: Duration) -> Result<(), MembershipError> {
        while let Some(entry) = self.shell.timers.first_entry().filter(|entry| entry.key().0 <= now) {
            // In the order in which they were due, also after a pause.
            self.shell.now = now;
            let timer = entry.remove();
            self.foca.handle_timer(timer, &mut self.shell).map_err(MembershipError::Refused)?;
        }
        Ok(())
    }

    /// Tells the others that this node leaves.
    ///
    /// # Errors
    /// [`MembershipError::Refused`].
    pub fn leave(&mut self, now: Duration) -> Result<(), MembershipError> {
        self.shell.now = now;
        self.foca.leave_cluster(&mut self.shell).map_err(MembershipError::Refused)
    }

    /// The next thing to do or to know. To be asked until there is none, after each of the other calls.
    pub fn poll(&mut self) -> Option<Command> {
        self.shell.commands.pop_front()
    }

    /// When [`Membership::tick`] is due next.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        self.shell.timers.first_key_value().map(|((at, _), _)| *at)
    }
}

/// The highest incarnation that others are believed to know of a node that has said that it is in `said`. No node believes more than the
/// one that it is about steps over, which is in that incarnation or a later one.
fn reach(said: u64) -> u64 {
    said.max(MOST_FIRST_INCARNATION).saturating_add(MOST_AHEAD)
}

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("own", &self.own()).finish_non_exhaustive()
    }
}
