//! Membership: which nodes are there, by SWIM (A. Das and others, 2002), as foca has it.
//!
//! Packets travel over authenticated links, so who sent one is known and not claimed. An identity is the name of a chain and an
//! incarnation; a node that was given up takes the next incarnation by itself and is back, and nodes that were given up are asked
//! again now and then, so that partitions heal. What a packet says about nodes that are not on the list of peers is left out before
//! foca sees it, so a member that lies can neither fill the memory nor bring strangers in.
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
use foca::{Codec, Config, Foca, Identity, NoCustomBroadcast, Notification, PeriodicParams, Runtime, Timer};

pub use self::codec::BadPacket;
use self::codec::{Layout, UPDATE};
use crate::party::NodeId;

/// The longest packet, in bytes: some 380 updates. Links carry far longer ones; what a newcomer is told at once is what it need not
/// be told later.
pub const MOST_PACKET: usize = 16_384;
/// An incarnation counts the starts of a node, and the times it was given up wrongly: no honest one begins beyond this.
pub const MOST_FIRST_INCARNATION: u64 = 1 << 32;

/// How far ahead of what is known a member may say that another one is. A liar gains little, and the one it speaks of steps over it.
const MOST_AHEAD: u64 = 1 << 16;
/// How often this node asks members for all that they know, and nodes that were given up whether they are back; and how many of each.
const ASK: Duration = Duration::from_secs(10);
const ASK_MEMBERS: usize = 1;
const ASK_DOWN: usize = 2;

/// A node in one of its incarnations.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Member {
    /// The name of its chain.
    pub node: NodeId,
    /// Higher than in any life before.
    pub incarnation: u64,
}

impl Identity for Member {
    type Addr = NodeId;

    fn renew(&self) -> Option<Self> {
        #[cfg(feature = "planted")]
        if crate::planted::renews_stale() {
            return self.incarnation.checked_sub(1).map(|incarnation| Self { incarnation, ..*self });
        }
        self.incarnation.checked_add(1).map(|incarnation| Self { incarnation, ..*self })
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

/// Whether updates about a node are believed: those on the list of peers.
pub trait Roster: Send {
    /// Whether `node` may be a member.
    fn may_be_member(&self, node: NodeId) -> bool;
}

/// The members as this node sees them.
pub struct Membership {
    foca: Foca<Member, Layout, Injected, NoCustomBroadcast>,
    roster: Box<dyn Roster>,
    /// The highest incarnation of each node that was believed.
    seen: BTreeMap<NodeId, u64>,
    shell: Shell,
}

/// What foca wants done, kept until it is asked for.
#[derive(Default)]
struct Shell {
    now: Duration,
    timers: BTreeMap<(Duration, u64), Timer<Member>>,
    scheduled: u64,
    commands: VecDeque<Command>,
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
        self.commands.push_back(Command::Send { to, packet: data.to_vec() });
    }

    fn submit_after(&mut self, event: Timer<Member>, after: Duration) {
        self.scheduled = self.scheduled.wrapping_add(1);
        self.timers.insert((self.now.saturating_add(after), self.scheduled), event);
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
        Self { foca, roster, seen: BTreeMap::new(), shell: Shell::default() }
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

    /// A link to `node` is up: announces this node to it.
    ///
    /// # Errors
    /// [`MembershipError::Refused`].
    pub fn meet(&mut self, now: Duration, node: NodeId) -> Result<(), MembershipError> {
        self.shell.now = now;
        let incarnation = self.seen.get(&node).copied().unwrap_or(0);
        self.foca.announce(Member { node, incarnation }, &mut self.shell).map_err(MembershipError::Refused)
    }

    /// Takes a packet in that came over the link to `from`.
    ///
    /// # Errors
    /// [`MembershipError`]; nothing was changed by a packet that is malformed or forged.
    pub fn receive(&mut self, now: Duration, from: NodeId, packet: &[u8]) -> Result<(), MembershipError> {
        self.shell.now = now;
        if packet.len() > MOST_PACKET {
            return Err(MembershipError::TooLong(packet.len()));
        }
        let mut rest = packet;
        let header = Layout.decode_header(&mut rest).map_err(MembershipError::Malformed)?;
        if header.src.node != from {
            return Err(MembershipError::Forged { claimed: header.src.node, link: from });
        }
        self.see(header.src);
        let head = packet.get(..packet.len().saturating_sub(rest.len())).unwrap_or_default();
        let believed = self.filter(head, rest)?;
        self.foca.handle_data(&believed, &mut self.shell).map_err(MembershipError::Refused)
    }

    fn see(&mut self, member: Member) {
        let highest = self.seen.entry(member.node).or_insert(member.incarnation);
        *highest = (*highest).max(member.incarnation);
    }

    /// The packet without updates about strangers, and about incarnations that no node can have reached.
    fn filter(&mut self, head: &[u8], rest: &[u8]) -> Result<Vec<u8>, MembershipError> {
        let malformed = MembershipError::Malformed(BadPacket);
        let Some((count, mut updates)) = rest.split_first_chunk::<2>() else {
            return if rest.is_empty() { Ok(head.to_vec()) } else { Err(malformed) };
        };
        let (claimed, mut kept, mut believed) = (u16::from_be_bytes(*count), 0_u16, Vec::new());
        for _ in 0..claimed {
            let (update, after) = updates.split_at_checked(UPDATE).ok_or(MembershipError::Malformed(BadPacket))?;
            updates = after;
            let member = *Layout.decode_member(update).map_err(MembershipError::Malformed)?.id();
            if self.believes(member)? {
                believed.extend_from_slice(update);
                kept = kept.saturating_add(1);
            }
        }
        if !updates.is_empty() {
            return Err(malformed);
        }
        Ok([head, &kept.to_be_bytes(), &believed].concat())
    }

    fn believes(&mut self, member: Member) -> Result<bool, MembershipError> {
        let own = self.own();
        if member.node == own.node {
            self.step_over(own, member)?;
            return Ok(true);
        }
        let known = self.seen.get(&member.node).copied().unwrap_or(0).max(MOST_FIRST_INCARNATION);
        let believed = self.roster.may_be_member(member.node) && member.incarnation <= known.saturating_add(MOST_AHEAD);
        if believed {
            self.see(member);
        }
        Ok(believed)
    }

    /// A member that knows this node in a later incarnation than its own is wrong, and would not listen to this one.
    fn step_over(&mut self, own: Member, claimed: Member) -> Result<(), MembershipError> {
        let next = claimed.incarnation.checked_add(1).filter(|_| claimed.incarnation > own.incarnation);
        let reachable = own.incarnation.max(MOST_FIRST_INCARNATION).saturating_add(MOST_AHEAD);
        let Some(incarnation) = next.filter(|next| *next <= reachable.saturating_add(1)) else { return Ok(()) };
        let renewed = Member { incarnation, ..own };
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

impl std::fmt::Debug for Membership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Membership").field("own", &self.own()).finish_non_exhaustive()
    }
}
