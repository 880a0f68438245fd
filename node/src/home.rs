//! The home of a node: one folder with everything in it, and one process that writes it.

use std::{
    ffi::OsString,
    fs::{DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

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

/// Another process writes this home.
#[derive(Debug, thiserror::Error)]
#[error("another node runs on the home `{0}`; stop it first, or use it")]
pub(crate) struct Locked(PathBuf);

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

    pub(crate) fn cache_key(&self) -> PathBuf {
        self.keys().join("compiled")
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

    pub(crate) fn tools(&self) -> PathBuf {
        self.path.join("tools")
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

    /// Takes the home for this process.
    pub(crate) fn lock(&self) -> anyhow::Result<Lock> {
        let path = self.path.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path);
        let file = file.with_context(|| {
            format!("`{}` cannot be written; set EPHOR_HOME to a folder you may write, or pass --home", path.display())
        })?;
        match file.try_lock() {
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

/// Reads a small private file; makes it with `make`, mode 0600, if it is not there.
pub(crate) fn read_or_create(path: &Path, make: impl FnOnce() -> Vec<u8>) -> anyhow::Result<Vec<u8>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let bytes = make();
            write_private(path, &bytes).with_context(|| format!("`{}` cannot be written", path.display()))?;
            Ok(bytes)
        }
        Err(error) => Err(error).with_context(|| format!("`{}` cannot be read", path.display())),
    }
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
