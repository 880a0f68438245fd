//! What an operator allows every agent of a node.

use ephor_base::{Capability, Digest, Reach, ToolName};
use minicbor::{Decode, Encode};
use serde::Serialize;

/// What the digest of a policy is made of.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Terms {
    /// SHA-256 of the text of the constitution, which stands on the record as a document.
    #[n(0)]
    pub constitution: Digest,
    /// What any agent of the node may be entitled to.
    #[n(1)]
    pub capabilities: Vec<Capability>,
    /// Tools that never run.
    #[n(2)]
    pub never: Vec<ToolName>,
    /// What requests to models may lease, and where they may go.
    #[n(3)]
    pub models: Reach,
}
