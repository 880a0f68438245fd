//! Why there is no answer, in words for a person.

use std::time::Duration;

use ephor_base::{Failure, FailureKind, Retry};
use ephor_egress::Error;
use ephor_wire::{Complaint, Recourse};

use super::Asking;
use crate::scrub::Scrub;

/// The most characters of a server's text that are repeated.
const LONGEST: usize = 500;

impl Asking<'_> {
    /// What a provider complains of. `after` is what `Retry-After` asks for, in seconds.
    pub(super) fn complained(&self, complaint: &Complaint, after: Option<u32>) -> Failure {
        let seconds = |wait: Duration| u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        let wait = after.or_else(|| complaint.retry_after().map(seconds));
        let said = quoted(complaint.message(), self.scrub);
        let said = if said.is_empty() { "no reason given" } else { &said };
        let what = complaint.status().map_or_else(|| said.to_owned(), |status| format!("{status}: {said}"));
        let text = if complaint.is_said() { self.told(complaint, &what, wait) } else { self.foreign(complaint, said) };
        // A server that says itself that it does no better is not asked again.
        let gives_up = complaint.recourse() == Recourse::Never && complaint.kind().retry() != Retry::Never;
        let kind = if gives_up { FailureKind::Rejected } else { complaint.kind() };
        let mut failure = Failure::new(kind, text);
        (failure.status, failure.retry_after) = (complaint.status(), wait);
        failure
    }

    fn told(&self, complaint: &Complaint, what: &str, wait: Option<u32>) -> String {
        let (host, name) = (&self.host, self.name);
        let wait = wait.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
        match (complaint.kind(), complaint.status()) {
            (FailureKind::Quota, Some(402)) => format!("`{host}` wants to be paid ({what})"),
            (FailureKind::Quota, _) => format!("the quota at `{host}` is spent ({what})"),
            (FailureKind::Overflow, _) => format!("the prompt is longer than the model can take ({what})"),
            (FailureKind::Unauthorized, _) => {
                format!("`{host}` does not accept the key ({what}); {}", self.key_hint)
            }
            (FailureKind::Forbidden, _) => format!("`{host}` forbids the request ({what})"),
            (FailureKind::Timeout, _) => format!("`{host}` took too long ({what})"),
            (FailureKind::Throttled, _) => format!("`{host}` asks to wait{wait} ({what})"),
            (FailureKind::Rejected, Some(status @ 300..=399)) => {
                format!("`{host}` redirects elsewhere ({status}), which is not followed; check `{name}.base_url`")
            }
            (FailureKind::Rejected, Some(404)) => {
                format!("`{host}` has no such model or path ({what}); check the model's name and `{name}.base_url`")
            }
            (FailureKind::Rejected, _) => format!("`{host}` refuses the request ({what})"),
            _ => format!("`{host}` failed ({what})"),
        }
    }

    /// What is wrong with what came, in our own words.
    fn foreign(&self, complaint: &Complaint, said: &str) -> String {
        let (host, name) = (&self.host, self.name);
        match complaint.kind() {
            FailureKind::Rejected => {
                format!("`{host}` does not answer as {} does: {said}; check `{name}.base_url`", self.kind.words())
            }
            _ => format!("`{host}`: {said}"),
        }
    }

    /// The answer broke off.
    pub(super) fn cut(&self) -> Failure {
        let text = format!("`{}` ended the stream in the middle of its answer", self.host);
        Failure::new(FailureKind::Interrupted, text)
    }

    /// A connection that failed.
    pub(super) fn unconnected(&self, error: &Error) -> Failure {
        let name = self.name;
        let (kind, advice) = match error {
            Error::Connect { .. } if self.is_local => {
                (FailureKind::Unreachable, "; is the server running, and is this its port?".to_owned())
            }
            Error::Address { .. } => (
                FailureKind::Unreachable,
                format!("; if it is meant to be, list it in `{name}.addresses` in ephor.toml"),
            ),
            Error::Forbidden(_) | Error::Setup(_) | Error::Connect { .. } => (FailureKind::Unreachable, String::new()),
            Error::Over => (FailureKind::Deadline, String::new()),
            Error::Silent { .. } => {
                (FailureKind::Timeout, format!("; `{name}.first_byte_seconds` in ephor.toml says how long it may take"))
            }
            Error::Idle { .. } => {
                (FailureKind::Timeout, format!("; `{name}.idle_seconds` in ephor.toml says how long it may pause"))
            }
            Error::Broken { .. } => (FailureKind::Interrupted, String::new()),
            Error::TooLarge { .. } => (FailureKind::Rejected, String::new()),
        };
        // What the system says of a connection may repeat what a server sent.
        Failure::new(kind, format!("{}{advice}", self.scrub.clean(&error.to_string())))
    }
}

/// A text of a server as a person may be shown it: without the key, on one line, and not long.
fn quoted(text: &str, scrub: &Scrub) -> String {
    let clean = scrub.clean(text);
    match clean.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
        None => clean,
    }
}

#[cfg(test)]
mod tests {
    use ephor_base::{FailureKind, Secret, Timestamp};
    use ephor_wire::Complaint;

    use super::{super::Kind, Asking, LONGEST, Scrub};

    fn told(status: u16, body: &[u8], scrub: &Scrub) -> ephor_base::Failure {
        let asking = Asking::of_test(Kind::OpenAi, scrub);
        asking.complained(&Complaint::of_response(status, &[], body, Timestamp(0)), Some(7))
    }

    #[test]
    fn every_status_has_its_words() {
        let quota = br#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#;
        for (status, body, kind, words) in [
            (401, &b"{}"[..], FailureKind::Unauthorized, "does not accept the key"),
            (402, b"", FailureKind::Quota, "wants to be paid (402: no reason given)"),
            (403, b"", FailureKind::Forbidden, "forbids the request"),
            (429, br#"{"error":{"message":"slow down"}}"#, FailureKind::Throttled, "asks to wait for 7 s (429: slow"),
            (429, quota, FailureKind::Quota, "the quota at `h` is spent (429: You exceeded"),
            (404, br#"{"error":"model \"x\" not found"}"#, FailureKind::Rejected, "check the model's name"),
            (422, br#"{"detail":"bad"}"#, FailureKind::Rejected, "refuses the request (422: bad)"),
            (307, b"", FailureKind::Rejected, "redirects elsewhere (307)"),
            (408, b"", FailureKind::Timeout, "took too long"),
            (500, b"<html>", FailureKind::ServerError, "failed (500: <html>)"),
        ] {
            let failure = told(status, body, &Scrub::default());
            assert_eq!((failure.kind, failure.status, failure.retry_after), (kind, Some(status), Some(7)));
            assert!(failure.message().contains(words), "{failure:?}");
        }
    }

    #[test]
    fn only_who_does_not_accept_the_key_is_answered_with_where_to_put_one() {
        assert!(told(401, b"", &Scrub::default()).message().ends_with("set KEY"));
        assert!(!told(403, b"", &Scrub::default()).message().contains("key"));
    }

    #[test]
    fn a_message_of_a_server_moves_no_cursor_has_an_end_and_no_key() {
        let key = "sk-0123456789abcdefghij";
        let scrub = Scrub::new([&Secret::new(key.to_owned())]);
        for before in [0, LONGEST - 10, LONGEST - 1] {
            let text = format!("\u{1b}[2J\u{202e}{}{key}{}", "x".repeat(before), "y".repeat(100_000));
            let failure = told(400, text.as_bytes(), &scrub);
            assert!(!failure.message().contains('\u{1b}') && !failure.message().contains("sk-0"), "{failure:?}");
            assert!(failure.message().chars().count() <= LONGEST + 100);
        }
    }
}
