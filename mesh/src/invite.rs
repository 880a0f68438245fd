//! Invitations: twelve words that let one unknown peer in, once, for a while.
//!
//! The words hold 128 bits (BIP-39), so what a proof shows of them cannot be searched. Both sides prove that they know them, each
//! for its role and for this one handshake; a proof is worth nothing in another. An invitation counts for the first attempt that
//! names it, also for one whose proof is wrong: a guesser has one try. Until it expires it answers the node and keys that have used
//! it again, since that node may not have got the first answer.

use std::{collections::BTreeMap, fmt};

use bip39::{Language, Mnemonic};
use ephor_base::{Digest, Random, Secret, Timestamp};
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::{
    mac::hmac,
    party::{Claim, Distrust, HandshakeHash, KeyCommitment, NodeId, Role},
    peers::Policy,
};

/// Bytes of a proof.
pub const PROOF: usize = 32;
/// How many words an invitation has.
pub const WORDS: usize = 12;
/// The most invitations that have not expired, used ones included. Each is made by hand.
pub const MOST_OPEN: usize = 64;

/// Bytes of randomness in the words.
const ENTROPY: usize = 16;

/// Names an invitation without telling anything of its words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InviteId(pub [u8; 16]);

impl fmt::Display for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for InviteId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InviteId({self})")
    }
}

/// The proof of one side that it knows the words of one invitation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Introduction {
    /// Which invitation.
    pub invite: InviteId,
    /// HMAC-SHA256 over the role and the final handshake hash.
    pub proof: [u8; PROOF],
}

/// A text that is no invitation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadWords {
    /// There are more or fewer words than [`WORDS`].
    #[error("an invitation has {WORDS} words, this text has {0}")]
    Count(usize),
    /// A word is not on the list, or the words were mistyped.
    #[error("the words are not those of an invitation: one is mistyped, or they are in another order")]
    Mistyped,
}

/// The twelve words of an invitation, as the key they stand for.
pub struct Words {
    entropy: Secret<[u8; ENTROPY]>,
}

impl Words {
    /// New words.
    #[must_use]
    pub fn draw(random: &dyn Random) -> Self {
        let mut entropy = [0; ENTROPY];
        random.fill(&mut entropy);
        let words = Self { entropy: Secret::new(entropy) };
        entropy.zeroize();
        words
    }

    /// Reads words as they were typed: case and spaces do not matter.
    ///
    /// # Errors
    /// [`BadWords`] if they are not twelve, or their checksum is wrong.
    pub fn parse(text: &str) -> Result<Self, BadWords> {
        // A text that is far too long is not copied.
        let count = text.split_whitespace().take(WORDS.saturating_add(1)).count();
        if count != WORDS {
            return Err(BadWords::Count(count));
        }
        let text = Secret::new(text.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase());
        let mnemonic = Mnemonic::parse_in_normalized(Language::English, text.expose());
        let (mut bytes, length) = mnemonic.map_err(|_| BadWords::Mistyped)?.to_entropy_array();
        let entropy = bytes.first_chunk::<ENTROPY>().filter(|_| length == ENTROPY).copied();
        bytes.zeroize();
        entropy.map(|entropy| Self { entropy: Secret::new(entropy) }).ok_or(BadWords::Mistyped)
    }

    /// The words as a person reads them out: in lower case, with one space between.
    ///
    /// # Errors
    /// [`BadWords::Mistyped`] if the list refuses the entropy, which it does not for 16 bytes.
    pub fn text(&self) -> Result<Secret<String>, BadWords> {
        let mnemonic = Mnemonic::from_entropy_in(Language::English, self.entropy.expose());
        let words: Vec<&str> = mnemonic.map_err(|_| BadWords::Mistyped)?.words().collect();
        Ok(Secret::new(words.join(" ")))
    }

    /// The name under which the inviter finds them.
    #[must_use]
    pub fn id(&self) -> InviteId {
        let derived = hmac(self.key().expose(), b"ephor-mesh/1 invite id\x01");
        InviteId(derived.first_chunk().copied().unwrap_or_default())
    }

    /// The proof of the side in `role` for the handshake of `hash`.
    #[must_use]
    pub fn introduce(&self, role: Role, HandshakeHash(Digest(hash)): &HandshakeHash) -> Introduction {
        let key = Secret::new(hmac(self.key().expose(), b"ephor-mesh/1 invite proof\x01"));
        let proof = hmac(key.expose(), &[&[role.byte()], hash.as_slice()].concat());
        Introduction { invite: self.id(), proof }
    }

    /// Whether `given` is the proof of the side in `role`. Takes the same time for every wrong one.
    #[must_use]
    pub fn prove(&self, role: Role, hash: &HandshakeHash, given: &Introduction) -> bool {
        let right = self.introduce(role, hash);
        let same = right.proof.ct_eq(&given.proof) & right.invite.0.ct_eq(&given.invite.0);
        same.into()
    }

    /// HKDF-Extract (RFC 5869) of the entropy, without salt.
    fn key(&self) -> Secret<[u8; 32]> {
        Secret::new(hmac(&[0; 32], self.entropy.expose()))
    }
}

impl fmt::Debug for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Words({})", self.id())
    }
}

/// Why an invitation could not be opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InviteError {
    /// [`MOST_OPEN`] have not expired.
    #[error("{MOST_OPEN} invitations have not expired yet")]
    TooMany,
    /// It would end before it begins.
    #[error("the invitation would have expired already")]
    Expired,
}

/// What a redeemed invitation gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Redeemed {
    /// What is to become of the list of peers.
    pub grant: Grant,
    /// The inviter's own proof, for its credential.
    pub answer: Introduction,
}

/// What a redeemed invitation does to the list of peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grant {
    /// The new peer is put on the list, with its keys, and may do this.
    New(Policy),
    /// The same node redeemed the invitation before, with the same keys: the list stays as it is.
    Before,
}

#[derive(Debug)]
struct Invitation {
    words: Words,
    expires: Timestamp,
    policy: Policy,
    used: Use,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Use {
    Open,
    By(NodeId, KeyCommitment),
}

/// The invitations of a node that have not expired.
#[derive(Debug, Default)]
pub struct Invitations {
    known: BTreeMap<InviteId, Invitation>,
}

impl Invitations {
    /// Opens an invitation until `expires`, by the wall clock.
    ///
    /// # Errors
    /// [`InviteError`]; nothing was opened.
    pub fn open(
        &mut self,
        now: Timestamp,
        words: Words,
        expires: Timestamp,
        policy: Policy,
    ) -> Result<InviteId, InviteError> {
        self.expire(now);
        if expires <= now {
            return Err(InviteError::Expired);
        }
        if self.known.len() >= MOST_OPEN {
            return Err(InviteError::TooMany);
        }
        let id = words.id();
        self.known.insert(id, Invitation { words, expires, policy, used: Use::Open });
        Ok(id)
    }

    /// Withdraws an invitation; whether there was one.
    pub fn withdraw(&mut self, id: InviteId) -> bool {
        self.known.remove(&id).is_some()
    }

    /// Forgets those that have expired at `now`.
    pub fn expire(&mut self, now: Timestamp) {
        self.known.retain(|_, invitation| now < invitation.expires);
    }

    /// Uses up the open invitation that an initiator's claim names, whether or not its proof is right. One that this node and these keys
    /// have used is answered again.
    ///
    /// # Errors
    /// [`Distrust::BadInvitation`] if the claim names none, or an invitation that is unknown, used by another, expired or not proven.
    pub fn redeem(&mut self, now: Timestamp, claim: &Claim, hash: &HandshakeHash) -> Result<Redeemed, Distrust> {
        self.expire(now);
        let given = claim.introduction.as_ref().ok_or(Distrust::BadInvitation)?;
        let invitation = self.known.get_mut(&given.invite).ok_or(Distrust::BadInvitation)?;
        let by = Use::By(claim.node, claim.keys.commitment());
        let proven = invitation.words.prove(Role::Initiator, hash, given);
        let grant = match invitation.used {
            Use::Open if proven => Grant::New(invitation.policy),
            used if used == by && proven => Grant::Before,
            Use::Open => {
                self.known.remove(&given.invite);
                return Err(Distrust::BadInvitation);
            }
            Use::By(..) => return Err(Distrust::BadInvitation),
        };
        invitation.used = by;
        Ok(Redeemed { grant, answer: invitation.words.introduce(Role::Responder, hash) })
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.values().filter(|invitation| invitation.used == Use::Open).count()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
