//! The process that sends what is scheduled, when it is due.
//!
//! What is due follows from the record and the wall clock alone. The instant is used up by the entry with which its message
//! is accepted, so that no restart fires it again. Whatever can keep a message from being sent is looked at before anything
//! begins: what cannot run writes nothing, and says why in the list of schedules.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use ephor_base::{ModelRef, OperatorId, Seat, Seq, Timestamp};
use ephor_kernel::{Body, Kernel, Life, NotAccepted, Process, Seen};
use ephor_models::{ModelChoice, parse_model, script_model};
use ephor_record::{Appointment, Errand, HoldKind, Role, Scheduled};
use ephor_sandbox::OpenWorkspace;
use futures_util::future::join_all;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::boot::Node;
use crate::{
    files, host,
    timetable::{self, Due},
};

/// How long it sleeps at most: a wall clock that was set forward is noticed after this, and a folder that is back.
const LOOK: Duration = Duration::from_secs(15);

/// The longest a scheduled turn may take; its own limits end it earlier.
const TURN: Duration = Duration::from_secs(3600);

/// How long a folder or a script may take to be looked at. One on a dead mount never answers.
const ANSWER: Duration = Duration::from_secs(2);

/// The longest wait between two tries of what failed although everything looked well.
const LONGEST: Duration = Duration::from_secs(3600);

/// Why a schedule is withheld.
pub(super) const WITHHELD: &str =
    "the operator who made it may not send anything any more; somebody who may has to make it again";

/// How many scheduled turns run at once. The others wait, and none of them lapses for that.
const LANES: usize = 64;

/// What a node knows of its schedules that the record does not say.
pub(crate) struct Scheduling {
    /// Told when a schedule was made or ended, or agents may go on.
    pub(super) changed: Notify,
    /// Held while one is ended or fires, so that none fires that has just been ended.
    pub(super) turn: tokio::sync::Mutex<()>,
    /// By where the schedule was made: one of the same name that follows it is another.
    state: Mutex<State>,
    /// What is ready to be sent, oldest first, once there is a lane for it.
    ready: Mutex<VecDeque<Ready>>,
    lanes: Arc<Semaphore>,
}

impl Default for Scheduling {
    fn default() -> Self {
        let lanes = Arc::new(Semaphore::new(LANES));
        Self {
            changed: Notify::new(),
            turn: tokio::sync::Mutex::default(),
            state: Mutex::default(),
            ready: Mutex::default(),
            lanes,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// What is being sent: it is not sent a second time while its message comes to the disk.
    sending: BTreeSet<Seq>,
    troubles: BTreeMap<Seq, Trouble>,
    /// When each was seen first by this node.
    seen: BTreeMap<Seq, Timestamp>,
}

/// What keeps a schedule from being sent.
#[derive(Clone, Debug)]
pub(super) struct Trouble {
    pub(super) why: String,
    pub(super) since: Timestamp,
    /// How often it failed although everything looked well.
    failures: u32,
    /// It is not tried before.
    rests_until: Option<Instant>,
}

impl Scheduling {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When this node saw a schedule first, by the wall clock: never later than now.
    pub(super) fn seen(&self, schedule: &Scheduled, now: Timestamp) -> Timestamp {
        let mut state = self.state();
        let seen = state.seen.entry(schedule.made).or_insert(now);
        // A clock that was set back since is believed as well.
        *seen = now.min(*seen);
        *seen
    }

    pub(super) fn trouble(&self, schedule: &Scheduled) -> Option<Trouble> {
        self.state().troubles.get(&schedule.made).cloned()
    }

    /// Forgets those that do not stand any more.
    fn keep(&self, schedules: &[Scheduled]) {
        let mut state = self.state();
        let stands = |made: &Seq| schedules.iter().any(|schedule| schedule.made == *made);
        state.troubles.retain(|made, _| stands(made));
        state.seen.retain(|made, _| stands(made));
    }

    /// Begins to send one, unless it is being sent or has to rest.
    fn begin(self: &Arc<Self>, schedule: &Scheduled) -> Option<Busy> {
        let mut state = self.state();
        let until = state.troubles.get(&schedule.made).and_then(|trouble| trouble.rests_until);
        let rests = until.is_some_and(|until| until > Instant::now());
        let begins = !rests && state.sending.insert(schedule.made);
        begins.then(|| Busy { made: schedule.made, scheduling: self.clone() })
    }

    fn well(&self, schedule: &Scheduled) {
        self.state().troubles.remove(&schedule.made);
    }

    /// It cannot be sent, and nothing was begun.
    fn blocked(&self, schedule: &Scheduled, why: String) {
        self.fail(schedule, why, false);
    }

    /// It was begun and failed: each time it rests twice as long, since each time leaves traces on the record.
    fn failed(&self, schedule: &Scheduled, why: String) {
        self.fail(schedule, why, true);
    }

    fn fail(&self, schedule: &Scheduled, why: String, rests: bool) {
        let mut state = self.state();
        let new = || Trouble { why: String::new(), since: host::now(), failures: 0, rests_until: None };
        let trouble = state.troubles.entry(schedule.made).or_insert_with(new);
        if trouble.why != why {
            tracing::warn!(name = schedule.name, why, "a schedule cannot be sent, and is looked at again");
            trouble.why = why;
        }
        if rests {
            let longer = 1u32.checked_shl(trouble.failures).unwrap_or(u32::MAX);
            trouble.failures = trouble.failures.saturating_add(1);
            trouble.rests_until = Instant::now().checked_add(LOOK.saturating_mul(longer).min(LONGEST));
        }
    }
}

/// That a schedule is being sent; over when this is dropped.
struct Busy {
    made: Seq,
    scheduling: Arc<Scheduling>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.scheduling.state().sending.remove(&self.made);
    }
}

/// Looks for what is due.
pub(crate) struct Schedules(Weak<Node>);

impl Schedules {
    pub(crate) fn new(node: &Arc<Node>) -> Self {
        Self(Arc::downgrade(node))
    }
}

impl Body for Schedules {
    fn run(&self, process: Process) -> Life {
        let node = self.0.clone();
        Life::new(async move {
            loop {
                let Some(node) = node.upgrade() else { return Ok(()) };
                let rest = tokio::select! {
                    () = process.stopping() => return Ok(()),
                    rest = look(&node) => rest,
                };
                let scheduling = node.scheduling.clone();
                drop(node);
                tokio::select! {
                    () = process.stopping() => return Ok(()),
                    () = scheduling.changed.notified() => {}
                    () = process.sleep(rest) => {}
                }
            }
        })
    }
}

/// What is to be done for a schedule now.
struct Duty {
    schedule: Scheduled,
    due: Due,
    busy: Busy,
}

/// Does what is due; says how long there is nothing to do.
async fn look(node: &Arc<Node>) -> Duration {
    let (now, mut rest, schedules) = (host::now(), LOOK, node.kernel.schedules());
    let scheduling = &node.scheduling;
    scheduling.keep(&schedules);
    let mut duties = Vec::new();
    for schedule in schedules {
        match timetable::of(&schedule, scheduling.seen(&schedule, now)) {
            Ok((table, last)) => match table.due(last, schedule.missed, now) {
                Due::At(next) => rest = rest.min(next.since(now)),
                due @ (Due::Fires(_) | Due::Skips(_)) => {
                    duties.extend(scheduling.begin(&schedule).map(|busy| Duty { schedule, due, busy }));
                }
                Due::Never => {}
            },
            Err(error) => scheduling.blocked(&schedule, error.to_string()),
        }
    }
    for ready in prepare(node, duties).await {
        act(node, ready).await;
    }
    send_ready(node).await;
    rest
}

/// Passes over, or lines up to fire.
async fn act(node: &Arc<Node>, ready: Ready) {
    let scheduling = &node.scheduling;
    let Due::Skips(at) = ready.due else {
        return scheduling.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(ready);
    };
    match node.kernel.skip(&ready.schedule.name, at).await {
        Ok(_) => scheduling.well(&ready.schedule),
        Err(error) => scheduling.failed(&ready.schedule, error.to_string()),
    }
}

/// Starts as many of those that are ready as there are lanes.
async fn send_ready(node: &Arc<Node>) {
    let scheduling = &node.scheduling;
    while let Ok(lane) = scheduling.lanes.clone().try_acquire_owned() {
        let next = scheduling.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(ready) = next else { return };
        let schedule = ready.schedule.clone();
        if let Err(error) = send(node, ready, lane).await {
            scheduling.failed(&schedule, error);
        }
    }
}

/// A message that can be sent, or passed over.
struct Ready {
    schedule: Scheduled,
    due: Due,
    operator: OperatorId,
    errand: Errand,
    model: ModelRef,
    agent: Appointment,
    busy: Busy,
}

/// One whose folder was not looked at yet.
struct Known {
    duty: Duty,
    operator: OperatorId,
    errand: Errand,
    agent: Appointment,
}

/// Looks at everything that can keep messages from being sent. Nothing is recorded. A folder is looked at once for all that is due
/// in it, and beside the others, so that one on a dead mount costs one thread and delays nobody else.
async fn prepare(node: &Arc<Node>, duties: Vec<Duty>) -> Vec<Ready> {
    let mut folders: BTreeMap<String, Vec<Known>> = BTreeMap::new();
    for duty in duties {
        match know(node, &duty.schedule).await {
            Ok((operator, errand, agent)) => {
                let folder = errand.workspace.clone();
                folders.entry(folder).or_default().push(Known { duty, operator, errand, agent });
            }
            Err(error) => node.scheduling.blocked(&duty.schedule, format!("{error:#}")),
        }
    }
    let looks = folders.into_values().map(|known| in_folder(node, known));
    join_all(looks).await.into_iter().flatten().collect()
}

/// What the record and the configuration say of a schedule.
async fn know(node: &Arc<Node>, schedule: &Scheduled) -> anyhow::Result<(OperatorId, Errand, Appointment)> {
    // Any agent to come: what holds all of them holds this one.
    let seat = Seat::root("node").child("agents").child("schedule");
    match node.kernel.held(&seat) {
        Some(HoldKind::Stopped) => bail!("agents are stopped; `ephor resume --all` lets them begin"),
        Some(_) => bail!("agents are suspended; `ephor resume --all` lets them go on"),
        None => {}
    }
    let (operator, errand) = node.kernel.errand(schedule).await?;
    check_maker(node, schedule, operator).await?;
    let agent = node.agent(errand.agent.as_deref())?;
    Ok((operator, errand, agent))
}

/// Looks at the folder of schedules, and at their scripts.
async fn in_folder(node: &Arc<Node>, all: Vec<Known>) -> Vec<Ready> {
    let schedules: Vec<Scheduled> = all.iter().map(|known| known.duty.schedule.clone()).collect();
    let looker = node.clone();
    // They stay busy for as long as the folder does not answer, so that no more than one thread waits for it.
    let work = tokio::task::spawn_blocking(move || {
        let look = |known: Known| {
            let Known { duty: Duty { schedule, due, busy }, operator, errand, agent } = known;
            match model(&looker, &errand) {
                Ok(model) => Some(Ready { schedule, due, operator, errand, model, agent, busy }),
                Err(error) => {
                    looker.scheduling.blocked(&schedule, format!("{error:#}"));
                    None
                }
            }
        };
        all.into_iter().filter_map(look).collect::<Vec<_>>()
    });
    let why = match tokio::time::timeout(ANSWER, work).await {
        Ok(Ok(ready)) => return ready,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "its folder or its script does not answer".to_owned(),
    };
    schedules.iter().for_each(|schedule| node.scheduling.blocked(schedule, why.clone()));
    Vec::new()
}

/// The operator who made a schedule answers for what it sends, while they may send anything. Says so on the record, once.
async fn check_maker(node: &Node, schedule: &Scheduled, maker: OperatorId) -> anyhow::Result<()> {
    if may_send(node, maker) {
        return Ok(());
    }
    if !schedule.withheld {
        let seq = node.kernel.withhold(maker, &schedule.name).await?;
        tracing::warn!(name = schedule.name, %maker, %seq, "a schedule is withheld: whoever made it may not send any more");
    }
    bail!(WITHHELD)
}

/// What the record says of an operator at this moment.
fn may_send(node: &Node, operator: OperatorId) -> bool {
    node.kernel.role(operator) >= Some(Role::Operator)
}

/// The model of an errand whose folder is there. Blocks.
fn model(node: &Node, errand: &Errand) -> anyhow::Result<ModelRef> {
    let folder = OpenWorkspace::open(&OpenWorkspace::resolve(errand.workspace.as_ref())?)?;
    folder.keep_apart_from(node.home.path()).context("its folder lies in Ephor's home, or around it")?;
    let asked = match errand.model.as_deref().map(parse_model).transpose()? {
        Some(ModelChoice::Ready(model)) => Some(model),
        Some(ModelChoice::Script(file)) => Some(script(&file)?),
        None => None,
    };
    Ok(node.model(asked)?.0)
}

/// Reads a script.
fn script(file: &Path) -> anyhow::Result<ModelRef> {
    Ok(script_model(file, &files::named(file, files::MOST_SCRIPT).context("the script")?)?)
}

/// Starts a process that sends the message and waits for its answer.
async fn send(node: &Arc<Node>, ready: Ready, lane: OwnedSemaphorePermit) -> Result<(), String> {
    let Due::Fires(at) = ready.due else { return Ok(()) };
    let name = format!("schedule-{}-{}", ready.schedule.name, at.0);
    let (schedule, carried) = (ready.schedule.clone(), Mutex::new(Some((ready, lane))));
    let carrier = Carrier { node: Arc::downgrade(node), schedule, at, carried };
    node.kernel.start_task(&name, Arc::new(carrier)).await.map(drop).map_err(|error| error.to_string())
}

/// One message on its way.
struct Carrier {
    node: Weak<Node>,
    schedule: Scheduled,
    at: Timestamp,
    carried: Mutex<Option<(Ready, OwnedSemaphorePermit)>>,
}

impl Body for Carrier {
    fn run(&self, process: Process) -> Life {
        let (node, schedule, at) = (self.node.upgrade(), self.schedule.clone(), self.at);
        let carried = self.carried.lock().unwrap_or_else(PoisonError::into_inner).take();
        Life::new(async move {
            let (Some(node), Some((ready, lane))) = (node, carried) else { return Ok(()) };
            let sent = tokio::select! {
                sent = carry(&node, &schedule, ready, at) => sent.map_err(|error| format!("{error:#}")),
                () = process.stopping() => Ok(()),
            };
            if let Err(error) = &sent {
                node.scheduling.failed(&schedule, error.clone());
            }
            drop(lane);
            node.scheduling.changed.notify_one();
            sent
        })
    }
}

/// A session that is open for one message.
struct Open {
    kernel: Kernel,
    session: ephor_base::SessionId,
}

async fn carry(node: &Node, schedule: &Scheduled, ready: Ready, at: Timestamp) -> anyhow::Result<()> {
    let Ready { operator, errand, model, agent, busy, .. } = ready;
    let session = node.open_session(operator, errand.workspace.as_ref(), model, agent).await?;
    let open = Open { kernel: node.kernel.clone(), session };
    let mut seen = node.kernel.watch(session, false);
    let fired = fire(node, schedule, session, (operator, errand), at).await;
    if fired.is_ok() {
        node.scheduling.well(schedule);
    }
    drop(busy);
    match fired {
        Ok(()) => {
            let over = async {
                while let Some(seen) = seen.recv().await {
                    if matches!(seen, Seen::TurnEnded { .. }) {
                        return;
                    }
                }
            };
            let _late: Result<(), _> = tokio::time::timeout(TURN, over).await;
        }
        // Another was quicker, or it was taken off meanwhile.
        Err(NotAccepted::Again(_)) => {}
        Err(error) => {
            open.close().await;
            return Err(error.into());
        }
    }
    open.close().await;
    Ok(())
}

/// Sends the message, if the schedule is still the one that was due: another may have its name by now.
async fn fire(
    node: &Node,
    schedule: &Scheduled,
    session: ephor_base::SessionId,
    (operator, errand): (OperatorId, Errand),
    at: Timestamp,
) -> Result<(), NotAccepted> {
    let _turn = node.scheduling.turn.lock().await;
    if !node.kernel.schedules().iter().any(|one| one.made == schedule.made) {
        return Err(NotAccepted::Again("the schedule was ended"));
    }
    // The operator may have been dismissed while its session was opened.
    if !may_send(node, operator) {
        return Err(NotAccepted::Again("whoever made the schedule may not send any more"));
    }
    let message = node.kernel.fire(session, errand.parts, errand.scope, &schedule.name, at).await?;
    tracing::info!(name = schedule.name, %message, due = %at, "a schedule sent its message");
    Ok(())
}

impl Open {
    async fn close(self) {
        self.kernel.close_session(self.session).await;
    }
}
