//! What a link may hold, and how long a key lives.

use std::time::Duration;

use crate::{seal::MOST_SEALED, stream::FIRST_CREDIT};

/// The most bytes on the wire under one key: below 2²⁴ full frames, where AES-GCM still has a wide margin (RFC 8446, section 5.5).
pub const MOST_KEY_BYTES: u64 = 1 << 30;
/// The longest that a side may use one key.
pub const MOST_KEY_AGE: Duration = Duration::from_secs(3600);
/// How many streams each side may have open that it has opened itself.
pub const MOST_STREAMS: usize = 64;

/// Bytes that a receiver lets the sender be ahead of its user.
const WINDOW: u64 = 512 * 1024;
/// Bytes that wait in one stream at the sender: the longest message of every purpose, and others beside it.
pub(crate) const QUEUE: usize = 2 * 1024 * 1024;
/// Bytes under one key: some seconds at the speed of a local line, so that the code runs every day.
const KEY_BYTES: u64 = 256 << 20;
/// How long one key is used on a quiet link.
const KEY_AGE: Duration = Duration::from_secs(600);
/// The most a window or a queue may have.
const MOST_BYTES: u64 = 64 << 20;

// The defaults are within the limits of their constructors. A window gives credit before it is used up by the longest frame.
const _: () = assert!(FIRST_CREDIT <= WINDOW && WINDOW <= MOST_BYTES && QUEUE as u64 <= MOST_BYTES);
const _: () = assert!(KEY_BYTES <= MOST_KEY_BYTES && KEY_AGE.as_secs() <= MOST_KEY_AGE.as_secs());
const _: () = assert!(WINDOW / 2 >= MOST_SEALED as u64);

/// Limits that a link cannot keep to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadLimits {
    /// The window is not between the first credit and 64 MiB.
    #[error("a window has {FIRST_CREDIT} to {MOST_BYTES} bytes, not {0}")]
    Window(u64),
    /// The queue is not between 1 byte and 64 MiB.
    #[error("a queue has 1 to {MOST_BYTES} bytes, not {0}")]
    Queue(usize),
    /// The key would live too short or too long.
    #[error("a key lasts for at least a frame, and at most {MOST_KEY_BYTES} bytes and {} s", MOST_KEY_AGE.as_secs())]
    Key,
}

/// The limits of one link. They bind this side; the peer is held to the protocol's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub(super) window: u64,
    pub(super) queue: usize,
    pub(super) key_bytes: u64,
    pub(super) key_age: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { window: WINDOW, queue: QUEUE, key_bytes: KEY_BYTES, key_age: KEY_AGE }
    }
}

impl Limits {
    /// Other sizes of the window of each stream and of its queue, in bytes.
    ///
    /// # Errors
    /// [`BadLimits`] if one is out of range.
    pub fn with_room(self, window: u64, queue: usize) -> Result<Self, BadLimits> {
        if !(FIRST_CREDIT..=MOST_BYTES).contains(&window) {
            return Err(BadLimits::Window(window));
        }
        if queue == 0 || u64::try_from(queue).is_ok_and(|queue| queue > MOST_BYTES) {
            return Err(BadLimits::Queue(queue));
        }
        Ok(Self { window, queue, ..self })
    }

    /// Another life of a key: as many bytes on the wire, or as long.
    ///
    /// # Errors
    /// [`BadLimits::Key`] if it is longer than the protocol allows, or shorter than a frame.
    pub fn with_key(self, key_bytes: u64, key_age: Duration) -> Result<Self, BadLimits> {
        let least = u64::try_from(MOST_SEALED).unwrap_or(u64::MAX);
        let fits = (least..=MOST_KEY_BYTES).contains(&key_bytes) && !key_age.is_zero() && key_age <= MOST_KEY_AGE;
        if fits { Ok(Self { key_bytes, key_age, ..self }) } else { Err(BadLimits::Key) }
    }
}
