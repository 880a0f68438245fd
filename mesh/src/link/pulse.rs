//! The pulse of a link: when to ask whether the peer is there, and when to give it up.
//!
//! Both follow the round trip as it is measured, smoothed as TCP does it (RFC 6298), so that a link over a satellite is not given
//! up and one within a room is missed at once.

use std::time::Duration;

/// Before a round trip was measured.
const FIRST_GUESS: Duration = Duration::from_secs(1);
/// The shortest and longest time between two pings.
const INTERVAL: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(10)];
/// The shortest and longest silence that a peer may keep after a ping.
const PATIENCE: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(30)];
/// A round trip beyond this counts as this.
const LONGEST: Duration = Duration::from_secs(60);

/// The heartbeat of one link. All times are of the monotonic clock.
#[derive(Debug)]
pub(crate) struct Pulse {
    heard: Duration,
    next: Duration,
    asked: Option<(u64, Duration)>,
    tokens: u64,
    smoothed: Option<[Duration; 2]>,
}

impl Pulse {
    pub(crate) const fn new(now: Duration) -> Self {
        Self { heard: now, next: now, asked: None, tokens: 0, smoothed: None }
    }

    /// The smoothed round trip.
    pub(crate) fn round_trip(&self) -> Option<Duration> {
        self.smoothed.map(|[trip, _]| trip)
    }

    /// Smoothed round trip and four times its variation: what a round trip seldom takes.
    fn expected(&self) -> Duration {
        self.smoothed.map_or(FIRST_GUESS, |[trip, variation]| trip.saturating_add(variation.saturating_mul(4)))
    }

    fn interval(&self) -> Duration {
        let [least, most] = INTERVAL;
        self.expected().saturating_mul(4).clamp(least, most)
    }

    /// How long the peer may be silent once it was asked.
    pub(crate) fn patience(&self) -> Duration {
        let [least, most] = PATIENCE;
        self.expected().saturating_mul(8).clamp(least, most)
    }

    /// Any frame shows that the peer is there.
    pub(crate) const fn hear(&mut self, now: Duration) {
        self.heard = now;
    }

    /// The token of the ping that is due. One is out at a time.
    pub(crate) fn ping(&mut self, now: Duration) -> Option<u64> {
        if self.asked.is_some() || now < self.next {
            return None;
        }
        self.tokens = self.tokens.checked_add(1)?;
        self.asked = Some((self.tokens, now));
        Some(self.tokens)
    }

    /// Takes a pong in; whether it answers the ping that is out.
    pub(crate) fn pong(&mut self, now: Duration, token: u64) -> bool {
        let Some((_, at)) = self.asked.filter(|(asked, _)| *asked == token) else { return false };
        self.asked = None;
        let trip = now.saturating_sub(at).min(LONGEST);
        self.smoothed = Some(match self.smoothed {
            None => [trip, trip / 2],
            Some([smoothed, variation]) => {
                let off = smoothed.abs_diff(trip);
                [
                    smoothed.saturating_mul(7).saturating_add(trip) / 8,
                    variation.saturating_mul(3).saturating_add(off) / 4,
                ]
            }
        });
        self.next = now.saturating_add(self.interval());
        true
    }

    /// When the peer is given up if nothing comes: it may be busy with a long frame, so any frame counts.
    pub(crate) fn ends(&self) -> Option<Duration> {
        self.asked.map(|_| self.ends_unasked())
    }

    /// When the peer is given up though a ping that is due cannot be sent.
    pub(crate) fn ends_unasked(&self) -> Duration {
        let due = self.asked.map_or(self.next, |(_, at)| at);
        due.max(self.heard).saturating_add(self.patience())
    }

    /// When there is something to do next.
    pub(crate) fn due(&self) -> Duration {
        self.ends().unwrap_or(self.next)
    }
}
