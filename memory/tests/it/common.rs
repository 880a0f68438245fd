//! Entries, texts and memories to begin with, and threads that are waited for.

use std::sync::OnceLock;

use ephor_base::{Confidentiality, Digest, Integrity, Label, Seat, Seq, SessionId, Source, Timestamp};
use ephor_memory::{
    chunks::{ChunkId, Chunks, Material, TextKind, TextSource},
    entry::{Entry, EntryKind, EntryRef, Moment, Origin},
    graph::{Capacity, EdgeKind, Evidence, Graph, Link},
    index::{
        Index,
        embed::{Embedder, EmbedderName, Embedding},
        hnsw::{HnswParameters, Pool},
        vectors::{Dimension, Vector},
    },
    recall::Memory,
};

pub(crate) const OWN: Origin = Origin(Digest([7; 32]));
pub(crate) const OTHER: Origin = Origin(Digest([8; 32]));
pub(crate) const DIMENSION: usize = 384;

pub(crate) fn id(seq: u64) -> EntryRef {
    EntryRef { origin: OWN, seq: Seq(seq), leaf: Digest::of(&seq.to_be_bytes()) }
}

pub(crate) fn foreign(seq: u64) -> EntryRef {
    EntryRef { origin: OTHER, seq: Seq(seq), leaf: Digest::of(&[9]) }
}

pub(crate) fn session(number: u8) -> SessionId {
    SessionId([number; 16])
}

pub(crate) fn time(seq: u64) -> Timestamp {
    Timestamp(1_795_000_000_000_000 + seq * 1_000_000)
}

/// Entry `seq` of the node's own log.
pub(crate) fn entry(seq: u64, in_session: u8) -> Entry {
    let kind = EntryKind::ALL[usize::try_from(seq).unwrap() % EntryKind::ALL.len()];
    Entry {
        id: id(seq),
        moment: Moment::own(Seq(seq)),
        kind,
        session: session(in_session),
        agent: Seat::root("node").child("agents").child(&format!("a{in_session}")),
        time: time(seq),
        confidentiality: Confidentiality::Internal,
    }
}

pub(crate) fn link(from: EntryRef, to: EntryRef, kind: EdgeKind) -> Link {
    Link { from, to, kind, shown_by: Evidence::one(to.seq) }
}

pub(crate) fn graph() -> Graph {
    Graph::new(OWN, Capacity::new(100_000, 200_000).unwrap())
}

pub(crate) const TRUSTED: Label = Label::new(Source::User, Integrity::Trusted, Confidentiality::Internal);
pub(crate) const UNTRUSTED: Label = Label::new(Source::Tool, Integrity::Untrusted, Confidentiality::Internal);
pub(crate) const SECRET: Label = Label::new(Source::Operator, Integrity::Trusted, Confidentiality::Confidential);

/// What entry `seq` says.
pub(crate) fn material(seq: u64, in_session: u8, label: Label, body: &str) -> Material {
    Material {
        source: source(seq),
        kind: TextKind::Message,
        agent: Some(entry(seq, in_session).agent),
        label,
        body: body.to_owned(),
    }
}

pub(crate) fn source(seq: u64) -> TextSource {
    TextSource::Entry(id(seq))
}

/// A piece of what entry `seq` says.
pub(crate) fn piece(seq: u64, piece: u16) -> ChunkId {
    ChunkId { entry: Seq(seq), piece }
}

/// The pool of all tests. Its thread ends with the program; `threads.rs` looks at how one ends before.
pub(crate) fn pool() -> Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    let spawn = |name, run: Box<dyn FnOnce() + Send>| std::thread::Builder::new().name(name).spawn(run).map(drop);
    POOL.get_or_init(|| Pool::new(spawn).unwrap()).clone()
}

pub(crate) fn built_in() -> Embedder {
    Embedder::built_in(Dimension::new(DIMENSION).unwrap())
}

/// An embedder that is asked, with a floor of 0.4. What it answers in tests is what the built-in one makes.
pub(crate) fn asked() -> Embedder {
    Embedder::asked(EmbedderName::new("letters/1").unwrap(), Dimension::new(DIMENSION).unwrap(), 400).unwrap()
}

pub(crate) fn embedding(by: &Embedder, vector: Vector) -> Embedding {
    Embedding { by: by.name().clone(), vector }
}

pub(crate) fn index(embedder: Embedder) -> Index {
    Index::new(embedder, HnswParameters::default(), pool())
}

pub(crate) fn memory_by(embedder: Embedder) -> Memory {
    Memory::new(graph(), Chunks::new(100_000), index(embedder))
}

pub(crate) fn memory() -> Memory {
    memory_by(built_in())
}

/// Numbers that look random and are the same each time (`xorshift64*`).
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0 to one less than `below`.
    pub(crate) fn below(&mut self, below: usize) -> usize {
        usize::try_from(self.roll() >> 33).unwrap() % below
    }

    /// From 0 to 1.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.roll() >> 11) as f64 / (1_u64 << 53) as f64
    }
}
