//! `openai/NAME` against a small server on this machine that speaks Chat Completions.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::place::{Place, Ran};

/// What the server was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The request line and the headers.
    pub(crate) head: String,
    pub(crate) body: Value,
}

/// A server that gives these responses, one for each request, and remembers what it was asked.
pub(crate) struct Server {
    pub(crate) port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) fn start(responses: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = asked.clone();
        thread::spawn(move || {
            for response in responses {
                let (stream, _) = listener.accept().unwrap();
                // Only so that a client that says nothing fails the test.
                stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                notes.lock().unwrap().push(answer(stream, &response));
            }
        });
        Self { port, asked }
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads one request and writes `response`.
fn answer(stream: TcpStream, response: &str) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.expect("the body has a length").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    // A client that has seen enough may hang up.
    let _hung_up = reader.get_mut().write_all(response.as_bytes());
    Asked { head, body: serde_json::from_slice(&body).unwrap() }
}

/// A stream of these chunks, ended as the protocol wants it.
fn stream(chunks: &[Value]) -> String {
    format!("{}data: [DONE]\n\n", broken_stream(chunks))
}

/// A stream that stops after these chunks.
fn broken_stream(chunks: &[Value]) -> String {
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n{events}")
}

fn refusal(status: &str, error: &Value) -> String {
    let body = json!({"error": error}).to_string();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn delta(delta: &Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

fn usage(input: u64, output: u64) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
}

fn text(words: &[&str]) -> String {
    let mut chunks: Vec<Value> = words.iter().map(|word| delta(&json!({"content": word}))).collect();
    chunks.extend([finish("stop"), usage(2000, 20)]);
    stream(&chunks)
}

/// A run against a server that gives `responses`.
fn run(place: &Place, responses: Vec<String>) -> (Ran, Vec<Asked>) {
    let server = Server::start(responses);
    place.configure(&format!("[providers.openai]\nbase_url = \"http://127.0.0.1:{}/v1\"\n", server.port));
    let ran = place.run(&["run", "--json", "--model", "openai/test", "go on"]);
    place.node_is_gone();
    (ran, server.asked())
}

#[test]
fn text_is_streamed_and_usage_is_counted() {
    let place = Place::new();
    let (ran, asked) = run(&place, vec![text(&["Hel", "lo, ", "wörld."])]);
    let ran = ran.succeeded();
    let pieces: Vec<Value> = ran.seen("text").into_iter().map(|event| event["text"].clone()).collect();
    assert_eq!(pieces.iter().map(|piece| piece.as_str().unwrap()).collect::<String>(), "Hello, wörld.");
    let reply = ran.reply();
    assert_eq!(reply["text"], "Hello, wörld.");
    assert_eq!((&reply["report"]["input_tokens"], &reply["report"]["output_tokens"]), (&json!(2000), &json!(20)));
    assert!(ran.seen("opened")[0]["host"].as_str().unwrap().starts_with("127.0.0.1:"), "{ran}");
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.starts_with("POST /v1/chat/completions HTTP/1.1"), "{asked:?}");
    assert!(!asked[0].head.to_lowercase().contains("authorization"), "this machine needs no key: {asked:?}");
    assert_eq!((&asked[0].body["model"], &asked[0].body["stream"]), (&json!("test"), &json!(true)));
    place.verify();
}

#[test]
fn a_key_in_the_environment_is_not_sent_to_this_machine() {
    let place = Place::new();
    let server = Server::start(vec![text(&["Hello."])]);
    place.configure(&format!("[providers.openai]\nbase_url = \"http://127.0.0.1:{}/v1\"\n", server.port));
    let mut command = place.command(&["run", "--model", "openai/test", "go on"]);
    crate::place::Running::start(command.env("OPENAI_API_KEY", "sk-very-secret")).ended().succeeded();
    assert!(!format!("{:?}", server.asked()).contains("sk-very-secret"));
    place.node_is_gone();
    assert!(place.facts("lease").is_empty());
}

#[test]
fn a_tool_call_that_comes_in_pieces_is_made_and_answered() {
    let place = Place::new();
    place.file("a.txt", "TODO one\n");
    // The model calls what it was offered, under the name it was offered.
    let called = |name: &str| {
        let piece = |function: Value| delta(&json!({"tool_calls": [{"index": 0, "function": function}]}));
        stream(&[
            delta(&json!({"content": "Looking."})),
            delta(
                &json!({"tool_calls": [{"index": 0, "id": "call_9", "type": "function", "function": {"name": name, "arguments": ""}}]}),
            ),
            piece(json!({"arguments": "{\"pat"})),
            piece(json!({"arguments": "tern\": \"TO"})),
            piece(json!({"arguments": "DO\"}"})),
            finish("tool_calls"),
            usage(2000, 10),
        ])
    };
    let (ran, asked) = run(&place, vec![called("fsSearch"), text(&["Found ", "it."])]);
    let ran = ran.succeeded();
    assert_eq!(ran.reply()["text"], "Found it.", "{ran}");
    let offered: Vec<&str> = asked[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].as_str().unwrap())
        .collect();
    assert!(offered.contains(&"fsSearch"), "{offered:?}");
    let tool = ran.seen("started").into_iter().find(|event| event["action"] == "tool").unwrap();
    assert_eq!((&tool["target"], &tool["arguments"]), (&json!("fs.search"), &json!("{\"pattern\":\"TODO\"}")));
    let messages = asked[1].body["messages"].as_array().unwrap();
    let result = messages.iter().find(|message| message["role"] == "tool").expect("the result is given back");
    assert_eq!(result["tool_call_id"], "call_9");
    assert!(result["content"].as_str().unwrap().contains("a.txt:1"), "{result}");
    assert_eq!(ran.reply()["report"]["input_tokens"], 4000);
    place.verify();
}

#[test]
fn a_server_that_asks_to_wait_is_asked_again() {
    let place = Place::new();
    let wait = refusal("429 Too Many Requests", &json!({"message": "slow down", "type": "requests"}));
    let (ran, asked) = run(&place, vec![wait, text(&["Hello."])]);
    let ran = ran.succeeded();
    assert_eq!(ran.reply()["text"], "Hello.");
    assert_eq!(asked.len(), 2);
    let ends: Vec<Value> = place.facts("outcome").into_iter().map(|fact| fact["end"].clone()).collect();
    assert!(ends.contains(&json!("throttled")), "{ends:?}");
    place.verify();
}

#[test]
fn a_refusal_that_will_not_pass_ends_the_turn_with_a_reason() {
    for (status, error, end, words) in [
        ("401 Unauthorized", json!({"message": "bad key", "code": "invalid_api_key"}), "unauthorized", "key"),
        ("400 Bad Request", json!({"message": "too long", "code": "context_length_exceeded"}), "overflow", "longer"),
        ("404 Not Found", json!({"message": "no such model"}), "rejected", "model"),
    ] {
        let place = Place::new();
        let (ran, asked) = run(&place, vec![refusal(status, &error)]);
        let ran = ran.failed(&[]);
        assert_eq!(ran.reply()["end"], json!({"failed": end}), "{ran}");
        let ended = ran.seen("ended").into_iter().find(|event| event["action"] == "model").unwrap();
        assert!(ended["text"].as_str().unwrap().contains(words), "{ran}");
        assert_eq!(asked.len(), 1, "it is not tried again");
        place.verify();
    }
}

#[test]
fn a_stream_that_breaks_off_is_asked_for_again() {
    let place = Place::new();
    let half = broken_stream(&[delta(&json!({"content": "Half an ans"}))]);
    let (ran, asked) = run(&place, vec![half, text(&["A whole answer."])]);
    let ran = ran.succeeded();
    assert_eq!(ran.reply()["text"], "A whole answer.", "{ran}");
    assert_eq!(asked.len(), 2);
    let ends: Vec<Value> = place.facts("outcome").into_iter().map(|fact| fact["end"].clone()).collect();
    assert!(ends.contains(&json!("interrupted")), "{ends:?}");
    place.verify();
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    // Bound and let go of: nobody listens there.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    place.configure(&format!("[providers.openai]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n"));
    let ran = place.run(&["run", "--model", "openai/test", "go on"]).failed(&["127.0.0.1", "is the server running"]);
    assert!(!ran.stderr.contains("panicked"));
    place.verify();
}
