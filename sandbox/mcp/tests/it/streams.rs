//! Servers that misuse their streams: they flood, hang, repeat themselves, break off.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use ephor_mcp::{CallError, Client, Closed, Connection, Limits, Malformed, Opening, Progress};
use futures_util::poll;
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::server::{End, SMALL, block_on, call, connected, piped, said, served, text};

/// The client's view once it has had an answer to a ping: all before has been read.
async fn settled(client: &Client) -> ephor_mcp::Notices {
    client.ping().await.expect("the server answers");
    client.notices()
}

async fn pong(end: &mut End) {
    let (id, _) = end.request("ping").await;
    end.answer(&id, json!({})).await;
}

/// What is counted of bytes that a server sends before its answer, which arrives all the same.
fn counted(bytes: &[u8]) -> ephor_mcp::Notices {
    let script = async |end: &mut End| {
        end.raw(bytes).await;
        pong(end).await;
        end.left().await;
    };
    served(SMALL, script, async |client| settled(&client).await).0
}

#[test]
fn lines_that_are_no_messages_are_counted_and_passed_over() {
    let deep = format!("{}{}\n", "[".repeat(17), "]".repeat(17));
    let many = format!("[{}1]\n", "1,".repeat(300));
    let bad: [&[u8]; 13] = [
        b"Server listening on stdio\n",
        b"{\"jsonrpc\":\"2.0\",\n",
        b"\xff\xfe\x00\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"\xc3\x28\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\"}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":1e999}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":7}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":{}}\n",
        b"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":null}\n",
        b"42\n",
        b"[]\n",
        deep.as_bytes(),
        many.as_bytes(),
    ];
    for line in bad {
        let notices = counted(line);
        assert_eq!(notices.malformed, 1, "{} {notices:?}", String::from_utf8_lossy(line));
    }
    assert_eq!(counted(b"\n\r\n  \n").malformed, 0, "empty lines are nothing");
}

#[test]
fn answers_to_nothing_are_counted_and_passed_over() {
    for id in [json!(99), json!("1"), json!(1.0), json!(-1), json!(null), json!([1])] {
        let line = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        assert_eq!(counted(format!("{line}\n").as_bytes()).stray, 1, "{line}");
    }
    let error = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}"#;
    assert_eq!(counted(&[error, b"\n".as_slice()].concat()).stray, 1);
    // The first request of all was `initialize`.
    assert_eq!(counted(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n").late, 1);
}

#[test]
fn of_two_answers_the_first_counts() {
    let script = async |end: &mut End| {
        let (id, _) = end.request("tools/call").await;
        end.answer(&id, text("first")).await;
        end.answer(&id, text("second")).await;
        pong(end).await;
        end.left().await;
    };
    served(SMALL, script, async |client| {
        assert_eq!(said(call(&client).await), "first");
        assert_eq!(settled(&client).await.late, 1);
    });
}

#[test]
fn an_answer_with_another_id_is_not_taken_for_the_right_one() {
    let script = async |end: &mut End| {
        let (id, _) = end.request("tools/call").await;
        end.answer(&json!(id.as_u64().unwrap() + 1), text("of another")).await;
        end.answer(&id, text("own")).await;
        end.left().await;
    };
    served(SMALL, script, async |client| {
        assert_eq!(said(call(&client).await), "own");
        assert_eq!(client.notices().stray, 1);
    });
}

#[test]
fn answers_may_come_in_any_order_and_in_batches() {
    let script = async |end: &mut End| {
        let mut ids = Vec::new();
        for _ in 0..3 {
            ids.push(end.request("tools/call").await.0);
        }
        end.answer(&ids[2], text("2")).await;
        let one = |at: usize| json!({"jsonrpc": "2.0", "id": ids[at], "result": text(&at.to_string())});
        end.say(json!([one(1), one(0)])).await;
        end.left().await;
    };
    served(SMALL, script, async |client| {
        let all = tokio::join!(call(&client), call(&client), call(&client));
        assert_eq!([said(all.0), said(all.1), said(all.2)], ["0", "1", "2"]);
    });
}

#[test]
fn a_server_that_never_answers_is_told_when_the_call_is_given_up() {
    let asked = Arc::new(Notify::new());
    let script = async |end: &mut End| {
        let (id, _) = end.request("tools/call").await;
        asked.notify_one();
        let (_, params) = end.request("notifications/cancelled").await;
        assert_eq!(params["requestId"], id);
        // It answers all the same.
        end.answer(&id, text("late")).await;
        pong(end).await;
        end.left().await;
    };
    served(SMALL, script, async |client| {
        tokio::select! {
            answer = call(&client) => panic!("{answer:?}"),
            () = asked.notified() => {}
        }
        assert_eq!(settled(&client).await.late, 1);
    });
}

#[test]
fn a_call_that_was_given_up_before_it_was_written_is_not_sent() {
    served(
        SMALL,
        async |end: &mut End| {
            pong(end).await;
            end.left().await;
        },
        async |client| {
            {
                // Nothing drives the connection between the first look and the drop.
                let mut call = pin!(call(&client));
                assert!(poll!(&mut call).is_pending());
            }
            assert_eq!(settled(&client).await, ephor_mcp::Notices::default());
        },
    );
}

#[test]
fn a_server_that_ends_fails_what_waits() {
    let (result, closed) = served(
        SMALL,
        async |end: &mut End| drop(end.request("tools/call").await),
        async |client| (call(&client).await, call(&client).await),
    );
    assert!(matches!(closed, Closed::Ended), "{closed}");
    assert!(
        matches!(result, (Err(CallError::Closed(Closed::Ended)), Err(CallError::Closed(Closed::Ended)))),
        "{result:?}"
    );
}

#[test]
fn a_server_that_ends_within_a_message_is_told_apart() {
    let script = async |end: &mut End| {
        end.request("tools/call").await;
        end.raw(b"{\"jsonrpc\":").await;
    };
    let (result, closed) = served(SMALL, script, async |client| call(&client).await);
    assert!(matches!(closed, Closed::MidMessage { bytes: 11 }), "{closed}");
    assert!(matches!(result, Err(CallError::Closed(Closed::MidMessage { bytes: 11 }))), "{result:?}");
}

#[test]
fn a_message_without_an_end_closes_the_connection_within_the_bound() {
    let script = async |end: &mut End| {
        end.request("tools/call").await;
        for _ in 0..100 {
            end.raw(&[b'x'; 100]).await;
        }
        end.left().await;
    };
    let (result, closed) = served(SMALL, script, async |client| call(&client).await);
    assert!(matches!(closed, Closed::TooLong { most: 4000 }), "{closed}");
    assert!(matches!(result, Err(CallError::Closed(Closed::TooLong { .. }))), "{result:?}");
}

#[test]
fn floods_of_every_kind_close_the_connection() {
    let floods = [
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/made/up"}"#,
        r#"{"jsonrpc":"2.0","method":"ping","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"sampling/createMessage","id":"s","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":77,"result":{}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}"#,
        "not json",
        "",
    ];
    for line in floods {
        let script = async |end: &mut End| {
            end.request("tools/call").await;
            for _ in 0..SMALL.unsolicited + 5 {
                end.raw(line.as_bytes()).await;
                end.raw(b"\n").await;
            }
            end.left().await;
        };
        let (result, closed) = served(SMALL, script, async |client| call(&client).await);
        assert!(matches!(closed, Closed::Flooded { most: 20 }), "{line}: {closed}");
        assert!(matches!(result, Err(CallError::Closed(Closed::Flooded { .. }))), "{line}: {result:?}");
    }
}

#[test]
fn an_answer_ends_the_count_towards_a_flood() {
    let script = async |end: &mut End| {
        for _ in 0..5 {
            for _ in 0..SMALL.unsolicited {
                end.say(json!({"jsonrpc": "2.0", "method": "notifications/made/up"})).await;
            }
            pong(end).await;
        }
        end.left().await;
    };
    served(SMALL, script, async |client| {
        for _ in 0..5 {
            settled(&client).await;
        }
        assert_eq!(client.notices().others, 100);
    });
}

#[test]
fn pings_are_answered_and_every_other_request_is_refused() {
    let script = async |end: &mut End| {
        let (id, _) = end.request("ping").await;
        end.say(json!({"jsonrpc": "2.0", "id": "p-1", "method": "ping"})).await;
        assert_eq!(end.next().await, Some(json!({"jsonrpc": "2.0", "id": "p-1", "result": {}})));
        for method in ["sampling/createMessage", "elicitation/create", "roots/list", "tools/call", "rm"] {
            end.say(json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": {}})).await;
            let answer = end.next().await.expect("an answer");
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-32601)), "{answer}");
        }
        end.answer(&id, json!({})).await;
        end.left().await;
    };
    let notices = served(SMALL, script, async |client| settled(&client).await).0;
    assert_eq!((notices.pings, notices.refused, notices.unanswered), (1, 5, 0));
}

#[test]
fn a_server_that_asks_and_does_not_read_gets_a_bounded_number_of_answers() {
    let asked = Notify::new();
    let script = async |end: &mut End| {
        end.shake_hands().await;
        asked.notified().await;
        for id in 0..10 {
            end.say(json!({"jsonrpc": "2.0", "id": format!("{id:0>200}"), "method": "ping"})).await;
        }
        // The client's own ping is the second request, and stands behind those answers.
        end.answer(&json!(2), json!({})).await;
        end.left().await;
    };
    let test = async |connection: Connection| {
        let client = connection.open(Opening::Handshake).await.unwrap();
        let mut ping = Box::pin(client.ping());
        assert!(poll!(&mut ping).is_pending());
        asked.notify_one();
        ping.await.unwrap();
        client.notices()
    };
    let notices = piped(300, SMALL, script, test).0;
    // One in the pipe, one that is being written, three that wait.
    assert_eq!(notices.pings, 10);
    assert!(notices.unanswered >= 5, "{notices:?}");
}

#[test]
fn progress_is_bounded_grows_and_belongs_to_its_call() {
    let progress = |token: &Value, done: Value| {
        let params = json!({"progressToken": token, "progress": done, "total": 9, "message": "m".repeat(500)});
        json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    };
    let script = async |end: &mut End| {
        let (id, _) = end.request("tools/call").await;
        let mut all = String::new();
        // Six are dropped as others: two that do not grow, one of no call, three of another form.
        for done in [json!(1), json!(2.5), json!(2.5), json!(1), json!("x"), json!(null), json!([])] {
            all.push_str(&format!("{}\n", progress(&id, done)));
        }
        all.push_str(&format!("{}\n", progress(&json!(99), json!(3))));
        for done in 3..9 {
            all.push_str(&format!("{}\n", progress(&id, json!(done))));
        }
        end.raw(all.as_bytes()).await;
        end.answer(&id, text("done")).await;
        end.left().await;
    };
    served(SMALL, script, async |client: Client| {
        let mut heard: Vec<Progress> = Vec::new();
        let tool = super::server::echo();
        let answer = client.call(&tool, &Default::default(), &mut |progress| heard.push(progress)).await;
        assert_eq!(said(answer), "done");
        assert!(heard.windows(2).all(|pair| pair[0].done < pair[1].done), "{heard:?}");
        let last = heard.last().unwrap();
        assert_eq!((last.done, last.total), (8.0, Some(9.0)));
        assert_eq!(last.message.as_ref().unwrap().as_untrusted().len(), SMALL.text_bytes);
        assert_eq!(heard.len() as u64 + last.missed, 8, "what was not heard is counted: {heard:?}");
        assert_eq!(client.notices().others, 6);
    });
}

#[test]
fn log_messages_are_kept_up_to_the_bound_and_the_newest_stay() {
    let script = async |end: &mut End| {
        for number in 0..7 {
            let params = json!({"level": "info", "logger": "l", "data": {"n": number}});
            end.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})).await;
        }
        end.say(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": 3}})).await;
        pong(end).await;
        end.left().await;
    };
    served(SMALL, script, async |client| {
        let notices = settled(&client).await;
        let logs: Vec<_> = client.take_logs().iter().map(|log| log.text.legible()).collect();
        assert_eq!(logs, ["{\"n\":4}", "{\"n\":5}", "{\"n\":6}"]);
        assert_eq!((notices.logs_lost, notices.others), (4, 1));
        assert!(client.take_logs().is_empty());
    });
}

#[test]
fn no_more_requests_wait_than_the_bound() {
    let asked = Arc::new(Notify::new());
    let script = async |end: &mut End| {
        for _ in 0..SMALL.pending {
            end.request("tools/call").await;
        }
        asked.notify_one();
        end.left().await;
    };
    served(SMALL, script, async |client| {
        let mut calls: Vec<_> = (0..SMALL.pending).map(|_| Box::pin(call(&client))).collect();
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        assert!(matches!(call(&client).await, Err(CallError::Busy)));
        asked.notified().await;
    });
}

#[test]
fn a_server_that_does_not_read_makes_the_client_hold_a_bounded_number_of_bytes() {
    let big = super::server::arguments(json!({"a": "x".repeat(3000)}));
    let (tool, refused) = (super::server::echo(), Notify::new());
    let script = async |end: &mut End| {
        end.shake_hands().await;
        refused.notified().await;
        for _ in 0..2 {
            let (id, _) = end.request("tools/call").await;
            end.answer(&id, text("done")).await;
        }
        end.left().await;
    };
    let test = async |connection: Connection| {
        let client = connection.open(Opening::Handshake).await.unwrap();
        let (mut ears, mut others, mut thirds) = (|_| (), |_| (), |_| ());
        let mut first = Box::pin(client.call(&tool, &big, &mut ears));
        assert!(poll!(&mut first).is_pending());
        // The driver takes the first to write it.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let mut second = Box::pin(client.call(&tool, &big, &mut others));
        assert!(poll!(&mut second).is_pending());
        assert!(matches!(client.call(&tool, &big, &mut thirds).await, Err(CallError::Busy)));
        refused.notify_one();
        let (first, second) = tokio::join!(first, second);
        assert_eq!([said(first), said(second)], ["done", "done"]);
    };
    piped(300, SMALL, script, test);
}

#[test]
fn a_driver_that_is_dropped_ends_every_request() {
    block_on(async {
        let (ours, _theirs) = tokio::io::duplex(1000);
        let (output, input) = tokio::io::split(ours);
        let (connection, driver) = Connection::over_stream(output, input, SMALL);
        let mut opening = pin!(connection.open(Opening::Handshake));
        {
            let mut driver = pin!(driver.run());
            assert!(poll!(&mut opening).is_pending());
            assert!(poll!(&mut driver).is_pending());
        }
        let error = opening.await.unwrap_err();
        assert!(matches!(error, ephor_mcp::OpenError::Call(CallError::Closed(Closed::Stopped))), "{error}");
    });
}

#[test]
fn a_driver_that_is_never_run_ends_every_request_when_it_is_dropped() {
    block_on(async {
        let (ours, _theirs) = tokio::io::duplex(1000);
        let (output, input) = tokio::io::split(ours);
        let (connection, driver) = Connection::over_stream(output, input, SMALL);
        drop(driver);
        let error = connection.open(Opening::Handshake).await.unwrap_err();
        assert!(matches!(error, ephor_mcp::OpenError::Call(CallError::Closed(Closed::Stopped))), "{error}");
    });
}

#[test]
fn the_last_client_closes_the_input_of_the_server() {
    let (seen, closed) = served(
        SMALL,
        async |end: &mut End| end.left().await,
        async |client: Client| {
            let other = client.clone();
            drop(client);
            other.notices()
        },
    );
    assert!(matches!(closed, Closed::Released), "{closed}");
    assert_eq!(seen, ephor_mcp::Notices::default());
    // So does a connection that is never opened.
    let (_, closed) = connected(SMALL, async |end: &mut End| end.left().await, async |connection| drop(connection));
    assert!(matches!(closed, Closed::Released), "{closed}");
}

#[test]
fn a_stream_that_cannot_be_read_or_written_says_so() {
    let closed = block_on(async {
        let broken = tokio::io::join(Failing, tokio::io::sink());
        let (read, write) = tokio::io::split(broken);
        let (_connection, driver) = Connection::over_stream(read, write, SMALL);
        driver.run().await
    });
    assert!(matches!(&closed, Closed::Read(error) if error.kind() == std::io::ErrorKind::ConnectionReset), "{closed}");
    let closed = block_on(async {
        let (ours, theirs) = tokio::io::duplex(10);
        let (reads, _kept) = tokio::io::duplex(10);
        drop(theirs);
        let (connection, driver) = Connection::over_stream(reads, ours, SMALL);
        let (closed, opened) = tokio::join!(driver.run(), connection.open(Opening::Handshake));
        assert!(matches!(opened, Err(ephor_mcp::OpenError::Call(CallError::Closed(Closed::Write(_))))));
        closed
    });
    assert!(matches!(closed, Closed::Write(_)), "{closed}");
}

/// A reader that fails.
struct Failing;

impl tokio::io::AsyncRead for Failing {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        _: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Err(std::io::ErrorKind::ConnectionReset.into()))
    }
}

#[test]
fn answers_that_are_not_looked_at_stop_the_reading() {
    let limits = Limits { pending: 16, ..SMALL };
    let written = AtomicUsize::new(0);
    let script = async |end: &mut End| {
        end.shake_hands().await;
        let mut ids = Vec::new();
        for _ in 0..12 {
            ids.push(end.request("tools/call").await.0);
        }
        for id in &ids {
            end.answer(id, text(&"x".repeat(500))).await;
            written.fetch_add(1, Ordering::SeqCst);
        }
        end.left().await;
    };
    let test = async |connection: Connection| {
        let client = connection.open(Opening::Handshake).await.unwrap();
        let mut calls: Vec<_> = (0..12).map(|_| Box::pin(call(&client))).collect();
        for call in &mut calls {
            assert!(poll!(call).is_pending());
        }
        for _ in 0..5000 {
            tokio::task::yield_now().await;
        }
        // Four lie there; what is written beyond is in the pipe, which holds less than one.
        assert_eq!(written.load(Ordering::SeqCst), 4);
        for answer in futures_util::future::join_all(calls).await {
            assert_eq!(said(answer).len(), 500);
        }
    };
    piped(300, limits, script, test);
    assert_eq!(written.load(Ordering::SeqCst), 12);
}

#[test]
fn what_is_no_message_is_told_apart() {
    let read = |bytes: &[u8]| ephor_mcp::parse(bytes, &SMALL).unwrap_err();
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(read(b"\"\xff\""), Malformed::Utf8);
    assert_eq!(read(&[b' '; 4001]), Malformed::Long { most: 4000 });
    assert_eq!(read(deep(17).as_bytes()), Malformed::Deep { most: 16 });
    assert!(matches!(read(deep(16).as_bytes()), Malformed::Rpc(_)));
    // Brackets within a string nest nothing, also behind an escaped quotation mark.
    let quoted = format!("[\"\\\"{}\"]", "[,".repeat(400));
    assert!(matches!(read(quoted.as_bytes()), Malformed::Rpc(_)));
    assert_eq!(read(format!("[{}1]", "1,".repeat(299)).as_bytes()), Malformed::Values { most: 300 });
    assert!(matches!(read(format!("[{}1]", "1,".repeat(298)).as_bytes()), Malformed::Rpc(_)));
    assert!(matches!(read(b"{\"a\":1,\"a\":1}"), Malformed::Json(_)));
    assert!(matches!(read(b""), Malformed::Json(_)));
    let Malformed::Json(said) = read(format!("{{\"{0}\":1,\"{0}\":1}}", "k".repeat(900)).as_bytes()) else { panic!() };
    assert_eq!(said.len(), SMALL.text_bytes, "a key of the server is cut");
}
