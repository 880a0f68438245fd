//! The five kinds of provider, each against a small server on this machine that speaks its grammar.

use serde_json::{Value, json};

use crate::{
    openai::{Asked, Server},
    place::{Place, Running},
};

const KEY: &str = "sk-of-this-provider-alone";

/// A kind of provider: its name in the configuration, what stands behind the host in its base URL, where its requests go, and its key.
struct Kind {
    kind: &'static str,
    base: &'static str,
    path: &'static str,
    key: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind { kind: "openai", base: "/v1", path: "/v1/chat/completions", key: "authorization: Bearer " },
    Kind { kind: "openai-responses", base: "/v1", path: "/v1/responses", key: "authorization: Bearer " },
    Kind { kind: "anthropic", base: "", path: "/v1/messages", key: "x-api-key: " },
    Kind {
        kind: "gemini",
        base: "",
        path: "/v1beta/models/test:streamGenerateContent?alt=sse",
        key: "x-goog-api-key: ",
    },
    Kind { kind: "ollama", base: "", path: "/api/chat", key: "authorization: Bearer " },
];

fn response(kind: &str, body: &str) -> String {
    let media = if kind == "application/x-ndjson" { kind } else { "text/event-stream" };
    format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nConnection: close\r\n\r\n{body}")
}

fn events(events: &[Value]) -> String {
    let of = |event: &Value| {
        let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
        format!("{name}data: {event}\n\n")
    };
    response("sse", &events.iter().map(of).collect::<String>())
}

fn lines(objects: &[Value]) -> String {
    response("application/x-ndjson", &objects.iter().map(|object| format!("{object}\n")).collect::<String>())
}

impl Kind {
    /// The model thinks, says that it looks, and calls `fs.search`.
    fn looks(&self) -> String {
        let arguments = json!({ "pattern": "TODO" });
        match self.kind {
            "openai" => {
                let call = json!({"index": 0, "id": "call_1", "function": {"name": "fsSearch", "arguments": arguments.to_string()}});
                let details = json!([{"type": "reasoning.encrypted", "data": "b64=="}]);
                let delta = json!({"content": "Looking.", "tool_calls": [call], "reasoning_details": details});
                events(&[json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]})])
            }
            "openai-responses" => {
                let item = |at: u64, item: Value| json!({"type": "response.output_item.done", "output_index": at, "item": item});
                events(&[
                    item(0, json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b64=="})),
                    item(1, json!({"type": "message", "content": [{"type": "output_text", "text": "Looking."}]})),
                    item(
                        2,
                        json!({"type": "function_call", "call_id": "call_1", "name": "fsSearch", "arguments": arguments.to_string()}),
                    ),
                    json!({"type": "response.completed", "response": {"status": "completed", "output": [], "usage": {"input_tokens": 2000, "output_tokens": 30}}}),
                ])
            }
            "anthropic" => {
                let begin =
                    |at: u64, block: Value| json!({"type": "content_block_start", "index": at, "content_block": block});
                let grow = |at: u64, delta: Value| json!({"type": "content_block_delta", "index": at, "delta": delta});
                let stop = |at: u64| json!({"type": "content_block_stop", "index": at});
                events(&[
                    json!({"type": "message_start", "message": {"usage": {"input_tokens": 2000, "output_tokens": 1}}}),
                    begin(0, json!({"type": "thinking", "thinking": "", "signature": ""})),
                    grow(0, json!({"type": "thinking_delta", "thinking": "hm"})),
                    grow(0, json!({"type": "signature_delta", "signature": "b64=="})),
                    stop(0),
                    begin(1, json!({"type": "text", "text": ""})),
                    grow(1, json!({"type": "text_delta", "text": "Looking."})),
                    stop(1),
                    begin(2, json!({"type": "tool_use", "id": "call_1", "name": "fsSearch", "input": {}})),
                    grow(2, json!({"type": "input_json_delta", "partial_json": arguments.to_string()})),
                    stop(2),
                    json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 30}}),
                    json!({"type": "message_stop"}),
                ])
            }
            "gemini" => events(&[json!({"candidates": [{"content": {"parts": [
                {"text": "Looking."},
                {"functionCall": {"name": "fsSearch", "args": arguments}, "thoughtSignature": "b64=="},
            ]}, "finishReason": "STOP"}]})]),
            _ => lines(&[
                json!({"message": {"content": "Looking.", "tool_calls": [{"function": {"name": "fsSearch", "arguments": arguments}}]}, "done": false}),
                json!({"message": {"content": ""}, "done": true, "done_reason": "stop", "prompt_eval_count": 2000, "eval_count": 30}),
            ]),
        }
    }

    /// The model says `text`, in two pieces.
    fn says(&self, text: &str) -> String {
        let (head, tail) = text.split_at(2);
        match self.kind {
            "openai" => {
                let piece =
                    |text: &str| json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": null}]});
                events(&[piece(head), piece(tail), json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})])
            }
            "openai-responses" => {
                let piece =
                    |text: &str| json!({"type": "response.output_text.delta", "output_index": 0, "delta": text});
                events(&[
                    piece(head),
                    piece(tail),
                    json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
                ])
            }
            "anthropic" => {
                let piece = |text: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
                events(&[
                    json!({"type": "message_start", "message": {"usage": {"input_tokens": 2000, "output_tokens": 1}}}),
                    json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
                    piece(head),
                    json!({"type": "ping"}),
                    piece(tail),
                    json!({"type": "content_block_stop", "index": 0}),
                    json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}),
                    json!({"type": "message_stop"}),
                ])
            }
            "gemini" => events(&[
                json!({"candidates": [{"content": {"parts": [{"text": head}]}}]}),
                json!({"candidates": [{"content": {"parts": [{"text": tail}]}, "finishReason": "STOP"}]}),
            ]),
            _ => lines(&[
                json!({"message": {"content": head}, "done": false}),
                json!({"message": {"content": tail}, "done": true, "done_reason": "stop"}),
            ]),
        }
    }

    fn section(&self, name: &str, port: u16, more: &str) -> String {
        let Self { kind, base, .. } = self;
        format!("[providers.{name}]\nkind = \"{kind}\"\nbase_url = \"http://127.0.0.1:{port}{base}\"\n{more}\n")
    }
}

/// A provider's own words of what it wants back, as they stand in the last request.
fn state_in(kind: &Kind, asked: &Asked) -> Value {
    let body = &asked.body;
    let answer = |list: &str, role: &str| {
        body[list].as_array().unwrap().iter().find(|message| message["role"] == role).unwrap().clone()
    };
    match kind.kind {
        "openai" => answer("messages", "assistant")["reasoning_details"].clone(),
        "openai-responses" => {
            let items = body["input"].as_array().unwrap();
            let at = |kind: &str| items.iter().position(|item| item["type"] == kind);
            assert!(at("reasoning") < at("function_call"), "in its order: {items:?}");
            items[at("reasoning").unwrap()].clone()
        }
        "anthropic" => answer("messages", "assistant")["content"][0].clone(),
        "gemini" => answer("contents", "model")["parts"][1]["thoughtSignature"].clone(),
        _ => Value::Null,
    }
}

#[test]
fn each_kind_of_provider_runs_a_turn_with_a_tool_and_an_answer() {
    for kind in &KINDS {
        let place = Place::new();
        place.file("a.txt", "TODO one\n");
        let server = Server::start(vec![kind.looks(), kind.says("Found it.")]);
        place.configure(&kind.section("mine", server.port, "key_env = \"MY_KEY\"\nheaders = { X-Team = \"seven\" }"));
        let mut command = place.command(&["run", "--json", "--model", "mine/test", "go on"]);
        let ran = Running::start(command.env("MY_KEY", KEY)).ended().succeeded();
        place.node_is_gone();
        assert_eq!(ran.reply()["text"], "Found it.", "{}: {ran}", kind.kind);
        let tool = ran.seen("started").into_iter().find(|event| event["action"] == "tool").unwrap();
        assert_eq!((&tool["target"], &tool["arguments"]), (&json!("fs.search"), &json!("{\"pattern\":\"TODO\"}")));
        let asked = server.asked();
        assert_eq!(asked.len(), 2, "{}", kind.kind);
        for asked in &asked {
            let head = &asked.head;
            assert!(head.starts_with(&format!("POST {} HTTP/1.1\r\n", kind.path)), "{head}");
            assert!(head.contains(&format!("{}{KEY}\r\n", kind.key)) && head.contains("x-team: seven\r\n"), "{head}");
            assert_eq!(head.matches(KEY).count(), 1, "{head}");
        }
        assert!(asked[1].body.to_string().contains("a.txt:1"), "the result is given back: {:?}", asked[1].body);
        let state = match kind.kind {
            "openai" => json!([{"type": "reasoning.encrypted", "data": "b64=="}]),
            "openai-responses" => {
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "b64=="})
            }
            "anthropic" => json!({"type": "thinking", "thinking": "hm", "signature": "b64=="}),
            "gemini" => json!("b64=="),
            _ => Value::Null,
        };
        assert_eq!(state_in(kind, &asked[1]), state, "{}: {}", kind.kind, asked[1].body);
        assert!(place.facts("lease").iter().all(|fact| fact["secret"] == "mine"), "{:?}", place.facts("lease"));
        place.verify();
    }
}

#[test]
fn what_a_provider_wants_back_outlives_the_node() {
    let kind = &KINDS[2];
    let place = Place::new();
    place.file("a.txt", "TODO one\n");
    let server = Server::start(vec![kind.looks(), kind.says("Found it."), kind.says("Still there.")]);
    place.configure(&kind.section("mine", server.port, ""));
    let first = place.run(&["run", "--json", "--model", "mine/test", "go on"]).succeeded();
    let session = first.seen("opened")[0]["session"].as_str().unwrap().to_owned();
    place.node_is_gone();
    place.run(&["run", "--session", &session, "and now"]).succeeded();
    let state = json!({"type": "thinking", "thinking": "hm", "signature": "b64=="});
    assert_eq!(state_in(kind, &server.asked()[2]), state);
    place.verify();
}

#[test]
fn several_providers_serve_one_node_and_each_is_sent_its_own_key() {
    let place = Place::new();
    let servers: Vec<Server> = KINDS.iter().map(|kind| Server::start(vec![kind.says("Hello.")])).collect();
    let sections =
        KINDS.iter().zip(&servers).zip(0..).map(|((kind, server), at)| {
            kind.section(&format!("p{at}"), server.port, &format!("key_env = \"KEY_{at}\""))
        });
    place.configure(&sections.collect::<String>());
    for at in 0..KINDS.len() {
        let model = format!("p{at}/test");
        let mut command = place.command(&["run", "--json", "--model", &model, "go on"]);
        for other in 0..KINDS.len() {
            command.env(format!("KEY_{other}"), format!("sk-key-of-provider-number-{other}"));
        }
        let ran = Running::start(&mut command).ended().succeeded();
        let opened = ran.seen("opened")[0]["model"].as_str().unwrap().to_owned();
        assert!(opened.starts_with(&format!("{model} at 127.0.0.1:")), "{ran}");
    }
    for (at, server) in servers.iter().enumerate() {
        let asked = format!("{:?}", server.asked());
        for other in 0..KINDS.len() {
            let key = format!("sk-key-of-provider-number-{other}");
            assert_eq!(asked.contains(&key), at == other, "provider {at} and the key of {other}: {asked}");
        }
    }
    place.node_is_gone();
    place.verify();
}

#[test]
fn a_key_follows_no_redirect_and_no_name_of_a_model() {
    let place = Place::new();
    let thief = Server::start(vec![KINDS[2].says("Thanks.")]);
    let to = format!("http://127.0.0.1:{}/v1/messages", thief.port);
    let moved = format!("HTTP/1.1 307 Moved\r\nLocation: {to}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    let own = Server::start(vec![moved]);
    let (sections, names) = (
        KINDS[2].section("own", own.port, "key_env = \"MY_KEY\"") + &KINDS[2].section("thief", thief.port, ""),
        ["thief/own/test", "own\u{a0}/x", "own /x", "thief/own test"],
    );
    place.configure(&sections);
    let run = |model: &str| {
        let mut command = place.command(&["run", "--json", "--model", model, "go on"]);
        Running::start(command.env("MY_KEY", KEY)).ended()
    };
    let ran = run("own/test").failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"failed": "rejected"}), "{ran}");
    for name in names {
        run(name);
    }
    place.node_is_gone();
    assert!(!format!("{:?}", thief.asked()).contains(KEY), "{:?}", thief.asked());
    assert_eq!(place.facts("lease").len(), 1, "{:?}", place.facts("lease"));
}

#[test]
fn the_next_key_of_the_ring_is_taken_where_a_server_has_had_enough_of_one() {
    let place = Place::new();
    let kind = &KINDS[0];
    let body = json!({"error": {"message": "slow down", "type": "requests"}}).to_string();
    let enough = format!(
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 50\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let server = Server::start(vec![enough, kind.says("Hello."), kind.says("Again.")]);
    place.configure(&kind.section("mine", server.port, "key_env = [\"KEY_1\", \"KEY_2\"]\n"));
    let mut command = place.command(&["up"]);
    command.env("KEY_1", "sk-the-first-key-of-the-ring").env("KEY_2", "sk-the-second-key-of-the-ring");
    let up = Running::start(&mut command);
    crate::place::wait_until("the node takes clients", || place.run(&["ps"]).status.success());
    for _ in 0..2 {
        place.run(&["run", "--json", "--model", "mine/test", "go on"]).succeeded();
    }
    let keys = |asked: &Asked| asked.head.contains("sk-the-second-key-of-the-ring");
    assert_eq!(server.asked().iter().map(keys).collect::<Vec<_>>(), [false, true, true], "the one that works stays");
    drop(up);
    let leases: Vec<Value> = place.facts("lease").into_iter().map(|fact| fact["secret"].clone()).collect();
    assert_eq!(leases, ["mine", "mine 2", "mine 2"]);
}

#[test]
fn the_old_section_is_refused_with_the_words_how_to_move_it() {
    let place = Place::new();
    place.configure(
        "[openai]\nbase_url = \"https://api.openai.com/v1\"\n[openai.prices.\"*\"]\ninput = 0\noutput = 0\n",
    );
    place.run(&["run", "hi"]).failed(&["[openai]", "[providers.openai]", "ephor.toml"]);
}

#[test]
fn what_is_no_provider_is_refused_with_its_name() {
    for (text, words) in [
        ("[providers.mine]\nbase_url = \"http://127.0.0.1:1\"\n", vec!["providers.mine", "kind", "anthropic"]),
        ("[providers.mine]\nkind = \"grok\"\n", vec!["ephor.toml", "grok"]),
        ("[providers.\"my box\"]\nkind = \"ollama\"\n", vec!["my box", "a-z"]),
        ("[providers.builtin]\nkind = \"ollama\"\n", vec!["builtin"]),
        (
            "[providers.mine]\nkind = \"gemini\"\nheaders = { X-Goog-Api-Key = \"k\" }\n",
            vec!["X-Goog-Api-Key", "key_file"],
        ),
        ("[providers.mine]\nkind = \"ollama\"\nheaders = { Host = \"k\" }\n", vec!["Host"]),
        ("[providers.ollama]\nkey = \"sk-1\"\n", vec!["ephor.toml", "key"]),
    ] {
        let place = Place::new();
        place.configure(text);
        let ran = place.run(&["run", "hi"]).failed(&[]);
        assert!(words.iter().all(|word| ran.stderr.contains(word)), "{text}: {ran}");
    }
}

#[test]
fn the_usual_providers_are_there_without_a_configuration() {
    let place = Place::new();
    for (model, host, variable) in [
        ("anthropic/claude-x", "api.anthropic.com", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-x", "generativelanguage.googleapis.com", "GEMINI_API_KEY"),
        ("openai/gpt-x", "api.openai.com", "OPENAI_API_KEY"),
    ] {
        let ran = place.run(&["run", "--model", model, "hi"]).failed(&[variable]);
        assert!(ran.stderr.contains(host), "the host is named first: {ran}");
    }
    assert!(place.facts("lease").is_empty(), "no key was handed out");
}
