//! The fuzz targets, on their corpus and on changes of it that are the same each time. `just fuzz` looks further.

use std::{collections::BTreeSet, fs, path::Path};

use ephor_base::cbor;
use ephor_record::Entry;

use crate::common::{Seeded, forge};

#[path = "../../../fuzz/src/targets.rs"]
mod targets;

/// How many changes of each file of the corpus are tried.
const CHANGES: u64 = 150;

/// Changes one place: a bit, a byte, a part left out, doubled or brought in from elsewhere.
fn change(bytes: &mut Vec<u8>, other: &[u8], chance: &Seeded) {
    let at = usize::try_from(chance.below(bytes.len() as u64 + 1)).unwrap();
    let length = usize::try_from(chance.below(1 << chance.below(8))).unwrap().min(bytes.len() - at);
    match (chance.below(6), bytes.get_mut(at)) {
        (0, Some(byte)) => *byte ^= 1 << chance.below(8),
        (1, Some(byte)) => {
            *byte = [0, 1, 0x7f, 0x80, 0xff, b'\n', b' ', b'0'][usize::try_from(chance.below(8)).unwrap()]
        }
        (2, _) => drop(bytes.drain(at..at + length)),
        (3, _) => {
            let part = bytes[at..at + length].to_vec();
            drop(bytes.splice(at..at, part));
        }
        (4, _) => {
            let from = usize::try_from(chance.below(other.len() as u64 + 1)).unwrap();
            let part = other[from..].iter().take(length + 1).copied().collect::<Vec<_>>();
            drop(bytes.splice(at..at + length, part));
        }
        _ => bytes.truncate(at),
    }
}

#[test]
fn fuzzing_begins_from_every_kind_of_fact_that_the_format_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let format = fs::read_to_string(root.join("docs/chain-format.md")).unwrap();
    let choices = format.split_once("\nfact = ").unwrap().1.split_once("\n\n").unwrap().0;
    let numbers = choices.split('/').map(|choice| choice.trim().trim_start_matches('[').split(',').next().unwrap());
    let mut wanted: BTreeSet<u8> = numbers.map(|number| number.parse().unwrap()).collect();
    assert!(wanted.len() > 35, "{wanted:?}");
    for file in fs::read_dir(root.join("fuzz/corpus/entry")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        let Ok(entry) = cbor::from_slice::<Entry>(&bytes) else { continue };
        // A choice is an array of two, and begins with its number.
        let number = match cbor::to_vec(&entry.fact)[..] {
            [0x82, 0x18, number, ..] | [0x82, number, ..] => number,
            _ => panic!("a fact that is no choice"),
        };
        wanted.remove(&number);
    }
    assert_eq!(wanted, BTreeSet::new(), "these are in no file of the corpus");
}

#[test]
fn nothing_that_a_parser_can_be_given_breaks_it() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let mut size = 0;
    for targets::Target { name, run } in targets::TARGETS {
        let mut paths: Vec<_> = fs::read_dir(corpus.join(name)).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let files: Vec<_> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        assert!(files.len() > 1, "{name} has no corpus");
        let chance = Seeded::new(1);
        for (number, bytes) in files.iter().enumerate() {
            size += bytes.len();
            run(bytes);
            let other = &files[(number + 1) % files.len()];
            for _ in 0..CHANGES {
                let mut bytes = bytes.clone();
                (0..=chance.below(3)).for_each(|_| change(&mut bytes, other, &chance));
                run(&bytes);
            }
        }
    }
    assert!(size < 200_000, "the corpus has {size} bytes");
}
