//! The one preopened directory, and the words for what WASI answers about it.

use crate::exports::ephor::tool::guest::Failure;
use crate::text::visible;
pub(crate) use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, DescriptorType, DirectoryEntry, ErrorCode, OpenFlags, PathFlags,
};

/// Bytes asked for at a time: most source files come whole, and the host's buffer stays small.
const CHUNK: u64 = 64 * 1024;

/// The workspace, or a directory in it.
pub(crate) struct Workspace(Descriptor);

impl Workspace {
    pub(crate) fn open() -> Result<Self, Failure> {
        let preopened = wasip2::filesystem::preopens::get_directories();
        match preopened.into_iter().next() {
            Some((descriptor, _)) => Ok(Self(descriptor)),
            None => Err(Failure::Refused("this call was given no workspace".to_owned())),
        }
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        &self.0
    }

    /// Opens for reading what `path` names, through symbolic links that stay inside the workspace.
    pub(crate) fn find(&self, path: &str) -> Result<Found, Failure> {
        let opened = self
            .0
            .open_at(PathFlags::SYMLINK_FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ)
            .map_err(|code| self.explain(path, code))?;
        match opened.get_type() {
            Ok(DescriptorType::Directory) => Ok(Found::Directory(Workspace(opened))),
            Ok(DescriptorType::RegularFile) => Ok(Found::File(File::new(opened))),
            Ok(other) => Err(Failure::Refused(format!("`{}` is {}", visible(path), kind(other)))),
            Err(code) => Err(self.explain(path, code)),
        }
    }

    /// Opens a direct entry of this directory, and never through a symbolic link.
    pub(crate) fn entry_file(&self, name: &str) -> Result<File, ErrorCode> {
        self.0.open_at(PathFlags::empty(), name, OpenFlags::empty(), DescriptorFlags::READ).map(File::new)
    }

    /// As `entry_file`, for a directory.
    pub(crate) fn entry_directory(&self, name: &str) -> Result<Workspace, ErrorCode> {
        self.0.open_at(PathFlags::empty(), name, OpenFlags::DIRECTORY, DescriptorFlags::READ).map(Workspace)
    }

    /// The entries, sorted so that a walk in this order meets all paths in the order of their bytes.
    pub(crate) fn entries(&self) -> Result<Entries, ErrorCode> {
        let stream = self.0.read_directory()?;
        let mut entries = Entries { named: Vec::new(), unnamed: 0, vanished: 0 };
        loop {
            match stream.read_directory_entry() {
                Ok(Some(entry)) => entries.named.push(entry),
                Ok(None) => break,
                // A name that is not UTF-8 cannot be told to the guest. It is counted, not passed over in silence.
                Err(ErrorCode::IllegalByteSequence) => entries.unnamed += 1,
                Err(ErrorCode::NoEntry) => entries.vanished += 1,
                Err(code) => return Err(code),
            }
        }
        entries.named.sort_by(|left, right| sort_key(left).cmp(sort_key(right)));
        Ok(entries)
    }

    /// A failure for what WASI said about `path`, with a second look where the code alone does not tell enough.
    pub(crate) fn explain(&self, path: &str, code: ErrorCode) -> Failure {
        let shown = visible(path);
        match code {
            ErrorCode::NoEntry => Failure::NotFound(format!("`{shown}` does not exist")),
            ErrorCode::NotDirectory => {
                Failure::NotFound(format!("`{shown}` does not exist: a part of the path is not a directory"))
            }
            ErrorCode::NotPermitted => {
                Failure::Refused(format!("`{shown}` leads out of the workspace through a symbolic link"))
            }
            ErrorCode::Loop => Failure::Refused(format!("`{shown}` goes through too many symbolic links")),
            ErrorCode::Unsupported => {
                let stat = self.0.stat_at(PathFlags::SYMLINK_FOLLOW, path);
                let kind = stat.map_or("not a regular file", |stat| kind(stat.type_));
                Failure::Refused(format!("`{shown}` is {kind}; only regular files and directories are opened"))
            }
            ErrorCode::ReadOnly => {
                Failure::Refused(format!("`{shown}` cannot be changed: the workspace is read-only here"))
            }
            ErrorCode::IsDirectory => Failure::Refused(format!("`{shown}` is a directory")),
            ErrorCode::NameTooLong => Failure::InvalidArguments(format!("`{shown}` is too long for a path")),
            ErrorCode::Access => Failure::Io(format!("`{shown}`: permission denied")),
            ErrorCode::InsufficientSpace => Failure::Io(format!("`{shown}`: no space left on the disk")),
            ErrorCode::Quota => Failure::Io(format!("`{shown}`: the disk quota is used up")),
            code => Failure::Io(format!("`{shown}`: {}", code.message())),
        }
    }
}

pub(crate) enum Found {
    Directory(Workspace),
    File(File),
}

pub(crate) struct Entries {
    pub(crate) named: Vec<DirectoryEntry>,
    /// How many names are not UTF-8.
    pub(crate) unnamed: u64,
    /// How many were gone before they could be looked at.
    pub(crate) vanished: u64,
}

/// A directory sorts as if its name ended in `/`, since that is what the paths below it go on with.
fn sort_key(entry: &DirectoryEntry) -> impl Iterator<Item = u8> + '_ {
    let slash = matches!(entry.type_, DescriptorType::Directory).then_some(b'/');
    entry.name.bytes().chain(slash)
}

/// What a thing is that is not a regular file.
pub(crate) fn kind(of: DescriptorType) -> &'static str {
    match of {
        DescriptorType::BlockDevice => "a block device",
        DescriptorType::CharacterDevice => "a character device",
        DescriptorType::Fifo => "a FIFO",
        DescriptorType::Socket => "a socket",
        DescriptorType::SymbolicLink => "a symbolic link",
        DescriptorType::Directory => "a directory",
        DescriptorType::RegularFile => "a regular file",
        // Some hosts have one word for FIFOs and sockets.
        DescriptorType::Unknown => "not a regular file (a FIFO, a socket or a device)",
    }
}

/// An open regular file, read from its beginning.
pub(crate) struct File {
    descriptor: Descriptor,
    position: u64,
}

impl File {
    fn new(descriptor: Descriptor) -> Self {
        Self { descriptor, position: 0 }
    }

    pub(crate) fn size(&self) -> Result<u64, ErrorCode> {
        self.descriptor.stat().map(|stat| stat.size)
    }

    /// The next bytes; empty at the end of the file and nowhere else.
    pub(crate) fn next_chunk(&mut self) -> Result<Vec<u8>, ErrorCode> {
        let (bytes, _) = self.descriptor.read(CHUNK, self.position)?;
        self.position += bytes.len() as u64;
        Ok(bytes)
    }
}

/// A file with a NUL in its first bytes is taken for binary, as grep and git do.
pub(crate) fn is_binary(beginning: &[u8]) -> bool {
    const LOOKED_AT: usize = 8 * 1024;
    memchr::memchr(0, beginning.get(..LOOKED_AT).unwrap_or(beginning)).is_some()
}
