//! Who signs a log over time, for a verifier that knows the keys of one time only.
//!
//! A [`Change`] is the entry that names the next keys, proven under a checkpoint that the keys before it have signed. A verifier
//! that knows those follows the changes to the keys of today, one after another ([`follow`]). It does not go the other way round:
//! that keys name others as their predecessors shows nothing, and what those have signed later shows nothing either.
//!
//! A thief of keys that no longer sign can still sign a change to keys of their own, and show it to a verifier that knows
//! nothing newer than those. Against that helps what a thief cannot have: a checkpoint, or keys, from after the change.

use std::{path::Path, sync::Arc};

use ephor_base::{Seq, cbor};
use ephor_record::{Damage, Entry, Fact, Finding, ScanError, minimum::Begin};
use ephor_signatures::Signatures;
use ephor_tlog::{
    Checkpoint, EntryProof, Head, KnownLog, Tile, VerifierKeys, checkpoint,
    note::MAX_NOTE_BYTES,
    proof::{self, MakeError, file::NotAProof},
    tile::{Kind, WIDTH, bundle},
};

use crate::{
    history, offline,
    offline::CheckError,
    published::{Published, finding},
    source::{self, TileSource},
};

/// What a file of changes is at most.
pub const MAX_CHANGES_BYTES: usize = 4 << 20;

/// A change of keys, as it was read; nothing in it is checked yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change(EntryProof);

impl Change {
    /// The proof that the log has the entry which names the keys, under a checkpoint of the keys before.
    #[must_use]
    pub const fn proof(&self) -> &EntryProof {
        &self.0
    }

    /// Reads changes that stand one after another, as [`Change::to_bytes`] writes each.
    ///
    /// # Errors
    /// [`NotAProof`] if any part is something else.
    pub fn parse_all(bytes: &[u8]) -> Result<Vec<Self>, NotAProof> {
        if bytes.len() > MAX_CHANGES_BYTES {
            return Err(NotAProof("too many bytes"));
        }
        let text = std::str::from_utf8(bytes).map_err(|_| NotAProof("not UTF-8"))?;
        let mut starts: Vec<usize> = text.match_indices(EntryProof::HEADER).map(|(at, _)| at).collect();
        if starts.first().copied().unwrap_or(text.len()) != 0 {
            return Err(NotAProof("something stands before the first change"));
        }
        starts.push(text.len());
        let parts = starts.windows(2).filter_map(|pair| text.get(*pair.first()?..*pair.last()?));
        parts.map(|part| EntryProof::parse(part.as_bytes()).map(Self)).collect()
    }

    /// The bytes of its proof.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// The keys it names, if `before` have signed that.
    ///
    /// # Errors
    /// [`CheckError`] says what does not hold.
    fn check(&self, before: &VerifierKeys) -> Result<Option<(Head, VerifierKeys)>, CheckError> {
        let log = KnownLog::of(before).map_err(|_| CheckError::UnknownLog)?;
        let (head, entry) = offline::check_entry(&self.0, None, &[log])?;
        // What stands further back is the past of these keys, and names those before them.
        let is_last = entry.seq.0.saturating_add(1) == head.size;
        let keys = named(&entry.fact).filter(|keys| is_last && keys.origin() == before.origin());
        Ok(keys.map(|keys| (head, keys)))
    }
}

/// The keys that `known` vouch for: those themselves, and those that changes lead to, oldest first. Changes stand in the order
/// of the log; one that the keys reached so far have not signed leads nowhere.
#[must_use]
pub fn follow(known: &VerifierKeys, changes: &[Change]) -> Vec<VerifierKeys> {
    steps(known, changes).into_iter().map(|(_, keys)| keys).collect()
}

/// The same, each with the head under which it was named; the first with none.
fn steps(known: &VerifierKeys, changes: &[Change]) -> Vec<(Option<Head>, VerifierKeys)> {
    let mut reached = vec![(None, known.clone())];
    for change in changes {
        let Some((_, last)) = reached.last() else { break };
        if let Ok(Some((head, next))) = change.check(last)
            && reached.iter().all(|(_, keys)| *keys != next)
        {
            reached.push((Some(head), next));
        }
    }
    reached
}

/// The changes of keys that the published part of a chain shows, in its order. What was kept of them is not held against the
/// log here: a verifier that follows them holds each against the keys before it.
///
/// # Errors
/// [`ScanError`] if something published cannot be read.
pub fn changes(source: &Arc<dyn TileSource>) -> Result<Vec<Change>, ScanError> {
    let size = source::checkpoint(&**source)?.map_or(0, |(_, published)| published.head.size);
    // Changes that were pruned lead nowhere any more.
    let minimum = source::first(&**source)?;
    let mut published = Published::new(source, size);
    let mut changes = Vec::new();
    for size in history::kept_sizes(&**source)?.into_iter().filter(|kept| (minimum..=size).contains(kept)) {
        let Some(seq) = size.checked_sub(1).filter(|seq| *seq >= minimum) else { continue };
        let (bytes, entry) = read_entry(&published, seq)?;
        let Some(keys) = named(&entry.fact) else { continue };
        let name = checkpoint::kept_path(Path::new(""), size);
        let kept = source.read(&name, MAX_NOTE_BYTES as u64);
        let kept = kept.map_err(ScanError::io(&source.place(&name)))?.and_then(|bytes| Checkpoint::parse(&bytes).ok());
        // Under the keys that it names it is no change but the confirmation of one.
        let Some(kept) = kept.filter(|kept| kept.check(&keys, &Signatures).is_err()) else { continue };
        let path = proven(proof::inclusion(&mut published, seq, size), seq)?;
        changes.push(Change(EntryProof { extra: Some(bytes), index: seq, path, checkpoint: kept.note }));
    }
    Ok(changes)
}

/// Who has signed the published checkpoint of a chain, if `known` vouch for them.
///
/// # Errors
/// [`ScanError`] if something published cannot be read, or other keys have signed.
pub fn signers(source: &Arc<dyn TileSource>, known: &VerifierKeys) -> Result<VerifierKeys, ScanError> {
    let Some((_, checkpoint)) = source::checkpoint(&**source)? else {
        return Err(ScanError::found("checkpoint", 0, None, Damage::PublishedMissing));
    };
    let wrong = |damage| ScanError::found("checkpoint", 0, Some(checkpoint.head.size), damage);
    match checkpoint.check(known, &Signatures) {
        Ok(()) => Ok(known.clone()),
        Err(_) if checkpoint.origin != known.origin() => Err(wrong(Damage::Keys)),
        Err(fault) => {
            let reached = follow(known, &changes(source)?);
            let signed = reached.into_iter().find(|keys| checkpoint.check(keys, &Signatures).is_ok());
            signed.ok_or_else(|| wrong(Damage::Signature(fault)))
        }
    }
}

/// The keys of a log where it had some head, as its entries up to there name them.
pub(crate) struct Generation {
    /// They have signed that head.
    pub(crate) signers: VerifierKeys,
    /// They sign what comes next. Only right behind a change others than those.
    pub(crate) in_force: VerifierKeys,
}

impl Generation {
    /// Looks it up for a checkpoint whose head the published part has; says whether `known` vouch for it. If they do not, the
    /// record up to there says who must have signed, and what `known` have signed since must vouch for that. `begin` is where
    /// a pruned log begins.
    pub(crate) fn of(
        published: &Published,
        checkpoint: &Checkpoint,
        known: &VerifierKeys,
        begin: Option<&Begin>,
    ) -> Result<(Self, bool), ScanError> {
        let head = checkpoint.head;
        let vouched = leads_to(published, checkpoint, known)?;
        let is_vouched = vouched.is_some();
        let signers = match vouched {
            Some(signers) => signers,
            None => {
                let newest = last_named(published, head, head.size, begin)?;
                let last = newest.changes && newest.seq.saturating_add(1) == head.size;
                if last { last_named(published, head, newest.seq, begin)?.keys } else { newest.keys }
            }
        };
        let first = begin.map_or(0, |begin| begin.minimum.index);
        let in_force = match head.size.checked_sub(1).filter(|last| *last >= first) {
            Some(last) => named(&read_proven(published, head, last)?.fact),
            None => None,
        };
        let in_force = in_force.filter(|keys| keys.origin() == signers.origin()).unwrap_or_else(|| signers.clone());
        Ok((Self { signers, in_force }, is_vouched))
    }
}

/// Those who signed the checkpoint, if `known` vouch for them: by changes before it, each under a root that its head continues.
fn leads_to(
    published: &Published,
    checkpoint: &Checkpoint,
    known: &VerifierKeys,
) -> Result<Option<VerifierKeys>, ScanError> {
    if checkpoint.check(known, &Signatures).is_ok() || checkpoint.origin != known.origin() {
        return Ok((checkpoint.origin == known.origin()).then(|| known.clone()));
    }
    let head = checkpoint.head;
    for (named_under, keys) in steps(known, &changes(published.source())?) {
        let Some(old) = named_under else { continue };
        if old.size > head.size {
            return Ok(None);
        }
        let path = proven(proof::consistency(&mut published.clone(), old.size, head.size), old.size)?;
        if proof::check_consistency(old, head, &path).is_err() {
            let file = checkpoint::kept_path(Path::new(""), old.size);
            return Err(Finding { file, offset: 0, seq: Some(Seq(old.size)), damage: Damage::Kept }.into());
        }
        if checkpoint.check(&keys, &Signatures).is_ok() {
            return Ok(Some(keys));
        }
    }
    Ok(None)
}

/// An entry that says which keys are in force.
struct Named {
    seq: u64,
    keys: VerifierKeys,
    /// Whether it is one that can change them.
    changes: bool,
}

/// The last such entry below `below`; where a pruned log has none, what it says of itself where it begins.
fn last_named(published: &Published, head: Head, below: u64, begin: Option<&Begin>) -> Result<Named, ScanError> {
    let mut end = below;
    let minimum = begin.map_or(0, |begin| begin.minimum.index);
    while end > minimum {
        let index = end.saturating_sub(1) / WIDTH;
        let entries = read_bundle(published, index)?;
        let first = index.saturating_mul(WIDTH);
        for seq in (first..end).rev() {
            let bytes = entries.get(usize::try_from(seq.saturating_sub(first)).unwrap_or(usize::MAX));
            let entry = bytes.and_then(|bytes| cbor::from_slice::<Entry>(bytes).ok().map(|entry| (bytes, entry)));
            let Some((bytes, entry)) = entry else { return Err(damaged_bundle(index)) };
            if let Some(keys) = stated(&entry.fact) {
                prove(published, head, seq, bytes)?;
                return Ok(Named { seq, keys, changes: matches!(entry.fact, Fact::Keys { .. }) });
            }
        }
        end = first;
    }
    let known = begin.and_then(|begin| begin.rules.keys().map(|keys| &**keys).cloned());
    known.map(|keys| Named { seq: minimum, keys, changes: false }).ok_or_else(|| damaged_bundle(0))
}

/// The entry `seq` of the log of this head.
fn read_proven(published: &Published, head: Head, seq: u64) -> Result<Entry, ScanError> {
    let (bytes, entry) = read_entry(published, seq)?;
    prove(published, head, seq, &bytes)?;
    Ok(entry)
}

/// These are the bytes of the entry `seq` of the log of this head.
fn prove(published: &Published, head: Head, seq: u64, bytes: &[u8]) -> Result<(), ScanError> {
    let path = proven(proof::inclusion(&mut published.clone(), seq, head.size), seq)?;
    let held = proof::check_inclusion(ephor_tlog::tree::leaf_hash(bytes), seq, &path, head);
    held.map_err(|_| damaged_bundle(seq / WIDTH))
}

/// The keys that a change names.
fn named(fact: &Fact) -> Option<VerifierKeys> {
    match fact {
        Fact::Keys { ed25519, ml_dsa_65 } => VerifierKeys::parse(ed25519, ml_dsa_65),
        _ => None,
    }
}

/// The keys that any entry says are in force behind it.
fn stated(fact: &Fact) -> Option<VerifierKeys> {
    match fact {
        Fact::Origin { ed25519, ml_dsa_65, .. } => VerifierKeys::parse(ed25519, ml_dsa_65),
        Fact::Snapshot(snapshot) => VerifierKeys::parse(&snapshot.keys.ed25519, &snapshot.keys.ml_dsa_65),
        fact => named(fact),
    }
}

fn read_entry(published: &Published, seq: u64) -> Result<(Vec<u8>, Entry), ScanError> {
    let index = seq / WIDTH;
    let mut entries = read_bundle(published, index)?;
    let position = usize::try_from(seq % WIDTH).unwrap_or(usize::MAX);
    let bytes = if position < entries.len() { entries.swap_remove(position) } else { Vec::new() };
    let entry = cbor::from_slice(&bytes).map_err(|_| damaged_bundle(index))?;
    Ok((bytes, entry))
}

fn read_bundle(published: &Published, index: u64) -> Result<Vec<Vec<u8>>, ScanError> {
    let (bytes, width) = published.bundle(index)?;
    let entries = bundle::parse(&bytes, width).ok_or_else(|| damaged_bundle(index))?;
    Ok(entries.into_iter().map(<[u8]>::to_vec).collect())
}

fn damaged_bundle(index: u64) -> ScanError {
    finding(Tile::full(Kind::Entries, index), Damage::Bundle).into()
}

/// What the tiles could not give is a matter of the tiles.
fn proven<T>(made: Result<T, MakeError<ScanError>>, seq: u64) -> Result<T, ScanError> {
    made.map_err(|error| match error {
        MakeError::Source(error) => error,
        MakeError::NoSuchEntry { .. } | MakeError::NotGrown { .. } => damaged_bundle(seq / WIDTH),
    })
}
