//! Attacks on the door: a provider, a driver or an agent that says or asks what it should not.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::place::Place;

/// A server that speaks Chat Completions and always says `hi`, with this for its usage. Gives its port.
fn provider(usage: Value) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    // It ends with the test.
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| answer(stream, &usage)));
    port
}

fn answer(stream: TcpStream, usage: &Value) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    let _hung_up = reader.read_exact(&mut body);
    let chunks = [
        json!({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": null}]}),
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        json!({"choices": [], "usage": usage}),
    ];
    let events: String = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    // A client that has seen enough may hang up.
    let _hung_up = reader.get_mut().write_all(format!("{head}{events}data: [DONE]\n\n").as_bytes());
}

#[test]
fn a_provider_that_counts_wildly_hurts_its_own_answer_and_no_other_session() {
    let most = u64::MAX;
    let wild = [(most, most), (most, 0), (0, most), (most - 1, 1), (1 << 63, 1 << 63), (1 << 40, 0)];
    for (input, output) in wild {
        let place = Place::new();
        let port = provider(json!({"prompt_tokens": input, "completion_tokens": output}));
        place.configure(&format!("[providers.openai]\nbase_url = \"http://127.0.0.1:{port}/v1\"\n"));
        let up = place.up();
        for args in
            [&["run", "--model", "openai/test", "go on"][..], &["run", "--json", "--model", "openai/test", "go on"]]
        {
            let ran = place.run(args);
            assert!(!ran.stderr.contains("panicked") && !ran.stderr.contains("budget"), "{input} {output}: {ran}");
        }
        let reply = place.play(&[], &[json!({"text": "hello"})]).succeeded().reply();
        assert_eq!(reply["end"], "replied", "{input} {output}: {reply}");
        up.signal(Signal::TERM);
        up.ended();
        place.verify();
    }
}
