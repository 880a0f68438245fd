//! Servers behind HTTP that misbehave.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use ephor_base::Arguments;
use ephor_mcp::{
    CallError, Client, Closed, Connection, HttpFault, Limits, OpenError, Opening, Post, PostError, Response, Revision,
    Tool,
};
use futures_util::{FutureExt, StreamExt, future::BoxFuture, stream};
use serde_json::{Value, json};

use super::server::{SMALL, arguments, block_on, call, echo, greeting, name, own, said, text};

/// What a server answers a post with.
#[derive(Clone, Default)]
struct Reply {
    status: u16,
    headers: Vec<(&'static str, String)>,
    pieces: Vec<Vec<u8>>,
    /// The body does not end.
    hangs: bool,
    /// The body breaks off.
    breaks: bool,
}

impl Reply {
    fn new(status: u16, kind: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("Content-Type", kind.into())], pieces: vec![body.into()], ..Self::default() }
    }

    fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json; charset=utf-8", body.to_string())
    }

    fn events(events: &[Value]) -> Self {
        let body: String = events.iter().map(|event| format!("event: message\ndata: {event}\n\n")).collect();
        Self::new(200, "text/event-stream", body)
    }
}

/// Headers and body of a post.
type Posted = (Vec<(String, String)>, Value);

/// A server in memory, one reply a post; `ID` in a body stands for the id of the request.
#[derive(Default)]
struct Web {
    replies: Mutex<VecDeque<Reply>>,
    posted: Mutex<Vec<Posted>>,
    dropped: Arc<AtomicUsize>,
}

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Post for Web {
    fn post(&self, headers: Vec<(String, String)>, body: Vec<u8>) -> BoxFuture<'_, Result<Response, PostError>> {
        let message: Value = serde_json::from_slice(&body).unwrap();
        let id = message["id"].to_string();
        self.posted.lock().unwrap().push((headers, message));
        let reply = self.replies.lock().unwrap().pop_front();
        let counted = Counted(Arc::clone(&self.dropped));
        async move {
            let reply = reply.ok_or("no route to host")?;
            let fill = |piece: &Vec<u8>| match String::from_utf8(piece.clone()) {
                Ok(text) => Bytes::from(text.replace("\"ID\"", &id)),
                Err(error) => Bytes::from(error.into_bytes()),
            };
            let mut all: Vec<Result<Bytes, PostError>> = reply.pieces.iter().map(|piece| Ok(fill(piece))).collect();
            if reply.breaks {
                all.push(Err("connection reset".into()));
            }
            let body = stream::iter(all);
            let body = if reply.hangs { body.chain(stream::pending()).boxed() } else { body.boxed() };
            let body = body.inspect(move |_| _ = &counted).boxed();
            let headers = reply.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
            Ok(Response { status: reply.status, headers, body })
        }
        .boxed()
    }
}

impl Web {
    fn of(replies: impl IntoIterator<Item = Reply>) -> Arc<Self> {
        Arc::new(Self { replies: Mutex::new(replies.into_iter().collect()), ..Self::default() })
    }

    /// The posted messages by method.
    fn methods(&self) -> Vec<String> {
        let posted = self.posted.lock().unwrap();
        posted.iter().map(|(_, message)| message["method"].as_str().unwrap_or("answer").to_owned()).collect()
    }

    /// A header of the post of this number.
    fn header(&self, post: usize, name: &str) -> Option<String> {
        let posted = self.posted.lock().unwrap();
        posted[post].0.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }
}

fn result(result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": "ID", "result": result})
}

fn greeted() -> [Reply; 2] {
    [Reply::json(200, &result(&greeting("2025-11-25"))), Reply { status: 202, ..Reply::default() }]
}

fn discovered() -> Reply {
    Reply::json(200, &result(&json!({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})))
}

/// A client of a server of 2025-11-25 that goes on with these replies.
async fn served(replies: impl IntoIterator<Item = Reply>) -> (Client, Arc<Web>) {
    let web = Web::of(greeted().into_iter().chain(replies));
    let connection = Connection::over_http(Arc::clone(&web) as Arc<dyn Post>, SMALL);
    (connection.open(Opening::Handshake).await.unwrap(), web)
}

/// What comes of a call that is answered so.
fn called(reply: Reply) -> Result<String, CallError> {
    block_on(async {
        let (client, _web) = served([reply]).await;
        call(&client).await.map(|answer| answer.into_untrusted().to_text())
    })
}

#[test]
fn an_answer_comes_as_a_body_or_as_an_event() {
    let done = result(&text("done"));
    assert_eq!(called(Reply::json(200, &done)).unwrap(), "done");
    assert_eq!(called(Reply::events(std::slice::from_ref(&done))).unwrap(), "done");
    // It counts when it has come, whether the body ends or not.
    assert_eq!(called(Reply { hangs: true, ..Reply::events(std::slice::from_ref(&done)) }).unwrap(), "done");
    // Byte by byte it is the same.
    let bytes = format!("data: {}\n\n", done.to_string().replace("\"ID\"", "2"));
    let pieces = bytes.bytes().map(|byte| vec![byte]).collect();
    assert_eq!(called(Reply { pieces, ..Reply::new(200, "text/event-stream", "") }).unwrap(), "done");
}

#[test]
fn a_response_that_is_no_answer_is_its_own_error() {
    let fault = |reply: Reply| match called(reply) {
        Err(CallError::Http(fault)) => fault,
        other => panic!("{other:?}"),
    };
    assert!(matches!(fault(Reply { status: 202, ..Reply::default() }), HttpFault::NoAnswer));
    assert!(matches!(fault(Reply::events(&[])), HttpFault::NoAnswer));
    assert!(matches!(fault(Reply::json(200, &json!({"jsonrpc": "2.0", "id": 99, "result": {}}))), HttpFault::NoAnswer));
    assert!(matches!(fault(Reply::new(200, "text/html", "<p>")), HttpFault::Kind { .. }));
    for status in [301, 302, 307, 308] {
        assert!(matches!(fault(Reply::json(status, &json!({}))), HttpFault::Redirect { .. }));
    }
    for status in [401, 403] {
        assert!(matches!(fault(Reply::json(status, &json!({}))), HttpFault::Unauthorized { .. }));
    }
    let HttpFault::Status { status: 500, says } = fault(Reply::new(500, "text/plain", "x".repeat(9000))) else {
        panic!()
    };
    assert_eq!(says.as_untrusted().len(), SMALL.text_bytes);
    assert!(matches!(fault(Reply::json(502, &json!({"oops": 1}))), HttpFault::Status { status: 502, .. }));
    assert!(matches!(fault(Reply { breaks: true, ..Reply::events(&[]) }), HttpFault::Broken(_)));
    assert!(matches!(fault(Reply { breaks: true, ..Reply::json(200, &json!(1)) }), HttpFault::Broken(_)));
    assert!(matches!(called(Reply::new(200, "application/json", "{")), Err(CallError::Malformed(_))));
    assert!(matches!(called(Reply::new(200, "application/json", b"\xff".to_vec())), Err(CallError::Malformed(_))));
    let mid = called(Reply::new(200, "text/event-stream", "data: {\"jsonrpc\":"));
    assert!(matches!(mid, Err(CallError::Closed(Closed::MidMessage { .. }))), "{mid:?}");
    for kind in ["application/json", "text/event-stream"] {
        let long = called(Reply::new(200, kind, format!("data: {}", "x".repeat(5000))));
        assert!(matches!(long, Err(CallError::Closed(Closed::TooLong { most: 4000 }))), "{long:?}");
    }
}

#[test]
fn a_refusal_is_read_from_a_status_that_is_none_of_success() {
    let refusal = json!({"jsonrpc": "2.0", "id": "ID", "error": {"code": -32602, "message": "no such tool"}});
    for status in [200, 400, 404, 500] {
        let error = called(Reply::json(status, &refusal)).unwrap_err();
        assert!(matches!(&error, CallError::Refused(refusal) if refusal.code == -32602), "{status}: {error}");
    }
    // A server that could not read the request cannot name it.
    let refusal = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "parse error"}});
    assert!(matches!(called(Reply::json(400, &refusal)), Err(CallError::Refused(_))));
}

#[test]
fn an_answer_on_the_response_of_another_request_is_not_taken() {
    block_on(async {
        // The response of the second claims to answer the first, which still waits.
        let stolen = json!({"jsonrpc": "2.0", "id": 2, "result": text("stolen")});
        let hanging = Reply { hangs: true, ..Reply::events(&[]) };
        let (client, _web) = served([hanging, Reply::events(&[stolen, result(&text("own"))])]).await;
        let mut first = Box::pin(call(&client));
        assert!(futures_util::poll!(&mut first).is_pending());
        assert_eq!(said(call(&client).await), "own");
        assert!(futures_util::poll!(&mut first).is_pending());
        assert_eq!(client.notices().stray, 1);
    });
    block_on(async {
        let other = json!({"jsonrpc": "2.0", "id": 2, "result": text("late")});
        let (client, _web) =
            served([Reply::json(200, &result(&text("a"))), Reply::events(&[other, result(&text("b"))])]).await;
        assert_eq!([said(call(&client).await), said(call(&client).await)], ["a", "b"]);
        assert_eq!(client.notices().stray, 1);
    });
}

#[test]
fn a_flood_on_a_response_ends_that_call_alone() {
    let note = json!({"jsonrpc": "2.0", "method": "notifications/made/up"});
    block_on(async {
        let (client, web) = served([
            Reply::events(&vec![note; 30]),
            Reply { status: 202, ..Reply::default() },
            Reply::json(200, &result(&text("on"))),
        ])
        .await;
        let flooded = call(&client).await;
        assert!(matches!(flooded, Err(CallError::Closed(Closed::Flooded { most: 20 }))), "{flooded:?}");
        assert_eq!(said(call(&client).await), "on");
        assert_eq!(web.methods()[2..], ["tools/call", "notifications/cancelled", "tools/call"]);
    });
}

#[test]
fn progress_and_requests_on_a_response_are_heard_and_refused() {
    let progress = |token: Value, done: u32| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": done}});
    let asks = json!({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}});
    let events =
        [progress(json!("ID"), 1), progress(json!(77), 2), asks, progress(json!("ID"), 3), result(&text("done"))];
    block_on(async {
        let pieces = events.iter().map(|event| format!("data: {event}\n\n").into_bytes()).collect();
        let reply = Reply { pieces, ..Reply::new(200, "text/event-stream", "") };
        let (client, web) = served([reply, Reply { status: 202, ..Reply::default() }]).await;
        let mut heard = Vec::new();
        let answer = client.call(&echo(), &Arguments::default(), &mut |progress| heard.push(progress.done)).await;
        assert_eq!((said(answer).as_str(), heard), ("done", vec![1.0, 3.0]));
        let posted = web.posted.lock().unwrap();
        assert_eq!((&posted[3].1["id"], &posted[3].1["error"]["code"]), (&json!("q"), &json!(-32601)));
    });
}

#[test]
fn a_session_is_named_in_every_request_until_it_is_over() {
    let [mut hello, accepted] = greeted();
    hello.headers.push(("MCP-Session-Id", "abc-123".into()));
    let web = Web::of([hello, accepted, Reply::json(200, &result(&text("a"))), Reply::json(404, &json!({}))]);
    block_on(async {
        let connection = Connection::over_http(Arc::clone(&web) as Arc<dyn Post>, SMALL);
        let client = connection.open(Opening::Handshake).await.unwrap();
        assert_eq!(said(call(&client).await), "a");
        assert!(matches!(call(&client).await, Err(CallError::Http(HttpFault::SessionOver))));
        assert!(matches!(call(&client).await, Err(CallError::Http(HttpFault::Unreachable(_)))));
    });
    assert_eq!((web.header(0, "mcp-session-id"), web.header(0, "mcp-protocol-version")), (None, None));
    for post in 1..4 {
        assert_eq!(web.header(post, "mcp-session-id").as_deref(), Some("abc-123"));
        assert_eq!(web.header(post, "mcp-protocol-version").as_deref(), Some("2025-11-25"));
    }
    assert_eq!(web.header(2, "accept").as_deref(), Some("application/json, text/event-stream"));
}

#[test]
fn a_session_that_cannot_be_a_header_is_refused() {
    for bad in ["", "a b", "a\r\nb", "ü", &"x".repeat(1025)] {
        let [mut hello, accepted] = greeted();
        hello.headers.push(("mcp-session-id", bad.to_owned()));
        let opened = block_on(Connection::over_http(Web::of([hello, accepted]), SMALL).open(Opening::Handshake));
        assert!(matches!(opened, Err(OpenError::Call(CallError::Http(HttpFault::BadSession { .. })))), "{bad}");
    }
}

#[test]
fn a_call_that_is_given_up_is_cancelled_with_the_next_post_or_by_closing_the_response() {
    let hanging = Reply { hangs: true, ..Reply::events(&[]) };
    block_on(async {
        let accepted = Reply { status: 202, ..Reply::default() };
        let (client, web) = served([hanging.clone(), accepted, Reply::json(200, &result(&json!({})))]).await;
        {
            let mut call = Box::pin(call(&client));
            assert!(futures_util::poll!(&mut call).is_pending());
        }
        client.ping().await.unwrap();
        let methods = web.methods();
        assert_eq!(methods[2..], ["tools/call", "notifications/cancelled", "ping"]);
        assert_eq!(web.posted.lock().unwrap()[3].1["params"]["requestId"], 2);
    });
    block_on(async {
        let web = Web::of([discovered(), hanging, discovered()]);
        let connection = Connection::over_http(Arc::clone(&web) as Arc<dyn Post>, SMALL);
        let client = connection.open(Opening::Discovery).await.unwrap();
        let before = web.dropped.load(Ordering::SeqCst);
        {
            let mut call = Box::pin(call(&client));
            assert!(futures_util::poll!(&mut call).is_pending());
            assert_eq!(web.dropped.load(Ordering::SeqCst), before);
        }
        assert_eq!(web.dropped.load(Ordering::SeqCst), before + 1, "the response is closed");
        client.ping().await.unwrap();
        assert_eq!(web.methods(), ["server/discover", "tools/call", "server/discover"]);
    });
}

#[test]
fn a_server_of_2026_is_told_in_headers_what_the_body_says() {
    let schema = own(json!({"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
        "flag": {"type": "boolean", "x-mcp-header": "Flag"},
        "absent": {"type": "string", "x-mcp-header": "Absent"},
    }}));
    let tool = Tool::new(&name(), "wörk".into(), None, schema, &Limits::DEFAULT).unwrap();
    let refuses = Reply::json(400, &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32020, "message": "h"}}));
    let web = Web::of([refuses, discovered(), Reply::json(200, &result(&text("done")))]);
    block_on(async {
        let connection = Connection::over_http(Arc::clone(&web) as Arc<dyn Post>, SMALL);
        let client = connection.open(Opening::Handshake).await.unwrap();
        assert_eq!(client.revision(), Revision::V2026_07_28);
        let arguments =
            arguments(json!({"region": " Welt\r\nHost: x", "deep": {"n": -7}, "flag": true, "absent": null}));
        assert_eq!(said(client.call(&tool, &arguments, &mut |_| ()).await), "done");
    });
    let header = |name: &str| web.header(2, name);
    assert_eq!(header("mcp-protocol-version").as_deref(), Some("2026-07-28"));
    assert_eq!(header("mcp-method").as_deref(), Some("tools/call"));
    assert_eq!(header("mcp-name").as_deref(), Some("=?base64?d8O2cms=?="));
    assert_eq!(header("mcp-param-Region").as_deref(), Some("=?base64?IFdlbHQNCkhvc3Q6IHg=?="));
    assert_eq!((header("mcp-param-N").as_deref(), header("mcp-param-Flag").as_deref()), (Some("-7"), Some("true")));
    assert_eq!(header("mcp-param-Absent"), None);
    assert_eq!(web.header(1, "mcp-method").as_deref(), Some("server/discover"));
    let posted = web.posted.lock().unwrap();
    assert!(
        posted
            .iter()
            .all(|(headers, _)| headers.iter().all(|(_, value)| value.is_ascii() && !value.contains(['\r', '\n'])))
    );
}

#[test]
fn a_server_that_cannot_be_reached_or_is_something_else_is_an_error() {
    let opened =
        |replies: Vec<Reply>| block_on(Connection::over_http(Web::of(replies), SMALL).open(Opening::Handshake));
    assert!(matches!(opened(vec![]), Err(OpenError::Call(CallError::Http(HttpFault::Unreachable(_))))));
    let page = Reply::new(404, "text/html", "<p>nothing here</p>");
    let error = opened(vec![page.clone(), page]).unwrap_err();
    assert!(error.to_string().contains("404") && error.to_string().contains("nothing here"), "{error}");
    let error = opened(vec![Reply::new(401, "application/json", "{}")]).unwrap_err();
    assert!(matches!(error, OpenError::Call(CallError::Http(HttpFault::Unauthorized { status: 401 }))));
    // One that takes no notification has not agreed.
    let [hello, _] = greeted();
    assert!(opened(vec![hello, Reply::new(500, "text/plain", "")]).is_err());
}
