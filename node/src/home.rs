//! The home of a node: one folder with everything in it, and one process that writes it.

use std::{
    ffi::OsString,
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::{
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
        net::UnixStream,
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use ephor_chain::disk::{self, Whose};
use rustix::fs::OFlags;

use crate::{serving, terminal};

/// The places in a home, and where the passphrase for its keys may be read.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    path: PathBuf,
    passphrase_file: Option<PathBuf>,
    credential: Option<String>,
    credential_passphrase_file: Option<PathBuf>,
}

/// Held while this process may write the home.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

/// How long what is just ending, beginning or looking is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Another process uses this home.
#[derive(Debug, thiserror::Error)]
#[error("another process uses the home `{0}`: `ephor ps` shows the node, if one runs; stop it first, or wait for it")]
pub(crate) struct Locked(PathBuf);

/// A wait for another process that uses a home: bounded, with longer pauses each time, and told of after a second.
pub(crate) struct Wait<'a> {
    home: &'a Home,
    began: Instant,
    patience: Duration,
    pause: Duration,
    told: bool,
}

impl<'a> Wait<'a> {
    /// The first pause, and the longest.
    const PAUSES: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

    pub(crate) fn new(home: &'a Home, patience: Duration) -> Self {
        Self { home, began: Instant::now(), patience, pause: Self::PAUSES.0, told: false }
    }

    /// Whether there is time left.
    pub(crate) fn goes_on(&self) -> bool {
        self.began.elapsed() < self.patience
    }

    /// How long to wait before the next try.
    pub(crate) fn pause(&mut self) -> Duration {
        if !self.told && self.began.elapsed() > Duration::from_secs(1) {
            self.told = true;
            terminal::tell(&format!("ephor: waiting for the process that uses `{}` …\n", self.home.path().display()));
        }
        let pause = self.pause;
        self.pause = pause.saturating_mul(2).min(Self::PAUSES.1);
        pause
    }
}

impl Home {
    /// The home at `path`, or the default one. Nothing is made yet.
    pub(crate) fn find(path: Option<OsString>) -> anyhow::Result<Self> {
        let path = match path {
            Some(path) if path.is_empty() => bail!("EPHOR_HOME or --home is empty: name a folder, or leave it out"),
            Some(path) => PathBuf::from(path),
            None => default_home()?,
        };
        let path = std::path::absolute(&path).with_context(|| format!("the home `{}` is no path", path.display()))?;
        Ok(Self { path, passphrase_file: None, credential: None, credential_passphrase_file: None })
    }

    /// The same home, with a file that holds the passphrase.
    pub(crate) fn with_passphrase_file(self, passphrase_file: Option<PathBuf>) -> Self {
        Self { passphrase_file, ..self }
    }

    /// The same home, used with another credential: a file, or the name of one that is kept here.
    pub(crate) fn with_credential(self, credential: Option<String>, passphrase_file: Option<PathBuf>) -> Self {
        Self { credential, credential_passphrase_file: passphrase_file, ..self }
    }

    /// Where the credential is that the operator uses here.
    pub(crate) fn credential(&self) -> PathBuf {
        match &self.credential {
            None => self.operator_key(),
            Some(file) if file.contains('/') => PathBuf::from(file),
            Some(name) => self.credential_of(name),
        }
    }

    pub(crate) fn credential_passphrase_file(&self) -> Option<&Path> {
        self.credential_passphrase_file.as_deref()
    }

    /// Where the credentials that were made here are kept, besides that of the first owner.
    pub(crate) fn credential_of(&self, name: &str) -> PathBuf {
        self.keys().join("operators").join(name)
    }

    pub(crate) fn passphrase_file(&self) -> Option<&Path> {
        self.passphrase_file.as_deref()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A path in this home, below it.
    pub(crate) fn below(&self, path: &Path) -> PathBuf {
        path.strip_prefix(&self.path).unwrap_or(path).to_owned()
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path.join("ephor.toml")
    }

    pub(crate) fn constitution(&self) -> PathBuf {
        self.path.join("constitution.cedar")
    }

    pub(crate) fn keys(&self) -> PathBuf {
        self.path.join("keys")
    }

    pub(crate) fn signing_keys(&self) -> PathBuf {
        self.keys().join("log")
    }

    /// Where the signing keys lie until a chain has begun under them. Only those may begin one.
    pub(crate) fn unused_signing_keys(&self) -> PathBuf {
        self.keys().join("log.unused")
    }

    pub(crate) fn public_keys(&self) -> PathBuf {
        self.keys().join("log.pub")
    }

    pub(crate) fn vault_key(&self) -> PathBuf {
        self.keys().join("vault")
    }

    pub(crate) fn operator_key(&self) -> PathBuf {
        self.keys().join("operator")
    }

    pub(crate) fn chain(&self) -> PathBuf {
        self.path.join("chain")
    }

    pub(crate) fn head(&self) -> PathBuf {
        self.path.join("head")
    }

    pub(crate) fn vault(&self) -> PathBuf {
        self.path.join("vault")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.path.join("state")
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("node.sock")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("node.log")
    }

    /// Whether a node was ever started here.
    pub(crate) fn exists(&self) -> bool {
        self.keys().is_dir()
    }

    /// Whether anything of a record is left here, besides the keys that sign it.
    pub(crate) fn has_record(&self) -> bool {
        [self.chain(), self.head(), self.public_keys()].iter().any(|path| path.exists()) || self.has_session_keys()
    }

    /// Whether the vault holds the key of any session.
    pub(crate) fn has_session_keys(&self) -> bool {
        // The first format had them in the vault itself.
        let old = std::fs::read_dir(self.vault()).into_iter().flatten().flatten();
        let mut old = old.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
        old.next().is_some() || std::fs::read_dir(self.vault().join("keys")).is_ok_and(|mut keys| keys.next().is_some())
    }

    /// Makes the folder with mode 0700 if it is not there. One that others may write is refused.
    pub(crate) fn create(&self) -> anyhow::Result<()> {
        let make = |path: &Path| DirBuilder::new().recursive(true).mode(0o700).create(path);
        let show = self.path.display();
        make(&self.path).with_context(|| {
            format!("the home `{show}` cannot be made; set EPHOR_HOME to a folder you may write, or pass --home")
        })?;
        let metadata = self.path.metadata().with_context(|| format!("the home `{show}` cannot be read"))?;
        if metadata.permissions().mode() & 0o022 != 0 {
            bail!("the home `{show}` may be written by other users: `chmod go-w {show}`");
        }
        if metadata.uid() != rustix::process::geteuid().as_raw() {
            bail!("the home `{show}` belongs to another user; set EPHOR_HOME to a folder of your own");
        }
        make(&self.keys()).with_context(|| {
            format!("the home `{show}` cannot be written; set EPHOR_HOME to a folder you may write, or pass --home")
        })
    }

    /// Takes the home for this process alone, to write it. What is just ending, beginning or looking is waited for; a node that
    /// answers clients is not.
    pub(crate) fn lock(&self) -> anyhow::Result<Lock> {
        let mut wait = Wait::new(self, PATIENCE);
        loop {
            match self.try_lock() {
                Err(error) if error.is::<Locked>() && !self.is_served() && wait.goes_on() => {
                    std::thread::sleep(wait.pause());
                }
                locked => return locked,
            }
        }
    }

    /// Whether a node takes clients here.
    fn is_served(&self) -> bool {
        serving::short_path(&self.socket(), |path| UnixStream::connect(path)).is_ok()
    }

    /// The same without waiting.
    pub(crate) fn try_lock(&self) -> anyhow::Result<Lock> {
        self.locked("lock", |file| file.try_lock())
    }

    /// Keeps writers out while this process looks. Others may look as well.
    pub(crate) fn try_look(&self) -> anyhow::Result<Lock> {
        self.locked("lock", |file| file.try_lock_shared())
    }

    /// Makes this process the one that has the projections of a home on which no node runs: sled has one owner.
    pub(crate) fn try_project(&self) -> anyhow::Result<Lock> {
        self.locked("projecting", |file| file.try_lock())
    }

    /// Makes this process the one client that starts a node.
    pub(crate) fn try_start(&self) -> anyhow::Result<Lock> {
        self.locked("starting", |file| file.try_lock())
    }

    fn locked(&self, name: &str, lock: impl FnOnce(&File) -> Result<(), TryLockError>) -> anyhow::Result<Lock> {
        let path = self.path.join(name);
        let file = disk::open(&path, Whose::Home, OFlags::WRONLY | OFlags::CREATE);
        let file = file.with_context(|| {
            format!("`{}` cannot be written; set EPHOR_HOME to a folder you may write, or pass --home", path.display())
        })?;
        match lock(&file) {
            Ok(()) => Ok(Lock { _file: file }),
            Err(TryLockError::WouldBlock) => Err(Locked(self.path.clone()).into()),
            Err(TryLockError::Error(error)) => Err(error).context("the home cannot be locked"),
        }
    }
}

fn default_home() -> anyhow::Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")));
    match data {
        Some(data) => Ok(data.join("ephor")),
        None => bail!("there is neither EPHOR_HOME nor HOME: set EPHOR_HOME to a folder you may write"),
    }
}

/// Where compiled tools are kept: in the user's own cache, outside of every home, so that no copy of a home brings code. Nothing
/// if the user has none; then tools are compiled at each start.
pub(crate) fn compiled_tools() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("ephor/compiled"))
}

/// Writes a private file, mode 0600, whole or not at all.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use io::Write;
    let draft = path.with_extension("new");
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&draft)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
