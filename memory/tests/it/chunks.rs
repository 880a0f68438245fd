//! Chunks: where text is cut, and how it goes.

use ephor_base::{Confidentiality, Integrity, Label, Seq, Source};
use ephor_memory::chunks::{
    Added, Chunk, ChunkError, ChunkId, Chunks, Ending, FileName, MOST_BODY, MOST_CHUNK, MOST_NAME, MOST_PIECES,
    UNKNOWN, cut, is_no_weaker, joined,
};
use proptest::prelude::*;

use crate::common::{SECRET, TRUSTED, UNTRUSTED, entry, material, piece, session, source};

fn pieces(body: &str) -> Vec<&str> {
    cut(body).unwrap().into_iter().map(|range| &body[range]).collect()
}

#[test]
fn a_heading_begins_a_chunk() {
    let text = |name: &str| format!("Text of {name}. ").repeat(40).trim().to_owned();
    let (one, two) = (format!("# One\n{}\n\nMore of one.", text("one")), format!("## Two\n\n{}", text("two")));
    let body = format!("Before.\n\n{one}\n\n{two}\n");
    assert_eq!(pieces(&body), [format!("Before.\n\n{one}"), two], "one of a few words begins none");
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
fn a_text_is_not_cut_to_dust_and_takes_no_longer_without_ends_of_sentences() {
    let fill = |unit: &str| unit.repeat(MOST_BODY / unit.len());
    let long = format!("{}\n# x\n\n", "y".repeat(396));
    for unit in ["# x\n", "#\n\n", ". 1", "1 ", "a.", "a:\u{301}", "A. b ", "\u{200d}", "日本", "x\n\n", &long] {
        let body = fill(unit);
        let ranges = cut(&body).unwrap();
        assert!((1..=MOST_PIECES).contains(&ranges.len()), "{unit}: {}", ranges.len());
        assert!(ranges.iter().all(|range| range.len() <= MOST_CHUNK));
    }
    // No piece is looked at for what lies behind what fits.
    assert_eq!(pieces(&format!("One. {}", "word ".repeat(900)))[0], "One.");
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let body = "a".repeat(MOST_BODY + 1);
    assert_eq!(cut(&body), Err(ChunkError::TooLong(MOST_BODY + 1)));
    let mut chunks = Chunks::new(10);
    assert_eq!(add(&mut chunks, 0, 0, TRUSTED, &body), Err(ChunkError::TooLong(MOST_BODY + 1)));
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
            prop_assert!(range.start < range.end && range.len() <= MOST_CHUNK);
            prop_assert!(body[end..range.start].trim().is_empty(), "left out: {:?}", &body[end..range.start]);
            let text = &body[range.clone()];
            prop_assert_eq!(text.trim(), text);
            end = range.end;
        }
        prop_assert!(body[end..].trim().is_empty());
        prop_assert!(ranges.windows(2).all(|pair| pair[0].len() >= 400 || pair[1].end - pair[0].start > MOST_CHUNK));
    }
}

fn add(chunks: &mut Chunks, seq: u64, in_session: u8, label: Label, body: &str) -> Result<Vec<ChunkId>, ChunkError> {
    chunks.add(&entry(seq, in_session), &material(seq, in_session, label, body)).new
}

fn end(chunks: &mut Chunks, seq: u64) -> Vec<Chunk> {
    chunks.end(&Ending::Text(source(seq)))
}

/// Three pieces.
fn long() -> String {
    ["one", "two", "three"].map(|word| format!("# {word}\n{}", "word ".repeat(200))).join("\n")
}

#[test]
fn a_chunk_names_its_source_its_range_and_its_label() {
    let mut chunks = Chunks::new(5);
    let body = long();
    assert_eq!(add(&mut chunks, 4, 2, UNTRUSTED, &body), Ok(vec![piece(4, 0), piece(4, 1), piece(4, 2)]));
    let second = chunks.chunk(piece(4, 1)).unwrap();
    assert_eq!(&body[second.range.clone()], &*second.text);
    assert_eq!((second.label, &second.source, second.session), (UNTRUSTED, &source(4), session(2)));
    assert_eq!(second.recalled().source, Source::Memory);
    assert_eq!(add(&mut chunks, 4, 2, TRUSTED, "again"), Err(ChunkError::Taken(Seq(4))));
    assert_eq!(add(&mut chunks, 5, 2, TRUSTED, &body), Err(ChunkError::Full(5)));
    assert_eq!(chunks.len(), 3);
    assert_eq!(chunks.of_agent(&entry(4, 2).agent).collect::<Vec<_>>(), [piece(4, 2), piece(4, 1), piece(4, 0)]);
}

#[test]
fn a_chunk_has_the_same_name_whatever_else_is_there() {
    let (mut all, mut fewer) = (Chunks::new(100), Chunks::new(100));
    for seq in 0..20 {
        let in_session = u8::try_from(seq % 3).unwrap();
        add(&mut all, seq, in_session, TRUSTED, &long()).unwrap();
        if in_session != 1 {
            add(&mut fewer, seq, in_session, TRUSTED, &long()).unwrap();
        }
    }
    assert_eq!(all.end(&Ending::Session(session(1))).len(), 21);
    assert_eq!(all.to_bytes(), fewer.to_bytes());
}

#[test]
fn what_is_over_is_gone_at_once() {
    let mut chunks = Chunks::new(100);
    for seq in 0..6 {
        add(&mut chunks, seq, u8::try_from(seq % 2).unwrap(), TRUSTED, &format!("text {seq}")).unwrap();
    }
    assert_eq!(end(&mut chunks, 2).len(), 1);
    assert!(end(&mut chunks, 2).is_empty());
    assert_eq!(chunks.end(&Ending::Session(session(1))).len(), 3);
    let left: Vec<&str> = chunks.iter().map(|chunk| &*chunk.text).collect();
    assert_eq!(left, ["text 0", "text 4"]);
    assert!(chunks.of_agent(&entry(1, 1).agent).next().is_none());
    // What another entry brings of the same source takes the place of what was there.
    let again = ephor_memory::chunks::Material { source: source(4), ..material(30, 0, UNTRUSTED, "text 4, again") };
    let Added { gone, new } = chunks.add(&entry(30, 0), &again);
    assert_eq!((gone[0].id, new), (piece(4, 0), Ok(vec![piece(30, 0)])));
    assert_eq!(chunks.of_source(&source(4)).map(|chunk| chunk.id).collect::<Vec<_>>(), [piece(30, 0)]);
    assert_eq!((chunks.label(Seq(30)), chunks.label(Seq(1))), (Some(UNTRUSTED), None));
}

#[test]
fn what_takes_the_place_of_something_untrusted_stays_untrusted() {
    let mut chunks = Chunks::new(10);
    let supersede = |chunks: &mut Chunks, older: u64, seq: u64, label: Label, body: &str| {
        let label = chunks.inherited(&source(older), label, None);
        end(chunks, older);
        let _may_be_refused = add(chunks, seq, 0, label, body);
    };
    add(&mut chunks, 0, 0, UNTRUSTED, "planted").unwrap();
    // By an empty text, by a refused one, and where the older is gone by then: the label stays.
    supersede(&mut chunks, 0, 1, TRUSTED, "");
    supersede(&mut chunks, 1, 2, SECRET, &"a".repeat(MOST_BODY + 1));
    supersede(&mut chunks, 2, 3, TRUSTED, "the same in other words");
    end(&mut chunks, 3);
    supersede(&mut chunks, 3, 4, TRUSTED, "and once more");
    let label = chunks.iter().next().unwrap().label;
    assert_eq!((label.integrity, label.confidentiality), (Integrity::Untrusted, Confidentiality::Confidential));
    assert!(is_no_weaker(&label, &UNTRUSTED) && is_no_weaker(&label, &SECRET));
    assert!(!is_no_weaker(&TRUSTED, &UNTRUSTED) && !is_no_weaker(&TRUSTED, &SECRET));
    assert_eq!(joined([]), None);
    // What is not known may have been anything, unless the record says what came of it.
    assert_eq!(chunks.inherited(&source(99), TRUSTED, None), UNKNOWN);
    assert_eq!(chunks.inherited(&source(99), TRUSTED, Some(TRUSTED)), TRUSTED);
    assert!(is_no_weaker(&chunks.inherited(&source(4), TRUSTED, Some(TRUSTED)), &UNTRUSTED), "what is known counts");
    chunks.end(&Ending::Session(session(0)));
    assert_eq!(chunks.inherited(&source(4), TRUSTED, None), UNKNOWN, "an erasure leaves no label");
}

#[test]
fn labels_of_what_is_gone_are_bounded() {
    let mut chunks = Chunks::new(3);
    for seq in 0..10 {
        add(&mut chunks, seq, 0, TRUSTED, "text").unwrap();
        end(&mut chunks, seq);
    }
    let known = (0..10).filter(|seq| chunks.label(Seq(*seq)).is_some()).collect::<Vec<_>>();
    assert_eq!(known, [7, 8, 9]);
    assert_eq!(chunks.inherited(&source(2), TRUSTED, None), UNKNOWN);
}
