//! Whoever knows a checkpoint or keys of one time goes on with the keys of another, and a thief of old keys gets nowhere.

use std::{path::Path, sync::Arc};

use ephor_base::{Random, Seq};
use ephor_chain::{Against, Log, Report, SigningKeys, verify};
use ephor_record::{Damage, Fact, ScanError};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, VerifierKeys};
use ephor_verify::Folder;
use ephor_verify::{Change, Prover, lineage};

use crate::common::{OPERATOR, Seeded, World, block_on, forge::Forge, memory::Memory, message, outgrow, plain};

/// The keys of a generation, from 0. The first are those of the world.
fn keys(generation: u64) -> SigningKeys {
    let first = SigningKeys::generate(&Seeded::new(42));
    match generation {
        0 => first,
        later => SigningKeys::generate_next(first.verifier(), &Seeded::new(70 + later)),
    }
}

pub(crate) fn public(generation: u64) -> VerifierKeys {
    keys(generation).verifier().clone()
}

fn open(world: &World, signing: SigningKeys) -> Log {
    let random: Arc<dyn Random> = Arc::clone(&world.random) as _;
    let (files, clock, vault) = (Arc::clone(&world.files), Arc::clone(&world.clock), world.vault_key());
    Log::open(world.config.clone(), signing, vault, files, clock, random, "0.1.0").unwrap().0
}

fn published(memory: &Memory) -> Checkpoint {
    Checkpoint::parse(&memory.get(Path::new("/home/chain/checkpoint"))).unwrap()
}

/// A log of three generations whose journal reaches back to none of the changes; a checkpoint of each generation, and the
/// homes as they were then.
pub(crate) fn three() -> (Memory, World, Vec<(Checkpoint, Memory)>) {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 10_000;
    let log = open(&world, keys(0));
    let mut times = Vec::new();
    for generation in 0..3 {
        if generation > 0 {
            block_on(log.rotate(keys(generation), OPERATOR)).unwrap();
        }
        outgrow(&log, &world);
        block_on(log.append(message(generation, "said"))).unwrap();
        block_on(log.publish()).unwrap();
        times.push((published(&memory), memory.copy()));
    }
    outgrow(&log, &world);
    block_on(log.close()).unwrap();
    (memory, world, times)
}

fn check(world: &World, keys: &VerifierKeys, from: &Checkpoint) -> Result<Report, Damage> {
    let against = Against { keys, head: None, vault: Some(&world.config.vault), from: Some(from) };
    match verify(&world.config.folder, &world.files, against, |_| ()) {
        Ok(report) => Ok(report),
        Err(ScanError::Damaged(finding)) => Err(finding.damage),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_auditor_goes_on_from_any_checkpoint_with_the_keys_of_any_time() {
    let (memory, world, times) = three();
    let mut known: Vec<_> = times.iter().map(|(checkpoint, _)| checkpoint.clone()).collect();
    // Right at the changes as well, and right behind each of them.
    let kept = memory.everything().into_iter().filter(|(path, _)| path.starts_with("/home/chain/checkpoints"));
    known.extend(kept.map(|(_, bytes)| Checkpoint::parse(&bytes).unwrap()));
    known.push(published(&memory));
    assert!(known.len() >= 6);
    for generation in 0..3 {
        for from in &known {
            let report = check(&world, &public(generation), from)
                .unwrap_or_else(|damage| panic!("keys {generation}, from {}: {damage}", from.head.size));
            assert_eq!((report.since, report.head), (from.head.size, published(&memory).head));
        }
    }
}

#[test]
fn changes_lead_from_any_keys_to_those_of_today_and_never_back() {
    let (memory, world, _) = three();
    let changes = lineage::changes(&Folder::source(&world.config.folder, &world.files)).unwrap();
    assert_eq!(changes.len(), 2, "a confirmation is no change");
    let bytes: Vec<u8> = changes.iter().flat_map(Change::to_bytes).collect();
    assert_eq!(Change::parse_all(&bytes).unwrap(), changes);
    for generation in 0..3 {
        let reached = lineage::follow(&public(generation), &changes);
        let expected: Vec<_> = (generation..3).map(public).collect();
        assert_eq!(reached, expected);
        assert_eq!(
            lineage::signers(&Folder::source(&world.config.folder, &world.files), &public(generation)).unwrap(),
            public(2)
        );
    }
    published(&memory).check(&public(2), &Signatures).unwrap();
    // In another order they lead less far, and nowhere else.
    let reversed: Vec<_> = changes.iter().rev().cloned().collect();
    assert_eq!(lineage::follow(&public(0), &reversed), [public(0), public(1)]);
    for junk in [&b"junk"[..], &bytes[1..], &bytes[..bytes.len() - 3]] {
        assert!(Change::parse_all(junk).is_err());
    }
    assert_eq!(Change::parse_all(b"").unwrap(), []);
}

#[test]
fn the_past_that_later_keys_have_signed_does_not_bless_earlier_keys() {
    let (_, world, times) = three();
    // Of what the third keys signed, the entry that names the second ones: proven, and no change.
    let mut prover = Prover::open(&Folder::source(&world.config.folder, &world.files)).unwrap().unwrap();
    let log = open(&world, keys(2));
    let named = |stored: &ephor_chain::Stored| match &stored.entry.fact {
        Fact::Keys { ed25519, .. } if ed25519 == public(1).ed25519() => Some(stored.entry.seq),
        _ => None,
    };
    let named: Vec<Seq> = log.entries().map(Result::unwrap).filter_map(|stored| named(&stored)).collect();
    assert_eq!(named.len(), 2);
    drop(log);
    for seq in named {
        let bytes = prover.prove(seq).unwrap().to_bytes();
        let forged = Change::parse_all(&bytes).unwrap();
        assert_eq!(lineage::follow(&public(2), &forged), [public(2)]);
    }
    // A home of the first keys alone is none for those who know later ones, by any changes.
    let rolled = world.with_files(times[0].1.copy().files());
    let other = lineage::signers(&Folder::source(&rolled.config.folder, &rolled.files), &public(1));
    assert!(matches!(other, Err(ScanError::Damaged(finding)) if matches!(finding.damage, Damage::Signature(_))));
}

/// What whoever stole the first keys makes of the home as it was before they were changed.
fn forks(world: &World, before: &Memory) -> Vec<(&'static str, World)> {
    let fork = |what, then: &dyn Fn(&Log)| {
        let memory = before.copy();
        let here = world.with_files(memory.files());
        let log = open(&here, keys(0));
        block_on(log.append(plain(666))).unwrap();
        then(&log);
        block_on(log.publish()).unwrap();
        outgrow(&log, &here);
        block_on(log.close()).unwrap();
        (what, here)
    };
    let own = || SigningKeys::generate_next(&public(0), &Seeded::new(666));
    vec![
        fork("goes on under the stolen keys", &|_| ()),
        fork("names keys of the thief", &|log| assert!(block_on(log.rotate(own(), OPERATOR)).is_ok())),
    ]
}

#[test]
fn a_thief_of_old_keys_cannot_bless_a_fork_for_whoever_knows_anything_newer() {
    let (memory, world, times) = three();
    let (first, before) = &times[0];
    for (what, fork) in forks(&world, before) {
        // The checkpoint is from before the theft; the keys are newer.
        for generation in [1, 2] {
            let found = check(&fork, &public(generation), first).unwrap_err();
            assert!(matches!(found, Damage::Keys | Damage::KeysUnused), "{what}: {found}");
            assert!(
                lineage::signers(&Folder::source(&fork.config.folder, &fork.files), &public(generation)).is_err(),
                "{what}"
            );
        }
        // The keys are from before the theft; the checkpoint is newer.
        for (newer, _) in &times[1..] {
            check(&fork, &public(0), newer).unwrap_err();
        }
        // A checkpoint of the fork does not fit the log, whatever keys are given.
        let forged =
            Prover::open(&Folder::source(&fork.config.folder, &fork.files)).unwrap().unwrap().checkpoint().clone();
        for generation in 0..3 {
            check(&world, &public(generation), &forged).unwrap_err();
        }
    }
    // The right head, signed again by the stolen keys, which no longer sign.
    let thief = Forge::new(&Seeded::new(42));
    for head in [times[1].0.head, times[2].0.head, published(&memory).head] {
        let forged = Checkpoint::parse(&thief.checkpoint(head)).unwrap();
        forged.check(&public(0), &Signatures).unwrap();
        for generation in 0..3 {
            let found = check(&world, &public(generation), &forged).unwrap_err();
            // To whom knows the first keys alone it is the rest of the log that does not fit.
            let fits = matches!(found, Damage::Signature(_)) || (generation == 0 && matches!(found, Damage::Rule(_)));
            assert!(fits, "{found}");
        }
    }
}

#[test]
fn a_change_behind_the_checkpoint_counts_only_under_the_keys_before_it() {
    let (memory, world, times) = three();
    let changes = lineage::changes(&Folder::source(&world.config.folder, &world.files)).unwrap();
    let thief = Forge::new(&Seeded::new(666));
    for (change, old) in changes.iter().zip([0u64, 1]) {
        let size = change.proof().index + 1;
        let path = Path::new("/home/chain/checkpoints").join(format!("{size:020}"));
        let kept = Checkpoint::parse(&memory.get(&path)).unwrap();
        kept.check(&public(old), &Signatures).unwrap();
        let next = Forge::new(&Seeded::new(42)).next(&Seeded::new(71 + old));
        for forged in [None, Some(thief.checkpoint(kept.head)), Some(next.checkpoint(kept.head))] {
            let copy = memory.copy();
            copy.take_away(&path);
            forged.iter().for_each(|bytes| copy.put(&path, bytes.clone()));
            let here = world.with_files(copy.files());
            // From before the change, whoever's keys are given.
            for generation in 0..3 {
                let found = check(&here, &public(generation), &times[usize::try_from(old).unwrap()].0);
                assert!(matches!(found, Err(Damage::Missing | Damage::Signature(_))), "{found:?}");
            }
            // From behind it, it is what leads from the keys before it to those that signed the checkpoint.
            check(&here, &public(2), &times[2].0).unwrap();
            assert_eq!(check(&here, &public(0), &times[2].0).unwrap_err(), Damage::Keys);
        }
    }
}
