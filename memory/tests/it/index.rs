//! BM25, the built-in embedder, exact search and its cache.

use std::collections::BTreeMap;

use ephor_memory::{
    chunks::ChunkId,
    index::{
        Scored,
        bm25::Bm25,
        embed::HashedNgrams,
        hnsw::{BadParameters, CacheState, EXACT_UP_TO, HnswParameters},
        vectors::{Dimension, MOST_DIMENSION, Vector, VectorError, Vectors},
    },
};
use proptest::prelude::*;

use crate::common::{Dice, index};

fn ids(scored: &[Scored]) -> Vec<u64> {
    scored.iter().map(|scored| scored.id.0).collect()
}

#[test]
fn bm25_gives_the_numbers_of_the_formula() {
    let mut index = Bm25::default();
    for (id, text) in ["the cat sat", "The dog sat on the mat", "Birds fly"].into_iter().enumerate() {
        assert!(index.add(ChunkId(id as u64), text));
    }
    assert!(!index.add(ChunkId(0), "again"));
    // By hand: N = 3, lengths 3, 6, 2, mean 11/3; "cat" in one, "the" in two chunks, once and twice.
    let idf = |n: f64| (1.0 + (3.0 - n + 0.5) / (n + 0.5)).ln();
    let part =
        |n: f64, count: f64, length: f64| idf(n) * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / (11.0 / 3.0)));
    let scores = index.scores("CAT, the cat!", |_| true);
    let expected = [(0, part(1.0, 1.0, 3.0) + part(2.0, 1.0, 3.0)), (1, part(2.0, 2.0, 6.0))];
    assert_eq!(scores.len(), 2);
    for (id, score) in expected {
        assert!((f64::from(scores[&ChunkId(id)]) - score).abs() < 1e-5, "{id}: {scores:?}, {score}");
    }
    assert_eq!(index.scores("the", |id| id != ChunkId(1)).into_keys().collect::<Vec<_>>(), [ChunkId(0)]);
    assert!(index.scores("", |_| true).is_empty());
}

#[test]
fn words_are_those_of_unicode() {
    let mut index = Bm25::default();
    index.add(ChunkId(0), "Größe der STRASSE, naïve café — 東京タワー can't 3.14");
    for word in ["größe", "strasse", "naïve", "CAFÉ", "東", "can't", "3.14"] {
        assert_eq!(index.frequency(word), 1, "{word}");
    }
    assert_eq!(index.frequency("—"), 0);
}

proptest! {
    #[test]
    fn an_index_does_not_remember_what_was_removed(
        texts in prop::collection::vec("[a-d]{1,2}( [a-d]{1,2}){0,8}", 1..30),
        gone in prop::collection::vec(any::<bool>(), 30),
        question in "[a-d]{1,2}( [a-d]{1,2}){0,4}",
    ) {
        let (mut one, mut other) = (Bm25::default(), Bm25::default());
        texts.iter().enumerate().for_each(|(id, text)| { one.add(ChunkId(id as u64), text); });
        for (id, text) in texts.iter().enumerate().rev() {
            if gone[id] {
                prop_assert!(one.remove(ChunkId(id as u64), text));
            } else {
                other.add(ChunkId(id as u64), text);
            }
        }
        let (a, b) = (one.scores(&question, |_| true), other.scores(&question, |_| true));
        prop_assert_eq!(&a, &b);
        prop_assert!(a.values().all(|score| *score > 0.0));
        prop_assert!(a.keys().all(|id| !gone[usize::try_from(id.0).unwrap()]));
    }

    #[test]
    fn exact_search_finds_what_a_look_at_each_finds(
        rows in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 6), 1..40),
        gone in prop::collection::vec(any::<bool>(), 40),
        question in prop::collection::vec(-1.0_f32..1.0, 6),
        most in 0_usize..12,
    ) {
        let mut vectors = Vectors::new(Dimension::new(6).unwrap());
        let quantised = |numbers: &[f32]| Vector::quantised(numbers).ok();
        let Some(question) = quantised(&question) else { return Ok(()) };
        let mut alive: BTreeMap<u64, Vector> = BTreeMap::new();
        for (id, row) in (0_u64..).zip(&rows) {
            if let Some(vector) = quantised(row) {
                vectors.add(ChunkId(id), &vector).unwrap();
                alive.insert(id, vector);
            }
        }
        for (id, is_gone) in (0_u64..).zip(&gone) {
            if *is_gone {
                prop_assert_eq!(vectors.remove(ChunkId(id)), alive.remove(&id).is_some());
            }
        }
        let allows = |id: ChunkId| !id.0.is_multiple_of(3);
        let mut expected: Vec<(f32, u64)> = alive.iter().filter(|(id, _)| *id % 3 != 0).map(|(id, v)| (question.cosine(v), *id)).collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        expected.truncate(most);
        let found = vectors.nearest(&question, most, allows).unwrap();
        prop_assert_eq!(ids(&found), expected.iter().map(|(_, id)| *id).collect::<Vec<_>>());
        prop_assert_eq!(vectors.len(), alive.len());
        for (id, vector) in alive {
            prop_assert_eq!(vectors.vector(ChunkId(id)), Some(vector));
        }
    }
}

#[test]
fn a_vector_is_a_direction_of_finite_numbers() {
    assert_eq!(Vector::quantised(&[0.0, -0.0]), Err(VectorError::Zero));
    assert_eq!(Vector::quantised(&[1.0, f32::NAN]), Err(VectorError::NotFinite));
    assert_eq!(Vector::quantised(&[f32::INFINITY]), Err(VectorError::NotFinite));
    assert!(matches!(Vector::quantised(&[]), Err(VectorError::Dimension { found: 0, .. })));
    assert!(Dimension::new(MOST_DIMENSION + 1).is_err());
    let smallest = Vector::quantised(&[f32::from_bits(1), 0.0]).unwrap();
    assert_eq!(smallest.numbers(), [127, 0]);
    assert_eq!(Vector::quantised(&[f32::MAX, f32::MIN, 0.0]).unwrap().numbers(), [127, -127, 0]);
    let mut vectors = Vectors::new(Dimension::new(2).unwrap());
    vectors.add(ChunkId(1), &smallest).unwrap();
    assert_eq!(vectors.add(ChunkId(1), &smallest), Err(VectorError::Taken(ChunkId(1))));
    let other = Vector::quantised(&[1.0]).unwrap();
    assert_eq!(vectors.add(ChunkId(2), &other), Err(VectorError::Dimension { found: 1, expected: 2 }));
    assert!(vectors.nearest(&other, 1, |_| true).is_err());
}

#[test]
fn the_built_in_embedder_knows_spelling_and_what_is_rare() {
    let mut embedder = HashedNgrams::new(Dimension::new(384).unwrap());
    let texts = [
        "We deploy the billing service on Fridays.",
        "The meeting about the garden was moved.",
        "The meeting about the budget was moved.",
        "The meeting about the holidays was moved.",
    ];
    texts.iter().for_each(|text| embedder.add(text));
    let near = |question: &str, text: &str| embedder.question(question).unwrap().cosine(&embedder.chunk(text).unwrap());
    assert!(near("deploying billing services", texts[0]) > near("deploying billing services", texts[1]) + 0.2);
    // "meeting" and "moved" are in three of four, "garden" in one.
    assert!(near("meeting moved garden", texts[1]) > near("meeting moved garden", texts[2]));
    assert!(near(texts[1], texts[1]) > 0.8);
    assert_eq!(embedder.chunk("— … !"), None);
    // The vector of a chunk follows from its text alone.
    assert_eq!(HashedNgrams::new(Dimension::new(384).unwrap()).chunk(texts[0]), embedder.chunk(texts[0]));
    let before = embedder.question("garden");
    embedder.add("garden garden");
    embedder.remove("garden garden");
    assert_eq!(embedder.question("garden"), before);
}

#[test]
fn parameters_that_would_end_the_process_are_refused() {
    assert_eq!(HnswParameters::new(3, 200, 64), Err(BadParameters::Connections(3)));
    assert_eq!(HnswParameters::new(257, 300, 64), Err(BadParameters::Connections(257)));
    assert_eq!(HnswParameters::new(16, 15, 64), Err(BadParameters::Construction(15)));
    assert_eq!(HnswParameters::new(16, 1_025, 64), Err(BadParameters::Construction(1_025)));
    assert_eq!(HnswParameters::new(16, 200, 0), Err(BadParameters::Search(0)));
    assert!(HnswParameters::new(64, 1_024, 1_024).is_ok());
}

/// Vectors that lie in heaps, as those of texts do.
fn heaped(dice: &mut Dice, dimension: usize) -> Vector {
    let mut centre = Dice(1 + dice.roll() % 200);
    let numbers: Vec<f32> = (0..dimension).map(|_| (centre.unit() - 0.5 + 0.5 * (dice.unit() - 0.5)) as f32).collect();
    Vector::quantised(&numbers).unwrap()
}

#[test]
fn the_cache_is_built_beside_the_search_and_never_finds_what_is_gone() {
    const WIDTH: usize = 16;
    let mut dice = Dice(42);
    let parameters = HnswParameters::new(8, 40, 64).unwrap();
    let mut index = ephor_memory::index::Index::new(Dimension::new(WIDTH).unwrap(), parameters, crate::common::pool());
    let count = EXACT_UP_TO as u64 + 500;
    for id in 0..count {
        index.set_vector(ChunkId(id), &heaped(&mut dice, WIDTH)).unwrap();
    }
    let questions: Vec<Vector> = (0..40).map(|_| heaped(&mut dice, WIDTH)).collect();
    let exact = |index: &ephor_memory::index::Index, question: &Vector| {
        ids(&index.vectors().nearest(question, 10, |_| true).unwrap())
    };
    let nearest =
        |index: &ephor_memory::index::Index, question: &Vector| ids(&index.nearest(question, 10, |_| true).unwrap());
    let recall = |index: &ephor_memory::index::Index| {
        let hits = questions.iter().map(|question| {
            let exact = exact(index, question);
            nearest(index, question).iter().filter(|id| exact.contains(id)).count()
        });
        hits.sum::<usize>() as f64 / (10 * questions.len()) as f64
    };
    // While it is built, answers are exact.
    assert_eq!(index.advance(4_000), CacheState::Building { left: usize::try_from(count).unwrap() - 4_000 });
    assert!((recall(&index) - 1.0).abs() < 1e-9);
    while index.advance(4_000) != CacheState::Ready {}
    assert!(recall(&index) > 0.95, "{}", recall(&index));
    // What comes now is found before the graph holds it, and what goes is gone.
    let new = heaped(&mut dice, WIDTH);
    index.set_vector(ChunkId(count), &new).unwrap();
    assert_eq!(nearest(&index, &new)[0], count);
    for id in 0..300 {
        index.remove(&chunk(id));
    }
    for question in &questions {
        assert!(nearest(&index, question).iter().all(|id| *id >= 300));
    }
    assert!(recall(&index) > 0.95);
    // A filter that leaves little is answered by the exact search.
    let only = |id: ChunkId| id.0 % 1_000 == 999;
    let found = index.nearest(&new, 10, only).unwrap();
    assert_eq!(ids(&found), ids(&index.vectors().nearest(&new, 10, only).unwrap()));
    // So is one that leaves some of what the graph finds, but not as many as were asked for.
    for question in &questions {
        let some = |id: ChunkId| id.0 % 20 == 19;
        let found = index.nearest(question, 10, some).unwrap();
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|scored| some(scored.id)));
    }
    // When there are few again, all are searched.
    for id in 300..600 {
        index.remove(&chunk(id));
    }
    assert_eq!(index.advance(1), CacheState::Exact);
    assert!((recall(&index) - 1.0).abs() < 1e-9);
}

#[test]
fn the_cache_is_built_anew_when_a_quarter_of_it_is_dead() {
    const WIDTH: usize = 8;
    let mut dice = Dice(7);
    let parameters = HnswParameters::new(4, 8, 32).unwrap();
    let mut index = ephor_memory::index::Index::new(Dimension::new(WIDTH).unwrap(), parameters, crate::common::pool());
    let most = EXACT_UP_TO as u64;
    let all = most + most / 2;
    for id in 0..all {
        index.set_vector(ChunkId(id), &heaped(&mut dice, WIDTH)).unwrap();
    }
    while index.advance(5_000) != CacheState::Ready {}
    let third = all * 3 / 10;
    (0..third).for_each(|id| index.remove(&chunk(id)));
    let left = usize::try_from(all - third).unwrap();
    assert_eq!(index.advance(0), CacheState::Building { left });
    let question = heaped(&mut dice, WIDTH);
    assert!(ids(&index.nearest(&question, 10, |_| true).unwrap()).iter().all(|id| *id >= third));
    while index.advance(5_000) != CacheState::Ready {}
    assert!(ids(&index.nearest(&question, 10, |_| true).unwrap()).iter().all(|id| *id >= third));
}

fn chunk(id: u64) -> ephor_memory::chunks::Chunk {
    use ephor_memory::chunks::{Chunk, TextKind, TextSource};
    Chunk {
        id: ChunkId(id),
        source: TextSource::Entry(crate::common::id(id)),
        kind: TextKind::Message,
        session: None,
        agent: None,
        time: crate::common::time(id),
        label: crate::common::TRUSTED,
        range: 0..1,
        text: "x".into(),
    }
}

#[test]
fn words_and_vectors_of_a_chunk_go_together() {
    let mut index = index(384);
    let text = "The budget meeting";
    let chunk = ephor_memory::chunks::Chunk { text: text.into(), ..chunk(3) };
    let before = index.embedder().question(text);
    index.add(&chunk);
    assert_ne!(
        index.embedder().question("budget yacht"),
        HashedNgrams::new(Dimension::new(384).unwrap()).question("budget yacht")
    );
    let vector = index.embedder().chunk(text).unwrap();
    index.set_vector(chunk.id, &vector).unwrap();
    assert_eq!(index.scores("budget", |_| true).len(), 1);
    index.remove(&chunk);
    assert!(index.scores("budget", |_| true).is_empty());
    assert!(index.nearest(&vector, 5, |_| true).unwrap().is_empty());
    assert_eq!(index.embedder().question(text), before, "nothing of it is counted any more");
    assert_eq!(
        index.embedder().question("budget yacht"),
        HashedNgrams::new(Dimension::new(384).unwrap()).question("budget yacht")
    );
}
