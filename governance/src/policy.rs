//! The operator's will, within the constitution.

use ephor_base::{Capability, Digest, Reach, ToolName, cbor};
use minicbor::{Decode, Encode};

use crate::{Constitution, Environment, Rights};

/// What the operator of a node has set. It can only narrow what the constitution allows.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct OperatorPolicy {
    /// Where the node runs.
    #[n(0)]
    pub environment: Environment,
    /// What any agent here may be entitled to.
    #[n(1)]
    pub capabilities: Vec<Capability>,
    /// Tools that never run, whatever anyone rules.
    #[n(2)]
    pub never: Vec<ToolName>,
    /// What requests to models may lease, and where they may go.
    #[n(3)]
    pub models: Reach,
}

impl Default for OperatorPolicy {
    fn default() -> Self {
        Self {
            environment: Environment::Dev,
            capabilities: Capability::ALL.to_vec(),
            never: Vec::new(),
            models: Reach::default(),
        }
    }
}

impl OperatorPolicy {
    /// The capabilities as rights.
    #[must_use]
    pub fn rights(&self) -> Rights {
        Rights::of(self.capabilities.iter().copied())
    }

    /// SHA-256 over the constitution and this policy: what stands in every verdict.
    #[must_use]
    pub fn digest(&self, constitution: &Constitution) -> Digest {
        Digest::of_parts(&[&constitution.digest().0, &cbor::to_vec(self)])
    }
}
