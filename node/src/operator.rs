//! An operator's credential: signs requests, rulings and decrees.

use std::{fs::File, path::Path};

use anyhow::Context;
use ed25519_dalek::SigningKey;
use ephor_base::{OperatorId, Random};
use ephor_chain::{
    Protection,
    disk::Disk,
    protection::{SEED, load_seed, save_seed},
};
use ephor_kernel::operator_id;
use rustix::fs::{Mode, OFlags, open};
use zeroize::Zeroizing;

/// The operator's Ed25519 key.
pub(crate) struct Operator(SigningKey);

impl Operator {
    /// A new credential, in a new file. Credentials of one folder are made one at a time, so that none takes the place of another.
    pub(crate) fn make(path: &Path, protection: &Protection, random: &dyn Random) -> anyhow::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = open(folder, flags, Mode::empty());
        let folder = File::from(opened.with_context(|| format!("`{}` cannot be opened", folder.display()))?);
        folder.lock().context("the folder of the credential cannot be locked")?;
        let mut seed = Zeroizing::new([0; SEED]);
        random.fill(&mut *seed);
        save_seed(path, &seed, &Disk, protection, random)
            .with_context(|| format!("the credential `{}` cannot be made", path.display()))?;
        Ok(Self(SigningKey::from_bytes(&seed)))
    }

    /// The credential in a file.
    pub(crate) fn load(path: &Path, protection: &Protection) -> anyhow::Result<Self> {
        let seed = load_seed(path, &Disk, protection)
            .with_context(|| format!("the operator key `{}` cannot be had", path.display()))?;
        Ok(Self(SigningKey::from_bytes(seed.expose())))
    }

    pub(crate) const fn key(&self) -> &SigningKey {
        &self.0
    }

    pub(crate) fn id(&self) -> OperatorId {
        operator_id(&self.0.verifying_key())
    }
}
