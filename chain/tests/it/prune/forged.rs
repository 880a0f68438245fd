//! What the holder of the keys could record of a pruning, and what others make of a pruned folder.

use std::{fs, path::Path, path::PathBuf, sync::Arc};

use ephor_base::{Seq, Timestamp};
use ephor_chain::{Against, disk::Disk, verify};
use ephor_record::{Entry, Fact, LastNumbers, Pruning, Snapshot, Subject, snapshot::InForce};
use ephor_tlog::Head;

use super::{DAY, pruned};
use crate::{
    common::{
        OPERATOR, Seeded,
        forge::{self, Forge, Tiles},
        history::Leaves,
    },
    document::Second,
    third_parties::read_published_from,
};

/// A log of a lease a day and a pruning, as it could be forged.
#[derive(Clone)]
struct Case {
    /// How many days there are before the pruning.
    days: u64,
    subject: Subject,
    parts: Vec<Pruning>,
    /// What stands between the first part and the next.
    between: bool,
    root: Option<Head>,
}

fn entry(seq: u64, time: u64, subject: &Subject, fact: Fact) -> Vec<u8> {
    let (seq, time, subject) = (Seq(seq), Timestamp(time), subject.clone());
    Entry { version: 2, seq, time, subject, fact, content: None }.to_bytes()
}

fn state(forge: &Forge) -> Snapshot {
    let [ed25519, ml_dsa_65] = forge.lines();
    Snapshot {
        part: 0,
        of: 1,
        boots: 1,
        stopped: false,
        used: LastNumbers::default(),
        keys: InForce { ed25519, ml_dsa_65 },
        open: Vec::new(),
        earlier: Vec::new(),
        erased: Vec::new(),
        pruned: None,
        standing: None,
        vault: None,
    }
}

/// A pruning of the first 256 entries that keeps the rules.
fn honest(forge: &Forge) -> Case {
    let pruning = Pruning {
        minimum: 256,
        keep_seconds: 180 * 86_400,
        floor: Timestamp(300 * DAY),
        newest: Timestamp(255 * DAY),
        size: 512,
        root: ephor_base::Digest([0; 32]),
        state: state(forge),
    };
    let subject = Subject { operator: Some(OPERATOR), ..Subject::default() };
    Case { days: 600, subject, parts: vec![pruning], between: false, root: None }
}

impl Case {
    fn with(mut self, change: impl FnOnce(&mut Pruning)) -> Self {
        change(&mut self.parts[0]);
        self
    }

    fn entries(&self, forge: &Forge) -> Vec<Vec<u8>> {
        let [ed25519, ml_dsa_65] = forge.lines();
        let (none, lease) = (Subject::default(), Fact::Lease { secret: "token".into() });
        let boot = Fact::Boot { number: 1, version: "1".into(), clean: true, trimmed_bytes: 0, vault: None };
        let mut entries =
            vec![entry(0, 0, &none, Fact::Origin { ed25519, ml_dsa_65, follows: None }), entry(1, DAY, &none, boot)];
        entries.extend((2..self.days).map(|day| entry(day, day * DAY, &none, lease.clone())));
        let leaves = Leaves::of(&entries);
        let time = self.days * DAY;
        for (at, part) in self.parts.iter().enumerate() {
            let sized = usize::try_from(part.size).unwrap().min(leaves.0.len());
            let root = self.root.map_or_else(|| leaves.head(sized).root, |head| head.root);
            let fact = Fact::Prune(Pruning { root, ..part.clone() });
            entries.push(entry(entries.len() as u64, time, &self.subject, fact));
            if at == 0 && self.between {
                entries.push(entry(entries.len() as u64, time, &none, lease.clone()));
            }
        }
        entries.push(entry(entries.len() as u64, time, &none, lease));
        entries
    }
}

/// What both verifiers say of the log, as it is or with what lies below `minimum` gone.
fn holds(forge: &Forge, second: Option<&Second>, case: &Case, cut: Option<u64>, name: &str) -> bool {
    let home = tempfile::tempdir().unwrap();
    let chain = home.path().join("chain");
    let entries = case.entries(forge);
    let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| forge::write(&chain.join(path), bytes));
    entries.iter().for_each(|entry| tiles.push(entry));
    let head = tiles.finish();
    forge::write(&chain.join("checkpoint"), &forge.checkpoint(head));
    if let Some(minimum) = cut {
        for index in 0..minimum / 256 {
            fs::remove_file(chain.join(format!("tile/0/{index:03}"))).unwrap();
            fs::remove_file(chain.join(format!("tile/entries/{index:03}"))).unwrap();
        }
        let record = case.days;
        forge::write(&chain.join("minimum"), format!("{minimum}\n{record}\n").as_bytes());
    }
    let segment = forge.segment(head, &[], &[], &[]);
    forge::write(&chain.join(format!("journal/{:020}.seg", head.size)), &segment[..128]);
    let keys = forge.lines().map(|line| line + "\n").concat();
    forge::write(&home.path().join("keys"), keys.as_bytes());
    let keys = keys.parse().unwrap();
    let against = Against { keys: &keys, head: None, vault: None, from: None };
    let said = verify(&chain, &(Arc::new(Disk) as _), against, |_| ());
    if let Some(second) = second {
        let other = second.run(&[Path::new("chain"), &chain, &home.path().join("keys")]);
        assert_eq!(said.is_ok(), other.is_ok(), "{name}: {said:?} and {other:?}");
    }
    said.is_ok()
}

#[test]
fn a_pruning_against_the_rules_is_refused_by_both_verifiers() {
    let (forge, second) = (Forge::new(&Seeded::new(42)), Second::find());
    let honest = || honest(&forge);
    let nobody = Case { subject: Subject::default(), ..honest() };
    let session = Subject { session: Some(super::session(1)), ..honest().subject };
    let more = |change: fn(&mut Pruning, &mut Pruning)| {
        let mut case = honest();
        let (mut first, mut other) = (case.parts[0].clone(), case.parts[0].clone());
        change(&mut first, &mut other);
        case.parts = vec![first, other];
        case
    };
    let two = |first: &mut Pruning, other: &mut Pruning| {
        (first.state.of, other.state.of, other.state.part) = (2, 2, 1);
    };
    // Of an honest log what goes can be seen; of one that was cut, what is left.
    let cases = [
        ("it keeps them", honest(), true, true),
        ("for nobody", nobody, false, false),
        ("of a session", Case { subject: session, ..honest() }, false, false),
        ("less than the floor", honest().with(|part| part.keep_seconds -= 1), false, false),
        ("a longer retention that was kept", honest().with(|part| part.keep_seconds = 200 * 86_400), true, true),
        ("a longer one that was not", honest().with(|part| part.keep_seconds = 400 * 86_400), false, false),
        ("no multiple of 256", honest().with(|part| part.minimum = 255), false, false),
        ("nothing", honest().with(|part| part.minimum = 0), false, false),
        ("more than was published", honest().with(|part| part.size = 9999), false, false),
        ("more than it was decided under", honest().with(|part| part.size = 255), false, false),
        ("a floor that is too young", honest().with(|part| part.floor = Timestamp(421 * DAY)), false, false),
        ("what goes is younger than the floor", honest().with(|part| part.floor = Timestamp(254 * DAY)), false, false),
        ("another time of what goes", honest().with(|part| part.newest = Timestamp(250 * DAY)), false, true),
        (
            "too early",
            Case { days: 430, ..honest() }.with(|part| (part.floor, part.size) = (Timestamp(250 * DAY), 300)),
            false,
            false,
        ),
        (
            "too early, and it lies about the time of what goes",
            Case { days: 420, ..honest() }
                .with(|part| (part.floor, part.newest, part.size) = (Timestamp(200 * DAY), Timestamp(200 * DAY), 300)),
            false,
            false,
        ),
        ("another state", honest().with(|part| part.state.used.pid = 1), false, true),
        (
            "another root",
            Case { root: Some(Head { size: 512, root: ephor_base::Digest([7; 32]) }), ..honest() },
            false,
            false,
        ),
        ("a part alone", honest().with(|part| part.state.of = 2), false, false),
        ("a part that is none", honest().with(|part| part.state.part = 1), false, false),
        ("twice", more(|_, _| ()), false, false),
        ("two parts of one", more(two), false, false),
        (
            "parts of different ones",
            more(|first, other| {
                (first.state.of, other.state.of, other.state.part, other.size) = (2, 2, 1, 511);
            }),
            false,
            false,
        ),
        ("something between its parts", Case { between: true, ..more(two) }, false, false),
    ];
    for (name, case, whole, cut) in cases {
        assert_eq!(holds(&forge, second.as_ref(), &case, None, name), whole, "{name}, whole");
        let cut_holds = holds(&forge, second.as_ref(), &case, Some(256), name);
        assert_eq!(cut_holds, cut, "{name}, cut");
        let further = case.days >= 512 && holds(&forge, second.as_ref(), &case, Some(512), name);
        assert!(!further, "{name}, cut further than it says");
    }
}

#[test]
fn a_pruned_folder_is_read_and_proven_by_others() {
    let (memory, world, pruned) = pruned();
    let disk = tempfile::tempdir().unwrap();
    for (path, bytes) in memory.everything() {
        forge::write(&disk.path().join(path.strip_prefix("/home").unwrap()), &bytes);
    }
    let (chain, keys) = (disk.path().join("chain"), disk.path().join("keys"));
    let size = read_published_from(&chain, &world.verifier(), pruned.minimum);
    assert!(size > pruned.minimum + 256);
    forge::write(&keys, world.verifier().to_string().as_bytes());
    let Some(second) = Second::find() else { return };
    let run = || second.run(&[Path::new("chain"), &chain, &keys, &disk.path().join("vault")]);
    assert!(run().unwrap().starts_with(&format!("{size} ")));
    // Whatever is changed in what is left is found by the second verifier too.
    let chance = Seeded::new(3);
    for (path, bytes) in memory.everything() {
        let name = path.strip_prefix("/home").unwrap();
        let counts =
            name.starts_with("chain") && !name.starts_with("chain/journal") || name.starts_with("vault/content");
        if !counts {
            continue;
        }
        let (place, mut changed) = (disk.path().join(name), bytes.clone());
        let at = usize::try_from(chance.below(changed.len() as u64)).unwrap();
        changed[at] ^= 1;
        forge::write(&place, &changed);
        assert!(run().is_err(), "byte {at} of {}", name.display());
        forge::write(&place, &bytes);
    }
    assert!(run().is_ok());
}
