//! Every live process by PID.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicU64, Ordering},
    },
};

use ephor_base::Pid;

use super::{Host, row::Row};

/// Into how many parts it is cut, so that threads seldom meet at a lock.
const PARTS: u64 = 16;

/// One part of the table.
struct Part<H: Host>(HashMap<u64, Arc<Row<H>>, BuildHasherDefault<Spread>>);

/// The rows of all live processes.
pub(super) struct Table<H: Host> {
    parts: Vec<Mutex<Part<H>>>,
    next: AtomicU64,
}

impl<H: Host> Table<H> {
    pub(super) fn new(first: Pid) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::new(Part(HashMap::default()))).collect(),
            next: AtomicU64::new(first.0),
        }
    }

    /// A PID that no process ever had.
    pub(super) fn fresh(&self) -> Pid {
        Pid(self.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(super) fn insert(&self, pid: Pid, row: Arc<Row<H>>) {
        if let Some(mut part) = self.part(pid) {
            part.0.insert(pid.0, row);
        }
    }

    pub(super) fn remove(&self, pid: Pid) {
        if let Some(mut part) = self.part(pid) {
            part.0.remove(&pid.0);
        }
    }

    pub(super) fn row(&self, pid: Pid) -> Option<Arc<Row<H>>> {
        self.part(pid)?.0.get(&pid.0).cloned()
    }

    /// All of them, by PID.
    pub(super) fn all(&self) -> Vec<(Pid, Arc<Row<H>>)> {
        let mut all = Vec::new();
        for part in &self.parts {
            let part = crate::lock::enter(part);
            all.extend(part.0.iter().map(|(pid, row)| (Pid(*pid), row.clone())));
        }
        all.sort_unstable_by_key(|(pid, _)| *pid);
        all
    }

    fn part(&self, pid: Pid) -> Option<MutexGuard<'_, Part<H>>> {
        let part = self.parts.get(usize::try_from(pid.0 % PARTS).ok()?)?;
        Some(crate::lock::enter(part))
    }
}

/// Hashes a PID. PIDs are counted out by the kernel, so no process can choose ones that collide.
#[derive(Default)]
struct Spread(u64);

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }
    fn write_u64(&mut self, number: u64) {
        // Fibonacci hashing: the multiplier is 2^64 over the golden ratio.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}
