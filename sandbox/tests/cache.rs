//! Compiled code is only run if this home compiled it.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod common;

use common::{Folder, HOSTILE, engine};
use ephor_base::Secret;
use ephor_sandbox::{CompiledCache, Engine, GuestCall};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

fn cached(directory: &Path, key: u8) -> CompiledCache {
    CompiledCache::new(directory.to_owned(), Secret::new([key; 32]))
}

/// The only file of compiled code.
fn file(directory: &Path) -> PathBuf {
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let [file] = files.collect::<Vec<_>>().try_into().unwrap();
    file
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
fn what_another_key_or_another_component_made_is_not_loaded() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    engine().load(HOSTILE, None, Some(&cached(one.path(), 1))).unwrap();
    engine().load(HOSTILE, None, Some(&cached(two.path(), 2))).unwrap();
    let by_two = std::fs::read(file(two.path())).unwrap();

    // The code of one key under the name that another gives it.
    std::fs::write(file(one.path()), &by_two).unwrap();
    engine().load(HOSTILE, None, Some(&cached(one.path(), 1))).unwrap();
    assert_ne!(std::fs::read(file(one.path())).unwrap()[16..48], by_two[16..48], "the other key's code was run");

    // The code of one component under the name of another.
    let other = wat::parse_str("(component)").unwrap();
    let own = |digest| ephor_base::Digest::of(digest).to_string();
    let named = file(two.path()).display().to_string().replace(&own(HOSTILE), &own(&other));
    std::fs::write(named, &by_two).unwrap();
    assert!(engine().load(&other, None, Some(&cached(two.path(), 2))).is_err(), "the other's code was run");
}

#[test]
fn keys_that_share_a_folder_leave_each_other_alone_and_no_more_than_sixteen_files() {
    let folder = tempfile::tempdir().unwrap();
    let component = wat::parse_str("(component)").unwrap();
    let count = || std::fs::read_dir(folder.path()).unwrap().count();
    for key in 1..=16 {
        let _unfit = engine().load(&component, None, Some(&cached(folder.path(), key)));
        assert_eq!(count(), usize::from(key));
    }
    let _unfit = engine().load(&component, None, Some(&cached(folder.path(), 17)));
    assert_eq!(count(), 16);
}

#[test]
fn a_cache_that_cannot_be_used_is_done_without() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("file"), "").unwrap();
    engine().load(HOSTILE, None, Some(&cached(&home.path().join("file/tools"), 1))).unwrap();
    // A FIFO in its place is not waited for.
    let tools = home.path().join("tools");
    engine().load(HOSTILE, None, Some(&cached(&tools, 1))).unwrap();
    let path = file(&tools);
    std::fs::remove_file(&path).unwrap();
    let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600));
    rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
    engine().load(HOSTILE, None, Some(&cached(&tools, 1))).unwrap();
}
