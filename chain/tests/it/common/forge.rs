//! Writes logs by `docs/chain-format.md` and not by the crate: whatever the holder of the keys could write, also against the rules.

use std::path::{Path, PathBuf};

use aws_lc_rs::{
    encoding::AsRawBytes as _,
    signature::{KeyPair as _, ML_DSA_65_SIGNING, PqdsaKeyPair},
};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ed25519_dalek::{Signer as _, SigningKey};
use ephor_base::{Digest, Random};
use ephor_tlog::{Head, Tile, Tree, tile::Kind};

/// The private keys of a log.
pub(crate) struct Forge {
    ed25519: SigningKey,
    ml_dsa: PqdsaKeyPair,
    origin: String,
}

/// What stands ahead of the ML-DSA-65 key.
const IDENTIFIER: &[u8] = b"\xffML-DSA-65 FIPS-204 pure empty-context";

impl Forge {
    /// The keys whose seeds this gives.
    pub(crate) fn new(random: &dyn Random) -> Self {
        let mut seeds = [0; 64];
        random.fill(&mut seeds);
        let ed25519 = SigningKey::from_bytes(seeds[..32].try_into().unwrap());
        let ml_dsa = PqdsaKeyPair::from_seed(&ML_DSA_65_SIGNING, &seeds[32..]).unwrap();
        assert!(ml_dsa.private_key().as_raw_bytes().is_ok());
        let origin = format!("ephor/{}", &Digest::of(ed25519.verifying_key().as_bytes()).to_string()[..32]);
        Self { ed25519, ml_dsa, origin }
    }

    /// Keys that can follow those of another in its log.
    pub(crate) fn next(&self, random: &dyn Random) -> Self {
        Self { origin: self.origin.clone(), ..Self::new(random) }
    }

    /// The two typed keys.
    fn typed(&self) -> [Vec<u8>; 2] {
        let ed25519 = [&[1], self.ed25519.verifying_key().as_bytes().as_slice()].concat();
        [ed25519, [IDENTIFIER, self.ml_dsa.public_key().as_ref()].concat()]
    }

    fn ids(&self) -> [[u8; 4]; 2] {
        let id = |typed: &Vec<u8>| Digest::of_parts(&[self.origin.as_bytes(), b"\n", typed]).0;
        self.typed().each_ref().map(|typed| id(typed)[..4].try_into().unwrap())
    }

    /// The two verifier keys.
    pub(crate) fn lines(&self) -> [String; 2] {
        let [first, second] = self.typed();
        let line = |id: [u8; 4], typed: &[u8]| {
            let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{}+{id}+{}", self.origin, BASE64.encode(typed))
        };
        let [one, two] = self.ids();
        [line(one, &first), line(two, &second)]
    }

    /// A checkpoint with both signatures.
    pub(crate) fn checkpoint(&self, head: Head) -> Vec<u8> {
        let text = format!("{}\n{}\n{}\n", self.origin, head.size, BASE64.encode(head.root.0));
        let ed25519 = self.ed25519.sign(text.as_bytes()).to_bytes().to_vec();
        let mut ml_dsa = vec![0; 3309];
        self.ml_dsa.sign(text.as_bytes(), &mut ml_dsa).unwrap();
        let line = |(id, signature): (&[u8; 4], Vec<u8>)| {
            format!("— {} {}\n", self.origin, BASE64.encode([id.as_slice(), &signature].concat()))
        };
        let lines: String = self.ids().iter().zip([ed25519, ml_dsa]).map(line).collect();
        format!("{text}\n{lines}").into_bytes()
    }

    /// A segment of one batch, behind the log `before`.
    pub(crate) fn segment(&self, before: Head, entries: &[Vec<u8>], contents: &[u8], checkpoint: &[u8]) -> Vec<u8> {
        let mut segment = b"EphorLog\0\0\0\x02\0\0\0\0".to_vec();
        segment.extend(before.size.to_be_bytes());
        segment.extend([0; 8]);
        segment.extend(Digest::of(self.origin.as_bytes()).0);
        segment.extend(before.root.0);
        segment.extend(Digest::of(&segment).0);
        let bundle = bundle(entries);
        let sections = [bundle.as_slice(), contents, checkpoint];
        let mut frame = b"EphFrame".to_vec();
        let length = 36 + sections.iter().map(|section| section.len()).sum::<usize>() + 4;
        frame.extend(u32::try_from(length).unwrap().to_be_bytes());
        frame.extend(before.size.to_be_bytes());
        frame.extend(u32::try_from(entries.len()).unwrap().to_be_bytes());
        sections.iter().for_each(|section| frame.extend(u32::try_from(section.len()).unwrap().to_be_bytes()));
        sections.iter().for_each(|section| frame.extend_from_slice(section));
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        [segment, frame].concat()
    }
}

/// Entries as a bundle has them.
pub(crate) fn bundle(entries: &[Vec<u8>]) -> Vec<u8> {
    let length = |entry: &Vec<u8>| u16::try_from(entry.len()).unwrap().to_be_bytes();
    entries.iter().flat_map(|entry| [length(entry).as_slice(), entry].concat()).collect()
}

/// Tiles and bundles of a growing log, each handed to `write` once it is full, the others at the end.
pub(crate) struct Tiles<W: FnMut(PathBuf, &[u8])> {
    write: W,
    rows: Vec<Vec<Digest>>,
    bundle: Vec<u8>,
    tree: Tree,
}

impl<W: FnMut(PathBuf, &[u8])> Tiles<W> {
    pub(crate) fn new(write: W) -> Self {
        Self { write, rows: Vec::new(), bundle: Vec::new(), tree: Tree::new() }
    }

    pub(crate) fn push(&mut self, entry: &[u8]) {
        self.bundle.extend(u16::try_from(entry.len()).unwrap().to_be_bytes());
        self.bundle.extend_from_slice(entry);
        let leaf = Digest::of_parts(&[&[0], entry]);
        self.tree.push(leaf);
        if self.tree.size().is_multiple_of(256) {
            (self.write)(Tile::full(Kind::Entries, self.tree.size() / 256 - 1).path(), &self.bundle);
            self.bundle.clear();
        }
        self.node(0, leaf);
    }

    fn node(&mut self, level: usize, hash: Digest) {
        if self.rows.len() == level {
            self.rows.push(Vec::new());
        }
        self.rows[level].push(hash);
        if self.rows[level].len() == 256 {
            let hashes = std::mem::take(&mut self.rows[level]);
            let index = (self.tree.size() >> (8 * (level + 1))) - 1;
            let kind = Kind::Hashes(u8::try_from(level).unwrap());
            (self.write)(
                Tile::full(kind, index).path(),
                hashes.iter().flat_map(|hash| hash.0).collect::<Vec<_>>().as_slice(),
            );
            let mut tree = Tree::new();
            hashes.iter().for_each(|hash| tree.push(*hash));
            self.node(level + 1, tree.root());
        }
    }

    /// Writes what is partial; gives the head.
    pub(crate) fn finish(mut self) -> Head {
        let size = self.tree.size();
        if let Some(tile) = Tile::of(Kind::Entries, size / 256, size) {
            (self.write)(tile.path(), &self.bundle);
        }
        for (level, row) in (0u8..).zip(&self.rows).filter(|(_, row)| !row.is_empty()) {
            let index = (size >> (8 * u32::from(level))) / 256;
            let tile = Tile { kind: Kind::Hashes(level), index, width: u16::try_from(row.len()).unwrap() };
            (self.write)(tile.path(), row.iter().flat_map(|hash| hash.0).collect::<Vec<_>>().as_slice());
        }
        Head { size, root: self.tree.root() }
    }
}

/// Writes a file with its folders.
pub(crate) fn write(path: &Path, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}
