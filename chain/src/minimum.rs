//! Reads where a pruned log begins.

use std::{path::Path, sync::Arc};

use ephor_base::files::Files;
use ephor_record::{Minimum, ScanError};
use ephor_verify::{Folder, source};

/// What is published in the folder of a chain. Whether the record allows it is not looked at here.
///
/// # Errors
/// [`ScanError`] if the file is there and cannot be read.
pub fn load(chain: &Path, files: &Arc<dyn Files>) -> Result<Option<Minimum>, ScanError> {
    source::minimum(&*Folder::source(chain, files))
}

/// The first entry that is still there, pruned or not.
pub(crate) fn index_of(chain: &Path, files: &Arc<dyn Files>) -> Result<u64, ScanError> {
    source::first(&*Folder::source(chain, files))
}
