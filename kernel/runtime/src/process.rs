//! A process, as its own code sees it.

use std::{future::poll_fn, sync::Arc, task::Poll, time::Duration};

use ephor_base::{ExitReason, Pid, Seat, SessionId};
use tokio::{sync::oneshot, task::coop};
use tokio_util::sync::CancellationToken;

use super::{
    Host, NotSent, Reply, Shared, Unanswered,
    ask::Letter,
    row::{Row, Taken},
};
use crate::{
    links::{MonitorId, NotNamed, Signal},
    timers::Sleep,
};

/// The handle of one incarnation. Not `Clone`: it is the identity. Once the incarnation is over or fenced, its holder can do
/// nothing with it.
pub struct Process<H: Host> {
    shared: Arc<Shared<H>>,
    row: Arc<Row<H>>,
    pid: Pid,
}

/// What a process is asked to attend to. A stop comes before exits, and those before messages.
pub enum Incoming<H: Host> {
    /// Stop in good order. From now on there is nothing else.
    Stop,
    /// A process it is linked to, or that it monitors, is gone; or another wants it gone, and it traps exits.
    Exit(Signal),
    /// A message.
    Message(H::Message),
    /// A message whose sender waits for an answer.
    Request(H::Message, Reply<H>),
}

/// How many members of a group got what was published.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Published {
    /// They have it.
    pub sent: usize,
    /// Their message ports were full.
    pub full: usize,
}

impl<H: Host> Process<H> {
    pub(super) const fn new(shared: Arc<Shared<H>>, row: Arc<Row<H>>, pid: Pid) -> Self {
        Self { shared, row, pid }
    }

    /// Its PID.
    #[must_use]
    pub const fn pid(&self) -> Pid {
        self.pid
    }

    /// Its seat.
    #[must_use]
    pub fn seat(&self) -> &Seat {
        self.row.seat()
    }

    /// The session it serves.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        self.row.session()
    }

    /// The host that the runtime runs for.
    #[must_use]
    pub fn host(&self) -> &H {
        &self.shared.host
    }

    /// Whether it fills its seat and may act.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.row.is_live(self.pid)
    }

    /// What is cancelled when the incarnation is fenced: killed, replaced or over.
    #[must_use]
    pub fn fence(&self) -> CancellationToken {
        self.row.fence_token(self.pid)
    }

    // The ports.

    /// Waits for the next thing to attend to.
    pub async fn receive(&self) -> Incoming<H> {
        self.take(true).await
    }

    /// Waits for the next thing to attend to that is no message.
    pub async fn attend(&self) -> Incoming<H> {
        self.take(false).await
    }

    async fn take(&self, messages: bool) -> Incoming<H> {
        if self.row.limit().is_some() {
            self.shared.watch.idle(self.pid);
        }
        let taken = poll_fn(|context| {
            // The inbox is not tokio's, and has to keep to its budget by itself.
            let Poll::Ready(turn) = coop::poll_proceed(context) else { return Poll::Pending };
            let taken = self.row.take(self.pid, messages, context);
            if taken.is_ready() {
                turn.made_progress();
            }
            taken
        });
        match taken.await {
            Taken::Stop => Incoming::Stop,
            Taken::Exit(signal) => Incoming::Exit(signal),
            Taken::Letter(letter) => {
                if self.row.limit().is_some() {
                    self.shared.watch.busy(self.pid, self.shared.host.now());
                }
                match letter {
                    Letter::Message(message) => Incoming::Message(message),
                    Letter::Request(message, reply) => Incoming::Request(message, reply),
                }
            }
        }
    }

    /// Resolves when the process is asked to stop, or is over.
    pub async fn stopping(&self) {
        self.row.stop_token(self.pid).cancelled().await;
    }

    /// Waits until `time` has passed by the clock of the host.
    pub fn sleep(&self, time: Duration) -> Sleep {
        self.shared.host.timers().sleep(time)
    }

    /// Sends a message to another process.
    ///
    /// # Errors
    /// [`NotSent`]; the message is dropped.
    pub fn send(&self, to: Pid, message: H::Message) -> Result<(), NotSent> {
        if !self.is_live() {
            return Err(NotSent::Fenced);
        }
        self.shared.send(to, message)
    }

    /// Asks another process, and waits for its answer no longer than `within`. If it dies first, that is known at once.
    ///
    /// # Errors
    /// [`Unanswered`]
    pub async fn request(&self, to: Pid, message: H::Message, within: Duration) -> Result<H::Message, Unanswered> {
        if !self.is_live() {
            return Err(Unanswered::Fenced);
        }
        let row = self.shared.table.row(to).ok_or(Unanswered::Gone(to))?;
        let (back, answer) = oneshot::channel();
        let number = self.shared.number();
        row.ask(to, number, message, back).map_err(|error| match error {
            NotSent::Full(_) => Unanswered::Full(to),
            NotSent::Gone | NotSent::Fenced => Unanswered::Gone(to),
        })?;
        let waits = Waits::begin(&self.row, self.pid, (&row, to), number);
        let answered = self.shared.host.timers().within(within, answer).await;
        drop(waits);
        answered.ok_or(Unanswered::Late(to))?.map_err(|_| Unanswered::Gone(to))
    }

    // Relations. Of a process that is over or fenced they stay as they are.

    /// Links this process with another: when one exits other than normally, so does the other, unless it traps exits.
    pub fn link(&self, other: Pid) {
        self.shared.link(&self.row, self.pid, other);
    }

    /// Takes a link away.
    pub fn unlink(&self, other: Pid) {
        self.shared.unlink(&self.row, self.pid, other);
    }

    /// Has this process told when another exits; at once, if it has already.
    pub fn monitor(&self, other: Pid) -> MonitorId {
        self.shared.monitor(&self.row, self.pid, other)
    }

    /// Takes one of its monitors away; says whether it was still there.
    pub fn demonitor(&self, monitor: MonitorId) -> bool {
        self.shared.demonitor(&self.row, self.pid, monitor)
    }

    /// Whether this process is told of exits instead of dying of them (OTP `trap_exit`).
    pub fn trap_exits(&self, traps: bool) {
        self.shared.trap(&self.row, self.pid, traps);
    }

    /// Wants another process gone (OTP `exit/2`).
    ///
    /// # Errors
    /// [`NotSent`]: it is not there, or it traps exits and too many wait.
    pub fn exit(&self, to: Pid, reason: ExitReason) -> Result<(), NotSent> {
        if !self.is_live() {
            return Err(NotSent::Fenced);
        }
        self.shared.exit(self.pid, to, reason)
    }

    /// Takes a name until it exits.
    ///
    /// # Errors
    /// [`NotNamed`]: a name has one process and a process one name.
    pub fn register(&self, name: &str) -> Result<(), NotNamed> {
        self.shared.register(&self.row, self.pid, name)
    }

    /// Gives its name back; false if it has none such.
    pub fn unregister(&self, name: &str) -> bool {
        self.shared.unregister(&self.row, name, self.pid)
    }

    /// Who has a name.
    #[must_use]
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.shared.whereis(name)
    }

    /// Joins the group of a topic until it exits; false if it is over.
    pub fn join(&self, topic: &str) -> bool {
        self.shared.join(&self.row, self.pid, topic)
    }

    /// Leaves the group of a topic; says whether it was in it.
    pub fn leave(&self, topic: &str) -> bool {
        self.shared.leave_group(&self.row, self.pid, topic)
    }

    /// The members of the group of a topic, by PID.
    #[must_use]
    pub fn members(&self, topic: &str) -> Vec<Pid> {
        self.shared.members(topic)
    }

    /// Sends a message to every other member of the group of a topic.
    pub fn publish(&self, topic: &str, message: &H::Message) -> Published
    where
        H::Message: Clone,
    {
        let mut published = Published::default();
        let others = self.members(topic).into_iter().filter(|pid| *pid != self.pid && self.is_live());
        for pid in others {
            match self.shared.send(pid, message.clone()) {
                Ok(()) => published.sent += 1,
                Err(NotSent::Full(_)) => published.full += 1,
                Err(NotSent::Gone | NotSent::Fenced) => {}
            }
        }
        published
    }
}

/// A wait for an answer. A process that stops waiting is not on the other's list any more.
struct Waits<'a, H: Host> {
    row: &'a Row<H>,
    pid: Pid,
    asked: (&'a Row<H>, Pid),
    number: u64,
}

impl<'a, H: Host> Waits<'a, H> {
    fn begin(row: &'a Row<H>, pid: Pid, asked: (&'a Row<H>, Pid), number: u64) -> Self {
        row.waits_for(pid, Some(asked.1));
        Self { row, pid, asked, number }
    }
}

impl<H: Host> Drop for Waits<'_, H> {
    fn drop(&mut self) {
        self.row.waits_for(self.pid, None);
        drop(self.asked.0.asker(self.asked.1, self.number));
    }
}
