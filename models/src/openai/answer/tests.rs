//! Streams of Chat Completions, as servers really send them.

use ephor_base::{Failure, FailureKind, ModelAnswer, StopReason, ToolSpec, Usage};
use ephor_egress::Error;
use ephor_kernel::PreviewItem;
use futures_util::stream;

use super::Assembly;
use crate::{
    meter::Meter,
    openai::{names::Names, read_events, read_whole},
    testing::{task, tools},
};

type End = (Result<ModelAnswer, Failure>, Vec<PreviewItem>);

async fn read(pieces: Vec<Vec<u8>>) -> End {
    let mut task = task("openai", "gpt-x", "", 3);
    task.tools = tools();
    let (names, mut shown, mut meter) = (Names::new(&task.tools), Vec::new(), Meter::new(&task));
    let body = stream::iter(pieces.into_iter().map(Ok::<_, Error>));
    let end = read_events(&task, Assembly::new(&names, "h"), body, &mut shown, &mut meter).await;
    (end, shown)
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
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}"#;
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
    assert_eq!((answer.text.as_str(), answer.stop), ("Grüße 🦀", StopReason::End));
    assert_eq!(answer.usage, Usage { input: 7, output: 5, estimated: false });
    assert_eq!(shown, [PreviewItem::Text("Grüße".to_owned()), PreviewItem::Text(" 🦀".to_owned())]);
}

#[tokio::test]
async fn bytes_may_be_cut_anywhere() {
    let whole = format!(
        ": ping\r\n\r\ndata: {}\r\n\r\ndata: {}\r\n\r\ndata: {}\r\n\r\ndata: [DONE]\r\n\r\n",
        delta(r#"{"content":"日本 🦀"}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fs_read","arguments":"{\"path\":\"ü\"}"}}]}"#),
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
        &delta(r#"{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"fs_read","arguments":""}}]}"#),
        &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"pa"}}]}"#),
        &delta(r#"{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"fs_list","arguments":""}}]}"#),
        &delta(r#"{"tool_calls":[{"index":0,"function":{"arguments":"th\":\"x\"}"}},{"index":1,"function":{"arguments":"{}"}}]}"#),
        &finish("tool_calls"),
        "[DONE]",
    ])
    .await;
    let answer = end.unwrap();
    assert_eq!(calls(&answer), [("a", "fs.read", r#"{"path":"x"}"#), ("b", "fs.list", "{}")]);
    assert_eq!(answer.stop, StopReason::ToolUse);
    assert_eq!(shown, [PreviewItem::ToolUse("fs.read".to_owned()), PreviewItem::ToolUse("fs.list".to_owned())]);
}

#[tokio::test]
async fn servers_that_bend_the_rules_are_understood() {
    // Index 0 for every call, told apart by id, each call at once, and `stop` as the reason.
    let same_index = [
        &*delta(
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fs_read","arguments":"{\"path\":\"x\"}"}}]}"#,
        ),
        &*delta(
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"fs_read","arguments":"{\"path\":\"y\"}"}}]}"#,
        ),
        &*finish("stop"),
    ];
    let (end, _) = events(&same_index).await;
    let answer = end.unwrap();
    assert_eq!(calls(&answer), [("a", "fs.read", r#"{"path":"x"}"#), ("b", "fs.read", r#"{"path":"y"}"#)]);
    assert_eq!(answer.stop, StopReason::ToolUse);

    // Neither index nor id, the arguments as an object, the name repeated with every piece, no arguments at all.
    let bare = delta(
        r#"{"tool_calls":[{"function":{"name":"fs_read","arguments":{"path":"x"}}},{"function":{"name":"fs_list"}}]}"#,
    );
    let (end, shown) = events(&[&bare, &finish("stop")]).await;
    assert_eq!(calls(&end.unwrap()), [("call-3-0", "fs.read", r#"{"path":"x"}"#), ("call-3-1", "fs.list", "")]);
    assert_eq!(shown.len(), 2);

    let repeated = [
        &*delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fs_read","arguments":"{\"path\""}}]}"#),
        &*delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fs_read","arguments":":\"x\"}"}}]}"#),
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
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fs_read","arguments":"{\"path\": oops"}}]}"#);
    let (end, _) = events(&[&bad, &finish("tool_calls"), "[DONE]"]).await;
    assert_eq!(calls(&end.unwrap()), [("a", "fs.read", "{\"path\": oops")]);
}

#[tokio::test]
async fn a_thousand_chunks_and_256_calls_come_whole() {
    let mut data: Vec<String> = (0..1000).map(|at| delta(&format!(r#"{{"content":"{at} "}}"#))).collect();
    data.extend((0..256).map(|at| {
        delta(&format!(
            r#"{{"tool_calls":[{{"index":{at},"id":"c{at}","function":{{"name":"fs_read","arguments":"{{}}"}}}}]}}"#
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
        (r#"{"error":{"message":"boom","type":"server_error","code":500}}"#, FailureKind::Interrupted),
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
    assert_eq!(end.unwrap().stop, StopReason::Length);
}

#[tokio::test]
async fn other_reasons_to_stop_are_kept() {
    for (reason, stop) in
        [("length", StopReason::Length), ("content_filter", StopReason::Filtered), ("eos", StopReason::End)]
    {
        let (end, _) = events(&[&delta(r#"{"content":"x"}"#), &finish(reason)]).await;
        let answer = end.unwrap();
        assert_eq!((answer.stop, answer.usage.estimated), (stop, true));
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_a_stream_of_one() {
    let mut task = task("openai", "gpt-x", "", 0);
    task.tools = Vec::<ToolSpec>::new();
    let body = br#"{"choices":[{"message":{"role":"assistant","content":"hello","tool_calls":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
    let (names, mut shown, mut meter) = (Names::new(&[]), Vec::new(), Meter::new(&task));
    let (head, tail) = body.split_at(20);
    let body = stream::iter([Ok::<_, Error>(head.to_vec()), Ok(tail.to_vec())]);
    let end = read_whole(&task, Assembly::new(&names, "h"), body, &mut shown, &mut meter).await;
    assert_eq!(end.unwrap().text, "hello");
    assert_eq!(meter.partial(), Usage::default());
}
