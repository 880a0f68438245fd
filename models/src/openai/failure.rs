//! What a server's refusals mean.

use ephor_base::{Failure, FailureKind};
use ephor_egress::Error;
use serde_json::Value;

/// The longest message of a server that is repeated.
const LONGEST: usize = 500;

/// What a server says of an error: `{"error": {"message", "type", "code"}}` and the forms that others use.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Complaint {
    pub(crate) message: String,
    /// Its type and its code, in lower case.
    words: String,
}

impl Complaint {
    /// Reads a response body, JSON or not.
    pub(crate) fn parse(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        serde_json::from_str::<Value>(&text).map_or_else(|_| Self::plain(&text), |value| Self::of(&value))
    }

    /// Reads an error object, or an object that holds one.
    pub(crate) fn of(value: &Value) -> Self {
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
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        };
        Self { words: format!("{} {}", word("type"), word("code")), ..Self::plain(&message) }
    }

    fn plain(text: &str) -> Self {
        let message: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(LONGEST).collect();
        Self { message: message.trim().to_owned(), words: String::new() }
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

    /// A refusal with an HTTP status, by the server at `host`.
    pub(crate) fn refusal(
        &self,
        status: u16,
        host: &str,
        retry_after: Option<&str>,
        where_to_put_a_key: &str,
    ) -> Failure {
        let what = if self.message.is_empty() { "no reason given" } else { &self.message };
        let (kind, text) = match status {
            401 | 403 => (
                FailureKind::Unauthorized,
                format!("`{host}` does not accept the key ({status}: {what}); {where_to_put_a_key}"),
            ),
            408 | 504 => (FailureKind::Timeout, format!("`{host}` took too long ({status}: {what})")),
            429 => {
                let wait = retry_after.map(|after| format!("; retry after {after}")).unwrap_or_default();
                (FailureKind::Throttled, format!("`{host}` asks to wait ({what}{wait})"))
            }
            300..=399 => (
                FailureKind::Rejected,
                format!("`{host}` redirects elsewhere ({status}), which is not followed; check the base URL"),
            ),
            _ if self.is_overflow() => {
                (FailureKind::Overflow, format!("the prompt is longer than the model can take ({what})"))
            }
            404 => (
                FailureKind::Rejected,
                format!("`{host}` has no such model or path (404: {what}); check the model's name and the base URL"),
            ),
            400..=499 => (FailureKind::Rejected, format!("`{host}` refuses the request ({status}: {what})")),
            _ => (FailureKind::Interrupted, format!("`{host}` failed ({status}: {what})")),
        };
        Failure::new(kind, text)
    }

    /// An error in the middle of a stream.
    pub(crate) fn interruption(&self, host: &str) -> Failure {
        let what = if self.message.is_empty() { "no reason given" } else { &self.message };
        if self.is_overflow() {
            return Failure::new(
                FailureKind::Overflow,
                format!("the prompt is longer than the model can take ({what})"),
            );
        }
        let throttled =
            ["rate_limit", "429", "overloaded", "insufficient_quota"].iter().any(|word| self.words.contains(word));
        let kind = if throttled { FailureKind::Throttled } else { FailureKind::Interrupted };
        Failure::new(kind, format!("`{host}` broke off in the middle of its answer: {what}"))
    }
}

/// A connection that failed.
pub(crate) fn of_connection(error: &Error) -> Failure {
    let kind = match error {
        Error::Forbidden(_) | Error::Address { .. } | Error::Setup(_) | Error::Connect { .. } => {
            FailureKind::Unreachable
        }
        Error::Idle { .. } => FailureKind::Timeout,
        Error::Broken { .. } => FailureKind::Interrupted,
        Error::TooLarge { .. } => FailureKind::Rejected,
    };
    Failure::new(kind, error.to_string())
}

#[cfg(test)]
mod tests {
    use ephor_base::FailureKind;

    use super::Complaint;

    #[test]
    fn every_status_has_its_kind() {
        let overflow = br#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
        let llama = br#"{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}"#;
        let ollama = br#"{"error":"model \"x\" not found"}"#;
        let vllm = br#"{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}"#;
        for (status, body, kind) in [
            (401, &b"{}"[..], FailureKind::Unauthorized),
            (403, b"", FailureKind::Unauthorized),
            (429, br#"{"error":{"message":"slow down"}}"#, FailureKind::Throttled),
            (400, overflow, FailureKind::Overflow),
            (400, llama, FailureKind::Overflow),
            (400, vllm, FailureKind::Overflow),
            (404, ollama, FailureKind::Rejected),
            (422, br#"{"detail":"bad"}"#, FailureKind::Rejected),
            (307, b"", FailureKind::Rejected),
            (408, b"", FailureKind::Timeout),
            (500, b"<html>", FailureKind::Interrupted),
            (503, b"", FailureKind::Interrupted),
            (504, b"", FailureKind::Timeout),
        ] {
            let failure = Complaint::parse(body).refusal(status, "h", Some("7"), "set a key");
            assert_eq!(failure.kind, kind, "{status}: {failure:?}");
        }
    }

    #[test]
    fn the_wait_and_the_way_to_a_key_are_told() {
        let throttled = Complaint::parse(b"").refusal(429, "h", Some("17"), "");
        assert!(throttled.message.contains("retry after 17"));
        assert!(Complaint::parse(b"").refusal(401, "h", None, "set KEY").message.ends_with("set KEY"));
    }

    #[test]
    fn a_message_of_a_server_moves_no_cursor_and_has_an_end() {
        let complaint = Complaint::parse(format!("\u{1b}[2J{}", "x".repeat(10_000)).as_bytes());
        assert!(!complaint.message.contains('\u{1b}') && complaint.message.len() <= 500);
    }
}
