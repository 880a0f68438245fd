//! Proof that something stands on the chain.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{Digest, Seq};

/// Where an entry stands, and its RFC 6962 leaf hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Receipt {
    /// The place in the chain.
    #[n(0)]
    pub seq: Seq,
    /// SHA-256 of 0x00 and the entry's bytes.
    #[n(1)]
    pub leaf: Digest,
}
