//! The fuzz targets, on their corpus and on changes of it that are the same each time. `just fuzz` looks further.

use std::{fs, path::Path};

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
