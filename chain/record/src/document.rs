//! Documents: texts that stand on the record in parts, and are known by their digest.

use ephor_base::Digest;

use crate::fact::Fact;

/// The most bytes of a document in one entry, so that it stays well below the limit of an entry.
const PART: usize = 48 << 10;

impl Fact {
    /// A document, in as many entries as it takes.
    pub fn document(bytes: &[u8]) -> impl Iterator<Item = Self> {
        let digest = Digest::of(bytes);
        let of = u32::try_from(bytes.len().div_ceil(PART)).unwrap_or(u32::MAX);
        (0..).zip(bytes.chunks(PART)).map(move |(part, bytes)| Self::Document {
            digest,
            part,
            of,
            bytes: bytes.to_vec(),
        })
    }
}

/// A document that is looked for on the record. Whatever the facts are, it is the wanted one.
#[derive(Debug)]
pub struct Wanted {
    digest: Digest,
    read: Vec<u8>,
}

impl Wanted {
    /// The document of this digest.
    #[must_use]
    pub const fn new(digest: Digest) -> Self {
        Self { digest, read: Vec::new() }
    }

    /// Reads the facts in their order, one after another; gives the document with its last part.
    pub fn take(&mut self, fact: Fact) -> Option<Vec<u8>> {
        let Fact::Document { digest, part, of, bytes } = fact else { return None };
        if digest != self.digest {
            return None;
        }
        if part == 0 {
            self.read.clear();
        }
        self.read.extend(bytes);
        let is_whole = part.saturating_add(1) == of && Digest::of(&self.read) == self.digest;
        is_whole.then(|| std::mem::take(&mut self.read))
    }
}
