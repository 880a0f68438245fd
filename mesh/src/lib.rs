//! Links between nodes: who the peer is, how bytes travel, who is there, and what became of a message.
//!
//! Every part is a pure engine: bytes and times go in, bytes and events come out. There is no socket, no clock, no task and no
//! file here; randomness and the key encapsulation are injected. The node gives each link a process and moves its bytes. What is
//! needed of a chain (its name, both signatures, the list of peers) is asked through [`party::Party`]; this crate knows no chain.
//!
//! What this crate never does: it negotiates no algorithm, resumes no session, trusts no peer's clock, and keeps nothing whose size
//! a peer decides. `docs/mesh.md` describes the protocol so that it can be written a second time.
//!
//! From the wire upwards:
//! - [`handshake`]: two strangers become two chains, over Noise and ML-KEM-768.
//! - [`seal`]: messages under keys that only go forward.
//! - [`frame`] and [`stream`]: what a message holds, and how far each side may send.
//! - [`link`]: the engine of one connection, over those.
//! - [`party`], [`peers`], [`invite`]: who is let in, and what for.
//! - [`links`]: which link counts when there are two to one peer.
//! - [`membership`]: who is there, by SWIM.
//! - [`delivery`]: a message is accepted, refused or a dead letter, once.

mod mac;
mod wire;

pub mod delivery;
pub mod frame;
pub mod handshake;
pub mod invite;
pub mod link;
pub mod links;
pub mod membership;
pub mod party;
pub mod peers;
#[cfg(feature = "planted")]
pub mod planted;
pub mod seal;
pub mod stream;

pub use wire::WrongLayout;
