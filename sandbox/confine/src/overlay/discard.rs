//! Removes an untrusted tree.

use std::{ffi::OsString, io, path::Path};

use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};

use super::{
    read::OWN,
    tree::{Folder, Tree},
};

/// Removes a folder of the caller's with all its entries, whatever their modes and however deep they lie. Follows no link, and
/// holds a few descriptors at most: deep folders are moved to the top first.
///
/// # Errors
/// The system's error, as when the folder does not exist. Some entries may have been removed.
pub fn discard(path: &Path) -> io::Result<()> {
    let tree = Tree::open(path)?;
    let top = tree.folder(Path::new(""))?;
    // Folders directly in the top one that are still to be emptied.
    let mut open = clear(&top)?;
    let mut brought = 0_u64;
    while let Some(name) = open.pop() {
        let folder = tree.folder(Path::new(&name))?;
        for below in clear(&folder)? {
            let here = loop {
                let here = OsString::from(format!("ephor-{brought}"));
                brought = brought.checked_add(1).ok_or(io::ErrorKind::StorageFull)?;
                match renameat_with(&folder, &below, &top, &here, RenameFlags::NOREPLACE) {
                    Ok(()) => break here,
                    Err(rustix::io::Errno::EXIST) => {}
                    Err(why) => return Err(why.into()),
                }
            };
            open.push(here);
        }
        unlinkat(&top, &name, AtFlags::REMOVEDIR)?;
    }
    std::fs::remove_dir(path)
}

/// Removes all entries but folders, and returns the names of the folders, which their owner can now list and empty.
fn clear(folder: &Folder) -> io::Result<Vec<OsString>> {
    let mut folders = Vec::new();
    for name in folder.names()? {
        match folder.look(&name)? {
            Some(found) if found.is_folder() => {
                if found.mode() & OWN != OWN {
                    folder.permit(&name, OWN)?;
                }
                folders.push(name);
            }
            Some(_) => unlinkat(folder, &name, AtFlags::empty())?,
            None => {}
        }
    }
    Ok(folders)
}
