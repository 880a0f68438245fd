//! A component that is compiled, linked and ready to be instantiated.

use crate::bindings::ToolPre;
use crate::cache::CompiledCache;
use crate::store::State;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use wasmtime::component::Linker;

/// SHA-256 of a component's bytes: what a tool is pinned by. Written as 64 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ComponentDigest([u8; 32]);

impl ComponentDigest {
    /// The digest of a component.
    pub fn of(component: &[u8]) -> Self {
        Self(Sha256::digest(component).into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ComponentDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for ComponentDigest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The text is not 64 lower-case hexadecimal digits.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{0}` is not a SHA-256 digest in hexadecimal")]
pub struct InvalidDigest(String);

impl FromStr for ComponentDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest(text.to_owned());
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(invalid()),
        };
        let mut digest = [0; 32];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != digest.len() || !rest.is_empty() {
            return Err(invalid());
        }
        for (byte, [high, low]) in digest.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(digest))
    }
}

/// A component that implements `ephor:tool` and imports nothing that guests do not get. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    digest: ComponentDigest,
    pre: ToolPre<State>,
}

impl Component {
    pub(crate) fn load(
        engine: &wasmtime::Engine,
        linker: &Linker<State>,
        bytes: &[u8],
        expected: Option<ComponentDigest>,
        cache: Option<&CompiledCache>,
    ) -> Result<Self, ComponentError> {
        let digest = ComponentDigest::of(bytes);
        if let Some(expected) = expected.filter(|expected| *expected != digest) {
            return Err(ComponentError::OtherDigest { expected, found: digest });
        }
        let component = match cache.and_then(|cache| cache.load(engine, digest)) {
            Some(component) => component,
            None => compile(engine, bytes, digest, cache)?,
        };
        let unfit = |error: wasmtime::Error| ComponentError::Unfit { digest, reason: format!("{error:#}") };
        let pre = linker.instantiate_pre(&component).map_err(unfit)?;
        Ok(Self { digest, pre: ToolPre::new(pre).map_err(unfit)? })
    }

    /// What it is pinned by.
    pub fn digest(&self) -> ComponentDigest {
        self.digest
    }

    pub(crate) fn pre(&self) -> &ToolPre<State> {
        &self.pre
    }
}

fn compile(
    engine: &wasmtime::Engine,
    bytes: &[u8],
    digest: ComponentDigest,
    cache: Option<&CompiledCache>,
) -> Result<wasmtime::component::Component, ComponentError> {
    let component = wasmtime::component::Component::from_binary(engine, bytes)
        .map_err(|error| ComponentError::Invalid { digest, reason: format!("{error:#}") })?;
    if let Some(cache) = cache {
        match component.serialize() {
            Ok(compiled) => cache.store(engine, digest, &compiled),
            Err(error) => tracing::warn!(%digest, %error, "compiled code cannot be kept"),
        }
    }
    Ok(component)
}

/// A component that cannot be used. Nothing of it was run. The fault is the component's.
#[derive(Debug, Error)]
pub enum ComponentError {
    /// It is not the component that was asked for.
    #[error("the component has the digest {found}, not {expected}")]
    OtherDigest {
        /// The digest it is pinned by.
        expected: ComponentDigest,
        /// The digest of the bytes given.
        found: ComponentDigest,
    },
    /// It is not a WebAssembly component, or one this engine cannot compile.
    #[error("the component {digest} is not valid: {reason}")]
    Invalid {
        /// Its digest.
        digest: ComponentDigest,
        /// What is wrong, in the runtime's words.
        reason: String,
    },
    /// It imports something that guests do not get, or does not export `ephor:tool/guest`.
    #[error("the component {digest} does not fit: {reason}")]
    Unfit {
        /// Its digest.
        digest: ComponentDigest,
        /// What is wrong, in the runtime's words.
        reason: String,
    },
}
