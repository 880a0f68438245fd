//! Small files that are there whole or not at all.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::{
    Digest, Random,
    files::{File, Files, Open},
};
use ephor_verify::folder;

/// Puts a file with these bytes in the place of `path`; when it returns, the disk has it.
pub(crate) fn replace(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_by(files, path, |file| write_all(file, bytes, 0))
}

/// As [`replace`], with what `write` puts into the new file.
pub(crate) fn replace_by(
    files: &dyn Files,
    path: &Path,
    write: impl FnOnce(&dyn File) -> io::Result<()>,
) -> io::Result<()> {
    let draft = draft(path);
    if let Some(left) = folder::open_existing(files, &draft, Open::Write)? {
        // What a crash left of another attempt may be a secret.
        blank(&*left)?;
        files.remove(&draft)?;
    }
    let file = files.open(&draft, Open::Create)?;
    write(&*file)?;
    file.sync_data()?;
    files.rename(&draft, path)?;
    files.sync_folder(parent(path))
}

/// As [`replace`], for secrets: what was there before is overwritten on the disk, as far as the disk does that in place.
pub(crate) fn replace_wiping(files: &dyn Files, path: &Path, bytes: &[u8], random: &dyn Random) -> io::Result<()> {
    let before = folder::open_existing(files, path, Open::Write)?;
    replace(files, path, bytes)?;
    before.map_or(Ok(()), |before| wipe(&*before, random))
}

/// Overwrites all of a file with random bytes, and waits for the disk.
pub(crate) fn wipe(file: &dyn File, random: &dyn Random) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "the file is longer than a secret can be");
    let length = usize::try_from(file.len()?).ok().filter(|length| *length <= MOST_WIPED);
    let mut bytes = vec![0; length.ok_or_else(too_long)?];
    random.fill(&mut bytes);
    write_all(file, &bytes, 0)?;
    file.sync_data()
}

/// Overwrites all of a file with zeros, and waits for the disk.
pub(crate) fn blank(file: &dyn File) -> io::Result<()> {
    let (zeros, length) = ([0; 512], file.len()?);
    for at in (0..length).step_by(zeros.len()) {
        let left = zeros.iter().zip(at..length).count();
        write_all(file, zeros.get(..left).unwrap_or_default(), at)?;
    }
    file.sync_data()
}

/// The most bytes of a file of ours that is wiped: secrets are small.
const MOST_WIPED: usize = 1 << 16;

/// The name under which [`replace`] prepares a file. A crash can leave it behind; it never counts.
pub(crate) fn draft(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".tmp");
    PathBuf::from(name)
}

/// Makes a folder, if there is none; when it returns, the disk has its name.
pub(crate) fn make_folder(files: &dyn Files, folder: &Path) -> io::Result<()> {
    match files.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            files.create_folder(folder)?;
            files.sync_folder(parent(folder))
        }
        other => other.map(drop),
    }
}

/// The folder a path lies in.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

/// Writes all of `bytes`.
pub(crate) fn write_all(file: &dyn File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = file.write_at(bytes, offset)?;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(written..).unwrap_or_default();
        offset = offset.saturating_add(written as u64);
    }
    Ok(())
}

/// Whether there is no room: on the disk, within a quota, or within the size a file may have.
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// The first `length` bytes of a file, or as many as it has.
pub(crate) fn read_start(files: &dyn Files, path: &Path, length: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; length];
    let filled = folder::read_full(&*files.open(path, Open::Read)?, &mut bytes, 0)?;
    bytes.truncate(filled);
    Ok(bytes)
}

/// Puts these bytes into a new file, without waiting for the disk; only a file that is there already is replaced. What it
/// holds is never trusted: it may have failed to reach the disk, and read as if it had.
pub(crate) fn put(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<()> {
    match create(files, path) {
        Ok(file) => write_all(&*file, bytes, 0),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => replace(files, path, bytes),
        Err(error) => Err(error),
    }
}

/// Whether a file holds exactly these bytes, as far as can be read.
pub(crate) fn holds(files: &dyn Files, path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match folder::read_file(files, path, bytes.len() as u64) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(false),
        read => Ok(read?.is_some_and(|there| there == bytes)),
    }
}

/// Copies the first `length` bytes of a file to another.
pub(crate) fn copy_start(from: &dyn File, to: &dyn File, length: u64) -> io::Result<()> {
    let (mut bytes, mut offset) = (vec![0; STRIDE], 0);
    while offset < length {
        let wanted = usize::try_from(length.saturating_sub(offset)).unwrap_or(STRIDE).min(STRIDE);
        let bytes = bytes.get_mut(..wanted).unwrap_or_default();
        if folder::read_full(from, bytes, offset)? < wanted {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is shorter than it must be"));
        }
        write_all(to, bytes, offset)?;
        offset = offset.saturating_add(wanted as u64);
    }
    Ok(())
}

/// How much of a file is in memory at once while it is copied.
const STRIDE: usize = 256 << 10;

/// Makes a new file, and its folders.
pub(crate) fn create(files: &dyn Files, path: &Path) -> io::Result<Arc<dyn File>> {
    match files.open(path, Open::Create) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            files.create_folder(parent(path))?;
            files.open(path, Open::Create)
        }
        other => other,
    }
}

/// Removes a file, if there is one.
pub(crate) fn remove(files: &dyn Files, path: &Path) -> io::Result<()> {
    match files.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// `mark`, `body`, and the SHA-256 of both.
pub(crate) fn envelope(mark: &[u8], body: &[u8]) -> Vec<u8> {
    let digest = Digest::of_parts(&[mark, body]);
    [mark, body, &digest.0].concat()
}

/// The body of what [`envelope`] made.
pub(crate) fn open_envelope<'a>(mark: &[u8], bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (content, digest) = bytes.split_last_chunk::<32>()?;
    let body = content.strip_prefix(mark)?;
    (Digest::of(content).0 == *digest).then_some(body)
}
