//! RustCrypto's ML-KEM in the place of aws-lc-rs, with coins from a seed.

use ephor_base::{Digest, Secret};
use ephor_mesh::handshake::{CiphertextBytes, EncapsulationBytes, Kem, KemError, SharedSecret};
use ml_kem::{
    B32, DecapsulationKey768, EncapsulationKey768, Seed,
    kem::{Decapsulate, KeyExport},
};

pub(crate) struct OtherKem {
    seed: u64,
    key: Option<DecapsulationKey768>,
}

impl OtherKem {
    pub(crate) const fn new(seed: u64) -> Self {
        Self { seed, key: None }
    }

    /// `d` and `z` of FIPS 203, algorithm 16.
    fn seed(&self) -> Seed {
        self.coins(b"d").concat(self.coins(b"z"))
    }

    fn coins(&self, what: &[u8]) -> B32 {
        Digest::of_parts(&[what, &self.seed.to_be_bytes()]).0.into()
    }
}

impl Kem for OtherKem {
    fn generate(&mut self) -> Result<Box<EncapsulationBytes>, KemError> {
        let secret = DecapsulationKey768::from_seed(self.seed());
        let public = secret.encapsulation_key().to_bytes();
        self.key = Some(secret);
        Ok(Box::new(public.as_slice().try_into().unwrap()))
    }

    fn encapsulate(&mut self, key: &EncapsulationBytes) -> Result<(Box<CiphertextBytes>, SharedSecret), KemError> {
        let key = EncapsulationKey768::new(&key.as_slice().try_into().unwrap()).unwrap();
        let (ciphertext, shared) = key.encapsulate_deterministic(&self.coins(b"m"));
        Ok((Box::new(ciphertext.as_slice().try_into().unwrap()), Secret::new(shared.into())))
    }

    fn decapsulate(&mut self, ciphertext: &CiphertextBytes) -> Result<SharedSecret, KemError> {
        let shared = self.key.take().unwrap().decapsulate(&ciphertext.as_slice().try_into().unwrap());
        Ok(Secret::new(shared.into()))
    }
}
