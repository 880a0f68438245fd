//! The process that sends what is scheduled, when it is due.
//!
//! What is due follows from the record and the wall clock alone. The instant is used up by the entry with which its message
//! is accepted, so that no restart fires it again.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use ephor_base::Timestamp;
use ephor_chain::Scheduled;
use ephor_kernel::{Body, Kernel, Life, NotAccepted, Process, Seen};
use ephor_models::{ModelChoice, parse_model, script_model};

use super::boot::Node;
use crate::{
    host,
    timetable::{self, Due},
};

/// How long it sleeps at most: a wall clock that was set forward is noticed after this.
const LOOK: Duration = Duration::from_secs(15);

/// The longest a scheduled turn may take; its own limits end it earlier.
const TURN: Duration = Duration::from_secs(3600);

/// Looks for what is due.
pub(crate) struct Schedules {
    node: Weak<Node>,
    /// What is being sent: it is not sent a second time while its message comes to the disk.
    sending: Arc<Mutex<BTreeSet<String>>>,
}

impl Schedules {
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        Self { node: Arc::downgrade(node), sending: Arc::default() }
    }
}

impl Body for Schedules {
    fn run(&self, process: Process) -> Life {
        let (node, sending) = (self.node.clone(), self.sending.clone());
        Life::new(async move {
            loop {
                let Some(node) = node.upgrade() else { return Ok(()) };
                let rest = look(&node, &sending).await;
                let changed = node.schedules_changed.clone();
                drop(node);
                tokio::select! {
                    () = process.stopping() => return Ok(()),
                    () = changed.notified() => {}
                    () = tokio::time::sleep(rest) => {}
                }
            }
        })
    }
}

/// Does what is due; says how long there is nothing to do.
async fn look(node: &Arc<Node>, sending: &Arc<Mutex<BTreeSet<String>>>) -> Duration {
    let (now, mut rest) = (host::now(), LOOK);
    for schedule in node.kernel.schedules() {
        let Ok((table, last)) = timetable::of(&schedule) else {
            tracing::error!(name = schedule.name, "a schedule cannot be read by this version of Ephor");
            continue;
        };
        match table.due(last, schedule.missed, now) {
            Due::At(next) => rest = rest.min(next.since(now)),
            Due::Fires(at) => send(node, sending, schedule, at).await,
            Due::Skips(at) => {
                if let Err(error) = node.kernel.skip(&schedule.name, at).await {
                    tracing::warn!(name = schedule.name, %error, "a missed schedule could not be passed over");
                }
            }
            Due::Never => {}
        }
    }
    rest
}

/// Starts a process that sends the message and waits for its answer.
async fn send(node: &Arc<Node>, sending: &Arc<Mutex<BTreeSet<String>>>, schedule: Scheduled, at: Timestamp) {
    if !sending.lock().unwrap_or_else(PoisonError::into_inner).insert(schedule.name.clone()) {
        return;
    }
    let name = format!("schedule-{}-{}", schedule.name, at.0);
    let busy = Busy { name: schedule.name.clone(), sending: sending.clone() };
    let errand = Errand { node: Arc::downgrade(node), schedule, at, busy: Mutex::new(Some(busy)) };
    if let Err(error) = node.kernel.start_task(&name, Arc::new(errand)).await {
        tracing::warn!(name, %error, "a schedule could not be sent, and is tried again");
    }
}

/// One message on its way.
struct Errand {
    node: Weak<Node>,
    schedule: Scheduled,
    at: Timestamp,
    busy: Mutex<Option<Busy>>,
}

/// That a schedule is being sent; over when this is dropped.
struct Busy {
    name: String,
    sending: Arc<Mutex<BTreeSet<String>>>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.sending.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

impl Body for Errand {
    fn run(&self, process: Process) -> Life {
        let (node, schedule, at) = (self.node.upgrade(), self.schedule.clone(), self.at);
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner).take();
        Life::new(async move {
            let (Some(node), Some(busy)) = (node, busy) else { return Ok(()) };
            tokio::select! {
                sent = carry(&node, &schedule, at, busy) => sent.map_err(|error| format!("{error:#}")),
                () = process.stopping() => Ok(()),
            }
        })
    }
}

/// A session that is open for one message.
struct Open {
    kernel: Kernel,
    session: ephor_base::SessionId,
}

async fn carry(node: &Node, schedule: &Scheduled, at: Timestamp, busy: Busy) -> anyhow::Result<()> {
    let (operator, errand) = node.kernel.errand(schedule).await?;
    let model = match errand.model.as_deref().map(parse_model).transpose()? {
        Some(ModelChoice::Ready(model)) => Some(model),
        Some(ModelChoice::Script(file)) => Some(script_model(&file, &std::fs::read_to_string(&file)?)?),
        None => None,
    };
    let (model, _) = node.model(model)?;
    let session = node.open_session(operator, errand.workspace.as_ref(), model).await?;
    let open = Open { kernel: node.kernel.clone(), session };
    let mut seen = node.kernel.watch(session, false);
    let fired = node.kernel.fire(session, errand.parts, &schedule.name, at).await;
    drop(busy);
    match fired {
        Ok(message) => {
            tracing::info!(name = schedule.name, %message, due = %at, "a schedule sent its message");
            let over = async {
                while let Some(seen) = seen.recv().await {
                    if matches!(seen, Seen::TurnEnded { .. }) {
                        return;
                    }
                }
            };
            let _late: Result<(), _> = tokio::time::timeout(TURN, over).await;
        }
        // Somebody was quicker, or it was taken off meanwhile.
        Err(NotAccepted::Again(_)) => {}
        Err(error) => {
            open.close().await;
            return Err(error.into());
        }
    }
    open.close().await;
    Ok(())
}

impl Open {
    async fn close(self) {
        self.kernel.close_session(self.session).await;
    }
}
