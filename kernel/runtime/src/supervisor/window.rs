//! How many restarts there were lately.

use std::{collections::VecDeque, time::Duration};

use super::Intensity;

/// The times of the restarts within the period.
#[derive(Debug)]
pub(super) struct Window {
    intensity: Intensity,
    restarts: VecDeque<Duration>,
}

impl Window {
    pub(super) const fn new(intensity: Intensity) -> Self {
        Self { intensity, restarts: VecDeque::new() }
    }

    /// Counts a restart; false when it is one too many. It never holds more than are allowed, and that one.
    pub(super) fn admits(&mut self, now: Duration) -> bool {
        // OTP's supervisor:add_restart/3 keeps a restart whose age is the period exactly.
        while self.restarts.front().is_some_and(|then| now.saturating_sub(*then) > self.intensity.period) {
            self.restarts.pop_front();
        }
        self.restarts.push_back(now);
        self.restarts.len() <= self.intensity.restarts
    }
}
