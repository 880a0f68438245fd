//! Reads where a pruned log begins.

use std::{io, path::Path};

use ephor_base::files::Files;
use ephor_record::{Minimum, ScanError};

use crate::durable;

/// What is published in the folder of a chain. Whether the record allows it is not looked at here.
///
/// # Errors
/// [`ScanError`] if the file is there and cannot be read.
pub fn load(chain: &Path, files: &dyn Files) -> Result<Option<Minimum>, ScanError> {
    let path = chain.join(Minimum::FILE);
    let damaged = || ScanError::minimum("it cannot be read");
    match durable::read_whole(files, &path, Minimum::MAX_BYTES) {
        Ok(None) => Ok(None),
        Ok(Some(bytes)) => Minimum::parse(&bytes).map(Some).ok_or_else(damaged),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(damaged()),
        Err(source) => Err(ScanError::Io { path, source }),
    }
}

/// The first entry that is still there, pruned or not.
pub(crate) fn index_of(chain: &Path, files: &dyn Files) -> Result<u64, ScanError> {
    Ok(load(chain, files)?.map_or(0, |minimum| minimum.index))
}
