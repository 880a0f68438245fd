//! What a driver is told before the verdict has no content in it.
use ephor_base::{Budget, Task};
use ephor_kernel::{Driver, Estimate};

struct Curious;

impl Driver for Curious {
    fn estimate(&self, of: &Estimate<'_>) -> Budget {
        if let Estimate::Model { messages, .. } = of {
            drop(messages);
        }
        Budget::ZERO
    }
    fn run(&self, _: ephor_kernel::Permit, _: ephor_kernel::CallContext) -> ephor_kernel::Running {
        ephor_kernel::Running::new(std::future::pending())
    }
}

struct Old;

impl Driver for Old {
    fn estimate(&self, task: &Task) -> Budget {
        let _ = task;
        Budget::ZERO
    }
    fn run(&self, _: ephor_kernel::Permit, _: ephor_kernel::CallContext) -> ephor_kernel::Running {
        ephor_kernel::Running::new(std::future::pending())
    }
}

fn main() {}
