//! Files that stop before an operation and let something else happen there.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ephor_base::files::{File, Files, Open, Tree};

/// What is about to be done with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    Open,
    Remove,
    /// A read, after so many others.
    Read(u64),
}

type Hook = Box<dyn FnOnce() + Send>;

/// Lets `hook` run once, before `what` is done with `path` by whoever has these files.
pub(crate) struct Hooked {
    inner: Arc<dyn Files>,
    at: (Before, PathBuf),
    hook: Arc<Mutex<Option<Hook>>>,
}

/// A file whose reads are counted.
struct Counted {
    inner: Arc<dyn File>,
    left: Mutex<u64>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Hooked {
    pub(crate) fn files(
        inner: Arc<dyn Files>,
        what: Before,
        path: &Path,
        hook: impl FnOnce() + Send + 'static,
    ) -> Arc<dyn Files> {
        Arc::new(Self { inner, at: (what, path.to_owned()), hook: Arc::new(Mutex::new(Some(Box::new(hook)))) })
    }

    fn reach(&self, what: Before, path: &Path) {
        if (what, path) == (self.at.0, &self.at.1)
            && let Some(hook) = self.hook.lock().unwrap().take()
        {
            hook();
        }
    }
}

impl Files for Hooked {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        self.reach(Before::Open, path);
        let inner = self.inner.open(path, how)?;
        match self.at {
            (Before::Read(after), ref hooked) if hooked == path => {
                Ok(Arc::new(Counted { inner, left: Mutex::new(after), hook: Arc::clone(&self.hook) }))
            }
            _ => Ok(inner),
        }
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
        self.reach(Before::Remove, path);
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

impl File for Counted {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut left = self.left.lock().unwrap();
        let due = if *left == 0 { self.hook.lock().unwrap().take() } else { None };
        *left = left.saturating_sub(1);
        if let Some(hook) = due {
            hook();
        }
        self.inner.read_at(into, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.inner.write_at(bytes, offset)
    }

    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.inner.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)
    }

    fn prime(&self, offset: u64, length: u64) -> io::Result<()> {
        self.inner.prime(offset, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.inner.sync_data()
    }
}
