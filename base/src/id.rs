//! Names that never change meaning: processes, seats, sessions, calls, spans, operators.

use std::{borrow::Borrow, fmt, str::FromStr, sync::Arc};

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, Encode, Decode)]
        #[serde(transparent)]
        #[cbor(transparent)]
        pub struct $name(#[n(0)] pub u64);

        impl $name {
            /// The one after this one. Saturates: 2⁶⁴ is not reached by counting.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// One incarnation of a process on this node. Counts up from 1 over the life of a home and is never reused,
    /// also in a chain that follows one that was lost.
    Pid
}
number! {
    /// The place of an entry in the chain, from 0, without gaps.
    Seq
}
number! {
    /// One call through the door. A rerun after a crash keeps the id and raises the attempt.
    CallId
}
number! {
    /// A span of text within its session, from 0, in the order of entry.
    SpanId
}
number! {
    /// A message accepted into a session.
    MessageId
}
number! {
    /// A deferred action that waits for a ruling.
    TicketId
}

macro_rules! opaque {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
        #[cbor(transparent)]
        pub struct $name(#[cbor(n(0), with = "minicbor::bytes")] pub [u8; 16]);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self)
            }
        }

        impl FromStr for $name {
            type Err = BadId;
            fn from_str(text: &str) -> Result<Self, BadId> {
                let mut bytes = [0; 16];
                crate::digest::unhex(text, &mut bytes).ok_or(BadId)?;
                Ok(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

opaque! {
    /// A conversation. Random, so that the public log tells nothing of who talks; its name lives in the vault.
    SessionId
}
opaque! {
    /// An operator: the first 16 bytes of the SHA-256 of the operator's Ed25519 public key.
    OperatorId
}

/// An id that is not 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("an id is 32 hexadecimal digits")]
pub struct BadId;

/// A stable place in the supervision tree, as the path of names from the root, such as `node/agents/1f0c`.
///
/// A process that crashes is followed by another in the same seat. Rights, budget used and session belong to the seat,
/// so crashing launders nothing.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seat(Arc<str>);

impl Seat {
    /// A top-level seat.
    #[must_use]
    pub fn root(name: &str) -> Self {
        Self(name.into())
    }

    /// The seat `name` under this one.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        Self(format!("{}/{name}", self.0).into())
    }

    /// The whole path.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The last name of the path.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl Borrow<str> for Seat {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<C> Encode<C> for Seat {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut minicbor::Encoder<W>,
        _: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        e.str(&self.0)?.ok()
    }
}

impl<'b, C> Decode<'b, C> for Seat {
    fn decode(d: &mut minicbor::Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        Ok(Self(d.str()?.into()))
    }
}
