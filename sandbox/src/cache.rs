//! Compiled components on disk, so that a node compiles each once.
//!
//! Compiled code is machine code, and a file that is accepted here runs as the node. So every file carries a MAC under a key
//! that no folder holds: the caller derives it from a key of its own once that is unlocked. A file without the right MAC is
//! compiled anew. The folder lies outside of every home, so that a copy of a home brings no code. It can be deleted at any time.

use ephor_base::{Digest, Secret};
use hmac::{Hmac, Mac};
use rustix::fs::{CWD, Mode, OFlags};
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// A folder of compiled components and the key they are authenticated with.
pub struct CompiledCache {
    directory: PathBuf,
    key: Secret<[u8; 32]>,
}

/// The first bytes of a file: what it is, and the version of its layout. Then the MAC (32 bytes), then the code.
const MAGIC: &[u8; 16] = b"ephor-compiled-1";
const MAC_BYTES: usize = 32;

/// Code compiled from any component that is sensible to run is smaller.
const MOST_BYTES: u64 = 512 * 1024 * 1024;

/// How many files are kept: enough for the homes of a user, few enough that homes which are gone leave little behind.
const MOST_FILES: usize = 16;

impl CompiledCache {
    /// `directory` is made, readable by its owner alone, when something is first stored. `key` is secret, used for nothing
    /// else, and stands in no file beside the code. Several keys can share a folder.
    pub fn new(directory: PathBuf, key: Secret<[u8; 32]>) -> Self {
        Self { directory, key }
    }

    /// The compiled component, if it is here, is authentic and fits this engine. Anything else is a miss.
    pub(crate) fn load(&self, engine: &wasmtime::Engine, digest: Digest) -> Option<wasmtime::component::Component> {
        let path = self.path(digest);
        let file = match read(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                tracing::warn!(path = %path.display(), %error, "compiled code cannot be read; compiling anew");
                return None;
            }
        };
        let Some(code) = self.authentic(engine, digest, &file) else {
            tracing::warn!(path = %path.display(), "compiled code is not authentic or of another engine; compiling anew");
            return None;
        };
        // SAFETY: `deserialize` trusts the bytes to be what this engine serialised, since it maps them as machine code.
        // They are: the MAC, under a key that only a node which has unlocked it holds, covers them together with the compatibility
        // hash of this engine and the digest of the component, and was checked just now over this very buffer.
        let loaded = unsafe { wasmtime::component::Component::deserialize(engine, code) };
        loaded.inspect_err(|error| tracing::warn!(%digest, %error, "compiled code does not fit; compiling anew")).ok()
    }

    /// Keeps compiled code. Failing to is no failure of the call: the next start compiles again.
    pub(crate) fn store(&self, engine: &wasmtime::Engine, digest: Digest, code: &[u8]) {
        if let Err(error) = self.try_store(engine, digest, code) {
            tracing::warn!(directory = %self.directory.display(), %error, "compiled code cannot be kept");
        }
    }

    fn try_store(&self, engine: &wasmtime::Engine, digest: Digest, code: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::DirBuilderExt;

        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mac = self.mac(engine, digest, code).finalize().into_bytes();
        // One name a process: two nodes that share the folder do not write into each other's file.
        let part = self.directory.join(format!("{digest}.{}.part", std::process::id()));
        let written = write_new(&part, &[MAGIC, &mac, code]).and_then(|()| std::fs::rename(&part, self.path(digest)));
        if written.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        written.and_then(|()| self.forget_oldest())
    }

    fn forget_oldest(&self) -> io::Result<()> {
        let files = std::fs::read_dir(&self.directory)?.filter_map(Result::ok);
        let compiled = files.filter(|file| Path::new(&file.file_name()).extension().is_some_and(|end| end == "cwasm"));
        let mut aged: Vec<_> =
            compiled.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path()))).collect();
        aged.sort_unstable();
        let surplus = aged.len().saturating_sub(MOST_FILES);
        aged.iter().take(surplus).try_for_each(|(_, path)| std::fs::remove_file(path))
    }

    /// Each key has files of its own, or two homes would take each other's for tampered with.
    fn path(&self, digest: Digest) -> PathBuf {
        let owner = self.hmac().chain_update(b"file name").finalize().into_bytes();
        let owner: String = owner.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        self.directory.join(format!("{digest}-{owner}.cwasm"))
    }

    fn authentic<'a>(&self, engine: &wasmtime::Engine, digest: Digest, file: &'a [u8]) -> Option<&'a [u8]> {
        let (mac, code) = file.strip_prefix(MAGIC)?.split_at_checked(MAC_BYTES)?;
        // In constant time.
        self.mac(engine, digest, code).verify_slice(mac).ok()?;
        Some(code)
    }

    /// HMAC-SHA-256 over the layout's name, the engine, the component and the code. All but the code have a fixed length.
    fn mac(&self, engine: &wasmtime::Engine, digest: Digest, code: &[u8]) -> Hmac<Sha256> {
        self.hmac().chain_update(MAGIC).chain_update(compatibility(engine)).chain_update(digest.0).chain_update(code)
    }

    fn hmac(&self) -> Hmac<Sha256> {
        // Unlike the constructor for slices, this one cannot fail; the key is padded to the block as RFC 2104 says.
        let mut block = [0; 64];
        for (padded, byte) in block.iter_mut().zip(self.key.expose()) {
            *padded = *byte;
        }
        Hmac::<Sha256>::new(&block.into())
    }
}

/// What the engine's compiled code depends on: version, processor, settings.
fn compatibility(engine: &wasmtime::Engine) -> [u8; 32] {
    struct Collect(Sha256);

    impl Hasher for Collect {
        fn write(&mut self, bytes: &[u8]) {
            self.0.update(bytes);
        }

        fn finish(&self) -> u64 {
            0
        }
    }

    let mut collect = Collect(Sha256::new());
    engine.precompile_compatibility_hash().hash(&mut collect);
    collect.0.finalize().into()
}

/// Reads a regular file, and waits for nothing else that may stand there.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::openat(CWD, path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn write_new(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut file = File::from(rustix::fs::openat(CWD, path, flags, Mode::from_raw_mode(0o600))?);
    parts.iter().try_for_each(|part| file.write_all(part))
}
