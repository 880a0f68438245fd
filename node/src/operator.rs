//! The operator's credential: proves to a node who is there, and signs rulings.

use std::path::Path;

use anyhow::Context;
use ed25519_dalek::{Signer, SigningKey};
use ephor_base::{OperatorId, Random};
use ephor_kernel::operator_id;
use zeroize::Zeroizing;

use crate::home::read_or_create;

/// Signed before the challenge, so that the answer can be taken for nothing else.
const DOMAIN: &[u8] = b"ephor client v1\n";

/// The operator's Ed25519 key.
pub(crate) struct Operator(SigningKey);

impl Operator {
    /// The key in a home; made on first use.
    pub(crate) fn open(path: &Path, random: &dyn Random) -> anyhow::Result<Self> {
        let bytes = Zeroizing::new(read_or_create(path, || {
            let mut seed = vec![0; 32];
            random.fill(&mut seed);
            seed
        })?);
        Self::parse(&bytes, path)
    }

    /// The key in a home that has one.
    pub(crate) fn load(path: &Path) -> anyhow::Result<Self> {
        let bytes =
            std::fs::read(path).with_context(|| format!("the operator key `{}` cannot be read", path.display()))?;
        Self::parse(&Zeroizing::new(bytes), path)
    }

    fn parse(bytes: &[u8], path: &Path) -> anyhow::Result<Self> {
        let seed = bytes.try_into().with_context(|| {
            format!("`{}` is not an operator key; put back a copy of it, or remove it for a new one", path.display())
        })?;
        Ok(Self(SigningKey::from_bytes(seed)))
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
