//! Small logs with checkpoints at several sizes, and their hashes.

use std::{convert::Infallible, path::Path};

use ed25519_dalek::{Signer as _, SigningKey};
use ephor_base::Digest;
use ephor_chain::read;
use ephor_tlog::{
    EntryProof, Head, KnownLog, Note, SignatureLine, Tree,
    proof::{Subtrees, consistency, inclusion},
};

use super::{World, block_on, memory::Memory, message};

/// Hashes of leaves, as a source of subtrees.
#[derive(Clone)]
pub(crate) struct Leaves(pub(crate) Vec<Digest>);

impl Leaves {
    pub(crate) fn of(entries: &[Vec<u8>]) -> Self {
        Self(entries.iter().map(|entry| ephor_tlog::tree::leaf_hash(entry)).collect())
    }

    pub(crate) fn head(&self, size: usize) -> Head {
        Head { size: size as u64, root: root(&self.0[..size]) }
    }

    pub(crate) fn consistency(&self, old: usize, new: usize) -> Vec<Digest> {
        consistency(&mut self.clone(), old as u64, new as u64).unwrap()
    }

    pub(crate) fn inclusion(&self, index: usize, size: usize) -> Vec<Digest> {
        inclusion(&mut self.clone(), index as u64, size as u64).unwrap()
    }
}

impl Subtrees for Leaves {
    type Error = Infallible;
    fn subtree(&mut self, level: u8, index: u64) -> Result<Digest, Infallible> {
        let (length, index) = (1usize << level, usize::try_from(index).unwrap());
        Ok(root(&self.0[index * length..(index + 1) * length]))
    }
}

pub(crate) fn root(leaves: &[Digest]) -> Digest {
    let mut tree = Tree::new();
    leaves.iter().for_each(|leaf| tree.push(*leaf));
    tree.root()
}

/// A log of Ephor that was stopped and started again after each message.
pub(crate) struct History {
    pub(crate) world: World,
    /// The canonical bytes of the entries.
    pub(crate) entries: Vec<Vec<u8>>,
    /// Each size that has a checkpoint, and the checkpoint.
    pub(crate) checkpoints: Vec<(usize, Vec<u8>)>,
}

impl History {
    pub(crate) fn of(texts: &[&str]) -> Self {
        let memory = Memory::default();
        let world = World::new(memory.files(), Path::new("/home"));
        let mut checkpoints = Vec::new();
        for (number, text) in (1..).zip(texts) {
            let (log, _) = world.open().unwrap();
            block_on(log.append(message(number, text))).unwrap();
            block_on(log.close()).unwrap();
            let bytes = memory.get(&world.config.folder.join("checkpoint"));
            let head = ephor_tlog::Checkpoint::parse(&bytes).unwrap().head;
            checkpoints.push((usize::try_from(head.size).unwrap(), bytes));
        }
        let entries = read(&world.config.folder, &world.files).map(|stored| stored.unwrap().entry.to_bytes()).collect();
        Self { world, entries, checkpoints }
    }

    pub(crate) fn leaves(&self) -> Leaves {
        Leaves::of(&self.entries)
    }

    pub(crate) fn known(&self) -> KnownLog {
        KnownLog::of(&self.world.verifier()).unwrap()
    }

    pub(crate) fn last(&self) -> &(usize, Vec<u8>) {
        self.checkpoints.last().unwrap()
    }

    /// The proof that an entry is under the last checkpoint.
    pub(crate) fn prove(&self, index: usize) -> EntryProof {
        let (size, checkpoint) = self.last();
        EntryProof {
            extra: Some(self.entries[index].clone()),
            index: index as u64,
            path: self.leaves().inclusion(index, *size),
            checkpoint: Note::parse(checkpoint).unwrap(),
        }
    }
}

/// A log of anybody, with an Ed25519 key alone.
pub(crate) struct Plain {
    key: SigningKey,
    pub(crate) origin: String,
}

impl Plain {
    pub(crate) fn new(seed: u8, origin: &str) -> Self {
        Self { key: SigningKey::from_bytes(&[seed; 32]), origin: origin.to_owned() }
    }

    fn typed_key(&self) -> Vec<u8> {
        [&[1], self.key.verifying_key().as_bytes().as_slice()].concat()
    }

    fn id(&self) -> [u8; 4] {
        let hash = Digest::of_parts(&[self.origin.as_bytes(), b"\n", &self.typed_key()]).0;
        hash[..4].try_into().unwrap()
    }

    pub(crate) fn verifier_key(&self) -> String {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        let id: String = self.id().iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}+{id}+{}", self.origin, STANDARD.encode(self.typed_key()))
    }

    pub(crate) fn known(&self) -> KnownLog {
        KnownLog::plain(&self.origin, self.verifier_key().parse().unwrap()).unwrap()
    }

    pub(crate) fn sign(&self, head: Head) -> Vec<u8> {
        self.sign_text(self.text(head))
    }

    pub(crate) fn text(&self, head: Head) -> String {
        use base64::{Engine as _, engine::general_purpose::STANDARD};
        format!("{}\n{}\n{}\n", self.origin, head.size, STANDARD.encode(head.root.0))
    }

    pub(crate) fn sign_text(&self, text: String) -> Vec<u8> {
        let signature = self.key.sign(text.as_bytes()).to_bytes().to_vec();
        let line = SignatureLine { name: self.origin.clone(), id: self.id(), signature };
        Note { text, signatures: vec![line] }.to_bytes()
    }
}
