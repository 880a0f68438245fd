//! A log that a web server publishes.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use ephor_egress::{BaseUrl, Error, Reader};
use ephor_verify::TileSource;
use tokio::runtime::Runtime;

use crate::commands::runtime;

/// The files below a URL. A web server cannot list them, so files that do not belong there are not looked for.
struct Web {
    reader: Reader,
    runtime: Runtime,
}

/// The log published below `url`.
pub(super) fn source(url: &str) -> anyhow::Result<Arc<dyn TileSource>> {
    let base: BaseUrl = url.parse().with_context(|| format!("`{url}` cannot be read from"))?;
    Ok(Arc::new(Web { reader: Reader::new(base)?, runtime: runtime(1)? }))
}

impl TileSource for Web {
    fn read(&self, name: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
        let name = name.to_str().ok_or(io::ErrorKind::InvalidInput)?;
        self.runtime.block_on(self.reader.read(name, most)).map_err(|error| match error {
            error @ Error::TooLarge { .. } => io::Error::new(io::ErrorKind::InvalidData, error),
            error => io::Error::other(error),
        })
    }

    fn list(&self, _: &Path) -> io::Result<Option<Vec<PathBuf>>> {
        Ok(None)
    }

    fn place(&self, name: &Path) -> PathBuf {
        name.to_str().map_or_else(|| name.to_owned(), |name| self.reader.place(name).into())
    }
}
