//! A guest that is compiled when it is first needed.

use crate::builtin::{BuiltinError, FILES, pinned};
use crate::cache::CompiledCache;
use crate::component::Component;
use crate::engine::Engine;
use ephor_base::Digest;
use std::sync::Arc;
use tokio::sync::OnceCell;

/// The component with the built-in tools. Cheap to clone; every clone is the same.
///
/// Compiling takes seconds on the first start of a home and milliseconds after that, from the cache. A node starts it in
/// the background and takes messages meanwhile; a call that comes too early waits.
#[derive(Clone)]
pub struct Guest(Arc<Source>);

struct Source {
    engine: Engine,
    pinned: Digest,
    cache: Option<CompiledCache>,
    component: OnceCell<Component>,
}

impl Guest {
    /// The built-in tools, pinned by the digest that was kept with them. Compiles nothing yet.
    pub fn builtin(engine: Engine, cache: Option<CompiledCache>) -> Result<Self, BuiltinError> {
        Ok(Self(Arc::new(Source { engine, pinned: pinned()?, cache, component: OnceCell::new() })))
    }

    /// What it is pinned by.
    pub fn digest(&self) -> Digest {
        self.0.pinned
    }

    /// Whether it is compiled.
    pub fn is_ready(&self) -> bool {
        self.0.component.initialized()
    }

    /// The component; compiles it if nobody has.
    pub async fn ready(&self) -> Result<&Component, BuiltinError> {
        self.0.component.get_or_try_init(|| self.load()).await
    }

    async fn load(&self) -> Result<Component, BuiltinError> {
        let source = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || source.engine.load(FILES, Some(source.pinned), source.cache.as_ref()))
            .await
            .map_err(|error| BuiltinError::Interrupted(error.to_string()))?
            .map_err(BuiltinError::from)
    }
}
