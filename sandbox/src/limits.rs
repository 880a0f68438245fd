//! What a call may use, and what is told when it would use more.

use ephor_base::Limits;
use thiserror::Error;
use wasmtime::ResourceLimiter;

/// What a call of a built-in tool may use, where the operator does not say otherwise.
pub const DEFAULT_LIMITS: Limits = Limits {
    // About a minute of work on one core: the deadline ends an ordinary runaway sooner, fuel ends it at the same place on
    // every machine.
    fuel: 100_000_000_000,
    // Long enough to search a few gigabytes, short enough that a person still waits.
    deadline_ms: 30_000,
    // A text tool needs a few megabytes; this leaves room for one large file held whole.
    memory_bytes: 64 * 1024 * 1024,
    // Several times the largest answer of the built-in tools, and more than a model can use.
    output_bytes: 1024 * 1024,
};

/// The bytes of memory the pool of instances is laid out for. Where a call's limit is higher, this one holds.
pub const MEMORY_CEILING: u64 = 256 * 1024 * 1024;

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
    #[error("the tool had no answer within its deadline of {deadline_ms} ms")]
    Deadline {
        /// [`Limits::deadline_ms`] of the call.
        deadline_ms: u64,
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
        Self { limit: memory_bytes.min(MEMORY_CEILING), used: 0 }
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
    fn memory_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired, 1)
    }

    fn table_growing(&mut self, current: usize, desired: usize, _maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.grow(current, desired, TABLE_ELEMENT_BYTES)
    }
}
