//! Who may operate a node: credentials with their roles, and the decrees by which owners change these and the law.
//!
//! The first credential is an owner's and vouches for itself. Every later change is signed by an owner in office. A decree is
//! bound to the log and to the decree before it, so that none counts twice or elsewhere. The record alone says who may do
//! what; a snapshot repeats it, and those who were dismissed, whose keys never count again.

use std::collections::BTreeMap;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use ephor_base::{Digest, OperatorId, Seq, cbor};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{
    entry::Entry,
    fact::{Fact, Terms},
};

/// Signed before the decree, so that the signature can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor decree v1\n";
/// The longest name of an operator, in bytes.
const LONGEST_NAME: usize = 64;

/// What an operator may do. Each may also do what those before it may.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Looks.
    #[n(0)]
    Viewer,
    /// Runs agents, and suspends, stops and budgets them.
    #[n(1)]
    Operator,
    /// Answers deferred actions.
    #[n(2)]
    Approver,
    /// Enrols others, changes the law, and erases and prunes the record.
    #[n(3)]
    Owner,
}

impl Role {
    /// Every role, the least first.
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Operator, Self::Approver, Self::Owner];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Approver => "approver",
            Self::Owner => "owner",
        }
    }
}

/// The credential of an operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Credential {
    /// Ed25519 public key.
    #[cbor(n(0), with = "minicbor::bytes")]
    #[serde(serialize_with = "crate::fact::hex")]
    pub key: [u8; 32],
    /// The operator's name.
    #[n(1)]
    pub name: String,
    /// The entry that changed it last.
    #[n(2)]
    pub since: Seq,
    /// What the operator may do; nothing for one who was dismissed, for good.
    #[n(3)]
    pub role: Option<Role>,
}

/// The constitution that an owner put in force.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Enactment {
    /// The entry that did.
    #[n(0)]
    pub since: Seq,
    /// SHA-256 of its text.
    #[n(1)]
    pub constitution: Digest,
}

/// What an owner decrees.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub enum Decree {
    /// A new credential counts.
    #[n(0)]
    Enrol {
        /// Ed25519 public key.
        #[cbor(n(0), with = "minicbor::bytes")]
        key: [u8; 32],
        /// The operator's name: 1 to 64 of a–z, 0–9, `.`, `_` and `-`; no other operator in office has it.
        #[n(1)]
        name: String,
        /// What the operator may do.
        #[n(2)]
        role: Role,
    },
    /// An operator gets another role.
    #[n(1)]
    Rank {
        /// Who.
        #[n(0)]
        operator: OperatorId,
        /// What the operator may do from here on.
        #[n(1)]
        role: Role,
    },
    /// An operator's credential counts no longer.
    #[n(2)]
    Dismiss {
        /// Who.
        #[n(0)]
        operator: OperatorId,
    },
    /// A constitution decides from here on.
    #[n(3)]
    Enact {
        /// The digest that verdicts will name.
        #[n(0)]
        policy: Digest,
        /// What that is made of.
        #[n(1)]
        terms: Terms,
        /// `dev`, `staging` or `production`.
        #[n(2)]
        environment: String,
    },
}

impl Decree {
    /// Signs it for the log of this origin, behind the decree at `after`.
    #[must_use]
    pub fn sign(self, origin: &str, after: Seq, key: &SigningKey) -> Fact {
        let signature = key.sign(&self.signed_bytes(origin, after)).to_bytes().to_vec();
        self.signed(signature)
    }

    /// The same, with a signature that was made elsewhere.
    #[must_use]
    pub fn signed(self, signature: Vec<u8>) -> Fact {
        match self {
            Self::Enrol { key, name, role } => Fact::Enrolled { key, name, role, signature },
            Self::Rank { operator, role } => Fact::Ranked { operator, role, signature },
            Self::Dismiss { operator } => Fact::Dismissed { operator, signature },
            Self::Enact { policy, terms, environment } => Fact::Enacted { policy, terms, environment, signature },
        }
    }

    /// What is signed.
    #[must_use]
    pub fn signed_bytes(&self, origin: &str, after: Seq) -> Vec<u8> {
        [DOMAIN, &cbor::to_vec(&Bound { origin, after, decree: self })].concat()
    }

    /// The decree that a fact records, and its signature.
    fn of(fact: &Fact) -> Option<(Self, &[u8])> {
        Some(match fact {
            Fact::Enrolled { key, name, role, signature } => {
                (Self::Enrol { key: *key, name: name.clone(), role: *role }, signature)
            }
            Fact::Ranked { operator, role, signature } => (Self::Rank { operator: *operator, role: *role }, signature),
            Fact::Dismissed { operator, signature } => (Self::Dismiss { operator: *operator }, signature),
            Fact::Enacted { policy, terms, environment, signature } => {
                let (terms, environment) = (terms.clone(), environment.clone());
                (Self::Enact { policy: *policy, terms, environment }, signature)
            }
            _ => return None,
        })
    }
}

#[derive(Encode)]
struct Bound<'a> {
    #[n(0)]
    origin: &'a str,
    #[n(1)]
    after: Seq,
    #[n(2)]
    decree: &'a Decree,
}

/// The id of the operator who holds `key`.
#[must_use]
pub fn operator_id(key: &[u8; 32]) -> OperatorId {
    let Digest(digest) = Digest::of(key);
    let mut id = [0; 16];
    id.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
    OperatorId(id)
}

/// Whether a text can name an operator.
#[must_use]
pub fn is_name(text: &str) -> bool {
    let fits = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-');
    (1..=LONGEST_NAME).contains(&text.len()) && text.bytes().all(fits)
}

/// Who may operate the node, and under which constitution, as far as owners have decreed it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Operators {
    credentials: BTreeMap<OperatorId, Credential>,
    law: Option<Enactment>,
}

impl Operators {
    /// Those in office, by id.
    pub fn iter(&self) -> impl Iterator<Item = (OperatorId, &Credential)> {
        let all = self.credentials.iter().map(|(id, credential)| (*id, credential));
        all.filter(|(_, credential)| credential.role.is_some())
    }

    /// Whether no operator was ever enrolled.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.credentials.is_empty()
    }

    /// What `operator` may do; nothing if they are not in office.
    #[must_use]
    pub fn role(&self, operator: OperatorId) -> Option<Role> {
        self.credentials.get(&operator)?.role
    }

    /// Whether `operator` was in office and is no more.
    #[must_use]
    pub fn is_dismissed(&self, operator: OperatorId) -> bool {
        self.credentials.get(&operator).is_some_and(|credential| credential.role.is_none())
    }

    /// The constitution that an owner put in force, if one ever did.
    #[must_use]
    pub const fn law(&self) -> Option<Enactment> {
        self.law
    }

    /// Where the latest decree stands; 0 before the first. The next one is bound to it.
    #[must_use]
    pub fn latest(&self) -> Seq {
        let changed = self.credentials.values().map(|credential| credential.since);
        changed.chain(self.law.map(|law| law.since)).max().unwrap_or(Seq(0))
    }

    /// Whether `signature` is that of `operator`, who is in office, over `message`.
    #[must_use]
    pub fn verify(&self, operator: OperatorId, message: &[u8], signature: &[u8]) -> bool {
        let credential = self.credentials.get(&operator).filter(|credential| credential.role.is_some());
        credential.is_some_and(|credential| is_signed(&credential.key, message, signature))
    }

    /// Takes a decree in, or says which rule it breaks; then nothing changed.
    pub(crate) fn admit(&mut self, entry: &Entry, origin: &str) -> Result<(), &'static str> {
        let Some((decree, signature)) = Decree::of(&entry.fact) else { return Ok(()) };
        let Some(owner) = entry.subject.operator else { return Err("it is a decree of nobody") };
        let message = decree.signed_bytes(origin, self.latest());
        let founds = self.is_empty();
        let holds = match &decree {
            // The first vouches for itself.
            Decree::Enrol { key, role: Role::Owner, .. } if founds => {
                operator_id(key) == owner && is_signed(key, &message, signature)
            }
            _ => self.role(owner) == Some(Role::Owner) && self.verify(owner, &message, signature),
        };
        if !holds {
            return Err("it is a decree that no owner in office has signed for this place");
        }
        self.apply(decree, entry.seq)
    }

    fn apply(&mut self, decree: Decree, since: Seq) -> Result<(), &'static str> {
        match decree {
            Decree::Enrol { key, name, role } => self.enrol(Credential { key, name, since, role: Some(role) }),
            Decree::Rank { operator, role } => self.change(operator, Some(role), since),
            Decree::Dismiss { operator } => self.change(operator, None, since),
            Decree::Enact { terms, .. } => {
                self.law = Some(Enactment { since, constitution: terms.constitution });
                Ok(())
            }
        }
    }

    /// Takes over who was in office in the log before, who was dismissed there, and the law; all as of the entry `since`.
    pub(crate) fn inherit(
        &mut self,
        credentials: &[Credential],
        law: Option<Enactment>,
        since: Seq,
    ) -> Result<(), &'static str> {
        if law.is_some() && self.law.is_some() {
            return Err("it takes over a second law");
        }
        for one in credentials {
            let (id, role) = (operator_id(&one.key), one.role);
            self.enrol(Credential { since, role: None, ..one.clone() })?;
            let is_taken = self.iter().any(|(_, other)| other.name == one.name);
            match self.credentials.get_mut(&id) {
                Some(_) if role.is_some() && is_taken => return Err("it takes over a name that is taken"),
                Some(credential) => credential.role = role,
                None => {}
            }
        }
        self.law = law.map(|law| Enactment { since, ..law }).or(self.law);
        Ok(())
    }

    fn enrol(&mut self, credential: Credential) -> Result<(), &'static str> {
        if !VerifyingKey::from_bytes(&credential.key).is_ok_and(|key| !key.is_weak()) {
            return Err("it enrols a key that is none");
        }
        let is_taken = |name: &str| credential.role.is_some() && self.iter().any(|(_, other)| other.name == name);
        if !is_name(&credential.name) || is_taken(&credential.name) {
            return Err("it enrols under a name that is taken or none");
        }
        let id = operator_id(&credential.key);
        if self.credentials.contains_key(&id) {
            return Err("it enrols a key that was enrolled before");
        }
        self.credentials.insert(id, credential);
        Ok(())
    }

    fn change(&mut self, operator: OperatorId, role: Option<Role>, since: Seq) -> Result<(), &'static str> {
        let Some(before) = self.role(operator) else { return Err("it is of an operator who is not in office") };
        let is_owner = |(_, credential): &(OperatorId, &Credential)| credential.role == Some(Role::Owner);
        let is_last = before == Role::Owner && self.iter().filter(is_owner).count() == 1;
        if is_last && role != Some(Role::Owner) {
            return Err("it takes the last owner away");
        }
        if let Some(credential) = self.credentials.get_mut(&operator) {
            (credential.role, credential.since) = (role, since);
        }
        Ok(())
    }

    /// Everybody who was ever enrolled, by id.
    pub(crate) fn credentials(&self) -> impl Iterator<Item = &Credential> {
        self.credentials.values()
    }

    /// Takes a part of a snapshot in.
    pub(crate) fn load(&mut self, credentials: &[Credential], law: Option<Enactment>) {
        self.credentials.extend(credentials.iter().map(|one| (operator_id(&one.key), one.clone())));
        self.law = self.law.or(law);
    }
}

fn is_signed(key: &[u8; 32], message: &[u8], signature: &[u8]) -> bool {
    let (Ok(key), Ok(signature)) = (VerifyingKey::from_bytes(key), Signature::from_slice(signature)) else {
        return false;
    };
    key.verify_strict(message, &signature).is_ok()
}
