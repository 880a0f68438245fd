//! Chunks: where text is cut, and how it goes.

use ephor_base::{Confidentiality, Integrity, Source};
use ephor_memory::chunks::{
    ChunkError, ChunkId, Chunks, FileName, MOST_BODY, MOST_CHUNK, MOST_NAME, TextSource, cut, is_no_weaker, joined,
};
use proptest::prelude::*;

use crate::common::{SECRET, TRUSTED, UNTRUSTED, id, material, session};

fn pieces(body: &str) -> Vec<&str> {
    cut(body).unwrap().into_iter().map(|range| &body[range]).collect()
}

#[test]
fn a_heading_begins_a_chunk() {
    let body = "Before.\n\n# One\nText of one.\n\nMore of one.\n\n## Two\n\nText of two.\n";
    assert_eq!(pieces(body), ["Before.", "# One\nText of one.\n\nMore of one.", "## Two\n\nText of two."]);
    assert_eq!(pieces("#no heading\n\n####### nor this"), ["#no heading\n\n####### nor this"]);
    let code = "# Real\n```\n# a comment\n```\nText.";
    assert_eq!(pieces(code), [code], "what looks like a heading within code is none");
}

#[test]
fn paragraphs_are_put_together_as_long_as_they_fit() {
    let paragraph = "word ".repeat(100);
    let body = format!("{paragraph}\n\n{paragraph}\n\n{paragraph}\n\n{paragraph}");
    let pieces = pieces(&body);
    assert_eq!(pieces.len(), 2);
    assert!(pieces[0].starts_with("word") && pieces[0].ends_with("word") && pieces[0].matches("\n\n").count() == 2);
}

#[test]
fn a_long_paragraph_is_cut_between_sentences_then_words_then_characters() {
    let sentence = format!("Then {}end. ", "some words here ".repeat(20));
    assert!(pieces(&sentence.repeat(12)).iter().all(|piece| piece.ends_with("end.")));
    let words = "ünïcödé ".repeat(600);
    assert!(pieces(&words).iter().all(|piece| piece.starts_with("ünïcödé") && piece.ends_with("ünïcödé")));
    let word = "ü".repeat(2_000);
    assert_eq!(pieces(&word).concat(), word);
    assert_eq!(pieces(" \n\t\n "), Vec::<&str>::new());
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let body = "a".repeat(MOST_BODY + 1);
    assert_eq!(cut(&body), Err(ChunkError::TooLong(MOST_BODY + 1)));
    let mut chunks = Chunks::new(10);
    assert_eq!(chunks.add(&material(0, 0, TRUSTED, &body)), Err(ChunkError::TooLong(MOST_BODY + 1)));
    assert_eq!(FileName::new("").unwrap_err(), ChunkError::Name(0));
    assert_eq!(FileName::new(&"a".repeat(MOST_NAME + 1)).unwrap_err(), ChunkError::Name(MOST_NAME + 1));
}

proptest! {
    #[test]
    fn every_character_but_spaces_is_in_one_chunk_of_a_bounded_length(
        body in "([a-zé日 .!?#`\u{301}]{0,300}\n?){0,12}|(a{0,1700}\\.? ?){0,6}|(😀{0,500}\n{0,3}){0,5}"
    ) {
        let ranges = cut(&body).unwrap();
        let mut end = 0;
        for range in &ranges {
            prop_assert!(range.start < range.end && range.end - range.start <= MOST_CHUNK);
            prop_assert!(body[end..range.start].trim().is_empty(), "left out: {:?}", &body[end..range.start]);
            let text = &body[range.clone()];
            prop_assert_eq!(text.trim(), text);
            end = range.end;
        }
        prop_assert!(body[end..].trim().is_empty());
    }
}

#[test]
fn a_chunk_names_its_source_its_range_and_its_label() {
    let mut chunks = Chunks::new(10);
    let body = "# A\nfirst\n\n# B\nsecond";
    assert_eq!(chunks.add(&material(4, 2, UNTRUSTED, body)), Ok(vec![ChunkId(0), ChunkId(1)]));
    let second = chunks.chunk(ChunkId(1)).unwrap();
    assert_eq!(&body[second.range.clone()], &*second.text);
    assert_eq!((second.label, &second.source), (UNTRUSTED, &TextSource::Entry(id(4))));
    assert_eq!(second.recalled().source, Source::Memory);
    assert_eq!(chunks.add(&material(4, 2, TRUSTED, "again")), Err(ChunkError::Taken));
    assert_eq!(chunks.add(&material(5, 2, TRUSTED, &"# x\n".repeat(9))), Err(ChunkError::Full(10)));
    assert_eq!(chunks.len(), 2);
}

#[test]
fn what_is_superseded_forgotten_or_erased_is_gone_at_once() {
    let mut chunks = Chunks::new(100);
    for seq in 0..6 {
        chunks.add(&material(seq, u8::try_from(seq % 2).unwrap(), TRUSTED, &format!("text {seq}"))).unwrap();
    }
    let source = |seq| TextSource::Entry(id(seq));
    let (gone, new) = chunks.supersede(&source(0), &material(10, 0, TRUSTED, "better")).unwrap();
    assert_eq!((gone.len(), new), (1, vec![ChunkId(6)]));
    assert_eq!(chunks.forget(&source(2)).len(), 1);
    assert!(chunks.forget(&source(2)).is_empty());
    assert_eq!(chunks.erase(&session(1)).len(), 3);
    let left: Vec<&str> = chunks.iter().map(|chunk| &*chunk.text).collect();
    assert_eq!(left, ["text 4", "better"]);
    // Numbers are not used again.
    assert_eq!(chunks.add(&material(20, 0, TRUSTED, "new")), Ok(vec![ChunkId(7)]));
    // A text may take the place of its own older version.
    let (gone, new) = chunks.supersede(&source(20), &material(20, 0, TRUSTED, "newer")).unwrap();
    assert_eq!((gone[0].id, new), (ChunkId(7), vec![ChunkId(8)]));
    // What could not be put in its place leaves the older where it is.
    assert_eq!(chunks.supersede(&source(4), &material(20, 0, TRUSTED, "x")), Err(ChunkError::Taken));
    let long = material(30, 0, TRUSTED, &"a".repeat(MOST_BODY + 1));
    assert!(matches!(chunks.supersede(&source(4), &long), Err(ChunkError::TooLong(_))));
    assert_eq!(chunks.of_source(&source(4)).count(), 1);
}

#[test]
fn what_takes_the_place_of_something_untrusted_stays_untrusted() {
    let mut chunks = Chunks::new(10);
    chunks.add(&material(0, 0, UNTRUSTED, "planted")).unwrap();
    chunks.supersede(&TextSource::Entry(id(0)), &material(1, 0, TRUSTED, "the same in other words")).unwrap();
    chunks.supersede(&TextSource::Entry(id(1)), &material(2, 0, SECRET, "and once more")).unwrap();
    chunks.supersede(&TextSource::Entry(id(2)), &material(3, 0, TRUSTED, "and again")).unwrap();
    let label = chunks.iter().next().unwrap().label;
    assert_eq!((label.integrity, label.confidentiality), (Integrity::Untrusted, Confidentiality::Confidential));
    assert!(is_no_weaker(&label, &UNTRUSTED) && is_no_weaker(&label, &SECRET));
    assert!(!is_no_weaker(&TRUSTED, &UNTRUSTED) && !is_no_weaker(&TRUSTED, &SECRET));
    assert_eq!(joined([]), None);
}
