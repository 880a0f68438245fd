//! `docs/chain-format.md`: its test vectors are what is written, and the second verifier agrees.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, atomic},
    time::Duration,
};

use chacha20poly1305::{
    KeyInit as _, XChaCha20Poly1305, XNonce,
    aead::{Aead as _, Payload},
};
use ephor_base::{
    ActionKind, Budget, CallId, Capability, Clock, Confidentiality, Decision, Digest, EndReason, Exhausted, MessageId,
    Offset, OperatorId, Part, PartKind, Pid, Random as _, Resource, Seat, Seq, SpanId, TicketId, Timestamp, TurnReport,
};
use ephor_chain::{Against, disk::Disk, read, verify};
use ephor_record::{
    Because, Cause, Chosen, Commitment, Content, Decree, Entry, Errand, Fact, Grounds, Missed, Opening, Record,
    Restart, Role, RulingOn, Signal, Subject, Terms, Undelivered, operators::operator_id,
};
use ephor_tlog::{EntryProof, Head, KnownLog, Note, Tile};
use ephor_verify::{Checked, check};

use crate::common::{
    OPERATOR, SESSION, Seeded, World, block_on,
    forge::{self, Forge, Tiles},
    history::Leaves,
    intent,
    memory::Memory,
    message, outcome, plain, verdict,
};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/chain-format")
}

/// A clock that moves only when it is told to, so that it does not matter who reads it.
#[derive(Default)]
struct Fixed(atomic::AtomicU64);

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(1_795_226_899_000_000 + self.0.load(atomic::Ordering::Relaxed))
    }
    fn monotonic(&self) -> Duration {
        Duration::ZERO
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The records of the vectors: one of each fact that a caller records.
fn records() -> Vec<Record> {
    let subject = Subject { session: Some(SESSION), operator: Some(OPERATOR), ..Subject::default() };
    let own = |fact| Record { subject: Subject::default(), fact, content: None };
    let ours = |fact, content| Record { subject: subject.clone(), fact, content };
    let digest = Digest::of(b"policy");
    vec![
        own(Fact::Operator { key: [5; 32] }),
        own(Fact::Policy { digest, environment: "dev".into(), terms: Some(terms()) }),
        own(Fact::Tool {
            name: "fs.read".parse().unwrap(),
            registration: Digest::of(b"tool"),
            code: Digest::of(b"code"),
        }),
        ours(Fact::Spawn { parent: None, incarnation: 1 }, Some(Content::Text("a specification".into()))),
        Record {
            fact: Fact::Message {
                id: MessageId(1),
                spans: vec![SpanId(0), SpanId(300)],
                from: None,
                because: None,
                owed: false,
                scope: Some(vec!["fs.write".parse().unwrap()]),
                offset: Offset::of_minutes(-330),
            },
            ..message(1, "hello")
        },
        verdict(1, Decision::Deny),
        ours(
            Fact::Ticket {
                id: TicketId(1),
                target: "fs.read".into(),
                arguments: Digest::of(b"veiled"),
                policy: digest,
                expires: Timestamp(1_795_226_999_000_000),
                quorum: Some(2),
                registration: Some(Digest::of(b"registration")),
            },
            Some(Content::Text("may it?".into())),
        ),
        ours(
            Fact::Ruling {
                on: RulingOn::Ticket(TicketId(1)),
                decision: Decision::Permit,
                signature: vec![8; 64],
                how: "answered".into(),
                policy: Some(digest),
                note: Some("go on".into()),
                always: None,
            },
            None,
        ),
        ours(
            Fact::Ruling {
                on: RulingOn::Tools(vec!["fs.read".parse().unwrap()]),
                decision: Decision::Deny,
                signature: Vec::new(),
                how: "nobody-to-ask".into(),
                policy: None,
                note: None,
                always: None,
            },
            None,
        ),
        own(Fact::Lease { secret: "token".into() }),
        own(Fact::Restarts {
            restarts: vec![
                Restart { name: "a".into(), reason: "killed".into(), exited: Some(Pid(3)), started: Some(Pid(7)) },
                Restart { name: "b".into(), reason: "start_failed".into(), exited: None, started: None },
                Restart { name: "c".into(), reason: "panicked".into(), exited: Some(Pid(4)), started: Some(Pid(300)) },
            ],
        }),
        ours(
            Fact::TurnEnd {
                message: MessageId(1),
                end: EndReason::BudgetSpent(Resource::WallTime),
                report: TurnReport { requests: 2, ..TurnReport::default() },
            },
            None,
        ),
        ours(Fact::Exit { reason: "normal".into() }, None),
        ours(
            Fact::Opened {
                rights: vec![Capability::Model, Capability::FsRead],
                role: "agent".into(),
                namespace: "default".into(),
                agent: Some("digest".into()),
                p0: Some(100),
                tools: Some(vec!["fs.read".parse().unwrap()]),
                zone: Some("Europe/Berlin".into()),
                planned: true,
            },
            Some(Content::Opening(Opening {
                instructions: "Be good.".into(),
                provider: "builtin".into(),
                model: "scout".into(),
                workspace: "/work".into(),
                script: Some("{}".into()),
                budget: Some(Budget { tokens: 9, ..Budget::ZERO }),
            })),
        ),
        own(Fact::document(b"forbid (principal, action, resource);").next().unwrap()),
        grounded(),
    ]
    .into_iter()
    .chain(standing())
    .chain(decrees())
    .chain(crate::judgments::records(FIRST_DECREE + 5))
    .chain([crate::standing::record_of_appointment()])
    .collect()
}

/// The decrees of an owner: the first vouches for itself, and each is bound to the one before.
fn decrees() -> Vec<Record> {
    let key = |seed| ed25519_dalek::SigningKey::from_bytes(&[seed; 32]);
    let (owner, other) = (key(5), key(6).verifying_key().to_bytes());
    let origin = World::new(Memory::default().files(), Path::new("/home")).verifier().origin().to_owned();
    let enrol = |key, name: &str, role| Decree::Enrol { key, name: name.into(), role };
    let decrees = [
        enrol(owner.verifying_key().to_bytes(), "ada", Role::Owner),
        enrol(other, "bob", Role::Viewer),
        Decree::Rank { operator: operator_id(&other), role: Role::Approver },
        Decree::Dismiss { operator: operator_id(&other) },
        Decree::Enact { policy: Digest::of(b"policy"), terms: terms(), environment: "dev".into() },
    ];
    let operator = Some(operator_id(&owner.verifying_key().to_bytes()));
    let at = |number: u64| if number == 0 { Seq(0) } else { Seq(FIRST_DECREE + number - 1) };
    let record = |(number, decree): (u64, Decree)| Record {
        subject: Subject { operator, ..Subject::default() },
        fact: decree.sign(&origin, at(number), &owner),
        content: None,
    };
    (0..).zip(decrees).map(record).collect()
}

/// Where the first decree stands.
const FIRST_DECREE: u64 = FIRST_STANDING + 13;

/// The facts of what stands until it is taken back.
fn standing() -> Vec<Record> {
    let seat = Some(Seat::root("node").child("agents").child("a"));
    let subject = Subject { session: Some(SESSION), operator: Some(OPERATOR), seat, ..Subject::default() };
    let of = |fact, content| Record { subject: subject.clone(), fact, content };
    let owed = |id, because| Fact::Message {
        id: MessageId(id),
        spans: Vec::new(),
        from: None,
        because,
        owed: true,
        scope: None,
        offset: None,
    };
    let parts = vec![Part { kind: PartKind::Typed, text: "good morning".into() }];
    let errand = Errand {
        parts,
        workspace: "/work".into(),
        model: None,
        agent: Some("digest".into()),
        scope: Some(vec![crate::standing::pin()]),
    };
    let schedule =
        Fact::Schedule { name: "a".into(), cron: "0 7 * * *".into(), zone: "UTC".into(), missed: Missed::Once };
    let signal = |signal, tree, cause| Fact::Signal { signal, tree, cause, note: "enough".into() };
    let fire = Because::Fire { name: "a".into(), at: Timestamp(1_795_226_900_000_000) };
    let limit = Budget { tokens: 100, messages: 7, ..Budget::ZERO };
    let dead = |message, accepted| Fact::Dead {
        message: MessageId(message),
        accepted: Seq(accepted),
        why: Undelivered::GaveUp,
    };
    vec![
        of(signal(Signal::Stop, true, Cause::Operator), None),
        of(signal(Signal::Suspend, false, Cause::Budget), None),
        of(Fact::Limit { limit, note: "go on".into() }, None),
        of(owed(2, None), Some(crate::standing::pinned())),
        of(dead(2, FIRST_STANDING + 3), None),
        of(owed(3, Some(Because::Replay(MessageId(2)))), None),
        of(dead(3, FIRST_STANDING + 5), None),
        of(Fact::Buried { message: MessageId(3), note: "spam".into() }, None),
        of(schedule, Some(Content::Errand(errand))),
        of(owed(4, Some(fire)), None),
        of(Fact::Forbidden { act: "erase".into(), why: "that takes the role `owner`".into() }, None),
        of(Fact::Skipped { name: "a".into(), at: Timestamp(1_795_313_300_000_000) }, None),
        of(Fact::Unscheduled { name: "a".into() }, None),
    ]
}

/// Where the first of them stands: behind an origin, a boot and one of each of the others.
const FIRST_STANDING: u64 = 18;

fn terms() -> Terms {
    let constitution = Digest::of(b"forbid (principal, action, resource);");
    let (capabilities, never) = (vec![Capability::FsRead], vec!["fs.write".parse().unwrap()]);
    Terms { constitution, capabilities, never, models: ephor_base::Reach::default() }
}

/// A verdict that says what it was decided on.
fn grounded() -> Record {
    let mut record = verdict(1, Decision::Deny);
    if let Fact::Verdict { grounds, .. } = &mut record.fact {
        *grounds = Some(Grounds {
            context: Confidentiality::Internal,
            suspended: false,
            over: false,
            chosen: Some(Chosen { of: CallId(1), index: 2 }),
            within: None,
            spent: Some(Exhausted { resource: Resource::ToolCalls, needed: 1, left: 0 }),
        });
    }
    record
}

/// The log of the vectors, and every file of them.
fn vectors() -> BTreeMap<PathBuf, Vec<u8>> {
    let memory = Memory::default();
    let world = World::new(memory.files(), Path::new("/home"));
    let clock = Arc::new(Fixed::default());
    let world = World { clock: Arc::clone(&clock) as _, ..world };
    let (log, _) = world.open().unwrap();
    for record in records() {
        clock.0.fetch_add(1000, atomic::Ordering::Relaxed);
        block_on(log.append(record)).unwrap();
    }
    let permitted = block_on(log.intend(verdict(2, Decision::Permit), intent(2))).unwrap();
    block_on(log.settle(permitted.seq(), outcome(2, permitted.seq(), "found"))).unwrap();
    let veil = block_on(log.veil(SESSION)).unwrap().digest(&[b"fs.read", b"{}"]);
    block_on(log.close()).unwrap();

    let kept = |path: &Path| {
        !path.starts_with("chain/journal") && (path.starts_with("chain") || path.starts_with("vault/content"))
    };
    let all = memory.everything().into_iter();
    let all = all.map(|(path, bytes)| (path.strip_prefix("/home").unwrap().to_owned(), bytes));
    let mut files: BTreeMap<_, _> = all.filter(|(path, _)| kept(path)).collect();
    let stored: Vec<_> = read(&world.config.folder, &world.files).map(Result::unwrap).collect();
    let entries: Vec<_> = stored.iter().map(|stored| stored.entry.to_bytes()).collect();
    let leaves = Leaves::of(&entries);
    let (size, index) = (entries.len(), 3);
    let head = leaves.head(size);
    let checkpoint = Note::parse(&files[Path::new("chain/checkpoint")]).unwrap();
    let proof = EntryProof {
        extra: Some(entries[index].clone()),
        index: index as u64,
        path: leaves.inclusion(index, size),
        checkpoint,
    };
    let lines: String = leaves.0.iter().map(|leaf| format!("{leaf}\n")).collect();
    let expected = format!(
        "origin {}\nsize {size}\nroot {}\nproof {index}\nveiled(fs.read, {{}}) {veil}\n",
        world.verifier().origin(),
        head.root
    );
    files.insert("keys".into(), world.verifier().to_string().into_bytes());
    files.insert("leaves".into(), lines.into_bytes());
    files.insert("opened".into(), opened(&world, &memory, &files).into_bytes());
    files.insert("proof".into(), proof.to_bytes());
    files.insert("expected".into(), expected.into_bytes());
    files.extend(pruned().into_iter().map(|(path, bytes)| (Path::new("pruned").join(path), bytes)));
    files
}

/// A log of 7 months of which the first 256 entries were pruned: the published folder, and the keys.
fn pruned() -> BTreeMap<PathBuf, Vec<u8>> {
    let memory = Memory::default();
    let clock = Arc::new(Fixed::default());
    let world = World { clock: Arc::clone(&clock) as _, ..World::new(memory.files(), Path::new("/home")) };
    let (log, _) = world.open().unwrap();
    let open = block_on(log.intend(verdict(1, Decision::Permit), intent(1))).unwrap().seq();
    // What stands is carried by the pruning.
    let subject = Subject { seat: Some(Seat::root("node")), operator: Some(OPERATOR), ..Subject::default() };
    let (signal, cause, note) = (Signal::Suspend, Cause::Operator, String::new());
    let fact = Fact::Signal { signal, tree: true, cause, note };
    block_on(log.note(Record { subject, fact, content: None })).unwrap();
    for number in 0..251 {
        block_on(log.note(plain(number))).unwrap();
    }
    block_on(log.settle(open, outcome(1, open, "found"))).unwrap();
    for week in 0..30 {
        clock.0.fetch_add(7 * 86_400_000_000, atomic::Ordering::Relaxed);
        block_on(log.append(plain(week))).unwrap();
    }
    block_on(log.publish()).unwrap();
    let plan = log.plan_pruning(ephor_chain::Wish::default(), |_, _| ()).unwrap();
    block_on(log.prune(&plan, OPERATOR)).unwrap();
    block_on(log.close()).unwrap();
    let all = memory.everything().into_iter();
    let all = all.map(|(path, bytes)| (path.strip_prefix("/home").unwrap().to_owned(), bytes));
    let mut files: BTreeMap<_, _> =
        all.filter(|(path, _)| path.starts_with("chain") && !path.starts_with("chain/journal")).collect();
    files.insert("keys".into(), world.verifier().to_string().into_bytes());
    files
}

/// What the holder of the vault key can open, by the document: sequence, key of the session, salt, content.
fn opened(world: &World, memory: &Memory, files: &BTreeMap<PathBuf, Vec<u8>>) -> String {
    let mut vault_key = [0; 32];
    Seeded::new(43).fill(&mut vault_key);
    let decrypt = |key: &[u8], bound: &[u8], sealed: &[u8]| {
        let payload = Payload { msg: &sealed[24..], aad: bound };
        XChaCha20Poly1305::new_from_slice(key).unwrap().decrypt(XNonce::from_slice(&sealed[..24]), payload).unwrap()
    };
    let mut sealed = files[Path::new("vault/content/000")].as_slice();
    let mut lines = String::new();
    for Entry { seq, subject, content, .. } in
        read(&world.config.folder, &world.files).map(|stored| stored.unwrap().entry)
    {
        let Some(Commitment { content, length, .. }) = content else { continue };
        let session = subject.session.unwrap();
        let places = [format!("/home/vault/keys/{session}"), format!("/home/vault/{session}")];
        let place = places.iter().map(Path::new).find(|place| memory.paths().iter().any(|path| path == place)).unwrap();
        let wrapped = memory.get(place);
        let body = wrapped.strip_prefix(b"ephor session key 1\n").unwrap();
        let key = decrypt(&vault_key, &session.0, &body[..body.len() - 32]);
        let (one, rest) = sealed.split_at(length as usize);
        let plain = decrypt(&key, &session.0, one);
        assert_eq!(Digest::of(&plain), content);
        lines += &format!("{seq} {} {} {}\n", hex(&key), hex(&plain[..16]), hex(&plain[16..]));
        sealed = rest;
    }
    assert!(sealed.is_empty());
    lines
}

/// ML-DSA-65 signs with randomness: what follows the Ed25519 line of a checkpoint is another each time.
fn without_ml_dsa(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<_> = text.split_inclusive('\n').collect();
    if lines.iter().any(|line| line.starts_with("— ")) {
        lines[..lines.len() - 1].concat().into_bytes()
    } else {
        bytes.to_vec()
    }
}

#[test]
fn vectors_of_the_format() {
    let (folder, made) = (docs().join("vectors"), vectors());
    if std::env::var_os("EPHOR_KEEP_VECTORS").is_some() {
        let _ = fs::remove_dir_all(&folder);
        made.iter().for_each(|(path, bytes)| forge::write(&folder.join(path), bytes));
    }
    let kept = files_below(&folder);
    let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&kept), names(&made));
    for (path, bytes) in &made {
        assert_eq!(without_ml_dsa(&kept[path]), without_ml_dsa(bytes), "{}", path.display());
    }
    assert!(kept.values().map(Vec::len).sum::<usize>() < 70_000);
    let keys = String::from_utf8(kept[Path::new("keys")].clone()).unwrap().parse().unwrap();
    let logs = [KnownLog::of(&keys).unwrap()];
    let checked = check(&kept[Path::new("proof")], None, &logs, &[]);
    assert!(matches!(checked, Ok(Checked::Entry(entry)) if entry.seq == Seq(3)));
}

fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The second verifier, if this machine can run it. CI names a Python that must be able to.
pub(crate) struct Second(PathBuf);

impl Second {
    pub(crate) fn find() -> Option<Self> {
        let named = std::env::var_os("EPHOR_PYTHON");
        let python = PathBuf::from(named.clone().unwrap_or_else(|| "python3".into()));
        let wanted = "from cryptography.hazmat.primitives.asymmetric import mldsa";
        let there = Command::new(&python).args(["-c", wanted]).output().is_ok_and(|output| output.status.success());
        assert!(there || named.is_none(), "{} has no `cryptography` with ML-DSA", python.display());
        if !there {
            // Past the capture of the test runner, which would hide it.
            let _ = writeln!(
                io::stderr(),
                "!! THE SECOND VERIFIER WAS NOT RUN: `pip install cryptography` (47 or later), or set EPHOR_PYTHON"
            );
        }
        there.then_some(Self(python))
    }

    pub(crate) fn run(&self, arguments: &[&Path]) -> Result<String, String> {
        let script = docs().join("verify.py");
        let output = Command::new(&self.0).arg("-B").arg(script).args(arguments).output().unwrap();
        let (said, wrong) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        match output.status.code() {
            Some(0) => Ok(said.trim().to_owned()),
            Some(1) if !wrong.contains("Traceback") => Err(wrong.trim().to_owned()),
            other => panic!("the second verifier failed with {other:?}: {wrong}"),
        }
    }

    pub(crate) fn chain(&self, home: &Path) -> Result<String, String> {
        self.run(&[Path::new("chain"), &home.join("chain"), &home.join("keys"), &home.join("vault")])
    }

    fn proof(&self, file: &Path, keys: &Path) -> Result<String, String> {
        self.run(&[Path::new("proof"), file, keys])
    }
}

/// A log with several thousand entries, two kept checkpoints, contents, calls and restarts, as files.
fn several_thousand() -> BTreeMap<PathBuf, Vec<u8>> {
    let memory = Memory::default();
    let mut world = World::new(memory.files(), Path::new("/home"));
    world.config.segment_bytes = 200 << 10;
    for round in 0..4u64 {
        let (log, _) = world.open().unwrap();
        for number in 0..250 {
            let call = round * 1000 + number + 1;
            block_on(log.note(plain(call))).unwrap();
            block_on(log.note(message(call, "some words"))).unwrap();
            let intent = block_on(log.intend(verdict(call, Decision::Permit), intent(call))).unwrap();
            if number % 50 != 0 {
                block_on(log.settle(intent.seq(), outcome(call, intent.seq(), "found"))).unwrap();
            }
        }
        world.later(3_600_000_000);
        block_on(log.publish()).unwrap();
        if round % 2 == 0 {
            block_on(log.close()).unwrap();
        }
    }
    let all =
        memory.everything().into_iter().map(|(path, bytes)| (path.strip_prefix("/home").unwrap().to_owned(), bytes));
    let wanted = |path: &Path| {
        (path.starts_with("chain") || path.starts_with("vault/content")) && !path.starts_with("chain/journal")
    };
    let mut files: BTreeMap<_, _> = all.filter(|(path, _)| wanted(path)).collect();
    files.insert("keys".into(), world.verifier().to_string().into_bytes());
    files
}

fn write_all(home: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    let _ = fs::remove_dir_all(home);
    files.iter().for_each(|(path, bytes)| forge::write(&home.join(path), bytes));
}

#[test]
fn a_second_verifier_agrees_on_a_fresh_log_and_refuses_tampered_copies() {
    let Some(second) = Second::find() else { return };
    let (home, files) = (tempfile::tempdir().unwrap(), several_thousand());
    let home = home.path().join("home");
    write_all(&home, &files);
    let note = Note::parse(&files[Path::new("chain/checkpoint")]).unwrap();
    let size: u64 = note.text.lines().nth(1).unwrap().parse().unwrap();
    assert!(size > 4000, "{size}");
    assert!(files.keys().filter(|path| path.starts_with("chain/checkpoints")).count() >= 2);
    assert!(second.chain(&home).unwrap().starts_with(&format!("{size} ")));

    let chance = Seeded::new(11);
    let paths: Vec<_> = files.keys().filter(|path| path.starts_with("chain") || path.starts_with("vault")).collect();
    let some = |prefix: &str| {
        let all: Vec<_> = paths.iter().filter(|path| path.starts_with(prefix)).collect();
        (*all[usize::try_from(chance.below(all.len() as u64)).unwrap()]).clone()
    };
    let kinds = [
        "chain/checkpoint",
        "chain/checkpoints",
        "chain/tile/entries",
        "chain/tile/0",
        "chain/tile/1",
        "vault/content",
    ];
    for kind in kinds {
        for how in 0..4 {
            let (path, mut changed) = (some(kind), files.clone());
            let bytes = changed.get_mut(&path).unwrap();
            let at = usize::try_from(chance.below(bytes.len() as u64)).unwrap();
            match how {
                0 => bytes[at] ^= 1 << chance.below(8),
                1 => bytes.truncate(at),
                2 => bytes.push(0),
                // A log without a kept checkpoint, or without what another size has, is whole.
                _ if !is_needed(&path, size) => continue,
                _ => drop(changed.remove(&path)),
            }
            write_all(&home, &changed);
            let found = second.chain(&home);
            assert!(found.is_err(), "{} ({how}, byte {at}) was accepted", path.display());
        }
    }
    let bundle = |number| PathBuf::from(format!("chain/tile/entries/{number:03}"));
    let mut swapped = files.clone();
    let (first, other) = (files[&bundle(1)].clone(), files[&bundle(2)].clone());
    swapped.insert(bundle(1), other);
    swapped.insert(bundle(2), first);
    write_all(&home, &swapped);
    assert!(second.chain(&home).is_err());
    let mut more = files.clone();
    more.insert("chain/tile/0/note".into(), b"me too".to_vec());
    write_all(&home, &more);
    assert!(second.chain(&home).is_err());
    let mut others = files.clone();
    others.insert("keys".into(), Forge::new(&Seeded::new(1)).lines().map(|line| line + "\n").concat().into_bytes());
    write_all(&home, &others);
    assert!(second.chain(&home).is_err());
}

/// Whether a log of this size must have the file.
fn is_needed(path: &Path, size: u64) -> bool {
    let tile = path.strip_prefix("chain").ok().and_then(Tile::parse);
    let own = |tile: &Tile| Tile::of(tile.kind, tile.index, size) == Some(*tile);
    !path.starts_with("chain/checkpoints") && tile.is_none_or(|tile| own(&tile))
}

#[test]
fn a_second_verifier_agrees_on_the_vectors_and_on_every_byte_of_a_proof() {
    let Some(second) = Second::find() else { return };
    let folder = docs().join("vectors");
    assert!(second.chain(&folder).unwrap().starts_with("45 "));
    let pruned = folder.join("pruned");
    let size = second.run(&[Path::new("chain"), &pruned.join("chain"), &pruned.join("keys")]).unwrap();
    assert!(size.starts_with("290 ") && !pruned.join("chain/tile/0/000").exists(), "{size}");
    let (proof, keys) = (folder.join("proof"), folder.join("keys"));
    assert_eq!(second.proof(&proof, &keys).unwrap(), "entry 3 of 45");
    let (bytes, scratch) = (fs::read(&proof).unwrap(), tempfile::tempdir().unwrap());
    let changed = scratch.path().join("proof");
    let chance = Seeded::new(5);
    for _ in 0..40 {
        let mut bytes = bytes.clone();
        let at = usize::try_from(chance.below(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << chance.below(7);
        fs::write(&changed, bytes).unwrap();
        assert!(second.proof(&changed, &keys).is_err(), "byte {at}");
    }
}

/// A log of the real keys that keeps the rules, and what breaks one of them each. Both verifiers must say the same.
#[test]
fn what_the_holder_of_the_keys_writes_against_the_rules_is_refused_by_both() {
    let forge = Forge::new(&Seeded::new(42));
    assert_eq!(
        forge.lines().map(|line| line + "\n").concat(),
        World::new(Memory::default().files(), Path::new("/home")).verifier().to_string()
    );
    let second = Second::find();
    for (name, holds, entries) in broken(&forge) {
        let home = tempfile::tempdir().unwrap();
        let chain = home.path().join("chain");
        let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| forge::write(&chain.join(path), bytes));
        entries.iter().for_each(|entry| tiles.push(entry));
        let head = tiles.finish();
        let checkpoint = forge.checkpoint(head);
        forge::write(&chain.join("checkpoint"), &checkpoint);
        let empty = Head { size: 0, root: Digest::of(&[]) };
        let segment = forge.segment(empty, &entries, &[], &checkpoint);
        forge::write(&chain.join(format!("journal/{:020}.seg", 0)), &segment);
        let keys = forge.lines().map(|line| line + "\n").concat();
        forge::write(&home.path().join("keys"), keys.as_bytes());
        let keys = keys.parse().unwrap();
        let against = Against { keys: &keys, head: None, vault: None, from: None };
        let first = verify(&chain, &(Arc::new(Disk) as _), against, |_| ());
        assert_eq!(first.is_ok(), holds, "{name}: {first:?}");
        if let Some(second) = &second {
            let said = second.run(&[Path::new("chain"), &chain, &home.path().join("keys")]);
            assert_eq!(said.is_ok(), holds, "{name}: {said:?}");
        }
    }
}

/// A log whose keys change in the middle, published and without a journal: whole, and with each thing that must not be.
#[test]
fn a_change_of_keys_and_an_erasure_are_understood_by_both() {
    let (first, second) = (Forge::new(&Seeded::new(42)), Second::find());
    let next = first.next(&Seeded::new(77));
    let names = |forge: &Forge| {
        let [ed25519, ml_dsa_65] = forge.lines();
        Fact::Keys { ed25519, ml_dsa_65 }
    };
    let [ed25519, ml_dsa_65] = first.lines();
    let none = Subject::default();
    let who = Subject { session: Some(SESSION), operator: Some(OPERATOR), ..none.clone() };
    let erase = Fact::Erase { session: SESSION, derived: Vec::new(), reason: "asked for".into() };
    let boot = Fact::Boot { number: 1, version: "1".into(), clean: true, trimmed_bytes: 0, vault: None };
    let lease = Fact::Lease { secret: "token".into() };
    let start = [(&none, Fact::Origin { ed25519, ml_dsa_65, follows: None }), (&none, boot)];
    let log = |facts: Vec<(&Subject, Fact)>| {
        let all = start.iter().cloned().chain(facts);
        let entry = |(seq, (subject, fact)): (u64, (&Subject, Fact))| {
            Entry { version: 2, seq: Seq(seq), time: Timestamp(1), subject: subject.clone(), fact, content: None }
                .to_bytes()
        };
        (0..).zip(all).map(entry).collect::<Vec<_>>()
    };
    let whole = log(vec![(&none, names(&next)), (&none, lease.clone()), (&who, erase.clone())]);
    let cases = [
        ("whole", true, &next, Some(&first), whole.clone()),
        ("signed by the old keys", false, &first, Some(&first), whole.clone()),
        ("the change signed by the new keys", false, &next, Some(&next), whole.clone()),
        ("the change is not kept", false, &next, None, whole),
        ("back to old keys", false, &first, None, log(vec![(&none, names(&next)), (&none, names(&first))])),
        ("no change, signed by others", false, &next, None, log(vec![(&none, lease.clone())])),
        ("erased twice", false, &first, None, log(vec![(&who, erase.clone()), (&who, erase.clone())])),
        ("erased once", true, &first, None, log(vec![(&who, erase.clone())])),
        ("erased for nobody", false, &first, None, log(vec![(&none, erase)])),
    ];
    for (name, holds, signer, kept_by, entries) in cases {
        let home = tempfile::tempdir().unwrap();
        let chain = home.path().join("chain");
        let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| forge::write(&chain.join(path), bytes));
        entries.iter().for_each(|entry| tiles.push(entry));
        let head = tiles.finish();
        forge::write(&chain.join("checkpoint"), &signer.checkpoint(head));
        if let Some(kept_by) = kept_by {
            let kept = kept_by.checkpoint(Leaves::of(&entries).head(3));
            forge::write(&chain.join(format!("checkpoints/{:020}", 3)), &kept);
        }
        // Only the header of a segment.
        let segment = first.segment(head, &[], &[], &[]);
        forge::write(&chain.join(format!("journal/{:020}.seg", head.size)), &segment[..128]);
        let keys = signer.lines().map(|line| line + "\n").concat();
        forge::write(&home.path().join("keys"), keys.as_bytes());
        let keys = keys.parse().unwrap();
        let against = Against { keys: &keys, head: None, vault: None, from: None };
        let said = verify(&chain, &(Arc::new(Disk) as _), against, |_| ());
        assert_eq!(said.is_ok(), holds, "{name}: {said:?}");
        if let Some(second) = &second {
            let said = second.run(&[Path::new("chain"), &chain, &home.path().join("keys")]);
            assert_eq!(said.is_ok(), holds, "{name}: {said:?}");
        }
    }
}

/// Logs by the name of the rule they break, and whether they hold.
fn broken(forge: &Forge) -> Vec<(&'static str, bool, Vec<Vec<u8>>)> {
    let [ed25519, ml_dsa_65] = forge.lines();
    let entry = |seq: u64, subject: &Subject, fact: &Fact| Entry {
        version: 2,
        seq: Seq(seq),
        time: Timestamp(1000 + seq),
        subject: subject.clone(),
        fact: fact.clone(),
        content: None,
    };
    let none = Subject::default();
    let about = intent(1).subject();
    let origin = Fact::Origin { ed25519, ml_dsa_65, follows: None };
    let boot = |number, clean| Fact::Boot { number, version: "1".into(), clean, trimmed_bytes: 0, vault: None };
    let asked = |decision| verdict(1, decision).fact;
    let wanted = |verdict| {
        let (arguments, reserved) = (intent(1).arguments, Budget { tool_calls: 1, ..Budget::ZERO });
        Fact::Intent { action: ActionKind::Tool, attempt: 1, verdict: Seq(verdict), arguments, reserved }
    };
    let ended = |intent| Fact::Outcome { intent: Seq(intent), end: "done".into(), used: Budget::ZERO };
    let lease = Fact::Lease { secret: "token".into() };
    let restarts = |pids: &[(Option<u64>, Option<u64>)]| Fact::Restarts {
        restarts: pids
            .iter()
            .map(|(exited, started)| Restart {
                name: "a".into(),
                reason: "killed".into(),
                exited: exited.map(Pid),
                started: started.map(Pid),
            })
            .collect(),
    };
    let whole = vec![
        entry(0, &none, &origin),
        entry(1, &none, &boot(1, true)),
        entry(2, &about, &asked(Decision::Permit)),
        entry(3, &about, &wanted(2)),
        entry(4, &about, &ended(3)),
        entry(5, &none, &Fact::Stop { number: 1 }),
    ];
    let bytes = |entries: &[Entry]| entries.iter().map(Entry::to_bytes).collect::<Vec<_>>();
    let with = |at: usize, changed: Entry| {
        let mut entries = whole.clone();
        entries[at] = changed;
        bytes(&entries)
    };
    let then = |more: Entry| bytes(&[whole.clone(), vec![more]].concat());
    let other = Subject { operator: Some(OperatorId([6; 16])), ..about.clone() };
    let first = whole[0].to_bytes();
    let mut indefinite = whole[1].to_bytes();
    indefinite.push(0);
    let mut untrue = whole[1].to_bytes();
    let kind = untrue.windows(3).position(|bytes| bytes == [0x82, 0x01, 0x84]).unwrap();
    untrue[kind + 1] = 0xf5;
    vec![
        ("it keeps them", true, bytes(&whole)),
        ("a boot after a stop", true, then(entry(6, &none, &boot(2, true)))),
        ("no origin", false, bytes(&[entry(0, &none, &boot(1, true))])),
        ("two origins", false, with(1, entry(1, &none, &origin))),
        ("a sequence that is not the place", false, with(1, entry(2, &none, &boot(1, true)))),
        ("a time that goes back", false, with(4, Entry { time: Timestamp(1), ..whole[4].clone() })),
        ("a version that goes back", false, with(4, Entry { version: 1, ..whole[4].clone() })),
        ("a version that is not known", false, with(4, Entry { version: 3, ..whole[4].clone() })),
        (
            "content without a session",
            false,
            with(
                1,
                Entry {
                    content: Some(Commitment { content: Digest([0; 32]), sealed: Digest::of(&[]), length: 0 }),
                    ..whole[1].clone()
                },
            ),
        ),
        ("a first boot that follows something unclean", false, with(1, entry(1, &none, &boot(1, false)))),
        ("a boot that is counted wrong", false, with(1, entry(1, &none, &boot(2, true)))),
        ("a stop of another boot", false, with(5, entry(5, &none, &Fact::Stop { number: 2 }))),
        ("a lease after a stop", false, then(entry(6, &none, &lease))),
        ("an intent that was denied", false, with(2, entry(2, &about, &asked(Decision::Deny)))),
        ("an intent that names another verdict", false, with(3, entry(3, &about, &wanted(1)))),
        ("an intent of another subject", false, with(3, entry(3, &other, &wanted(2)))),
        ("an intent without a verdict", false, with(2, entry(2, &about, &lease))),
        ("an outcome of another subject", false, with(4, entry(4, &other, &ended(3)))),
        ("an outcome of no intent", false, with(4, entry(4, &about, &ended(2)))),
        ("a second outcome", false, with(5, entry(5, &about, &ended(3)))),
        (
            "restarts whose PIDs grow",
            true,
            with(5, entry(5, &none, &restarts(&[(Some(9), Some(20)), (None, None), (Some(19), Some(21))]))),
        ),
        ("a list of no restart", false, with(5, entry(5, &none, &restarts(&[])))),
        ("a restart with an older PID", false, with(5, entry(5, &none, &restarts(&[(Some(9), Some(9))])))),
        (
            "restarts out of order",
            false,
            with(5, entry(5, &none, &restarts(&[(Some(1), Some(21)), (Some(2), Some(21))]))),
        ),
        ("bytes that are no CBOR", false, vec![first.clone(), b"text".to_vec()]),
        ("a kind that is a truth value", false, vec![first.clone(), untrue]),
        ("CBOR with a byte behind it", false, vec![first.clone(), indefinite]),
        ("an empty entry", false, vec![first, Vec::new()]),
    ]
}
