//! The one preopened directory, and the words for what WASI answers about it.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

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

    /// Opens for reading what `path` names, and never through a symbolic link: the host has followed those before the call was judged.
    pub(crate) fn find(&self, path: &str) -> Result<Found, Failure> {
        let opened = self
            .0
            .open_at(PathFlags::empty(), path, OpenFlags::empty(), DescriptorFlags::READ)
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

    /// The entries after the one with the key `after`, sorted so that a walk in this order meets all paths in the order of their bytes. No
    /// more than fit into `bytes` or are `most`: a directory of any size is walked in pieces, each a reading of its own.
    pub(crate) fn entries(&self, after: Option<&[u8]>, bytes: usize, most: usize) -> Result<Entries, ErrorCode> {
        let stream = self.0.read_directory()?;
        let mut entries = Entries::default();
        let (mut kept, mut held) = (BinaryHeap::new(), 0);
        loop {
            let entry = match stream.read_directory_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => break,
                // A name that is not UTF-8 cannot be told to the guest. It is counted, not passed over in silence.
                Err(ErrorCode::IllegalByteSequence) => {
                    entries.unnamed += 1;
                    continue;
                }
                Err(ErrorCode::NoEntry) => continue,
                Err(code) => return Err(code),
            };
            entries.total += 1;
            entries.ignores |= entry.name == ".gitignore";
            let keyed = Keyed { key: key(&entry), entry };
            if after.is_some_and(|after| keyed.key.as_slice() <= after) {
                continue;
            }
            held += keyed.bytes();
            kept.push(keyed);
            while kept.len() > 1 && (held > bytes || kept.len() > most) {
                held -= kept.pop().map_or(0, |last| last.bytes());
                entries.left += 1;
            }
        }
        entries.named = kept.into_sorted_vec().into_iter().map(|keyed| keyed.entry).collect();
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
                Failure::Refused(format!("`{shown}` may hold secrets, and this call was not judged by it"))
            }
            ErrorCode::Loop => Failure::Refused(format!("`{shown}` is a symbolic link by now, and is not followed")),
            ErrorCode::Unsupported => {
                let stat = self.0.stat_at(PathFlags::empty(), path);
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

#[derive(Default)]
pub(crate) struct Entries {
    pub(crate) named: Vec<DirectoryEntry>,
    /// How many named entries the directory has, and how many of them come after these.
    pub(crate) total: u64,
    pub(crate) left: u64,
    /// How many names are not UTF-8.
    pub(crate) unnamed: u64,
    /// Whether there is a .gitignore.
    pub(crate) ignores: bool,
}

struct Keyed {
    key: Vec<u8>,
    entry: DirectoryEntry,
}

impl Keyed {
    /// What it takes, with what the allocator and the heap need.
    fn bytes(&self) -> usize {
        self.key.len() + self.entry.name.len() + 128
    }
}

impl PartialEq for Keyed {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Keyed {}

impl PartialOrd for Keyed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Keyed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// What an entry is sorted by: a directory as if its name ended in `/`, since that is what the paths below it go on with.
pub(crate) fn key(entry: &DirectoryEntry) -> Vec<u8> {
    let mut key = entry.name.clone().into_bytes();
    if matches!(entry.type_, DescriptorType::Directory) {
        key.push(b'/');
    }
    key
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

/// What a file is by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    /// Text, two bytes a character: these tools do not read it.
    Utf16,
    /// A picture, in this format.
    Image(&'static str),
    Binary,
}

/// A file with a NUL in its first bytes is taken for binary, as grep and git do, unless it begins as UTF-16 does.
pub(crate) fn kind_of(beginning: &[u8]) -> Kind {
    if let Some(format) = image(beginning) {
        return Kind::Image(format);
    }
    const LOOKED_AT: usize = 8 * 1024;
    let looked_at = beginning.get(..LOOKED_AT).unwrap_or(beginning);
    if looked_at.starts_with(b"\xff\xfe") || looked_at.starts_with(b"\xfe\xff") {
        return Kind::Utf16;
    }
    if memchr::memchr(0, looked_at).is_some() { Kind::Binary } else { Kind::Text }
}

/// The format of a picture, by the bytes that it begins with.
fn image(beginning: &[u8]) -> Option<&'static str> {
    let is_webp = beginning.starts_with(b"RIFF") && beginning.get(8..12) == Some(b"WEBP");
    let known = [(&b"\x89PNG\r\n\x1a\n"[..], "PNG"), (b"\xff\xd8\xff", "JPEG"), (b"GIF87a", "GIF"), (b"GIF89a", "GIF")];
    let found = known.iter().find(|(magic, _)| beginning.starts_with(magic)).map(|(_, format)| *format);
    found.or(is_webp.then_some("WebP"))
}

/// The mark some editors begin a UTF-8 file with. It is no part of the first line.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
