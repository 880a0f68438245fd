//! How far something long is: a bar on the terminal, once it has taken a second.

use std::{
    io::IsTerminal,
    time::{Duration, Instant},
};

use crate::terminal::tell_over;

/// Before this nothing is shown: most things are done by then.
const PATIENCE: Duration = Duration::from_secs(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(200);
/// The width of the bar.
const WIDTH: u64 = 30;

/// Shows how far something is, on standard error if that is a terminal.
pub(crate) struct Bar {
    what: &'static str,
    began: Instant,
    shown: Option<Instant>,
    terminal: bool,
}

impl Bar {
    /// `what` counts and is done, such as "entries verified".
    pub(crate) fn new(what: &'static str) -> Self {
        Self { what, began: Instant::now(), shown: None, terminal: std::io::stderr().is_terminal() }
    }

    /// `done` of `total` are done.
    pub(crate) fn show(&mut self, done: u64, total: u64) {
        self.show_of(self.what, done, total);
    }

    /// The same of something that is done in steps, each with a name of its own.
    pub(crate) fn show_of(&mut self, what: &'static str, done: u64, total: u64) {
        let due = match self.shown {
            Some(shown) => shown.elapsed() > PAUSE,
            None => self.began.elapsed() > PATIENCE,
        };
        if due && self.terminal {
            self.shown = Some(Instant::now());
            tell_over(&line(done, total.max(done), what));
        }
    }
}

impl Drop for Bar {
    /// Leaves the line to what follows.
    fn drop(&mut self) {
        if self.shown.is_some() {
            tell_over("");
        }
    }
}

fn line(done: u64, total: u64, what: &str) -> String {
    let of = |whole: u64| done.saturating_mul(whole).checked_div(total).unwrap_or(whole);
    let filled = usize::try_from(of(WIDTH)).unwrap_or(0);
    let empty = usize::try_from(WIDTH).unwrap_or(0).saturating_sub(filled);
    format!("{}{} {:>3} %  {done} of {total} {what}", "█".repeat(filled), "░".repeat(empty), of(100))
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_bar_is_as_full_as_the_thing_is_far() {
        assert_eq!(line(0, 4, "entries"), format!("{}   0 %  0 of 4 entries", "░".repeat(30)));
        assert_eq!(line(2, 4, "entries"), format!("{}{}  50 %  2 of 4 entries", "█".repeat(15), "░".repeat(15)));
        assert_eq!(line(4, 4, "entries"), format!("{} 100 %  4 of 4 entries", "█".repeat(30)));
        assert_eq!(line(0, 0, "entries"), format!("{} 100 %  0 of 0 entries", "█".repeat(30)));
    }
}
