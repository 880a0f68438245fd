//! How a revision is agreed on, and how it is not.

use ephor_mcp::{CallError, Client, Closed, Connection, Limits, OpenError, Opening, Revision};
use serde_json::{Value, json};

use super::server::{End, call, connected, greeting, said, text};

fn opened(opening: Opening, script: impl AsyncFnOnce(&mut End)) -> Result<Client, OpenError> {
    connected(Limits::DEFAULT, script, async |connection: Connection| connection.open(opening).await).0
}

async fn refuse(end: &mut End, method: &str, code: i64, data: Value) {
    let (id, _) = end.request(method).await;
    end.say(json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "no", "data": data}})).await;
}

fn discovery(revisions: &[&str]) -> Value {
    json!({"resultType": "complete", "supportedVersions": revisions, "capabilities": {"tools": {}}, "ttlMs": 1,
        "cacheScope": "public", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m", "version": "2"}}})
}

#[test]
fn each_revision_with_a_handshake_is_spoken() {
    for revision in Revision::ALL.into_iter().filter(|revision| !revision.is_stateless()) {
        let client = opened(Opening::Handshake, async |end: &mut End| {
            let (id, params) = end.request("initialize").await;
            assert_eq!((&params["protocolVersion"], &params["capabilities"]), (&json!("2025-11-25"), &json!({})));
            end.answer(&id, greeting(revision.as_str())).await;
            end.request("notifications/initialized").await;
        });
        let client = client.unwrap();
        assert_eq!((client.revision(), client.server().as_untrusted().name.as_str()), (revision, "t"));
    }
}

#[test]
fn a_server_of_2026_is_found_after_it_has_refused_the_handshake() {
    let script = async |end: &mut End| {
        refuse(end, "initialize", -32601, json!(null)).await;
        let (id, params) = end.request("server/discover").await;
        assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(params["_meta"]["io.modelcontextprotocol/clientInfo"]["name"], "ephor");
        end.answer(&id, discovery(&["2027-01-01", "2026-07-28"])).await;
        let (id, params) = end.request("tools/call").await;
        assert_eq!(params["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        end.answer(&id, text("stateless")).await;
        // Where there is no `ping`, the server is asked who it is.
        let (id, _) = end.request("server/discover").await;
        end.answer(&id, discovery(&["2026-07-28"])).await;
        end.left().await;
    };
    connected(Limits::DEFAULT, script, async |connection: Connection| {
        let client = connection.open(Opening::Handshake).await.unwrap();
        assert_eq!((client.revision(), client.server().as_untrusted().version.as_str()), (Revision::V2026_07_28, "2"));
        assert_eq!(said(call(&client).await), "stateless");
        client.ping().await.unwrap();
    });
}

#[test]
fn an_older_server_is_found_after_it_has_refused_discovery() {
    for code in [-32601, -32602, -32022] {
        let client = opened(Opening::Discovery, async |end: &mut End| {
            refuse(end, "server/discover", code, json!({"supported": ["2025-11-25"], "requested": "2026-07-28"})).await;
            end.shake_hands().await;
        });
        assert_eq!(client.unwrap().revision(), Revision::V2025_11_25, "{code}");
    }
    // One that offers older revisions alone says so in a result.
    let client = opened(Opening::Discovery, async |end: &mut End| {
        let (id, _) = end.request("server/discover").await;
        end.answer(&id, discovery(&["2025-11-25"])).await;
        end.shake_hands().await;
    });
    assert_eq!(client.unwrap().revision(), Revision::V2025_11_25);
}

#[test]
fn a_revision_that_is_not_spoken_is_named() {
    for offered in ["2023-01-01", "2026-07-28", "\u{1b}[2J"] {
        let error = opened(Opening::Handshake, async |end: &mut End| {
            let (id, _) = end.request("initialize").await;
            end.answer(&id, greeting(offered)).await;
            refuse(end, "server/discover", -32601, json!(null)).await;
            end.left().await;
        });
        let error = error.unwrap_err();
        assert!(matches!(error, OpenError::Disagreement(_)), "{error}");
        assert!(error.to_string().contains(&ephor_base::legible::line(offered)), "{error}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
}

#[test]
fn what_the_first_greeting_came_to_is_told_where_the_second_does_no_better() {
    let error = opened(Opening::Handshake, async |end: &mut End| {
        refuse(end, "initialize", -32603, json!(null)).await;
        refuse(end, "server/discover", -32601, json!(null)).await;
        end.left().await;
    });
    let error = error.unwrap_err();
    assert!(matches!(&error, OpenError::Call(CallError::Refused(refusal)) if refusal.code == -32603), "{error}");
}

#[test]
fn a_greeting_that_lies_about_types_is_refused() {
    let cases = [
        (json!({}), "result.protocolVersion"),
        (json!({"protocolVersion": 20251125}), "result.protocolVersion"),
        (json!({"protocolVersion": "2025-11-25"}), "result.capabilities"),
        (json!({"protocolVersion": "2025-11-25", "capabilities": []}), "result.capabilities"),
        (json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": "x"}), "result.serverInfo"),
        (json!({"protocolVersion": "2025-11-25", "capabilities": {}, "instructions": {}}), "result.instructions"),
    ];
    for (result, place) in cases {
        let error = opened(Opening::Handshake, async |end: &mut End| {
            let (id, _) = end.request("initialize").await;
            end.answer(&id, result.clone()).await;
            end.left().await;
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("`{place}`")), "{result}: {error}");
    }
}

#[test]
fn a_server_that_ends_at_the_greeting_is_an_error() {
    let error = opened(Opening::Handshake, async |end: &mut End| drop(end.request("initialize").await)).unwrap_err();
    assert!(matches!(error, OpenError::Call(CallError::Closed(Closed::Ended))), "{error}");
}

#[test]
fn a_greeting_that_is_given_up_is_not_cancelled() {
    // The protocol forbids to cancel it.
    let script = async |end: &mut End| {
        end.request("initialize").await;
        assert_eq!(end.next().await, None);
    };
    connected(Limits::DEFAULT, script, async |connection: Connection| {
        let mut opening = Box::pin(connection.open(Opening::Handshake));
        for _ in 0..20 {
            assert!(futures_util::poll!(&mut opening).is_pending());
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn the_words_of_a_server_about_itself_are_cut() {
    let client = opened(Opening::Handshake, async |end: &mut End| {
        let (id, _) = end.request("initialize").await;
        let mut result = greeting("2025-11-25");
        result["serverInfo"]["name"] = json!("n".repeat(100_000));
        result["instructions"] = json!("i".repeat(1_000_000));
        end.answer(&id, result).await;
        end.request("notifications/initialized").await;
    });
    let client = client.unwrap();
    let server = client.server().as_untrusted();
    assert_eq!(server.name.len(), Limits::DEFAULT.text_bytes);
    assert_eq!(server.instructions.as_ref().unwrap().len(), Limits::DEFAULT.description_bytes);
}
