//! What a refusal means, by status, headers and body.

use std::time::Duration;

use ephor_base::{FailureKind, Timestamp};
use ephor_wire::{Complaint, Dialect, Feature, Recourse};

/// Sunday, 22 November 2026, 10:00:00 GMT.
const NOW: Timestamp = Timestamp(1_795_341_600_000_000);

fn of(status: u16, headers: &[(&str, &str)], body: &str) -> Complaint {
    Complaint::of_response(status, headers, body.as_bytes(), NOW)
}

const fn after(seconds: u64) -> Recourse {
    Recourse::After(Duration::from_secs(seconds))
}

#[test]
fn every_status_has_its_kind_and_its_recourse() {
    use FailureKind::{Forbidden, Overflow, Quota, Rejected, ServerError, Throttled, Timeout, Unauthorized};
    for (status, kind, recourse) in [
        (400, Rejected, Recourse::Never),
        (401, Unauthorized, Recourse::Never),
        (402, Quota, Recourse::Never),
        (403, Forbidden, Recourse::Never),
        (404, Rejected, Recourse::Never),
        (307, Rejected, Recourse::Never),
        (408, Timeout, Recourse::Backoff),
        (409, ServerError, Recourse::Backoff),
        (413, Overflow, Recourse::Shorter),
        (422, Rejected, Recourse::Never),
        (429, Throttled, Recourse::OtherKey(None)),
        (500, ServerError, Recourse::Backoff),
        (502, ServerError, Recourse::Backoff),
        (503, ServerError, Recourse::Backoff),
        (504, Timeout, Recourse::Backoff),
        (529, ServerError, Recourse::Backoff),
    ] {
        for body in ["", "{}", "<html>", r#"{"error":{"message":"no"}}"#] {
            let complaint = of(status, &[], body);
            assert_eq!((complaint.kind(), complaint.recourse(), complaint.status()), (kind, recourse, Some(status)));
        }
    }
}

#[test]
fn a_provider_says_how_long_to_wait() {
    for (headers, seconds) in [
        (vec![("Retry-After", "30")], 30.0),
        (vec![("retry-after", " 1.5 ")], 1.5),
        (vec![("RETRY-AFTER", "0")], 0.0),
        (vec![("Retry-After", "Sun, 22 Nov 2026 10:00:42 GMT")], 42.0),
        (vec![("Retry-After", "Sun, 22 Nov 2026 09:00:00 GMT")], 0.0),
        (vec![("Retry-After", "60"), ("retry-after-ms", "250")], 0.25),
    ] {
        let wait = Duration::from_secs_f64(seconds);
        assert_eq!(of(429, &headers, "").recourse(), Recourse::OtherKey(Some(wait)), "{headers:?}");
        assert_eq!(of(503, &headers, "").recourse(), Recourse::After(wait), "{headers:?}");
        assert_eq!(of(503, &headers, "").retry_after(), Some(wait));
        assert_eq!(of(401, &headers, "").recourse(), Recourse::Never, "no wait gives another key");
    }
    for bad in
        ["", "soon", "-5", "1e3", "NaN", "inf", "99999999999999999999", "2592001", "Sun, 22 Nov 2099 10:00:00 GMT"]
    {
        assert_eq!(of(503, &[("Retry-After", bad)], "").recourse(), Recourse::Backoff, "{bad}");
    }
}

#[test]
fn a_provider_may_say_itself_whether_to_try_again() {
    assert_eq!(of(500, &[("x-should-retry", "false")], "").recourse(), Recourse::Never);
    assert_eq!(of(400, &[("X-Should-Retry", "true"), ("retry-after", "3")], "").recourse(), after(3));
    assert_eq!(of(429, &[("x-should-retry", "true")], "").recourse(), Recourse::OtherKey(None));
    assert_eq!(of(413, &[("x-should-retry", "false")], "").recourse(), Recourse::Shorter);
}

#[test]
fn gemini_says_in_the_body_how_long_to_wait() {
    let body = r#"[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[
        {"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}]},
        {"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34.5s"}]}}]"#;
    assert_eq!(of(429, &[], body).recourse(), Recourse::OtherKey(Some(Duration::from_millis(34_500))));
    let daily = body.replace("PerMinute", "PerDay");
    assert_eq!(
        (of(429, &[], &daily).kind(), of(429, &[], &daily).recourse()),
        (FailureKind::Quota, Recourse::OtherModel)
    );
    let key = r#"{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"@type":"x","reason":"API_KEY_INVALID"}]}}"#;
    assert_eq!(of(400, &[], key).kind(), FailureKind::Unauthorized);
}

#[test]
fn what_is_spent_is_not_asked_for_again() {
    for (status, body) in [
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#,
        ),
        (403, r#"{"type":"error","error":{"type":"billing_error","message":"no"}}"#),
        (400, r#"{"error":{"code":"billing_hard_limit_reached","message":"no"}}"#),
    ] {
        let complaint = of(status, &[("retry-after", "5")], body);
        assert_eq!((complaint.kind(), complaint.recourse()), (FailureKind::Quota, Recourse::Never), "{body}");
    }
}

#[test]
fn a_conversation_that_is_too_long_is_a_class_of_its_own() {
    for body in [
        r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#,
        r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error"}}"#,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5000","type":"BadRequestError","code":400}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
        r#"{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}"#,
        r#"{"error":"the input length exceeds the context length"}"#,
        r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens"}"#,
    ] {
        for status in [400, 500] {
            let complaint = of(status, &[], body);
            assert_eq!((complaint.kind(), complaint.recourse()), (FailureKind::Overflow, Recourse::Shorter), "{body}");
        }
        assert_eq!(of(429, &[], body).kind(), FailureKind::Throttled);
    }
    for body in [
        r#"{"error":{"message":"max_tokens is too large: 9999. This model supports at most 4096 completion tokens"}}"#,
        r#"{"error":{"message":"Invalid input: image exceeds the maximum size of 5 MB"}}"#,
        r#"{"error":{"message":"temperature exceeds the maximum of 2"}}"#,
    ] {
        assert_eq!(of(400, &[], body).kind(), FailureKind::Rejected, "{body}");
    }
}

#[test]
fn a_message_is_bounded_and_on_one_line() {
    let long = format!("\u{1b}[2J a\nb {}", "é".repeat(100_000));
    for body in [
        long.clone(),
        format!("{{\"error\":{}}}", serde_json::json!(long)),
        serde_json::json!([{ "error": { "message": long } }]).to_string(),
    ] {
        let complaint = of(400, &[], &body);
        assert!(complaint.message().len() <= Complaint::LONGEST && !complaint.message().contains(['\u{1b}', '\n']));
        assert!(complaint.message().contains("a b éé"), "{}", complaint.message().get(..40).unwrap());
    }
    assert_eq!(of(500, &[], "").message(), "");
    assert_eq!(
        of(422, &[], r#"{"detail":[{"loc":["body"],"msg":"bad"}]}"#).message(),
        r#"{"detail":[{"loc":["body"],"msg":"bad"}]}"#
    );
    assert_eq!(of(404, &[], r#"{"error":"model 'x' not found"}"#).message(), "model 'x' not found");
}

#[test]
fn a_server_that_refuses_a_parameter_is_asked_in_its_own_dialect() {
    let openai =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let plain = Dialect::COMPATIBLE;
    assert!(plain.after(openai).unwrap().has(Feature::MaxCompletionTokens));
    let unknown = Dialect::NATIVE.after("Unrecognized request argument: max_completion_tokens").unwrap();
    assert_eq!(unknown, Dialect::NATIVE.without(Feature::MaxCompletionTokens));
    for (message, feature) in [
        ("unknown field `stream_options`", Feature::UsageInStream),
        ("'response_format' of type 'json_schema' is not supported", Feature::JsonSchema),
        ("Encrypted content is not supported with this model.", Feature::EncryptedReasoning),
        ("Unsupported parameter: 'reasoning.effort'", Feature::Effort),
        ("extra field prompt_cache_key", Feature::CacheKey),
        ("temperature: Extra inputs are not permitted", Feature::Sampling),
        ("`top_p` is deprecated for this model.", Feature::Sampling),
    ] {
        let all = Dialect::NATIVE;
        assert_eq!(all.after(message), Some(all.without(feature)), "{message}");
        assert_eq!(all.without(feature).after("no such model"), None);
    }
    let object = plain.without(Feature::JsonSchema);
    assert_eq!(object.after("response_format"), Some(object.without(Feature::JsonObject)));
    assert_eq!(plain.after("max_tokens is too large: 9999"), None);
}
