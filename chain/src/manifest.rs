//! The manifest of a backup: which log at which head, and the digests of the files that no signature covers.
//!
//! Text, one thing a line: the mark, the origin, the size and the root of the head, then a SHA-256 and a path below the
//! backup for each file, and last the SHA-256 of all lines before. It is written when everything else is on the disk and
//! verified, so a backup without it is not finished.

use std::path::{Path, PathBuf};

use ephor_base::{Digest, files::Files};
use ephor_tlog::Head;
use ephor_verify::folder;

/// The name of the file.
pub(crate) const NAME: &str = "backup";
const MARK: &str = "ephor-backup-1";
/// Enough for the keys of a hundred thousand sessions.
const MOST: u64 = 16 << 20;

/// What a manifest says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Manifest {
    pub(crate) origin: String,
    pub(crate) head: Head,
    /// Paths below the backup.
    pub(crate) files: Vec<(Digest, PathBuf)>,
}

impl Manifest {
    pub(crate) fn to_text(&self) -> String {
        let Self { origin, head, files } = self;
        let mut text = format!("{MARK}\n{origin}\n{} {}\n", head.size, head.root);
        for (digest, path) in files {
            text.push_str(&format!("{digest} {}\n", path.display()));
        }
        let digest = Digest::of(text.as_bytes());
        format!("{text}{digest}\n")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (body, digest) = text.strip_suffix('\n')?.rsplit_once('\n')?;
        let body = format!("{body}\n");
        if Digest::of(body.as_bytes()) != digest.parse().ok()? {
            return None;
        }
        let mut lines = body.lines();
        lines.next().filter(|mark| *mark == MARK)?;
        let origin = lines.next()?.to_owned();
        let (size, root) = lines.next()?.split_once(' ')?;
        let head = Head { size: size.parse().ok()?, root: root.parse().ok()? };
        let files = lines.map(|line| {
            let (digest, path) = line.split_once(' ')?;
            let path = PathBuf::from(path);
            is_below(&path).then_some((digest.parse().ok()?, path))
        });
        Some(Self { origin, head, files: files.collect::<Option<_>>()? })
    }

    /// The manifest of a backup; nothing if there is none. `InvalidData` if it is damaged.
    pub(crate) fn load(folder: &Path, files: &dyn Files) -> std::io::Result<Option<Self>> {
        let damaged = || std::io::Error::new(std::io::ErrorKind::InvalidData, "the manifest is damaged");
        let Some(bytes) = folder::read_file(files, &folder.join(NAME), MOST)? else { return Ok(None) };
        let text = String::from_utf8(bytes).map_err(|_| damaged())?;
        Self::parse(&text).map(Some).ok_or_else(damaged)
    }
}

/// The digest of a small file; nothing if there is none.
pub(crate) fn digest(path: &Path, files: &dyn Files) -> std::io::Result<Option<Digest>> {
    Ok(folder::read_file(files, path, MOST)?.map(|bytes| Digest::of(&bytes)))
}

/// Whether a path stays where it is put.
fn is_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, std::path::Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_reads_back_and_no_changed_byte_does() {
        let head = Head { size: 7, root: Digest::of(b"root") };
        let files = vec![(Digest::of(b"key"), PathBuf::from("keys/vault"))];
        let manifest = Manifest { origin: "ephor/abc".into(), head, files };
        let text = manifest.to_text();
        assert_eq!(Manifest::parse(&text), Some(manifest.clone()));
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(Manifest::parse(&changed), None, "byte {place}");
        }
        let outside = Manifest { files: vec![(Digest::of(b""), PathBuf::from("../x"))], ..manifest };
        assert_eq!(Manifest::parse(&outside.to_text()), None);
    }
}
