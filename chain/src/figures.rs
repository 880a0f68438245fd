//! Figures of the journal: what an operator is told of it.

use std::{path::Path, sync::Arc};

use ephor_base::files::Files;
use ephor_record::ScanError;
use ephor_tlog::Head;
use serde::Serialize;

use crate::scan::Scan;

/// What the journal holds: the part of a chain that was not given back yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Journal {
    /// The entry it begins at. Those before it are published.
    pub first: u64,
    /// How many entries it holds.
    pub entries: u64,
    /// In how many batches they were written, each under one checkpoint.
    pub batches: u64,
    /// The bytes of those.
    pub bytes: u64,
    /// The head at its end, and so that of the chain.
    pub head: Head,
}

/// A log that is being written gives segments back that a reader was about to open.
const TRIES: u32 = 100;

/// The figures of the journal of the chain in `folder`. It is read to its end: at most a few segments.
///
/// # Errors
/// [`ScanError`] if it cannot be.
pub fn journal(folder: &Path, files: &Arc<dyn Files>) -> Result<Journal, ScanError> {
    let mut tries = 0;
    loop {
        match attempt(folder, files) {
            Err(error) if error.is_gone() && tries < TRIES => tries = tries.saturating_add(1),
            other => return other,
        }
    }
}

fn attempt(folder: &Path, files: &Arc<dyn Files>) -> Result<Journal, ScanError> {
    let mut scan = Scan::open(folder, files)?;
    let (first, mut batches) = (scan.start.size, 0u64);
    while scan.next()?.is_some() {
        batches = batches.saturating_add(1);
    }
    let head = scan.head();
    Ok(Journal { first, entries: head.size.saturating_sub(first), batches, bytes: scan.bytes(), head })
}
