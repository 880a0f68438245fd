//! An operator's credential: proves to a node who is there, and signs rulings and decrees.

use std::path::Path;

use anyhow::Context;
use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{OperatorId, Random};
use ephor_chain::{
    Protection,
    disk::Disk,
    protection::{SEED, load_seed, save_seed},
};
use ephor_kernel::operator_id;
use zeroize::Zeroizing;

/// Signed before the challenge, so that the answer can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor client v1\n";

/// The operator's Ed25519 key.
pub(crate) struct Operator(SigningKey);

impl Operator {
    /// A new credential, in a new file.
    pub(crate) fn make(path: &Path, protection: &Protection, random: &dyn Random) -> anyhow::Result<Self> {
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

    /// Answers a node's challenge.
    pub(crate) fn answer(&self, challenge: &[u8]) -> Vec<u8> {
        self.0.sign(&challenged(challenge)).to_bytes().to_vec()
    }
}

/// What is signed to answer `challenge`.
pub(crate) fn challenged(challenge: &[u8]) -> Vec<u8> {
    [DOMAIN, challenge].concat()
}
