//! What has been applied: written in the same batch as the rows it speaks of, so that half of a batch never counts.

use ephor_base::{Digest, SessionId, cbor};
use ephor_tlog::{Head, Tree};
use minicbor::{Decode, Encode};

use super::{
    Reason,
    row::Moment,
    source::Beginning,
    store::{Broken, Pair, Write},
};

/// The version of the tables and rows. Another one is never read: the chain has everything that is in them.
const LAYOUT: u32 = 5;

/// How far the rows are, and what they amount to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Applied {
    pub(super) origin: String,
    pub(super) tree: Tree,
    pub(super) sum: Sum,
    pub(super) since: Since,
}

/// Where the chain began when the rows were begun. What lay before it left no rows.
#[derive(Clone, PartialEq, Eq, Debug, Default, Encode, Decode)]
pub(super) struct Since {
    /// The first entry.
    #[n(0)]
    pub(super) first: u64,
    /// The pruning on the record, if there was one.
    #[n(1)]
    pub(super) pruning: Option<Moment>,
    /// The sessions that were erased before the first entry, in order.
    #[n(2)]
    pub(super) erased: Vec<SessionId>,
}

#[derive(Encode, Decode)]
struct Written {
    #[n(0)]
    origin: String,
    #[n(1)]
    size: u64,
    #[n(2)]
    peaks: Vec<Digest>,
    #[n(3)]
    sum: [u64; 4],
    #[n(4)]
    since: Since,
}

impl Applied {
    pub(super) fn nothing(origin: &str) -> Self {
        Self { origin: origin.to_owned(), tree: Tree::new(), sum: Sum::default(), since: Since::default() }
    }

    /// Nothing was applied of a chain that begins here.
    pub(super) fn begin(&mut self, beginning: Beginning) {
        let Beginning { tree, pruning, mut erased } = beginning;
        erased.sort_unstable();
        self.since = Since { first: tree.size(), pruning: Some(pruning), erased };
        self.tree = tree;
    }

    pub(super) fn head(&self) -> Head {
        Head { size: self.tree.size(), root: self.tree.root() }
    }

    /// The layout, the fields, and the digest of both.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { origin, tree, sum, since } = self;
        let (size, peaks) = (tree.size(), tree.peaks().to_vec());
        let written = Written { origin: origin.clone(), size, peaks, sum: sum.0, since: since.clone() };
        let body = [&LAYOUT.to_be_bytes()[..], &cbor::to_vec(&written)].concat();
        [&body[..], &Digest::of(&body).0].concat()
    }

    pub(super) fn parse(bytes: &[u8], origin: &str) -> Result<Self, Reason> {
        let damaged = || Reason::Broken("what was applied cannot be read".to_owned());
        let (body, digest) = bytes.split_last_chunk::<32>().ok_or_else(damaged)?;
        let (layout, fields) = body.split_first_chunk::<4>().ok_or_else(damaged)?;
        if Digest::of(body).0 != *digest {
            return Err(damaged());
        }
        if u32::from_be_bytes(*layout) != LAYOUT {
            return Err(Reason::Layout);
        }
        let written: Written = cbor::from_slice(fields).map_err(|_| damaged())?;
        if written.origin != origin {
            return Err(Reason::Origin);
        }
        let tree = Tree::from_peaks(written.size, written.peaks).ok_or_else(damaged)?;
        Ok(Self { origin: written.origin, tree, sum: Sum(written.sum), since: written.since })
    }
}

/// A sum over all rows, whatever their order: rows come and go without a look at the others. It finds accidents, such as
/// a row that is gone or is an older one; it is no protection from people, who could as well change the sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Sum([u64; 4]);

impl Sum {
    /// The sum over these rows.
    pub(super) fn over(rows: impl Iterator<Item = Result<Pair, Broken>>) -> Result<Self, Broken> {
        let mut sum = Self::default();
        for pair in rows {
            let Pair { key, value } = pair?;
            sum.add(&key, &value);
        }
        Ok(sum)
    }

    fn add(&mut self, key: &[u8], value: &[u8]) {
        self.change(key, value, u64::wrapping_add);
    }

    fn change(&mut self, key: &[u8], value: &[u8], by: fn(u64, u64) -> u64) {
        let Digest(digest) = Digest::of_parts(&[&(key.len() as u64).to_be_bytes(), key, value]);
        let (words, _) = digest.as_chunks::<8>();
        for (sum, word) in self.0.iter_mut().zip(words) {
            *sum = by(*sum, u64::from_be_bytes(*word));
        }
    }

    /// The row at the key of `write` was `old` and becomes what is written.
    pub(super) fn replace(&mut self, old: Option<&[u8]>, write: &Write) {
        if let Some(old) = old {
            self.change(&write.key, old, u64::wrapping_sub);
        }
        if let Some(new) = &write.value {
            self.add(&write.key, new);
        }
    }
}
