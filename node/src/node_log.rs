//! What a node says of itself: on standard error, or, of a node that was started for a client, in `node.log`.
//!
//! A line that cannot be written is lost, and nothing else: a full disk or a closed pipe must not end a node. What others have
//! written is in it as text: it ends no line, moves no cursor and fills no screen.

use std::{
    fs::File,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use ephor_base::legible;
use ephor_chain::disk::{self, Whose};
use rustix::{fs::OFlags, stdio};

/// The size at which the file becomes `node.log.1`, in bytes. Two files of this size are kept: enough for weeks of warnings.
const MOST: u64 = 4 * 1024 * 1024;

/// The longest line, in bytes; what is longer is cut.
const MOST_LINE: usize = 4096;

/// Where lines go.
#[derive(Clone, Debug)]
pub(crate) enum NodeLog {
    /// To the terminal on which the node was started by hand.
    Terminal,
    /// To the file, which no other process writes.
    File(Arc<Mutex<Kept>>),
}

/// The file, and how large it is.
#[derive(Debug)]
pub(crate) struct Kept {
    file: File,
    path: PathBuf,
    size: u64,
}

impl NodeLog {
    /// The log of a node that has nobody at a terminal. What the language's runtime writes to standard error as it aborts goes
    /// there as well.
    ///
    /// # Errors
    /// The file is not there and cannot be made, or is no regular file.
    pub(crate) fn in_file(path: &Path) -> io::Result<Self> {
        Ok(Self::File(Arc::new(Mutex::new(Kept::open(path)?))))
    }
}

impl Kept {
    fn open(path: &Path) -> io::Result<Self> {
        let file = disk::open(path, Whose::Home, OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND)?;
        let size = file.metadata()?.len();
        stdio::dup2_stderr(&file)?;
        Ok(Self { file, path: path.to_owned(), size })
    }

    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        let grown = self.size.saturating_add(bytes.len() as u64);
        if grown > MOST {
            std::fs::rename(&self.path, self.path.with_extension("log.1"))?;
            *self = Self::open(&self.path)?;
        }
        self.file.write_all(bytes)?;
        self.size = self.size.saturating_add(bytes.len() as u64);
        Ok(())
    }
}

/// What is said at once, as one line.
fn line(bytes: &[u8]) -> String {
    let said = String::from_utf8_lossy(bytes);
    let mut line = legible::line(said.strip_suffix('\n').unwrap_or(&said));
    if line.len() > MOST_LINE {
        line.truncate(line.floor_char_boundary(MOST_LINE));
        line.push('…');
    }
    line.push('\n');
    line
}

impl Write for NodeLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = line(bytes);
        let _lost = match self {
            Self::Terminal => io::stderr().lock().write_all(line.as_bytes()),
            Self::File(kept) => kept.lock().map_or(Ok(()), |mut kept| kept.add(line.as_bytes())),
        };
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write};

    use super::{MOST, MOST_LINE, NodeLog, line};

    #[test]
    fn what_is_said_at_once_is_one_legible_line_of_bounded_length() {
        assert_eq!(line(b"a warning\n"), "a warning\n");
        let told = line("a\nb\u{1b}[2J\u{202e}c\n".as_bytes());
        assert_eq!(told, "a\\u000ab\\u001b[2J\\u202ec\n");
        for piece in ["x", "\u{1b}", "\u{fc}"] {
            let told = line(piece.repeat(2 * MOST_LINE).as_bytes());
            assert!(told.len() <= MOST_LINE + 4 && told.ends_with("…\n") && told.matches('\n').count() == 1);
        }
    }

    #[test]
    fn a_log_that_cannot_be_written_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.log");
        let mut log = NodeLog::in_file(&path).unwrap();
        fs::remove_dir_all(folder.path()).unwrap();
        for _ in 0..3 {
            log.write_all(&vec![b'x'; usize::try_from(MOST).unwrap()]).unwrap();
        }
    }

    #[test]
    fn a_log_keeps_two_files_of_bounded_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.log");
        let mut log = NodeLog::in_file(&path).unwrap();
        for _ in 0..3 * MOST / MOST_LINE as u64 {
            log.write_all(&[b'x'; MOST_LINE]).unwrap();
        }
        let sizes: Vec<u64> =
            fs::read_dir(folder.path()).unwrap().map(|it| it.unwrap().metadata().unwrap().len()).collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|size| *size <= MOST));
    }

    #[test]
    fn a_log_is_a_regular_file() {
        let folder = tempfile::tempdir().unwrap();
        assert!(NodeLog::in_file(folder.path()).is_err());
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path().join("elsewhere"), &link).unwrap();
        assert!(NodeLog::in_file(&link).is_err());
    }
}
