//! The threads of `hnsw_rs`: one, named, begun by the caller, and ended with its owners. By itself in this program, since
//! it counts the threads of all of it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    thread::{Builder, JoinHandle},
};

use ephor_base::{Confidentiality, Digest, Integrity, Label, Seq, SessionId, Source, Timestamp};
use ephor_memory::{
    chunks::{Chunk, ChunkId, TextKind, TextSource},
    entry::{EntryRef, Origin},
    index::{
        Index,
        embed::{Embedder, EmbedderName},
        hnsw::{CacheState, HnswParameters, Pool},
        vectors::{Dimension, Vector},
    },
};

/// The names of the threads of this process.
fn threads() -> BTreeSet<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let name = |task: &std::path::PathBuf| std::fs::read_to_string(task.join("comm")).unwrap().trim().to_owned();
    tasks.map(|task| (task.display().to_string(), name(&task))).collect()
}

fn chunk(id: u64) -> Chunk {
    let digest = Digest([0; 32]);
    Chunk {
        id: ChunkId { entry: Seq(id), piece: 0 },
        source: TextSource::Entry(EntryRef { origin: Origin(digest), seq: Seq(id), leaf: digest }),
        kind: TextKind::Message,
        session: SessionId([0; 16]),
        agent: None,
        time: Timestamp(0),
        label: Label::new(Source::User, Integrity::Trusted, Confidentiality::Public),
        range: 0..1,
        text: "x".into(),
    }
}

#[test]
fn the_one_thread_of_the_cache_ends_with_its_owners() {
    let before = threads();
    let started: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
    let handles = Arc::clone(&started);
    let pool = Pool::new(move |name, run| {
        handles.lock().unwrap().push(Builder::new().name(name).spawn(run)?);
        Ok(())
    })
    .unwrap();
    let embedder = Embedder::asked(EmbedderName::new("numbers").unwrap(), Dimension::new(4).unwrap(), 0).unwrap();
    // `hnsw_rs` clears a graph on several threads from some thousand points on.
    let mut index = Index::new(embedder, HnswParameters::new(4, 8, 8).unwrap().exact_up_to(5_000).unwrap(), pool);
    for id in 0..8_000 {
        let number = |number: u64| number as f32;
        let vector = Vector::quantised(&[number(id % 97), number(id / 97), number(id * 31 % 101), 127.0]).unwrap();
        index.set_vector(&chunk(id), &vector).unwrap();
    }
    while index.advance(5_000) != CacheState::Ready {}
    let question = Vector::quantised(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    let found = index.nearest(&question, 5, Confidentiality::Public, |_| true).unwrap();
    assert!(found.len() >= 5);
    let new: Vec<String> = threads().difference(&before).map(|(_, name)| name.clone()).collect();
    assert_eq!(new, ["ephor-hnsw"], "while it is used");
    drop(index);
    // They end, or this waits for ever; and clearing the graph began no others.
    started.lock().unwrap().drain(..).for_each(|thread| thread.join().unwrap());
    // A joined thread may be listed for a moment more, until the kernel has reaped it.
    while threads().difference(&before).count() > 0 {
        std::thread::yield_now();
    }
}
