//! What goes into a row and comes out of it: messages, exits, requests, and a supervisor's desk.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use ephor_base::{ExitReason, Pid};
use tokio::sync::oneshot;

use super::{BUSY, CLOSED, DISMISSED, FENCED, Left, RELATED, Row, STOPPING, SUSPENDED, Taken, WAITS};
use crate::{
    Host,
    ask::{Letter, NotSent, Reply},
    links::Signal,
    orders::Order,
    port::{CAPACITY, Port},
    watchdog,
};

impl<H: Host> Row<H> {
    /// Promises a place for one message.
    pub(crate) fn promise(&self, pid: Option<Pid>) -> Result<(), NotSent> {
        let mut inner = self.inner();
        if !inner.is_open(pid, self.keeps_messages) {
            return Err(NotSent::Gone);
        }
        let port = inner.port();
        let waiting = port.messages.len() + port.promised;
        if waiting >= CAPACITY {
            return Err(NotSent::Full(waiting));
        }
        port.promised += 1;
        Ok(())
    }

    /// Gives a promised place back, with the message that goes there. It comes back if no process is there to take it.
    pub(crate) fn put(&self, pid: Option<Pid>, letter: Option<Letter<H>>) -> Option<H::Message> {
        let mut inner = self.inner();
        let is_open = inner.is_open(pid, self.keeps_messages);
        let port = inner.port();
        port.promised = port.promised.saturating_sub(1);
        let letter = letter?;
        if !is_open {
            return Some(letter.into_message());
        }
        port.messages.push_back(letter);
        let wakes = inner.wakes(false);
        drop(inner);
        wakes.fire();
        None
    }

    /// The next thing that waits: kill before stop before exits before messages.
    pub(crate) fn take(&self, pid: Pid, messages: bool, context: &Context<'_>) -> Poll<Taken<H>> {
        let mut inner = self.inner();
        // The messages of an incarnation that is over are the next one's.
        if inner.pid != pid.0 || inner.flags & (FENCED | STOPPING) != 0 {
            return Poll::Ready(Taken::Stop);
        }
        inner.flags &= !(BUSY | WAITS);
        let is_open = messages && inner.flags & SUSPENDED == 0;
        if let Some(port) = &mut inner.port {
            if let Some(signal) = port.exits.pop_front() {
                port.note_taken(&signal);
                return Poll::Ready(Taken::Exit(signal));
            }
            if is_open && let Some(letter) = port.messages.pop_front() {
                inner.flags |= BUSY;
                return Poll::Ready(Taken::Letter(letter));
            }
        }
        inner.flags |= WAITS;
        let is_own = std::ptr::eq(context.waker().data(), std::ptr::from_ref(self).cast());
        inner.wait((!is_own).then(|| context.waker()));
        Poll::Pending
    }

    /// Reserves room for one more exit.
    pub(crate) fn relate(&self, pid: Pid, by: usize) -> bool {
        let mut inner = self.inner();
        if inner.pid != pid.0 {
            return false;
        }
        inner.flags |= RELATED;
        if by > 0 {
            let port = inner.port();
            port.related += by;
            port.exits.reserve(port.related);
        }
        true
    }

    /// Gives reserved room back.
    pub(crate) fn unrelate(&self, pid: Pid) {
        let mut inner = self.inner();
        if inner.pid == pid.0
            && let Some(port) = &mut inner.port
        {
            port.related = port.related.saturating_sub(1);
        }
    }

    /// Tells it of an exit or an end. One that it did not ask for is refused where too many wait.
    pub(crate) fn signal(&self, pid: Pid, signal: Signal, is_invited: bool) -> bool {
        let mut inner = self.inner();
        if inner.pid != pid.0 {
            return false;
        }
        let port = inner.port();
        if !is_invited {
            if port.uninvited >= CAPACITY {
                return false;
            }
            port.uninvited += 1;
        } else {
            port.related = port.related.saturating_sub(1);
        }
        port.exits.push_back(signal);
        let wakes = inner.wakes(false);
        drop(inner);
        wakes.fire();
        true
    }

    // Requests and observers.

    /// Puts a request into the message port, with the way back.
    pub(crate) fn ask(
        self: &Arc<Self>,
        pid: Pid,
        number: u64,
        message: H::Message,
        back: oneshot::Sender<H::Message>,
    ) -> Result<(), NotSent> {
        self.promise(Some(pid))?;
        {
            let mut inner = self.inner();
            if inner.is(Some(pid)) {
                inner.port().asked.push((number, back));
            }
        }
        let reply = Reply { row: self.clone(), pid, number };
        match self.put(Some(pid), Some(Letter::Request(message, reply))) {
            Some(_) => Err(NotSent::Gone),
            None => Ok(()),
        }
    }

    /// Takes out who waits for this answer of this incarnation.
    pub(crate) fn asker(&self, pid: Pid, number: u64) -> Option<oneshot::Sender<H::Message>> {
        let mut inner = self.inner();
        if inner.pid != pid.0 || inner.flags & FENCED != 0 {
            return None;
        }
        let asked = &mut inner.port.as_mut()?.asked;
        let at = asked.iter().position(|(one, _)| *one == number)?;
        Some(asked.swap_remove(at).1)
    }

    /// Says for whose answer it waits.
    pub(crate) fn waits_for(&self, pid: Pid, whom: Option<Pid>) {
        let mut inner = self.inner();
        if inner.pid == pid.0 {
            inner.port().waits_for = whom;
        }
    }

    /// Has `observer` told what the incarnation exits with; false if it is over.
    pub(crate) fn observe(&self, pid: Pid, observer: oneshot::Sender<ExitReason>) -> bool {
        let mut inner = self.inner();
        let is_there = inner.pid == pid.0;
        if is_there {
            inner.port().observers.push(observer);
        }
        is_there
    }

    // A supervisor's desk.

    /// Puts something onto the desk: for this incarnation, or for whichever comes to it. It comes back if none will.
    pub(crate) fn order(&self, pid: Option<Pid>, order: Order<H>) -> Result<(), Order<H>> {
        let mut inner = self.inner();
        let is_there = match pid {
            Some(pid) => inner.pid == pid.0 && inner.flags & FENCED == 0,
            None => inner.flags & (CLOSED | DISMISSED) == 0,
        };
        if !is_there {
            return Err(order);
        }
        inner.port().desk.push_back(order);
        let waker = inner.waker.take();
        drop(inner);
        if let Some(waker) = waker {
            watchdog::wake(waker);
        }
        Ok(())
    }

    /// Clears up to `most` off the desk; says whether the supervisor was asked to stop.
    pub(crate) fn orders(&self, pid: Pid, most: usize, into: &mut Vec<Order<H>>) -> bool {
        let mut inner = self.inner();
        if inner.pid != pid.0 {
            return false;
        }
        let is_stopping = inner.flags & STOPPING != 0;
        if let Some(port) = &mut inner.port {
            let many = port.desk.len().min(most);
            into.extend(port.desk.drain(..many));
        }
        is_stopping
    }
}

impl<H: Host> Port<H> {
    fn note_taken(&mut self, signal: &Signal) {
        // An exit signal from a stranger has no link behind it; which of those that wait it was does not matter.
        if matches!(signal, Signal::Exit { .. }) {
            self.uninvited = self.uninvited.saturating_sub(1);
        }
    }
}

impl<H: Host> Left<H> {
    /// Takes everything out of the ports that the next incarnation has no use for.
    pub(super) fn clear_out(&mut self, port: &mut Port<H>, keeps_messages: bool) {
        self.wakes.reader = port.reader.take();
        (self.wakes.fence, self.wakes.stopping) = (port.fence.take(), port.stopping.take());
        self.observers = std::mem::take(&mut port.observers);
        self.asked = std::mem::take(&mut port.asked);
        for letter in std::mem::take(&mut port.messages) {
            match letter {
                Letter::Request(..) => self.requests.push(letter),
                Letter::Message(_) if keeps_messages => port.messages.push_back(letter),
                Letter::Message(message) => self.messages.push(message),
            }
        }
        (port.exits, port.related, port.uninvited) = Default::default();
        (port.doom, port.waits_for) = (None, None);
        for order in std::mem::take(&mut port.desk) {
            match order {
                Order::Asked(_) => port.desk.push_back(order),
                _ => self.orders.push(order),
            }
        }
    }
}
