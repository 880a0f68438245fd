//! Tasks beside the processes: calls at the door, and what is put on the record for somebody who is gone.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use super::watchdog;

/// Spawns a task that a process can wake as it wakes another process: although it never yields itself.
pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(relay.clone());
    drop(tokio::spawn(Relayed { future: Box::pin(future), relay, waker }));
}

/// A future that is woken through its relay.
struct Relayed<F> {
    future: Pin<Box<F>>,
    relay: Arc<Relay>,
    waker: Waker,
}

/// The waker of a task. Whoever wakes takes it out, and the task leaves it again when it is polled.
#[derive(Default)]
struct Relay(Mutex<Option<Waker>>);

impl Relay {
    fn leave(&self, waker: &Waker) {
        match &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(known) if known.will_wake(waker) => {}
            known => *known = Some(waker.clone()),
        }
    }
}

impl Wake for Relay {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<Self>) {
        let task = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            watchdog::wake(task);
        }
    }
}

impl<F: Future<Output = ()>> Future for Relayed<F> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.relay.leave(context.waker());
        let this = &mut *self;
        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}
