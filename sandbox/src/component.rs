//! A component that is compiled, linked and ready to be instantiated.

use crate::bindings::ToolPre;
use crate::cache::CompiledCache;
use crate::store::State;
use ephor_base::Digest;
use thiserror::Error;
use wasmtime::component::Linker;

/// A component that implements `ephor:tool` and imports nothing that guests do not get. Cheap to clone.
#[derive(Clone)]
pub struct Component {
    digest: Digest,
    pre: ToolPre<State>,
}

impl Component {
    pub(crate) fn load(
        engine: &wasmtime::Engine,
        linker: &Linker<State>,
        bytes: &[u8],
        expected: Option<Digest>,
        cache: Option<&CompiledCache>,
    ) -> Result<Self, ComponentError> {
        let digest = Digest::of(bytes);
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
    pub fn digest(&self) -> Digest {
        self.digest
    }

    pub(crate) fn pre(&self) -> &ToolPre<State> {
        &self.pre
    }
}

fn compile(
    engine: &wasmtime::Engine,
    bytes: &[u8],
    digest: Digest,
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
        expected: Digest,
        /// The digest of the bytes given.
        found: Digest,
    },
    /// It is not a WebAssembly component, or one this engine cannot compile.
    #[error("the component {digest} is not valid: {reason}")]
    Invalid {
        /// Its digest.
        digest: Digest,
        /// What is wrong, in the runtime's words.
        reason: String,
    },
    /// It imports something that guests do not get, or does not export `ephor:tool/guest`.
    #[error("the component {digest} does not fit: {reason}")]
    Unfit {
        /// Its digest.
        digest: Digest,
        /// What is wrong, in the runtime's words.
        reason: String,
    },
}
