//! An outsider verifies a published log with its public files and a key alone, listed or not.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_record::{Damage, ScanError};
use ephor_tlog::{Checkpoint, Head, KnownLog};
use ephor_verify::{Against, TileSource, Verified, verify};

use crate::{
    common::Seeded,
    lineage::{public, three},
    witness::{opened, submit},
};

/// Public files by name, as a folder or as a web server has them.
#[derive(Clone)]
struct Public {
    files: BTreeMap<PathBuf, Vec<u8>>,
    lists: bool,
}

impl Public {
    /// What three generations of keys have published, without the journal, the vault and the keys.
    fn new(lists: bool) -> Self {
        let (memory, ..) = three();
        let below = |(path, bytes): (PathBuf, Vec<u8>)| {
            let name = path.strip_prefix("/home/chain").ok()?.to_owned();
            (!name.starts_with("journal")).then_some((name, bytes))
        };
        Self { files: memory.everything().into_iter().filter_map(below).collect(), lists }
    }

    fn checkpoint(&self) -> Checkpoint {
        Checkpoint::parse(&self.files[Path::new("checkpoint")]).unwrap()
    }

    fn verify(&self, generation: u64, head: Option<Head>, from: Option<&Checkpoint>) -> Result<Verified, Damage> {
        let source: Arc<dyn TileSource> = Arc::new(self.clone());
        let against = Against { keys: &public(generation), head, from };
        match verify(&source, against, |_, _| ()) {
            Ok(verified) => Ok(verified),
            Err(ScanError::Damaged(finding)) => Err(finding.damage),
            Err(error) => panic!("{error}"),
        }
    }
}

impl TileSource for Public {
    fn read(&self, name: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        assert!(!name.starts_with("journal") && !name.is_absolute(), "{name:?} is not public");
        match self.files.get(name) {
            Some(bytes) if bytes.len() as u64 > most => Err(io::ErrorKind::InvalidData.into()),
            found => Ok(found.cloned()),
        }
    }

    fn list(&self, folder: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        let inside = self.files.keys().filter_map(|name| name.strip_prefix(folder).ok()?.iter().next());
        let mut names: Vec<PathBuf> = inside.map(PathBuf::from).collect();
        names.dedup();
        Ok(self.lists.then_some(names))
    }

    fn place(&self, name: &Path) -> PathBuf {
        name.to_owned()
    }
}

#[test]
fn what_is_published_is_verified_with_the_keys_of_any_time_and_nothing_else() {
    for lists in [true, false] {
        let public = Public::new(lists);
        let head = public.checkpoint().head;
        for generation in 0..3 {
            let verified = public.verify(generation, Some(head), None).unwrap();
            assert_eq!((verified.head, verified.since, verified.against_head), (head, 0, true));
        }
    }
}

#[test]
fn one_that_was_verified_before_is_verified_from_there() {
    let public = Public::new(true);
    for (name, bytes) in public.files.iter().filter(|(name, _)| name.starts_with("checkpoints")) {
        let from = Checkpoint::parse(bytes).unwrap();
        let verified = public.verify(0, None, Some(&from)).unwrap_or_else(|damage| panic!("{name:?}: {damage}"));
        assert_eq!((verified.since, verified.head), (from.head.size, public.checkpoint().head));
    }
}

#[test]
fn no_file_can_be_changed_or_taken_away_unseen() {
    for lists in [true, false] {
        let whole = Public::new(lists);
        // What no source lists and no checkpoint needs is looked for in a folder alone.
        let counts = |name: &Path| lists || !name.starts_with("checkpoints") && !name.iter().any(is_partial);
        for (name, bytes) in whole.files.iter().filter(|(name, _)| counts(name)) {
            for at in [0, bytes.len() / 2, bytes.len() - 1] {
                let mut other = whole.clone();
                other.files.get_mut(name).unwrap()[at] ^= 1;
                assert!(other.verify(0, None, None).is_err(), "{name:?}, byte {at}, listed: {lists}");
            }
            let mut less = whole.clone();
            less.files.remove(name);
            let needed = !name.iter().any(is_partial) && !name.starts_with("checkpoints");
            assert!(!needed || less.verify(0, None, None).is_err(), "{name:?} is gone, listed: {lists}");
        }
    }
}

/// Partial tiles of sizes before this one may lie there, and go.
fn is_partial(part: &std::ffi::OsStr) -> bool {
    part.to_str().is_some_and(|part| part.ends_with(".p"))
}

#[test]
fn a_change_of_keys_without_the_checkpoint_of_those_before_is_found_also_where_nothing_is_listed() {
    for lists in [true, false] {
        let whole = Public::new(lists);
        let kept: Vec<_> = whole.files.keys().filter(|name| name.starts_with("checkpoints")).cloned().collect();
        let found = kept.iter().filter(|name| {
            let mut less = whole.clone();
            less.files.remove(*name);
            less.verify(0, None, None).is_err()
        });
        assert_eq!(found.count(), 2, "one for each change, listed: {lists}");
    }
}

#[test]
fn an_older_state_a_longer_one_and_another_history_are_told_by_a_head() {
    let public = Public::new(false);
    let head = public.checkpoint().head;
    let longer = Head { size: head.size + 1, ..head };
    let other = Head { root: ephor_base::Digest([7; 32]), ..head };
    assert!(matches!(public.verify(2, Some(longer), None), Err(Damage::CutBack { .. })));
    assert_eq!(public.verify(2, Some(other), None), Err(Damage::HeadForeign));
    let first = public.files.iter().find(|(name, _)| name.starts_with("checkpoints")).unwrap();
    let earlier = Checkpoint::parse(first.1).unwrap().head;
    assert!(public.verify(2, Some(earlier), None).is_ok());
}

#[test]
fn lines_of_witnesses_beside_ours_are_no_damage() {
    let mut public = Public::new(true);
    let signed = public.files[Path::new("checkpoint")].clone();
    let known = KnownLog::of(&crate::lineage::public(2)).unwrap();
    for seed in [8, 9] {
        let witness = opened(vec![known.clone()], &Seeded::new(seed));
        let answer = submit(&witness, 0, &[], &signed);
        assert_eq!(answer.response.status, 200);
        public.files.get_mut(Path::new("checkpoint")).unwrap().extend_from_slice(&answer.response.body);
    }
    let lines = public.checkpoint().note.signatures.len();
    assert_eq!(lines, 6, "ours and two of each witness");
    assert!(public.verify(0, None, None).is_ok());
}

#[test]
fn an_empty_place_and_foreign_keys_are_told_apart() {
    let mut public = Public::new(true);
    let foreign = ephor_chain::SigningKeys::generate(&Seeded::new(99)).verifier().clone();
    let source: Arc<dyn TileSource> = Arc::new(public.clone());
    let against = Against { keys: &foreign, head: None, from: None };
    let Err(ScanError::Damaged(finding)) = verify(&source, against, |_, _| ()) else { panic!() };
    assert_eq!(finding.damage, Damage::Keys);
    public.files.clear();
    assert_eq!(public.verify(0, None, None), Err(Damage::PublishedMissing));
}
