//! Files that stop before an operation and let something else happen there.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ephor_base::files::{File, Files, Open};

/// What is about to be done with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Before {
    Open,
    Remove,
}

type Hook = Box<dyn FnOnce() + Send>;

/// Lets `hook` run once, before `what` is done with `path` by whoever has these files.
pub(crate) struct Hooked {
    inner: Arc<dyn Files>,
    at: (Before, PathBuf),
    hook: Mutex<Option<Hook>>,
}

impl Hooked {
    pub(crate) fn files(
        inner: Arc<dyn Files>,
        what: Before,
        path: &Path,
        hook: impl FnOnce() + Send + 'static,
    ) -> Arc<dyn Files> {
        Arc::new(Self { inner, at: (what, path.to_owned()), hook: Mutex::new(Some(Box::new(hook))) })
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
        self.inner.open(path, how)
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

    fn sync_tree(&self, folder: &Path) -> io::Result<()> {
        self.inner.sync_tree(folder)
    }

    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.inner.remove_folder(folder)
    }
}
