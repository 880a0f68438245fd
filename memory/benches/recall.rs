//! Search among many vectors: recall@10 against exact search, time beside bare `hnsw_rs`, memory.
//!
//! `cargo bench -p ephor-memory --bench recall -- [VECTORS]`, 100,000 by default. The vectors lie in heaps of a hundred, as those of texts
//! do. The graph is built from a tenth of them on, so that it is measured. Times are medians; what counts is their ratio within one run.
#![expect(clippy::expect_used, reason = "a bench stops at the first surprise")]

use std::{collections::BTreeSet, hint::black_box, time::Instant};

use ephor_base::{Confidentiality, Digest, Integrity, Label, Seq, SessionId, Source, Timestamp};
use ephor_memory::{
    chunks::{Chunk, ChunkId, TextKind, TextSource},
    entry::{EntryRef, Origin},
    index::{
        Index, Scored,
        embed::{Embedder, EmbedderName},
        hnsw::{CacheState, HnswParameters, Pool},
        vectors::{Dimension, Vector},
    },
};
use hnsw_rs::prelude::{DistL2, Hnsw};

const DIMENSION: usize = 384;
const QUESTIONS: usize = 300;
const MOST: usize = 10;
const READER: Confidentiality = Confidentiality::Internal;
/// How many vectors lie around one centre.
const HEAP: u64 = 100;

/// `xorshift64*`.
struct Dice {
    state: u64,
    heaps: f32,
}

impl Dice {
    fn unit(&mut self) -> f32 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40) as f32 / (1_u32 << 24) as f32
    }

    /// One of the centres, with noise of the same size around it.
    fn vector(&mut self) -> Vec<f32> {
        let mut centre = Self { state: 1 + (self.unit() * self.heaps) as u64, ..*self };
        (0..DIMENSION).map(|_| centre.unit() - 0.5 + self.unit() - 0.5).collect()
    }
}

fn unit(vector: &[f32]) -> Vec<f32> {
    let norm = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    vector.iter().map(|x| x / norm).collect()
}

/// The resident memory of this process, in MB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is there");
    line.split_whitespace().next().and_then(|kb| kb.parse::<f64>().ok()).expect("a number") / 1_000.0
}

/// The median time of a question in microseconds, and what each found.
fn asked<T>(questions: &[T], mut ask: impl FnMut(&T) -> Vec<u64>) -> (f64, Vec<Vec<u64>>) {
    let mut times = Vec::new();
    let mut found = Vec::new();
    for question in questions {
        let start = Instant::now();
        found.push(black_box(ask(question)));
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    times.sort_by(f64::total_cmp);
    (times.get(times.len() / 2).copied().unwrap_or_default(), found)
}

fn hits(found: &[Vec<u64>], exact: &[Vec<u64>]) -> f64 {
    let hits = found.iter().zip(exact).map(|(found, exact)| {
        let exact: BTreeSet<&u64> = exact.iter().collect();
        found.iter().filter(|id| exact.contains(id)).count()
    });
    hits.sum::<usize>() as f64 / (MOST * exact.len()) as f64
}

fn ids(scored: Vec<Scored>) -> Vec<u64> {
    scored.into_iter().map(|scored| scored.id.entry.0).collect()
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
        label: Label::new(Source::User, Integrity::Trusted, READER),
        range: 0..0,
        text: "".into(),
    }
}

fn report(name: &str, time: f64, recall: f64) {
    println!("{name:<46} {time:>9.0} µs a question   recall@10 {recall:.4}");
}

fn main() {
    let count = std::env::args().skip(1).find_map(|word| word.parse().ok()).unwrap_or(100_000_u64);
    let dice = |state| Dice { state, heaps: (count / HEAP).max(1) as f32 };
    let mut of_questions = dice(1);
    let questions: Vec<Vec<f32>> = (0..QUESTIONS).map(|_| of_questions.vector()).collect();
    let asked_for: Vec<Vector> = questions.iter().map(|q| Vector::quantised(q).expect("a direction")).collect();
    let pool = Pool::new(|name, run| std::thread::Builder::new().name(name).spawn(run).map(drop)).expect("a pool");
    let built_from = usize::try_from(count / 10).expect("fits").max(1);
    let parameters = HnswParameters::default().exact_up_to(built_from).expect("few enough");
    println!("{count} vectors of {DIMENSION}, {parameters:?}");

    let empty = resident();
    let (name, dimension) = (EmbedderName::new("heaps").expect("short"), Dimension::new(DIMENSION).expect("fits"));
    let mut index = Index::new(Embedder::asked(name, dimension, 0).expect("one"), parameters, pool);
    let mut rows = dice(2);
    for id in 0..count {
        let vector = Vector::quantised(&rows.vector()).expect("a direction");
        index.set_vector(&chunk(id), &vector).expect("it is new");
    }
    println!("exact, int8: {:.0} MB", resident() - empty);
    let all = |index: &Index, question: &Vector| {
        ids(index.vectors(READER).expect("there").nearest(question, MOST, |_| true).expect("fits"))
    };
    let near = |index: &Index, question: &Vector| ids(index.nearest(question, MOST, READER, |_| true).expect("fits"));
    let (time, exact) = asked(&asked_for, |question| all(&index, question));
    report("exact", time, 1.0);

    let start = Instant::now();
    while index.advance(1_000) != CacheState::Ready {}
    println!(
        "with HNSW: {:.0} MB, {:.0} vectors put in a second",
        resident() - empty,
        count as f64 / start.elapsed().as_secs_f64()
    );
    let (ours, found) = asked(&asked_for, |question| near(&index, question));
    report("ours", ours, hits(&found, &exact));

    let bare = Hnsw::<f32, DistL2>::new(16, usize::try_from(count).expect("fits"), 16, 200, DistL2 {});
    let (mut rows, start) = (dice(2), Instant::now());
    for id in 0..count {
        bare.insert((&unit(&rows.vector()), usize::try_from(id).expect("fits")));
    }
    println!("bare hnsw_rs, f32: {:.0} vectors put in a second", count as f64 / start.elapsed().as_secs_f64());
    let unit_questions: Vec<Vec<f32>> = questions.iter().map(|q| unit(q)).collect();
    let (theirs, found) = asked(&unit_questions, |question| {
        bare.search(question, MOST, 96).into_iter().map(|neighbour| neighbour.d_id as u64).collect()
    });
    report("bare hnsw_rs, f32", theirs, hits(&found, &exact));
    println!("ours / bare: {:.2}", ours / theirs);

    for id in (0..count).filter(|id| id % 10 < 3) {
        index.remove(&chunk(id));
    }
    let (_, exact) = asked(&asked_for, |question| all(&index, question));
    let (time, found) = asked(&asked_for, |question| near(&index, question));
    report("ours, 30 % deleted, before the rebuild", time, hits(&found, &exact));
    let dead = found.iter().flatten().filter(|id| *id % 10 < 3).count();
    println!("deleted ones found: {dead}");

    // Searching between insertions: the graph of before, and the new one by one.
    let mut rows = dice(3);
    for id in count..count + 200 {
        index.set_vector(&chunk(id), &Vector::quantised(&rows.vector()).expect("a direction")).expect("it is new");
    }
    let (_, exact) = asked(&asked_for, |question| all(&index, question));
    let (time, found) = asked(&asked_for, |question| {
        index.advance(1);
        near(&index, question)
    });
    report("ours, one put in before each question", time, hits(&found, &exact));
}
