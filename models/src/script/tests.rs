//! Scripts, line by line.

use std::time::Duration;

use ephor_base::{AnswerEnd, Failure, FailureKind, ModelAnswer, ToolUse};
use ephor_kernel::PreviewItem;

use super::{Script, ask, pieces};
use crate::{meter::Meter, testing::task};

async fn play(script: &str, ordinal: u64) -> (Result<ModelAnswer, Failure>, Vec<PreviewItem>) {
    let task = task("script", "demo", script, ordinal);
    let mut shown = Vec::new();
    let answer = ask(&task, &mut shown, &mut Meter::new(&task)).await;
    (answer, shown)
}

#[tokio::test]
async fn the_line_of_the_ordinal_is_played() {
    let script = concat!(
        r#"{"tool_calls":[{"name":"fs.search","arguments":{"pattern":"TODO"}},{"name":"x","arguments":"{oops"},{"name":"y"}]}"#,
        "\n\n",
        r#"{"text":"done"}"#,
        "\n"
    );
    let (first, _) = play(script, 0).await;
    let first = first.unwrap();
    assert_eq!(first.end, AnswerEnd::Complete);
    let tool_use = |id: &str, name: &str, arguments: &str| ToolUse {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    };
    assert_eq!(
        first.tool_uses,
        [
            tool_use("call-0-0", "fs.search", r#"{"pattern":"TODO"}"#),
            tool_use("call-0-1", "x", "{oops"),
            tool_use("call-0-2", "y", "{}")
        ]
    );
    let (second, _) = play(script, 1).await;
    let second = second.unwrap();
    assert_eq!((second.text.as_str(), second.end), ("done", AnswerEnd::Complete));
    assert!(second.usage.estimated);
    assert_eq!(second.usage.output, 2);
}

#[tokio::test]
async fn past_the_last_line_is_an_error_of_its_own() {
    for (script, ordinal) in [("", 0), ("{}\n", 1), ("{}", u64::MAX)] {
        let (end, _) = play(script, ordinal).await;
        assert_eq!(end.unwrap_err().kind, FailureKind::ScriptEnded);
    }
}

#[tokio::test]
async fn an_error_comes_after_the_text_of_its_line() {
    for (name, kind) in [
        ("throttled", FailureKind::Throttled),
        ("overflow", FailureKind::Overflow),
        ("timeout", FailureKind::Timeout),
        ("interrupted", FailureKind::Interrupted),
        ("invalid_json", FailureKind::InvalidJson),
    ] {
        let (end, shown) = play(&format!(r#"{{"text":"so far","error":"{name}"}}"#), 0).await;
        assert_eq!(end.unwrap_err().kind, kind);
        assert_eq!(text(&shown), "so far");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_line_takes_its_time_in_several_pieces() {
    let start = tokio::time::Instant::now();
    let (answer, shown) = play(r#"{"text":"zwölf Boxkämpfer jagen Viktor","delay_ms":1000}"#, 0).await;
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(950) && took <= Duration::from_millis(1050), "{took:?}");
    assert!(shown.len() >= 10, "{shown:?}");
    assert_eq!(text(&shown), answer.unwrap().text);
}

#[test]
fn what_is_no_script_names_its_line() {
    for (script, line, word) in [
        ("{}\n{\"tex\":1}", 2, "tex"),
        ("{}\n\nnonsense", 3, "object"),
        ("[]", 1, "expected"),
        ("{\"error\":\"boom\"}", 1, "boom"),
        ("{\"tool_calls\":[{}]}", 1, "name"),
        ("{\"tool_calls\":[{\"name\":\"a\",\"args\":1}]}", 1, "args"),
        ("{\"delay_ms\":-1}", 1, "-1"),
    ] {
        let bad = Script::parse(script).unwrap_err();
        assert_eq!(bad.line, line, "{script}");
        assert!(bad.why.contains(word) && !bad.why.contains("line 1"), "{bad}");
    }
}

#[test]
fn pieces_add_up_and_are_cut_between_characters() {
    for text in ["", "a", "äöüß", "日本語のテキスト", "hello world, this is a text"] {
        for count in [0, 1, 3, 100, usize::MAX] {
            assert_eq!(pieces(text, count).concat(), text);
        }
    }
}

fn text(shown: &[PreviewItem]) -> String {
    shown
        .iter()
        .filter_map(|item| if let PreviewItem::Text(text) = item { Some(text.as_str()) } else { None })
        .collect()
}
