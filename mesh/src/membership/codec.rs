//! How membership travels: foca's packets in a layout of our own.
//!
//! A member is 40 bytes: the name of its chain and its incarnation. A packet is a header and, for most kinds, a count and as many
//! updates, as foca has it.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut};
use foca::{Codec, Header, Member as Update, Message, State};

use super::{MOST_INCARNATION, Member};
use crate::party::NodeId;
use ephor_base::Digest;

/// Bytes of a member.
const MEMBER: usize = 32 + 8;
/// Bytes of an update: the member, foca's own counter, and its state.
const UPDATE: usize = MEMBER + 2 + 1;

/// Bytes that are no packet, or a packet that does not fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a membership packet does not have its layout")]
pub struct BadPacket;

/// A packet taken apart as a whole, before any of it is believed.
pub(super) struct Packet<'a> {
    pub(super) header: Header<Member>,
    /// The bytes of the header.
    head: &'a [u8],
    /// Each update and its bytes, by the node that it is about.
    updates: BTreeMap<NodeId, (Member, &'a [u8])>,
}

impl<'a> Packet<'a> {
    /// Takes `bytes` apart. There is at most one update about a node, so one packet changes no node twice.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, BadPacket> {
        let mut rest = bytes;
        let header = Layout.decode_header(&mut rest)?;
        let head = bytes.get(..bytes.len().saturating_sub(rest.len())).unwrap_or_default();
        let mut updates = BTreeMap::new();
        if let Some((count, mut left)) = rest.split_first_chunk::<2>() {
            if !carries_updates(&header.message) {
                return Err(BadPacket);
            }
            for _ in 0..u16::from_be_bytes(*count) {
                let (update, after) = left.split_at_checked(UPDATE).ok_or(BadPacket)?;
                let about = *Layout.decode_member(update)?.id();
                if updates.insert(about.node, (about, update)).is_some() {
                    return Err(BadPacket);
                }
                left = after;
            }
            rest = left;
        }
        if rest.is_empty() { Ok(Self { header, head, updates }) } else { Err(BadPacket) }
    }

    /// The update about `node`.
    pub(super) fn about(&self, node: NodeId) -> Option<Member> {
        self.updates.get(&node).map(|(about, _)| *about)
    }

    /// The bytes of the packet with those updates alone that `believed` is true of.
    pub(super) fn with_updates(&self, believed: impl Fn(Member) -> bool) -> Vec<u8> {
        let kept: Vec<&[u8]> =
            self.updates.values().filter(|(about, _)| believed(*about)).map(|(_, bytes)| *bytes).collect();
        let count = u16::try_from(kept.len()).ok().filter(|count| *count > 0);
        let Some(count) = count else { return self.head.to_vec() };
        [self.head, &count.to_be_bytes(), &kept.concat()].concat()
    }
}

/// Whether updates may follow the header of such a packet.
const fn carries_updates(message: &Message<Member>) -> bool {
    !matches!(message, Message::Announce | Message::Broadcast | Message::TurnUndead)
}

/// The codec itself: it has no state.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Layout;

impl Codec<Member> for Layout {
    type Error = BadPacket;

    fn encode_header(&mut self, header: &Header<Member>, mut buf: impl BufMut) -> Result<(), BadPacket> {
        let (kind, about) = message(&header.message);
        let length = MEMBER * 2 + 2 + 1 + about.length();
        if buf.remaining_mut() < length {
            return Err(BadPacket);
        }
        put_member(&header.src, &mut buf);
        buf.put_u16(header.src_incarnation);
        put_member(&header.dst, &mut buf);
        buf.put_u8(kind);
        match about {
            About::Nothing => {}
            About::Probe(number) => buf.put_u8(number),
            About::Other(member, number) => {
                put_member(member, &mut buf);
                buf.put_u8(number);
            }
        }
        Ok(())
    }

    fn decode_header(&mut self, mut buf: impl Buf) -> Result<Header<Member>, BadPacket> {
        let src = get_member(&mut buf)?;
        let src_incarnation = buf.try_get_u16().map_err(|_| BadPacket)?;
        let dst = get_member(&mut buf)?;
        let kind = buf.try_get_u8().map_err(|_| BadPacket)?;
        Ok(Header { src, src_incarnation, dst, message: get_message(kind, &mut buf)? })
    }

    fn encode_member(&mut self, update: &Update<Member>, mut buf: impl BufMut) -> Result<(), BadPacket> {
        if buf.remaining_mut() < UPDATE {
            return Err(BadPacket);
        }
        put_member(update.id(), &mut buf);
        buf.put_u16(update.incarnation());
        buf.put_u8(match update.state() {
            State::Alive => 0,
            State::Suspect => 1,
            State::Down => 2,
        });
        Ok(())
    }

    fn decode_member(&mut self, mut buf: impl Buf) -> Result<Update<Member>, BadPacket> {
        let member = get_member(&mut buf)?;
        let incarnation = buf.try_get_u16().map_err(|_| BadPacket)?;
        let state = match buf.try_get_u8() {
            Ok(0) => State::Alive,
            Ok(1) => State::Suspect,
            Ok(2) => State::Down,
            _ => return Err(BadPacket),
        };
        Ok(Update::new(member, incarnation, state))
    }
}

/// What follows the kind of a message.
enum About<'a> {
    Nothing,
    Probe(u8),
    Other(&'a Member, u8),
}

impl About<'_> {
    const fn length(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Probe(_) => 1,
            Self::Other(..) => MEMBER + 1,
        }
    }
}

const fn message(message: &Message<Member>) -> (u8, About<'_>) {
    match message {
        Message::Ping(number) => (0, About::Probe(*number)),
        Message::Ack(number) => (1, About::Probe(*number)),
        Message::PingReq { target, probe_number } => (2, About::Other(target, *probe_number)),
        Message::IndirectPing { origin, probe_number } => (3, About::Other(origin, *probe_number)),
        Message::IndirectAck { target, probe_number } => (4, About::Other(target, *probe_number)),
        Message::ForwardedAck { origin, probe_number } => (5, About::Other(origin, *probe_number)),
        Message::Announce => (6, About::Nothing),
        Message::Feed => (7, About::Nothing),
        Message::Gossip => (8, About::Nothing),
        Message::Broadcast => (9, About::Nothing),
        Message::TurnUndead => (10, About::Nothing),
    }
}

fn get_message(kind: u8, buf: &mut impl Buf) -> Result<Message<Member>, BadPacket> {
    let number = |buf: &mut _| Buf::try_get_u8(buf).map_err(|_| BadPacket);
    Ok(match kind {
        0 => Message::Ping(number(buf)?),
        1 => Message::Ack(number(buf)?),
        2 => Message::PingReq { target: get_member(buf)?, probe_number: number(buf)? },
        3 => Message::IndirectPing { origin: get_member(buf)?, probe_number: number(buf)? },
        4 => Message::IndirectAck { target: get_member(buf)?, probe_number: number(buf)? },
        5 => Message::ForwardedAck { origin: get_member(buf)?, probe_number: number(buf)? },
        6 => Message::Announce,
        7 => Message::Feed,
        8 => Message::Gossip,
        9 => Message::Broadcast,
        10 => Message::TurnUndead,
        _ => return Err(BadPacket),
    })
}

fn put_member(member: &Member, buf: &mut impl BufMut) {
    buf.put_slice(&member.node.0.0);
    buf.put_u64(member.incarnation);
}

fn get_member(buf: &mut impl Buf) -> Result<Member, BadPacket> {
    let mut node = [0; 32];
    buf.try_copy_to_slice(&mut node).map_err(|_| BadPacket)?;
    let incarnation = buf.try_get_u64().ok().filter(|incarnation| *incarnation <= MOST_INCARNATION).ok_or(BadPacket)?;
    Ok(Member { node: NodeId(Digest(node)), incarnation })
}
