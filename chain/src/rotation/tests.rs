//! That a checkpoint counts only under the keys in force, wherever it lies.

use std::time::Duration;

use ephor_base::{Clock, Timestamp};
use ephor_record::{Damage, Finding, ScanError};
use ephor_signatures::Signatures;
use ephor_tlog::{Checkpoint, Head, checkpoint};

use super::*;
use crate::{
    Config, VaultKey,
    disk::Disk,
    frame::{self, FrameHeader},
    segment::{self, SegmentHeader},
    verify::{Against, verify},
};

/// The checkpoint of a head, by these keys.
fn signed(head: Head, keys: &SigningKeys) -> Vec<u8> {
    keys.sign(head.text(keys.origin())).unwrap().to_bytes()
}

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_226_899_000_000)
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

struct Counting(std::sync::atomic::AtomicU8);

impl Random for Counting {
    fn fill(&self, into: &mut [u8]) {
        into.fill_with(|| self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    }
}

fn wait<F: Future>(future: F) -> F::Output {
    struct Spinning;
    impl std::task::Wake for Spinning {
        fn wake(self: Arc<Self>) {}
    }
    let mut future = std::pin::pin!(future);
    let waker = std::task::Waker::from(Arc::new(Spinning));
    let mut context = std::task::Context::from_waker(&waker);
    loop {
        match future.as_mut().poll(&mut context) {
            std::task::Poll::Ready(value) => return value,
            std::task::Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// Signs the checkpoint of each batch in turn with the keys of the other generation.
#[test]
fn a_checkpoint_signed_by_another_generation_than_the_one_in_force_is_found() {
    let home = tempfile::tempdir().unwrap();
    let (config, random) = (Config::in_home(home.path()), Arc::new(Counting(0.into())));
    let files: Arc<dyn Files> = Arc::new(Disk);
    let (old, vault) = (SigningKeys::generate(&*random), Arc::new(VaultKey::generate(&*random)));
    let new = SigningKeys::generate_next(old.verifier(), &*random);
    let again = |keys: &SigningKeys, name: &str| {
        let path = home.path().join("keys").join(name);
        keys.save(&path, &Disk).unwrap();
        SigningKeys::load(&path, &Disk).unwrap()
    };
    let opened = Log::open(config.clone(), again(&old, "old"), vault, Arc::clone(&files), Arc::new(Still), random, "0");
    let (log, _) = opened.unwrap();
    wait(log.rotate(again(&new, "new"), OperatorId([1; 16]))).unwrap();
    wait(log.close()).unwrap();

    let path = segment::folder(&config.folder).join(segment::name(0));
    let bytes = std::fs::read(&path).unwrap();
    let (head, _) = bytes.split_at(segment::HEADER);
    assert!(SegmentHeader::parse(head).is_ok());
    let check = |keys: &SigningKeys| {
        verify(&config.folder, &files, Against { keys: keys.verifier(), head: None, vault: None, from: None }, |_| ())
            .map(|_| ())
    };
    check(&old).unwrap();
    check(&new).unwrap();
    let (mut at, mut turns) = (segment::HEADER, Vec::new());
    while let Some(header) = bytes.get(at..).and_then(FrameHeader::parse) {
        let end = at + header.length as usize;
        let sections = frame::sections(&header, bytes.get(at..end).unwrap()).unwrap();
        let checkpoint = Checkpoint::parse(sections.checkpoint).unwrap();
        let by_old = checkpoint.check(old.verifier(), &Signatures).is_ok();
        turns.push(by_old);
        let note = signed(checkpoint.head, if by_old { &new } else { &old });
        let count = header.count as usize;
        let forged = frame::build(header.first, count, sections.entries, sections.contents, &note).unwrap();
        let changed = [bytes.get(..at).unwrap(), &forged, bytes.get(end..).unwrap()].concat();
        std::fs::write(&path, changed).unwrap();
        for keys in [&old, &new] {
            let found = check(keys);
            let here = |finding: &Finding| {
                finding.offset == at as u64 && matches!(finding.damage, Damage::Signature(_))
                    // The last one is published as well, byte for byte.
                    || finding.damage == Damage::PublishedForeign
            };
            assert!(matches!(&found, Err(ScanError::Damaged(finding)) if here(finding)), "batch at {at}: {found:?}");
        }
        at = end;
    }
    assert_eq!(turns, [true, true, false, false], "opening, naming, confirming, stopping");
}

/// A log of which the journal holds only the end, in whose past the keys were changed.
struct Recycled {
    home: tempfile::TempDir,
    files: Arc<dyn Files>,
    generations: Vec<SigningKeys>,
    /// The head behind each change of keys.
    changes: Vec<Head>,
    /// A checkpoint before, between and behind the changes.
    known: Vec<Checkpoint>,
}

impl Recycled {
    fn new(changes: usize) -> Self {
        let home = tempfile::tempdir().unwrap();
        let (files, random): (Arc<dyn Files>, _) = (Arc::new(Disk), Arc::new(Counting(0.into())));
        let mut generations = vec![SigningKeys::generate(&*random)];
        let config = Config { segment_bytes: 8000, publish_every: Duration::MAX, ..Config::in_home(home.path()) };
        let vault = Arc::new(VaultKey::generate(&*random));
        let again = |keys: &SigningKeys| {
            let path =
                home.path().join("keys").join(ephor_base::Digest::of(keys.verifier().ed25519().as_bytes()).to_string());
            if !path.exists() {
                keys.save(&path, &Disk).unwrap();
            }
            SigningKeys::load(&path, &Disk).unwrap()
        };
        let (signing, clock) = (again(&generations[0]), Arc::new(Still));
        let (log, _) = Log::open(config, signing, vault, Arc::clone(&files), clock, random.clone(), "0").unwrap();
        let (mut known, mut named) = (Vec::new(), Vec::new());
        let mut keep = |_: Head| {
            let bytes = std::fs::read(checkpoint::path(&home.path().join("chain"))).unwrap();
            known.push(Checkpoint::parse(&bytes).unwrap());
        };
        for change in 0..=changes {
            for _ in 0..3 {
                let fact = Fact::Lease { secret: "s".repeat(1000) };
                wait(log.append(Record { subject: Subject::default(), fact, content: None })).unwrap();
            }
            keep(wait(log.publish()).unwrap());
            if change < changes {
                let next = SigningKeys::generate_next(log.keys().as_ref().unwrap(), &*random);
                named.push(wait(log.rotate(again(&next), OperatorId([1; 16]))).unwrap());
                generations.push(next);
                keep(wait(log.publish()).unwrap());
            }
        }
        wait(log.close()).unwrap();
        let published =
            ephor_verify::Published::in_folder(&home.path().join("chain"), &files, known.last().unwrap().head.size);
        let changes = named.iter().map(|seq| published.head(seq.0.saturating_add(1)).unwrap()).collect();
        Self { home, files, generations, changes, known }
    }

    fn chain(&self) -> PathBuf {
        self.home.path().join("chain")
    }

    fn check_from(&self, generation: usize, from: Option<&Checkpoint>) -> Result<(), Finding> {
        let vault = self.home.path().join("vault");
        let against = Against { keys: self.generations[generation].verifier(), head: None, vault: Some(&vault), from };
        match verify(&self.chain(), &self.files, against, |_| ()) {
            Ok(_) => Ok(()),
            Err(ScanError::Damaged(finding)) => Err(finding),
            Err(error) => panic!("{error}"),
        }
    }

    /// Verifies with each generation; all must agree.
    fn check(&self) -> Result<(), Finding> {
        let mut found: Vec<_> = (0..self.generations.len()).map(|given| self.check_from(given, None)).collect();
        found.dedup();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// Does something to a file and undoes it.
    fn with(&self, path: &Path, bytes: Option<Vec<u8>>) -> Result<(), Finding> {
        let before = std::fs::read(path).unwrap();
        match bytes {
            Some(bytes) => std::fs::write(path, bytes).unwrap(),
            None => std::fs::remove_file(path).unwrap(),
        }
        let found = self.check();
        std::fs::write(path, before).unwrap();
        found
    }
}

#[test]
fn a_log_with_changes_of_keys_that_the_journal_no_longer_holds_is_verified_with_any_of_them() {
    let log = Recycled::new(2);
    let oldest = std::fs::read_dir(log.chain().join("journal")).unwrap().map(|entry| entry.unwrap().file_name()).min();
    let oldest = segment::first_of(Path::new(&oldest.unwrap())).unwrap();
    assert!(
        oldest > log.changes[1].size,
        "the journal begins at {oldest}, the last change ends at {:?}",
        log.changes[1]
    );
    assert_eq!(log.check(), Ok(()));
    // Whoever verified up to some checkpoint before goes on from there with the keys of any time.
    for from in &log.known {
        for generation in 0..3 {
            assert_eq!(log.check_from(generation, Some(from)), Ok(()), "keys {generation} from {}", from.head.size);
        }
    }
    // Keys that signed nothing of what is read, and from which nothing leads to those that did, vouch for nothing of it.
    let (late, first) = (log.known.last(), checkpoint::kept_path(&log.chain(), log.changes[0].size));
    let other = signed(log.changes[0], &log.generations[2]);
    std::fs::write(first, other).unwrap();
    assert!(matches!(log.check_from(0, late), Err(Finding { damage: Damage::Keys | Damage::KeysUnused, .. })));
    assert_eq!(log.check_from(1, late), Ok(()));
}

#[test]
fn each_kept_or_published_checkpoint_counts_only_under_the_keys_that_were_in_force() {
    let log = Recycled::new(2);
    let folder = log.chain().join(checkpoint::KEPT);
    let mut paths: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.push(checkpoint::path(&log.chain()));
    assert!(paths.len() >= 3, "{paths:?}");
    for path in paths {
        let found = Checkpoint::parse(&std::fs::read(&path).unwrap()).unwrap();
        let own = log.generations.iter().position(|keys| found.check(keys.verifier(), &Signatures).is_ok()).unwrap();
        for (other, keys) in log.generations.iter().enumerate().filter(|(other, _)| *other != own) {
            let forged = signed(found.head, keys);
            let found = log.with(&path, Some(forged)).unwrap_err();
            let what = format!("{} by generation {other}: {found}", path.display());
            assert!(matches!(found.damage, Damage::Signature(_)), "{what}");
        }
    }
    assert_eq!(log.check(), Ok(()));
}

#[test]
fn a_change_of_keys_without_the_checkpoint_of_the_old_ones_is_found() {
    let log = Recycled::new(2);
    for change in &log.changes {
        let path = checkpoint::kept_path(&log.chain(), change.size);
        let found = log.with(&path, None).unwrap_err();
        assert_eq!((found.damage, found.seq), (Damage::Missing, Some(Seq(change.size))));
    }
    assert_eq!(log.check(), Ok(()));
}
