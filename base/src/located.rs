//! Where a path argument of a call leads: found out before the call is judged.

use minicbor::{Decode, Encode};
use serde::{Serialize, Serializer, ser::SerializeStruct};

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
    /// The bytes of its content, where the call replaces it and the whole file can be kept: content and mode are all that there is to
    /// it. Logs of earlier versions do not have it.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u64>,
}

/// The most bytes of a file that are kept when a call replaces it: a larger one cannot be put back.
pub const MOST_KEPT: u64 = 1 << 20;

/// The most bytes that are kept for one session. What it writes beyond cannot be put back.
pub const MOST_KEPT_IN_SESSION: u64 = 64 << 20;

/// What a call replaces, kept before it does, so that it can be put back. As JSON, bytes that are no text are hexadecimal digits in
/// `held_hex`.
#[derive(Clone, PartialEq, Eq, Debug, Encode, Decode)]
pub struct Kept {
    /// From the workspace on and through no symbolic link.
    #[n(0)]
    pub path: String,
    /// What the file held; none if there was none.
    #[cbor(n(1), with = "minicbor::bytes")]
    pub held: Option<Vec<u8>>,
    /// Its permission bits; zero if there was none.
    #[n(2)]
    pub mode: u32,
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

impl Serialize for Kept {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut kept = to.serialize_struct("Kept", 3)?;
        kept.serialize_field("path", &self.path)?;
        kept.serialize_field("mode", &self.mode)?;
        match self.held.as_deref().map(str::from_utf8) {
            Some(Err(_)) => {
                let digits: String = self.held.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
                kept.serialize_field("held_hex", &digits)?;
            }
            Some(Ok(text)) => kept.serialize_field("held", text)?,
            None => kept.serialize_field("held", &None::<&str>)?,
        }
        kept.end()
    }
}

impl Place {
    /// How much there is to keep before it is replaced: nothing where there is no file. `None` where it cannot be kept.
    #[must_use]
    pub fn to_keep(&self) -> Option<u64> {
        if self.exists { self.keeps.filter(|bytes| *bytes <= MOST_KEPT) } else { Some(0) }
    }

    /// Whether it is the same file, or the same lack of one, as `other`: that with the same content, where that counts.
    #[must_use]
    pub fn is_still(&self, other: &Self) -> bool {
        let same_file = || (self.node, self.content) == (other.node, other.content);
        (&self.path, self.exists) == (&other.path, other.exists) && (!self.exists || same_file())
    }
}
