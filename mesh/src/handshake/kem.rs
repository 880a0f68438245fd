//! ML-KEM-768 (FIPS 203), by aws-lc-rs.

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};
use ephor_base::Secret;
use zeroize::Zeroize;

/// Bytes of an encapsulation key.
pub const ENCAPSULATION_KEY: usize = 1184;
/// Bytes of a ciphertext.
pub const CIPHERTEXT: usize = 1088;
/// Bytes of a shared secret.
pub const SHARED_SECRET: usize = 32;

/// An encapsulation key as it travels.
pub type EncapsulationBytes = [u8; ENCAPSULATION_KEY];
/// A ciphertext as it travels.
pub type CiphertextBytes = [u8; CIPHERTEXT];
/// What both sides have at the end, overwritten when dropped.
pub type SharedSecret = Secret<[u8; SHARED_SECRET]>;

/// An operation of the key encapsulation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KemError {
    /// The library could not make a key.
    #[error("no ML-KEM-768 key could be made")]
    Generate,
    /// The peer's encapsulation key is not one (FIPS 203, section 7.2).
    #[error("the peer's ML-KEM-768 key is not one")]
    Encapsulate,
    /// The ciphertext could not be opened, or no key was made before.
    #[error("the ML-KEM-768 ciphertext cannot be opened")]
    Decapsulate,
}

/// One key encapsulation of one handshake. It brings its own randomness, so it is injected as a whole.
pub trait Kem: Send {
    /// Makes a key pair, keeps the secret half and gives the public one.
    ///
    /// # Errors
    /// [`KemError::Generate`].
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError>;

    /// A fresh secret for the holder of `key`, and the ciphertext that carries it.
    ///
    /// # Errors
    /// [`KemError::Encapsulate`] if `key` is not an encapsulation key.
    fn encapsulate(&mut self, key: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError>;

    /// The secret in `ciphertext`. The key pair is used up.
    ///
    /// # Errors
    /// [`KemError::Decapsulate`] if no key pair was made, or the library fails. A ciphertext for another key gives another
    /// secret instead (FIPS 203, implicit rejection), which the next message shows.
    fn decapsulate(&mut self, ciphertext: &CiphertextBytes) -> Result<SharedSecret, KemError>;
}

/// The product's [`Kem`].
#[derive(Debug, Default)]
pub struct MlKem768 {
    key: Option<DecapsulationKey>,
}

impl Kem for MlKem768 {
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError> {
        let key = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| KemError::Generate)?;
        let public = key.encapsulation_key().and_then(|public| public.key_bytes()).map_err(|_| KemError::Generate)?;
        let public = boxed(public.as_ref()).ok_or(KemError::Generate)?;
        self.key = Some(key);
        Ok(public)
    }

    fn encapsulate(&mut self, key: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError> {
        let key = EncapsulationKey::new(&ML_KEM_768, key).map_err(|_| KemError::Encapsulate)?;
        let (ciphertext, shared) = key.encapsulate().map_err(|_| KemError::Encapsulate)?;
        let ciphertext = boxed(ciphertext.as_ref()).ok_or(KemError::Encapsulate)?;
        Ok((ciphertext, secret(shared.as_ref()).ok_or(KemError::Encapsulate)?))
    }

    fn decapsulate(&mut self, ciphertext: &CiphertextBytes) -> Result<SharedSecret, KemError> {
        let key = self.key.take().ok_or(KemError::Decapsulate)?;
        let shared = key.decapsulate(Ciphertext::from(ciphertext.as_slice())).map_err(|_| KemError::Decapsulate)?;
        secret(shared.as_ref()).ok_or(KemError::Decapsulate)
    }
}

fn boxed<const N: usize>(bytes: &[u8]) -> Option<Box<[u8; N]>> {
    bytes.try_into().ok().map(Box::new)
}

fn secret(bytes: &[u8]) -> Option<SharedSecret> {
    let mut copy: [u8; SHARED_SECRET] = bytes.try_into().ok()?;
    let secret = Secret::new(copy);
    copy.zeroize();
    Some(secret)
}
