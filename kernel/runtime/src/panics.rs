//! Panics of processes: told on the record, not on the terminal.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt::Write,
    panic::{self, AssertUnwindSafe},
};

use ephor_base::ExitReason;

thread_local! {
    /// Whether this thread polls a process.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic of a process on this thread began; empty if that was told. Its room is kept for the next.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Has panics of processes told as the reason of their exit, with the place in the code, instead of a trace on the
/// terminal, which costs twenty times the restart. All other panics are shown as before. Once for each program.
pub fn install_panic_hook() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if WITHIN.get() {
            PLACE.with_borrow_mut(|kept| {
                kept.clear();
                // Writing to a string does not fail.
                let _written = info.location().map(|place| write!(kept, "{place}"));
            });
        } else {
            before(info);
        }
    }));
}

/// Runs a part of a process. A panic becomes the reason for its end, also one whose message panics when it is dropped.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, ExitReason> {
    let before = WITHIN.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let done = done.map_err(|panic| {
        let said = panic_message(&*panic);
        let text = PLACE.with_borrow_mut(|place| {
            let text = if place.is_empty() { said.to_owned() } else { [said, " (at ", place, ")"].concat() };
            place.clear();
            text
        });
        // What is thrown may itself be something that panics at its end, and so may what that throws.
        if let Err(again) = panic::catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
        ExitReason::Panicked(text)
    });
    WITHIN.set(before);
    done
}

/// What a panic said.
pub fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
