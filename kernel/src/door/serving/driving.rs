//! A driver at work.
//!
//! It runs in a task of its own. So it is cut off at its deadline, and at its cancellation, also where it does not yield: the call ends
//! without it. What it may use of the kernel is closed then; its thread counts as lost until it comes back.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use ephor_base::{Budget, Confidentiality, Failure, FailureKind, Outcome};
use ephor_record::HoldKind;
use ephor_runtime as runtime;
use ephor_runtime::Watch;
use futures_util::{FutureExt, future};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::Serving;
use crate::{
    door::{Permit, asked::Asked},
    driver::{CallContext, Driver, DriverResult, PreviewItem},
};

/// How long a cancelled driver may take to end by itself, so that it can say what it used; and a dropped one, to be gone.
pub(super) const GRACE: Duration = Duration::from_millis(500);
/// The same, where an operator stopped it: the operator wants quiet within a tenth of a second.
const STOP_GRACE: Duration = Duration::from_millis(50);

/// How a driver ended; an error, if it panicked.
type Ended = Result<DriverResult, Box<dyn Any + Send>>;

/// A driver that runs until it ends, or this is dropped.
pub(super) struct Driven {
    /// Nothing, if it was dropped before its end.
    end: oneshot::Receiver<Option<Ended>>,
    alive: DropGuard,
}

impl Driven {
    pub(super) fn start(watch: &Arc<Watch>, driver: Arc<dyn Driver>, permit: Permit, context: CallContext) -> Self {
        let (sender, end) = oneshot::channel();
        let alive = CancellationToken::new();
        let abandoned = alive.clone();
        runtime::spawn_watched(watch.clone(), async move {
            let work = async move { driver.run(permit, context).into_inner().await };
            let mut work = Box::pin(AssertUnwindSafe(work).catch_unwind());
            let end = tokio::select! {
                biased;
                () = abandoned.cancelled() => None,
                end = &mut work => Some(end),
            };
            // A driver may panic also while it is dropped.
            let end = match std::panic::catch_unwind(AssertUnwindSafe(|| drop(work))) {
                Ok(()) => end,
                Err(panic) => Some(Err(panic)),
            };
            // A caller that does not wait any more has given it up.
            let _given_up: Result<(), _> = sender.send(end);
        });
        Self { end, alive: alive.drop_guard() }
    }

    /// Drops the driver. What it panicked with meanwhile, if it did; nothing, if it is gone, or does not yield.
    async fn cut_off(self, serving: &Serving) -> Option<Ended> {
        drop(self.alive);
        serving.door.timers().within(GRACE, self.end).await?.ok().flatten().filter(Result::is_err)
    }
}

impl Serving {
    /// Runs the driver to its end, its deadline or its cancellation, whichever is first; not at all, if nothing is `left` of its time.
    pub(super) async fn drive(
        &self,
        start: impl FnOnce() -> Driven,
        asked: &Asked,
        (left, reserved): (Option<Duration>, Budget),
        (items, shown): (mpsc::Receiver<PreviewItem>, Option<Confidentiality>),
    ) -> (Outcome, Budget) {
        if self.cancel.is_cancelled() || self.caller.fence.is_cancelled() {
            return (Outcome::Cancelled, Budget::ZERO);
        }
        let Some(left) = left else {
            return (Outcome::Failed(overdue(self.time_limit(&asked.what))), Budget::ZERO);
        };
        let over = CancellationToken::new();
        let ends = async {
            let _over = over.clone().drop_guard();
            self.ends(start(), asked, left, reserved).await
        };
        let (end, ()) = future::join(ends, self.forward(items, &over, asked.call, shown)).await;
        end
    }

    async fn ends(&self, mut driven: Driven, asked: &Asked, left: Duration, reserved: Budget) -> (Outcome, Budget) {
        // A driver that was cancelled may end at once, and call that what it likes: it was cancelled.
        tokio::select! {
            biased;
            // Also where its process is gone the driver is told: it may say what it did and used.
            () = self.stopped() => self.cancel.cancel(),
            () = self.seat_stopped(asked.kind) => self.cancel.cancel(),
            end = &mut driven.end => {
                let end = end.ok().flatten().map(|end| outcome_of(end, reserved));
                return end.unwrap_or((Outcome::Cancelled, reserved));
            }
            () = self.door.timers().sleep(left) => {
                let panicked = driven.cut_off(self).await.map(|end| outcome_of(end, reserved));
                return panicked.unwrap_or((Outcome::Failed(overdue(self.time_limit(&asked.what))), reserved));
            }
        }
        // What it used is known only if it ends by itself.
        let stopped = self.door.holds.on(&self.caller.seat) == Some(HoldKind::Stopped);
        let grace = if stopped { STOP_GRACE } else { GRACE };
        match self.door.timers().within(grace, &mut driven.end).await {
            Some(Ok(Some(Ok(DriverResult { end: Ok(product), used })))) => (Outcome::Done(product), used),
            Some(Ok(Some(Ok(DriverResult { end: Err(_), used })))) => (Outcome::Cancelled, used),
            Some(_) => (Outcome::Cancelled, reserved),
            None => {
                let panicked = driven.cut_off(self).await.map(|end| outcome_of(end, reserved));
                panicked.unwrap_or((Outcome::Cancelled, reserved))
            }
        }
    }
}

fn outcome_of(end: Ended, reserved: Budget) -> (Outcome, Budget) {
    match end {
        Ok(DriverResult { end: Ok(product), used }) => (Outcome::Done(product), used),
        Ok(DriverResult { end: Err(failure), used }) => (Outcome::Failed(failure), used),
        Err(panic) => {
            let message = format!("the driver panicked: {}", runtime::panic_message(&*panic));
            (Outcome::Failed(Failure::new(FailureKind::Crashed, message)), reserved)
        }
    }
}

fn overdue(limit: Duration) -> Failure {
    Failure::new(FailureKind::Deadline, format!("it took longer than its {} s and was stopped", limit.as_secs()))
}
