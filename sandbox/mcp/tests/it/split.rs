//! However the bytes of a server are cut, the same is read.

use ephor_mcp::wire::{Events, Lines, TooLong};
use proptest::prelude::*;

use super::{
    server::{End, SMALL, served, text},
    targets::TARGETS,
};

/// The pieces of `bytes`, cut after each of these lengths over and over.
fn pieces<'a>(bytes: &'a [u8], lengths: &[usize]) -> Vec<&'a [u8]> {
    let (mut pieces, mut rest, mut lengths) = (Vec::new(), bytes, lengths.iter().cycle());
    while !rest.is_empty() {
        let at = lengths.next().map_or(1, |length| (*length).clamp(1, rest.len()));
        let (piece, after) = rest.split_at(at);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

fn lines(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), TooLong>) {
    let (mut lines, mut all) = (Lines::new(20), Vec::new());
    let read = pieces.iter().try_for_each(|piece| {
        lines.push(piece, |line| {
            all.push(line.to_vec());
            Ok::<_, TooLong>(())
        })
    });
    (all, read)
}

fn events(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, Result<(), TooLong>) {
    let (mut events, mut all) = (Events::new(20), Vec::new());
    let read = pieces.iter().try_for_each(|piece| {
        events.push(piece, |data| {
            all.push(data.to_vec());
            Ok::<_, TooLong>(())
        })
    });
    (all, read)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn lines_are_the_same(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b'a')], 0..120), lengths in proptest::collection::vec(1_usize..30, 1..5)) {
        prop_assert_eq!(lines(&[&bytes]), lines(&pieces(&bytes, &lengths)));
    }

    #[test]
    fn events_are_the_same(parts in proptest::collection::vec(prop_oneof![
        Just("data:"), Just("data: x"), Just("event: message"), Just("event: e"), Just(": c"), Just("\n"), Just("\r\n"), Just("\r"), Just("\n\n"), Just("ab"), Just("\u{feff}")
    ], 0..40), lengths in proptest::collection::vec(1_usize..30, 1..5)) {
        let bytes = parts.concat().into_bytes();
        prop_assert_eq!(events(&[&bytes]), events(&pieces(&bytes, &lengths)));
    }

    #[test]
    fn changes_of_the_examples_are_read_within_the_bounds(
        which in any::<prop::sample::Index>(),
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_u8..3), 1..8),
    ) {
        let (number, mut bytes) = which.get(&examples()).clone();
        for (at, byte, how) in changes {
            let at = at.index(bytes.len() + 1);
            match how {
                0 => bytes.insert(at, byte),
                1 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        (TARGETS[number].run)(&bytes);
    }

    #[test]
    fn whatever_a_server_sends_is_read_the_same_and_within_the_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        for target in TARGETS {
            (target.run)(&bytes);
        }
    }
}

#[test]
fn events_are_cut_as_the_standard_has_it() {
    let read = |text: &str| {
        let (all, read) = events(&[text.as_bytes()]);
        (all.into_iter().map(|data| String::from_utf8(data).unwrap()).collect::<Vec<_>>(), read.is_ok())
    };
    assert_eq!(read("data: a\n\ndata:b\r\n\r\ndata:  c\r\r"), (vec!["a".into(), "b".into(), " c".into()], true));
    assert_eq!(read("data: a\r\ndata: b\r\n\r\n"), (vec!["a\nb".into()], true));
    assert_eq!(read(": hello\n\nid: 7\nretry: 9\ndata: a\ndata: b\n\n"), (vec!["a\nb".into()], true));
    assert_eq!(read("event: ping\ndata: a\n\nevent: message\ndata: b\n\n"), (vec!["b".into()], true));
    assert_eq!(read("\u{feff}data: a\n\ndata\n\ndata: unfinished\n"), (vec!["a".into()], true));
    assert_eq!(read(&format!("data: {}\n\n", "x".repeat(20))), (vec!["x".repeat(20)], true));
    assert_eq!(read(&format!("data: {}\n\n", "x".repeat(21))), (vec![], false));
    assert_eq!(read(&format!("data: {0}\ndata: {0}\n\n", "x".repeat(10))), (vec![], false));
    assert_eq!(read(&format!(":{}", "x".repeat(100))), (vec![], false));
}

#[test]
fn messages_that_arrive_byte_by_byte_are_whole() {
    let script = async |end: &mut End| {
        let (id, _) = end.request("tools/call").await;
        let line = format!("{}\n", serde_json::json!({"jsonrpc": "2.0", "id": id, "result": text("grüße 👍")}));
        for byte in line.as_bytes() {
            end.raw(&[*byte]).await;
            tokio::task::yield_now().await;
        }
        end.left().await;
    };
    let (answer, _) = served(SMALL, script, async |client: ephor_mcp::Client| super::server::call(&client).await);
    assert_eq!(super::server::said(answer), "grüße 👍");
}

/// Every file of the fuzzer's corpus, with the number of its target.
fn examples() -> Vec<(usize, Vec<u8>)> {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = |(number, target): (usize, &super::targets::Target)| {
        let folder = corpus.join(target.name);
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty(), "{}", folder.display());
        files.sort();
        files.into_iter().map(|file| (number, std::fs::read(file).unwrap())).collect::<Vec<_>>()
    };
    TARGETS.iter().enumerate().flat_map(files).collect()
}

#[test]
fn every_example_of_the_fuzzer_holds() {
    for (number, bytes) in examples() {
        (TARGETS[number].run)(&bytes);
    }
}
