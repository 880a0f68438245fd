//! A state that follows from the record changes in its order.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
};

use ephor_base::{Decision, Receipt, Timestamp};
use ephor_chain::{AppendError, Order, read};
use ephor_record::Record;

use crate::common::{World, block_on, intent, memory::Memory, plain, verdict};

/// Keeps what it is told of, as long as it holds.
#[derive(Default)]
struct Kept {
    over: AtomicBool,
    taken: Mutex<Vec<(&'static str, Receipt, Timestamp)>>,
}

impl Order for Kept {
    fn holds(&self, _: Timestamp) -> bool {
        !self.over.load(Ordering::SeqCst)
    }

    fn taken(&self, record: &Record, receipt: Receipt, time: Timestamp) {
        self.taken.lock().unwrap().push((record.fact.kind(), receipt, time));
    }
}

#[test]
fn whoever_keeps_to_the_order_is_told_of_each_record_with_its_place_and_of_none_that_no_longer_holds() {
    let memory = Memory::default();
    let world = World::new(memory.files(), std::path::Path::new("/home"));
    let (log, _) = world.open().unwrap();
    let kept = Arc::new(Kept::default());
    let ordered = log.in_order(kept.clone());
    let first = block_on(ordered.note(plain(1))).unwrap();
    block_on(log.note(plain(2))).unwrap();
    block_on(ordered.intend(verdict(1, Decision::Permit), intent(1))).unwrap();
    kept.over.store(true, Ordering::SeqCst);
    assert!(matches!(block_on(ordered.append(plain(3))), Err(AppendError::Overtaken)));
    let overtaken = block_on(ordered.intend(verdict(2, Decision::Permit), intent(2)));
    assert!(matches!(overtaken, Err(AppendError::Overtaken)));
    block_on(log.flush()).unwrap();
    let stored: Vec<_> = read(&world.config.folder, &world.files).map(Result::unwrap).collect();
    let expected: Vec<_> = stored
        .iter()
        .filter(|one| one.receipt == first || one.entry.subject.call.is_some())
        .map(|one| (one.entry.fact.kind(), one.receipt, one.entry.time))
        .collect();
    assert_eq!(*kept.taken.lock().unwrap(), expected);
    assert_eq!(expected.iter().map(|(kind, ..)| *kind).collect::<Vec<_>>(), ["lease", "verdict", "intent"]);
    drop((log, ordered));
}
