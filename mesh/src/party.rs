//! What the handshake asks of the node: its name, both of its chain's keys, and its decision on each peer.

use std::fmt;

use ephor_base::Digest;

use crate::invite::Introduction;

/// Bytes of an Ed25519 public key (RFC 8032).
pub const ED25519_KEY: usize = 32;
/// Bytes of an Ed25519 signature.
pub const ED25519_SIGNATURE: usize = 64;
/// Bytes of an ML-DSA-65 public key (FIPS 204).
pub const ML_DSA_65_KEY: usize = 1952;
/// Bytes of an ML-DSA-65 signature.
pub const ML_DSA_65_SIGNATURE: usize = 3309;

/// What a statement begins with. It is the name of the protocol and of its version.
pub(crate) const CONTEXT: &[u8] = b"ephor-mesh/1";

/// A node, by the name of its chain. The name never changes; the keys behind it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub Digest);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which end of a link a node is: the one that dialled is the initiator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// It opened the connection and sends the first message.
    Initiator,
    /// It accepted the connection.
    Responder,
}

impl Role {
    /// The other end.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Initiator => Self::Responder,
            Self::Responder => Self::Initiator,
        }
    }

    /// The byte that stands for it in what is signed and proven.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Initiator => 1,
            Self::Responder => 2,
        }
    }
}

/// The final handshake hash: it stands for every byte of one handshake, and no other has the same.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct HandshakeHash(pub Digest);

/// What one end of one link signs: `ephor-mesh/1`, the byte of its role, the handshake hash. 45 bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Statement(Vec<u8>);

impl Statement {
    /// What the end of `role` signs.
    #[must_use]
    pub fn of(role: Role, HandshakeHash(Digest(hash)): &HandshakeHash) -> Self {
        Self([CONTEXT, &[role.byte()], hash].concat())
    }

    /// The bytes under both signatures.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The public keys that sign a chain now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainKeys {
    /// Ed25519, RFC 8032.
    pub ed25519: [u8; ED25519_KEY],
    /// ML-DSA-65, FIPS 204.
    pub ml_dsa_65: Box<[u8; ML_DSA_65_KEY]>,
}

impl ChainKeys {
    /// What stands for the keys on a list: SHA-256 over `ephor-mesh/1 keys` and both keys.
    #[must_use]
    pub fn commitment(&self) -> KeyCommitment {
        KeyCommitment(Digest::of_parts(&[CONTEXT, b" keys", &self.ed25519, self.ml_dsa_65.as_slice()]))
    }
}

/// Stands for one pair of keys of a chain: no other pair has the same.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyCommitment(pub Digest);

impl fmt::Display for KeyCommitment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Both signatures over one statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signatures {
    /// Ed25519 over the statement.
    pub ed25519: [u8; ED25519_SIGNATURE],
    /// ML-DSA-65 over the statement, pure mode, empty context string.
    pub ml_dsa_65: Box<[u8; ML_DSA_65_SIGNATURE]>,
}

/// Who a peer says that it is, with its proof.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The chain's name.
    pub node: NodeId,
    /// The keys that it says sign that chain.
    pub keys: ChainKeys,
    /// Both signatures over the [`Statement`] of the peer's role.
    pub signatures: Signatures,
    /// The proof of an invitation, where it was not known before.
    pub introduction: Option<Introduction>,
}

/// Why a claim was not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Distrust {
    /// A signature is not one of these keys over this statement.
    #[error("a signature does not verify")]
    BadSignature,
    /// No peer of that name is allowed, and no invitation vouches for it.
    #[error("the chain is not on the list of peers")]
    UnknownChain,
    /// The keys do not sign the chain of that name.
    #[error("the keys are not those of the chain")]
    WrongKeys,
    /// An operator has revoked the peer.
    #[error("the peer was revoked")]
    Revoked,
    /// The initiator dialled another chain than the one that answered.
    #[error("another chain answered than the one that was dialled")]
    OtherChain,
    /// Both nodes dial each other, and this node's own dial stands.
    #[error("both nodes dial each other, and the other dial stands")]
    Crossed,
    /// The invitation is unknown, used, expired, or its proof is wrong.
    #[error("the invitation does not count")]
    BadInvitation,
}

/// A chain could not sign.
#[derive(Debug, thiserror::Error)]
#[error("the chain's keys could not sign")]
pub struct CannotSign(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// The node as the handshake sees it.
///
/// The order is fixed: signatures are verified before [`Party::admit`] is asked, and a responder signs nothing before it has
/// admitted the initiator, so that a stranger does not learn whose door it knocked at.
pub trait Party {
    /// The name of this node's chain.
    fn node(&self) -> NodeId;

    /// The keys that sign this node's chain.
    fn keys(&self) -> ChainKeys;

    /// Both signatures over `statement`.
    ///
    /// # Errors
    /// [`CannotSign`] if a key cannot be used; the handshake ends.
    fn sign(&self, statement: &Statement) -> Result<Signatures, CannotSign>;

    /// Whether both signatures of `claim` are those of its keys over `statement`.
    fn verify(&self, claim: &Claim, statement: &Statement) -> bool;

    /// Decides, in `role`, on a claim of the other side whose signatures have been verified. An initiator lets in the node that it dialled
    /// or that invited it, and redeems nothing. A responder lets in the nodes on its list, and those with an invitation; one that the
    /// claim proves is used up by this, and so is one that it fails to prove.
    ///
    /// # Errors
    /// [`Distrust`] says why the peer is not let in.
    fn admit(&mut self, role: Role, claim: &Claim, hash: &HandshakeHash) -> Result<(), Distrust>;

    /// The proof of an invitation that goes with this node's own credential, if there is one to give.
    fn introduce(&mut self, role: Role, hash: &HandshakeHash) -> Option<Introduction>;
}
