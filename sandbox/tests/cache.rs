//! Compiled code is only run if this home compiled it.

mod common;

use common::{Folder, HOSTILE, engine};
use ephor_sandbox::{CompiledCache, Engine, GuestCall};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn cached(directory: &Path, key: u8) -> CompiledCache {
    CompiledCache::new(directory.to_owned(), [key; 32])
}

/// Where the hostile guest's code is kept.
fn file(directory: &Path) -> PathBuf {
    directory.join(format!("{}.cwasm", ephor_base::Digest::of(HOSTILE)))
}

async fn works(engine: &Engine, component: &ephor_sandbox::Component) {
    let folder = Folder::new();
    let call = GuestCall { ..folder.call("look", "") };
    assert!(engine.run(component, call, std::future::pending()).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_compiled_is_loaded_and_belongs_to_its_owner_alone() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("made/tools");
    engine().load(HOSTILE, None, Some(&cached(&directory, 1))).unwrap();
    let path = file(&directory);
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(std::fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o700);
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    let component = engine().load(HOSTILE, None, Some(&cached(&directory, 1))).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().modified().unwrap(), before, "it was compiled again");
    works(engine(), &component).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_tampered_with_is_compiled_again() {
    let home = tempfile::tempdir().unwrap();
    engine().load(HOSTILE, None, Some(&cached(home.path(), 1))).unwrap();
    let path = file(home.path());
    let good = std::fs::read(&path).unwrap();
    let middle = good.len() / 2;
    for at in [0, 16, 47, 48, middle, good.len() - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        std::fs::write(&path, bad).unwrap();
        let component = engine().load(HOSTILE, None, Some(&cached(home.path(), 1))).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), good.len());
        assert_ne!(std::fs::read(&path).unwrap()[at], good[at] ^ 1, "byte {at} was accepted");
        works(engine(), &component).await;
    }
    for bad in [&good[..0], &good[..20], &good[..good.len() - 1]] {
        std::fs::write(&path, bad).unwrap();
        engine().load(HOSTILE, None, Some(&cached(home.path(), 1))).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len(), good.len());
    }
}

#[test]
fn what_another_key_made_or_another_component_is_not_loaded() {
    let home = tempfile::tempdir().unwrap();
    engine().load(HOSTILE, None, Some(&cached(home.path(), 1))).unwrap();
    let path = file(home.path());
    let by_one = std::fs::read(&path).unwrap();
    engine().load(HOSTILE, None, Some(&cached(home.path(), 2))).unwrap();
    let by_two = std::fs::read(&path).unwrap();
    assert_ne!(by_one[16..48], by_two[16..48]);

    // The code of one component under the name of another.
    let other = wat::parse_str("(component)").unwrap();
    let name = format!("{}.cwasm", ephor_base::Digest::of(&other));
    std::fs::write(home.path().join(name), &by_two).unwrap();
    assert!(engine().load(&other, None, Some(&cached(home.path(), 2))).is_err(), "the other's code was run");
}

#[test]
fn a_cache_that_cannot_be_used_is_done_without() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), "").unwrap();
    engine().load(HOSTILE, None, Some(&cached(&home.path().join("file/tools"), 1))).unwrap();
    // A FIFO in its place is not waited for.
    let path = file(home.path());
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    engine().load(HOSTILE, None, Some(&cached(home.path(), 1))).unwrap();
}
