//! Verifies the published part of a chain: every bundle, every tile, every kept checkpoint and every sealed content.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{Digest, Seq, cbor, files::Files};
use ephor_record::{Damage, Entry, Fact, Finding, Minimum, Rules, ScanError, minimum::Begin};
use ephor_signatures::Signatures;
use ephor_tlog::{
    Checkpoint, Edge, Head, Tile, VerifierKeys, checkpoint,
    note::MAX_NOTE_BYTES,
    tile::{self, Kind, WIDTH, bundle},
    tree,
};

use crate::{
    contents::{self, Contents, content_path},
    lineage::Generation,
    prunings::Prunings,
    published::{Published, finding},
    source::TileSource,
};

/// The folder of a vault, whose sealed contents are to be checked.
#[derive(Clone, Copy)]
pub struct Sealed<'a> {
    /// The folder.
    pub vault: &'a Path,
    /// What reads it.
    pub files: &'a dyn Files,
}

/// What the published part is held against.
struct Measure<'a> {
    keys: &'a VerifierKeys,
    sealed: Option<Sealed<'a>>,
    /// The sizes of the kept checkpoints, smallest first.
    kept: VecDeque<u64>,
}

/// The published part, as far as it was verified.
pub struct History<'a> {
    source: Arc<dyn TileSource>,
    measure: Measure<'a>,
    edge: Edge,
    /// What the entries so far amount to.
    pub rules: Rules,
    /// The first entry that is checked.
    pub since: u64,
    /// Where the log begins.
    pub minimum: u64,
    /// The prunings that were met.
    pub prunings: Prunings,
    /// How many kept checkpoints were checked.
    pub kept: u64,
    /// The last head that follows from whole entries and that a checkpoint with both signatures has, and the rules there.
    pub trusted: Option<(Head, Rules)>,
    /// Whether a checkpoint that was checked is signed by the given keys.
    pub vouched: bool,
    /// A checkpoint that is known to be right, and is to be met on the way.
    pub awaited: Option<Checkpoint>,
    /// Changes of keys without a kept checkpoint, and who must have signed them.
    unkept: Vec<(Head, Arc<VerifierKeys>)>,
}

impl<'a> History<'a> {
    /// Begins at the first entry.
    #[must_use]
    pub fn new(source: &Arc<dyn TileSource>, keys: &'a VerifierKeys, sealed: Option<Sealed<'a>>) -> Self {
        let (source, measure) = (Arc::clone(source), Measure { keys, sealed, kept: VecDeque::new() });
        let (edge, rules) = (Edge::new(), Rules::default());
        Self {
            source,
            measure,
            edge,
            rules,
            since: 0,
            minimum: 0,
            prunings: Prunings::new(0, None, Some(Rules::default())),
            kept: 0,
            trusted: None,
            vouched: false,
            awaited: None,
            unkept: Vec::new(),
        }
    }

    /// Begins behind `from`, what was verified before, if that is more than nothing; else where the log begins.
    ///
    /// # Errors
    /// [`ScanError`] if what is published there is damaged, or `from` lies before what is left of a pruned log.
    pub fn start(
        &mut self,
        from: Option<&Checkpoint>,
        minimum: Option<Minimum>,
        published: &Checkpoint,
    ) -> Result<(), ScanError> {
        if self.size() > 0 {
            return Ok(());
        }
        self.minimum = minimum.map_or(0, |minimum| minimum.index);
        let begin = minimum.map(|minimum| begin_of(&self.source, minimum, published.head.size)).transpose()?;
        let Some(from) = from.filter(|from| from.head.size > 0) else {
            return begin.map_or(Ok(()), |begin| self.begin(begin, published.head.size));
        };
        if from.head.size < self.minimum {
            return Err(ScanError::Pruned { entry: from.head.size, minimum: self.minimum });
        }
        // What is known and not published stands in the journal, or is published while this runs.
        if from.head.size <= published.head.size {
            return self.resume(from, published.head.size, begin.as_ref());
        }
        self.awaited = Some(from.clone());
        self.resume(published, published.head.size, begin.as_ref())
    }

    /// Begins behind a checkpoint that is known to be right, and of whose head at least as much is published.
    pub fn resume(&mut self, known: &Checkpoint, published: u64, begin: Option<&Begin>) -> Result<(), ScanError> {
        let (checkpoint, known) = (known, known.head);
        let published = Published::new(&self.source, published);
        let edge = published.edge(known.size)?;
        if edge.root() != known.root {
            return Err(published.suspect(known.size)?.into());
        }
        let (Generation { signers, in_force }, vouched) =
            Generation::of(&published, checkpoint, self.measure.keys, begin)?;
        check_known(checkpoint, &signers)?;
        (self.edge, self.rules) = (edge, Rules::from_signed(known.size, signers, in_force));
        self.vouched |= vouched;
        self.prunings = Prunings::new(known.size, None, None);
        self.since = known.size;
        self.measure.kept.retain(|size| *size > known.size);
        Ok(())
    }

    /// Begins where a pruned log begins.
    pub fn begin(&mut self, begin: Begin, published: u64) -> Result<(), ScanError> {
        let (at, published) = (begin.minimum.index, Published::new(&self.source, published));
        check_above(&published, at)?;
        self.edge = published.edge(at)?;
        self.prunings = Prunings::new(at, Some(begin.before), Some(begin.rules.clone()));
        (self.since, self.rules) = (at, begin.rules);
        self.measure.kept.retain(|size| *size > at);
        Ok(())
    }

    /// Names kept checkpoints that are to be met on the way, smallest first.
    pub fn expect(&mut self, mut kept: VecDeque<u64>) {
        kept.retain(|size| *size > self.size());
        self.measure.kept = kept;
    }

    /// What was verified, to be looked at again.
    pub fn published(&self) -> Published {
        Published::new(&self.source, self.size())
    }

    /// How many entries were verified.
    pub const fn size(&self) -> u64 {
        self.edge.size()
    }

    /// The head over what was verified.
    fn head(&self) -> Head {
        Head { size: self.size(), root: self.edge.root() }
    }

    /// Verifies up to the published checkpoint.
    pub fn run(&mut self, to: &Checkpoint, mut progress: impl FnMut(u64)) -> Result<(), ScanError> {
        let published = Published::new(&self.source, to.head.size);
        while self.size() < to.head.size {
            self.take_bundle(&published, to)?;
            progress(self.size());
        }
        for (tile, hashes) in self.edge.partials() {
            if published.hashes(tile.kind, tile.index)? != hashes {
                return Err(finding(tile, Damage::Tile).into());
            }
        }
        if let Some(size) = self.measure.kept.front() {
            // It is published before it is kept.
            let file = checkpoint::kept_path(Path::new(""), *size);
            return Err(Finding { file, offset: 0, seq: Some(Seq(*size)), damage: Damage::Kept }.into());
        }
        if self.edge.root() != to.head.root {
            let damage = Damage::PublishedForeign;
            return Err(Finding { file: "checkpoint".into(), offset: 0, seq: Some(Seq(to.head.size)), damage }.into());
        }
        self.prunings.check(&published)?;
        self.check_signatures(Path::new("checkpoint"), to)?;
        self.trusted = Some((to.head, self.rules.clone()));
        Ok(())
    }

    /// Checks the signatures of a checkpoint of the log as it stands.
    fn check_signatures(&mut self, file: &Path, checkpoint: &Checkpoint) -> Result<(), ScanError> {
        // An entry was read, and the first says whose they are.
        let Some(signers) = self.rules.signers().cloned() else { return Ok(()) };
        self.check_signed(file, checkpoint, &signers)
    }

    fn check_signed(&mut self, file: &Path, checkpoint: &Checkpoint, by: &VerifierKeys) -> Result<(), ScanError> {
        let (file, seq) = (file.to_owned(), Some(Seq(checkpoint.head.size)));
        let wrong = |fault| Finding { file, offset: 0, seq, damage: Damage::Signature(fault) };
        checkpoint.check(by, &Signatures).map_err(wrong)?;
        self.vouched |= *by == *self.measure.keys;
        Ok(())
    }

    /// Looks for what must be there of changes of keys that the journal, which begins at `journal`, does not hold any more:
    /// a kept checkpoint by the keys before. Without it a verifier that knows only those would not know of the new ones.
    pub fn check_changes(&mut self, journal: u64) -> Result<(), ScanError> {
        let (gone, held) = std::mem::take(&mut self.unkept).into_iter().partition(|(head, _)| head.size <= journal);
        self.unkept = held;
        let gone: Vec<(Head, Arc<VerifierKeys>)> = gone;
        for (head, signers) in gone {
            let kept = read_kept(&*self.source, head)?;
            self.check_signed(&checkpoint::kept_path(Path::new(""), head.size), &kept, &signers)?;
        }
        Ok(())
    }

    fn take_bundle(&mut self, published: &Published, to: &Checkpoint) -> Result<(), ScanError> {
        let index = self.size() / WIDTH;
        let (bytes, width) = published.bundle(index)?;
        let tile = Tile { kind: Kind::Entries, index, width };
        let entries = bundle::parse(&bytes, width).ok_or_else(|| finding(tile, Damage::Bundle))?;
        let leaves: Vec<_> = entries.iter().map(|entry| tree::leaf_hash(entry)).collect();
        let hashes = published.hashes(Kind::Hashes(0), index)?;
        if leaves != hashes {
            return Err(self.blame(published, tile, &leaves, to)?.into());
        }
        let mut contents = self.contents(index)?;
        // A verification that begins in the middle of a bundle passes over what it knows.
        let known = usize::try_from(self.size() % WIDTH).unwrap_or(0);
        for (position, (bytes, leaf)) in entries.iter().zip(leaves).enumerate() {
            let length = self.take_entry(tile, bytes, leaf, position < known, published)?;
            if let (Some(contents), Some((length, sealed))) = (&mut contents, length) {
                let seq = Seq(index.saturating_mul(WIDTH).saturating_add(position as u64));
                check_content(contents, index, seq, length, &sealed, position < known)?;
            }
        }
        match contents {
            Some(contents) => check_end(&contents, index, tile.is_full()),
            None => Ok(()),
        }
    }

    /// Takes an entry; gives what it says of its sealed content.
    fn take_entry(
        &mut self,
        tile: Tile,
        bytes: &[u8],
        leaf: Digest,
        known: bool,
        published: &Published,
    ) -> Result<Option<(u32, Digest)>, ScanError> {
        let damaged = |seq, damage| Finding { seq: Some(Seq(seq)), ..finding(tile, damage) };
        let entry: Entry =
            cbor::from_slice(bytes).map_err(|error| damaged(self.size(), Damage::Entry(error.to_string())))?;
        let sealed = entry.content.map(|commitment| (commitment.length, commitment.sealed));
        if known {
            return Ok(sealed);
        }
        self.admit(&entry).map_err(|damage| damaged(self.size(), damage))?;
        for (tile, hashes) in self.edge.push(leaf) {
            // That of level 0 was compared with the bundle.
            let same = tile.kind == Kind::Hashes(0) || published.hashes(tile.kind, tile.index)? == hashes;
            if !same {
                return Err(finding(tile, Damage::Tile).into());
            }
        }
        self.meet()?;
        Ok(sealed)
    }

    /// Holds an entry against the rules and the given keys.
    fn admit(&mut self, entry: &Entry) -> Result<(), Damage> {
        self.rules.admit_published(entry).map_err(Damage::Rule)?;
        self.prunings.pass(entry)?;
        let (Some(first), Fact::Origin { .. }) = (self.rules.keys(), &entry.fact) else { return Ok(()) };
        let given = self.measure.keys;
        // The keys given are those, or have to sign something that comes later.
        let ours = if given.is_first() { **first == *given } else { first.origin() == given.origin() };
        if ours { Ok(()) } else { Err(Damage::Keys) }
    }

    /// Holds the heads that have this size against the tree.
    fn meet(&mut self) -> Result<(), ScanError> {
        // The root costs as much as many entries, so it is made only where something is held against it.
        let size = self.size();
        if let Some(known) = self.awaited.take_if(|known| known.head.size == size) {
            if known.head != self.head() {
                let damage = Damage::PublishedForeign;
                return Err(
                    Finding { file: "checkpoint".into(), offset: 0, seq: Some(Seq(self.size())), damage }.into()
                );
            }
            self.rules.signers().map_or(Ok(()), |signers| check_known(&known, signers))?;
        }
        if self.measure.kept.front().is_some_and(|kept| *kept <= self.size()) {
            let head = self.head();
            let size = self.measure.kept.pop_front().unwrap_or(head.size);
            let kept = read_kept(&*self.source, Head { size, ..head })?;
            self.check_signatures(&checkpoint::kept_path(Path::new(""), size), &kept)?;
            self.kept = self.kept.saturating_add(1);
            self.trusted = Some((head, self.rules.clone()));
        } else if let Some(outgoing) = self.rules.outgoing() {
            self.unkept.push((self.head(), Arc::clone(outgoing)));
        }
        Ok(())
    }

    /// Which is wrong when the entries of a bundle do not give the hashes of their tile: the one that the hashes above, or
    /// the signed root, do not confirm.
    fn blame(
        &self,
        published: &Published,
        entries: Tile,
        leaves: &[Digest],
        to: &Checkpoint,
    ) -> Result<Finding, ScanError> {
        let confirmed = if entries.is_full() {
            let parents = published.hashes(Kind::Hashes(1), entries.index / WIDTH)?;
            let parent = parents.get(usize::try_from(entries.index % WIDTH).unwrap_or(0)).copied();
            parent == Some(tree::root_of_full(leaves))
        } else {
            let mut edge = self.edge.clone();
            let known = usize::try_from(edge.size() % WIDTH).unwrap_or(0);
            leaves.iter().skip(known).for_each(|leaf| drop(edge.push(*leaf)));
            edge.root() == to.head.root
        };
        let tile = Tile { kind: Kind::Hashes(0), ..entries };
        Ok(if confirmed { finding(tile, Damage::Tile) } else { finding(entries, Damage::Bundle) })
    }

    fn contents(&self, index: u64) -> Result<Option<Contents>, ScanError> {
        let Some(Sealed { vault, files }) = self.measure.sealed else { return Ok(None) };
        let path = content_path(vault, index);
        Contents::open(vault, files, index).map(Some).map_err(ScanError::io(&path))
    }
}

/// What the published record says of where a pruned log begins.
///
/// # Errors
/// [`ScanError`] if it does not say so, or cannot be read.
pub fn begin_of(source: &Arc<dyn TileSource>, minimum: Minimum, size: u64) -> Result<Begin, ScanError> {
    if minimum.record.0 >= size {
        return Err(ScanError::minimum("the pruning that it names is not published"));
    }
    let (published, mut next, mut entries) = (Published::new(source, size), minimum.record.0, Vec::new().into_iter());
    minimum.begin(std::iter::from_fn(move || {
        if entries.len() == 0 && next < size {
            match published.entries(next) {
                Ok(read) => {
                    entries = read.into_iter().filter(|(entry, _)| entry.seq.0 >= next).collect::<Vec<_>>().into_iter();
                }
                Err(error) => return Some(Err(error)),
            }
        }
        next = next.saturating_add(1);
        entries.next().map(|(entry, _)| Ok(entry))
    }))
}

/// Below where a pruned log begins, full tiles above level 0 are still there: each is what its parent says.
fn check_above(published: &Published, minimum: u64) -> Result<(), ScanError> {
    for level in 1..tile::LEVELS {
        let (kind, above) = (Kind::Hashes(level), Kind::Hashes(level.saturating_add(1)));
        let full = tile::count(kind, minimum) / WIDTH;
        for index in 0..full {
            let parents = published.hashes(above, index / WIDTH)?;
            let parent = parents.get(usize::try_from(index % WIDTH).unwrap_or(0)).copied();
            if parent != Some(tree::root_of_full(&published.hashes(kind, index)?)) {
                return Err(finding(Tile::full(kind, index), Damage::Tile).into());
            }
        }
    }
    Ok(())
}

/// The checkpoint to go on from is signed by those who signed the log then.
pub fn check_known(known: &Checkpoint, signers: &VerifierKeys) -> Result<(), ScanError> {
    let (file, seq) = (PathBuf::from(KNOWN), Some(Seq(known.head.size)));
    let wrong = |fault| Finding { file, offset: 0, seq, damage: Damage::Signature(fault) };
    known.check(signers, &Signatures).map_err(|fault| wrong(fault).into())
}

/// The checkpoint that was given, in a finding.
const KNOWN: &str = "the checkpoint to begin at";

/// A sealed content is the one its entry commits to.
fn check_content(
    contents: &mut Contents,
    index: u64,
    seq: Seq,
    length: u32,
    sealed: &Digest,
    known: bool,
) -> Result<(), ScanError> {
    if known {
        contents.skip(u64::from(length));
        return Ok(());
    }
    let (file, offset) = (contents::content_name(index), contents.offset());
    let found = contents.take(length as usize).map_err(ScanError::io(&file))?;
    if found.is_some_and(|found| Digest::of(found) == *sealed) {
        return Ok(());
    }
    Err(Finding { file, offset, seq: Some(seq), damage: Damage::Content }.into())
}

/// Behind the last content of a full bundle nothing follows. To others the journal may already have added.
fn check_end(contents: &Contents, index: u64, full: bool) -> Result<(), ScanError> {
    let file = contents::content_name(index);
    let length = contents.length().map_err(ScanError::io(&file))?;
    if !full || length == contents.offset() {
        return Ok(());
    }
    Err(Finding { file, offset: contents.offset(), seq: None, damage: Damage::ContentEnd }.into())
}

/// The kept checkpoint of a head.
fn read_kept(source: &dyn TileSource, head: Head) -> Result<Checkpoint, ScanError> {
    let name = checkpoint::kept_path(Path::new(""), head.size);
    let damaged = |damage| Finding { file: name.clone(), offset: 0, seq: Some(Seq(head.size)), damage };
    let bytes = match source.read(&name, MAX_NOTE_BYTES as u64) {
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return Err(damaged(Damage::Kept).into()),
        other => other.map_err(ScanError::io(&source.place(&name)))?,
    };
    let bytes = bytes.ok_or_else(|| damaged(Damage::Missing))?;
    let kept = Checkpoint::parse(&bytes).map_err(|_| damaged(Damage::Kept))?;
    if kept.head == head { Ok(kept) } else { Err(damaged(Damage::Kept).into()) }
}

/// The sizes of the kept checkpoints of a log, smallest first; none where the source cannot list them.
///
/// # Errors
/// [`ScanError`] if they cannot be listed, or a file lies there that is none.
pub fn kept_sizes(source: &dyn TileSource) -> Result<VecDeque<u64>, ScanError> {
    let folder = Path::new(checkpoint::KEPT);
    let names = source.list(folder).map_err(ScanError::io(&source.place(folder)))?.unwrap_or_default();
    let names = names.into_iter().filter(|name| !is_draft(name));
    let sizes = names.map(|name| {
        let file = Path::new(checkpoint::KEPT).join(&name);
        checkpoint::kept_size(&name).ok_or_else(|| ScanError::unknown(file))
    });
    let mut sizes = sizes.collect::<Result<Vec<_>, _>>()?;
    sizes.sort_unstable();
    Ok(sizes.into())
}

/// Whether a crash may have left it when a checkpoint was kept.
fn is_draft(name: &Path) -> bool {
    let whole = name.to_str().and_then(|name| name.strip_suffix(".tmp"));
    whole.is_some_and(|whole| checkpoint::kept_size(Path::new(whole)).is_some())
}
