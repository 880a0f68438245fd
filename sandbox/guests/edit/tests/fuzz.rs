//! The fuzz target, on its corpus and on changes of it.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "common/targets.rs"]
mod targets;

use std::path::PathBuf;

use proptest::prelude::{any, prop, proptest};
use targets::{TARGETS, Target};

fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../../fuzz/corpus", target.name].iter().collect();
    let files = std::fs::read_dir(folder).unwrap();
    files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect()
}

#[test]
fn every_target_holds_for_its_corpus() {
    for target in &TARGETS {
        let corpus = corpus(target);
        assert!(corpus.len() > 3, "{}", target.name);
        corpus.iter().for_each(|bytes| (target.run)(bytes));
    }
}

proptest! {
    #[test]
    fn every_target_holds_for_changes_of_its_corpus(
        file in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"\0\n\r-+ @\\a0,".to_vec()), 0..3_u8), 0..12),
    ) {
        for target in &TARGETS {
            let mut bytes = file.get(&corpus(target)).clone();
            for (index, byte, what) in &changes {
                let at = index.index(bytes.len() + 1);
                match what {
                    0 if at < bytes.len() => drop(bytes.remove(at)),
                    1 if at < bytes.len() => bytes[at] = *byte,
                    _ => bytes.insert(at, *byte),
                }
            }
            (target.run)(&bytes);
        }
    }
}
