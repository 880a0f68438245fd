//! What a provider says of an error: `{"error": {"message", "type", "code", "status", "details"}}` and the forms that others use.

use std::time::Duration;

use super::{Complaint, wait};
use crate::json::Fields;

/// The words of an error, as far as they decide something.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// For a person: on one line, and bounded.
    pub(super) message: String,
    /// The HTTP status that it names.
    pub(super) status: Option<u16>,
    /// For how long it asks to be left alone (`google.rpc.RetryInfo`).
    pub(super) wait: Option<Duration>,
    /// Its type, code, status and the reasons in its details, in lower case; for comparison alone.
    codes: String,
}

/// `text` on one line, and cut where it is longer than a message may be.
pub(super) fn bounded(text: &str) -> String {
    let text = text.trim();
    let near = text.get(..text.floor_char_boundary(Complaint::LONGEST)).unwrap_or_default();
    near.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

impl Words {
    pub(super) fn of_body(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        Self::of_json(text.trim_start_matches('\u{feff}'))
    }

    /// Reads JSON of an error, or of an object or a list that holds one; any other text is the message.
    pub(super) fn of_json(text: &str) -> Self {
        let listed = format!("{{\"error\":{text}}}");
        let list = Fields::parse(&listed).unwrap_or_default();
        let first = list.objects("error").into_iter().next().map(|first| first.source().to_owned());
        let text = first.as_deref().unwrap_or(text);
        let Ok(outer) = Fields::parse(text) else {
            let said = list.text("error");
            return Self { message: bounded(said.as_deref().unwrap_or(text)), ..Self::default() };
        };
        match (outer.object("error"), outer.text("error")) {
            (Some(inner), _) => Self::of(&inner),
            (None, Some(message)) => Self { message: bounded(&message), ..Self::of(&outer) },
            (None, None) => Self::of(&outer),
        }
    }

    fn of(error: &Fields<'_>) -> Self {
        let said = ["message", "detail", "error"].iter().find_map(|key| error.text(key));
        let message = said.unwrap_or_else(|| if error.is_empty() { String::new() } else { error.source().to_owned() });
        let status = ["status", "code", "status_code"].iter().filter_map(|key| error.count(key));
        let mut codes: Vec<String> = ["type", "code", "status"].iter().filter_map(|key| error.text(key)).collect();
        let mut waits = None;
        let detail = error.object("details").into_iter().chain(error.objects("details"));
        for detail in detail {
            codes.extend(["reason", "error_code"].iter().filter_map(|key| detail.text(key)));
            codes.extend(detail.objects("violations").iter().filter_map(|violation| violation.text("quotaId")));
            waits = waits.or_else(|| wait::seconds(detail.text("retryDelay")?.strip_suffix('s')?));
        }
        Self {
            message: bounded(&message),
            status: status.filter_map(|code| u16::try_from(code).ok()).find(|code| (400..600).contains(code)),
            wait: waits,
            codes: codes.join(" ").to_lowercase(),
        }
    }

    /// The status that its type or code stands for.
    pub(super) fn named_status(&self) -> Option<u16> {
        let known = [
            ("authentication", 401),
            ("unauthenticated", 401),
            ("invalid_api_key", 401),
            ("permission", 403),
            ("not_found", 404),
            ("too_large", 413),
            ("rate_limit", 429),
            ("resource_exhausted", 429),
            ("overloaded", 529),
            ("unavailable", 503),
            ("timeout", 504),
            ("deadline_exceeded", 504),
            ("server_error", 500),
            ("api_error", 500),
            ("internal", 500),
            ("invalid", 400),
            ("failed_precondition", 400),
            ("badrequest", 400),
            ("context_length", 400),
        ];
        known.into_iter().find(|(word, _)| self.codes.contains(word)).map(|(_, status)| status)
    }

    /// The account has nothing left, which asking again does not change.
    pub(super) fn is_quota(&self) -> bool {
        let codes = ["insufficient_quota", "billing", "spend_limit", "credits_exhausted"];
        codes.iter().any(|code| self.codes.contains(code))
            || self.message.to_lowercase().contains("credit balance is too low")
            || self.is_daily()
    }

    /// What a model may do in a day is done; another model has a quota of its own.
    pub(super) fn is_daily(&self) -> bool {
        self.codes.contains("perday")
    }

    /// The key is refused under another status than 401.
    pub(super) fn is_unauthorized(&self) -> bool {
        self.codes.contains("api_key_invalid") || self.codes.contains("invalid_api_key")
    }

    /// The conversation does not fit. Providers agree on neither code nor words; each says what does not fit, by which measure, and that it
    /// is too much.
    pub(super) fn is_overflow(&self) -> bool {
        if ["context_length", "context_window", "exceed_context"].iter().any(|code| self.codes.contains(code)) {
            return true;
        }
        let message = self.message.to_lowercase();
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        says(&["context", "prompt", "input"])
            && says(&["length", "window", "size", "token", "long"])
            && says(&["exceed", "maximum", "too long", "too large", "overflow", "greater than"])
            && !self.is_about_images()
    }

    /// The model takes no pictures.
    pub(super) fn is_blind(&self) -> bool {
        let message = self.message.to_lowercase();
        let refuses = ["not support", "n't support", "unsupported", "support image", "no vision"];
        self.is_about_images() && refuses.iter().any(|word| message.contains(word))
    }

    fn is_about_images(&self) -> bool {
        let message = self.message.to_lowercase();
        ["image", "vision", "multimodal"].iter().any(|word| message.contains(word))
    }
}
