//! The locks of the kernel.
//!
//! A panic while one is held leaves what it guards half changed, and nothing may go on with that. What a session is follows
//! from the record, so one whose lock is poisoned is begun anew from there (`kernel::door`). All else is of the whole node,
//! which ends as by a crash: its next start says on the record that there was one, and goes on from there.

use std::sync::{Mutex, MutexGuard};

/// Enters a lock of the node. Where a panic has left it, the program ends.
pub fn enter<T: ?Sized>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    match lock.lock() {
        Ok(guard) => guard,
        Err(_) => end(),
    }
}

#[cold]
fn end() -> ! {
    tracing::error!(
        "the kernel panicked while it held its own state; the node ends, and its next start goes on from the record"
    );
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use std::{
        process::{Command, Stdio},
        sync::Mutex,
    };

    use super::enter;

    /// Set where this program is run once more, to end.
    const CHILD: &str = "EPHOR_TEST_ENDS";

    #[test]
    fn a_lock_that_was_held_in_a_panic_is_entered_by_nobody() {
        if std::env::var_os(CHILD).is_some() {
            let lock = Mutex::new(());
            let held = std::panic::catch_unwind(|| {
                let _guard = enter(&lock);
                panic!("told to");
            });
            assert!(held.is_err());
            drop(enter(&lock));
            // Whoever comes here went on, and ends well.
            std::process::exit(0);
        }
        let name = "lock::tests::a_lock_that_was_held_in_a_panic_is_entered_by_nobody";
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args([name, "--exact"]).env(CHILD, "1").stdout(Stdio::null()).stderr(Stdio::null());
        assert_eq!(again.status().unwrap().code(), None, "it was ended by a signal");
    }
}
