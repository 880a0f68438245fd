//! Remembers: the ExoChain, its journal, its signatures and its payload vault.
//!
//! The ExoChain is one signed log, and both things at once: the record an auditor verifies, and the log from which a
//! killed node goes on. A [`Log`] gives every [`ephor_record::Record`] its place at once, writes what has gathered as one batch with one
//! `fdatasync`, under a checkpoint with an Ed25519 and an ML-DSA-65 signature, and acknowledges it only then. What the
//! public may see is the [`ephor_record::Entry`]; private [`ephor_record::Content`] is sealed in the [`vault`] and committed to by digests.
//!
//! # What it never does
//! - It never acknowledges what is not on the disk, and never goes on after an error in writing.
//! - It never changes or overwrites what only it has, also when it is damaged: a chain that is not whole is left exactly as
//!   it is until an operator [accepts](accept()) the loss, and is then moved aside whole. Only what follows from the journal
//!   is published again, and only what is published is taken out of the journal.
//! - It never counts a signature before a second implementation has checked it.
//! - It never touches a file, a clock or randomness that was not injected, and decides nothing: what may be done is the
//!   business of `governance`, and what is done that of `kernel`.
//!
//! # Where to go
//! - [`log`]: the handle; `queue` gives places, `writer` is the one thread that writes, `signer` signs beside it, `publisher`
//!   is the one that publishes.
//! - What is recorded, the rules of it and what it amounts to is the crate `ephor-record`.
//! - [`segment`], `frame`: the format of the journal. That of checkpoints, tiles and proofs is the crate `ephor-tlog`;
//!   `press` writes what is published in it. What is published is read, verified and proven by the crate `ephor-verify`.
//! - `docs/chain-format.md`: all of it, for another reader; what changes here changes there.
//! - `scan`: the one reader of the journal, which [`read()`], [`verify()`] and opening share; `marks`: what is torn and what
//!   is damage. [`verify()`] holds the journal against what is published, and that against the keys.
//! - [`backup()`] and [`restore()`]: a copy of a home, and a home from a copy.
//! - [`quota`]: how many bytes there may be. [`pruning`]: what may be taken away; [`minimum`] reads where the log begins then, `pruner`
//!   takes away.
//! - [`witness`]: one node vouches for another.
//! - [`figures`]: what the journal holds.
//! - [`state`]: projections, which can be deleted at any time.
//! - [`erasure`]: how a session is forgotten; [`rotation`]: how the signing keys change; [`protection`]: the passphrase.
//! - [`head`]: the pinned head, without which a log that was cut back looks whole.

pub mod accept;
pub mod backup;
mod clock;
mod copy;
mod cosigner;
pub mod disk;
mod durable;
pub mod erasure;
pub mod error;
pub mod figures;
mod frame;
pub mod head;
pub mod in_use;
pub mod intent;
mod journal;
pub mod keys;
pub mod log;
mod manifest;
mod marks;
pub mod minimum;
mod open;
pub mod order;
mod press;
pub mod protection;
mod pruner;
pub mod pruning;
mod publisher;
mod queue;
pub mod quota;
pub mod read;
pub mod recovered;
pub mod restore;
pub mod rotation;
mod scan;
pub mod segment;
mod signer;
pub mod state;
mod tail;
pub mod vault;
pub mod veil;
pub mod verify;
pub mod witness;
mod writer;

pub use accept::{AcceptError, Accepted, accept};
pub use backup::{BackedUp, BackupError, Step, backup};
pub use cosigner::CosignerKeys;
pub use erasure::{EraseError, Erased};
pub use error::{AppendError, Failure, OpenError};
pub use head::PinnedHead;
pub use in_use::InUse;
pub use intent::{Durable, Intent, IntentRecord};
pub use keys::{KeyError, SigningKeys};
pub use log::{Config, Log, MAX_CONTENT_BYTES, Usage};
pub use open::what_stands;
pub use order::Order;
pub use protection::Protection;
pub use pruning::{Plan, PruneError, Pruned, Wish};
pub use queue::{OUTCOME_RESERVE, OUTCOME_ROOM};
pub use quota::Space;
pub use read::{Entries, ReadError, Stored, read};
pub use recovered::Recovered;
pub use restore::{RestoreError, restore};
pub use rotation::{KeyFile, Signers};
pub use state::State;
pub use vault::{Private, Vault, VaultError, VaultKey};
pub use veil::Veil;
pub use verify::{Against, Progress, Report, verify};
pub use witness::{Answer, Response, Submission, SubmissionError, Witness, WitnessError};
