//! Streams of Chat Completions, as servers really send them.

use ephor_base::{AnswerEnd, Failure, FailureKind, ModelAnswer, Secret, Usage};
use ephor_egress::Error;
use ephor_kernel::PreviewItem;
use futures_util::stream;

use super::{Asking, Kind, reading};
use crate::{
    meter::Meter,
    scrub::Scrub,
    testing::{task, tools},
};

type End = (Result<ModelAnswer, Failure>, Vec<PreviewItem>);

async fn read_pieces(pieces: Vec<Result<Vec<u8>, Error>>, scrub: &Scrub) -> (End, Usage) {
    let mut task = task("openai", "gpt-x", "", 3);
    task.tools = tools();
    let asking = Asking::of_test(Kind::OpenAi, scrub);
    let (mut shown, mut meter) = (Vec::new(), Meter::new(&task));
    meter.sent();
    let end = reading::read((&task, 1000), &asking, stream::iter(pieces), &mut shown, &mut meter).await;
    ((end, shown), meter.partial())
}

async fn read(pieces: Vec<Vec<u8>>) -> End {
    read_pieces(pieces.into_iter().map(Ok).collect(), &Scrub::default()).await.0
}

async fn events(data: &[&str]) -> End {
    read(vec![data.iter().map(|data| format!("data: {data}\n\n")).collect::<String>().into_bytes()]).await
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn text(shown: &[PreviewItem]) -> String {
    shown
        .iter()
        .filter_map(|item| if let PreviewItem::Text(text) = item { Some(text.as_str()) } else { None })
        .collect()
}

fn calls(answer: &ModelAnswer) -> Vec<(&str, &str, &str)> {
    answer.tool_uses.iter().map(|tool| (tool.id.as_str(), tool.name.as_str(), tool.arguments.as_str())).collect()
}

#[tokio::test]
async fn text_streams_and_usage_comes_last() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":70,"completion_tokens":5.0,"total_tokens":75}}"#;
    let (end, shown) = events(&[
        &delta(r#"{"role":"assistant","content":""}"#),
        &delta(r#"{"content":"Grüße"}"#),
        &delta(r#"{"content":" 🦀"}"#),
        &finish("stop"),
        usage,
        "[DONE]",
    ])
    .await;
    let answer = end.unwrap();
    assert_eq!((answer.text.as_str(), answer.end), ("Grüße 🦀", AnswerEnd::Complete));
    assert_eq!(answer.usage, Usage { input: 70, output: 5, ..Usage::default() });
    assert_eq!(shown, [PreviewItem::Text("Grüße".to_owned()), PreviewItem::Text(" 🦀".to_owned())]);
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let whole = format!(
        ": ping\r\n\r\ndata: {}\r\n\r\ndata: {}\r\n\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n",
        delta(r#"{"content":"日本 🦀"}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{\"path\":\"ü\"}"}}]}"#),
        finish("tool_calls"),
    )
    .into_bytes();
    for cut in 0..whole.len() {
        let (head, tail) = whole.split_at(cut);
        let (end, shown) = read(vec![head.to_vec(), tail.to_vec()]).await;
        let answer = end.unwrap();
        assert_eq!((answer.text.as_str(), text(&shown).as_str()), ("日本 🦀", "日本 🦀"));
        assert_eq!(calls(&answer), [("a", "fs.read", "{\"path\":\"ü\"}")]);
    }
    let (end, _) = read(whole.iter().map(|byte| vec![*byte]).collect()).await;
    assert_eq!(end.unwrap().text, "日本 🦀");
}

#[tokio::test]
async fn several_calls_are_put_together_by_index() {
    let (end, shown) = events(&[
        &delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"fsRead","arguments":""}}]}"#),
        &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"pa"}}]}"#),
        &delta(r#"{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"fsList","arguments":""}}]}"#),
        &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"th\":\"x\"}"}},{"index":1,"function":{"arguments":"{}"}}]}"#),
        &finish("tool_calls"),
        "[DONE]",
    ])
    .await;
    let answer = end.unwrap();
    assert_eq!(calls(&answer), [("a", "fs.read", r#"{"path":"x"}"#), ("b", "fs.list", "{}")]);
    assert_eq!(answer.end, AnswerEnd::Complete);
    assert_eq!(shown, [PreviewItem::ToolUse("fs.read".to_owned()), PreviewItem::ToolUse("fs.list".to_owned())]);
}

#[tokio::test]
async fn servers_that_bend_the_rules_are_understood() {
    // Index 0 for every call, told apart by id, each call at once, and `stop` as the reason.
    let same_index = [
        &*delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{\"path\":\"x\"}"}}]}"#),
        &*delta(r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"fsRead","arguments":"{\"path\":\"y\"}"}}]}"#),
        &*finish("stop"),
    ];
    let (end, _) = events(&same_index).await;
    let answer = end.unwrap();
    assert_eq!(calls(&answer), [("a", "fs.read", r#"{"path":"x"}"#), ("b", "fs.read", r#"{"path":"y"}"#)]);
    assert_eq!(answer.end, AnswerEnd::Complete);

    // Neither index nor id, the arguments as an object, the name repeated with every piece, no arguments at all.
    let bare = delta(
        r#"{"tool_calls":[{"function":{"name":"fsRead","arguments":{"path":"x"}}},{"function":{"name":"fsList"}}]}"#,
    );
    let (end, shown) = events(&[&bare, &finish("stop")]).await;
    assert_eq!(calls(&end.unwrap()), [("call-3-0", "fs.read", r#"{"path":"x"}"#), ("call-3-1", "fs.list", "")]);
    assert_eq!(shown.len(), 2);

    let repeated = [
        &*delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fsRead","arguments":"{\"path\""}}]}"#),
        &*delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fsRead","arguments":":\"x\"}"}}]}"#),
        "[DONE]",
    ];
    let (end, _) = events(&repeated).await;
    assert_eq!(calls(&end.unwrap()), [("call-3-0", "fs.read", r#"{"path":"x"}"#)]);

    // One id for two calls: the second gets its own, or it could not be answered.
    let twice = delta(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"a","function":{"name":"y"}}]}"#,
    );
    let (end, _) = events(&[&twice, &finish("tool_calls")]).await;
    assert_eq!(calls(&end.unwrap()), [("a", "x", ""), ("call-3-1", "y", "")]);
}

#[tokio::test]
async fn arguments_that_are_no_json_pass_as_they_came() {
    let bad =
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{\"path\": oops"}}]}"#);
    let (end, _) = events(&[&bad, &finish("tool_calls"), "[DONE]"]).await;
    assert_eq!(calls(&end.unwrap()), [("a", "fs.read", "{\"path\": oops")]);
}

#[tokio::test]
async fn a_thousand_chunks_and_256_calls_come_whole() {
    let mut data: Vec<String> = (0..1000).map(|at| delta(&format!(r#"{{"content":"{at} "}}"#))).collect();
    data.extend((0..256).map(|at| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":{at},"id":"c{at}","function":{{"name":"fsRead","arguments":"{{}}"}}}}]}}"#
        ))
    }));
    data.push(finish("tool_calls"));
    let (end, shown) = events(&data.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let answer = end.unwrap();
    assert_eq!((answer.tool_uses.len(), shown.len()), (256, 1256));
    assert!(answer.text.ends_with("999 "));
}

#[tokio::test]
async fn an_error_in_the_stream_has_its_kind() {
    for (error, kind) in [
        (
            r#"{"error":{"message":"slow down","type":"rate_limit_error","code":"rate_limit_exceeded"}}"#,
            FailureKind::Throttled,
        ),
        (r#"{"error":{"message":"boom","type":"server_error","code":500}}"#, FailureKind::ServerError),
        (r#"{"error":"maximum context length is 4096"}"#, FailureKind::Overflow),
        (r#"{"hello"#, FailureKind::Rejected),
    ] {
        let (end, shown) = events(&[&delta(r#"{"content":"so far"}"#), error]).await;
        assert_eq!(end.unwrap_err().kind, kind);
        assert_eq!(text(&shown), "so far");
    }
}

#[tokio::test]
async fn a_stream_that_just_ends_is_interrupted() {
    for data in [vec![], vec![delta(r#"{"content":"so f"}"#)]] {
        let (end, _) = events(&data.iter().map(String::as_str).collect::<Vec<_>>()).await;
        assert_eq!(end.unwrap_err().kind, FailureKind::Interrupted);
    }
    let (end, _) = read(vec![b"data: {\"choices\":[{\"del".to_vec()]).await;
    assert_eq!(end.unwrap_err().kind, FailureKind::Interrupted);
}

#[tokio::test]
async fn a_server_that_ignores_the_limit_is_cut_off() {
    let long = delta(&format!(r#"{{"content":"{}"}}"#, "x".repeat(4096 * 17)));
    let (end, _) = events(&[&long]).await;
    assert_eq!(end.unwrap().end, AnswerEnd::CutOff);
}

#[tokio::test]
async fn every_reason_to_stop_is_one_of_the_ends() {
    for (reason, end) in [
        ("length", AnswerEnd::CutOff),
        ("content_filter", AnswerEnd::Refused),
        ("MAX_TOKENS", AnswerEnd::CutOff),
        ("max_output_reached", AnswerEnd::CutOff),
        ("stop", AnswerEnd::Complete),
        ("STOP", AnswerEnd::Complete),
        ("eos", AnswerEnd::Complete),
    ] {
        let (answer, _) = events(&[&delta(r#"{"content":"x"}"#), &finish(reason)]).await;
        let answer = answer.unwrap();
        assert_eq!((answer.end, answer.usage.estimated), (end, true));
    }
    // Nothing that is said later makes it whole.
    let (answer, _) = events(&[&delta(r#"{"content":"x"}"#), &finish("length"), &finish("stop")]).await;
    assert_eq!(answer.unwrap().end, AnswerEnd::CutOff);
    let (end, _) = events(&[&delta(r#"{"content":"x"}"#), &finish("error")]).await;
    assert_eq!(end.unwrap_err().kind, FailureKind::Interrupted);
    let (answer, _) = events(&[&delta(r#"{"refusal":"no"}"#), &finish("stop")]).await;
    assert_eq!(answer.unwrap().end, AnswerEnd::Refused);
}

#[tokio::test]
async fn an_answer_that_was_cut_off_names_no_tool() {
    let call = delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{}"}}]}"#);
    for reason in ["length", "content_filter"] {
        let (answer, _) = events(&[&call, &finish(reason), "[DONE]"]).await;
        assert!(answer.unwrap().tool_uses.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn what_becomes_of_the_connection_does_not_take_a_complete_answer_back() {
    let whole = format!("data: {}\n\ndata: {}\n\n", delta(r#"{"content":"all"}"#), finish("stop")).into_bytes();
    let broken = || Error::Broken { host: "h".to_owned(), why: "reset".to_owned() };
    for rest in [
        vec![],
        vec![Err(broken())],
        vec![Ok(b"data: {\"error\":{\"message\":\"late\"}}\n\n".to_vec())],
        vec![Ok(b"data: nonsense\n\n".to_vec())],
        vec![Ok(b"data: {\"choices\":[{\"del".to_vec())],
        vec![Ok(vec![b'x'; 10_000_000])],
    ] {
        let pieces = [vec![Ok(whole.clone())], rest].concat();
        let ((end, _), _) = read_pieces(pieces, &Scrub::default()).await;
        let answer = end.unwrap();
        assert_eq!((answer.text.as_str(), answer.end), ("all", AnswerEnd::Complete));
    }
    let task = task("openai", "gpt-x", "", 3);
    let scrub = Scrub::default();
    let asking = Asking::of_test(Kind::OpenAi, &scrub);
    let held = futures_util::StreamExt::chain(stream::iter([Ok(whole)]), stream::pending());
    let end = reading::read((&task, 1000), &asking, held, &mut Vec::new(), &mut Meter::new(&task)).await;
    assert_eq!(end.unwrap().text, "all");
    let ((end, _), _) = read_pieces(vec![Err(broken())], &Scrub::default()).await;
    assert_eq!(end.unwrap_err().kind, FailureKind::Interrupted);
}

#[tokio::test]
async fn what_is_no_answer_is_told_from_one_that_broke_off() {
    for (body, kind) in [
        ("<html>", FailureKind::Rejected),
        ("It works!", FailureKind::Rejected),
        (r#"{"hello": 1}"#, FailureKind::Rejected),
        (r#"[1]"#, FailureKind::Rejected),
        (r#"{"object":"error","message":"overloaded","code":50}"#, FailureKind::Rejected),
        (r#"{"error":{"code":500}}"#, FailureKind::ServerError),
        ("data: {\"hello\": 1}\n\ndata: [DONE]\n\n", FailureKind::Rejected),
        ("data: [DONE]\n\n", FailureKind::Interrupted),
        (": ping\n\n", FailureKind::Interrupted),
        ("", FailureKind::Interrupted),
        (r#"{"choices":[{"mess"#, FailureKind::Interrupted),
    ] {
        let (end, _) = read(vec![body.as_bytes().to_vec()]).await;
        assert_eq!(end.unwrap_err().kind, kind, "{body}");
    }
}

#[tokio::test]
async fn what_is_not_shown_counts_all_the_same() {
    let think = delta(&format!(r#"{{"reasoning_content":"{}"}}"#, "x".repeat(3000)));
    let pieces = vec![Ok(format!("data: {think}\n\n").into_bytes())];
    let ((end, shown), used) = read_pieces(pieces, &Scrub::default()).await;
    assert!(end.is_err() && shown.is_empty() && used.output >= 1000, "{used:?}");
}

#[tokio::test]
async fn nothing_of_an_answer_has_the_key() {
    let key = "sk-0123456789abcdefghij";
    let scrub = Scrub::new([&Secret::new(key.to_owned())]);
    let (head, tail) = key.split_at(9);
    let call = format!(
        r#"{{"tool_calls":[{{"id":"{key}","function":{{"name":"{key}","arguments":"{{\"a\":\"{key}\"}}"}}}}]}}"#
    );
    let data = [
        delta(&format!(r#"{{"content":"it is {head}"}}"#)),
        delta(&format!(r#"{{"content":"{tail}!"}}"#)),
        delta(&call),
    ];
    let text: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    let pieces = vec![Ok(format!("{text}data: {}\n\n", finish("stop")).into_bytes())];
    let ((end, shown), _) = read_pieces(pieces, &scrub).await;
    let answer = end.unwrap();
    assert_eq!(answer.text, "it is [key]!");
    assert_eq!(calls(&answer), [("[key]", "[key]", r#"{"a":"[key]"}"#)]);
    assert!(!format!("{shown:?}").contains("0123456789"), "{shown:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_a_stream_of_one() {
    let body = br#"{"choices":[{"message":{"role":"assistant","content":"hello","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        let (end, _) = read(vec![head.to_vec(), tail.to_vec()]).await;
        assert_eq!(end.unwrap().text, "hello");
    }
}
