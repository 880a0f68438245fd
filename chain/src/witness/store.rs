//! What a witness has seen, on the disk.
//!
//! Each log has a file named by the SHA-256 of its origin line: the checkpoint that was cosigned last, replaced whole. The
//! file `logs` lists those names, so that one that goes missing is noticed. A new log's file comes first and its name in the
//! list second, both before the first answer; after a crash in between, the file counts.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use ephor_base::{Digest, files::Files};
use ephor_tlog::note::MAX_NOTE_BYTES;
use ephor_verify::folder;

use crate::durable;

const LIST_MARK: &[u8] = b"ephor witness logs 1\n";
const SEEN_MARK: &[u8] = b"ephor witness seen 1\n";
/// Room for 65,536 logs.
const MAX_LIST_BYTES: usize = 65 * 65_536 + 256;
const MAX_SEEN_BYTES: usize = MAX_NOTE_BYTES + 16_384;

/// A witness was not made or opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WitnessError {
    /// The system would not read or write its store. The store's fault.
    #[error("the store of the witness cannot be used: {0}")]
    Io(#[from] io::Error),
    /// There is none in the folder.
    #[error("there is no witness in `{0}`")]
    Missing(PathBuf),
    /// There is one in the folder, or what was left of one.
    #[error("there already is a witness in `{0}`")]
    Exists(PathBuf),
    /// A file is missing, was changed, or is that of another witness. A witness that has forgotten must not cosign.
    #[error("`{0}` is missing, damaged or another witness's; put back a copy that is as new as what was cosigned last")]
    Damaged(PathBuf),
}

/// What was kept of a log.
pub(crate) struct Kept {
    pub(crate) path: PathBuf,
    /// The SHA-256 of the origin line.
    pub(crate) place: Digest,
    pub(crate) note: Vec<u8>,
}

/// The folder of a witness.
pub(crate) struct Store {
    folder: PathBuf,
    files: Arc<dyn Files>,
    listed: Mutex<BTreeSet<Digest>>,
}

impl Store {
    pub(crate) fn create(folder: &Path, files: &Arc<dyn Files>) -> Result<Self, WitnessError> {
        durable::make_folder(&**files, folder)?;
        let store = Self { folder: folder.to_owned(), files: Arc::clone(files), listed: Mutex::default() };
        let there = folder::list(&**files, folder)?;
        if there.iter().any(|name| name == Path::new("logs") || digest_of(name).is_some()) {
            return Err(WitnessError::Exists(folder.to_owned()));
        }
        store.write_list(&BTreeSet::new())?;
        Ok(store)
    }

    /// Opens the store and reads all that was seen.
    pub(crate) fn open(folder: &Path, files: &Arc<dyn Files>) -> Result<(Self, Vec<Kept>), WitnessError> {
        let list = folder.join("logs");
        let there: BTreeSet<_> = folder::list(&**files, folder)?.iter().filter_map(|name| digest_of(name)).collect();
        let Some(bytes) = read(&**files, &list, MAX_LIST_BYTES)? else {
            let gone = if there.is_empty() { WitnessError::Missing } else { WitnessError::Damaged };
            return Err(gone(if there.is_empty() { folder.to_owned() } else { list }));
        };
        let listed = read_list(&bytes).ok_or(WitnessError::Damaged(list))?;
        let mut kept = Vec::new();
        for place in there.union(&listed) {
            let path = folder.join(place.to_string());
            let bytes = read(&**files, &path, MAX_SEEN_BYTES)?;
            let body = bytes.as_deref().and_then(|bytes| durable::open_envelope(SEEN_MARK, bytes));
            let body = body.ok_or_else(|| WitnessError::Damaged(path.clone()))?;
            let note = body.to_vec();
            kept.push(Kept { path, place: *place, note });
        }
        Ok((Self { folder: folder.to_owned(), files: Arc::clone(files), listed: Mutex::new(listed) }, kept))
    }

    /// Keeps what was seen of a log; when it returns, the disk has it.
    pub(crate) fn keep(&self, place: Digest, note: &[u8]) -> io::Result<()> {
        let path = self.folder.join(place.to_string());
        durable::replace(&*self.files, &path, &durable::envelope(SEEN_MARK, note))?;
        let mut listed = self.listed.lock().unwrap_or_else(PoisonError::into_inner);
        if !listed.contains(&place) {
            let mut next = listed.clone();
            next.insert(place);
            self.write_list(&next)?;
            *listed = next;
        }
        Ok(())
    }

    /// Keeps the first fork proof of a log, as far as the disk lets it: it is handed out in any case.
    pub(crate) fn keep_fork(&self, place: Digest, proof: &[u8]) {
        let path = self.folder.join(format!("{place}.fork"));
        let kept = folder::open_existing(&*self.files, &path, ephor_base::files::Open::Read);
        let kept = kept.and_then(|there| match there {
            Some(_) => Ok(()),
            None => durable::replace(&*self.files, &path, proof),
        });
        if let Err(error) = kept {
            tracing::warn!(%error, "a fork proof could not be kept");
        }
    }

    fn write_list(&self, listed: &BTreeSet<Digest>) -> io::Result<()> {
        let lines: String = listed.iter().map(|place| format!("{place}\n")).collect();
        let bytes = durable::envelope(LIST_MARK, lines.as_bytes());
        durable::replace(&*self.files, &self.folder.join("logs"), &bytes)
    }
}

/// A file that is too long is as damaged as a missing one.
fn read(files: &dyn Files, path: &Path, most: usize) -> io::Result<Option<Vec<u8>>> {
    match folder::read_whole(files, path, most) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Vec::new())),
        other => other,
    }
}

fn read_list(bytes: &[u8]) -> Option<BTreeSet<Digest>> {
    let text = std::str::from_utf8(durable::open_envelope(LIST_MARK, bytes)?).ok()?;
    text.lines().map(|line| line.parse().ok()).collect()
}

fn digest_of(name: &Path) -> Option<Digest> {
    name.to_str()?.parse().ok()
}
