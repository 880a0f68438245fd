//! BM25, the built-in embedder, exact search and its cache.

use std::collections::BTreeMap;

use ephor_base::{Confidentiality, Label};
use ephor_memory::{
    chunks::{Chunk, ChunkId, TextKind},
    index::{
        Index, Scored,
        bm25::{Bm25, Scores},
        embed::{Asked, Counters, Embedder, EmbedderName},
        hnsw::{BadParameters, CacheState, EXACT_UP_TO, HnswParameters},
        vectors::{Dimension, MOST_DIMENSION, Vector, VectorError},
    },
};
use proptest::prelude::*;

use crate::common::{Dice, SECRET, TRUSTED, asked, built_in, entry, index, piece, pool, source, time};

const READER: Confidentiality = Confidentiality::Internal;

fn ids(scored: &[Scored]) -> Vec<u64> {
    scored.iter().map(|scored| scored.id.entry.0).collect()
}

fn chunk_of(seq: u64, label: Label, text: &str) -> Chunk {
    Chunk {
        id: piece(seq, 0),
        source: source(seq),
        kind: TextKind::Message,
        session: entry(seq, 0).session,
        agent: None,
        time: time(seq),
        label,
        range: 0..text.len(),
        text: text.into(),
    }
}

fn chunk(seq: u64) -> Chunk {
    chunk_of(seq, TRUSTED, "x")
}

/// The scores of one index by chunk.
fn scores(index: &Bm25, question: &str) -> BTreeMap<u64, f32> {
    let best = Scores::of(question, [index]).best(100, |_| true);
    best.into_iter().map(|scored| (scored.id.entry.0, scored.score)).collect()
}

/// An index of vectors alone.
fn of_width(width: usize, parameters: HnswParameters) -> Index {
    let embedder = Embedder::asked(EmbedderName::new("numbers").unwrap(), Dimension::new(width).unwrap(), 0).unwrap();
    Index::new(embedder, parameters, pool())
}

#[test]
fn bm25_gives_the_numbers_of_the_formula() {
    let mut index = Bm25::default();
    for (id, text) in ["the cat sat", "The dog sat on the mat", "Birds fly"].into_iter().enumerate() {
        assert!(index.add(piece(id as u64, 0), text));
    }
    assert!(!index.add(piece(0, 0), "again"));
    // By hand: N = 3, lengths 3, 6, 2, mean 11/3; "cat" in one, "the" in two chunks, once and twice.
    let idf = |n: f64| (1.0 + (3.0 - n + 0.5) / (n + 0.5)).ln();
    let part =
        |n: f64, count: f64, length: f64| idf(n) * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * length / (11.0 / 3.0)));
    let found = scores(&index, "CAT, the cat!");
    let expected = [(0, part(1.0, 1.0, 3.0) + part(2.0, 1.0, 3.0)), (1, part(2.0, 2.0, 6.0))];
    assert_eq!(found.len(), 2);
    for (id, score) in expected {
        assert!((f64::from(found[&id]) - score).abs() < 1e-5, "{id}: {found:?}, {score}");
    }
    let the = Scores::of("the", [&index]);
    assert_eq!(ids(&the.best(9, |id| id != piece(1, 0))), [0]);
    assert_eq!(ids(&the.best(1, |_| true)), [1]);
    assert!((the.score(piece(0, 0)) - scores(&index, "the")[&0]).abs() < 1e-9 && the.score(piece(2, 0)) == 0.0);
    assert!(scores(&index, "").is_empty());
    // Two indexes count as one.
    let (mut one, mut other) = (Bm25::default(), Bm25::default());
    one.add(piece(0, 0), "the cat sat");
    other.add(piece(1, 0), "The dog sat on the mat");
    other.add(piece(2, 0), "Birds fly");
    let both = Scores::of("CAT, the cat!", [&one, &other]);
    assert!(found.iter().all(|(id, score)| (both.score(piece(*id, 0)) - score).abs() < 1e-6));
}

#[test]
fn words_are_those_of_unicode() {
    let mut index = Bm25::default();
    index.add(piece(0, 0), "Größe der STRASSE, naïve café — 東京タワー can't 3.14");
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
        texts.iter().enumerate().for_each(|(id, text)| { one.add(piece(id as u64, 0), text); });
        for (id, text) in texts.iter().enumerate().rev() {
            if gone[id] {
                prop_assert!(one.remove(piece(id as u64, 0), text));
            } else {
                other.add(piece(id as u64, 0), text);
            }
        }
        // What comes later takes the places of what went.
        for index in [&mut one, &mut other] {
            index.add(piece(100, 0), &question);
        }
        let (a, b) = (scores(&one, &question), scores(&other, &question));
        prop_assert_eq!(&a, &b);
        prop_assert!(a.values().all(|score| *score > 0.0));
        prop_assert!(a.keys().all(|id| *id == 100 || !gone[usize::try_from(*id).unwrap()]));
    }

    #[test]
    fn exact_search_finds_what_a_look_at_each_finds(
        rows in prop::collection::vec(prop::collection::vec(-1.0_f32..1.0, 6), 1..40),
        gone in prop::collection::vec(any::<bool>(), 40),
        question in prop::collection::vec(-1.0_f32..1.0, 6),
        most in 0_usize..12,
    ) {
        let mut index = of_width(6, HnswParameters::default());
        let quantised = |numbers: &[f32]| Vector::quantised(numbers).ok();
        let Some(question) = quantised(&question) else { return Ok(()) };
        let mut alive: BTreeMap<u64, Vector> = BTreeMap::new();
        for (id, row) in (0_u64..).zip(&rows) {
            if let Some(vector) = quantised(row) {
                index.set_vector(&chunk(id), &vector).unwrap();
                alive.insert(id, vector);
            }
        }
        for (id, is_gone) in (0_u64..).zip(&gone) {
            if *is_gone {
                index.remove(&chunk(id));
                alive.remove(&id);
            }
        }
        let allows = |id: ChunkId| !id.entry.0.is_multiple_of(3);
        let mut expected: Vec<(f32, u64)> = alive.iter().filter(|(id, _)| *id % 3 != 0).map(|(id, v)| (cosine(&question, v), *id)).collect();
        expected.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        expected.truncate(most);
        let found = index.nearest(&question, most, READER, allows).unwrap();
        prop_assert_eq!(ids(&found), expected.iter().map(|(_, id)| *id).collect::<Vec<_>>());
        prop_assert_eq!(index.vectors(READER).map_or(0, |vectors| vectors.len()), alive.len());
        for (id, vector) in alive {
            prop_assert_eq!(index.vector(&chunk(id)), Some(vector));
        }
    }
}

fn cosine(a: &Vector, b: &Vector) -> f32 {
    let dot = |a: &Vector, b: &Vector| {
        a.numbers().iter().zip(b.numbers()).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum::<i32>() as f32
    };
    dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt())
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
    let mut index = of_width(2, HnswParameters::default());
    index.set_vector(&chunk(1), &smallest).unwrap();
    assert_eq!(index.set_vector(&chunk(1), &smallest), Err(VectorError::Taken(piece(1, 0))));
    let other = Vector::quantised(&[1.0]).unwrap();
    assert_eq!(index.set_vector(&chunk(2), &other), Err(VectorError::Dimension { found: 1, expected: 2 }));
    assert!(index.nearest(&other, 1, READER, |_| true).is_err());
}

#[test]
fn chunks_of_one_direction_take_one_place() {
    let mut index = of_width(2, HnswParameters::default());
    let (often, once) = (Vector::quantised(&[1.0, 0.1]).unwrap(), Vector::quantised(&[1.0, 0.5]).unwrap());
    (0..1_000).for_each(|id| index.set_vector(&chunk(id), &often).unwrap());
    index.set_vector(&chunk(1_000), &once).unwrap();
    let vectors = index.vectors(READER).unwrap();
    assert_eq!((vectors.len(), vectors.different()), (1_001, 2));
    let found = ids(&index.nearest(&often, 2, READER, |id| id.entry.0 >= 7).unwrap());
    assert_eq!(found, [7, 8, 9, 10, 1_000]);
    (0..999).for_each(|id| index.remove(&chunk(id)));
    assert_eq!(ids(&index.nearest(&often, 2, READER, |_| true).unwrap()), [999, 1_000]);
    index.remove(&chunk(999));
    assert_eq!(ids(&index.nearest(&often, 2, READER, |_| true).unwrap()), [1_000]);
    assert_eq!(index.vectors(READER).unwrap().different(), 1);
}

#[test]
fn the_built_in_embedder_knows_spelling_and_what_is_rare() {
    let mut counters = Counters::default();
    let texts = [
        "We deploy the billing service on Fridays.",
        "The meeting about the garden was moved.",
        "The meeting about the budget was moved.",
        "The meeting about the holidays was moved.",
    ];
    texts.iter().for_each(|text| counters.add(text));
    let question = |question: &str| Asked::of(question, [&counters]);
    let vector = |text: &str| question(text).vector(Dimension::new(384).unwrap());
    let near = |question: &str, text: &str| cosine(&vector(question).unwrap(), &built_in().chunk(text).unwrap());
    assert!(near("deploying billing services", texts[0]) > near("deploying billing services", texts[1]) + 0.2);
    // "meeting" and "moved" are in three of four, "garden" in one.
    assert!(near("meeting moved garden", texts[1]) > near("meeting moved garden", texts[2]));
    assert!(near(texts[1], texts[1]) > 0.8);
    // Coverage does not fall with the length of the text.
    let garden = question("meeting garden");
    let long = format!("{} {}", texts[1], "and then some more words".repeat(50));
    assert!((garden.coverage(texts[1]) - garden.coverage(&long)).abs() < 1e-6);
    assert!(garden.coverage(texts[1]) > garden.coverage(texts[2]) + 0.2);
    assert!((question(texts[1]).coverage(texts[1]) - 1.0).abs() < 1e-6 && question("").coverage(texts[1]) == 0.0);
    assert_eq!((built_in().chunk("— … !"), asked().chunk("text")), (None, None));
    let before = vector("garden");
    let mut other = Counters::default();
    texts[..2].iter().for_each(|text| other.add(text));
    let mut rest = Counters::default();
    texts[2..].iter().chain(&["garden garden"]).for_each(|text| rest.add(text));
    rest.remove("garden garden");
    let both = Asked::of("garden", [&other, &rest]);
    assert_eq!(both.vector(Dimension::new(384).unwrap()), before, "counters count together");
}

#[test]
fn parameters_that_would_end_the_process_are_refused() {
    assert_eq!(HnswParameters::new(3, 200, 64), Err(BadParameters::Connections(3)));
    assert_eq!(HnswParameters::new(257, 300, 64), Err(BadParameters::Connections(257)));
    assert_eq!(HnswParameters::new(16, 15, 64), Err(BadParameters::Construction(15)));
    assert_eq!(HnswParameters::new(16, 1_025, 64), Err(BadParameters::Construction(1_025)));
    assert_eq!(HnswParameters::new(16, 200, 0), Err(BadParameters::Search(0)));
    assert!(HnswParameters::new(64, 1_024, 1_024).is_ok());
    assert_eq!(HnswParameters::default().exact_up_to(0), Err(BadParameters::Exact(0)));
    assert_eq!(HnswParameters::default().exact_up_to(EXACT_UP_TO + 1), Err(BadParameters::Exact(EXACT_UP_TO + 1)));
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
    const EXACT: u64 = 4_000;
    let mut dice = Dice(42);
    let parameters = HnswParameters::new(8, 40, 64).unwrap().exact_up_to(4_000).unwrap();
    let mut index = of_width(WIDTH, parameters);
    let count = EXACT + 500;
    for id in 0..count {
        index.set_vector(&chunk(id), &heaped(&mut dice, WIDTH)).unwrap();
    }
    let different = index.vectors(READER).unwrap().different();
    let questions: Vec<Vector> = (0..40).map(|_| heaped(&mut dice, WIDTH)).collect();
    let exact = |index: &Index, question: &Vector| {
        ids(&index.vectors(READER).unwrap().nearest(question, 10, |_| true).unwrap())
    };
    let nearest = |index: &Index, question: &Vector| ids(&index.nearest(question, 10, READER, |_| true).unwrap());
    let recall = |index: &Index| {
        let hits = questions.iter().map(|question| {
            let exact = exact(index, question);
            nearest(index, question).iter().filter(|id| exact.contains(id)).count()
        });
        hits.sum::<usize>() as f64 / (10 * questions.len()) as f64
    };
    // While it is built, answers are exact.
    assert_eq!(index.advance(2_000), CacheState::Building { left: different - 2_000 });
    assert!((recall(&index) - 1.0).abs() < 1e-9);
    while index.advance(4_000) != CacheState::Ready {}
    assert!(recall(&index) > 0.95, "{}", recall(&index));
    // What comes now is found before the graph holds it, and what goes is gone.
    let new = heaped(&mut dice, WIDTH);
    index.set_vector(&chunk(count), &new).unwrap();
    assert_eq!(nearest(&index, &new)[0], count);
    (0..300).for_each(|id| index.remove(&chunk(id)));
    for question in &questions {
        assert!(nearest(&index, question).iter().all(|id| *id >= 300));
    }
    assert!(recall(&index) > 0.95);
    // A filter that leaves little is answered by the exact search.
    let only = |id: ChunkId| id.entry.0 % 400 == 399;
    let found = index.nearest(&new, 10, READER, only).unwrap();
    assert_eq!(ids(&found), ids(&index.vectors(READER).unwrap().nearest(&new, 10, only).unwrap()));
    // So is one that leaves some of what the graph finds, but not as many as were asked for.
    for question in &questions {
        let some = |id: ChunkId| id.entry.0 % 20 == 19;
        let found = index.nearest(question, 10, READER, some).unwrap();
        assert_eq!(found.len(), 10);
        assert!(found.iter().all(|scored| some(scored.id)));
    }
}

#[test]
fn one_vector_more_or_less_does_not_build_the_cache_anew() {
    let mut dice = Dice(3);
    let mut index = of_width(8, HnswParameters::new(4, 8, 32).unwrap().exact_up_to(500).unwrap());
    for id in 0..=500 {
        assert_eq!(index.advance(9), CacheState::Exact);
        index.set_vector(&chunk(id), &heaped(&mut dice, 8)).unwrap();
    }
    while index.advance(100) != CacheState::Ready {}
    for id in 0..50 {
        index.remove(&chunk(id));
        assert_eq!(index.advance(0), CacheState::Ready, "{id}");
        let new = if id % 2 == 0 { index.set_vector(&chunk(1_000 + id), &heaped(&mut dice, 8)) } else { Ok(()) };
        new.unwrap();
        assert_eq!(index.advance(1), CacheState::Ready, "{id}");
    }
    (50..126).for_each(|id| index.remove(&chunk(id)));
    assert_eq!(index.vectors(READER).unwrap().different(), 400);
    assert_eq!(index.advance(1), CacheState::Exact, "a fifth fewer");
}

#[test]
fn the_cache_is_built_anew_when_a_quarter_of_it_is_dead() {
    let mut dice = Dice(7);
    let mut index = of_width(8, HnswParameters::new(4, 8, 32).unwrap().exact_up_to(2_000).unwrap());
    for id in 0..3_000 {
        index.set_vector(&chunk(id), &heaped(&mut dice, 8)).unwrap();
    }
    while index.advance(1_000) != CacheState::Ready {}
    (0..900).for_each(|id| index.remove(&chunk(id)));
    let left = index.vectors(READER).unwrap().different();
    assert_eq!(index.advance(0), CacheState::Building { left });
    let question = heaped(&mut dice, 8);
    let nearest = |index: &Index| ids(&index.nearest(&question, 10, READER, |_| true).unwrap());
    assert!(nearest(&index).iter().all(|id| *id >= 900));
    while index.advance(1_000) != CacheState::Ready {}
    assert!(nearest(&index).iter().all(|id| *id >= 900));
}

#[test]
fn words_and_vectors_of_a_chunk_go_together() {
    let mut index = index(built_in());
    let text = "The budget meeting";
    let chunk = chunk_of(3, TRUSTED, text);
    let empty = Asked::of("budget yacht", []).vector(built_in().dimension());
    let question = |index: &Index, clearance| index.asked("budget yacht", clearance).vector(built_in().dimension());
    index.add(&chunk);
    assert_ne!(question(&index, READER), empty);
    let vector = built_in().chunk(text).unwrap();
    index.set_vector(&chunk, &vector).unwrap();
    let found = |index: &Index, clearance| index.scores("budget", clearance).best(9, |_| true).len();
    assert_eq!((found(&index, READER), found(&index, Confidentiality::Public)), (1, 0));
    index.remove(&chunk);
    assert_eq!(found(&index, Confidentiality::Confidential), 0);
    assert!(index.nearest(&vector, 5, READER, |_| true).unwrap().is_empty());
    assert_eq!(question(&index, READER), empty, "nothing of it is counted any more");
    index.add(&chunk_of(4, SECRET, text));
    assert_eq!(question(&index, READER), empty, "it is not counted for who may not see it");
    assert_ne!(question(&index, Confidentiality::Confidential), empty);
}
