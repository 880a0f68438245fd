//! Merkle proofs (RFC 6962, section 2.1): that an entry is in a log, and that a larger log continues a smaller one.
//!
//! A proof is a list of hashes. That of inclusion begins with the neighbour of the leaf and ends with a child of the root;
//! that of consistency begins with the hash nearest the old end. Both are in the order of RFC 6962 and RFC 9162.
//!
//! Making and checking share no algorithm. [`inclusion`] and [`consistency`] walk down the tree as RFC 6962, sections 2.1.1
//! and 2.1.2, defines proofs; [`check_inclusion`] and [`check_consistency`] walk up by the bits of the positions, as
//! RFC 9162, sections 2.1.3.2 and 2.1.4.2, say. A fault in one shows in the other.
//!
//! Sizes and positions are any `u64`. Nothing here allocates more than the proof.

pub mod file;
pub mod fork;
mod tiles;

use ephor_base::Digest;

use crate::{checkpoint::Head, tree::join};
pub use tiles::{BadTile, ReadTile, TileError, TileSubtrees};

/// The most hashes a proof of inclusion or of consistency has, for any size.
pub const MAX_PROOF_HASHES: usize = 65;

/// Where the hashes for a proof come from.
pub trait Subtrees {
    /// Why a hash cannot be had.
    type Error: std::error::Error;

    /// The root over the leaves `index · 2^level` up to, but without, `(index + 1) · 2^level`. `level` is 0 to 63; level 0
    /// has the hashes of leaves. Only subtrees that the log has whole are asked for.
    ///
    /// # Errors
    /// What the source says.
    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, Self::Error>;
}

/// A proof could not be made.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MakeError<E: std::error::Error> {
    /// The caller's mistake.
    #[error("a log of `{size}` entries has no entry `{index}`")]
    NoSuchEntry {
        /// The entry asked for.
        index: u64,
        /// The size of the log.
        size: u64,
    },
    /// The caller's mistake.
    #[error("a log of `{new}` entries cannot continue one of `{old}`")]
    NotGrown {
        /// The size of the older log.
        old: u64,
        /// The size of the newer log.
        new: u64,
    },
    /// The source of the hashes failed. Its fault.
    #[error(transparent)]
    Source(E),
}

/// A proof does not prove what it should. Its maker is at fault. The checks are made in the order of the variants.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProofError {
    /// The entry would lie beyond the end of the log.
    #[error("a log of `{size}` entries has no entry `{index}`")]
    NoSuchEntry {
        /// The entry.
        index: u64,
        /// The size of the log.
        size: u64,
    },
    /// The newer log is smaller than the older one.
    #[error("a log of `{new}` entries cannot continue one of `{old}`")]
    NotGrown {
        /// The size of the older log.
        old: u64,
        /// The size of the newer log.
        new: u64,
    },
    /// A log without entries has one root only: the hash of nothing.
    #[error("the root of a log without entries is wrong")]
    EmptyRoot,
    /// For these positions a proof has another number of hashes.
    #[error("the proof has too many or too few hashes")]
    Length,
    /// The hashes do not lead to the root of the (newer) log.
    #[error("the proof does not lead to the root of the log")]
    Root,
    /// The hashes lead to the root of the newer log, and to another root for the older one: their histories differ.
    #[error("the proof does not lead to the older root: the two logs differ")]
    OldRoot,
}

/// The proof that entry `index` is in a log of `size` entries.
///
/// # Errors
/// [`MakeError`] if there is no such entry or the source fails.
pub fn inclusion<S: Subtrees>(source: &mut S, index: u64, size: u64) -> Result<Vec<Digest>, MakeError<S::Error>> {
    if index >= size {
        return Err(MakeError::NoSuchEntry { index, size });
    }
    let (mut start, mut end, mut path) = (0, size, Vec::new());
    while end - start > 1 {
        let middle = middle(start, end);
        if index < middle {
            path.push(range(source, middle, end)?);
            end = middle;
        } else {
            path.push(range(source, start, middle)?);
            start = middle;
        }
    }
    path.reverse();
    Ok(path)
}

/// The proof that the log of `new` entries continues the log of `old` entries; empty if either is the whole of it: if they
/// have the same size, or the older one has no entries.
///
/// # Errors
/// [`MakeError`] if the older log is the larger one or the source fails.
pub fn consistency<S: Subtrees>(source: &mut S, old: u64, new: u64) -> Result<Vec<Digest>, MakeError<S::Error>> {
    if old > new {
        return Err(MakeError::NotGrown { old, new });
    }
    if old == 0 {
        return Ok(Vec::new());
    }
    let (mut start, mut end, mut path) = (0, new, Vec::new());
    while end != old {
        let middle = middle(start, end);
        if old <= middle {
            path.push(range(source, middle, end)?);
            end = middle;
        } else {
            path.push(range(source, start, middle)?);
            start = middle;
        }
    }
    // The verifier knows the old root; it is left out where it stands in the new tree as it is.
    if start > 0 {
        path.push(range(source, start, end)?);
    }
    path.reverse();
    Ok(path)
}

/// The root over the first `size` leaves.
///
/// # Errors
/// What the source says.
pub fn root<S: Subtrees>(source: &mut S, size: u64) -> Result<Digest, S::Error> {
    if size == 0 { Ok(Head::empty().root) } else { hash_of(source, 0, size) }
}

/// Checks that the entry with the hash `leaf` is entry `index` of the log with this head.
///
/// # Errors
/// [`ProofError`] says what is wrong.
pub fn check_inclusion(leaf: Digest, index: u64, path: &[Digest], head: Head) -> Result<(), ProofError> {
    let size = head.size;
    let last = size.checked_sub(1).filter(|last| index <= *last).ok_or(ProofError::NoSuchEntry { index, size })?;
    let (mut at, mut end, mut hash) = (index, last, leaf);
    for next in path {
        if end == 0 {
            return Err(ProofError::Length);
        }
        if at & 1 == 1 || at == end {
            hash = join(next, &hash);
            climb(&mut at, &mut end);
        } else {
            hash = join(&hash, next);
        }
        (at, end) = (at >> 1, end >> 1);
    }
    match (end == 0, hash == head.root) {
        (false, _) => Err(ProofError::Length),
        (true, false) => Err(ProofError::Root),
        (true, true) => Ok(()),
    }
}

/// Checks that the log with the head `new` continues the one with the head `old`.
///
/// # Errors
/// [`ProofError`] says what is wrong. [`ProofError::OldRoot`] proves that the two have different histories; every other
/// error may as well be a fault in the proof.
pub fn check_consistency(old: Head, new: Head, path: &[Digest]) -> Result<(), ProofError> {
    let (old_root, new_root) = match reconstruct(old, new, path)? {
        Some(roots) => roots,
        None => return Ok(()),
    };
    match (new_root == new.root, old_root == old.root) {
        (false, _) => Err(ProofError::Root),
        (true, false) => Err(ProofError::OldRoot),
        (true, true) => Ok(()),
    }
}

/// The root that the proof gives the first `old` leaves of the log `new`, if it leads to that log's root: what the older
/// head should have been. Nothing if the proof does not tell: it is not whole, or `old` is a power of two, whose root a proof
/// leaves out.
#[must_use]
pub fn prefix_root(old: Head, new: Head, path: &[Digest]) -> Option<Digest> {
    let (old_root, new_root) = reconstruct(old, new, path).ok()??;
    (new_root == new.root).then_some(old_root)
}

/// The two roots that a proof of consistency leads to; none for an older log without entries, which anything continues.
fn reconstruct(old: Head, new: Head, path: &[Digest]) -> Result<Option<(Digest, Digest)>, ProofError> {
    if old.size > new.size {
        return Err(ProofError::NotGrown { old: old.size, new: new.size });
    }
    if [old, new].iter().any(|head| head.size == 0 && *head != Head::empty()) {
        return Err(ProofError::EmptyRoot);
    }
    if old.size == 0 || old.size == new.size {
        let roots = (old.size > 0).then_some((new.root, new.root));
        return if path.is_empty() { Ok(roots) } else { Err(ProofError::Length) };
    }
    let (mut at, mut end) = (old.size - 1, new.size - 1);
    let whole = at.trailing_ones();
    (at, end) = (at.checked_shr(whole).unwrap_or(0), end.checked_shr(whole).unwrap_or(0));
    let mut hashes = path.iter();
    let first = if old.size.is_power_of_two() { &old.root } else { hashes.next().ok_or(ProofError::Length)? };
    let (mut older, mut newer) = (*first, *first);
    for next in hashes {
        if end == 0 {
            return Err(ProofError::Length);
        }
        if at & 1 == 1 || at == end {
            (older, newer) = (join(next, &older), join(next, &newer));
            climb(&mut at, &mut end);
        } else {
            newer = join(&newer, next);
        }
        (at, end) = (at >> 1, end >> 1);
    }
    if end == 0 { Ok(Some((older, newer))) } else { Err(ProofError::Length) }
}

/// Leaves out the levels at which the subtree at the right edge has no neighbour.
const fn climb(at: &mut u64, end: &mut u64) {
    while *at & 1 == 0 && *at != 0 {
        *at >>= 1;
        *end >>= 1;
    }
}

/// Where RFC 6962 splits a range of at least two leaves: after the largest power of two below its length.
const fn middle(start: u64, end: u64) -> u64 {
    start + (1 << (end - start - 1).ilog2())
}

fn range<S: Subtrees>(source: &mut S, start: u64, end: u64) -> Result<Digest, MakeError<S::Error>> {
    hash_of(source, start, end).map_err(MakeError::Source)
}

/// The root over a range that RFC 6962 makes: it begins at a multiple of the smallest power of two that holds it.
fn hash_of<S: Subtrees>(source: &mut S, start: u64, end: u64) -> Result<Digest, S::Error> {
    let length = end - start;
    if length.is_power_of_two() {
        let level = length.ilog2();
        return source.subtree(u8::try_from(level).unwrap_or(u8::MAX), start >> level);
    }
    let middle = middle(start, end);
    let left = hash_of(source, start, middle)?;
    Ok(join(&left, &hash_of(source, middle, end)?))
}

#[cfg(test)]
mod tests;
