//! How long a child that keeps crashing waits before it is started again. OTP starts it at once.

use std::time::Duration;

/// Exponential backoff: from `first` on each wait is twice as long, up to `most`, less up to a half by chance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    /// Crashes in a row that are answered at once.
    pub free: u32,
    /// The first wait; zero for none ever.
    pub first: Duration,
    /// The longest wait.
    pub most: Duration,
    /// A child that ran this long is healthy: its crashes are counted from the beginning again.
    pub healthy: Duration,
}

impl Backoff {
    /// No wait, as in OTP.
    pub const NONE: Self = Self { free: 0, first: Duration::ZERO, most: Duration::ZERO, healthy: Duration::ZERO };

    /// For agents: the first restart comes at once, the next after 20 ms, then twice as long up to 5 s; a minute of work
    /// is healthy. Against a provider or a disk that fails, the waits of several agents differ.
    pub const AGENT: Self = Self {
        free: 1,
        first: Duration::from_millis(20),
        most: Duration::from_secs(5),
        healthy: Duration::from_secs(60),
    };

    /// The wait after `crashes` in a row, this one included.
    pub(super) fn wait(&self, crashes: u32, chance: &mut Chance) -> Duration {
        if crashes <= self.free || self.first.is_zero() {
            return Duration::ZERO;
        }
        let doublings = (crashes - self.free - 1).min(31);
        let full = self.first.saturating_mul(1 << doublings).min(self.most);
        let half = full / 2;
        half + half.mul_f64(chance.next())
    }
}

/// A sequence of chances on a seed (SplitMix64): jitter needs no more, and replays need the same again.
#[derive(Debug)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    /// From 0 up to, not including, 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let top = u32::try_from((mixed ^ (mixed >> 31)) >> 32).unwrap_or_default();
        f64::from(top) / (f64::from(u32::MAX) + 1.0)
    }
}
