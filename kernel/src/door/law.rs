//! The law in force: the gate, and when it is exchanged for another.
//!
//! It changes at the place of an enactment on the record, under the lock of the log. A verdict is only recorded while the law that
//! gave it is in force; so on the record no verdict stands behind a law that it was not given under.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use ephor_base::{Digest, Receipt, Timestamp};
use ephor_chain::Order;
use ephor_governance::Gate;
use ephor_record::{Fact, Record};
use tokio::sync::watch;

/// The law in force.
pub(crate) struct Law {
    gate: Mutex<Arc<Gate>>,
    changes: watch::Sender<Digest>,
    /// How often it was decreed who is in office, or a precedent was revoked.
    decrees: AtomicU64,
}

impl Law {
    pub(crate) fn new(gate: Gate) -> Self {
        let changes = watch::Sender::new(gate.digest());
        Self { gate: Mutex::new(Arc::new(gate)), changes, decrees: AtomicU64::new(0) }
    }

    /// The gate.
    pub(crate) fn gate(&self) -> Arc<Gate> {
        ephor_runtime::lock::enter(&self.gate).clone()
    }

    /// Whether the law of this digest is in force.
    pub(crate) fn is(&self, digest: Digest) -> bool {
        self.gate().digest() == digest
    }

    /// How often it was decreed who is in office, or a precedent was revoked. What is decided on these holds while this stays.
    pub(crate) fn decrees(&self) -> u64 {
        self.decrees.load(Ordering::SeqCst)
    }

    /// Resolves when another law than that of this digest is in force.
    pub(crate) fn gone(&self, digest: Digest) -> impl Future<Output = ()> + Send + 'static + use<> {
        let mut changes = self.changes.subscribe();
        async move {
            // Its sender is dropped with the door, when there is nothing left to wait for.
            let _over = changes.wait_for(|now| *now != digest).await;
        }
    }

    fn exchange(&self, gate: Arc<Gate>) {
        let digest = gate.digest();
        *ephor_runtime::lock::enter(&self.gate) = gate;
        self.changes.send_replace(digest);
    }
}

/// Counts the decrees on who is in office, and on what is no precedent any more, at their places.
pub(crate) struct Decreeing(pub(crate) Arc<Law>);

impl Order for Decreeing {
    fn holds(&self, _: Timestamp) -> bool {
        true
    }

    fn taken(&self, _: &Record, _: Receipt, _: Timestamp) {
        self.0.decrees.fetch_add(1, Ordering::SeqCst);
    }
}

/// What a verdict was decided under: a law, and who was in office.
#[derive(Clone)]
pub(crate) struct Under {
    pub(crate) law: Arc<Law>,
    pub(crate) digest: Digest,
    pub(crate) decrees: u64,
    /// Before when, if it rests on something that ends.
    pub(crate) until: Option<Timestamp>,
}

impl Under {
    /// Whether it is still so at `time`.
    pub(crate) fn holds(&self, time: Timestamp) -> bool {
        let in_time = self.until.is_none_or(|until| time < until);
        self.law.is(self.digest) && self.law.decrees() == self.decrees && in_time
    }
}

/// Those who were in office when it was looked who is.
#[derive(Clone)]
pub(crate) struct Among {
    law: Arc<Law>,
    decrees: u64,
}

impl Among {
    pub(crate) fn now(law: &Arc<Law>) -> Self {
        Self { law: law.clone(), decrees: law.decrees() }
    }

    /// Whether they still are.
    pub(crate) fn holds(&self) -> bool {
        self.law.decrees() == self.decrees
    }
}

/// Puts a law in force at the place where the record says so.
pub(crate) struct Enacting {
    pub(crate) law: Arc<Law>,
    pub(crate) gate: Arc<Gate>,
    /// The law that it was made to follow.
    pub(crate) before: Digest,
}

impl Order for Enacting {
    fn holds(&self, _: Timestamp) -> bool {
        self.law.is(self.before)
    }

    fn taken(&self, record: &Record, _: Receipt, _: Timestamp) {
        if matches!(record.fact, Fact::Enacted { .. }) {
            self.law.exchange(self.gate.clone());
        }
    }
}
