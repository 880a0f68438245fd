//! The task of one process.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use ephor_base::{ExitReason, Pid};
use futures_util::task::waker_ref;
use tokio::sync::oneshot;

use super::{
    Body, Host, Later, Process, Shared,
    asking::Asker,
    duty::Duty,
    host::{News, What},
    orders::{Order, Started, Told},
    panics::contained,
    row::{Look, Row},
    spec::Life,
    watchdog,
};
use crate::supervisor::ChildId;

/// One incarnation, polled to its end. It reports its own exit, so that nothing has to keep hold of the task.
pub(super) struct Living<H: Host> {
    shared: Arc<Shared<H>>,
    row: Arc<Row<H>>,
    pid: Pid,
    stage: Stage<H>,
}

/// How far it is.
pub(super) enum Stage<H: Host> {
    /// It is to run this body.
    New(Arc<dyn Body<H>>),
    /// It is to run this body, and a caller waits for that.
    AskedFor(Box<AskedFor<H>>),
    /// It works.
    Works(Life),
    /// It supervises.
    Supervises(Box<Duty<H>>),
    /// It is over, and the record is told what else there is to tell.
    Ends(Box<Ending<H>>),
    /// It is over.
    Over,
}

/// A caller that waits until a child runs. Whatever becomes of the child, the caller is told that it was started.
pub(super) struct AskedFor<H: Host> {
    body: Arc<dyn Body<H>>,
    waiting: Option<(Asker<H>, Started<H>)>,
}

impl<H: Host> Drop for AskedFor<H> {
    fn drop(&mut self) {
        if let Some((asker, started)) = self.waiting.take() {
            asker.tell(Ok(Told::Started(started)));
        }
    }
}

impl<H: Host> Stage<H> {
    /// The same, for a caller that waits until it runs.
    pub(super) fn asked_for(self, asker: Asker<H>, started: Started<H>) -> Self {
        match self {
            Self::New(body) => Self::AskedFor(Box::new(AskedFor { body, waiting: Some((asker, started)) })),
            stage => {
                asker.tell(Ok(Told::Started(started)));
                stage
            }
        }
    }

    /// The body of one that has not begun. A caller that waits for it is told when this poll ends, or takes long.
    fn body(&mut self) -> Option<Arc<dyn Body<H>>> {
        match std::mem::replace(self, Self::Over) {
            Self::New(body) => Some(body),
            Self::AskedFor(asked) => {
                let body = asked.body.clone();
                watchdog::answer(asked);
                Some(body)
            }
            stage => {
                *self = stage;
                None
            }
        }
    }
}

/// What is left to do after the end.
pub(super) struct Ending<H: Host> {
    telling: Vec<Later<Result<(), String>>>,
    report: Option<Report<H>>,
    observers: Observers,
}

/// Who wants to know of an exit, and what it is. They are told last: a caller that waited for the end may close the record.
pub(super) struct Observers {
    waiting: Vec<oneshot::Sender<ExitReason>>,
    reason: ExitReason,
}

impl Observers {
    pub(super) fn tell(&mut self) {
        for observer in self.waiting.drain(..) {
            // Who does not wait any more needs no answer.
            let _left: Result<(), _> = observer.send(self.reason.clone());
        }
    }
}

/// Where the exit is reported.
struct Report<H: Host> {
    supervisor: Arc<Row<H>>,
    parent: Pid,
    order: Order<H>,
}

impl<H: Host> Living<H> {
    pub(super) fn new(shared: Arc<Shared<H>>, row: Arc<Row<H>>, pid: Pid, stage: Stage<H>) -> Self {
        Self { shared, row, pid, stage }
    }

    /// It is woken through its row: a process that never yields holds nothing back that it has woken.
    fn work(&mut self) -> Poll<ExitReason> {
        let _station = watchdog::enter(&self.shared.watch, self.pid);
        let waker = waker_ref(&self.row);
        let context = &mut Context::from_waker(&waker);
        if let Some(body) = self.stage.body() {
            let process = Process::new(self.shared.clone(), self.row.clone(), self.pid);
            match contained(|| body.run(process)) {
                Ok(life) => self.stage = Stage::Works(life),
                Err(reason) => return Poll::Ready(reason),
            }
        }
        let polled = match &mut self.stage {
            Stage::Works(life) => contained(|| life.0.as_mut().poll(context)),
            Stage::Supervises(duty) => contained(|| duty.poll(context)),
            _ => Ok(Poll::Ready(ExitReason::Normal)),
        };
        polled.unwrap_or_else(Poll::Ready)
    }

    /// Ends the incarnation for this reason, unless it was ended from elsewhere.
    fn end(&mut self, mut reason: ExitReason) -> Stage<H> {
        let mut telling = Vec::new();
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Supervises(mut duty) => telling.extend(duty.abandon()),
            // Before anybody hears of the exit: what the body held is free again by then.
            stage => {
                if let Err(panicked) = contained(|| drop(stage))
                    && !matches!(reason, ExitReason::Killed | ExitReason::Hung)
                {
                    reason = panicked;
                }
            }
        }
        let Some((child, observers)) = self.shared.bury(&self.row, self.pid, &reason) else {
            let observers = Observers { waiting: Vec::new(), reason };
            return Stage::Ends(Box::new(Ending { telling, report: None, observers }));
        };
        let report = self.row.supervisor().map(|(supervisor, parent)| {
            let order = Order::Exited(child, self.pid, reason.clone());
            Report { supervisor: supervisor.clone(), parent, order }
        });
        let mut ending = Ending { telling, report, observers };
        if ending.telling.is_empty() && ending.report(&self.shared, &self.row) {
            ending.observers.tell();
            return Stage::Over;
        }
        if self.row.supervisor().is_none() {
            self.shared.close(&self.row);
            ending.telling.extend(self.shared.tell_exit(&self.row, self.pid, reason));
        }
        Stage::Ends(Box::new(ending))
    }
}

impl<H: Host> Ending<H> {
    /// Reports to the supervisor; of an orphan, the record is told here. True if nothing is left to do.
    fn report(&mut self, shared: &Shared<H>, row: &Arc<Row<H>>) -> bool {
        let Some(Report { supervisor, parent, order }) = self.report.take() else { return false };
        let Err(order) = supervisor.order(Some(parent), order) else { return true };
        if let Order::Exited(_, pid, reason) = order {
            self.telling.extend(shared.tell_exit(row, pid, reason));
        }
        self.telling.is_empty()
    }

    fn poll(&mut self, shared: &Shared<H>, row: &Arc<Row<H>>, context: &mut Context<'_>) -> Poll<()> {
        loop {
            while let Some(telling) = self.telling.first_mut() {
                if let Err(why) = ready!(Pin::new(telling).poll(context)) {
                    tracing::error!(%why, "an exit could not be recorded");
                }
                drop(self.telling.remove(0));
            }
            if self.report.is_none() || self.report(shared, row) {
                self.observers.tell();
                return Poll::Ready(());
            }
        }
    }
}

impl<H: Host> Future for Living<H> {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        loop {
            match &mut this.stage {
                Stage::Over => return Poll::Ready(()),
                Stage::Ends(ending) => {
                    ready!(ending.poll(&this.shared, &this.row, context));
                    this.stage = Stage::Over;
                    return Poll::Ready(());
                }
                Stage::New(_) | Stage::AskedFor(_) | Stage::Works(_) | Stage::Supervises(_) => {}
            }
            let reason = match this.row.look(this.pid, context.waker()) {
                Look::End(reason) => reason,
                Look::Work => match this.work() {
                    Poll::Ready(reason) => reason,
                    // One that hung was replaced meanwhile, and has no business here any more.
                    Poll::Pending if watchdog::was_relieved() => ExitReason::Hung,
                    Poll::Pending => return Poll::Pending,
                },
                Look::Over => ExitReason::Killed,
            };
            this.stage = this.end(reason);
        }
    }
}

impl<H: Host> Drop for Living<H> {
    /// Only where the whole runtime goes does a task go before its end.
    fn drop(&mut self) {
        if matches!(self.stage, Stage::Over | Stage::Ends(_)) {
            return;
        }
        if let Err(reason) = contained(|| drop(std::mem::replace(&mut self.stage, Stage::Over))) {
            tracing::error!(pid = %self.pid, ?reason, "a process panicked while its runtime ended");
        }
        if let Some((_, mut observers)) = self.shared.bury(&self.row, self.pid, &ExitReason::Killed) {
            observers.tell();
        }
    }
}

impl<H: Host> Shared<H> {
    /// Takes an incarnation out of the table and tells the processes that were related to it; gives which child it was, and
    /// who waits for its end. `None` if it is out already.
    pub(super) fn bury(&self, row: &Arc<Row<H>>, pid: Pid, reason: &ExitReason) -> Option<(ChildId, Observers)> {
        let left = row.finish(pid)?;
        self.table.remove(pid);
        if left.was_busy {
            self.watch.idle(pid);
        }
        left.wakes.fire();
        if left.is_related {
            self.unrelate(pid, reason);
        }
        if !left.messages.is_empty() {
            self.host.undelivered(row.seat(), row.session(), left.messages);
        }
        Some((left.child, Observers { waiting: left.observers, reason: reason.clone() }))
    }

    /// Tells of one exit.
    pub(super) fn tell_exit(
        &self,
        row: &Arc<Row<H>>,
        pid: Pid,
        reason: ExitReason,
    ) -> Option<Later<Result<(), String>>> {
        self.tell_all(&mut vec![News { row: row.clone(), pid, what: What::Exited(reason) }])
    }

    /// Tells, where nothing can be done about it if that fails.
    pub(super) fn tell_all(&self, news: &mut Vec<News<H>>) -> Option<Later<Result<(), String>>> {
        if news.is_empty() {
            return None;
        }
        match self.host.tell(news) {
            super::host::Told::Taken => None,
            super::host::Told::Refused(why) => {
                tracing::error!(%why, "an exit could not be recorded");
                None
            }
            super::host::Told::Later(later) => Some(later),
        }
    }
}
