//! What a provider's refusals mean, wherever they come: as a status, as a body, or in the middle of a stream.

mod wait;
mod words;

use std::time::Duration;

use ephor_base::{FailureKind, Timestamp};

use self::words::Words;

/// What may help.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Recourse {
    /// Nothing: the same request fails again, with every key.
    Never,
    /// The same request after this time.
    After(Duration),
    /// The same request soon, and then after longer and longer.
    Backoff,
    /// The same request with another key at once; with this one after so long, if the provider says how long.
    OtherKey(Option<Duration>),
    /// The same request to another model or provider: this model cannot, or has had enough for today.
    OtherModel,
    /// A shorter conversation.
    Shorter,
}

/// Why a provider gives no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complaint {
    kind: FailureKind,
    recourse: Recourse,
    status: Option<u16>,
    message: String,
    said: bool,
}

impl Complaint {
    /// The most bytes of a message. It is longer than a person is shown, so that a key in it can be found before it is cut.
    pub const LONGEST: usize = 8 * 1024;

    /// What a response means whose status is not 2xx. Names of headers are compared without case; `now` is the wall clock.
    #[must_use]
    pub fn of_response(status: u16, headers: &[(&str, &str)], body: &[u8], now: Timestamp) -> Self {
        let words = Words::of_body(body);
        let kind = kind_of(&words, status);
        let wait = wait::asked(headers, now).or(words.wait);
        let recourse = match wait::should_retry(headers) {
            Some(false) if kind != FailureKind::Overflow => Recourse::Never,
            Some(true) if kind != FailureKind::Throttled => wait.map_or(Recourse::Backoff, Recourse::After),
            _ => recourse_of(kind, &words, wait),
        };
        Self { kind, recourse, status: Some(status), message: words.message, said: true }
    }

    /// What an error means that came in place of an answer, or in the middle of one. It means what the same one means as a status; what names
    /// none is taken for the status `otherwise`.
    pub(crate) fn of_error(error: &str, otherwise: u16) -> Self {
        let words = Words::of_json(error);
        let status = words.status.or_else(|| words.named_status());
        let kind = kind_of(&words, status.unwrap_or(otherwise));
        let recourse = recourse_of(kind, &words, words.wait);
        Self { kind, recourse, status: words.status, message: words.message, said: true }
    }

    /// A complaint of our own about what came.
    pub(crate) fn new(kind: FailureKind, recourse: Recourse, message: &str) -> Self {
        Self { kind, recourse, status: None, message: words::bounded(message), said: false }
    }

    /// What kind of failure it is.
    #[must_use]
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// What may help.
    #[must_use]
    pub const fn recourse(&self) -> Recourse {
        self.recourse
    }

    /// How long the provider asks to be left alone, as far as it says.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self.recourse {
            Recourse::After(wait) | Recourse::OtherKey(Some(wait)) => Some(wait),
            _ => None,
        }
    }

    /// Whether the provider complains itself. Else it is our own word on what it sent.
    #[must_use]
    pub const fn is_said(&self) -> bool {
        self.said
    }

    /// The HTTP status that it came with, or that it names.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        self.status
    }

    /// What the provider says, on one line, at most [`Complaint::LONGEST`] bytes; empty where it says nothing. It is a stranger's text, and may
    /// say a key back.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

fn kind_of(words: &Words, status: u16) -> FailureKind {
    match status {
        _ if words.is_quota() => FailureKind::Quota,
        413 => FailureKind::Overflow,
        400 | 422 | 500 if words.is_overflow() => FailureKind::Overflow,
        400 if words.is_unauthorized() => FailureKind::Unauthorized,
        401 => FailureKind::Unauthorized,
        402 => FailureKind::Quota,
        403 => FailureKind::Forbidden,
        408 | 504 => FailureKind::Timeout,
        429 => FailureKind::Throttled,
        // 409: the provider's own lock; 425: too early.
        409 | 425 => FailureKind::ServerError,
        300..=499 => FailureKind::Rejected,
        _ => FailureKind::ServerError,
    }
}

fn recourse_of(kind: FailureKind, words: &Words, wait: Option<Duration>) -> Recourse {
    match kind {
        FailureKind::Throttled => Recourse::OtherKey(wait),
        FailureKind::ServerError | FailureKind::Timeout => wait.map_or(Recourse::Backoff, Recourse::After),
        FailureKind::Overflow => Recourse::Shorter,
        FailureKind::Quota if words.is_daily() => Recourse::OtherModel,
        FailureKind::Rejected if words.is_blind() => Recourse::OtherModel,
        _ => Recourse::Never,
    }
}
