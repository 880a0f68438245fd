//! `wasi:filesystem` as guests of Ephor get it: one directory, only regular files, for reading alone, and of those that hold secrets only
//! what the call was judged by.
//!
//! Everything is wasmtime-wasi's own implementation, except what would let a guest open anything else, or change anything: a file
//! is changed by `replace` of the host's own interface. A directory is read as the guest asks for it, and not as a whole.

use crate::locate::Held;
use crate::open::{OpenError, Opened, open_beneath, open_held};
use rustix::fs::{Dir as Entries, FileType};
use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File as WasiFile, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

/// The name of the workspace inside a guest. The root, so that relative and absolute paths of a guest mean the same.
const PREOPENED_AS: &str = "/";

/// What one call was granted: a directory or none, and what in it was judged.
pub(crate) struct Grant {
    pub(crate) directory: Option<File>,
    /// The places that the call was judged by.
    pub(crate) held: Vec<Held>,
    /// Which paths are opened only where the call was judged by them.
    withheld: fn(&str) -> bool,
    /// Where the directories that the guest holds stand, by their handles: from the workspace on.
    places: HashMap<u32, String>,
}

impl Default for Grant {
    /// Nothing.
    fn default() -> Self {
        Self { directory: None, held: Vec::new(), withheld: |_| true, places: HashMap::new() }
    }
}

impl Grant {
    pub(crate) fn new(directory: File, held: Vec<Held>, withheld: fn(&str) -> bool) -> Self {
        Self { directory: Some(directory), held, withheld, places: HashMap::new() }
    }

    /// Whether the call was judged by this path, or by a folder above it that is withheld for itself.
    fn was_judged(&self, path: &str) -> bool {
        self.held.iter().any(|held| {
            let below = path.strip_prefix(held.place.path.as_str());
            below.is_some_and(|rest| rest.is_empty() || (rest.starts_with('/') && (self.withheld)(&held.place.path)))
        })
    }

    fn held(&self, path: &str) -> Option<&Held> {
        self.held.iter().find(|held| held.place.exists && held.place.path == path)
    }
}

/// The entries of a directory, read as they are asked for.
struct Listing(std::sync::Mutex<Entries>);

/// The view a host function gets. It delegates to `inner` whatever is not its own to decide.
pub(crate) struct Filesystem<'a> {
    pub(crate) inner: WasiFilesystemCtxView<'a>,
    pub(crate) grant: &'a mut Grant,
}

/// Tells the linker which view goes with these host functions.
pub(crate) struct HasFilesystem;

impl HasData for HasFilesystem {
    type Data<'a> = Filesystem<'a>;
}

type Handle = Resource<Descriptor>;

/// What every change is answered by.
fn read_only<T>() -> FsResult<T> {
    Err(types::ErrorCode::ReadOnly.into())
}

impl Filesystem<'_> {
    fn directory(&self, handle: &Handle) -> FsResult<Arc<File>> {
        match self.inner.table.get(handle)? {
            Descriptor::Dir(directory) => Ok(directory.dir.clone()),
            Descriptor::File(_) => Err(types::ErrorCode::NotDirectory.into()),
        }
    }

    /// Where a path leads that is relative to a directory of the guest's, from the workspace on.
    fn place(&self, at: &Handle, path: &str) -> FsResult<String> {
        if path.starts_with('/') {
            return Err(types::ErrorCode::NotPermitted.into());
        }
        let above = self.grant.places.get(&at.rep()).ok_or(types::ErrorCode::BadDescriptor)?;
        let mut parts: Vec<&str> = above.split('/').filter(|part| !part.is_empty()).collect();
        for part in path.split('/') {
            match part {
                "" | "." => {}
                // The kernel would resolve it, and nobody needs it.
                ".." => return Err(types::ErrorCode::NotPermitted.into()),
                part => parts.push(part),
            }
        }
        Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
    }

    fn open(&mut self, at: &Handle, path: &str) -> FsResult<(Opened, String)> {
        let (directory, place) = (self.directory(at)?, self.place(at, path)?);
        if !self.grant.was_judged(&place) && (self.grant.withheld)(&place) {
            return Err(types::ErrorCode::NotPermitted.into());
        }
        // What was judged is opened by the handle it was judged by.
        let opened = match (self.grant.held(&place), &self.grant.directory) {
            (Some(held), Some(root)) => open_held(root, &place, &held.handle)?,
            _ => open_beneath(&directory, path)?,
        };
        Ok((opened, place))
    }
}

impl From<OpenError> for FsError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Outside => types::ErrorCode::NotPermitted.into(),
            OpenError::NotRegular => types::ErrorCode::Unsupported.into(),
            OpenError::System(error) => std::io::Error::from(error).into(),
        }
    }
}

impl preopens::Host for Filesystem<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Handle, String)>> {
        let Some(directory) = &self.grant.directory else { return Ok(Vec::new()) };
        // A call has a thread of its own, so that it may wait for the disk there.
        let directory = Descriptor::Dir(Dir::new(directory.try_clone()?, FsPerms::ReadOnly, OpenMode::READ, true));
        let handle = self.inner.table.push(directory)?;
        self.grant.places.insert(handle.rep(), String::new());
        Ok(vec![(handle, PREOPENED_AS.to_owned())])
    }
}

impl types::Host for Filesystem<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<types::ErrorCode> {
        self.inner.convert_error_code(error)
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<types::ErrorCode>> {
        self.inner.filesystem_error_code(error)
    }
}

impl types::HostDescriptor for Filesystem<'_> {
    async fn open_at(
        &mut self,
        at: Handle,
        _path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Handle> {
        use types::{DescriptorFlags, OpenFlags};

        let changes = DescriptorFlags::WRITE | DescriptorFlags::MUTATE_DIRECTORY;
        let makes = OpenFlags::CREATE | OpenFlags::EXCLUSIVE | OpenFlags::TRUNCATE;
        if flags.intersects(changes) || open_flags.intersects(makes) {
            return read_only();
        }
        let synchronised = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synchronised) {
            return Err(types::ErrorCode::Unsupported.into());
        }
        let (perms, mode) = (FsPerms::ReadOnly, OpenMode::READ);
        match self.open(&at, &path)? {
            (Opened::File(_), _) if open_flags.contains(OpenFlags::DIRECTORY) => {
                Err(types::ErrorCode::NotDirectory.into())
            }
            (Opened::File(file), _) => {
                Ok(self.inner.table.push(Descriptor::File(WasiFile::new(file, perms, mode, true)))?)
            }
            (Opened::Directory(directory), place) => {
                let handle = self.inner.table.push(Descriptor::Dir(Dir::new(directory, perms, mode, true)))?;
                self.grant.places.insert(handle.rep(), if place == "." { String::new() } else { place });
                Ok(handle)
            }
        }
    }

    async fn rename_at(&mut self, _from: Handle, _old: String, _to: Handle, _new: String) -> FsResult<()> {
        read_only()
    }

    async fn symlink_at(&mut self, _at: Handle, _target: String, _path: String) -> FsResult<()> {
        read_only()
    }

    async fn set_size(&mut self, _file: Handle, _size: types::Filesize) -> FsResult<()> {
        read_only()
    }

    async fn set_times(
        &mut self,
        _handle: Handle,
        _accessed: types::NewTimestamp,
        _modified: types::NewTimestamp,
    ) -> FsResult<()> {
        read_only()
    }

    async fn write(&mut self, _file: Handle, _bytes: Vec<u8>, _offset: types::Filesize) -> FsResult<types::Filesize> {
        read_only()
    }

    async fn create_directory_at(&mut self, _at: Handle, _path: String) -> FsResult<()> {
        read_only()
    }

    async fn set_times_at(
        &mut self,
        _at: Handle,
        _path_flags: types::PathFlags,
        _path: String,
        _accessed: types::NewTimestamp,
        _modified: types::NewTimestamp,
    ) -> FsResult<()> {
        read_only()
    }

    async fn link_at(
        &mut self,
        _from: Handle,
        _path_flags: types::PathFlags,
        _old_path: String,
        _to: Handle,
        _new_path: String,
    ) -> FsResult<()> {
        read_only()
    }

    async fn remove_directory_at(&mut self, _at: Handle, _path: String) -> FsResult<()> {
        read_only()
    }

    async fn unlink_file_at(&mut self, _at: Handle, _path: String) -> FsResult<()> {
        read_only()
    }

    fn write_via_stream(&mut self, _file: Handle, _offset: types::Filesize) -> FsResult<Resource<DynOutputStream>> {
        read_only()
    }

    fn append_via_stream(&mut self, _file: Handle) -> FsResult<Resource<DynOutputStream>> {
        read_only()
    }

    // From here on, reading: wasmtime-wasi's own words, but for directories.

    fn read_via_stream(&mut self, file: Handle, offset: types::Filesize) -> FsResult<Resource<DynInputStream>> {
        self.inner.read_via_stream(file, offset)
    }

    async fn advise(
        &mut self,
        file: Handle,
        offset: types::Filesize,
        length: types::Filesize,
        advice: types::Advice,
    ) -> FsResult<()> {
        self.inner.advise(file, offset, length, advice).await
    }

    async fn sync_data(&mut self, handle: Handle) -> FsResult<()> {
        self.inner.sync_data(handle).await
    }

    async fn get_flags(&mut self, handle: Handle) -> FsResult<types::DescriptorFlags> {
        self.inner.get_flags(handle).await
    }

    async fn get_type(&mut self, handle: Handle) -> FsResult<types::DescriptorType> {
        self.inner.get_type(handle).await
    }

    async fn read(
        &mut self,
        file: Handle,
        length: types::Filesize,
        offset: types::Filesize,
    ) -> FsResult<(Vec<u8>, bool)> {
        self.inner.read(file, length, offset).await
    }

    async fn read_directory(&mut self, directory: Handle) -> FsResult<Resource<types::DirectoryEntryStream>> {
        let directory = self.directory(&directory)?;
        let entries = Entries::read_from(&*directory).map_err(std::io::Error::from)?;
        let listing = self.inner.table.push(Listing(std::sync::Mutex::new(entries)))?;
        Ok(Resource::new_own(listing.rep()))
    }

    async fn sync(&mut self, handle: Handle) -> FsResult<()> {
        self.inner.sync(handle).await
    }

    async fn stat(&mut self, handle: Handle) -> FsResult<types::DescriptorStat> {
        self.inner.stat(handle).await
    }

    async fn stat_at(
        &mut self,
        at: Handle,
        path_flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::DescriptorStat> {
        self.inner.stat_at(at, path_flags, path).await
    }

    async fn readlink_at(&mut self, at: Handle, path: String) -> FsResult<String> {
        self.inner.readlink_at(at, path).await
    }

    async fn is_same_object(&mut self, left: Handle, right: Handle) -> wasmtime::Result<bool> {
        self.inner.is_same_object(left, right).await
    }

    async fn metadata_hash(&mut self, handle: Handle) -> FsResult<types::MetadataHashValue> {
        self.inner.metadata_hash(handle).await
    }

    async fn metadata_hash_at(
        &mut self,
        at: Handle,
        path_flags: types::PathFlags,
        path: String,
    ) -> FsResult<types::MetadataHashValue> {
        self.inner.metadata_hash_at(at, path_flags, path).await
    }

    fn drop(&mut self, handle: Handle) -> wasmtime::Result<()> {
        self.grant.places.remove(&handle.rep());
        types::HostDescriptor::drop(&mut self.inner, handle)
    }
}

impl types::HostDirectoryEntryStream for Filesystem<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        let listing = self.inner.table.get(&Resource::<Listing>::new_borrow(stream.rep()))?;
        let mut entries = listing.0.lock().map_err(|_| types::ErrorCode::Io)?;
        loop {
            let entry = match entries.read() {
                Some(entry) => entry.map_err(std::io::Error::from)?,
                None => return Ok(None),
            };
            let name = entry.file_name();
            if [c".", c".."].contains(&name) {
                continue;
            }
            let type_ = match entry.file_type() {
                FileType::Unknown => of_entry(entries.fd().map_err(std::io::Error::from)?, name)?,
                known => known,
            };
            // A name that is not UTF-8 cannot be told to a guest.
            let name = name.to_str().map_err(|_| types::ErrorCode::IllegalByteSequence)?.to_owned();
            return Ok(Some(types::DirectoryEntry { type_: kind(type_), name }));
        }
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.inner.table.delete(Resource::<Listing>::new_own(stream.rep()))?;
        Ok(())
    }
}

/// The type of an entry, where the directory does not say it.
fn of_entry(directory: std::os::fd::BorrowedFd<'_>, name: &std::ffi::CStr) -> FsResult<FileType> {
    let stat =
        rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).map_err(std::io::Error::from)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

fn kind(of: FileType) -> types::DescriptorType {
    match of {
        FileType::RegularFile => types::DescriptorType::RegularFile,
        FileType::Directory => types::DescriptorType::Directory,
        FileType::Symlink => types::DescriptorType::SymbolicLink,
        FileType::BlockDevice => types::DescriptorType::BlockDevice,
        FileType::CharacterDevice => types::DescriptorType::CharacterDevice,
        FileType::Fifo => types::DescriptorType::Fifo,
        FileType::Socket => types::DescriptorType::Socket,
        FileType::Unknown => types::DescriptorType::Unknown,
    }
}
