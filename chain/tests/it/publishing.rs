//! A chain that cannot be published says so, keeps nobody waiting, and does not grow for ever.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ephor_base::files::{File, Files, Open, Tree};
use ephor_chain::AppendError;

use crate::common::{
    World, block_on,
    hooked::{Before, Hooked},
    memory::Memory,
    message, plain,
};

/// Files below which no tile can be made while it is told so.
struct NoTiles {
    inner: Arc<dyn Files>,
    broken: AtomicBool,
}

impl Files for NoTiles {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let fails = how == Open::Create && self.broken.load(Ordering::SeqCst) && path.starts_with("/home/chain/tile");
        if fails { Err(io::Error::other("injected")) } else { self.inner.open(path, how) }
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        self.inner.list(folder)
    }

    fn create_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.create_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.inner.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.inner.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.sync_folder(folder)
    }

    fn tree(&self, folder: &Path) -> io::Result<Arc<dyn Tree>> {
        self.inner.tree(folder)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.remove_folder(folder)
    }
}

#[test]
fn a_chain_that_cannot_be_published_says_so_pins_its_head_and_stops_taking_records_at_a_bound() {
    let memory = Memory::default();
    let files = Arc::new(NoTiles { inner: memory.files(), broken: AtomicBool::new(false) });
    let world = World::new(files.clone(), Path::new("/home"));
    let (log, _) = world.open().unwrap();
    assert_eq!(log.trouble(), None);
    files.broken.store(true, Ordering::SeqCst);
    let text = "x".repeat(400_000);
    block_on(log.append(message(0, &text))).unwrap();
    assert!(matches!(block_on(log.publish()), Err(AppendError::Unpublished(_))));
    assert!(log.trouble().is_some_and(|why| why.contains("injected")));
    assert_eq!(world.pinned().unwrap().head, log.head());
    let refused = (1..400).find_map(|number| block_on(log.append(message(number, &text))).err());
    let Some(AppendError::Backlog { waiting, .. }) = refused else { panic!("{refused:?}") };
    assert!((64 << 20..80 << 20).contains(&waiting), "{waiting}");
    files.broken.store(false, Ordering::SeqCst);
    block_on(log.publish()).unwrap();
    assert_eq!(log.trouble(), None);
    block_on(log.append(plain(500))).unwrap();
    block_on(log.close()).unwrap();
    world.verify(world.pinned()).unwrap();
}

#[test]
fn nobody_waits_for_a_publisher_that_panicked_and_the_log_goes_on_and_closes_whole() {
    let memory = Memory::default();
    let tile = Path::new("/home/chain/tile/entries/000.p/3");
    let files = Hooked::files(memory.files(), Before::Open, tile, || panic!("injected"));
    let world = World::new(files, Path::new("/home"));
    let (log, _) = world.open().unwrap();
    block_on(log.append(plain(1))).unwrap();
    assert_eq!(log.head().size, 3);
    for _ in 0..2 {
        assert!(block_on(log.publish()).is_err());
    }
    assert!(log.trouble().is_some_and(|why| why.contains("start the node again")));
    block_on(log.append(plain(2))).unwrap();
    block_on(log.close()).unwrap();
    assert_eq!(world.verify(world.pinned()).unwrap().head.size, 5);
}
