//! The messages between [`run`](crate::run()) and the init stage, over one socket.

use std::{ffi::OsString, io, os::unix::ffi::OsStringExt, path::PathBuf};

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::mechanism::{Lack, Mechanism};

/// The first argument by which the init stage is called.
pub(crate) const FLAG: &str = "ephor-confine-init";

/// The longest plan or report, in bytes.
pub(crate) const LONGEST: usize = 2 << 20;

/// The caller's word to send SIGTERM to all processes of the run.
pub(crate) const TERMINATE: u8 = b'T';
/// The caller's word to kill the run.
pub(crate) const KILL: u8 = b'K';

/// The request, as the init stage gets it.
#[derive(Debug, Encode, Decode)]
pub(crate) struct Plan {
    /// The program and its arguments; empty if only the mechanisms are tried.
    #[n(0)]
    pub(crate) arguments: Vec<ByteVec>,
    #[n(1)]
    pub(crate) environment: Vec<(ByteVec, ByteVec)>,
    #[n(2)]
    pub(crate) workspace: Folder,
    /// The working directory.
    #[n(3)]
    pub(crate) directory: ByteVec,
    #[n(4)]
    pub(crate) folders: Vec<Folder>,
    #[n(5)]
    pub(crate) scratch: ByteVec,
    #[n(6)]
    pub(crate) accepted: Vec<Lack>,
    /// The `cgroup.procs` file of the run's cgroup.
    #[n(7)]
    pub(crate) cgroup: Option<ByteVec>,
    #[n(8)]
    pub(crate) bounds: Bounds,
    /// The port of the loopback whose listener the caller gets.
    #[n(9)]
    pub(crate) port: Option<u16>,
    /// What the command does not see, relative to the workspace.
    #[n(10)]
    pub(crate) hidden: Vec<ByteVec>,
}

/// A folder, as it was when the request was made.
#[derive(Clone, Debug, Encode, Decode)]
pub(crate) struct Folder {
    #[n(0)]
    pub(crate) path: ByteVec,
    #[n(1)]
    pub(crate) device: u64,
    #[n(2)]
    pub(crate) inode: u64,
    #[n(3)]
    pub(crate) how: How,
}

/// How the command sees a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Encode, Decode)]
#[cbor(index_only)]
pub(crate) enum How {
    #[n(0)]
    ReadOnly,
    #[n(1)]
    ReadWrite,
    #[n(2)]
    Overlay,
}

/// The limits that the kernel enforces.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Bounds {
    /// Bytes of private data of one process.
    #[n(0)]
    pub(crate) memory: u64,
    #[n(1)]
    pub(crate) processes: u64,
    /// Bytes of one file.
    #[n(2)]
    pub(crate) file: u64,
    #[n(3)]
    pub(crate) open_files: u64,
    /// Bytes in `/tmp`.
    #[n(4)]
    pub(crate) temporary: u64,
}

/// A message of the init stage.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Report {
    /// A mechanism is missing, and nothing is run.
    #[n(0)]
    Lacks(#[n(0)] Mechanism, #[n(1)] String, #[n(2)] i32),
    /// A mechanism is missing, and the run goes on without it.
    #[n(6)]
    Without(#[n(0)] Mechanism, #[n(1)] String, #[n(2)] i32),
    /// Another step failed, and nothing is run.
    #[n(1)]
    Failed(#[n(0)] String, #[n(1)] i32),
    /// The folder of this path is not the one that the request was made for.
    #[n(2)]
    Other(#[n(0)] ByteVec),
    /// The program cannot be started.
    #[n(3)]
    NoProgram(#[n(0)] i32),
    /// The command exited with this status.
    #[n(4)]
    Exited(#[n(0)] i32),
    /// This signal ended the command.
    #[n(5)]
    Killed(#[n(0)] i32),
    /// The descriptor that is sent with this report listens on the command's loopback.
    #[n(7)]
    Listening,
    /// Used by all reaped processes: microseconds in user mode, microseconds in the kernel, and the resident bytes of the largest.
    #[n(8)]
    Used(#[n(0)] u64, #[n(1)] u64, #[n(2)] u64),
}

pub(crate) fn bytes(text: impl Into<OsString>) -> ByteVec {
    text.into().into_vec().into()
}

pub(crate) fn text(bytes: &ByteVec) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

pub(crate) fn path(bytes: &ByteVec) -> PathBuf {
    PathBuf::from(text(bytes))
}

/// The value's encoding after its length.
pub(crate) fn framed<T: Encode<()>>(value: &T) -> io::Result<Vec<u8>> {
    let bytes = ephor_base::cbor::to_vec(value);
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    Ok([&length.to_be_bytes(), &*bytes].concat())
}

/// The first value of `bytes`, and the bytes behind it; none if it is incomplete.
pub(crate) fn unframed<T: for<'b> Decode<'b, ()> + Encode<()>>(bytes: &[u8]) -> io::Result<Option<(T, &[u8])>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(io::Error::other)?;
    if length > LONGEST {
        return Err(io::Error::other("the message is too long"));
    }
    let Some((value, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    Ok(Some((ephor_base::cbor::from_slice(value).map_err(io::Error::other)?, rest)))
}
