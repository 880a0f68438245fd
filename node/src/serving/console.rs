//! The channel of the command line: a reply is shown to the clients that watch the session.

use std::sync::Arc;

use ephor_base::{Budget, Failure, FailureKind, Product, Task};
use ephor_kernel::{CallContext, Driver, DriverResult, Estimate, Permit, Running, Seen, Watchers};

/// Delivers replies to the watchers of their sessions.
pub(crate) struct Console(pub(crate) Arc<Watchers>);

impl Driver for Console {
    fn estimate(&self, _: &Estimate<'_>) -> Budget {
        Budget::ZERO
    }

    fn run(&self, permit: Permit, _: CallContext) -> Running {
        let watchers = self.0.clone();
        Running::new(async move {
            let Task::Reply(task) = permit.task() else {
                let failure = Failure::new(FailureKind::Rejected, "the console delivers replies and nothing else");
                return DriverResult::failed(failure, Budget::ZERO);
            };
            if watchers.show(permit.session(), Seen::Reply(Box::new(task.reply.clone()))) {
                DriverResult::done(Product::Delivered, Budget::ZERO)
            } else {
                let failure = Failure::new(FailureKind::Undelivered, "nobody watches the session any more");
                DriverResult::failed(failure, Budget::ZERO)
            }
        })
    }
}
