//! On the real disk.

use std::{
    fs, io,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{Files, Open};
use ephor_chain::{KeyError, SigningKeys, VaultKey, disk::Disk};

use crate::common::{Seeded, World, block_on, message};

fn snapshot(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push((path.clone(), fs::read(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_home_on_the_disk_is_private_exact_and_survives_a_restart() {
    let home = tempfile::tempdir().unwrap();
    let world = World::new(Arc::new(Disk), &home.path().join("home"));
    let home = home.path().join("home");
    world.keys().save(&home.join("keys/signing"), &Disk).unwrap();
    world.vault_key().save(&home.join("keys/vault"), &Disk).unwrap();
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "the secret plan"))).unwrap();
    let usage = log.usage();
    block_on(log.close()).unwrap();
    for (path, bytes) in snapshot(&home) {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600, "{}", path.display());
        assert!(!bytes.windows(15).any(|window| window == b"the secret plan"), "{} tells it", path.display());
        assert_ne!(path.extension().and_then(|end| end.to_str()), Some("tmp"));
    }
    for folder in ["", "chain", "chain/journal", "vault", "keys"] {
        let mode = fs::metadata(home.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "`{folder}`");
    }
    let report = world.verify(world.pinned()).unwrap();
    let journal = fs::metadata(home.join("chain/journal/00000000000000000000.seg")).unwrap().len();
    assert_eq!((report.bytes, report.head.size), (journal, 4));
    assert!(usage.reserved >= 1 << 18, "{usage:?}");
    let (log, recovered) = world.open().unwrap();
    assert!(recovered.clean);
    assert_eq!(log.entries().filter(Result::is_ok).count(), 5);
}

#[test]
fn a_damaged_home_on_the_disk_is_not_written_to() {
    let home = tempfile::tempdir().unwrap();
    let world = World::new(Arc::new(Disk), home.path());
    let (log, _) = world.open().unwrap();
    block_on(log.append(message(1, "hello"))).unwrap();
    block_on(log.close()).unwrap();
    let segment = home.path().join("chain/journal/00000000000000000000.seg");
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let before = snapshot(home.path());
    world.must_be_damaged("on the disk");
    assert_eq!(snapshot(home.path()), before);
}

#[test]
fn keys_are_read_back_and_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("signing");
    let keys = SigningKeys::generate(&Seeded::new(1));
    assert!(matches!(SigningKeys::load(&path, &Disk), Err(KeyError::Missing(_))));
    keys.save(&path, &Disk).unwrap();
    assert_eq!(SigningKeys::load(&path, &Disk).unwrap().verifier(), keys.verifier());
    assert!(matches!(keys.save(&path, &Disk), Err(KeyError::Exists(_))));
    assert!(matches!(VaultKey::load(&path, &Disk), Err(KeyError::Damaged(_) | KeyError::Io { .. })));
    let mut bytes = fs::read(&path).unwrap();
    bytes[40] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert!(matches!(SigningKeys::load(&path, &Disk), Err(KeyError::Damaged(_))));
    assert!(!format!("{keys:?}").contains(&format!("{:?}", [0u8; 4])));
}

#[test]
fn only_regular_files_are_opened_and_links_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("file"), "x").unwrap();
    symlink(at("file"), at("link")).unwrap();
    rustix_fifo(&at("fifo"));
    assert!(Disk.open(&at("file"), Open::Read).is_ok());
    assert!(Disk.open(&at("link"), Open::Read).is_err());
    assert!(Disk.open(&at("fifo"), Open::Read).is_err());
    assert!(Disk.open(folder.path(), Open::Read).is_err());
    let exists = Disk.open(&at("file"), Open::Create).map(drop).unwrap_err();
    assert_eq!(exists.kind(), io::ErrorKind::AlreadyExists);
}

fn rustix_fifo(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn reserving_extends_with_zeros_and_keeps_what_is_there() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let file = Disk.open(&path, Open::Create).unwrap();
    file.write_at(b"hello", 0).unwrap();
    file.allocate(1 << 20).unwrap();
    assert_eq!(file.len().unwrap(), 1 << 20);
    file.sync_data().unwrap();
    assert!(fs::metadata(&path).unwrap().blocks() * 512 >= 1 << 20, "nothing was reserved");
    let mut bytes = [1; 8];
    file.read_at(&mut bytes, 0).unwrap();
    assert_eq!(&bytes, b"hello\0\0\0");
    assert!(file.allocate(u64::MAX / 2).is_err());
    assert_eq!(file.len().unwrap(), 1 << 20);
}

#[test]
fn priming_changes_neither_the_length_nor_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let file = Disk.open(&folder.path().join("file"), Open::Create).unwrap();
    file.write_at(b"hello", 0).unwrap();
    file.allocate(300_000).unwrap();
    file.prime(5, 200_000).unwrap();
    file.sync_data().unwrap();
    let mut bytes = vec![1; 300_001];
    assert_eq!(file.read_at(&mut bytes, 0).unwrap(), 300_000);
    assert_eq!(&bytes[..5], b"hello");
    assert!(bytes[5..300_000].iter().all(|byte| *byte == 0));
}
