//! Verifies all that a log has published.

use std::sync::Arc;

use ephor_record::{Damage, Minimum, ScanError};
use ephor_tlog::{Checkpoint, Head, VerifierKeys};
use serde::Serialize;

use crate::{
    history::{self, History},
    published::Published,
    source::{self, TileSource},
    strays,
};

/// A published log that was verified.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Verified {
    /// The name of the log.
    pub origin: String,
    /// How many entries are published, and their root.
    pub head: Head,
    /// The first entry that was checked; the minimum unless something was known before.
    pub since: u64,
    /// Where the log begins; 0 unless it was pruned.
    pub minimum: u64,
    /// How many checkpoints were checked, each with both signatures.
    pub checkpoints: u64,
    /// How many boots it saw.
    pub boots: u64,
    /// Whether the last boot has stopped cleanly.
    pub stopped: bool,
    /// How many intents have no outcome yet.
    pub open_intents: u64,
    /// Whether a head known from elsewhere was held against it.
    pub against_head: bool,
}

/// What a published log is held against.
#[derive(Clone, Copy)]
pub struct Against<'a> {
    /// Public keys of the log, of any time.
    pub keys: &'a VerifierKeys,
    /// A head known from elsewhere. Without one, a log cannot be told from an older state of itself.
    pub head: Option<Head>,
    /// A checkpoint up to which the log was verified before: what lies before that is not read again.
    pub from: Option<&'a Checkpoint>,
}

/// Verifies every entry, hash, tile and kept checkpoint that a source publishes, up to its checkpoint, whose signatures must be
/// those of the keys or of keys that they vouch for. `progress` has how many entries were verified, of how many.
///
/// # Errors
/// [`ScanError::Damaged`] names the first thing that is wrong, and where. The other errors say nothing about the log.
pub fn verify(
    source: &Arc<dyn TileSource>,
    Against { keys, head, from }: Against<'_>,
    mut progress: impl FnMut(u64, u64),
) -> Result<Verified, ScanError> {
    let kept = history::kept_sizes(&**source)?;
    let minimum = source::minimum(&**source)?;
    let missing = || ScanError::found("checkpoint", 0, None, Damage::PublishedMissing);
    let (_, published) = source::checkpoint(&**source)?.ok_or_else(missing)?;
    let size = published.head.size;
    let mut history = History::new(source, keys, None);
    history.expect(kept);
    history.start(from, minimum, &published)?;
    history.run(&published, |entries| progress(entries, size))?;
    // A change of keys right at the end may be kept in a moment; the signatures of the checkpoint show it until then.
    history.check_changes(size.saturating_sub(1))?;
    Minimum::check(minimum, history.rules.pruned())?;
    head.map_or(Ok(()), |head| check_head(&history.published(), head))?;
    strays::check_tiles(source, size, history.minimum)?;
    if !history.vouched {
        let named = history.rules.keys().is_some_and(|named| **named == *keys);
        let damage = if named { Damage::KeysUnused } else { Damage::Keys };
        return Err(ScanError::found("checkpoint", 0, Some(size), damage));
    }
    Ok(Verified {
        origin: keys.origin().to_owned(),
        head: published.head,
        since: history.since.min(size),
        minimum: history.minimum,
        checkpoints: history.kept.saturating_add(1),
        boots: history.rules.boots(),
        stopped: history.rules.stopped(),
        open_intents: history.rules.intents().len() as u64,
        against_head: head.is_some(),
    })
}

/// A head known from elsewhere is one that this log has had.
fn check_head(published: &Published, known: Head) -> Result<(), ScanError> {
    let (expected, found) = (known.size, published.size());
    if expected > found {
        return Err(ScanError::found("checkpoint", 0, Some(found), Damage::CutBack { expected, found }));
    }
    if expected > 0 && published.head(expected)? != known {
        return Err(ScanError::found("head", 0, Some(expected), Damage::HeadForeign));
    }
    Ok(())
}
