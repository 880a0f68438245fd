//! Servers whose answers are not what they should be: each its own error, or an answer that says what is missing.

use ephor_mcp::{Answer, CallError, Client, Closed, Lie, Limits, Media, Omitted, Part};
use serde_json::{Value, json};

use super::server::{SMALL, call, said, served, text};

/// What comes of a call whose answer is this line, `@@` standing for its id.
fn answered(line: &str) -> Result<Answer, CallError> {
    let script = async |end: &mut super::server::End| {
        let (id, _) = end.request("tools/call").await;
        end.raw(line.replace("@@", &id.to_string()).as_bytes()).await;
        end.raw(b"\n").await;
        end.left().await;
    };
    let (result, closed) = served(SMALL, script, async |client: Client| call(&client).await);
    assert!(matches!(closed, Closed::Released), "the connection goes on: {closed}");
    result.map(ephor_mcp::Untrusted::into_untrusted)
}

fn with(result: &Value) -> Result<Answer, CallError> {
    answered(&json!({"jsonrpc": "2.0", "id": "@@", "result": result}).to_string().replace("\"@@\"", "@@"))
}

/// The place of the lie.
fn lie(result: Result<Answer, CallError>) -> String {
    match result {
        Err(CallError::Lie(Lie { place, .. })) => place,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_that_is_none_fails_its_call_at_once() {
    let cases = [
        (r#"{"jsonrpc":"2.0","id":@@,"result":{},"error":{"code":1,"message":"m"}}"#, "message"),
        (r#"{"jsonrpc":"2.0","id":@@}"#, "message"),
        (r#"{"jsonrpc":"2.0","id":@@,"result":null}"#, "message"),
        (r#"{"jsonrpc":"2.0","id":@@,"result":[]}"#, "message.result"),
        (r#"{"jsonrpc":"2.0","id":@@,"result":"done"}"#, "message.result"),
        (r#"{"jsonrpc":"1.0","id":@@,"result":{}}"#, "message.jsonrpc"),
        (r#"{"id":@@,"result":{}}"#, "message.jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":@@,"error":"no"}"#, "message.error"),
        (r#"{"jsonrpc":"2.0","id":@@,"error":{"message":"no"}}"#, "message.error.code"),
        (r#"{"jsonrpc":"2.0","id":@@,"error":{"code":1.5,"message":"no"}}"#, "message.error.code"),
        (r#"{"jsonrpc":"2.0","id":@@,"error":{"code":1,"message":2}}"#, "message.error.message"),
    ];
    for (line, place) in cases {
        assert_eq!(lie(answered(line)), place, "{line}");
    }
}

#[test]
fn a_result_that_lies_about_types_is_refused_with_the_place() {
    let cases = [
        (json!({"content": "text"}), "result.content"),
        (json!({"content": ["text"]}), "result.content[0]"),
        (json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": 5}]}), "result.content[1].text"),
        (json!({"content": [{"type": "text"}]}), "result.content[0].text"),
        (json!({"content": [{"text": "a"}]}), "result.content[0].type"),
        (json!({"content": [{"type": "image", "data": "&&&", "mimeType": "image/png"}]}), "result.content[0].data"),
        (json!({"content": [{"type": "audio", "data": [1, 2]}]}), "result.content[0].data"),
        (json!({"content": [{"type": "resource", "resource": "file:///"}]}), "result.content[0].resource"),
        (json!({"content": [{"type": "resource", "resource": {"uri": "u"}}]}), "result.content[0].resource.text"),
        (json!({"content": [{"type": "resource_link", "uri": "u"}]}), "result.content[0].name"),
        (json!({"content": [], "isError": "no"}), "result.isError"),
        (json!({"content": [], "resultType": "task"}), "result.resultType"),
        (json!({"content": [], "resultType": 1}), "result.resultType"),
    ];
    for (result, place) in cases {
        assert_eq!(lie(with(&result)), place, "{result}");
    }
}

#[test]
fn a_server_that_wants_more_input_is_not_given_it() {
    let result = json!({"resultType": "input_required", "inputRequests": {"a": {"method": "sampling/createMessage"}}});
    assert!(matches!(with(&result), Err(CallError::InputRequired)));
}

#[test]
fn a_refusal_is_told_in_the_servers_words_cut_and_without_hidden_characters() {
    let line = json!({"jsonrpc": "2.0", "id": "@@", "error": {"code": -7, "message": format!("\u{1b}[2J{}", "x".repeat(500))}});
    let error = answered(&line.to_string().replace("\"@@\"", "@@")).unwrap_err();
    let CallError::Refused(refusal) = &error else { panic!("{error:?}") };
    assert_eq!((refusal.code, refusal.message.as_untrusted().len()), (-7, SMALL.text_bytes));
    assert!(error.to_string().contains("\\u001b[2J") && !error.to_string().contains('\u{1b}'), "{error}");
}

#[test]
fn a_tool_that_could_not_do_it_is_an_answer() {
    let answer = with(&json!({"content": [{"type": "text", "text": "no such file"}], "isError": true})).unwrap();
    assert!(answer.failed && answer.omitted.is_nothing());
    assert_eq!(answer.parts, [Part::Text("no such file".into())]);
}

#[test]
fn every_kind_of_part_is_read() {
    let answer = with(&json!({"resultType": "complete", "content": [
        {"type": "image", "data": "AQID", "mimeType": "image/png", "annotations": {"priority": 1}},
        {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "d"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "t"}},
        {"type": "hologram", "data": 1},
    ], "structuredContent": {"n": 1}}))
    .unwrap();
    let media = Media { kind: "image/png".into(), bytes: vec![1, 2, 3] };
    let link = Part::Link { uri: "file:///a".into(), name: "a".into(), description: Some("d".into()) };
    let resource = Part::TextResource { uri: "file:///b".into(), text: "t".into() };
    assert_eq!(answer.parts, [Part::Image(media), link, resource, Part::Unknown("hologram".into())]);
    assert_eq!(answer.structured, Some(super::server::own(json!({"n": 1}))));
    let text = answer.to_text();
    assert_eq!(
        text,
        "[image: image/png, 3 bytes]\n[link: a, file:///a]\n[resource: file:///b]\nt\n[a part of the unknown kind hologram]"
    );
}

#[test]
fn what_is_over_the_bounds_is_left_out_and_said() {
    // 600 bytes are kept: a text is cut within them, at a whole character.
    let answer = with(&text(&"ü".repeat(400))).unwrap();
    assert_eq!(answer.parts, [Part::Text("ü".repeat(300))]);
    assert_eq!(answer.omitted, Omitted { parts: 1, bytes: 200, structured: false });
    assert!(answer.to_text().ends_with("[truncated: 200 bytes of 1 parts are left out]"));
    // An image that does not fit whole is of no use.
    let answer = with(&json!({"content": [{"type": "image", "data": "AAAA".repeat(300)}]})).unwrap();
    assert_eq!((answer.parts.len(), answer.omitted), (0, Omitted { parts: 1, bytes: 1200, structured: false }));
    // Four parts are kept.
    let parts: Vec<_> = (0..7).map(|n| json!({"type": "text", "text": n.to_string()})).collect();
    let answer = with(&json!({"content": parts})).unwrap();
    assert_eq!((answer.parts.len(), answer.omitted.parts), (4, 3));
    // What the parts have used up, the structured content lacks.
    let answer = with(
        &json!({"content": [{"type": "text", "text": "x".repeat(590)}], "structuredContent": [1, 2, 3, 4, 5, 6, 7]}),
    );
    let answer = answer.unwrap();
    assert!(answer.structured.is_none() && answer.omitted.structured);
    assert!(answer.to_text().contains("and the structured content"));
}

#[test]
fn a_request_that_is_too_long_is_not_sent() {
    let arguments = super::server::arguments(json!({"a": "x".repeat(5000)}));
    let script = async |end: &mut super::server::End| {
        let (id, _) = end.request("ping").await;
        end.answer(&id, json!({})).await;
        end.left().await;
    };
    served(SMALL, script, async |client: Client| {
        let called = client.call(&super::server::echo(), &arguments, &mut |_| ()).await;
        assert!(matches!(called, Err(CallError::Large { bytes: 5000.., most: 4000 })), "{called:?}");
        client.ping().await.expect("the server answers");
    });
}

#[test]
fn what_an_honest_server_says_arrives_whole() {
    let long = "word ".repeat(100_000);
    let script = async |end: &mut super::server::End| {
        let (id, params) = end.request("tools/call").await;
        assert_eq!((&params["name"], &params["_meta"]["progressToken"]), (&json!("echo"), &id));
        end.answer(&id, text(&long)).await;
        end.left().await;
    };
    let (answer, _) = served(Limits::DEFAULT, script, async |client: Client| call(&client).await);
    assert_eq!(said(answer), long);
}
