//! What has to keep to the order of the record.
//!
//! A state that follows from the record must change in the order in which entries get their places, or it cannot be made
//! again from them. The keeper of such a state takes part at the very moment a place is given.

use ephor_base::{Receipt, Timestamp};
use ephor_record::Record;

/// Takes part when records get their places. Called under the lock of the log: it is short, and does not call the log.
pub trait Order: Send + Sync {
    /// Whether what is to be recorded still holds at `time`, which it will have on the record. If not, nothing is recorded, and the caller has
    /// [`crate::AppendError::Overtaken`].
    fn holds(&self, time: Timestamp) -> bool;

    /// A record has its place, at `time`.
    fn taken(&self, record: &Record, receipt: Receipt, time: Timestamp);
}

/// Keeps no order.
pub(crate) struct InAnyOrder;

impl Order for InAnyOrder {
    fn holds(&self, _: Timestamp) -> bool {
        true
    }

    fn taken(&self, _: &Record, _: Receipt, _: Timestamp) {}
}
