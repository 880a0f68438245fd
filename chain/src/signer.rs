//! The signer: makes the two signatures of a checkpoint beside one another.
//!
//! To make and check both takes longer than a quick disk takes for a batch, and everyone who waits for the batch waits for
//! it. So Ed25519 has a thread of its own, and whoever asks does ML-DSA-65 in the meantime.

use std::{
    io,
    sync::{
        Arc,
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
};

use crate::{
    error::Failure,
    keys::{SignatureFault, SigningKeys},
    note::{Note, SignatureLine},
};

/// A text to be signed, and the keys for it.
type Order = (Arc<SigningKeys>, Arc<str>);

/// The thread that signs with Ed25519. It ends when this is dropped.
pub(crate) struct Signer {
    orders: Option<SyncSender<Order>>,
    signed: Receiver<Result<SignatureLine, SignatureFault>>,
    thread: Option<JoinHandle<()>>,
}

impl Signer {
    /// Starts the thread.
    pub(crate) fn start() -> io::Result<Self> {
        let (orders, ordered) = sync_channel::<Order>(1);
        let (answers, signed) = sync_channel(1);
        let serve = move || {
            for (keys, text) in ordered {
                // Whoever has gone away needs no answer.
                let _ = answers.send(keys.sign_ed25519(&text));
            }
        };
        let thread = Some(thread::Builder::new().name("chain-sign".into()).spawn(serve)?);
        Ok(Self { orders: Some(orders), signed, thread })
    }

    /// Signs a text with both keys; each signature is checked by a second implementation.
    pub(crate) fn sign(&self, keys: &Arc<SigningKeys>, text: String) -> Result<Note, Failure> {
        let shared = Arc::<str>::from(text.as_str());
        let order = (Arc::clone(keys), Arc::clone(&shared));
        // The thread is there unless it panicked.
        self.orders.as_ref().and_then(|orders| orders.send(order).ok()).ok_or(Failure::Bug)?;
        let ml_dsa = keys.sign_ml_dsa(&shared);
        // Taken also when the other failed, so that no answer is left for the next order.
        let ed25519 = self.signed.recv().map_err(|_| Failure::Bug)?;
        let signatures = vec![ed25519.map_err(Failure::Signature)?, ml_dsa.map_err(Failure::Signature)?];
        Ok(Note { text, signatures })
    }
}

impl Drop for Signer {
    fn drop(&mut self) {
        self.orders = None;
        // A panic in it was answered when its signature was missed.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
