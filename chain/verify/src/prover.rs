//! Makes proofs out of the published part of a chain. That folder is all it needs: no node, no vault and no key.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use ephor_base::{Digest, Seq};
use ephor_record::{Damage, ScanError};
use ephor_tlog::{
    Checkpoint, EntryProof, Tile,
    proof::{self, MakeError, ProofError, Subtrees},
    tile::{Kind, WIDTH, bundle},
};

use crate::{
    published::{Published, finding},
    source::{self, TileSource},
};

/// How many tiles are kept: one on the way to the entry and one at the right edge, of each of the eight levels.
const TILES: usize = 16;

/// How many hashes of subtrees are kept before they are forgotten: those of a few bundles.
const NODES: usize = 4096;

/// Makes proofs under one checkpoint. Entries that are asked for in order cost one bundle and few tiles in memory.
pub struct Prover {
    tiles: Tiles,
    checkpoint: Checkpoint,
    /// The bundle that was read last.
    bundle: Option<(u64, Vec<u8>)>,
}

/// A proof could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ProveError {
    /// The checkpoint does not reach that far. The caller's mistake, or not published yet.
    #[error("entry `{seq}` is not published: the checkpoint has {size} entries")]
    NotPublished {
        /// The entry.
        seq: Seq,
        /// How many are published.
        size: u64,
    },
    /// A tile or bundle cannot be read, or is damaged.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// Every file was read, and together they do not give the root that was signed. Some file is damaged.
    #[error("the published files do not prove entry `{seq}`: {fault}")]
    Unproven {
        /// The entry.
        seq: Seq,
        /// What a check of the proof said.
        fault: ProofError,
    },
}

impl Prover {
    /// Makes proofs under the checkpoint that a source publishes; nothing if it publishes none.
    ///
    /// # Errors
    /// [`ScanError`] if the checkpoint cannot be read.
    pub fn open(source: &Arc<dyn TileSource>) -> Result<Option<Self>, ScanError> {
        let Some((_, checkpoint)) = source::checkpoint(&**source)? else { return Ok(None) };
        let published = Published::new(source, checkpoint.head.size);
        Ok(Some(Self {
            tiles: Tiles { published, kept: VecDeque::new(), nodes: HashMap::new() },
            checkpoint,
            bundle: None,
        }))
    }

    /// The checkpoint. Its signatures are not checked here.
    #[must_use]
    pub const fn checkpoint(&self) -> &Checkpoint {
        &self.checkpoint
    }

    /// The proof that an entry is in the log. It was checked against the root of the checkpoint.
    ///
    /// # Errors
    /// [`ProveError`].
    pub fn prove(&mut self, seq: Seq) -> Result<EntryProof, ProveError> {
        let head = self.checkpoint.head;
        let made = proof::inclusion(&mut self.tiles, seq.0, head.size);
        let path = made.map_err(|error| match error {
            MakeError::Source(error) => ProveError::Scan(error),
            MakeError::NoSuchEntry { .. } | MakeError::NotGrown { .. } => {
                ProveError::NotPublished { seq, size: head.size }
            }
        })?;
        let entry = self.entry(seq)?;
        let checked = proof::check_inclusion(ephor_tlog::tree::leaf_hash(&entry), seq.0, &path, head);
        checked.map_err(|fault| ProveError::Unproven { seq, fault })?;
        Ok(EntryProof { extra: Some(entry), index: seq.0, path, checkpoint: self.checkpoint.note.clone() })
    }

    /// The canonical bytes of an entry.
    fn entry(&mut self, seq: Seq) -> Result<Vec<u8>, ScanError> {
        let index = seq.0 / WIDTH;
        let bytes = match self.bundle.take().filter(|(kept, _)| *kept == index) {
            Some((_, bytes)) => bytes,
            None => self.tiles.published.bundle(index)?.0,
        };
        let mut rest = bytes.as_slice();
        let mut entry = None;
        for _ in 0..=seq.0 % WIDTH {
            let damaged = || finding(Tile::full(Kind::Entries, index), Damage::Bundle);
            let (taken, after) = bundle::take(rest).ok_or_else(damaged)?;
            (entry, rest) = (Some(taken.to_vec()), after);
        }
        self.bundle = Some((index, bytes));
        Ok(entry.unwrap_or_default())
    }
}

/// The tiles of a published log, those used last at the front.
struct Tiles {
    published: Published,
    kept: VecDeque<(Kind, u64, Vec<Digest>)>,
    /// What neighbouring entries have in common.
    nodes: HashMap<(u8, u64), Digest>,
}

impl Subtrees for Tiles {
    type Error = ScanError;

    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, ScanError> {
        let Self { published, kept, nodes } = self;
        if let Some(known) = nodes.get(&(level, index)) {
            return Ok(*known);
        }
        let hash = published.hash_in(level, index, |kind, tile| {
            let found = kept.iter().position(|(k, t, _)| (*k, *t) == (kind, tile));
            let (kind, tile, hashes) = match found.and_then(|at| kept.remove(at)) {
                Some(found) => found,
                None => (kind, tile, published.hashes(kind, tile)?),
            };
            kept.truncate(TILES.saturating_sub(1));
            kept.push_front((kind, tile, hashes.clone()));
            Ok(hashes)
        })?;
        if nodes.len() >= NODES {
            nodes.clear();
        }
        nodes.insert((level, index), hash);
        Ok(hash)
    }
}

impl Subtrees for Published {
    type Error = ScanError;

    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, ScanError> {
        self.hash(level, index)
    }
}
