//! Servers that bend the rules, and what is no answer at all.

use ephor_base::FailureKind;
use ephor_wire::{Decoder, End, Grammar};

use crate::common::{TURN, end, limits, read};

fn chat(data: &[&str]) -> ephor_wire::Answer {
    let stream: String = data.iter().map(|data| format!("data: {data}\n\n")).collect();
    read(Grammar::Chat, [stream.as_bytes()]).1
}

fn delta(delta: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]}}"#)
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn calls(answer: &ephor_wire::Answer) -> Vec<(&str, &str, &str)> {
    answer.calls().into_iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect()
}

#[test]
fn calls_are_told_apart_by_index_id_or_neither() {
    let same_index = [
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{\"path\":\"x\"}"}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"fsRead","arguments":"{\"path\":\"y\"}"}}]}"#),
        finish("stop"),
    ];
    let answer = chat(&same_index.each_ref().map(|data| &**data));
    assert_eq!(calls(&answer), [("a", "fs.read", r#"{"path":"x"}"#), ("b", "fs.read", r#"{"path":"y"}"#)]);

    let neither = delta(
        r#"{"tool_calls":[{"function":{"name":"fsRead","arguments":{"path": 1e2}}},{"function":{"name":"fsList"}}]}"#,
    );
    let answer = chat(&[&neither, &finish("stop")]);
    assert_eq!(calls(&answer), [("call-7-0", "fs.read", r#"{"path": 1e2}"#), ("call-7-1", "fs.list", "")]);

    let repeated = [
        delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fsRead","arguments":"{\"path\""}}]}"#),
        delta(r#"{"tool_calls":[{"index":0,"id":"","function":{"name":"fsRead","arguments":":\"x\"}"}}]}"#),
        "[DONE]".to_owned(),
    ];
    let answer = chat(&repeated.each_ref().map(|data| &**data));
    assert_eq!(calls(&answer), [("call-7-0", "fs.read", r#"{"path":"x"}"#)]);

    let whole = delta(r#"{"tool_calls":[{"index":0,"function":{"name":"x","arguments":"{}"}}]}"#);
    let answer = chat(&[&whole, &whole, &finish("tool_calls")]);
    assert_eq!(calls(&answer), [("call-7-0", "x", "{}"), ("call-7-1", "x", "{}")], "what is whole takes no more");

    let twice = delta(
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"x"}},{"index":1,"id":"a","function":{"name":"y"}}]}"#,
    );
    let answer = chat(&[&twice, &finish("tool_calls")]);
    assert_eq!(
        calls(&answer),
        [("a", "x", ""), ("call-7-1", "y", "")],
        "an id that is not the only one could not be answered"
    );
}

#[test]
fn arguments_that_are_no_json_pass_as_they_came() {
    let bad =
        delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{\"path\": oops"}}]}"#);
    assert_eq!(calls(&chat(&[&bad, &finish("tool_calls"), "[DONE]"])), [("a", "fs.read", "{\"path\": oops")]);
}

#[test]
fn every_reason_to_stop_is_one_of_the_ends() {
    for (reason, expected) in [
        ("stop", "complete"),
        ("STOP", "complete"),
        ("eos", "complete"),
        ("tool_calls", "complete"),
        ("length", "cut_off:tokens"),
        ("max_output_reached", "cut_off:other"),
        ("content_filter", "refused"),
        ("error", "failed:interrupted"),
    ] {
        let answer = chat(&[&delta(r#"{"content":"x"}"#), &finish(reason)]);
        assert_eq!(end(&answer.end), expected, "{reason}");
    }
    let worse = chat(&[&delta(r#"{"content":"x"}"#), &finish("length"), &finish("stop")]);
    assert_eq!(end(&worse.end), "cut_off:tokens", "nothing that is said later makes it whole");
}

#[test]
fn an_answer_that_is_not_complete_calls_nothing() {
    let call = delta(r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"fsRead","arguments":"{}"}}]}"#);
    for reason in ["length", "content_filter", "error", "new_reason"] {
        assert!(chat(&[&call, &finish(reason)]).calls().is_empty());
    }
    assert!(chat(&[&call]).calls().is_empty(), "nor does one that breaks off");
}

#[test]
fn nothing_takes_an_answer_back_that_had_ended() {
    let whole = format!("data: {}\n\ndata: {}\n\n", delta(r#"{"content":"all"}"#), finish("stop"));
    for rest in [
        "",
        "data: {\"error\":{\"message\":\"late\"}}\n\n",
        "data: nonsense\n\n",
        "data: {\"choices\":[{\"del",
        &"x".repeat(10_000_000),
    ] {
        let (mut decoder, mut events) = (Decoder::new(Grammar::Chat, limits(), TURN), Vec::new());
        decoder.push(whole.as_bytes(), &mut events).unwrap();
        assert!(decoder.has_ended());
        decoder.push(rest.as_bytes(), &mut events).unwrap();
        let answer = decoder.finish(&mut events);
        assert_eq!((answer.text().as_str(), answer.end), ("all", End::Complete));
    }
}

#[test]
fn what_is_no_answer_is_told_from_one_that_broke_off() {
    for grammar in Grammar::ALL {
        for (body, kind) in [
            ("<html>", FailureKind::Rejected),
            ("It works!", FailureKind::Rejected),
            ("It works!\n", FailureKind::Rejected),
            (r#"{"hello": 1}"#, FailureKind::Rejected),
            ("[1]", FailureKind::Rejected),
            ("data: {\"hello\": 1}\n\ndata: [DONE]\n\n", FailureKind::Rejected),
            ("data: nonsense\n\n", FailureKind::Rejected),
            ("data: [DONE]\n\n", FailureKind::Interrupted),
            (": ping\n\n", FailureKind::Interrupted),
            ("da", FailureKind::Interrupted),
            ("", FailureKind::Interrupted),
            ("{}", FailureKind::Interrupted),
            (r#"{"choices":[{"mess"#, FailureKind::Interrupted),
            (r#"{"error":{"code":500,"message":"x"},"type":"error"}"#, FailureKind::ServerError),
        ] {
            let (_, answer) = read(grammar, [body.as_bytes()]);
            let End::Failed(why) = answer.end else { panic!("{grammar} {body}") };
            assert_eq!(why.kind(), kind, "{grammar} {body}");
        }
    }
}

#[test]
fn what_is_not_shown_counts_all_the_same() {
    let thought = "x".repeat(3000);
    for (grammar, stream) in [
        (Grammar::Chat, format!("data: {}\n\n", delta(&format!(r#"{{"some_new_thought":"{thought}"}}"#)))),
        (Grammar::Ollama, format!(r#"{{"message":{{"thinking":"{thought}"}},"done":false}}"#)),
        (
            Grammar::Gemini,
            format!(r#"data: {{"candidates":[{{"content":{{"parts":[{{"text":"{thought}","thought":true}}]}}}}]}}"#)
                + "\n\n",
        ),
    ] {
        let mut decoder = Decoder::new(grammar, limits(), TURN);
        decoder.push(stream.as_bytes(), &mut Vec::new()).unwrap();
        assert!(decoder.written() >= 3000, "{grammar}");
    }
}

#[test]
fn a_message_that_repeats_what_came_in_pieces_is_not_said_twice() {
    let all = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"ab","tool_calls":[{"id":"a","function":{"name":"x","arguments":"{}"}}]},"finish_reason":"stop"}]}"#;
    let answer = chat(&[&delta(r#"{"content":"a"}"#), &delta(r#"{"content":"b"}"#), all]);
    assert_eq!((answer.text().as_str(), calls(&answer)), ("ab", vec![("a", "x", "{}")]));
}

#[test]
fn bytes_that_are_no_utf8_cost_only_themselves() {
    let stream =
        [b"data: {\"choices\":[{\"delta\":{\"content\":\"a\xFFb\"}}]}\n\n".as_slice(), b"data: [DONE]\n\n"].concat();
    let (_, answer) = read(Grammar::Chat, stream.chunks(1));
    assert_eq!((answer.text().as_str(), answer.end), ("a\u{fffd}b", End::Complete));
}

#[test]
fn an_event_may_have_several_lines_that_end_in_any_way() {
    let lines = [
        ": hi",
        "event: x",
        "data: {\"choices\":[{\"delta\":",
        "data",
        "data:{\"content\":\"all\"}}]}",
        "",
        "data: [DONE]",
        "",
    ];
    for ends in [["\n", "\n"], ["\r", "\r"], ["\r\n", "\r\n"], ["\r\n", "\n"], ["\r", "\r\n"], ["\n", "\r"]] {
        let stream: String = lines.iter().zip(ends.iter().cycle()).map(|(line, end)| format!("{line}{end}")).collect();
        for size in [1, 2, stream.len()] {
            let (_, answer) = read(Grammar::Chat, stream.as_bytes().chunks(size));
            assert_eq!((answer.text().as_str(), answer.end), ("all", End::Complete), "{ends:?} {size}");
        }
    }
}

#[test]
fn the_lines_of_an_event_are_joined_by_line_breaks() {
    let stream = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"function\":{\"name\":\"x\",\"arguments\":{\"a\":\r\n\
                  data: 1}}}]},\"finish_reason\":\"stop\"}]}\r\n\r\n";
    let (_, answer) = read(Grammar::Chat, [stream.as_bytes()]);
    assert_eq!(calls(&answer), [("call-7-0", "x", "{\"a\":\n1}")]);
}
