//! Reads files of a folder through the files that were injected.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use ephor_base::files::{File, Files, Open};

/// Fills `into` from `offset`, as far as the file reaches; returns how much that was.
///
/// # Errors
/// What the files said.
pub fn read_full(file: &dyn File, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = into.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, offset.saturating_add(filled as u64))? {
            0 => break,
            count => filled = filled.saturating_add(count),
        }
    }
    Ok(filled)
}

/// The whole of a small file; nothing if there is none. A file longer than `most` is an error.
///
/// # Errors
/// What the files said.
pub fn read_whole(files: &dyn Files, path: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
    read_as(files, path, Open::Read, most)
}

/// As [`read_whole`], where `how` is a way of only reading.
///
/// # Errors
/// What the files said.
pub fn read_as(files: &dyn Files, path: &Path, how: Open, most: usize) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_existing(files, path, how)? else { return Ok(None) };
    let mut bytes = vec![0; most.saturating_add(1)];
    let length = read_full(&*file, &mut bytes, 0)?;
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is longer than it can be"));
    }
    bytes.truncate(length);
    Ok(Some(bytes))
}

/// The whole of a file of any length up to `most`; nothing if there is none. A longer one is an error.
///
/// # Errors
/// What the files said.
pub fn read_file(files: &dyn Files, path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let Some(file) = open_existing(files, path, Open::Read)? else { return Ok(None) };
    let length = usize::try_from(file.len()?).ok().filter(|length| *length as u64 <= most);
    let too_long = || io::Error::new(io::ErrorKind::InvalidData, "the file is longer than it can be");
    let mut bytes = vec![0; length.ok_or_else(too_long)?];
    let filled = read_full(&*file, &mut bytes, 0)?;
    bytes.truncate(filled);
    Ok(Some(bytes))
}

/// Opens a file, if there is one.
///
/// # Errors
/// What the files said.
pub fn open_existing(files: &dyn Files, path: &Path, how: Open) -> io::Result<Option<Arc<dyn File>>> {
    match files.open(path, how) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The names in a folder; none if there is no folder.
///
/// # Errors
/// What the files said.
pub fn list(files: &dyn Files, folder: &Path) -> io::Result<Vec<PathBuf>> {
    match files.list(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        other => other,
    }
}
