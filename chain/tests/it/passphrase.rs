//! Key files under a passphrase.

use std::path::PathBuf;

use ephor_chain::{
    KeyError, Protection, SigningKeys, VaultKey,
    protection::{is_locked, relock},
};

use crate::common::{
    Seeded,
    memory::{After, Fault, Memory},
};

fn passphrase(words: &str) -> Protection {
    Protection::passphrase(words.as_bytes()).unwrap()
}

fn paths() -> Vec<PathBuf> {
    ["/home/keys/signing", "/home/keys/vault"].map(PathBuf::from).to_vec()
}

/// A home with both keys, unlocked.
fn home() -> Memory {
    let memory = Memory::default();
    let [signing, vault] = [&paths()[0], &paths()[1]].map(Clone::clone);
    SigningKeys::generate(&Seeded::new(1)).save(&signing, &*memory.files()).unwrap();
    VaultKey::generate(&Seeded::new(2)).save(&vault, &*memory.files()).unwrap();
    memory
}

/// Whether both keys open.
fn opens(memory: &Memory, protection: &Protection) -> bool {
    let files = memory.files();
    let signing = SigningKeys::load_with(&paths()[0], &*files, protection);
    let same = signing.as_ref().is_ok_and(|keys| keys.verifier() == SigningKeys::generate(&Seeded::new(1)).verifier());
    same && VaultKey::load_with(&paths()[1], &*files, protection).is_ok()
}

fn seeds() -> Vec<u8> {
    let mut seeds = vec![0; 64];
    ephor_base::Random::fill(&Seeded::new(1), &mut seeds);
    seeds
}

fn shows_seeds(memory: &Memory) -> bool {
    memory.everything().iter().any(|(_, bytes)| bytes.windows(64).any(|window| window == seeds()))
}

#[test]
fn a_passphrase_is_set_changed_and_taken_away() {
    let memory = home();
    let (files, random) = (memory.files(), Seeded::new(3));
    let before = memory.everything();
    assert!(shows_seeds(&memory) && !is_locked(&paths()[0], &*files).unwrap());
    relock(&paths(), &*files, &Protection::none(), &passphrase("first"), &random).unwrap();
    assert!(
        !shows_seeds(&memory) && is_locked(&paths()[0], &*files).unwrap() && is_locked(&paths()[1], &*files).unwrap()
    );
    assert!(opens(&memory, &passphrase("first")));
    let load = |protection: &Protection| SigningKeys::load_with(&paths()[0], &*files, protection).unwrap_err();
    assert!(matches!(load(&Protection::none()), KeyError::Locked(_)));
    assert!(matches!(load(&passphrase("wrong")), KeyError::WrongPassphrase(_)));
    let wrong = relock(&paths(), &*files, &passphrase("wrong"), &passphrase("other"), &random);
    assert!(matches!(wrong, Err(KeyError::WrongPassphrase(_))));
    relock(&paths(), &*files, &passphrase("first"), &passphrase("second"), &random).unwrap();
    assert!(opens(&memory, &passphrase("second")) && !opens(&memory, &passphrase("first")));
    relock(&paths(), &*files, &passphrase("second"), &Protection::none(), &random).unwrap();
    assert_eq!(memory.everything(), before);
    assert!(Protection::passphrase(b"").is_none(), "an empty passphrase protects nothing");
}

#[test]
fn a_file_that_was_changed_is_told_from_a_wrong_passphrase() {
    let memory = home();
    let words = passphrase("words");
    relock(&paths(), &*memory.files(), &Protection::none(), &words, &Seeded::new(3)).unwrap();
    let bytes = memory.get(&paths()[0]);
    for at in (0..bytes.len()).step_by(5) {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        memory.put(&paths()[0], changed);
        let found = SigningKeys::load_with(&paths()[0], &*memory.files(), &words).unwrap_err();
        assert!(matches!(found, KeyError::Damaged(_)), "byte {at}: {found}");
    }
    for length in 0..bytes.len() {
        memory.put(&paths()[0], bytes[..length].to_vec());
        assert!(SigningKeys::load_with(&paths()[0], &*memory.files(), &words).is_err(), "cut at {length}");
    }
}

#[test]
fn a_crash_at_every_operation_of_a_change_leaves_keys_that_open() {
    let random = Seeded::new(3);
    let (none, old, new) = (Protection::none(), passphrase("old"), passphrase("new"));
    let locked = home();
    relock(&paths(), &*locked.files(), &none, &old, &random).unwrap();
    for (memory, from, to) in [(home(), &none, &new), (locked.copy(), &old, &new), (locked, &old, &none)] {
        let mut both = 0;
        for operation in 1.. {
            let mut done = false;
            for after in [After::Kill, After::PowerCut, After::Mixed(operation)] {
                let copy = memory.copy();
                copy.fail_at(operation, Fault::Crash);
                done = relock(&paths(), &*copy.files(), from, to, &random).is_ok();
                let left = copy.after(after);
                let what = format!("crash at operation {operation}, {after:?}, from {from:?} to {to:?}");
                let by = [opens(&left, from), opens(&left, to)];
                assert!(by[0] || by[1], "{what}: nothing opens");
                assert!(!done || by[1], "{what}: acknowledged and lost");
                both += usize::from(by[0] && by[1]);
                // Whichever opens, doing it again finishes it.
                relock(&paths(), &*left.files(), if by[1] { to } else { from }, to, &random).unwrap();
                assert!(opens(&left, to), "{what}");
                assert_eq!(shows_seeds(&left), std::ptr::eq(to, &raw const none), "{what}");
            }
            if done {
                break;
            }
        }
        assert!(both > 0);
    }
}
