//! Edits of texts, as pure functions: what a text becomes, or why it stays as it is.
//!
//! An edit is made whole or not at all, and it is exact: a place that is not found as it was written is a [`Nearest`] miss, which says
//! what is there instead, and never a guess. The tool `fs.edit` makes its edits with this crate, and so does the host before the call is
//! judged, so that a person is shown what will be written.
//!
//! What this crate never does: open a file, read a clock, or work without end. A [`Text`] is bounded, and every algorithm is linear in
//! it or has a bound of its own.
//!
//! Where to go:
//! - [`Replacements`] put one text in the place of another (`replacement.rs`).
//! - [`Patch`] is a unified patch (`parse.rs`), each [`Section`] of it for one file; `apply.rs` finds the places of its hunks.
//! - [`Diff`] is the difference of two texts (`diff.rs`, Myers' algorithm), as a patch or as rows for people (`rows.rs`).
//! - [`Nearest`] is the place that a miss comes nearest to (`nearest.rs`).

mod apply;
mod diff;
mod nearest;
mod parse;
mod patch;
mod replacement;
mod rows;
mod text;

pub use apply::{Hunkless, Unpatched};
pub use diff::Diff;
pub use nearest::{Differing, Nearest};
pub use parse::BadPatch;
pub use patch::{Hunk, Name, Patch, Section};
pub use replacement::{BadEdit, MOST_EDITS, Replacement, Replacements, Unedited};
pub use rows::{Look, Rows};
pub use text::{MOST_BYTES, MOST_LINES, Text, TooLarge};
