//! RustCrypto's ML-KEM in the place of aws-lc-rs, with coins from a seed.

use ephor_base::{Digest, Secret};
use ephor_mesh::handshake::{CiphertextBytes, EncapsulationBytes, Kem, KemError, SharedSecret};
use ml_kem::{B32, EncapsulateDeterministic, EncodedSizeUser, KemCore, MlKem768, kem::Decapsulate};

pub(crate) struct OtherKem {
    seed: u64,
    key: Option<<MlKem768 as KemCore>::DecapsulationKey>,
}

impl OtherKem {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, key: None }
    }

    fn coins(&self, what: &[u8]) -> B32 {
        Digest::of_parts(&[what, &self.seed.to_be_bytes()]).0.into()
    }
}

impl Kem for OtherKem {
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError> {
        let (secret, public) = MlKem768::generate_deterministic(&self.coins(b"d"), &self.coins(b"z"));
        self.key = Some(secret);
        Ok(Box::new(public.as_bytes().as_slice().try_into().unwrap()))
    }

    fn encapsulate(&mut self, key: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError> {
        let key = <MlKem768 as KemCore>::EncapsulationKey::from_bytes(&key.as_slice().try_into().unwrap());
        let (ciphertext, shared) = key.encapsulate_deterministic(&self.coins(b"m")).unwrap();
        Ok((Box::new(ciphertext.as_slice().try_into().unwrap()), Secret::new(shared.into())))
    }

    fn decapsulate(&mut self, ciphertext: &CiphertextBytes) -> Result<SharedSecret, KemError> {
        let shared = self.key.take().unwrap().decapsulate(&ciphertext.as_slice().try_into().unwrap());
        Ok(Secret::new(shared.unwrap().into()))
    }
}
