//! Tasks beside the processes: calls at the door, and what is put on the record for a process that is gone.

use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Wake, Waker},
};

use ephor_base::Pid;
use tokio::runtime::Handle;

use super::watchdog::{self, Watch};

/// The PID of what is no process.
const NO_PROCESS: Pid = Pid(0);

/// Spawns a task that a process can wake as it wakes another process: although it never yields itself. Only on a thread of
/// the runtime.
pub fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    spawn_on(&Handle::current(), future);
}

/// As [`spawn`], from any thread.
pub fn spawn_on(handle: &Handle, future: impl Future<Output = ()> + Send + 'static) {
    relayed(handle, future, None);
}

/// As [`spawn`], for what is not ours and may not yield: the watchdog counts the thread as lost that it holds.
pub fn spawn_watched(watch: Arc<Watch>, future: impl Future<Output = ()> + Send + 'static) {
    relayed(&Handle::current(), future, Some(watch));
}

fn relayed(handle: &Handle, future: impl Future<Output = ()> + Send + 'static, watch: Option<Arc<Watch>>) {
    let relay = Arc::new(Relay::default());
    let waker = Waker::from(relay.clone());
    drop(handle.spawn(Relayed { future: Box::pin(future), relay, waker, watch }));
}

/// A future that is woken through its relay.
struct Relayed<F> {
    future: Pin<Box<F>>,
    relay: Arc<Relay>,
    waker: Waker,
    watch: Option<Arc<Watch>>,
}

/// The waker of a task. The thread that wakes takes it out, and the task leaves it again when it is polled.
#[derive(Default)]
struct Relay(Mutex<Option<Waker>>);

impl Relay {
    fn leave(&self, waker: &Waker) {
        match &mut *crate::lock::enter(&self.0) {
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
        let task = crate::lock::enter(&self.0).take();
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
        let _at_work = this.watch.as_ref().map(|watch| watchdog::enter(watch, NO_PROCESS));
        this.future.as_mut().poll(&mut Context::from_waker(&this.waker))
    }
}
