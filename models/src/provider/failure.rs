//! What a server's refusals mean, wherever they come: as a status, as a body, or in the middle of a stream.

use ephor_base::{Failure, FailureKind};
use ephor_egress::Error;
use serde_json::Value;

use crate::scrub::Scrub;

/// The most characters of a server's text that are repeated.
const LONGEST: usize = 500;

/// What a server says of an error: `{"error": {"message", "type", "code"}}` and the forms that others use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Complaint {
    /// For a person: without the key, and not long.
    message: String,
    /// Its type and its code, in lower case; for comparison alone.
    words: String,
    /// The HTTP status that it names.
    status: Option<u16>,
}

/// Who complains, and what to do about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plaintiff<'a> {
    /// The host.
    pub(crate) host: &'a str,
    /// Where to put a key: the end of a sentence.
    pub(crate) key_hint: &'a str,
}

impl Complaint {
    /// Reads a response body, JSON or not.
    pub(crate) fn parse(body: &[u8], scrub: &Scrub) -> Self {
        let text = String::from_utf8_lossy(body);
        serde_json::from_str::<Value>(&text).map_or_else(|_| Self::plain(&text, scrub), |value| Self::of(&value, scrub))
    }

    /// Reads an error object, or an object that holds one.
    pub(crate) fn of(value: &Value, scrub: &Scrub) -> Self {
        let inner = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let message = match inner {
            Value::String(text) => text.clone(),
            inner => ["message", "detail", "error"]
                .iter()
                .find_map(|key| Some(inner.get(key)?.as_str()?.to_owned()))
                .unwrap_or_else(|| inner.to_string()),
        };
        let word = |key| match inner.get(key) {
            Some(Value::String(text)) => text.to_lowercase(),
            _ => String::new(),
        };
        let number = |key| inner.get(key).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
        let status = [number("status"), number("code")].into_iter().flatten().find(|code| (400..600).contains(code));
        Self { words: format!("{} {}", word("type"), word("code")), status, ..Self::plain(&message, scrub) }
    }

    fn plain(text: &str, scrub: &Scrub) -> Self {
        Self { message: quoted(text, scrub), ..Self::default() }
    }

    /// What it says, for a person.
    pub(crate) fn message(&self) -> &str {
        if self.message.is_empty() { "no reason given" } else { &self.message }
    }

    /// The prompt does not fit. Servers agree on neither code nor words.
    fn is_overflow(&self) -> bool {
        let message = self.message.to_lowercase();
        self.words.contains("context_length_exceeded")
            || self.words.contains("exceed_context_size")
            || message.contains("maximum context length")
            || message.contains("context length exceeded")
            || message.contains("exceeds the available context size")
            || message.contains("prompt is too long")
    }

    /// The account has nothing left, which asking again does not change.
    fn is_quota(&self) -> bool {
        self.words.contains("insufficient_quota") || self.words.contains("billing")
    }

    /// The status that it stands for where it came under another.
    fn meant(&self, otherwise: u16) -> u16 {
        let named = || {
            let known = [
                ("authentication", 401),
                ("invalid_api_key", 401),
                ("permission", 403),
                ("not_found", 404),
                ("rate_limit", 429),
                ("overloaded", 503),
                ("timeout", 504),
                ("invalid_request", 400),
                ("badrequest", 400),
            ];
            known.into_iter().find(|(word, _)| self.words.contains(word)).map(|(_, status)| status)
        };
        self.status.or_else(named).unwrap_or(otherwise)
    }

    /// A refusal that came with an HTTP status.
    pub(crate) fn refusal(&self, status: u16, from: Plaintiff<'_>, retry_after: Option<u32>) -> Failure {
        let mut failure = self.told(status, from, retry_after);
        (failure.status, failure.retry_after) = (Some(status), retry_after);
        failure
    }

    /// A refusal that came in what was to be the answer. It means what the same one means as a status; what names none is taken for
    /// the status `otherwise`.
    pub(crate) fn interruption(&self, from: Plaintiff<'_>, otherwise: u16) -> Failure {
        let mut failure = self.told(self.meant(otherwise), from, None);
        failure.status = self.status;
        failure
    }

    fn told(&self, status: u16, Plaintiff { host, key_hint }: Plaintiff<'_>, wait: Option<u32>) -> Failure {
        let what = self.message();
        let wait = wait.map(|seconds| format!(" for {seconds} s")).unwrap_or_default();
        let (kind, text) = match status {
            _ if self.is_quota() => (FailureKind::Quota, format!("the quota at `{host}` is spent ({status}: {what})")),
            _ if self.is_overflow() => {
                (FailureKind::Overflow, format!("the prompt is longer than the model can take ({what})"))
            }
            402 => (FailureKind::Quota, format!("`{host}` wants to be paid ({status}: {what})")),
            401 => {
                (FailureKind::Unauthorized, format!("`{host}` does not accept the key ({status}: {what}); {key_hint}"))
            }
            403 => (FailureKind::Forbidden, format!("`{host}` forbids the request ({status}: {what})")),
            408 | 504 => (FailureKind::Timeout, format!("`{host}` took too long ({status}: {what})")),
            429 => (FailureKind::Throttled, format!("`{host}` asks to wait{wait} ({status}: {what})")),
            300..=399 => (
                FailureKind::Rejected,
                format!("`{host}` redirects elsewhere ({status}), which is not followed; check `openai.base_url`"),
            ),
            404 => (
                FailureKind::Rejected,
                format!(
                    "`{host}` has no such model or path (404: {what}); check the model's name and `openai.base_url`"
                ),
            ),
            400..=499 => (FailureKind::Rejected, format!("`{host}` refuses the request ({status}: {what})")),
            _ => (FailureKind::ServerError, format!("`{host}` failed ({status}: {what})")),
        };
        Failure::new(kind, text)
    }
}

/// A text of a server as a person may be shown it: without the key, on one line, and not long.
pub(crate) fn quoted(text: &str, scrub: &Scrub) -> String {
    let line = |text: &str| text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>();
    // What is far behind the part that is shown need not be looked through.
    let near = text.get(..text.floor_char_boundary(LONGEST * 16)).unwrap_or_default();
    let clean = line(scrub.clean(near).trim());
    match clean.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", clean.get(..end).unwrap_or_default()),
        None => clean,
    }
}

/// A connection that failed, to a server on this machine or elsewhere.
pub(crate) fn of_connection(error: &Error, is_local: bool) -> Failure {
    let (kind, advice) = match error {
        Error::Connect { .. } if is_local => {
            (FailureKind::Unreachable, "; is the server running, and is this its port?")
        }
        Error::Address { .. } => {
            (FailureKind::Unreachable, "; if it is meant to be, list it in `openai.addresses` in ephor.toml")
        }
        Error::Forbidden(_) | Error::Setup(_) | Error::Connect { .. } => (FailureKind::Unreachable, ""),
        Error::Over => (FailureKind::Deadline, ""),
        Error::Silent { .. } => {
            (FailureKind::Timeout, "; `openai.first_byte_seconds` in ephor.toml says how long it may take")
        }
        Error::Idle { .. } => {
            (FailureKind::Timeout, "; `openai.idle_seconds` in ephor.toml says how long it may pause")
        }
        Error::Broken { .. } => (FailureKind::Interrupted, ""),
        Error::TooLarge { .. } => (FailureKind::Rejected, ""),
    };
    Failure::new(kind, format!("{error}{advice}"))
}

#[cfg(test)]
mod tests {
    use ephor_base::{FailureKind, Secret};

    use super::{Complaint, LONGEST, Plaintiff};
    use crate::scrub::Scrub;

    const FROM: Plaintiff<'_> = Plaintiff { host: "h", key_hint: "set KEY" };

    fn parse(body: &[u8]) -> Complaint {
        Complaint::parse(body, &Scrub::default())
    }

    #[test]
    fn every_status_has_its_kind() {
        let overflow = br#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        let llama = br#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
        let ollama = br#"{"error":"model \"x\" not found"}"#;
        let vllm = br#"{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}"#;
        let quota = br#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota"}}"#;
        for (status, body, kind) in [
            (401, &b"{}"[..], FailureKind::Unauthorized),
            (402, b"", FailureKind::Quota),
            (403, b"", FailureKind::Forbidden),
            (429, br#"{"error":{"message":"slow down"}}"#, FailureKind::Throttled),
            (429, quota, FailureKind::Quota),
            (400, overflow, FailureKind::Overflow),
            (400, llama, FailureKind::Overflow),
            (400, vllm, FailureKind::Overflow),
            (404, ollama, FailureKind::Rejected),
            (422, br#"{"detail":"bad"}"#, FailureKind::Rejected),
            (307, b"", FailureKind::Rejected),
            (408, b"", FailureKind::Timeout),
            (500, b"<html>", FailureKind::ServerError),
            (503, b"", FailureKind::ServerError),
            (504, b"", FailureKind::Timeout),
        ] {
            let failure = parse(body).refusal(status, FROM, Some(7));
            assert_eq!(
                (failure.kind, failure.status, failure.retry_after),
                (kind, Some(status), Some(7)),
                "{failure:?}"
            );
        }
    }

    #[test]
    fn an_error_in_the_answer_means_what_it_means_as_a_status() {
        for (error, kind) in [
            (r#"{"code":400,"message":"x"}"#, FailureKind::Rejected),
            (r#"{"code":401}"#, FailureKind::Unauthorized),
            (r#"{"code":"invalid_api_key"}"#, FailureKind::Unauthorized),
            (r#"{"status":403}"#, FailureKind::Forbidden),
            (r#"{"type":"permission_error"}"#, FailureKind::Forbidden),
            (r#"{"type":"not_found_error"}"#, FailureKind::Rejected),
            (r#"{"type":"invalid_request_error"}"#, FailureKind::Rejected),
            (r#"{"code":"rate_limit_exceeded"}"#, FailureKind::Throttled),
            (r#"{"code":429}"#, FailureKind::Throttled),
            (r#"{"type":"overloaded_error"}"#, FailureKind::ServerError),
            (r#"{"type":"server_error","code":500}"#, FailureKind::ServerError),
            (r#"{"code":7,"message":"x"}"#, FailureKind::ServerError),
            (r#""maximum context length is 4096""#, FailureKind::Overflow),
            (r#"{"code":400,"message":"maximum context length is 4096"}"#, FailureKind::Overflow),
            (r#"{"code":99999999999999999999}"#, FailureKind::ServerError),
        ] {
            assert_eq!(parse(error.as_bytes()).interruption(FROM, 500).kind, kind, "{error}");
        }
    }

    #[test]
    fn only_who_does_not_accept_the_key_is_answered_with_where_to_put_one() {
        assert!(parse(b"").refusal(401, FROM, None).message().ends_with("set KEY"));
        assert!(!parse(b"").refusal(403, FROM, None).message().contains("key"));
    }

    #[test]
    fn a_message_of_a_server_moves_no_cursor_has_an_end_and_no_key() {
        let key = "sk-0123456789abcdefghij";
        let scrub = Scrub::new(Some(&Secret::new(key.to_owned())));
        for before in [0, LONGEST - 10, LONGEST - 1] {
            let text = format!("\u{1b}[2J{}{key}{}", "x".repeat(before), "y".repeat(100_000));
            let complaint = Complaint::parse(text.as_bytes(), &scrub);
            assert!(!complaint.message.contains('\u{1b}') && !complaint.message.contains("sk-0"), "{complaint:?}");
            assert!(complaint.message.chars().count() <= LONGEST + 1);
        }
    }
}
