//! For how long a provider asks to be left alone.

use std::time::{Duration, UNIX_EPOCH};

use ephor_base::Timestamp;

/// A wait beyond this is no wait but an end, and is not believed.
const LONGEST: Duration = Duration::from_secs(30 * 86_400);

/// What the headers ask for: `retry-after-ms` (Azure and OpenAI), or `Retry-After` in seconds or as an HTTP date (RFC 9110, section 10.2.3).
pub(super) fn asked(headers: &[(&str, &str)], now: Timestamp) -> Option<Duration> {
    let millis = || number(header(headers, "retry-after-ms")?, 1000.0);
    let after = || {
        let value = header(headers, "retry-after")?;
        seconds(value).or_else(|| until(value, now))
    };
    millis().or_else(after)
}

/// Whether the provider itself says that the same request may do better (`x-should-retry`).
pub(super) fn should_retry(headers: &[(&str, &str)]) -> Option<bool> {
    match header(headers, "x-should-retry")? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

fn header<'a>(headers: &[(&str, &'a str)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// A number of seconds, such as `30` or `34.07`.
pub(super) fn seconds(text: &str) -> Option<Duration> {
    number(text, 1.0)
}

/// A number, of which so many are a second.
fn number(text: &str, in_a_second: f64) -> Option<Duration> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = text.parse().ok().filter(|_| is_plain)?;
    Duration::try_from_secs_f64(number / in_a_second).ok().filter(|wait| *wait <= LONGEST)
}

/// The time from `now` until a date; none at all once it is past.
fn until(date: &str, now: Timestamp) -> Option<Duration> {
    let date = httpdate::parse_http_date(date).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let wait = date.saturating_sub(Duration::from_micros(now.0));
    (wait <= LONGEST).then_some(wait)
}
