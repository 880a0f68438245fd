//! What we write is read, checked and proven by implementations that are not ours.

use std::{collections::BTreeMap, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::Digest;
use ephor_chain::CosignerKeys;
use ephor_tlog::{Checkpoint, Head, Note, VerifierKeys};
use ml_dsa::{EncodedVerifyingKey, MlDsa44, MlDsa65, Signature, VerifyingKey};
use signed_note::{StandardVerifier, VerifierList};
use tlog_tiles::{
    Error, Hash, Tile, TileHashReader, TileReader, check_record, check_tree, prove_record, prove_tree,
    tlog::record_hash,
};

use crate::common::{
    Seeded,
    history::{History, Leaves},
};

/// The typed key of a note verifier key.
fn typed(line: &str) -> Vec<u8> {
    BASE64.decode(line.splitn(3, '+').nth(2).unwrap()).unwrap()
}

/// RustCrypto's ML-DSA-65 on a signature of a checkpoint.
fn rust_crypto_65(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = VerifyingKey::<MlDsa65>::decode(&EncodedVerifyingKey::<MlDsa65>::try_from(key).unwrap());
    Signature::<MlDsa65>::try_from(signature).is_ok_and(|signature| key.verify_with_context(message, b"", &signature))
}

fn compact(key: &[u8], message: &[u8], signature: &[u8]) -> bool {
    let key = ed25519_compact::PublicKey::from_slice(key).unwrap();
    ed25519_compact::Signature::from_slice(signature).is_ok_and(|signature| key.verify(message, &signature).is_ok())
}

#[test]
fn both_signatures_of_a_checkpoint_verify_with_other_implementations() {
    let history = History::of(&["one", "two"]);
    let keys = history.world.verifier();
    for (_, bytes) in &history.checkpoints {
        let note = Note::parse(bytes).unwrap();
        let text = note.text.as_bytes();
        let [ed25519, ml_dsa] = note.signatures.as_slice() else { panic!() };
        let (first, second) = (typed(keys.ed25519()), typed(keys.ml_dsa_65()));
        let second = second.strip_prefix(b"\xffML-DSA-65 FIPS-204 pure empty-context").unwrap();
        assert!(compact(&first[1..], text, &ed25519.signature));
        assert!(rust_crypto_65(second, text, &ml_dsa.signature));
        assert!(!compact(&first[1..], b"another text", &ed25519.signature));
        assert!(!rust_crypto_65(second, b"another text", &ml_dsa.signature));
    }
}

#[test]
fn both_cosignatures_of_a_witness_verify_with_other_implementations() {
    let history = History::of(&["one"]);
    let (size, checkpoint) = history.last();
    let witness = crate::witness::opened(vec![history.known()], &Seeded::new(8));
    let answer = crate::witness::submit(&witness, 0, &[], checkpoint).response;
    let note = Note::parse(&[checkpoint.as_slice(), &answer.body].concat()).unwrap();
    let keys = CosignerKeys::generate("witness.example/w", &Seeded::new(8)).unwrap();
    let [first, second] = keys.verifier().each_ref().map(|key| typed(&key.to_string()));
    assert_eq!((first[0], second[0]), (0x04, 0x06));
    let [.., ed25519, ml_dsa] = note.signatures.as_slice() else { panic!() };
    let seconds = crate::witness::NOW.0 / 1_000_000;
    assert_eq!(ed25519.signature[..8], seconds.to_be_bytes());
    let message = format!("cosignature/v1\ntime {seconds}\n{}", note.text);
    assert!(compact(&first[1..], message.as_bytes(), &ed25519.signature[8..]));
    let origin = history.world.verifier().origin().to_owned();
    let mut message = b"subtree/v1\n\0\x11witness.example/w".to_vec();
    message.extend(seconds.to_be_bytes());
    message.push(u8::try_from(origin.len()).unwrap());
    message.extend(origin.as_bytes());
    message.extend(0u64.to_be_bytes());
    message.extend((*size as u64).to_be_bytes());
    message.extend(history.leaves().head(*size).root.0);
    let key = VerifyingKey::<MlDsa44>::decode(&EncodedVerifyingKey::<MlDsa44>::try_from(&second[1..]).unwrap());
    let signature = Signature::<MlDsa44>::try_from(&ml_dsa.signature[8..]).unwrap();
    assert!(key.verify_with_context(&message, b"", &signature));
}

/// Reads the tiles of a folder, as they are asked for.
struct Folder<'a>(&'a Path);

impl TileReader for Folder<'_> {
    fn height(&self) -> u8 {
        8
    }
    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, Error> {
        let read = |tile: &Tile| {
            // The crate names the height in its paths, the specification does not.
            let path = tile.path().replacen("tile/8/", "tile/", 1).replacen("data", "entries", 1);
            fs::read(self.0.join(&path)).map_err(|error| Error::InvalidInput(format!("{path}: {error}")))
        };
        tiles.iter().map(read).collect()
    }
    fn save_tiles(&self, _: &[Tile], _: &[Vec<u8>]) {}
}

/// Reads a published folder with the public crates alone: the checkpoint under its Ed25519 key, every entry out of the
/// bundles, and the proof of each of them and of every smaller size, out of the tiles. Returns how many entries there were.
pub(crate) fn read_published(folder: &Path, keys: &VerifierKeys) -> u64 {
    read_published_from(folder, keys, 0)
}

/// The same of a pruned log, from its minimum on.
pub(crate) fn read_published_from(folder: &Path, keys: &VerifierKeys, minimum: u64) -> u64 {
    let bytes = fs::read(folder.join("checkpoint")).unwrap();
    let note = signed_note::Note::from_bytes(&bytes).unwrap();
    let verifier = StandardVerifier::new(keys.ed25519()).unwrap();
    let (signed, _) = note.verify(&VerifierList::new(vec![Box::new(verifier)])).unwrap();
    assert_eq!(signed.len(), 1);
    let checkpoint = tlog_tiles::Checkpoint::from_bytes(note.text()).unwrap();
    assert_eq!((checkpoint.origin(), checkpoint.extension()), (keys.origin(), ""));
    let (size, root) = (checkpoint.size(), *checkpoint.hash());
    let folder = Folder(folder);
    let hashes = TileHashReader::new(size, root, &folder);
    for index in minimum..size {
        let entry = published_entry(folder.0, index, size);
        let proof = prove_record(size, index, &hashes).unwrap();
        check_record(&proof, size, root, index, record_hash(&entry)).unwrap();
    }
    for old in minimum.max(1)..=size {
        let before = tlog_tiles::tlog::tree_hash(old, &hashes).unwrap();
        check_tree(&prove_tree(size, old, &hashes).unwrap(), size, root, old, before).unwrap();
    }
    size
}

/// Entry `index` out of its bundle.
fn published_entry(folder: &Path, index: u64, size: u64) -> Vec<u8> {
    let (bundle, width) = (index / 256, (size - index / 256 * 256).min(256));
    let mut path = Tile::new(8, 0, bundle, u32::try_from(width).unwrap(), true).path();
    path = path.replacen("tile/8/data/", "tile/entries/", 1);
    let bytes = fs::read(folder.join(&path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut rest = bytes.as_slice();
    for _ in 0..index % 256 {
        let length = usize::from(u16::from_be_bytes([rest[0], rest[1]]));
        rest = &rest[2 + length..];
    }
    rest[2..2 + usize::from(u16::from_be_bytes([rest[0], rest[1]]))].to_vec()
}

/// Writes what C2SP tlog-tiles says of these entries.
fn publish(folder: &Path, entries: &[Vec<u8>], checkpoint: &[u8]) {
    let size = entries.len();
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::from([("checkpoint".into(), checkpoint.to_vec())]);
    let name = |level: &str, index: usize, width: usize| {
        let partial = if width < 256 { format!(".p/{width}") } else { String::new() };
        assert!(index < 1000);
        format!("tile/{level}/{index:03}{partial}")
    };
    for (index, bundle) in entries.chunks(256).enumerate() {
        let bytes = bundle.iter().flat_map(|entry| {
            let length = u16::try_from(entry.len()).unwrap().to_be_bytes();
            length.into_iter().chain(entry.iter().copied())
        });
        files.insert(name("entries", index, bundle.len()), bytes.collect());
    }
    let mut hashes: Vec<Digest> = entries.iter().map(|entry| ephor_tlog::tree::leaf_hash(entry)).collect();
    for level in 0.. {
        if hashes.is_empty() {
            break;
        }
        for (index, tile) in hashes.chunks(256).enumerate() {
            files.insert(name(&level.to_string(), index, tile.len()), tile.iter().flat_map(|hash| hash.0).collect());
        }
        hashes = hashes.chunks_exact(256).map(crate::common::history::root).collect();
    }
    assert!(size > 0);
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}

#[test]
fn a_folder_laid_out_as_tiles_is_read_and_proven_by_the_public_crates() {
    let history = History::of(&["one", "two", "three"]);
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), &history.entries[..history.last().0], &history.last().1);
    assert_eq!(read_published(folder.path(), &history.world.verifier()), history.last().0 as u64);
}

#[test]
fn our_proofs_and_theirs_are_the_same_also_over_several_tiles() {
    let entries: Vec<_> = (0..700u32).map(|n| n.to_be_bytes().to_vec()).collect();
    let leaves = Leaves::of(&entries);
    let folder = tempfile::tempdir().unwrap();
    publish(folder.path(), &entries, b"");
    let Head { size, root } = leaves.head(700);
    let tiles = Folder(folder.path());
    let hashes = TileHashReader::new(size, Hash(root.0), &tiles);
    for index in [0, 1, 255, 256, 400, 511, 512, 698, 699] {
        let theirs: Vec<_> =
            prove_record(size, index, &hashes).unwrap().into_iter().map(|hash| Digest(hash.0)).collect();
        let at = usize::try_from(index).unwrap();
        assert_eq!(theirs, leaves.inclusion(at, 700));
        ephor_tlog::proof::check_inclusion(leaves.0[at], index, &theirs, leaves.head(700)).unwrap();
        let old = index + 1;
        let theirs: Vec<_> = prove_tree(size, old, &hashes).unwrap().into_iter().map(|hash| Digest(hash.0)).collect();
        let before = leaves.head(at + 1);
        ephor_tlog::proof::check_consistency(before, leaves.head(700), &leaves.consistency(at + 1, 700)).unwrap();
        let ours: Vec<_> = leaves.consistency(at + 1, 700).into_iter().map(|hash| Hash(hash.0)).collect();
        check_tree(&ours, size, Hash(root.0), old, Hash(before.root.0)).unwrap();
        assert_eq!(theirs, leaves.consistency(at + 1, 700));
    }
}

#[test]
fn the_public_reader_of_notes_agrees_on_what_is_a_note() {
    let history = History::of(&["one"]);
    let (_, good) = history.last();
    assert_eq!(signed_note::Note::from_bytes(good).unwrap().to_bytes(), Note::parse(good).unwrap().to_bytes());
    assert!(Checkpoint::parse(good).is_ok());
    for at in 0..good.len() {
        let mut other = good.clone();
        other[at] ^= 1;
        // We accept one form alone, so that ours is the narrower of the two.
        if Note::parse(&other).is_ok() {
            assert!(signed_note::Note::from_bytes(&other).is_ok(), "byte {at}");
        }
    }
}
