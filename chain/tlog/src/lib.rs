//! Speaks: the formats of a transparency log, as C2SP and RFC 6962 have them.
//!
//! Everything here is a function of bytes and numbers. Nothing is read or written, and nothing is signed: who has an
//! implementation of signatures plugs it in as [`Checks`]. So the same code runs in a node, in an auditor's tool and in a page.
//!
//! # Rooms
//! - [`signature`]: public keys by algorithm, and the trait that checks their signatures.
//! - [`note`]: signed notes (C2SP signed-note).
//! - [`checkpoint`]: how large a log is and what its root is (C2SP tlog-checkpoint); the keys of a log, logs that a reader
//!   knows, and cosignatures (C2SP tlog-cosignature).
//! - [`tree`]: the Merkle tree of RFC 6962.
//! - [`tile`]: which hash lies in which file (C2SP tlog-tiles), bundles of entries, and the right edge of a growing log.
//! - [`proof`]: that an entry is in a log and that one log continues another (RFC 6962, RFC 9162); the same as files
//!   (C2SP tlog-proof), and the proof that a log has two histories.

pub mod checkpoint;
pub mod note;
pub mod proof;
pub mod signature;
pub mod tile;
pub mod tree;

pub use checkpoint::{
    Checkpoint, Head,
    cosignature::{Cosignature, CosignatureFault, CosignerKey},
    keys::{SignatureFault, VerifierKeys},
    known::{KnownLog, LogKey, NoteFault},
};
pub use note::{Note, SignatureLine};
pub use proof::{file::EntryProof, fork::ForkProof};
pub use signature::{Algorithm, Checks, PublicKey};
pub use tile::{Tile, edge::Edge};
pub use tree::Tree;
