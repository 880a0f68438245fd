//! `wasi:filesystem` as guests of Ephor get it: one directory, only regular files, and no write without the right to.
//!
//! Everything is wasmtime-wasi's own implementation, except what would let a guest open anything but a regular file or a
//! directory, and the words in which a write is refused.

use crate::open::{Manner, OpenError, Opened, keep_mode, open_beneath};
use std::fs::File;
use std::sync::Arc;
use wasmtime::component::{HasData, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File as WasiFile, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::filesystem::{preopens, types};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};
use wasmtime_wasi::{FsPerms, OpenMode};

/// The name of the workspace inside a guest. The root, so that relative and absolute paths of a guest mean the same.
const PREOPENED_AS: &str = "/";

/// What one call was granted: a directory or none, and whether it may be changed.
pub(crate) struct Grant {
    pub(crate) directory: Option<File>,
    pub(crate) perms: FsPerms,
}

/// The view a host function gets. It delegates to `inner` whatever is not its own to decide.
pub(crate) struct Filesystem<'a> {
    pub(crate) inner: WasiFilesystemCtxView<'a>,
    pub(crate) grant: &'a Grant,
}

/// Tells the linker which view goes with these host functions.
pub(crate) struct HasFilesystem;

impl HasData for HasFilesystem {
    type Data<'a> = Filesystem<'a>;
}

type Handle = Resource<Descriptor>;

impl Filesystem<'_> {
    fn may_write(&self) -> FsResult<()> {
        if self.grant.perms.write_not_permitted() { Err(types::ErrorCode::ReadOnly.into()) } else { Ok(()) }
    }

    fn directory(&self, handle: &Handle) -> FsResult<Arc<File>> {
        match self.inner.table.get(handle)? {
            Descriptor::Dir(directory) => Ok(directory.dir.clone()),
            Descriptor::File(_) => Err(types::ErrorCode::NotDirectory.into()),
        }
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
        let directory = directory.try_clone()?;
        let mode = match self.grant.perms {
            FsPerms::ReadOnly => OpenMode::READ,
            FsPerms::ReadWrite => OpenMode::READ | OpenMode::WRITE,
        };
        // A call has a thread of its own, so that it may wait for the disk there.
        let directory = Descriptor::Dir(Dir::new(directory, self.grant.perms, mode, true));
        Ok(vec![(self.inner.table.push(directory)?, PREOPENED_AS.to_owned())])
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
        path_flags: types::PathFlags,
        path: String,
        open_flags: types::OpenFlags,
        flags: types::DescriptorFlags,
    ) -> FsResult<Handle> {
        use types::{DescriptorFlags, OpenFlags};

        let manner = Manner {
            // Something that is opened for nothing is opened for reading, as in wasmtime-wasi.
            read: flags.contains(DescriptorFlags::READ) || !flags.contains(DescriptorFlags::WRITE),
            write: flags.contains(DescriptorFlags::WRITE) || open_flags.contains(OpenFlags::TRUNCATE),
            create: open_flags.contains(OpenFlags::CREATE),
            exclusive: open_flags.contains(OpenFlags::EXCLUSIVE),
            truncate: open_flags.contains(OpenFlags::TRUNCATE),
            directory: open_flags.contains(OpenFlags::DIRECTORY),
            follow: path_flags.contains(types::PathFlags::SYMLINK_FOLLOW),
        };
        if manner.write || manner.create || flags.contains(DescriptorFlags::MUTATE_DIRECTORY) {
            self.may_write()?;
        }
        if manner.directory && (manner.create || manner.exclusive || manner.truncate) {
            return Err(types::ErrorCode::Invalid.into());
        }
        let synchronised = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if flags.intersects(synchronised) {
            return Err(types::ErrorCode::Unsupported.into());
        }

        let directory = self.directory(&at)?;
        let mut mode = OpenMode::empty();
        mode.set(OpenMode::READ, manner.read);
        mode.set(OpenMode::WRITE, manner.write);
        let perms = self.grant.perms;
        let descriptor = match open_beneath(&directory, &path, manner)? {
            Opened::File(file) => Descriptor::File(WasiFile::new(file, perms, mode, true)),
            Opened::Directory(directory) => Descriptor::Dir(Dir::new(directory, perms, mode, true)),
        };
        Ok(self.inner.table.push(descriptor)?)
    }

    async fn rename_at(&mut self, from: Handle, old_path: String, to: Handle, new_path: String) -> FsResult<()> {
        self.may_write()?;
        let (old, new) = (self.directory(&from)?, self.directory(&to)?);
        keep_mode((&old, &old_path), (&new, &new_path))?;
        self.inner.rename_at(from, old_path, to, new_path).await
    }

    /// A guest makes no symbolic links: another program that follows one would do so without the guest's bounds.
    async fn symlink_at(&mut self, _at: Handle, _target: String, _path: String) -> FsResult<()> {
        self.may_write()?;
        Err(types::ErrorCode::NotPermitted.into())
    }

    async fn set_size(&mut self, file: Handle, size: types::Filesize) -> FsResult<()> {
        self.may_write()?;
        self.inner.set_size(file, size).await
    }

    async fn set_times(
        &mut self,
        handle: Handle,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.may_write()?;
        self.inner.set_times(handle, accessed, modified).await
    }

    async fn write(&mut self, file: Handle, bytes: Vec<u8>, offset: types::Filesize) -> FsResult<types::Filesize> {
        self.may_write()?;
        self.inner.write(file, bytes, offset).await
    }

    async fn create_directory_at(&mut self, at: Handle, path: String) -> FsResult<()> {
        self.may_write()?;
        self.inner.create_directory_at(at, path).await
    }

    async fn set_times_at(
        &mut self,
        at: Handle,
        path_flags: types::PathFlags,
        path: String,
        accessed: types::NewTimestamp,
        modified: types::NewTimestamp,
    ) -> FsResult<()> {
        self.may_write()?;
        self.inner.set_times_at(at, path_flags, path, accessed, modified).await
    }

    async fn link_at(
        &mut self,
        from: Handle,
        path_flags: types::PathFlags,
        old_path: String,
        to: Handle,
        new_path: String,
    ) -> FsResult<()> {
        self.may_write()?;
        self.inner.link_at(from, path_flags, old_path, to, new_path).await
    }

    async fn remove_directory_at(&mut self, at: Handle, path: String) -> FsResult<()> {
        self.may_write()?;
        self.inner.remove_directory_at(at, path).await
    }

    async fn unlink_file_at(&mut self, at: Handle, path: String) -> FsResult<()> {
        self.may_write()?;
        self.inner.unlink_file_at(at, path).await
    }

    fn write_via_stream(&mut self, file: Handle, offset: types::Filesize) -> FsResult<Resource<DynOutputStream>> {
        self.may_write()?;
        self.inner.write_via_stream(file, offset)
    }

    fn append_via_stream(&mut self, file: Handle) -> FsResult<Resource<DynOutputStream>> {
        self.may_write()?;
        self.inner.append_via_stream(file)
    }

    // From here on, reading: wasmtime-wasi's own words throughout.

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
        self.inner.read_directory(directory).await
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
        types::HostDescriptor::drop(&mut self.inner, handle)
    }
}

impl types::HostDirectoryEntryStream for Filesystem<'_> {
    async fn read_directory_entry(
        &mut self,
        stream: Resource<types::DirectoryEntryStream>,
    ) -> FsResult<Option<types::DirectoryEntry>> {
        self.inner.read_directory_entry(stream).await
    }

    fn drop(&mut self, stream: Resource<types::DirectoryEntryStream>) -> wasmtime::Result<()> {
        types::HostDirectoryEntryStream::drop(&mut self.inner, stream)
    }
}
