//! Verifies what a log has published, and proves what is in it: an auditor's tools.
//!
//! They need the public keys and a [`TileSource`]: a folder, a web server, a peer. They never need the writer of the log, its
//! journal, its vault or a key of it, and nothing here depends on those.
//!
//! # Rooms
//! - [`source`]: where a log is published. [`folder`]: how a folder is read. [`published`]: tiles and bundles out of a source,
//!   each held against what names it. [`contents`]: sealed contents beside them.
//! - [`mod@verify`]: all of a published log. [`history`]: the same, step by step, for a reader that goes on in a journal.
//!   [`prunings`]: whether each was allowed. [`strays`]: files that do not belong there.
//! - [`lineage`]: which keys vouch for which.
//! - [`prover`] makes proofs, [`offline`] checks them without a log.

pub mod contents;
pub mod folder;
pub mod history;
pub mod lineage;
pub mod offline;
pub mod prover;
pub mod prunings;
pub mod published;
pub mod source;
pub mod strays;
pub mod verify;

pub use history::{History, Sealed};
pub use lineage::Change;
pub use offline::{CheckError, Checked, CheckedEntry, check};
pub use prover::{ProveError, Prover};
pub use published::Published;
pub use source::{Folder, TileSource};
pub use verify::{Against, Verified, verify};
