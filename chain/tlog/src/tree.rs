//! The Merkle tree of RFC 6962, as the compact range of a growing log.

use ephor_base::Digest;

/// The roots of the full subtrees of a log, largest first: enough to append leaves and to give the root.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tree {
    size: u64,
    peaks: Vec<Digest>,
}

impl Tree {
    /// The tree without leaves.
    #[must_use]
    pub const fn new() -> Self {
        Self { size: 0, peaks: Vec::new() }
    }

    /// The tree of `size` leaves with these full subtrees, if they are as many as it must have.
    #[must_use]
    pub fn from_peaks(size: u64, peaks: Vec<Digest>) -> Option<Self> {
        (u32::try_from(peaks.len()) == Ok(size.count_ones())).then_some(Self { size, peaks })
    }

    /// The roots of its full subtrees, largest first.
    #[must_use]
    pub fn peaks(&self) -> &[Digest] {
        &self.peaks
    }

    /// How many leaves it has.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Appends the hash of a leaf.
    pub fn push(&mut self, leaf: Digest) {
        let mut node = leaf;
        // One full subtree of each size whose bit is set is merged with the new one, as in a carry.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                node = join(&left, &node);
            }
        }
        self.peaks.push(node);
        self.size = self.size.saturating_add(1);
    }

    /// The root over all leaves; for none it is the hash of nothing.
    #[must_use]
    pub fn root(&self) -> Digest {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return Digest::of(&[]) };
        peaks.fold(*last, |right, left| join(left, &right))
    }
}

/// The RFC 6962 hash of a leaf: SHA-256 of 0x00 and the bytes.
#[must_use]
pub fn leaf_hash(bytes: &[u8]) -> Digest {
    Digest::of_parts(&[&[0], bytes])
}

/// The root over hashes whose number is a power of two.
pub fn root_of_full(hashes: &[Digest]) -> Digest {
    let mut row = hashes.to_vec();
    while row.len() > 1 {
        row = row
            .chunks_exact(2)
            .filter_map(|pair| pair.split_first())
            .map(|(left, right)| right.first().map_or(*left, |right| join(left, right)))
            .collect();
    }
    row.first().copied().unwrap_or_else(|| Digest::of(&[]))
}

/// The hash of an inner node: SHA-256 of 0x01 and both children.
pub fn join(left: &Digest, right: &Digest) -> Digest {
    Digest::of_parts(&[&[1], &left.0, &right.0])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition of RFC 6962, section 2.1, word for word.
    fn by_definition(leaves: &[Digest]) -> Digest {
        match leaves {
            [] => Digest::of(&[]),
            [leaf] => *leaf,
            _ => {
                let (left, right) = leaves.split_at(leaves.len().next_power_of_two() / 2);
                join(&by_definition(left), &by_definition(right))
            }
        }
    }

    #[test]
    fn the_root_is_that_of_the_definition() {
        let leaves: Vec<_> = (0..130u32).map(|n| leaf_hash(&n.to_be_bytes())).collect();
        let mut tree = Tree::new();
        for (size, leaf) in leaves.iter().enumerate() {
            assert_eq!(tree.root(), by_definition(leaves.get(..size).unwrap_or_default()));
            tree.push(*leaf);
        }
    }

    #[test]
    fn the_root_is_that_of_the_published_vectors() {
        // The tree of the certificate-transparency test vectors: eight inputs, root of all of them.
        let inputs: [&[u8]; 8] = [
            &[],
            &[0x00],
            &[0x10],
            &[0x20, 0x21],
            &[0x30, 0x31],
            &[0x40, 0x41, 0x42, 0x43],
            &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
            &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
        ];
        let mut tree = Tree::new();
        inputs.iter().for_each(|input| tree.push(leaf_hash(input)));
        let expected = "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328";
        assert_eq!(tree.root().to_string(), expected);
    }
}
