//! The door as a running call sees it: nested calls and leases.

use std::sync::{Arc, Mutex};

use ephor_base::{Action, Arguments, Outcome, Reach, Secret, ToolAction, ToolName};
use ephor_record::{Fact, Record, Subject};
use ephor_runtime::Later;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::{CallState, Caller, Door, Refusal, serving::Serving};
use crate::driver::{InnerDoor, NoSecret};

/// The door for one run of one driver. It closes with the run, so that a driver that keeps it has nothing.
pub(crate) struct Inner {
    door: Arc<Door>,
    caller: Caller,
    cancel: CancellationToken,
    states: mpsc::Sender<CallState>,
    subject: Subject,
    reach: Reach,
    /// Each nested call holds a clone while it lasts; none is left once the run is over.
    open: Mutex<Option<mpsc::Sender<()>>>,
    calls: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Inner {
    pub(super) fn new(
        door: Arc<Door>,
        caller: Caller,
        cancel: CancellationToken,
        states: mpsc::Sender<CallState>,
        (subject, reach): (Subject, Reach),
    ) -> Self {
        let (open, calls) = mpsc::channel(1);
        let (open, calls) = (Mutex::new(Some(open)), Mutex::new(Some(calls)));
        Self { door, caller, cancel, states, subject, reach, open, calls }
    }

    /// Ends what the driver left running, and waits for its outcomes.
    pub(super) async fn close(&self) {
        lock(&self.open).take();
        self.cancel.cancel();
        let calls = lock(&self.calls).take();
        if let Some(mut calls) = calls {
            // Nothing is ever sent: it ends when the last nested call has.
            let _ended: Option<()> = calls.recv().await;
        }
    }

    /// Proof that the run is not over; `close` waits until it is dropped.
    fn alive(&self) -> Option<mpsc::Sender<()>> {
        lock(&self.open).clone()
    }
}

impl InnerDoor for Inner {
    fn nested(&self, name: ToolName, arguments: Arguments) -> Later<Result<Outcome, Refusal>> {
        let Some(alive) = self.alive() else { return Later::new(async { Err(Refusal::Fenced) }) };
        let cancel = self.cancel.child_token();
        let (door, caller, states) = (self.door.clone(), self.caller.clone(), self.states.clone());
        let serving = Serving::new(door, caller, cancel.clone(), states, self.subject.call);
        let (sender, end) = oneshot::channel();
        // A task of its own, so that a driver that is dropped does not take the outcome with it.
        ephor_runtime::spawn(async move {
            let action = Action::Tool(ToolAction::Direct { name, arguments });
            let result = serving.contained(action).await.map(|answered| answered.outcome);
            // A driver that left has no use for the answer; it is on the record.
            let _left: Result<(), _> = sender.send(result);
            drop(alive);
        });
        let cancelled_with_the_future = cancel.drop_guard();
        Later::new(async move {
            let _held = cancelled_with_the_future;
            end.await.unwrap_or(Err(Refusal::Fenced))
        })
    }

    fn lease(&self, name: &str) -> Later<Result<Secret<String>, NoSecret>> {
        let (door, subject, name) = (self.door.clone(), self.subject.clone(), name.to_owned());
        let (alive, is_registered) = (self.alive(), self.reach.secrets.contains(&name));
        Later::new(async move {
            let _alive = alive.ok_or_else(|| NoSecret::Over(name.clone()))?;
            if !is_registered {
                tracing::warn!(secret = %name, ?subject, "a driver wanted a secret that its registration does not name");
                return Err(NoSecret::NotRegistered(name));
            }
            let secret = door.parts.secrets.secret(&name).ok_or_else(|| NoSecret::Missing(name.clone()))?;
            let record = Record { subject, fact: Fact::Lease { secret: name.clone() }, content: None };
            // What is not on the record did not happen: no record, no secret.
            door.log().append(record).await.map_err(|_| NoSecret::Missing(name))?;
            Ok(secret)
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    ephor_runtime::lock::enter(mutex)
}
