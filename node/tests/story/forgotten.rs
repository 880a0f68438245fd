//! After an erasure nothing on the disk gives the content back: an attacker has every file, and tries every key in them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ephor_base::SessionId;
use rustix::process::Signal;
use serde_json::Value;

use crate::{auditor::below, gate::writing, place::Place};

const SECRET: &str = "the-medical-file-which-nobody-else-may-read";
/// A nonce, a key of 32 bytes and a tag.
const WRAPPED: usize = 24 + 32 + 16;

/// What the attacker is after: the sealed form of a message, as it was copied while it was there.
struct Prize {
    session: SessionId,
    sealed: Vec<u8>,
    vault_key: Vec<u8>,
}

impl Prize {
    /// The message with the secret, in the vault of a home that has fewer than 256 entries.
    fn of(place: &Place) -> Self {
        let (mut offset, mut found) = (0, None);
        for entry in place.log() {
            let Some(length) = entry["content"]["length"].as_u64() else { continue };
            let end = offset + usize::try_from(length).unwrap();
            if entry["fact"]["kind"] == "message" && entry.to_string().contains(SECRET) {
                found = Some((entry["subject"]["session"].as_str().unwrap().parse().unwrap(), offset, end));
            }
            offset = end;
        }
        let (session, start, end) = found.expect("the secret was said");
        let contents = fs::read(place.home.join("vault/content/000")).unwrap();
        // Its file: a mark of 18 bytes, the key, a sum.
        let vault_key = fs::read(place.home.join("keys/vault")).unwrap()[18..50].to_vec();
        Self { session, sealed: contents[start..end].to_vec(), vault_key }
    }

    fn opens(&self, key: &[u8]) -> bool {
        open(key, &self.session.0, &self.sealed).is_some_and(|plain| holds(&plain, SECRET.as_bytes()))
    }

    /// The files below a folder in which the secret stands, and those with a key that opens it: as it is, or wrapped under the
    /// vault's key.
    fn loot(&self, folder: &Path) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let (mut plain, mut keys) = (Vec::new(), Vec::new());
        // The socket of a node that runs is no file.
        for path in below(folder).into_iter().filter(|path| path.is_file()) {
            let bytes = fs::read(&path).unwrap();
            if holds(&bytes, SECRET.as_bytes()) {
                plain.push(path.clone());
            }
            if self.has_key(&bytes) {
                keys.push(path);
            }
        }
        (plain, keys)
    }

    fn has_key(&self, bytes: &[u8]) -> bool {
        let empty = |window: &[u8]| window.iter().all(|byte| *byte == 0);
        let raw = bytes.windows(32).any(|window| !empty(window) && self.opens(window));
        let unwrapped = |window: &[u8]| open(&self.vault_key, &self.session.0, window);
        raw || bytes
            .windows(WRAPPED)
            .any(|window| !empty(window) && unwrapped(window).is_some_and(|key| key.len() == 32 && self.opens(&key)))
    }
}

fn open(key: &[u8], bound: &[u8], bytes: &[u8]) -> Option<Vec<u8>> {
    let (nonce, text) = bytes.split_at_checked(24)?;
    let cipher = XChaCha20Poly1305::new_from_slice(key).unwrap();
    cipher.decrypt(XNonce::from_slice(nonce), Payload { msg: text, aad: bound }).ok()
}

fn holds(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[test]
fn no_file_of_a_home_or_its_backup_gives_an_erased_session_back_under_any_key() {
    let place = Place::new();
    place.run(&["run", &format!("list the files, {SECRET}")]).succeeded();
    // Another session, an undone change of the workspace, projections, a backup, checkpoints that are kept.
    place.play(&["--allow", "fs.write"], &writing()).succeeded();
    place.node_is_gone();
    place.run(&["sessions"]).succeeded();
    let prize = Prize::of(&place);
    let backup = place.root().join("backup");
    place.run(&["backup", backup.to_str().unwrap()]).succeeded();
    let key = Path::new("vault/keys").join(prize.session.to_string());
    for folder in [&place.home, &backup] {
        assert_eq!(prize.loot(folder), (vec![], vec![folder.join(&key)]), "the attack works while the key is there");
    }
    let searched: Vec<_> = below(&place.home);
    for part in ["state", "chain/journal", "chain/tile", "chain/checkpoints", "vault/content", "keys"] {
        assert!(searched.iter().any(|path| path.starts_with(place.home.join(part))), "{part} of {searched:?}");
    }

    let up = place.up();
    place.run(&["chain", "erase", "--session", &prize.session.to_string(), "--yes"]).succeeded();
    assert_eq!(prize.loot(&place.home), (vec![], vec![]), "while the node runs");
    up.signal(Signal::TERM);
    up.ended().succeeded();
    // What is done with a home afterwards brings nothing back.
    place.run(&["state", "rebuild"]).succeeded();
    place.run(&["chain", "rotate", "--yes"]).succeeded();
    place.run(&["run", "list the files"]).succeeded();
    place.verify();
    assert_eq!(prize.loot(&place.home), (vec![], vec![]));
    assert!(place.log().iter().all(|entry: &Value| !entry.to_string().contains(SECRET)));
    // A backup of before has the key until the next one.
    assert_eq!(prize.loot(&backup).1, [backup.join(&key)]);
    place.run(&["backup", backup.to_str().unwrap()]).succeeded();
    assert_eq!(prize.loot(&backup), (vec![], vec![]));
    let restored = place.root().join("restored");
    place.run(&["--home", restored.to_str().unwrap(), "restore", backup.to_str().unwrap()]).succeeded();
    assert_eq!(prize.loot(&restored), (vec![], vec![]));
}
