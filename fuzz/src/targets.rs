//! One function for each parser of the chain. Each takes any bytes, and panics if something does not hold that must hold
//! for all: above all that whatever is read has one form only, the one that is written.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock},
};

use ephor_base::{
    Arguments, Digest, Random, Seq, SessionId, Timestamp, cbor,
    files::{File, Files, Open, Tree},
};
use ephor_chain::{Against, CosignerKeys, PinnedHead, SigningKeys, Submission, Vault, VaultKey, Witness, verify};
use ephor_record::{Commitment, Content, Entry, Fact, Minimum, ScanError, Subject};
use ephor_signatures::Signatures;
use ephor_tlog::{
    Checkpoint, CosignerKey, EntryProof, ForkProof, Head, KnownLog, LogKey, Note, Tile, VerifierKeys, proof,
    tile::bundle,
};
use ephor_verify::{Checked, check};

use super::forge::{Forge, Tiles};

/// One parser, and what must hold for all bytes.
pub(crate) struct Target {
    /// As the folder in the corpus.
    pub(crate) name: &'static str,
    pub(crate) run: fn(&[u8]),
}

/// All of them.
pub(crate) const TARGETS: [Target; 15] = [
    Target { name: "note", run: note },
    Target { name: "checkpoint", run: checkpoint },
    Target { name: "tile_path", run: tile_path },
    Target { name: "minimum", run: minimum },
    Target { name: "bundle", run: bundle_of_entries },
    Target { name: "entry", run: entry },
    Target { name: "content", run: content },
    Target { name: "proof", run: entry_proof },
    Target { name: "fork", run: fork_proof },
    Target { name: "head", run: pinned_head },
    Target { name: "keys", run: verifier_keys },
    Target { name: "witness", run: witness },
    Target { name: "sealed", run: sealed },
    Target { name: "journal", run: journal },
    Target { name: "published", run: published },
];

fn note(bytes: &[u8]) {
    if let Ok(note) = Note::parse(bytes) {
        assert_eq!(note.to_bytes(), bytes);
        assert!(note.text.ends_with('\n') && !note.signatures.is_empty());
        assert!(
            !world().log.check(&note, &Signatures).is_ok_and(|head| head != world().head),
            "a signature was made up"
        );
    }
}

fn checkpoint(bytes: &[u8]) {
    let Ok(checkpoint) = Checkpoint::parse(bytes) else { return };
    assert_eq!(checkpoint.note.to_bytes(), bytes);
    let lines: Vec<_> = checkpoint.note.text.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!((lines[0], lines[1]), (checkpoint.origin.as_str(), checkpoint.head.size.to_string().as_str()));
    assert!(PinnedHead::parse(bytes).is_ok_and(|pinned| pinned.head == checkpoint.head && !pinned.stopped));
    if checkpoint.check(&world().keys, &Signatures).is_ok() {
        assert_eq!(checkpoint.head, world().head);
    }
}

fn minimum(bytes: &[u8]) {
    if let Some(minimum) = Minimum::parse(bytes) {
        assert_eq!(format!("{}\n{}\n", minimum.index, minimum.record).as_bytes(), bytes);
        assert!(minimum.index > 0 && minimum.index.is_multiple_of(256) && minimum.record.0 >= minimum.index);
    }
}

fn tile_path(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(tile) = Tile::parse(Path::new(text)) {
        assert_eq!(tile.path(), Path::new(text));
        assert!((1..=256).contains(&tile.width));
        assert_eq!(tile.is_full(), !text.contains(".p/"));
    }
}

fn bundle_of_entries(bytes: &[u8]) {
    let Some((width, bytes)) = bytes.split_first() else { return };
    let Some(entries) = bundle::parse(bytes, u16::from(*width)) else { return };
    assert_eq!(entries.len(), usize::from(*width));
    let mut again = Vec::new();
    entries.iter().for_each(|entry| bundle::push(&mut again, entry).unwrap());
    assert_eq!(again, bytes);
    assert!(bundle::parse(bytes, u16::from(*width) + 1).is_none());
}

fn entry(bytes: &[u8]) {
    if let Ok(entry) = cbor::from_slice::<Entry>(bytes) {
        assert_eq!(entry.to_bytes(), bytes);
        assert!(!entry.fact.kind().is_empty());
        assert!(cbor::from_slice::<Entry>(&[bytes, &[0]].concat()).is_err());
    }
}

fn content(bytes: &[u8]) {
    if let Ok(content) = cbor::from_slice::<Content>(bytes) {
        assert_eq!(cbor::to_vec(&content), bytes);
    }
    if let Ok(arguments) = cbor::from_slice::<Arguments>(bytes) {
        assert_eq!(cbor::to_vec(&arguments), bytes);
    }
}

fn entry_proof(bytes: &[u8]) {
    let Ok(read) = EntryProof::parse(bytes) else { return };
    assert_eq!(read.to_bytes(), bytes);
    let leaf = ephor_tlog::tree::leaf_hash(read.extra.as_deref().unwrap_or_default());
    let head = Head { size: read.index.wrapping_mul(3), root: leaf };
    let _ = proof::check_inclusion(leaf, read.index, &read.path, head);
    let _ = proof::check_consistency(Head { size: read.index, root: leaf }, head, &read.path);
    if let Ok(Checked::Entry(checked)) = check(bytes, None, std::slice::from_ref(&world().log), &[]) {
        assert_eq!(checked.head, world().head);
        assert!(world().entries.get(usize::try_from(read.index).unwrap()) == read.extra.as_ref());
    }
}

fn fork_proof(bytes: &[u8]) {
    let Ok(read) = ForkProof::parse(bytes) else { return };
    assert_eq!(read.to_bytes(), bytes);
    assert!(check(bytes, None, std::slice::from_ref(&world().log), &[]).is_err(), "an honest log was framed");
}

fn pinned_head(bytes: &[u8]) {
    let Ok(head) = PinnedHead::parse(bytes) else { return };
    assert!(!head.origin.contains(['\n', ' ']) || Checkpoint::parse(bytes).is_ok());
}

fn verifier_keys(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(keys) = text.parse::<VerifierKeys>() {
        assert_eq!(keys.to_string().parse::<VerifierKeys>(), Ok(keys.clone()));
        assert!(text.contains(keys.ed25519()) && text.contains(keys.ml_dsa_65()));
    }
    for line in text.lines() {
        assert!(line.parse::<LogKey>().is_ok_and(|key| key.to_string() == line) || line.parse::<LogKey>().is_err());
        assert!(
            line.parse::<CosignerKey>().is_ok_and(|key| key.to_string() == line)
                || line.parse::<CosignerKey>().is_err()
        );
    }
}

fn witness(bytes: &[u8]) {
    let keys = CosignerKeys::generate("witness.example/w", &Fill(8)).unwrap();
    let files: Arc<dyn Files> = Arc::new(Memory::default());
    let witness = Witness::create(Path::new("/w"), keys, vec![world().log.clone()], &files).unwrap();
    let answer = witness.add_checkpoint(bytes, Timestamp(5_000_000));
    let status = answer.response.status;
    assert!([200, 400, 403, 404, 409, 422].contains(&status), "{status}");
    assert_eq!(status == 200, witness.seen(world().log.origin()).is_some());
    assert!(answer.fork.is_none());
    let submission = Submission::new(&world().checkpoint, 0, Vec::new()).unwrap();
    for (status, kind) in [(200, "text/plain"), (409, "text/x.tlog.size")] {
        let said = submission.read_answer(status, kind, bytes, witness.keys().verifier());
        assert!(said.is_err(), "a cosignature was made up");
    }
    if let Ok(submission) = Submission::new(bytes, 0, Vec::new()) {
        assert!(submission.body().ends_with(bytes));
    }
}

fn sealed(bytes: &[u8]) {
    let memory = Memory::default();
    let (path, session) = (Path::new("/v/key"), SessionId([9; 16]));
    let files: Arc<dyn Files> = Arc::new(memory.clone());
    // Half of what is tried has a right checksum, or nothing would get past it.
    let whole = [bytes, &Digest::of(bytes).0].concat();
    for bytes in [bytes, whole.as_slice()] {
        for path in [path.to_owned(), format!("/v/{session}").into(), format!("/v/keys/{session}").into()] {
            memory.put(&path, bytes);
        }
        let _ = SigningKeys::load(path, &*files).map(|keys| assert!(keys.origin().starts_with("ephor/")));
        let _ = VaultKey::load(path, &*files);
        let _ = CosignerKeys::load(path, &*files).map(|keys| assert!(!keys.verifier()[0].name().is_empty()));
        let vault = Vault::new(Path::new("/v"), Arc::new(VaultKey::generate(&Fill(3))), Arc::clone(&files));
        let length = u32::try_from(bytes.len()).unwrap();
        let commitment = Commitment { content: Digest::of(b""), sealed: Digest::of(bytes), length };
        let subject = Subject { session: Some(session), ..Subject::default() };
        let fact = Fact::Lease { secret: String::new() };
        let entry = Entry { version: 2, seq: Seq(1), time: Timestamp(1), subject, fact, content: Some(commitment) };
        assert!(!matches!(vault.unseal(&entry, bytes), Ok(Some(_))), "a sealed content was made up");
    }
}

/// The journal: the bytes as a whole segment; then as the entries of a batch in an otherwise whole one.
fn journal(bytes: &[u8]) {
    let world = world();
    let segment = Path::new("/chain/journal/00000000000000000000.seg");
    let memory = Memory::default();
    memory.put(segment, bytes);
    assert!(!is_whole(&memory) || bytes.starts_with(&world.segment), "another journal was accepted");
    let mut entries = world.entries.clone();
    let mut rest = bytes;
    while let Some((entry, after)) = bundle::take(rest) {
        entries.push(entry.to_vec());
        rest = after;
    }
    let memory = Memory::default();
    // The checkpoint is that of the log without them.
    let empty = Head { size: 0, root: Digest::of(&[]) };
    memory.put(segment, &world.forge.segment(empty, &entries, rest, &world.checkpoint));
    assert_eq!(is_whole(&memory), entries.len() == world.entries.len() && rest.is_empty());
}

/// A published log in which the bytes stand in the place of one of the files, or beside them.
fn published(bytes: &[u8]) {
    let Some((which, bytes)) = bytes.split_first() else { return };
    let world = world();
    let memory = Memory::default();
    world.files.iter().for_each(|(path, there)| memory.put(path, there));
    let name = world.files.keys().nth(usize::from(*which) % world.files.len()).unwrap();
    memory.put(name, bytes);
    let same = world.files.get(name).is_some_and(|there| there == bytes);
    // Zeros behind the journal are reserved disk, and its torn end was never acknowledged.
    let journal =
        name.starts_with("/chain/journal") && world.files.get(name).is_some_and(|there| bytes.starts_with(there));
    assert!(journal || is_whole(&memory) == same, "{} was changed unseen", name.display());
}

fn is_whole(memory: &Memory) -> bool {
    let against = Against { keys: &world().keys, head: None, vault: None, from: None };
    let files: Arc<dyn Files> = Arc::new(memory.clone());
    match verify(Path::new("/chain"), &files, against, |_| ()) {
        Ok(_) => true,
        Err(ScanError::Io { source, .. }) => panic!("{source}"),
        Err(_) => false,
    }
}

/// A log of four entries.
struct World {
    forge: Forge,
    keys: VerifierKeys,
    log: KnownLog,
    entries: Vec<Vec<u8>>,
    head: Head,
    checkpoint: Vec<u8>,
    segment: Vec<u8>,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

fn world() -> &'static World {
    static WORLD: OnceLock<World> = OnceLock::new();
    WORLD.get_or_init(|| {
        let forge = Forge::new(&Fill(42));
        let [ed25519, ml_dsa_65] = forge.lines();
        let keys: VerifierKeys = format!("{ed25519}\n{ml_dsa_65}\n").parse().unwrap();
        let boot = Fact::Boot { number: 1, version: "1".into(), clean: true, trimmed_bytes: 0, vault: None };
        let lease = Fact::Lease { secret: "token".into() };
        let facts = [Fact::Origin { ed25519, ml_dsa_65, follows: None }, boot, lease, Fact::Stop { number: 1 }];
        let entry = |(seq, fact)| {
            let (seq, time) = (Seq(seq), Timestamp(1));
            Entry { version: 2, seq, time, subject: Subject::default(), fact, content: None }.to_bytes()
        };
        let entries: Vec<_> = (0..).zip(facts).map(entry).collect();
        let mut files = BTreeMap::new();
        let mut tiles = Tiles::new(|path: PathBuf, bytes: &[u8]| {
            files.insert(Path::new("/chain").join(path), bytes.to_vec());
        });
        entries.iter().for_each(|entry| tiles.push(entry));
        let head = tiles.finish();
        let checkpoint = forge.checkpoint(head);
        let empty = Head { size: 0, root: Digest::of(&[]) };
        let segment = forge.segment(empty, &entries, &[], &checkpoint);
        files.insert("/chain/checkpoint".into(), checkpoint.clone());
        files.insert("/chain/checkpoints/00000000000000000004".into(), checkpoint.clone());
        files.insert("/chain/journal/00000000000000000000.seg".into(), segment.clone());
        let log = KnownLog::of(&keys).unwrap();
        World { forge, keys, log, entries, head, checkpoint, segment, files }
    })
}

/// The same byte again and again.
struct Fill(u8);

impl Random for Fill {
    fn fill(&self, into: &mut [u8]) {
        into.fill(self.0);
    }
}

/// Files in memory.
#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<PathBuf, Vec<u8>>>>);

struct Opened(Memory, PathBuf);

impl Memory {
    fn put(&self, path: &Path, bytes: &[u8]) {
        self.0.lock().unwrap().insert(path.to_owned(), bytes.to_vec());
    }
}

impl Tree for Memory {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Files for Memory {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut files = self.0.lock().unwrap();
        match (how, files.contains_key(path)) {
            (Open::Create, true) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Open::Create, false) => drop(files.insert(path.to_owned(), Vec::new())),
            (_, false) => return Err(io::ErrorKind::NotFound.into()),
            _ => {}
        }
        Ok(Arc::new(Opened(self.clone(), path.to_owned())))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let files = self.0.lock().unwrap();
        let below = files.keys().filter_map(|path| path.strip_prefix(folder).ok()?.iter().next());
        let mut names: Vec<PathBuf> = below.map(PathBuf::from).collect();
        names.dedup();
        if names.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(names) }
    }

    fn create_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn tree(&self, _: &Path) -> io::Result<Arc<dyn Tree>> {
        Ok(Arc::new(self.clone()))
    }

    fn remove_folder(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.lock().unwrap();
        let bytes = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl File for Opened {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let files = self.0.0.lock().unwrap();
        let bytes = files.get(&self.1).ok_or(io::ErrorKind::NotFound)?;
        let rest = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut files = self.0.0.lock().unwrap();
        let there = files.get_mut(&self.1).ok_or(io::ErrorKind::NotFound)?;
        let offset = usize::try_from(offset).unwrap();
        there.resize(there.len().max(offset + bytes.len()), 0);
        there[offset..offset + bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.0.lock().unwrap().get(&self.1).map_or(0, |bytes| bytes.len() as u64))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut files = self.0.0.lock().unwrap();
        files.get_mut(&self.1).ok_or(io::ErrorKind::NotFound)?.resize(usize::try_from(length).unwrap(), 0);
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}
