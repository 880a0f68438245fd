//! A home of an older format: said, migrated, and no kill in the middle loses anything.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::Duration,
};

use ephor_base::Random;
use ephor_chain::{SigningKeys, VaultKey, disk::Disk};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{auditor::copy, place::Place};

/// SplitMix64, as the tests of `chain` use it: the keys of the log that is kept there.
struct Seeded(AtomicU64);

impl Random for Seeded {
    fn fill(&self, into: &mut [u8]) {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        for chunk in into.chunks_mut(8) {
            let mut mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
            mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}

/// A home whose chain is the one that is kept in format 1: 38 entries in three segments.
fn old() -> Place {
    let place = Place::new();
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../chain/tests/it/format1"), &place.home);
    place.make_home();
    let signing = SigningKeys::generate(&Seeded(42.into()));
    signing.save(&place.home.join("keys/log"), &Disk).unwrap();
    fs::write(place.home.join("keys/log.pub"), signing.verifier().to_string()).unwrap();
    fs::remove_file(place.home.join("keys/vault")).unwrap();
    VaultKey::generate(&Seeded(43.into())).save(&place.home.join("keys/vault"), &Disk).unwrap();
    place
}

fn migrated(place: &Place) -> Value {
    serde_json::from_str(&place.run(&["migrate", "--json"]).succeeded().stdout).unwrap()
}

/// Everything of the old log is there, whole, and the home works.
fn is_whole(place: &Place, before: &[Value]) {
    let ran = place.run(&["chain", "verify", "--json"]).succeeded();
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(told["ok"] == true && told["contents"] == true, "{told}");
    place.run(&["run", "list the files"]).succeeded();
    let log = place.log();
    assert!(log.starts_with(before), "something of the old log is gone");
    assert!(!place.home.join("migrated").exists());
    place.verify();
}

#[test]
fn a_home_of_an_older_format_names_the_command_that_migrates_it() {
    let place = old();
    let before = place.log_now();
    assert_eq!(before.len(), 38);
    place.run(&["run", "hi"]).failed(&["format 1", "`ephor migrate`", "Nothing was changed"]);
    let lock = fs::File::options().create(true).truncate(false).write(true).open(place.home.join("lock")).unwrap();
    lock.lock().unwrap();
    place.run(&["migrate"]).failed(&["another process uses the home"]);
    drop(lock);
    let told = migrated(&place);
    assert_eq!((&told["migrated"], &told["format"]), (&json!(true), &json!(2)));
    assert_eq!(migrated(&place)["migrated"], false, "it is done");
    let words = place.run(&["migrate"]).succeeded().stdout;
    assert!(words.contains("nothing to do") && words.contains("format 2"), "{words}");
    is_whole(&place, &before);
    let words = old().run(&["migrate"]).succeeded().stdout;
    assert!(words.contains("39 entries") && words.contains("migrated`"), "{words}");
    Place::fresh().run(&["migrate"]).failed(&["there is no chain yet"]);
}

#[test]
fn a_migration_that_is_killed_anywhere_goes_on_when_it_is_run_again() {
    let mut ended = 0;
    for delay in 0..24u64 {
        let place = old();
        let before = place.log_now();
        let running = place.start(&["migrate"]);
        thread::sleep(Duration::from_millis(delay * 4));
        running.signal(Signal::KILL);
        ended += u64::from(running.ended().status.success());
        migrated(&place);
        if delay % 6 == 0 {
            is_whole(&place, &before);
        } else {
            place.run(&["chain", "verify"]).succeeded();
            assert!(place.log_now().starts_with(&before));
        }
    }
    println!("{ended} of 24 had ended before they were killed");
}

#[test]
fn a_damaged_home_of_an_older_format_is_left_as_it_is() {
    let place = old();
    let segment = place.home.join("chain/journal/00000000000000000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    bytes[3000] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    place.run(&["migrate"]).failed(&["the home is not migrated", "quarantined", "journal/00000000000000000000.seg"]);
    assert!(fs::read(&segment).unwrap() == bytes && !place.home.join("migrated").exists());
}
