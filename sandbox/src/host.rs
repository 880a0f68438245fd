//! What a guest asks of its host beside WASI: to keep what it has found so far, to put content in the place of a file, and to move one.

use crate::bindings::ephor::tool::host;
use crate::call::Access;
use crate::filesystem::Grant;
use crate::limits::LimitReached;
use crate::locate::{Held, shown};
use crate::replace::{self, Unreplaced};
use crate::store::State;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of the place that a call is at.
const PLACE_BYTES: usize = 1024;

/// What a guest has found so far. It outlives the guest, however that ends.
#[derive(Clone)]
pub(crate) struct Emitted(Arc<Mutex<Found>>);

struct Found {
    text: String,
    at: String,
    limit: u64,
}

impl Emitted {
    pub(crate) fn new(output_bytes: u64) -> Self {
        Self(Arc::new(Mutex::new(Found { text: String::new(), at: String::new(), limit: output_bytes })))
    }

    /// The text, and what the guest was at.
    pub(crate) fn take(&self) -> (String, String) {
        let mut found = self.found();
        (std::mem::take(&mut found.text), std::mem::take(&mut found.at))
    }

    pub(crate) fn bytes(&self) -> usize {
        self.found().text.len()
    }

    fn add(&self, more: &str) -> Result<(), LimitReached> {
        let mut found = self.found();
        if (found.text.len() as u64).saturating_add(more.len() as u64) > found.limit {
            return Err(LimitReached::Output { output_bytes: found.limit });
        }
        found.text.push_str(more);
        Ok(())
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        // Nothing under it can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl host::Host for State {
    fn emit(&mut self, text: String) -> wasmtime::Result<()> {
        self.emitted.add(&text).map_err(wasmtime::Error::new)
    }

    fn at(&mut self, place: String) -> wasmtime::Result<()> {
        let cut = place.floor_char_boundary(PLACE_BYTES);
        self.emitted.found().at = shown(place.get(..cut).unwrap_or_default());
        Ok(())
    }

    fn replace(
        &mut self,
        path: String,
        content: Option<Vec<u8>>,
        expected: Option<Vec<String>>,
        mode: Option<u32>,
    ) -> wasmtime::Result<Result<host::Replaced, host::Unreplaced>> {
        let replaced = put(&self.grant, self.access, (&path, expected.as_deref()), (content.as_deref(), mode));
        let replaced = replaced.map(|done| host::Replaced { old_size: done.old_size, lost: done.lost });
        Ok(replaced.map_err(Into::into))
    }

    fn rename(&mut self, source: String, target: String) -> wasmtime::Result<Result<Vec<String>, host::Unreplaced>> {
        let renamed = judged(&self.grant, self.access, &source).and_then(|(root, source)| {
            let (_, target) = judged(&self.grant, self.access, &target)?;
            replace::rename(root, source, target)
        });
        Ok(renamed.map_err(Into::into))
    }

    fn remove_folder(&mut self, path: String) -> wasmtime::Result<Result<(), host::Unreplaced>> {
        let held = judged(&self.grant, self.access, &path);
        Ok(held.and_then(|(root, held)| replace::remove_folder(root, held)).map_err(Into::into))
    }
}

impl From<Unreplaced> for host::Unreplaced {
    fn from(why: Unreplaced) -> Self {
        match why {
            Unreplaced::Refused(why) => Self::Refused(why),
            Unreplaced::Changed(why) => Self::Changed(why),
            Unreplaced::Io(why) => Self::Io(why),
        }
    }
}

/// The workspace, and the place in it that a call was judged by and may change.
fn judged<'a>(grant: &'a Grant, access: Access, path: &str) -> Result<(&'a File, &'a Held), Unreplaced> {
    let refused = |why: &str| Unreplaced::Refused(format!("`{}` {why}", shown(path)));
    let Some(root) = &grant.directory else {
        return Err(refused("cannot be changed: this call was given no workspace"));
    };
    if access != Access::ReadWrite {
        return Err(refused("cannot be changed: the workspace is read-only here"));
    }
    let held = grant.held.iter().find(|held| held.place.path == path);
    let held = held.ok_or_else(|| refused("is not a file that this call was judged by"))?;
    Ok((root, held))
}

fn put(
    grant: &Grant,
    access: Access,
    (path, expected): (&str, Option<&[String]>),
    (content, mode): (Option<&[u8]>, Option<u32>),
) -> Result<replace::Replaced, Unreplaced> {
    let (root, held) = judged(grant, access, path)?;
    let now = held.place.content.map(|digest| digest.to_string()).unwrap_or_default();
    if expected.is_some_and(|expected| !expected.contains(&now)) {
        let why = format!("`{}` is not what it was expected to be; nothing was written", shown(path));
        return Err(Unreplaced::Changed(why));
    }
    if expected.is_some() && content.is_none() && !held.place.exists {
        return Ok(replace::Replaced::default());
    }
    replace::replace(root, held, content, mode)
}
