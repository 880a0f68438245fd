//! The signer: makes the two signatures of a checkpoint beside one another.
//!
//! To make and check both takes longer than a quick disk takes for a batch, and everyone who waits for the batch waits for
//! it. So a thread of its own does Ed25519 while the caller does ML-DSA-65. If the machine is too busy for the thread to
//! have begun by then, the caller does both.

use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
};

use ephor_tlog::{Note, SignatureLine};

use crate::{error::Failure, keys::SigningKeys};

/// The thread that signs with Ed25519. It ends when this is dropped.
pub(crate) struct Signer {
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

/// What both sides share.
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

enum State {
    /// There is nothing to sign.
    Idle,
    /// A caller wants this signed, and no thread has begun.
    Ordered(Order),
    /// The thread is at it.
    Begun,
    /// It is ready to be fetched.
    Signed(Result<SignatureLine, Failure>),
    /// The thread is to end.
    Ended,
}

/// A text to be signed, and the keys for it.
struct Order {
    keys: Arc<SigningKeys>,
    text: Arc<str>,
}

impl Order {
    fn sign(&self) -> Result<SignatureLine, Failure> {
        self.keys.sign_ed25519(&self.text).map_err(Failure::Signature)
    }
}

impl Signer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let desk = Arc::new(Desk { state: Mutex::new(State::Idle), changed: Condvar::new() });
        let shared = Arc::clone(&desk);
        let thread = thread::Builder::new().name("chain-sign".into()).spawn(move || shared.serve())?;
        Ok(Self { desk, thread: Some(thread) })
    }

    /// Signs a text with both keys; each signature is checked by a second implementation.
    pub(crate) fn sign(&self, keys: &Arc<SigningKeys>, text: String) -> Result<Note, Failure> {
        let order = Order { keys: Arc::clone(keys), text: text.as_str().into() };
        self.desk.set(State::Ordered(order));
        let ml_dsa = keys.sign_ml_dsa(&text);
        // Fetched also when the other failed, so that it is not taken for the answer to the next order.
        let ed25519 = self.desk.fetch()?;
        Ok(Note { text, signatures: vec![ed25519, ml_dsa.map_err(Failure::Signature)?] })
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        self.desk.set(State::Ended);
        // The thread catches its own panics.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

impl Desk {
    fn serve(&self) {
        while let Some(order) = self.next() {
            // A panic here must not leave the writer waiting for ever.
            let signed = catch_unwind(AssertUnwindSafe(|| order.sign())).unwrap_or(Err(Failure::Bug));
            self.hand_in(signed);
        }
    }

    /// Waits for an order, and begins it.
    fn next(&self) -> Option<Order> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Begun) {
                State::Ordered(order) => return Some(order),
                State::Ended => return None,
                other => *state = other,
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The signature that was ordered. Makes it here if no thread has begun.
    fn fetch(&self) -> Result<SignatureLine, Failure> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Idle) {
                State::Signed(signed) => return signed,
                State::Ordered(order) => {
                    drop(state);
                    return order.sign();
                }
                State::Begun => *state = State::Begun,
                State::Idle | State::Ended => return Err(Failure::Bug),
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Leaves a signature to be fetched, unless the writer has gone away in the meantime.
    fn hand_in(&self, signed: Result<SignatureLine, Failure>) {
        let mut state = self.lock();
        if matches!(*state, State::Begun) {
            *state = State::Signed(signed);
            self.changed.notify_one();
        }
    }

    fn set(&self, state: State) {
        *self.lock() = state;
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
