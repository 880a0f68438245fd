//! The first transport message of each side: its claim, in a layout of one length.

use ephor_base::Digest;

use crate::{
    invite::{Introduction, InviteId, PROOF},
    party::{ChainKeys, Claim, ED25519_KEY, ED25519_SIGNATURE, ML_DSA_65_KEY, ML_DSA_65_SIGNATURE, NodeId, Signatures},
    wire::{Reader, WrongLayout},
};

/// The byte a credential begins with. No frame of a link does.
const KIND: u8 = 0x01;

/// Bytes of an introduction: the id of the invitation and the proof.
const INTRODUCTION: usize = 16 + PROOF;

/// Bytes of a credential.
pub const CREDENTIAL: usize =
    1 + 32 + ED25519_KEY + ML_DSA_65_KEY + ED25519_SIGNATURE + ML_DSA_65_SIGNATURE + 1 + INTRODUCTION;

impl Claim {
    /// The claim as it travels: [`CREDENTIAL`] bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(CREDENTIAL);
        bytes.push(KIND);
        bytes.extend_from_slice(&self.node.0.0);
        bytes.extend_from_slice(&self.keys.ed25519);
        bytes.extend_from_slice(self.keys.ml_dsa_65.as_slice());
        bytes.extend_from_slice(&self.signatures.ed25519);
        bytes.extend_from_slice(self.signatures.ml_dsa_65.as_slice());
        match &self.introduction {
            Some(Introduction { invite: InviteId(id), proof }) => {
                bytes.push(1);
                bytes.extend_from_slice(id);
                bytes.extend_from_slice(proof);
            }
            None => {
                bytes.push(0);
                bytes.extend_from_slice(&[0; INTRODUCTION]);
            }
        }
        bytes
    }

    /// The claim that `bytes` are. One claim has one form.
    ///
    /// # Errors
    /// [`WrongLayout`] if they are none.
    pub fn parse(bytes: &[u8]) -> Result<Self, WrongLayout> {
        let mut reader = Reader::new(bytes);
        if reader.u8()? != KIND {
            return Err(WrongLayout);
        }
        let node = NodeId(Digest(reader.array()?));
        let keys = ChainKeys { ed25519: reader.array()?, ml_dsa_65: boxed(&mut reader)? };
        let signatures = Signatures { ed25519: reader.array()?, ml_dsa_65: boxed(&mut reader)? };
        let introduction = match reader.u8()? {
            0 if reader.array()? == [0; INTRODUCTION] => None,
            1 => Some(Introduction { invite: InviteId(reader.array()?), proof: reader.array()? }),
            _ => return Err(WrongLayout),
        };
        reader.end()?;
        Ok(Self { node, keys, signatures, introduction })
    }
}

fn boxed<const N: usize>(reader: &mut Reader<'_>) -> Result<Box<[u8; N]>, WrongLayout> {
    let bytes: Box<[u8]> = reader.bytes(N)?.into();
    bytes.try_into().map_err(|_| WrongLayout)
}
