//! The threads of `hnsw_rs`: one, named, begun by the caller, and ended with its owners. By itself in this program, since
//! it counts the threads of all of it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
    thread::{Builder, JoinHandle},
};

use ephor_memory::{
    chunks::ChunkId,
    index::{
        Index,
        hnsw::{CacheState, EXACT_UP_TO, HnswParameters, Pool},
        vectors::{Dimension, Vector},
    },
};

/// The names of the threads of this process.
fn threads() -> BTreeSet<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let name = |task: &std::path::PathBuf| std::fs::read_to_string(task.join("comm")).unwrap().trim().to_owned();
    tasks.map(|task| (task.display().to_string(), name(&task))).collect()
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
    let mut index = Index::new(Dimension::new(4).unwrap(), HnswParameters::new(4, 8, 8).unwrap(), pool);
    for id in 0..=EXACT_UP_TO as u64 {
        let number = |step: u64| ((id * step) % 1_009) as f32 - 504.5;
        index.set_vector(ChunkId(id), &Vector::quantised(&[number(3), number(7), number(31), 100.0]).unwrap()).unwrap();
    }
    while index.advance(5_000) != CacheState::Ready {}
    let question = Vector::quantised(&[1.0, 2.0, 3.0, 4.0]).unwrap();
    assert_eq!(index.nearest(&question, 5, |_| true).unwrap().len(), 5);
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
