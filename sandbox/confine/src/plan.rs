//! What [`run`](crate::run) and the init stage say to each other, over one socket.

use std::{ffi::OsString, io, os::unix::ffi::OsStringExt, path::PathBuf};

use minicbor::{Decode, Encode, bytes::ByteVec};

use crate::mechanism::{Lack, Mechanism};

/// The first argument by which the init stage is called.
pub(crate) const FLAG: &str = "ephor-confine-init";

/// The longest plan or report, in bytes.
pub(crate) const LONGEST: usize = 2 << 20;

/// End what runs: SIGTERM to all of it.
pub(crate) const TERMINATE: u8 = b'T';
/// End what runs now.
pub(crate) const KILL: u8 = b'K';

/// All that the init stage needs to know.
#[derive(Debug, Encode, Decode)]
pub(crate) struct Plan {
    /// The program and its arguments; nothing if only the mechanisms are tried.
    #[n(0)]
    pub(crate) arguments: Vec<ByteVec>,
    #[n(1)]
    pub(crate) environment: Vec<(ByteVec, ByteVec)>,
    #[n(2)]
    pub(crate) workspace: Folder,
    /// Where the command starts.
    #[n(3)]
    pub(crate) directory: ByteVec,
    #[n(4)]
    pub(crate) folders: Vec<Folder>,
    #[n(5)]
    pub(crate) scratch: ByteVec,
    #[n(6)]
    pub(crate) accepted: Vec<Lack>,
    /// The file that takes this process into the cgroup.
    #[n(7)]
    pub(crate) cgroup: Option<ByteVec>,
    #[n(8)]
    pub(crate) bounds: Bounds,
    /// Where to listen on the loopback, for the caller to accept.
    #[n(9)]
    pub(crate) port: Option<u16>,
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

/// How a folder is seen.
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

/// What the kernel is to hold the command to.
#[derive(Clone, Copy, Debug, Encode, Decode)]
pub(crate) struct Bounds {
    /// Bytes of data a process may have.
    #[n(0)]
    pub(crate) memory: u64,
    #[n(1)]
    pub(crate) processes: u64,
    /// Bytes a file may grow to.
    #[n(2)]
    pub(crate) file: u64,
    #[n(3)]
    pub(crate) open_files: u64,
    /// Bytes in `/tmp`.
    #[n(4)]
    pub(crate) temporary: u64,
}

/// What the init stage tells.
#[derive(Debug, Encode, Decode)]
pub(crate) enum Report {
    /// A mechanism is not there, so that nothing was run.
    #[n(0)]
    Lacks(#[n(0)] Mechanism, #[n(1)] String, #[n(2)] i32),
    /// A mechanism is not there, and the run goes on without it.
    #[n(6)]
    Without(#[n(0)] Mechanism, #[n(1)] String, #[n(2)] i32),
    /// Something else went wrong, and nothing was run.
    #[n(1)]
    Failed(#[n(0)] String, #[n(1)] i32),
    /// The folder of this path is not the one that the request was made for.
    #[n(2)]
    Other(#[n(0)] ByteVec),
    /// The program cannot be started.
    #[n(3)]
    NoProgram(#[n(0)] i32),
    /// The command has ended by itself.
    #[n(4)]
    Exited(#[n(0)] i32),
    /// The command was ended by a signal.
    #[n(5)]
    Killed(#[n(0)] i32),
    /// The descriptor that comes with this report listens on the loopback of the command.
    #[n(7)]
    Listening,
    /// All that was waited for has used this: microseconds as user and in the kernel, and the bytes of the largest process.
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

/// The value, its length before it.
pub(crate) fn framed<T: Encode<()>>(value: &T) -> io::Result<Vec<u8>> {
    let bytes = ephor_base::cbor::to_vec(value);
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("the message is too long"))?;
    Ok([&length.to_be_bytes(), &*bytes].concat())
}

/// The first value of `bytes`, and what is behind it. Nothing if it is not all there.
pub(crate) fn unframed<T: for<'b> Decode<'b, ()> + Encode<()>>(bytes: &[u8]) -> io::Result<Option<(T, &[u8])>> {
    let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_be_bytes(*length)).map_err(io::Error::other)?;
    if length > LONGEST {
        return Err(io::Error::other("the message is too long"));
    }
    let Some((value, rest)) = rest.split_at_checked(length) else { return Ok(None) };
    Ok(Some((ephor_base::cbor::from_slice(value).map_err(io::Error::other)?, rest)))
}
