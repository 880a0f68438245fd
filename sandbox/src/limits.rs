//! What a call may use, and what is told when it would use more.

use std::time::Duration;
use thiserror::Error;
use wasmtime::ResourceLimiter;

/// What one call of one guest may use. Every limit always holds; none can be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, roughly: wasmtime's unit of fuel. At least 1. The same call uses the same fuel on every machine.
    pub fuel: u64,
    /// Wall time from the start of the guest to its answer, waiting in host calls included.
    pub deadline: Duration,
    /// Bytes of all linear memories and tables of the call together. Above [`Limits::MEMORY_CEILING`] it is the ceiling
    /// that holds.
    pub memory_bytes: u64,
    /// Bytes the guest may print to standard output and error together; the answer has the same bound of its own.
    pub output_bytes: u64,
}

impl Limits {
    /// About a minute of work on one core: the deadline ends an ordinary runaway sooner, this one ends it the same way
    /// on every machine.
    pub const FUEL: u64 = 100_000_000_000;
    /// Long enough to search a few gigabytes, short enough that a person still waits.
    pub const DEADLINE: Duration = Duration::from_secs(30);
    /// A text tool needs a few megabytes; this leaves room for one large file held whole.
    pub const MEMORY_BYTES: u64 = 64 * 1024 * 1024;
    /// Several times the largest answer of the built-in tools, and more than a model can use.
    pub const OUTPUT_BYTES: u64 = 1024 * 1024;
    /// What the pool of instances is laid out for.
    pub const MEMORY_CEILING: u64 = 256 * 1024 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            fuel: Self::FUEL,
            deadline: Self::DEADLINE,
            memory_bytes: Self::MEMORY_BYTES,
            output_bytes: Self::OUTPUT_BYTES,
        }
    }
}

/// A limit that a call reached. The guest is gone; the engine and every other guest are as they were. What the guest had
/// written to its workspace by then stays written. The fault is the guest's, or the limit is too tight for the task.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LimitReached {
    /// It executed more than `fuel` instructions.
    #[error("the tool used up its {fuel} units of fuel without an answer")]
    Fuel {
        /// [`Limits::fuel`] of the call.
        fuel: u64,
    },
    /// It had no answer in time.
    #[error("the tool had no answer within its deadline of {} ms", .deadline.as_millis())]
    Deadline {
        /// [`Limits::deadline`] of the call.
        deadline: Duration,
    },
    /// It asked for more memory.
    #[error("the tool asked for more than its {memory_bytes} bytes of memory")]
    Memory {
        /// The bound that held: [`Limits::memory_bytes`] or the ceiling.
        memory_bytes: u64,
    },
    /// It printed or answered more.
    #[error("the tool put out more than its {output_bytes} bytes of output")]
    Output {
        /// [`Limits::output_bytes`] of the call.
        output_bytes: u64,
    },
    /// It held more files, directories and streams open at once.
    #[error("the tool held more than {handles} handles open at once")]
    Handles {
        /// The bound, the same for every call.
        handles: usize,
    },
}

/// Counts what the memories and tables of one store have grown to, together.
pub(crate) struct MemoryMeter {
    limit: u64,
    used: u64,
}

/// What a table element costs the host: a pointer.
const TABLE_ELEMENT_BYTES: u64 = 8;

impl MemoryMeter {
    pub(crate) fn new(memory_bytes: u64) -> Self {
        Self { limit: memory_bytes.min(Limits::MEMORY_CEILING), used: 0 }
    }

    /// An error, unlike a refused growth, ends the guest at once and carries the name of the limit out.
    fn grow(&mut self, current: usize, desired: usize, unit: u64) -> wasmtime::Result<bool> {
        let more = (desired.saturating_sub(current) as u64).saturating_mul(unit);
        let used = self.used.saturating_add(more);
        if used > self.limit {
            return Err(wasmtime::Error::new(LimitReached::Memory { memory_bytes: self.limit }));
        }
        self.used = used;
        Ok(true)
    }
}

impl ResourceLimiter for MemoryMeter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(current, desired, 1)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        self.grow(current, desired, TABLE_ELEMENT_BYTES)
    }
}
