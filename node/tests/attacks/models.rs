//! What a provider answers: shapes, sizes, ends, keys.

use std::{
    fmt::Write as _,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc, Mutex,
        mpsc::{Receiver, Sender, channel},
    },
    thread,
};

use serde_json::{Value, json};

use crate::place::{Place, Ran, Running};

/// The key that no test may find anywhere. Some of its characters are written otherwise in a URL and in JSON.
const KEY: &str = "sk-very/secret+\"key\"-0123456789abcdefghij";

/// What the server was asked.
#[derive(Clone, Debug)]
struct Asked {
    /// The request line and the headers.
    head: String,
    body: Value,
}

/// What it does.
struct Served {
    bytes: Vec<u8>,
    /// Whether the connection stays open behind them.
    held: bool,
}

/// A server on this machine that gives an answer to each request, by what was asked before.
struct Server {
    port: u16,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Held connections end with it.
    _open: Sender<()>,
}

impl Server {
    fn start(answer: impl Fn(&Asked, usize) -> Served + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (open, over) = channel();
        let (notes, over) = (asked.clone(), Arc::new(Mutex::new(over)));
        let answer = Arc::new(answer);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let (notes, answer, over) = (notes.clone(), answer.clone(), over.clone());
                thread::spawn(move || serve(stream, &notes, &*answer, &over));
            }
        });
        Self { port, asked, _open: open }
    }

    /// One that always says the same.
    fn always(served: impl Fn() -> Served + Send + Sync + 'static) -> Self {
        Self::start(move |_, _| served())
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    fn configure(&self, place: &Place, more: &str) {
        place.configure(&format!("[providers.openai]\nbase_url = \"http://127.0.0.1:{}/v1\"\n{more}", self.port));
    }
}

fn serve(
    stream: TcpStream,
    notes: &Mutex<Vec<Asked>>,
    answer: &(impl Fn(&Asked, usize) -> Served + ?Sized),
    over: &Mutex<Receiver<()>>,
) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let length = head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.expect("the body has a length").parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    let asked = Asked { head, body: serde_json::from_slice(&body).unwrap() };
    let at = {
        let mut notes = notes.lock().unwrap();
        notes.push(asked.clone());
        notes.len() - 1
    };
    let Served { bytes, held } = answer(&asked, at);
    // A client that has seen enough may hang up.
    let _hung_up = reader.get_mut().write_all(&bytes);
    if held {
        let _over = over.lock().unwrap().recv();
    }
}

impl From<String> for Served {
    fn from(text: String) -> Self {
        Self { bytes: text.into_bytes(), held: false }
    }
}

const STREAM: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
const CHUNKED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
const DONE: &str = "data: [DONE]\n\n";

/// A stream of these events and no more.
fn events(events: &[Value]) -> String {
    let mut text = STREAM.to_owned();
    for event in events {
        write!(text, "data: {event}\n\n").unwrap();
    }
    text
}

/// A stream of these events, ended as the protocol wants it.
fn stream(chunks: &[Value]) -> String {
    events(chunks) + DONE
}

fn answer_of(kind: &str, status: &str, body: &str, headers: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{headers}Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn refusal(status: &str, error: &Value) -> String {
    answer_of("application/json", status, &json!({ "error": error }).to_string(), "")
}

fn choice(delta: &Value, finish: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn says(text: &str) -> Value {
    choice(&json!({ "content": text }), None)
}

fn finish(reason: &str) -> Value {
    choice(&json!({}), Some(reason))
}

fn calls(calls: &[Value]) -> Value {
    choice(&json!({ "tool_calls": calls }), None)
}

fn usage(input: &Value, output: &Value) -> Value {
    json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}})
}

fn hello() -> Served {
    stream(&[says("Hello."), finish("stop")]).into()
}

const RUN: &[&str] = &["run", "--json", "--model", "openai/test", "go on"];

/// A run against a server that always says `text`, and what it was asked.
fn run(place: &Place, text: String) -> (Ran, Vec<Asked>) {
    let server = Server::always(move || text.clone().into());
    server.configure(place, "");
    let ran = place.run(RUN);
    place.node_is_gone();
    (ran, server.asked())
}

/// How the model calls on the record ended.
fn model_ends(place: &Place) -> Vec<String> {
    let log = place.log();
    let models: Vec<&Value> = log
        .iter()
        .filter(|entry| entry["fact"]["kind"] == "intent" && entry["fact"]["action"] == "model")
        .map(|entry| &entry["seq"])
        .collect();
    let ends = log.iter().map(|entry| &entry["fact"]).filter(|fact| fact["kind"] == "outcome");
    ends.filter(|fact| models.contains(&&fact["intent"])).map(|fact| fact["end"].as_str().unwrap().to_owned()).collect()
}

/// What the model calls on the record have used.
fn used(place: &Place) -> (u64, u64) {
    let outcomes = place.facts("outcome");
    let sum = |name: &str| outcomes.iter().map(|fact| fact["used"][name].as_u64().unwrap()).sum();
    (sum("tokens"), sum("micro_usd"))
}

/// The text of a model call's end, as it is shown.
fn model_text(ran: &Ran) -> String {
    let ended = ran.seen("ended").into_iter().find(|event| event["action"] == "model");
    ended.unwrap_or_else(|| panic!("no model call ended: {ran}"))["text"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_that_was_cut_off_is_kept_and_is_no_success() {
    let place = Place::new();
    let (ran, asked) = run(&place, stream(&[says("The answer is cut off in the mid"), finish("length")]));
    assert_eq!(ran.status.code(), Some(3), "{ran}");
    let reply = ran.reply();
    assert_eq!(reply["end"], "cut_off", "{ran}");
    let text = reply["text"].as_str().unwrap();
    assert!(text.starts_with("The answer is cut off in the mid") && text.contains("max_output_tokens"), "{text}");
    assert_eq!((asked.len(), model_ends(&place)), (1, vec!["cut_off".to_owned()]));
    place.verify();
}

#[test]
fn an_answer_that_was_refused_is_kept_and_is_no_success() {
    for refused in [
        vec![says("So far"), finish("content_filter")],
        vec![choice(&json!({ "refusal": "So far I cannot" }), None), finish("stop")],
        vec![says("So far"), finish("refusal")],
    ] {
        let place = Place::new();
        let (ran, asked) = run(&place, stream(&refused));
        assert_eq!(ran.status.code(), Some(4), "{ran}");
        let reply = ran.reply();
        assert_eq!(reply["end"], "model_refused", "{ran}");
        let text = reply["text"].as_str().unwrap();
        assert!(text.starts_with("So far") && text.contains("refused"), "{text}");
        assert_eq!((asked.len(), model_ends(&place)), (1, vec!["refused".to_owned()]));
        place.verify();
    }
}

#[test]
fn no_tool_of_an_answer_that_was_cut_off_is_called() {
    let place = Place::new();
    place.file("a.txt", "a");
    let list = json!({"index": 0, "id": "a", "function": {"name": "fsList", "arguments": "{\"path\": \".\"}"}});
    let (ran, asked) = run(&place, stream(&[says("Looking."), calls(&[list]), finish("length")]));
    assert_eq!(ran.reply()["end"], "cut_off", "{ran}");
    assert!(ran.seen("started").iter().all(|event| event["action"] != "tool"), "{ran}");
    assert_eq!(asked.len(), 1);
    // The session goes on from it.
    let session = ran.seen("opened")[0]["session"].as_str().unwrap().to_owned();
    let server = Server::always(hello);
    server.configure(&place, "");
    place.run(&["run", "--session", &session, "and now"]).succeeded();
    place.verify();
}

#[test]
fn a_complete_answer_is_kept_whatever_becomes_of_its_connection() {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let whole = || format!("data: {}\n\ndata: {}\n\n", says("A whole answer."), finish("stop"));
    let unclean = format!("{CHUNKED}{}", chunk(&whole()));
    let lied = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 99999\r\nConnection: close\r\n\r\n{}",
        whole()
    );
    let half = format!("{STREAM}{}data: {{\"choices\":[{{\"del", whole());
    let error = format!("{STREAM}{}data: {}\n\n", whole(), json!({"error": {"message": "late"}}));
    let plain = format!("{STREAM}{}", whole());
    for (text, held) in
        [(unclean.clone(), false), (lied, false), (half, false), (error, false), (plain, false), (unclean, true)]
    {
        let place = Place::new();
        let server = Server::always({
            let text = text.clone();
            move || Served { bytes: text.clone().into_bytes(), held }
        });
        server.configure(&place, "");
        let ran = place.run(RUN).succeeded();
        assert_eq!(ran.reply()["text"], "A whole answer.", "{text}: {ran}");
        assert_eq!((server.asked().len(), model_ends(&place)), (1, vec!["done".to_owned()]), "{text}");
    }
}

#[test]
fn an_empty_stream_is_no_answer() {
    let place = Place::new();
    let (ran, asked) = run(&place, format!("{STREAM}{DONE}"));
    assert_eq!(ran.status.code(), Some(1), "{ran}");
    assert_eq!(ran.reply()["end"], json!({"failed": "interrupted"}), "{ran}");
    assert_eq!((asked.len(), model_ends(&place)), (3, vec!["interrupted".to_owned(); 3]));
}

#[test]
fn what_will_not_pass_is_asked_for_once_and_told_in_words() {
    let html = answer_of("text/html", "200 OK", "<html><title>Login</title></html>", "");
    let overloaded = json!({"object": "error", "message": "model is overloaded", "code": 50}).to_string();
    let error = |error: Value| format!("{STREAM}data: {}\n\n{DONE}", json!({ "error": error }));
    let flagged = json!({"code": 403, "message": "Your input was flagged by moderation"});
    let quota = json!({"message": "You exceeded your current quota", "type": "insufficient_quota", "code": "insufficient_quota"});
    for (text, end, words) in [
        (html, "rejected", vec!["web page", "providers.openai.base_url"]),
        (answer_of("application/json", "200 OK", &overloaded, ""), "rejected", vec!["overloaded"]),
        (
            answer_of("text/plain", "200 OK", "It works!", ""),
            "rejected",
            vec!["Chat Completions", "providers.openai.base_url"],
        ),
        (
            error(json!({"code": 400, "message": "bad tool schema", "type": "invalid_request_error"})),
            "rejected",
            vec!["bad tool schema"],
        ),
        (
            error(json!({"code": 401, "message": "no such key"})),
            "unauthorized",
            vec!["no such key", "providers.openai.key_file"],
        ),
        (error(quota.clone()), "quota", vec!["exceeded your current quota"]),
        (refusal("403 Forbidden", &flagged), "forbidden", vec!["flagged by moderation", "403"]),
        (refusal("429 Too Many Requests", &quota), "quota", vec!["exceeded your current quota"]),
        (refusal("402 Payment Required", &json!({"message": "no credit"})), "quota", vec!["no credit"]),
    ] {
        let place = Place::new();
        let (ran, asked) = run(&place, text.clone());
        assert_eq!(ran.status.code(), Some(1), "{ran}");
        assert_eq!(ran.reply()["end"], json!({ "failed": end }), "{text}: {ran}");
        let told = model_text(&ran);
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
        assert!(end != "forbidden" || !told.contains("key"), "a 403 is not always the key: {told}");
        assert_eq!((asked.len(), model_ends(&place)), (1, vec![end.to_owned()]), "{text}: {ran}");
    }
}

#[test]
fn an_answer_in_json_is_read_whatever_its_content_type_says() {
    let body = json!({"choices": [{"message": {"content": "Hello."}, "finish_reason": "stop"}]}).to_string();
    let events = format!("data: {}\n\ndata: {}\n\n{DONE}", says("Hello."), finish("stop"));
    for (kind, body) in
        [("text/plain", &body), ("text/event-stream", &body), ("application/json", &events), ("text/plain", &events)]
    {
        let place = Place::new();
        let (ran, asked) = run(&place, answer_of(kind, "200 OK", body, ""));
        assert_eq!(ran.succeeded().reply()["text"], "Hello.", "{kind}: {body}");
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn what_a_server_understands_is_remembered() {
    let place = Place::new();
    let server = Server::start(|asked, _| {
        let has = |name: &str| asked.body.get(name).is_some();
        let is_first = asked.body["messages"].as_array().unwrap().iter().all(|message| message["role"] != "assistant");
        if has("stream_options") {
            return refusal("400 Bad Request", &json!({"message": "unknown field stream_options"})).into();
        }
        if has("max_tokens") {
            let message = "'max_tokens' is not supported, use 'max_completion_tokens'";
            return refusal("400 Bad Request", &json!({ "message": message })).into();
        }
        let list = json!({"index": 0, "id": "a", "function": {"name": "fsList", "arguments": "{\"path\": \".\"}"}});
        if is_first { stream(&[calls(&[list]), finish("tool_calls")]).into() } else { hello() }
    });
    server.configure(&place, "");
    let ran = place.run(RUN).succeeded();
    assert_eq!((ran.reply()["text"].as_str(), server.asked().len()), (Some("Hello."), 4), "{ran}");
}

#[test]
fn reported_usage_is_held_against_what_was_sent_and_received() {
    let text = "word ".repeat(15_000);
    let honest = json!(18_750);
    let count = |input: Value, output: Value| {
        let place = Place::new();
        // Of two runs on one node: what one server reports must not be the end of another session.
        let text = text.clone();
        let server = Server::always(move || stream(&[says(&text), finish("stop"), usage(&input, &output)]).into());
        server.configure(&place, "[budget]\ntokens = 100000\n");
        let up = place.up();
        let session = |ran: Ran| ran.succeeded().reply()["report"]["output_tokens"].as_u64().unwrap();
        let first = session(place.run(RUN));
        assert_eq!(session(place.run(RUN)), first);
        drop(up);
        first
    };
    let counted = 75_000_u64.div_ceil(3);
    for reported in [json!(0), json!(null), json!(-1), json!(1.5), json!(1e300), json!(u64::MAX), json!("7"), json!([])]
    {
        assert_eq!(count(json!(1000), reported.clone()), counted, "{reported}");
    }
    assert_eq!(count(json!(u64::MAX), honest), 18_750);
    assert_eq!(count(json!(0), json!(18_750.0)), 18_750, "a whole number is one however it is written");
}

#[test]
fn what_a_model_thinks_counts_where_nothing_is_reported() {
    let think = |name: &str| {
        let place = Place::new();
        let thought = choice(&json!({ name: "think ".repeat(1000) }), None);
        let (ran, _) = run(&place, stream(&[thought, says("ok"), finish("stop")]));
        let reply = ran.succeeded().reply();
        assert_eq!(reply["text"], "ok");
        reply["report"]["output_tokens"].as_u64().unwrap()
    };
    assert!(think("reasoning_content") >= 2000);
    assert!(think("reasoning") >= 2000);
}

#[test]
fn tokens_cost_what_the_configuration_says_and_never_nothing_by_default() {
    let cost = |more: &str| {
        let place = Place::new();
        let server = Server::always(|| {
            stream(&[says(&"word ".repeat(4000)), finish("stop"), usage(&json!(1000), &json!(5000))]).into()
        });
        server.configure(&place, more);
        place.run(RUN).succeeded();
        place.node_is_gone();
        used(&place).1
    };
    assert!(cost("") >= 300_000, "the price of an unknown model is a high one, this machine's too");
    assert_eq!(cost("[providers.openai.prices.test]\ninput = 0\noutput = 0\n"), 0);
    let dear = cost("[providers.openai.prices.test]\ninput = 0\noutput = 100.5\n");
    assert_eq!(dear, 502_500);
    assert_eq!(
        cost(
            "[providers.openai.prices.\"*\"]\ninput = 0\noutput = 1\n[providers.openai.prices.other]\ninput = 9\noutput = 9\n"
        ),
        5000
    );
    let place = Place::new();
    place.configure("[providers.openai.prices.test]\ninput = -1\noutput = 0\n");
    place.run(RUN).failed(&["providers.openai.prices.test", "-1"]);
}

#[test]
fn the_key_that_the_operator_named_is_sent_to_the_server_that_the_operator_named() {
    let place = Place::new();
    let file = place.root().join("key");
    std::fs::write(&file, format!("{KEY}\n")).unwrap();
    let server = Server::always(hello);
    server.configure(&place, &format!("key_file = \"{}\"\n", file.display()));
    place.run(RUN).succeeded();
    place.node_is_gone();
    server.configure(&place, "key_env = \"MY_KEY\"\n");
    Running::start(place.command(RUN).env("MY_KEY", "sk-of-the-environment")).ended().succeeded();
    let heads: Vec<String> = server.asked().into_iter().map(|asked| asked.head).collect();
    assert!(heads[0].contains(&format!("Bearer {KEY}\r\n")), "{heads:?}");
    assert!(heads[1].contains("Bearer sk-of-the-environment\r\n"), "{heads:?}");
    assert_eq!(place.facts("lease").len(), 2);
}

#[test]
fn a_key_is_said_to_be_unused_only_where_it_is() {
    let note = "OPENAI_API_KEY is set and not used";
    let place = Place::new();
    let server = Server::always(hello);
    place.configure(&format!(
        "model = \"openai/test\"\n[providers.openai]\nbase_url = \"http://127.0.0.1:{}/v1\"\nkey_env = \"OPENAI_API_KEY\"\n",
        server.port
    ));
    let run = |args: &[&str]| Running::start(place.command(args).env("OPENAI_API_KEY", KEY)).ended().succeeded();
    let used = run(&["run", "go on"]);
    assert!(!used.stderr.contains(note), "{used}");
    let unused = run(&["run", "--model", "builtin/scout", "go on"]);
    assert!(unused.stderr.contains(note), "{unused}");
}

/// The key as servers and what stands before them may write it.
fn spellings() -> Vec<String> {
    let url: String = KEY.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let some_url = KEY.replace('/', "%2f").replace('+', "%2B").replace('"', "%22");
    let json = KEY.replace('"', "\\\"").replace('/', "\\/");
    let unicode: String = KEY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect();
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let entities = KEY.replace('"', "&quot;").replace('/', "&#x2F;").replace('+', "&#43;");
    let mut all = vec![KEY.to_owned(), url, some_url, json, unicode, hex, entities];
    for before in ["", "B", "Be", "Bearer "] {
        all.extend([base64(&format!("{before}{KEY}"), b"+/"), base64(&format!("{before}{KEY}"), b"-_")]);
    }
    all
}

fn base64(text: &str, last: &[u8; 2]) -> String {
    let alphabet: Vec<u8> = (b'A'..=b'Z').chain(b'a'..=b'z').chain(b'0'..=b'9').chain(*last).collect();
    let mut out = String::new();
    for piece in text.as_bytes().chunks(3) {
        let bits = piece.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - piece.len()));
        for at in 0..=piece.len() {
            out.push(char::from(alphabet[(bits >> (18 - 6 * at)) as usize & 63]));
        }
    }
    out
}

#[test]
fn a_key_that_a_server_says_back_is_neither_shown_nor_recorded() {
    let place = Place::new();
    let file = place.root().join("key");
    std::fs::write(&file, KEY).unwrap();
    let spelt = spellings();
    let forms = spelt.clone();
    // Each spelling comes in a refusal, as JSON and bare, in an error within the stream, and in the answer itself, in pieces.
    let server = Server::start(move |_, at| {
        let text = &forms[at / 5 % forms.len()];
        let message = json!({ "message": format!("debug headers: {text}") });
        match at % 5 {
            0 => refusal("401 Unauthorized", &message),
            1 => answer_of("text/plain", "400 Bad Request", &format!("debug: {text}"), ""),
            2 => format!("{STREAM}data: {}\n\n{DONE}", json!({"error": {"code": 400, "message": text}})),
            3 => {
                let pieces: Vec<Value> = text.chars().map(|piece| says(&piece.to_string())).collect();
                stream(&[&pieces[..], &[finish("stop")]].concat())
            }
            _ => {
                let call = json!({"index": 0, "id": text, "function": {"name": text, "arguments": json!({"path": text}).to_string()}});
                stream(&[calls(&[call]), finish("length")])
            }
        }
        .into()
    });
    server.configure(&place, &format!("key_file = \"{}\"\n", file.display()));
    let up = place.up();
    let mut shown = String::new();
    for at in 0..spelt.len() * 5 {
        let ran = place.run(if at % 2 == 0 { RUN } else { &["run", "--model", "openai/test", "go on"] });
        shown += &format!("{ran}\n");
    }
    assert_eq!(server.asked().len(), spelt.len() * 5, "one request each");
    let log = place.run(&["chain", "log", "--json", "--content"]);
    drop(up);
    for (what, text) in [("shown", shown), ("recorded", log.stdout)] {
        // Whatever stands for a character of it in JSON is unfolded once more than it was folded.
        let texts = [text.clone(), text.replace("\\\\", "\\").replace("\\\"", "\"")];
        for form in &spelt {
            // Of a base64 text the ends depend on what stands beside the key.
            let core = form.get(4..form.len() - 4).unwrap();
            let line = texts.iter().find_map(|text| text.lines().find(|line| line.contains(core)));
            assert!(line.is_none(), "`{form}` is {what}: {}", line.unwrap_or_default());
        }
    }
}

#[test]
fn however_much_a_server_says_of_an_error_a_person_is_shown_little_of_it() {
    let long = "A".repeat(1_000_000);
    let bad = format!("{STREAM}data: {{\"choices\":\"{long}\"}}\n\n{DONE}");
    let name =
        format!("{STREAM}data: {}\n\n{DONE}", json!({ "error": { "message": long, "type": long, "code": long } }));
    let body = refusal("400 Bad Request", &json!({ "message": format!("\u{1b}[2J\u{202e}{long}") }));
    let page = answer_of("text/html", "502 Bad Gateway", &format!("<html>{long}"), "");
    for text in [bad, name, body, page] {
        for json in [true, false] {
            let place = Place::new();
            let text = text.clone();
            let server = Server::always(move || text.clone().into());
            server.configure(&place, "");
            let ran = place.run(if json { RUN } else { &["run", "--model", "openai/test", "go on"] }).failed(&[]);
            assert!(ran.stderr.len() + ran.stdout.len() < 16_000, "{} bytes", ran.stderr.len() + ran.stdout.len());
            assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\u{202e}'));
        }
    }
}

#[test]
fn the_shapes_of_real_providers_are_understood() {
    let whole = |finish: &str| json!({"choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": "Hello."}}]});
    let both = json!({"role": "assistant", "content": "Hello."});
    let parts = json!({"content": [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "text", "text": "Hel"},
        {"type": "text", "text": {"value": "lo."}},
    ]});
    let nulls = json!({"choices": [{"index": null, "delta": {"role": null, "content": null, "tool_calls": null, "refusal": null}, "finish_reason": null, "logprobs": null}], "usage": null, "error": null});
    for events in [
        vec![says("Hello."), finish("stop"), usage(&json!(-1), &json!(5.0))],
        vec![json!({"choices": [{"index": 0, "message": both, "delta": both, "finish_reason": null}]}), finish("stop")],
        vec![says("Hel"), says("lo."), whole("stop")],
        vec![whole("stop")],
        vec![choice(&parts, None), finish("stop")],
        vec![
            nulls.clone(),
            json!({"choices": null, "usage": null}),
            json!({"choices": []}),
            json!({"choices": [null]}),
            says("Hello."),
            nulls,
            finish("stop"),
        ],
        vec![
            json!({"choices": [{"index": "0", "delta": {"content": "Hello."}, "finish_reason": "stop", "native_finish_reason": 7}], "id": 5}),
        ],
    ] {
        let place = Place::new();
        let (ran, asked) = run(&place, stream(&events));
        assert_eq!(ran.succeeded().reply()["text"], "Hello.", "{events:?}");
        assert_eq!(asked.len(), 1);
    }
}

#[test]
fn tool_calls_are_told_apart_however_they_are_numbered() {
    let function = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let (list, read) = (function("fsList", r#"{"path": "."}"#), function("fsRead", r#"{"path": "a.txt"}"#));
    let empty = [json!({"index": 0, "id": "", "function": list}), json!({"index": 0, "id": "", "function": read})];
    let same = [
        json!({"index": 0, "id": "", "function": list}),
        json!({"index": 0, "id": "", "function": function("fsList", r#"{"path": "./"}"#)}),
    ];
    let numbers = [json!({"index": 0, "id": 7, "function": list}), json!({"index": 1, "id": 8, "function": read})];
    let floats =
        [json!({"index": 0.0, "id": null, "function": list}), json!({"index": "1", "id": null, "function": read})];
    let last = json!({"choices": [{"index": 0, "finish_reason": "tool_calls", "message": {"content": null, "tool_calls": [
        {"id": "a", "function": list}, {"id": "b", "function": read},
    ]}}]});
    for (events, tools) in [
        (empty.clone().map(|call| calls(&[call])).to_vec(), ["fs.list", "fs.read"]),
        (vec![calls(&empty)], ["fs.list", "fs.read"]),
        (vec![calls(&same)], ["fs.list", "fs.list"]),
        (vec![calls(&numbers)], ["fs.list", "fs.read"]),
        (vec![calls(&floats)], ["fs.list", "fs.read"]),
        (vec![says("Looking."), last], ["fs.list", "fs.read"]),
    ] {
        let place = Place::new();
        place.file("a.txt", "a");
        let first = stream(&[&events[..], &[finish("tool_calls")]].concat());
        let server = Server::start(move |_, at| if at == 0 { first.clone().into() } else { hello() });
        server.configure(&place, "");
        let ran = place.run(RUN).succeeded();
        let started = ran.seen("started").into_iter().filter(|event| event["action"] == "tool");
        let targets: Vec<String> = started.map(|event| event["target"].as_str().unwrap().to_owned()).collect();
        assert_eq!(targets, tools, "{events:?}: {ran}");
    }
}

#[test]
fn one_event_or_body_is_held_against_the_output_limit_as_it_comes() {
    let arguments = json!({"path": "x", "content": "B".repeat(14_000_000)}).to_string();
    let call = json!({"index": 0, "id": "c", "function": {"name": "fsWrite", "arguments": arguments}});
    let body = json!({"choices": [{"message": {"content": "A".repeat(15_000_000)}, "finish_reason": "stop"}]});
    let line = format!("{STREAM}data: {}", "A".repeat(14_000_000));
    for text in [stream(&[calls(&[call])]), answer_of("application/json", "200 OK", &body.to_string(), ""), line] {
        let place = Place::new();
        let (ran, asked) = run(&place, text);
        assert_eq!((ran.status.code(), &ran.reply()["end"]), (Some(3), &json!("cut_off")), "{ran}");
        assert!(ran.stdout.len() < 100_000 && asked.len() == 1, "{ran}");
    }
}

#[test]
fn a_server_that_says_when_to_ask_again_is_asked_again_then() {
    let place = Place::new();
    let server = Server::start(|_, at| match at {
        0 => answer_of(
            "application/json",
            "429 Too Many Requests",
            r#"{"error":{"message":"slow down"}}"#,
            "Retry-After: 2\r\n",
        )
        .into(),
        1 => {
            let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:49:38 GMT\r\n";
            answer_of("application/json", "503 Service Unavailable", r#"{"error":{"message":"busy"}}"#, date).into()
        }
        _ => hello(),
    });
    server.configure(&place, "");
    let ran = place.run(&["run", "--model", "openai/test", "go on"]).succeeded();
    assert!(ran.stderr.contains("retrying in 2 s (2 of 3): ") && ran.stderr.contains("slow down"), "{ran}");
    assert!(ran.stderr.contains("retrying in 1 s (3 of 3): ") && ran.stderr.contains("busy"), "{ran}");
    let attempts: Vec<Value> = place
        .facts("intent")
        .into_iter()
        .filter(|fact| fact["action"] == "model")
        .map(|fact| fact["attempt"].clone())
        .collect();
    assert_eq!(attempts, [json!(1), json!(2), json!(3)], "each attempt has its number on the record");
    place.verify();
}

#[test]
fn a_server_that_asks_to_wait_for_too_long_is_not_waited_for() {
    for after in ["99999", "99999999999999999999999", "Sat, 06 Nov 2094 08:49:37 GMT"] {
        let place = Place::new();
        let head = format!("Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: {after}\r\n");
        let (ran, asked) = run(&place, answer_of("application/json", "429 Too Many Requests", "{}", &head));
        assert_eq!(ran.reply()["end"], json!({"failed": "throttled"}), "{ran}");
        assert_eq!(asked.len(), 1, "{ran}");
    }
    // What says nothing that can be read is as nothing.
    for after in ["-5", "soon", "", "1.5"] {
        let place = Place::new();
        let (ran, asked) = run(
            &place,
            answer_of("application/json", "429 Too Many Requests", "{}", &format!("Retry-After: {after}\r\n")),
        );
        assert_eq!((asked.len(), &ran.reply()["end"]), (3, &json!({"failed": "throttled"})), "{ran}");
    }
}

#[test]
fn a_server_that_fails_three_times_is_told_of_in_a_sentence() {
    let place = Place::new();
    let server = Server::always(|| refusal("500 Internal Server Error", &json!({"message": "boom"})).into());
    server.configure(&place, "");
    let ran = place.run(&["run", "--model", "openai/test", "go on"]).failed(&["boom", "(2 of 3)", "(3 of 3)"]);
    assert!(ran.stdout.contains("Server error 500 after 3 attempts."), "{ran}");
    assert_eq!((server.asked().len(), model_ends(&place)), (3, vec!["server_error".to_owned(); 3]));
}

#[test]
fn how_long_a_server_may_think_is_configured_within_bounds() {
    let place = Place::new();
    let server = Server::always(|| Served { bytes: Vec::new(), held: true });
    server.configure(&place, "first_byte_seconds = 1\n");
    let ran = place.run(RUN).failed(&[]);
    assert_eq!(ran.reply()["end"], json!({"failed": "timeout"}), "{ran}");
    assert!(model_text(&ran).contains("providers.openai.first_byte_seconds"), "{ran}");
    place.node_is_gone();
    let server = Server::always(|| Served { bytes: events(&[says("so far")]).into_bytes(), held: true });
    server.configure(&place, "idle_seconds = 1\n");
    let ran = place.run(RUN).failed(&[]);
    assert!(model_text(&ran).contains("providers.openai.idle_seconds"), "{ran}");
    for bad in ["first_byte_seconds = 0", "idle_seconds = 0", "idle_seconds = 99999999", "first_byte_seconds = 3601"] {
        place.node_is_gone();
        server.configure(&place, &format!("{bad}\n"));
        place.run(RUN).failed(&[&format!("providers.openai.{}", bad.split(' ').next().unwrap()), "1 to 3600"]);
    }
}
