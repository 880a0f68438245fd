//! Servers that misbehave on purpose, in the grammar of each kind of provider: none hangs, and each ends as it should.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use serde_json::{Value, json};

use crate::place::{Place, Ran};

/// A kind of provider: what it sends of the beginning of an answer, and of its end.
struct Kind {
    kind: &'static str,
    base: &'static str,
    begins: &'static str,
    ends: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        kind: "openai",
        base: "/v1",
        begins: "data: {\"choices\":[{\"delta\":{\"content\":\"Hello.\"}}]}\n\n",
        ends: "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
    },
    Kind {
        kind: "openai-responses",
        base: "/v1",
        begins: "data: {\"type\":\"response.output_text.delta\",\"output_index\":0,\"delta\":\"Hello.\"}\n\n",
        ends: "data: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[]}}\n\n",
    },
    Kind {
        kind: "anthropic",
        base: "",
        begins: "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"Hello.\"}}\n\n",
        ends: "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
    },
    Kind {
        kind: "gemini",
        base: "",
        begins: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hello.\"}]}}]}\n\n",
        ends: "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
    },
    Kind {
        kind: "ollama",
        base: "",
        begins: "{\"message\":{\"content\":\"Hello.\"},\"done\":false}\n",
        ends: "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n",
    },
];

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// What a server does with its connection after it has read a request: by how many it has answered before.
type Does = dyn Fn(&mut TcpStream, usize) + Send + Sync;

/// Runs a message against a server of `kind` that does this; gives how it ended, and how often the server was asked.
fn run(kind: &Kind, more: &str, does: Arc<Does>) -> (Ran, usize) {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let (does, count) = (does.clone(), count.clone());
            thread::spawn(move || serve(stream, &count, &*does));
        }
    });
    let Kind { kind, base, .. } = kind;
    let url = format!("http://127.0.0.1:{port}{base}");
    place.configure(&format!("[providers.mine]\nkind = \"{kind}\"\nbase_url = \"{url}\"\n{more}"));
    let ran = place.run(&["run", "--json", "--model", "mine/test", "go on"]);
    place.node_is_gone();
    place.verify();
    (ran, asked.load(Ordering::SeqCst))
}

fn serve(stream: TcpStream, count: &AtomicUsize, does: &Does) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    does(reader.get_mut(), count.fetch_add(1, Ordering::SeqCst));
}

/// A client that has seen enough may hang up.
fn write(stream: &mut TcpStream, text: &str) {
    let _hung_up = stream.write_all(text.as_bytes());
}

/// Waits until the client hangs up.
fn hold(stream: &mut TcpStream) {
    let _gone = stream.read(&mut [0]);
}

fn refusal(status: &str, headers: &str) -> String {
    let body = json!({"error": {"message": "slow down"}}).to_string();
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}")
}

/// Tries it with every kind at once.
fn each(more: &'static str, does: fn(&'static Kind) -> Arc<Does>, check: fn(&Kind, &Ran, usize)) {
    thread::scope(|scope| {
        for kind in &KINDS {
            scope.spawn(move || {
                let (ran, asked) = run(kind, more, does(kind));
                check(kind, &ran, asked);
            });
        }
    });
}

fn failed(kind: &Kind, ran: &Ran, how: &str) {
    assert_eq!((ran.status.code(), &ran.reply()["end"]), (Some(1), &json!({ "failed": how })), "{}: {ran}", kind.kind);
}

fn said(kind: &Kind, ran: &Ran) {
    assert_eq!((ran.status.code(), &ran.reply()["text"]), (Some(0), &json!("Hello.")), "{}: {ran}", kind.kind);
}

#[test]
fn a_server_that_says_nothing_is_left_after_its_time() {
    each(
        "first_byte_seconds = 1\n",
        |_| Arc::new(|stream, _| hold(stream)),
        |kind, ran, asked| {
            failed(kind, ran, "timeout");
            assert_eq!(asked, 3, "{ran}");
        },
    );
}

#[test]
fn a_server_that_stalls_in_the_middle_is_left_after_its_time_and_asked_again() {
    each(
        "idle_seconds = 1\n",
        |kind| {
            Arc::new(|stream, at| {
                write(stream, OK);
                write(stream, kind.begins);
                if at == 0 { hold(stream) } else { write(stream, kind.ends) }
            })
        },
        |kind, ran, asked| {
            said(kind, ran);
            assert_eq!(asked, 2, "{ran}");
        },
    );
}

#[test]
fn a_connection_that_breaks_in_the_middle_of_an_event_is_an_interruption() {
    each(
        "",
        |kind| {
            Arc::new(|stream, at| {
                // The end, in half an event; the first of them reset, since what came was not read.
                let whole = format!("{OK}{}{}", kind.begins, kind.ends);
                let cut = whole.find("Hello.").unwrap() + [2, 8, 6][at % 3];
                write(stream, &whole[..cut]);
            })
        },
        |kind, ran, asked| {
            failed(kind, ran, "interrupted");
            assert_eq!(asked, 3, "{ran}");
        },
    );
}

#[test]
fn a_server_that_asks_to_wait_is_waited_for_and_says_until_when_if_it_likes() {
    each(
        "",
        |kind| {
            Arc::new(|stream, at| match at {
                0 => write(stream, &refusal("429 Too Many Requests", "Retry-After: 1\r\n")),
                1 => write(stream, &refusal("429 Too Many Requests", "")),
                _ => write(stream, &format!("{OK}{}{}", kind.begins, kind.ends)),
            })
        },
        |kind, ran, asked| {
            said(kind, ran);
            assert_eq!(asked, 3, "{ran}");
            let waits: Vec<Value> = ran.seen("state").into_iter().filter(|seen| seen["state"] != Value::Null).collect();
            assert!(format!("{waits:?}").contains("1000"), "{ran}");
        },
    );
}

#[test]
fn what_does_not_pass_is_asked_for_once() {
    for (status, how) in
        [("401 Unauthorized", "unauthorized"), ("404 Not Found", "rejected"), ("402 Payment Required", "quota")]
    {
        for kind in &KINDS {
            let (ran, asked) = run(kind, "", Arc::new(move |stream, _| write(stream, &refusal(status, ""))));
            failed(kind, &ran, how);
            assert_eq!(asked, 1, "{ran}");
        }
    }
}

#[test]
fn the_content_type_decides_nothing_and_a_page_is_no_answer() {
    each(
        "",
        |kind| {
            Arc::new(|stream, _| {
                write(stream, &format!("{}{}{}", OK.replace("event-stream", "html"), kind.begins, kind.ends))
            })
        },
        |kind, ran, _| said(kind, ran),
    );
    each(
        "",
        |_| Arc::new(|stream, _| write(stream, &format!("{OK}<!doctype html><title>Sign in</title>"))),
        |kind, ran, asked| {
            failed(kind, ran, "rejected");
            assert!(format!("{ran}").contains("providers.mine.base_url") && asked == 1, "{ran}");
        },
    );
}

#[test]
fn a_line_without_an_end_is_cut_off() {
    each(
        "",
        |kind| {
            Arc::new(|stream, _| {
                let begins = kind.begins.split_once("Hello.").unwrap().0;
                write(stream, &format!("{OK}{begins}"));
                // A gigabyte, if the client takes it.
                let piece = vec![b'A'; 1 << 20];
                for _ in 0..1024 {
                    if stream.write_all(&piece).is_err() {
                        return;
                    }
                }
                panic!("the client took a gigabyte");
            })
        },
        |kind, ran, asked| {
            assert_eq!((ran.status.code(), &ran.reply()["end"]), (Some(3), &json!("cut_off")), "{}: {ran}", kind.kind);
            assert_eq!(asked, 1, "{ran}");
        },
    );
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_the_same() {
    each(
        "",
        |kind| {
            Arc::new(|stream, _| {
                stream.set_nodelay(true).unwrap();
                for byte in format!("{OK}{}{}", kind.begins, kind.ends).bytes() {
                    let _hung_up = stream.write_all(&[byte]);
                }
            })
        },
        |kind, ran, _| said(kind, ran),
    );
}
