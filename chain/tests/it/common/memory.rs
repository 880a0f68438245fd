//! A file system in memory that forgets what was not waited for, and fails where it is told to.
//!
//! A failed sync is as Linux has it: what was to be written is dropped and counts as written from then on, so that a second sync
//! succeeds and brings nothing of it to the disk. Each descriptor that was open hears of the error once, and one that is opened
//! when somebody has heard of it already does not. Who reads meanwhile gets what is in memory, also in another process.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ephor_base::files::{File, Files, Open, Tree};

use super::Seeded;

/// What happens at the chosen operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The operation fails and does nothing.
    Eio,
    /// The operation fails for want of room, and does nothing.
    Enospc,
    /// A write writes half and says so; anything else is as it should be.
    Short,
    /// A write writes half and fails.
    Torn,
    /// As `Torn`, and nothing works from then on.
    Crash,
}

/// What a crash leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum After {
    /// The process was killed: everything written can be read, and is on the disk as far as it was before.
    Kill,
    /// The power went: only what was waited for is there.
    PowerCut,
    /// The power went, and the disk had already taken some of what was not waited for, torn anywhere.
    Mixed(u64),
}

#[derive(Clone, Debug)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
}

#[derive(Clone, Default)]
struct Node {
    now: Vec<u8>,
    kept: Vec<u8>,
    pending: Vec<Change>,
    errors: Errors,
}

/// How many errors there were, and whether anybody has heard of the last.
#[derive(Clone, Copy, Default)]
struct Errors {
    count: u64,
    heard: bool,
}

impl Errors {
    fn add(&mut self) {
        *self = Self { count: self.count + 1, heard: false };
    }

    /// Where somebody begins to listen now.
    fn sample(self) -> u64 {
        if self.heard { self.count } else { self.count.saturating_sub(1) }
    }

    /// Tells once whoever listens since then.
    fn tell(&mut self, since: &mut u64) -> io::Result<()> {
        if *since == self.count {
            return Ok(());
        }
        (*since, self.heard) = (self.count, true);
        Err(eio())
    }
}

impl Node {
    /// What was to be written reaches the disk.
    fn keep(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        pending.iter().for_each(|change| apply(&mut self.kept, change));
    }

    /// What was to be written is dropped; the disk has the length and not the bytes.
    fn drop_pending(&mut self) -> bool {
        let pending = std::mem::take(&mut self.pending);
        for change in &pending {
            let length = match change {
                Change::Write(offset, new) => usize::try_from(*offset).unwrap() + new.len(),
                Change::Length(length) => usize::try_from(*length).unwrap(),
            };
            let is_cut = matches!(change, Change::Length(_));
            if is_cut || self.kept.len() < length {
                self.kept.resize(length, 0);
            }
        }
        !pending.is_empty()
    }
}

/// The node of every folder.
const FOLDER: usize = usize::MAX;

#[derive(Clone)]
enum NameChange {
    Put(PathBuf, usize),
    Move(PathBuf, PathBuf),
    Drop(PathBuf),
}

#[derive(Clone, Default)]
struct State {
    nodes: Vec<Node>,
    names: BTreeMap<PathBuf, usize>,
    kept: BTreeMap<PathBuf, usize>,
    pending: Vec<NameChange>,
    operations: u64,
    fault: Option<(u64, Fault)>,
    dead: bool,
    limit: Option<u64>,
    /// Those of any file.
    errors: Errors,
    /// How many operations waited for the disk.
    syncs: u64,
    failing_sync: Option<u64>,
}

#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<State>>);

struct Opened {
    memory: Memory,
    node: usize,
    since: Mutex<u64>,
}

struct Watched {
    memory: Memory,
    folder: PathBuf,
    since: Mutex<u64>,
}

/// The folders that are there before anything else.
fn is_given(folder: &Path) -> bool {
    Path::new("/home").starts_with(folder)
}

fn eio() -> io::Error {
    io::Error::other("injected")
}

fn enospc() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn apply(bytes: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, new) => {
            let offset = usize::try_from(*offset).unwrap();
            if bytes.len() < offset + new.len() {
                bytes.resize(offset + new.len(), 0);
            }
            bytes[offset..offset + new.len()].copy_from_slice(new);
        }
        Change::Length(length) => bytes.resize(usize::try_from(*length).unwrap(), 0),
    }
}

fn apply_name(names: &mut BTreeMap<PathBuf, usize>, change: &NameChange) {
    match change {
        NameChange::Put(path, node) => {
            names.insert(path.clone(), *node);
        }
        NameChange::Drop(path) => {
            names.remove(path);
        }
        NameChange::Move(from, to) => {
            let moved: Vec<_> = names.keys().filter(|path| path.starts_with(from)).cloned().collect();
            for path in moved {
                let node = names.remove(&path).unwrap();
                let rest = path.strip_prefix(from).unwrap();
                let target = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
                names.insert(target, node);
            }
        }
    }
}

impl NameChange {
    fn touches(&self, folder: &Path) -> bool {
        let within = |path: &Path| path.parent() == Some(folder);
        match self {
            Self::Put(path, _) | Self::Drop(path) => within(path),
            Self::Move(from, to) => within(from) || within(to),
        }
    }
}

impl State {
    /// Counts an operation and says what should go wrong with it.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        if self.dead {
            return Err(eio());
        }
        self.operations += 1;
        let fault = self.fault.filter(|(at, _)| *at == self.operations).map(|(_, fault)| fault);
        if fault == Some(Fault::Crash) {
            self.dead = true;
        }
        Ok(fault)
    }

    /// For operations that cannot be done by half.
    fn whole_step(&mut self) -> io::Result<()> {
        match self.step()? {
            None | Some(Fault::Short) => Ok(()),
            Some(Fault::Enospc) => Err(enospc()),
            Some(_) => Err(eio()),
        }
    }

    /// Counts an operation that waits for the disk, and says whether that fails.
    fn sync_step(&mut self) -> io::Result<bool> {
        let fault = self.step()?;
        self.syncs += 1;
        if self.failing_sync == Some(self.syncs) {
            return Ok(true);
        }
        match fault {
            None | Some(Fault::Short) => Ok(false),
            Some(Fault::Enospc) => Err(enospc()),
            Some(Fault::Crash) => Err(eio()),
            Some(Fault::Eio | Fault::Torn) => Ok(true),
        }
    }

    fn has_folder(&self, folder: &Path) -> bool {
        is_given(folder) || self.names.get(folder) == Some(&FOLDER)
    }

    fn used(&self) -> u64 {
        self.names.values().filter_map(|node| self.nodes.get(*node)).map(|node| node.now.len() as u64).sum()
    }

    fn check_room(&self, node: usize, length: u64) -> io::Result<()> {
        let more = length.saturating_sub(self.nodes[node].now.len() as u64);
        match self.limit {
            Some(limit) if more > 0 && self.used() + more > limit => Err(enospc()),
            _ => Ok(()),
        }
    }

    fn change(&mut self, node: usize, change: Change) {
        let node = &mut self.nodes[node];
        apply(&mut node.now, &change);
        node.pending.push(change);
    }

    fn rename(&mut self, change: NameChange) {
        apply_name(&mut self.names, &change);
        self.pending.push(change);
    }
}

impl Memory {
    pub(crate) fn fail_at(&self, operation: u64, fault: Fault) {
        self.0.lock().unwrap().fault = Some((operation, fault));
    }

    /// Lets only the sync of this number fail.
    pub(crate) fn fail_sync(&self, number: u64) {
        self.0.lock().unwrap().failing_sync = Some(number);
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.0.lock().unwrap().syncs
    }

    pub(crate) fn operations(&self) -> u64 {
        self.0.lock().unwrap().operations
    }

    pub(crate) fn limit(&self, limit: Option<u64>) {
        self.0.lock().unwrap().limit = limit;
    }

    pub(crate) fn used(&self) -> u64 {
        self.0.lock().unwrap().used()
    }

    /// Nothing works from now on.
    pub(crate) fn die(&self) {
        self.0.lock().unwrap().dead = true;
    }

    /// An independent copy of everything as it is now, all of it kept, without faults.
    pub(crate) fn copy(&self) -> Self {
        let left = self.after(After::Kill);
        {
            let mut state = left.0.lock().unwrap();
            state.nodes.iter_mut().for_each(|node| node.kept.clone_from(&node.now));
            state.nodes.iter_mut().for_each(|node| node.pending.clear());
            (state.kept, state.pending) = (state.names.clone(), Vec::new());
        }
        left
    }

    /// What is there after a crash.
    pub(crate) fn after(&self, after: After) -> Self {
        let state = self.0.lock().unwrap();
        let mut left = State::default();
        let (names, chance) = match after {
            After::Kill => {
                // The errors were told to a process that is gone.
                let mut left = State { operations: 0, fault: None, dead: false, limit: None, ..state.clone() };
                (left.failing_sync, left.syncs, left.errors.heard) = (None, 0, true);
                left.nodes.iter_mut().for_each(|node| node.errors.heard = true);
                return Self(Arc::new(Mutex::new(left)));
            }
            After::PowerCut => (state.kept.clone(), None),
            After::Mixed(seed) => {
                let chance = Seeded::new(seed);
                let mut names = state.kept.clone();
                // A journalling file system keeps the order of names.
                let some = chance.below(state.pending.len() as u64 + 1);
                state
                    .pending
                    .iter()
                    .take(usize::try_from(some).unwrap())
                    .for_each(|change| apply_name(&mut names, change));
                (names, Some(chance))
            }
        };
        let there = |path: &Path| path.ancestors().skip(1).all(|folder| is_given(folder) || names.contains_key(folder));
        for (path, node) in names.iter().filter(|(path, _)| there(path)) {
            let path = path.clone();
            let Some(node) = state.nodes.get(*node) else {
                left.names.insert(path.clone(), FOLDER);
                left.kept.insert(path, FOLDER);
                continue;
            };
            let mut bytes = node.kept.clone();
            for change in node.pending.iter().filter(|_| chance.is_some()) {
                tear(&mut bytes, change, chance.as_ref().unwrap());
            }
            left.names.insert(path.clone(), left.nodes.len());
            left.kept.insert(path, left.nodes.len());
            left.nodes.push(Node { now: bytes.clone(), kept: bytes, ..Node::default() });
        }
        Self(Arc::new(Mutex::new(left)))
    }

    pub(crate) fn files(&self) -> Arc<dyn Files> {
        Arc::new(self.clone())
    }

    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let state = self.0.lock().unwrap();
        state.names.iter().filter(|(_, node)| **node != FOLDER).map(|(path, _)| path.clone()).collect()
    }

    pub(crate) fn get(&self, path: &Path) -> Vec<u8> {
        let state = self.0.lock().unwrap();
        state.nodes[state.names[path]].now.clone()
    }

    pub(crate) fn put(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.0.lock().unwrap();
        let node = state.nodes.len();
        state.nodes.push(Node { now: bytes.clone(), kept: bytes, ..Node::default() });
        state.names.insert(path.to_owned(), node);
        state.kept.insert(path.to_owned(), node);
    }

    /// Other bytes in a file that may be open.
    pub(crate) fn overwrite(&self, path: &Path, bytes: Vec<u8>) {
        let mut state = self.0.lock().unwrap();
        let node = state.names[path];
        state.nodes[node] = Node { now: bytes.clone(), kept: bytes, ..Node::default() };
    }

    /// As `put`, with its folders.
    pub(crate) fn put_deep(&self, path: &Path, bytes: Vec<u8>) {
        for folder in path.ancestors().skip(1).filter(|folder| !is_given(folder)) {
            let mut state = self.0.lock().unwrap();
            state.names.insert(folder.to_owned(), FOLDER);
            state.kept.insert(folder.to_owned(), FOLDER);
        }
        self.put(path, bytes);
    }

    pub(crate) fn take_away(&self, path: &Path) {
        let mut state = self.0.lock().unwrap();
        state.names.remove(path);
        state.kept.remove(path);
    }

    /// Every file with its bytes.
    pub(crate) fn everything(&self) -> Vec<(PathBuf, Vec<u8>)> {
        self.paths().into_iter().map(|path| (path.clone(), self.get(&path))).collect()
    }
}

/// A change that the disk may have taken, not taken, or taken in part.
fn tear(bytes: &mut Vec<u8>, change: &Change, chance: &Seeded) {
    match (chance.below(3), change) {
        (0, _) => {}
        (1, Change::Write(offset, new)) => {
            let from = usize::try_from(chance.below(new.len() as u64)).unwrap();
            let to = from + usize::try_from(chance.below((new.len() - from) as u64 + 1)).unwrap();
            apply(bytes, &Change::Write(offset + from as u64, new[from..to].to_vec()));
        }
        _ => apply(bytes, change),
    }
}

impl File for Opened {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.memory.0.lock().unwrap();
        let fault = state.step()?;
        if matches!(fault, Some(Fault::Eio | Fault::Torn | Fault::Crash)) {
            return Err(eio());
        }
        let bytes = &state.nodes[self.node].now;
        let from = usize::try_from(offset).unwrap().min(bytes.len());
        let mut count = into.len().min(bytes.len() - from);
        if fault == Some(Fault::Short) && count > 1 {
            count /= 2;
        }
        into[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.memory.0.lock().unwrap();
        let fault = state.step()?;
        let half = &bytes[..bytes.len().div_ceil(2)];
        match fault {
            None => {
                state.check_room(self.node, offset + bytes.len() as u64)?;
                state.change(self.node, Change::Write(offset, bytes.to_vec()));
                Ok(bytes.len())
            }
            Some(Fault::Short) => {
                state.change(self.node, Change::Write(offset, half.to_vec()));
                Ok(half.len())
            }
            Some(Fault::Torn | Fault::Crash) => {
                state.change(self.node, Change::Write(offset, half.to_vec()));
                Err(eio())
            }
            Some(Fault::Eio) => Err(eio()),
            Some(Fault::Enospc) => Err(enospc()),
        }
    }

    fn len(&self) -> io::Result<u64> {
        let mut state = self.memory.0.lock().unwrap();
        state.whole_step()?;
        Ok(state.nodes[self.node].now.len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.memory.0.lock().unwrap();
        state.whole_step()?;
        state.check_room(self.node, length)?;
        state.change(self.node, Change::Length(length));
        Ok(())
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut state = self.memory.0.lock().unwrap();
        state.whole_step()?;
        state.check_room(self.node, length)?;
        if length > state.nodes[self.node].now.len() as u64 {
            state.change(self.node, Change::Length(length));
        }
        Ok(())
    }

    /// Nothing is gained by it in memory. What must hold: there is disk, and nothing on it yet.
    fn prime(&self, offset: u64, length: u64) -> io::Result<()> {
        let mut state = self.memory.0.lock().unwrap();
        state.whole_step()?;
        let (from, to) = (usize::try_from(offset).unwrap(), usize::try_from(offset + length).unwrap());
        let primed = state.nodes[self.node].now.get(from..to);
        assert!(
            primed.is_some_and(|bytes| bytes.iter().all(|byte| *byte == 0)),
            "{from}..{to} is not reserved and empty"
        );
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.memory.0.lock().unwrap();
        let fails = state.sync_step()?;
        let node = &mut state.nodes[self.node];
        if fails {
            node.drop_pending();
            node.errors.add();
        } else {
            node.keep();
        }
        let told = node.errors.tell(&mut self.since.lock().unwrap());
        if fails {
            state.errors.add();
        }
        told
    }
}

impl Tree for Watched {
    fn sync(&self) -> io::Result<()> {
        let mut guard = self.memory.0.lock().unwrap();
        let fails = guard.sync_step()?;
        let state = &mut *guard;
        assert!(state.has_folder(&self.folder), "a folder that is watched is gone");
        // It waits for the whole file system.
        for node in &mut state.nodes {
            if !fails {
                node.keep();
            } else if node.drop_pending() {
                node.errors.add();
            }
        }
        if fails {
            state.errors.add();
        } else {
            state.kept = state.names.clone();
            state.pending.clear();
        }
        state.errors.tell(&mut self.since.lock().unwrap())
    }
}

impl Files for Memory {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        let known = state.names.get(path).copied();
        let node = match (known, how) {
            (Some(_), Open::Create) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(FOLDER), _) => return Err(io::ErrorKind::IsADirectory.into()),
            (None, Open::Create) if !state.has_folder(path.parent().unwrap()) => {
                return Err(io::ErrorKind::NotFound.into());
            }
            (Some(node), _) => node,
            (None, Open::Create) => {
                let node = state.nodes.len();
                state.nodes.push(Node::default());
                state.rename(NameChange::Put(path.to_owned(), node));
                node
            }
            (None, _) => return Err(io::ErrorKind::NotFound.into()),
        };
        let since = Mutex::new(state.nodes[node].errors.sample());
        Ok(Arc::new(Opened { memory: self.clone(), node, since }))
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        if !state.has_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let below = state.names.keys().filter(|path| path.parent() == Some(folder));
        Ok(below.map(|path| PathBuf::from(path.file_name().unwrap())).collect())
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        let missing: Vec<_> = folder.ancestors().take_while(|folder| !state.has_folder(folder)).collect();
        missing.iter().rev().for_each(|folder| state.rename(NameChange::Put(folder.to_path_buf(), FOLDER)));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        if !state.names.contains_key(from) || !state.has_folder(to.parent().unwrap()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.rename(NameChange::Move(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        if !state.names.contains_key(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.rename(NameChange::Drop(path.to_owned()));
        Ok(())
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        if state.sync_step()? {
            return Err(eio());
        }
        let pending = std::mem::take(&mut state.pending);
        let mut left = Vec::new();
        for change in pending {
            if change.touches(folder) {
                apply_name(&mut state.kept, &change);
            } else {
                left.push(change);
            }
        }
        state.pending = left;
        Ok(())
    }

    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        if !state.has_folder(folder) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let since = Mutex::new(state.errors.sample());
        Ok(Arc::new(Watched { memory: self.clone(), folder: folder.to_owned(), since }))
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        state.whole_step()?;
        if state.names.get(folder) != Some(&FOLDER) {
            return Err(io::ErrorKind::NotFound.into());
        }
        if state.names.keys().any(|path| path.parent() == Some(folder)) {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.rename(NameChange::Drop(folder.to_owned()));
        Ok(())
    }
}
