//! Where a path argument of a call leads: found out before the call is judged.

use minicbor::{Decode, Encode};
use serde::Serialize;

use crate::Digest;

/// One path argument of a tool call, followed to what it names.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Located {
    /// The argument.
    #[n(0)]
    pub argument: String,
    /// Where it leads.
    #[n(1)]
    pub leads: Leads,
}

/// Where a path leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Leads {
    /// To this place in the workspace.
    #[n(0)]
    To(#[n(0)] Place),
    /// Nowhere that can be judged: out of the workspace, in a circle, to a disk that does not answer. In words for the model.
    #[n(1)]
    Nowhere(#[n(0)] String),
}

/// A place in a workspace, as the file system has it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Place {
    /// From the workspace on and through no symbolic link; `.` is the workspace itself.
    #[n(0)]
    pub path: String,
    /// Whether something is there.
    #[n(1)]
    pub exists: bool,
    /// What is there; where nothing is, the innermost folder above it.
    #[n(2)]
    pub node: FileId,
    /// How many names it has in the file system.
    #[n(3)]
    pub names: u64,
    /// SHA-256 of its content, where the call replaces it.
    #[n(4)]
    pub content: Option<Digest>,
}

/// What tells one file of a machine from every other, as long as it exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct FileId {
    /// The device.
    #[n(0)]
    pub device: u64,
    /// The inode on it.
    #[n(1)]
    pub inode: u64,
}

impl Place {
    /// Whether it is the same file, or the same lack of one, as `other`: that with the same content, where that counts.
    #[must_use]
    pub fn is_still(&self, other: &Self) -> bool {
        let same_file = || (self.node, self.content) == (other.node, other.content);
        (&self.path, self.exists) == (&other.path, other.exists) && (!self.exists || same_file())
    }
}
