//! The fuzz targets, on their corpus and on changes of it.

use std::{fs, path::PathBuf};

use proptest::prelude::*;

use crate::targets::{TARGETS, Target};

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../fuzz/corpus", target.name].iter().collect();
    let files = fs::read_dir(folder).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
    files.collect()
}

#[test]
fn every_target_holds_for_its_corpus() {
    for target in &TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "{}", target.name);
        for bytes in corpus {
            (target.run)(&bytes);
            (0..bytes.len().min(200)).for_each(|cut| (target.run)(&bytes[..cut]));
        }
    }
}

proptest! {
    #[test]
    fn every_target_holds_for_changes_of_its_corpus(
        which in 0..TARGETS.len(),
        file: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        more in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let target = &TARGETS[which];
        let corpus = corpus(target);
        let mut bytes = file.get(&corpus).clone();
        bytes.extend(more);
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        (target.run)(&bytes);
    }
}
