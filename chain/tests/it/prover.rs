//! Proofs out of a published folder: each entry is proven, with the folder alone, and no damaged file proves anything.

use std::{fs, path::Path, sync::Arc};

use ephor_base::{Seq, files::Files};
use ephor_chain::{Log, disk::Disk, figures};
use ephor_tlog::KnownLog;
use ephor_verify::Folder;
use ephor_verify::{Checked, ProveError, Prover, check};

use crate::{
    common::{World, block_on, plain},
    third_parties::read_published,
};

/// A log on a real disk: 700 entries, published at 300, 600 and 700.
fn published(home: &Path) -> (World, Log) {
    let world = World::new(Arc::new(Disk), home);
    let (log, _) = world.open().unwrap();
    for number in 0.. {
        let size = block_on(log.note(plain(number))).unwrap().seq.0 + 1;
        if [300, 600, 700].contains(&size) {
            assert_eq!(block_on(log.publish()).unwrap().size, size);
        }
        if size == 700 {
            return (world, log);
        }
    }
    unreachable!()
}

#[test]
fn the_public_crates_read_and_prove_what_a_log_has_published() {
    let home = tempfile::tempdir().unwrap();
    let (world, log) = published(home.path());
    assert_eq!(read_published(&world.config.folder, &world.verifier()), 700);
    block_on(log.close()).unwrap();
    assert_eq!(read_published(&world.config.folder, &world.verifier()), 701);
}

#[test]
fn every_published_entry_is_proven_with_the_folder_alone() {
    let home = tempfile::tempdir().unwrap();
    let (world, log) = published(home.path());
    let leaves: Vec<_> = log.entries().map(|stored| stored.unwrap().receipt.leaf).collect();
    let alone = tempfile::tempdir().unwrap();
    copy(&world.config.folder, alone.path());
    fs::remove_dir_all(alone.path().join("journal")).unwrap();
    let known = [KnownLog::of(&world.verifier()).unwrap()];
    let mut prover = Prover::open(&Folder::source(alone.path(), &world.files)).unwrap().unwrap();
    // In order, and from one end to the other.
    for seq in (0..700).chain((0..350).flat_map(|seq| [seq, 699 - seq])) {
        let proof = prover.prove(Seq(seq)).unwrap().to_bytes();
        let Checked::Entry(entry) = check(&proof, None, &known, &[]).unwrap() else { panic!() };
        assert_eq!((entry.seq, entry.head.size), (Seq(seq), 700));
        assert_eq!(ephor_tlog::tree::leaf_hash(&entry.entry.to_bytes()), leaves[usize::try_from(seq).unwrap()]);
    }
    assert!(matches!(prover.prove(Seq(700)), Err(ProveError::NotPublished { size: 700, .. })));
    assert!(matches!(prover.prove(Seq(u64::MAX)), Err(ProveError::NotPublished { .. })));
}

#[test]
fn a_prover_goes_on_under_its_checkpoint_while_the_log_outgrows_it() {
    let home = tempfile::tempdir().unwrap();
    let (world, log) = published(home.path());
    let mut prover = Prover::open(&Folder::source(&world.config.folder, &world.files)).unwrap().unwrap();
    for number in 700..1100 {
        block_on(log.note(plain(number))).unwrap();
        if number % 100 == 0 {
            block_on(log.publish()).unwrap();
        }
    }
    block_on(log.publish()).unwrap();
    for seq in [0, 299, 511, 512, 699] {
        assert_eq!(prover.prove(Seq(seq)).unwrap().index, seq);
    }
    assert!(prover.prove(Seq(700)).is_err());
}

#[test]
fn no_damaged_tile_or_bundle_proves_anything() {
    let home = tempfile::tempdir().unwrap();
    let (world, log) = published(home.path());
    block_on(log.close()).unwrap();
    let known = [KnownLog::of(&world.verifier()).unwrap()];
    let (mut found, mut whole) = (0, 0);
    for path in files_below(&world.config.folder.join("tile")) {
        let bytes = fs::read(&path).unwrap();
        for at in (0..bytes.len()).step_by(bytes.len() / 40 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            fs::write(&path, damaged).unwrap();
            let mut prover = Prover::open(&Folder::source(&world.config.folder, &world.files)).unwrap().unwrap();
            for seq in [0, 255, 256, 400, 511, 512, 700] {
                match prover.prove(Seq(seq)) {
                    // The damaged part is not on the way to this entry.
                    Ok(proof) => {
                        check(&proof.to_bytes(), None, &known, &[]).unwrap();
                        whole += 1;
                    }
                    Err(ProveError::Unproven { .. } | ProveError::Scan(_)) => found += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        fs::write(&path, bytes).unwrap();
    }
    assert!(found > 100 && whole > 100, "{found} found, {whole} whole");
}

#[test]
fn the_figures_of_the_journal_are_those_of_the_log() {
    let home = tempfile::tempdir().unwrap();
    let (world, log) = published(home.path());
    for number in 700..710 {
        block_on(log.append(plain(number))).unwrap();
    }
    let journal = figures::journal(&world.config.folder, &world.files).unwrap();
    assert_eq!(journal.head, log.head());
    assert_eq!(journal.first + journal.entries, 710);
    assert!(journal.batches >= 10 && journal.batches <= journal.entries, "{journal:?}");
    block_on(log.close()).unwrap();
}

fn copy(from: &Path, to: &Path) {
    for path in files_below(from) {
        let to = to.join(path.strip_prefix(from).unwrap());
        Disk.create_folder(to.parent().unwrap()).unwrap();
        fs::copy(path, to).unwrap();
    }
    Disk.create_folder(&to.join("journal")).unwrap();
}

fn files_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
