//! The one WASM engine of a node.

use crate::cache::CompiledCache;
use crate::component::{Component, ComponentError};
use crate::limits::MEMORY_CEILING;
use crate::store::{self, State};
use crate::threads::{self, Threads};
use ephor_base::Digest;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::Notify;
use wasmtime::component::Linker;
use wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};

/// Runs guests. Cheap to clone; all clones are the same engine.
#[derive(Clone)]
pub struct Engine {
    shared: Arc<Shared>,
}

struct Shared {
    engine: wasmtime::Engine,
    linker: Linker<State>,
    threads: Threads,
    started: Notify,
    is_pooled: bool,
}

impl Engine {
    /// Guests that run at once. Each has a thread for as long as it runs; a call beyond this waits for its turn.
    pub const SLOTS: usize = threads::SLOTS;

    /// Time between two ticks of [`Engine::ticker`]: how long a guest that computes may be deaf to a cancellation.
    pub const TICK: Duration = Duration::from_millis(10);

    /// Reserves the address space for the instances. Where that is not to be had (a tight `RLIMIT_AS`), instances are
    /// made on demand, more slowly, and a warning says so.
    pub fn new() -> Result<Self, EngineError> {
        if !crate::open::is_supported() {
            return Err(EngineError::KernelLacks("openat2 with RESOLVE_BENEATH, Linux 5.6"));
        }
        let (engine, is_pooled) = match wasmtime::Engine::new(&pooling()) {
            Ok(engine) => (engine, true),
            Err(error) => {
                tracing::warn!(%error, "no address space for pooled instances; making them on demand");
                (wasmtime::Engine::new(&on_demand()).map_err(EngineError::wasmtime)?, false)
            }
        };
        let mut linker = Linker::new(&engine);
        store::link(&mut linker).map_err(EngineError::wasmtime)?;
        let threads = Threads::new();
        Ok(Self { shared: Arc::new(Shared { engine, linker, threads, started: Notify::new(), is_pooled }) })
    }

    /// Makes a component ready to run, from the cache where it holds the compiled code, else by compiling it, which takes
    /// seconds: not for an async worker. `expected` pins the digest of `bytes`.
    pub fn load(
        &self,
        bytes: &[u8],
        expected: Option<Digest>,
        cache: Option<&CompiledCache>,
    ) -> Result<Component, ComponentError> {
        Component::load(&self.shared.engine, &self.shared.linker, bytes, expected, cache)
    }

    /// Interrupts every running guest for a moment, so that its deadline and its cancellation are looked at.
    pub fn tick(&self) {
        self.shared.engine.increment_epoch();
    }

    /// Ticks for ever, every [`Engine::TICK`] while a guest runs. The engine starts nothing by itself: the node runs this
    /// as a process. Without it a guest that computes sees its deadline and its cancellation only every few dozen
    /// milliseconds of fuel; with it, within a tick.
    pub async fn ticker(&self) {
        loop {
            while self.running() == 0 {
                self.shared.started.notified().await;
            }
            tokio::time::sleep(Self::TICK).await;
            self.tick();
        }
    }

    /// Guests that are running now. Zero means no thread and no file of any guest is left.
    pub fn running(&self) -> usize {
        self.shared.threads.running()
    }

    /// Whether instances come from a pool, as they should.
    pub fn is_pooled(&self) -> bool {
        self.shared.is_pooled
    }

    pub(crate) fn wasmtime(&self) -> &wasmtime::Engine {
        &self.shared.engine
    }

    pub(crate) fn threads(&self) -> &Threads {
        &self.shared.threads
    }

    pub(crate) fn note_start(&self) {
        self.shared.started.notify_one();
    }
}

fn base() -> Config {
    let mut config = Config::new();
    config.consume_fuel(true);
    config.epoch_interruption(true);
    config.wasm_memory64(false);
    config
}

fn pooling() -> Config {
    // A component of today's toolchains is one core module and two or three small ones that join it to the host.
    const CORE_INSTANCES: u32 = 8;
    const MEMORIES: u32 = 2;
    const TABLES: u32 = 4;
    // A guest that waits for a disk which does not answer keeps its instance.
    let slots = (Engine::SLOTS + threads::GIVEN_UP_BY_ALL) as u32;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_core_instances(slots * CORE_INSTANCES)
        .total_memories(slots * MEMORIES)
        .total_tables(slots * TABLES)
        .total_stacks(slots)
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .max_memory_size(MEMORY_CEILING as usize);
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

fn on_demand() -> Config {
    let mut config = base();
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    // Without reserving: bounds are then checked in the code, and a memory takes what it uses.
    config.memory_reservation(0);
    config.memory_guard_size(64 * 1024);
    config.memory_reservation_for_growth(1024 * 1024);
    config
}

/// The engine could not be made. Nothing was started.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The system has no way to keep a guest inside its workspace.
    #[error("the kernel lacks {0}, which keeps tools inside their workspace")]
    KernelLacks(&'static str),
    /// The runtime refused its configuration: a processor it does not know, or no memory at all.
    #[error("the WASM engine does not start: {0}")]
    Wasmtime(String),
}

impl EngineError {
    fn wasmtime(error: wasmtime::Error) -> Self {
        Self::Wasmtime(format!("{error:#}"))
    }
}
