//! How much of a response is taken.

/// Bytes of an answer for each token it may have: more than text has on average in any language.
const BYTES_PER_TOKEN: usize = 5;

/// Bytes of a response for each byte of the answer: events of one token each are mostly what stands around it.
const AROUND: u64 = 256;

/// Room for what does not grow with the answer.
const ROOM: usize = 64 * 1024;

/// How much of a response is taken, in bytes and calls. A decoder keeps one event and one answer at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    pub(crate) event: usize,
    pub(crate) total: u64,
    pub(crate) answer: usize,
    pub(crate) calls: usize,
}

impl Limits {
    /// The most bytes of an event that may be allowed.
    pub const EVENT: usize = 64 * 1024 * 1024;
    /// The most bytes of an answer that may be allowed.
    pub const ANSWER: usize = 16 * 1024 * 1024;
    /// The most calls in one answer.
    pub const CALLS: usize = 1024;

    /// For an answer of at most so many tokens to a request of so many bytes: a provider may repeat both in its last event.
    #[must_use]
    pub fn of_request(max_output_tokens: u32, request_bytes: usize) -> Self {
        let tokens = usize::try_from(max_output_tokens).unwrap_or(Self::ANSWER);
        let answer = tokens.saturating_mul(BYTES_PER_TOKEN).saturating_add(ROOM).min(Self::ANSWER);
        // In JSON a character may take several times its bytes.
        let event = answer.saturating_add(request_bytes).saturating_mul(2).saturating_add(ROOM).min(Self::EVENT);
        Self { event, answer, calls: Self::CALLS, total: event as u64 + answer as u64 * AROUND }
    }

    /// The same with events of at most so many bytes.
    #[must_use]
    pub fn with_event(self, event: usize) -> Self {
        Self { event: event.min(Self::EVENT), ..self }
    }

    /// The same with so many bytes of a response at most.
    #[must_use]
    pub const fn with_total(self, total: u64) -> Self {
        Self { total, ..self }
    }

    /// The same with so many bytes of an answer at most.
    #[must_use]
    pub fn with_answer(self, answer: usize) -> Self {
        Self { answer: answer.min(Self::ANSWER), ..self }
    }

    /// The same with so many calls at most.
    #[must_use]
    pub fn with_calls(self, calls: usize) -> Self {
        Self { calls: calls.min(Self::CALLS), ..self }
    }
}
