//! Requests as the documentation of each provider has them.

use ephor_base::{ToolSpec, ToolUse};
use ephor_wire::{
    Cache, Delivery, Dialect, Effort, Encoded, Feature, Grammar, Image, Message, ModelName, Output, Part, Request,
    Sampling, Schema, Shown, State, Thinking, ToolEnd, ToolResult, encode,
    request::{BadRequest, CacheKey},
};
use serde_json::{Value, json};

const SCHEMA: &str = r#"{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"number","maximum":1e2}},"required":["path"]}"#;

fn text(text: &str) -> Shown {
    Shown::Text(text.to_owned())
}

fn image() -> Image {
    Image::new("image/png", b"\x89PNG".to_vec()).unwrap()
}

fn call(id: &str, arguments: &str) -> Part {
    Part::Call(ToolUse { id: id.into(), name: "fs.read".into(), arguments: arguments.into() })
}

fn result(id: &str, end: ToolEnd, shown: Vec<Shown>) -> ToolResult {
    ToolResult { id: id.into(), name: "fs.read".into(), end, shown }
}

fn state(grammar: Grammar) -> State {
    let json = match grammar {
        Grammar::Anthropic => r#"{"type":"thinking","thinking":"I see.","signature":"Eq+/=="}"#,
        Grammar::Responses => r#"{ "id":"rs_1", "type":"reasoning", "summary":[], "encrypted_content":"gAA+/==" }"#,
        Grammar::Gemini => r#"{"thoughtSignature":"Ci+/AA=="}"#,
        Grammar::Chat => r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"x+/=="}]}"#,
        Grammar::Ollama => r#"{"unused":true}"#,
    };
    State::new(grammar, json).unwrap()
}

/// A conversation with everything in it.
pub(crate) fn request() -> Request {
    let thought: Vec<Part> = Grammar::ALL.into_iter().map(|grammar| Part::State(state(grammar))).collect();
    let mut answer = vec![Part::Thinking("I see.".to_owned())];
    answer.extend(thought);
    answer.extend([call("call_a", "{\"path\":\"a\", \"n\":1e2}"), call("call.b:0", "{oops"), call("call_c", "")]);
    let messages = vec![
        Message::User(vec![text("look at"), Shown::Image(image())]),
        Message::Assistant(answer),
        Message::Results(vec![
            result("call_a", ToolEnd::Done, vec![text("x:1: TODO"), Shown::Image(image())]),
            result("call.b:0", ToolEnd::Failed, vec![text("no JSON")]),
            result("call_c", ToolEnd::Done, vec![text("")]),
        ]),
        Message::Assistant(vec![Part::Text("It says TODO.".to_owned())]),
        Message::User(vec![text("thanks")]),
    ];
    let tool =
        |name: &str| ToolSpec { name: name.parse().unwrap(), description: "Reads.".into(), schema: SCHEMA.into() };
    Request::new(ModelName::new("vendor/model-1").unwrap(), messages, 4096)
        .unwrap()
        .instructed("be brief")
        .unwrap()
        .offering(vec![tool("fs.read"), tool("fs.list")])
        .unwrap()
        .sampled(Sampling::default().temperature(700).unwrap())
        .thought(Thinking::Effort(Effort::Low))
        .answering(Output::Json(Schema::new("answer", r#"{"type":"object","properties":{}}"#).unwrap()))
        .cached(Cache::Conversation(CacheKey::new("session-1").unwrap()))
}

fn body(encoded: &Encoded) -> Value {
    serde_json::from_slice(&encoded.body).unwrap()
}

fn of(grammar: Grammar) -> (Encoded, Value) {
    let encoded = encode(grammar, Dialect::NATIVE, &request());
    let body = body(&encoded);
    (encoded, body)
}

#[test]
fn the_paths_and_headers_are_those_of_each_provider() {
    for (grammar, path, query, header) in [
        (Grammar::Anthropic, "v1/messages", "", "x-api-key"),
        (Grammar::Chat, "chat/completions", "", "authorization"),
        (Grammar::Responses, "responses", "", "authorization"),
        (Grammar::Gemini, "v1beta/models/vendor%2Fmodel-1:streamGenerateContent", "alt=sse", "x-goog-api-key"),
        (Grammar::Ollama, "api/chat", "", "authorization"),
    ] {
        let (encoded, _) = of(grammar);
        assert_eq!((encoded.path.as_str(), encoded.query, grammar.auth().header), (path, query, header));
        assert!(encoded.headers.contains(&("content-type", "application/json")));
        assert_eq!(encoded.headers.contains(&("anthropic-version", "2023-06-01")), grammar == Grammar::Anthropic);
        assert_eq!(Grammar::named(grammar.name()), Some(grammar));
    }
    let whole = encode(Grammar::Gemini, Dialect::NATIVE, &request().delivered(Delivery::Whole));
    assert_eq!((whole.path.as_str(), whole.query), ("v1beta/models/vendor%2Fmodel-1:generateContent", ""));
    for (name, path) in [
        ("models/gemini-3-pro", "models/gemini-3-pro"),
        ("tunedModels/x", "tunedModels/x"),
        ("../../x", "models/..%2F..%2Fx"),
    ] {
        let request = Request::new(ModelName::new(name).unwrap(), Vec::new(), 1).unwrap();
        let encoded = encode(Grammar::Gemini, Dialect::NATIVE, &request);
        assert_eq!(encoded.path, format!("v1beta/{path}:streamGenerateContent"));
    }
}

#[test]
fn what_is_not_streamed_says_so() {
    for grammar in [Grammar::Anthropic, Grammar::Chat, Grammar::Responses, Grammar::Ollama] {
        let encoded = encode(grammar, Dialect::NATIVE, &request().delivered(Delivery::Whole));
        assert_eq!(body(&encoded)["stream"], false);
        assert_eq!(of(grammar).1["stream"], true);
        assert!(body(&encoded).get("stream_options").is_none());
    }
}

#[test]
fn a_model_that_cannot_be_sampled_is_not_told_how() {
    for grammar in Grammar::ALL {
        let [with, without] = [Dialect::NATIVE, Dialect::NATIVE.without(Feature::Sampling)]
            .map(|dialect| body(&encode(grammar, dialect, &request())).to_string().contains("temperature"));
        assert_eq!((with, without), (true, false), "{grammar}");
    }
}

#[test]
fn anthropic_is_written_as_documented() {
    let (_, body) = of(Grammar::Anthropic);
    let ephemeral = json!({ "type": "ephemeral" });
    assert_eq!(
        (&body["model"], &body["max_tokens"], &body["temperature"]),
        (&json!("vendor/model-1"), &json!(4096), &json!(0.7))
    );
    assert_eq!(body["system"], json!([{ "type": "text", "text": "be brief", "cache_control": ephemeral }]));
    assert_eq!(body["thinking"], json!({ "type": "adaptive" }));
    assert_eq!(body["output_config"]["effort"], "low");
    assert_eq!(body["output_config"]["format"]["type"], "json_schema");
    assert_eq!(body["tools"][0]["name"], "fsRead");
    assert_eq!((&body["tools"][0].get("cache_control"), &body["tools"][1]["cache_control"]), (&None, &ephemeral));
    let source = json!({ "type": "base64", "media_type": "image/png", "data": "iVBORw==" });
    assert_eq!(body["messages"][0]["content"][1], json!({ "type": "image", "source": source }));
    let answer = &body["messages"][1];
    assert_eq!(answer["role"], "assistant");
    assert_eq!(answer["content"][0], json!({ "type": "thinking", "thinking": "I see.", "signature": "Eq+/==" }));
    assert_eq!(
        answer["content"][1],
        json!({ "type": "tool_use", "id": "call_a", "name": "fsRead", "input": { "path": "a", "n": 100.0 } })
    );
    assert_eq!(answer["content"][2]["input"], json!({ "malformed": "{oops" }));
    assert_eq!(answer["content"][3]["input"], json!({}));
    assert_eq!(answer["content"].as_array().unwrap().len(), 4, "the state of others is left out");
    let results = &body["messages"][2]["content"];
    assert_eq!((&results[0]["tool_use_id"], &results[0].get("is_error")), (&json!("call_a"), &None));
    assert_eq!(results[0]["content"][1]["type"], "image");
    assert_eq!((&results[1]["is_error"], &results[1]["tool_use_id"]), (&json!(true), &answer["content"][2]["id"]));
    let id = results[1]["tool_use_id"].as_str().unwrap();
    assert!(id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'), "{id}");
    assert_eq!(results[2]["content"], json!([]), "an empty text is refused");
    assert_eq!(results[2]["cache_control"], ephemeral);
    assert_eq!(
        body["messages"][4]["content"],
        json!([{ "type": "text", "text": "thanks", "cache_control": ephemeral }])
    );
    let marks = body.to_string().matches("cache_control").count();
    assert_eq!(marks, 4, "no more than four are taken");
}

#[test]
fn the_results_of_an_answer_stand_before_all_else_in_their_turn() {
    let messages = vec![
        Message::User(vec![text("a")]),
        Message::User(vec![text("b")]),
        Message::Assistant(vec![call("x", "{}"), call("y", "{}")]),
        Message::Results(vec![result("x", ToolEnd::Done, vec![text("1")])]),
        Message::User(vec![text("meanwhile")]),
        Message::Results(vec![result("y", ToolEnd::Done, vec![text("2")])]),
        Message::Assistant(vec![Part::Text(String::new())]),
    ];
    let request = Request::new(ModelName::new("m").unwrap(), messages, 1).unwrap();
    let body = body(&encode(Grammar::Anthropic, Dialect::NATIVE, &request));
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let kinds: Vec<_> =
        body["messages"][2]["content"].as_array().unwrap().iter().map(|block| block["type"].clone()).collect();
    assert_eq!(kinds, ["tool_result", "tool_result", "text"]);
    assert!(!body.to_string().contains("cache_control"));
}

#[test]
fn chat_is_written_as_documented() {
    let (_, body) = of(Grammar::Chat);
    assert_eq!((&body["max_completion_tokens"], body.get("max_tokens")), (&json!(4096), None));
    assert_eq!((&body["reasoning_effort"], &body["prompt_cache_key"]), (&json!("low"), &json!("session-1")));
    assert_eq!(body["stream_options"], json!({ "include_usage": true }));
    assert_eq!(body["response_format"]["json_schema"]["name"], "answer");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0], json!({ "role": "system", "content": "be brief" }));
    assert_eq!(
        messages[1]["content"][1],
        json!({ "type": "image_url", "image_url": { "url": "data:image/png;base64,iVBORw==" } })
    );
    let calls = &messages[2]["tool_calls"];
    assert_eq!(messages[2]["content"], Value::Null);
    assert_eq!(calls[0]["function"], json!({ "name": "fsRead", "arguments": "{\"path\":\"a\", \"n\":1e2}" }));
    assert_eq!(
        (&calls[1]["function"]["arguments"], &calls[2]["function"]["arguments"]),
        (&json!("{\"malformed\":\"{oops\"}"), &json!("{}"))
    );
    assert_eq!(messages[2]["reasoning_details"][0]["data"], "x+/==");
    assert_eq!(messages[2].get("reasoning_content"), None);
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "tool", "user", "assistant", "user"]);
    assert_eq!((&messages[3]["content"], &messages[4]["tool_call_id"]), (&json!("x:1: TODO"), &calls[1]["id"]));
    assert!(messages[4]["content"].as_str().unwrap().starts_with("This call failed"));
    assert_eq!(messages[6]["content"][1]["type"], "image_url");
    assert_eq!(messages[8], json!({ "role": "user", "content": "thanks" }), "text alone is a string");
}

#[test]
fn a_compatible_server_is_sent_what_it_knows() {
    let dialect = Dialect::COMPATIBLE
        .with(Feature::ReasoningContent)
        .without(Feature::JsonSchema)
        .without(Feature::UsageInStream);
    let body = body(&encode(Grammar::Chat, dialect, &request()));
    assert_eq!((&body["max_tokens"], body.get("max_completion_tokens")), (&json!(4096), None));
    assert_eq!((body.get("prompt_cache_key"), body.get("stream_options")), (None, None));
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert_eq!(body["messages"][2]["reasoning_content"], "I see.");
}

#[test]
fn responses_are_asked_for_as_documented() {
    let (encoded, body) = of(Grammar::Responses);
    assert_eq!(
        (&body["instructions"], &body["store"], &body["max_output_tokens"]),
        (&json!("be brief"), &json!(false), &json!(4096))
    );
    assert_eq!(body["include"], json!(["reasoning.encrypted_content"]));
    assert_eq!(body["reasoning"], json!({ "effort": "low", "summary": "auto" }));
    assert_eq!((&body["text"]["format"]["name"], &body["prompt_cache_key"]), (&json!("answer"), &json!("session-1")));
    assert_eq!((&body["tools"][0]["name"], &body["tools"][0]["strict"]), (&json!("fsRead"), &json!(false)));
    let input = body["input"].as_array().unwrap();
    assert_eq!(
        input[0]["content"][1],
        json!({ "type": "input_image", "image_url": "data:image/png;base64,iVBORw==", "detail": "auto" })
    );
    let item = state(Grammar::Responses).json().to_owned();
    assert!(String::from_utf8(encoded.body).unwrap().contains(&item), "it goes back byte for byte");
    assert_eq!((&input[1]["type"], &input[2]["type"]), (&json!("reasoning"), &json!("function_call")));
    assert_eq!(
        (&input[2]["call_id"], &input[2]["arguments"]),
        (&json!("call_a"), &json!("{\"path\":\"a\", \"n\":1e2}"))
    );
    assert_eq!(
        (&input[5]["type"], &input[5]["output"][1]["type"]),
        (&json!("function_call_output"), &json!("input_image"))
    );
    assert_eq!((&input[6]["call_id"], &input[3]["call_id"]), (&input[3]["call_id"], &input[6]["call_id"]));
    assert!(input[6]["output"].as_str().unwrap().starts_with("This call failed"));
    assert_eq!(input[8], json!({ "role": "assistant", "content": "It says TODO." }));
    assert_eq!(input.len(), 10);
}

#[test]
fn gemini_is_written_as_documented() {
    let (_, body) = of(Grammar::Gemini);
    assert_eq!(body["systemInstruction"], json!({ "parts": [{ "text": "be brief" }] }));
    assert_eq!(body["tools"][0]["functionDeclarations"][1]["name"], "fsList");
    assert_eq!(body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["type"], "object");
    let config = &body["generationConfig"];
    assert_eq!((&config["maxOutputTokens"], &config["temperature"]), (&json!(4096), &json!(0.7)));
    assert_eq!(
        (&config["responseMimeType"], &config["responseJsonSchema"]["type"]),
        (&json!("application/json"), &json!("object"))
    );
    assert_eq!(config["thinkingConfig"], json!({ "includeThoughts": true, "thinkingLevel": "LOW" }));
    let contents = body["contents"].as_array().unwrap();
    assert_eq!(contents[0]["parts"][1], json!({ "inlineData": { "mimeType": "image/png", "data": "iVBORw==" } }));
    let parts = contents[1]["parts"].as_array().unwrap();
    assert_eq!(contents[1]["role"], "model");
    assert_eq!(parts[0]["thoughtSignature"], "Ci+/AA==");
    assert_eq!(
        parts[0]["functionCall"],
        json!({ "id": "call_a", "name": "fsRead", "args": { "path": "a", "n": 100.0 } })
    );
    assert_eq!((parts[1].get("thoughtSignature"), parts.len()), (None, 3));
    let results = contents[2]["parts"].as_array().unwrap();
    assert_eq!(
        results[0]["functionResponse"],
        json!({ "id": "call_a", "name": "fsRead", "response": { "output": "x:1: TODO" } })
    );
    assert_eq!(results[1]["inlineData"]["mimeType"], "image/png");
    assert_eq!(results[2]["functionResponse"]["response"], json!({ "error": "no JSON" }));
}

#[test]
fn a_signature_of_gemini_goes_back_on_the_part_that_it_came_on() {
    let sign =
        |text: &str| Part::State(State::new(Grammar::Gemini, format!("{{\"thoughtSignature\":\"{text}\"}}")).unwrap());
    let said = |text: &str| Part::Text(text.to_owned());
    let parts = vec![
        Part::Thinking("unsigned".into()),
        said("a"),
        sign("1"),
        said("b"),
        sign("2"),
        sign("3"),
        Part::Thinking("signed".into()),
        sign("4"),
    ];
    let request = Request::new(ModelName::new("m").unwrap(), vec![Message::Assistant(parts)], 1).unwrap();
    let body = body(&encode(Grammar::Gemini, Dialect::NATIVE, &request));
    assert_eq!(
        body["contents"][0]["parts"],
        json!([
            { "text": "a" },
            { "text": "b", "thoughtSignature": "1" },
            { "text": "", "thoughtSignature": "2" },
            { "text": "signed", "thought": true, "thoughtSignature": "3" },
            { "text": "", "thoughtSignature": "4" },
        ])
    );
}

#[test]
fn ollama_is_written_as_documented() {
    let (_, body) = of(Grammar::Ollama);
    assert_eq!(body["options"], json!({ "num_predict": 4096, "temperature": 0.7 }));
    assert_eq!((&body["think"], &body["format"]["type"]), (&json!("low"), &json!("object")));
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[1], json!({ "role": "user", "content": "look at", "images": ["iVBORw=="] }));
    assert_eq!((&messages[2]["thinking"], &messages[2]["content"]), (&json!("I see."), &json!("")));
    assert_eq!(
        messages[2]["tool_calls"][0]["function"],
        json!({ "name": "fsRead", "arguments": { "path": "a", "n": 100.0 } })
    );
    assert_eq!((&messages[3]["role"], &messages[3]["tool_name"]), (&json!("tool"), &json!("fsRead")));
    assert_eq!((&messages[6]["role"], &messages[6]["images"][0]), (&json!("user"), &json!("iVBORw==")));
}

/// The tools, the instructions and what was said stand before all that may change, in this order: a cache goes by the beginning.
#[test]
fn a_longer_conversation_begins_with_the_bytes_of_the_shorter() {
    let talk = |count: usize| {
        let messages = (0..count).map(|at| Message::User(vec![text(&format!("message {at}"))])).collect();
        Request::new(ModelName::new("m").unwrap(), messages, 100).unwrap().instructed("be brief").unwrap()
    };
    for grammar in Grammar::ALL {
        let [short, long] =
            [3, 5].map(|count| String::from_utf8(encode(grammar, Dialect::NATIVE, &talk(count)).body).unwrap());
        let same = short.bytes().zip(long.bytes()).take_while(|(a, b)| a == b).count();
        assert!(short[..same].contains("message 2"), "{grammar}: {}", &short[..same]);
        assert_eq!(short, String::from_utf8(encode(grammar, Dialect::NATIVE, &talk(3)).body).unwrap());
    }
}

#[test]
fn what_is_too_much_or_no_json_is_refused() {
    let name = || ModelName::new("m").unwrap();
    let tool =
        |schema: &str| ToolSpec { name: "x".parse().unwrap(), description: String::new(), schema: schema.into() };
    let empty = || Request::new(name(), Vec::new(), 1).unwrap();
    let huge = Message::User(vec![text(&"x".repeat(Request::BYTES + 1))]);
    let bad: [BadRequest; 15] = [
        Request::new(name(), vec![huge], 1).unwrap_err(),
        Request::new(name(), vec![Message::User(Vec::new()); Request::MESSAGES + 1], 1).unwrap_err(),
        Request::new(name(), Vec::new(), 0).unwrap_err(),
        empty().instructed("x".repeat(Request::BYTES + 1)).unwrap_err(),
        empty().offering(vec![tool("{}"); Request::TOOLS + 1]).unwrap_err(),
        empty().offering(vec![tool("[]")]).unwrap_err(),
        empty().offering(vec![tool("{},\"a\":{}")]).unwrap_err(),
        Image::new("image/svg+xml", Vec::new()).unwrap_err(),
        Image::new("image/png", vec![0; Image::LARGEST + 1]).unwrap_err(),
        State::new(Grammar::Chat, "[1]").unwrap_err(),
        State::new(Grammar::Chat, "{} {}").unwrap_err(),
        State::new(Grammar::Chat, format!("{{\"a\":\"{}\"}}", "x".repeat(State::LONGEST))).unwrap_err(),
        Schema::new("a b", "{}").unwrap_err(),
        Schema::new("a", "true").unwrap_err(),
        CacheKey::new("").unwrap_err(),
    ];
    for bad in bad {
        assert!(bad.to_string().len() < 400, "{bad}");
    }
    for bad in ["", "a b", "a?x=1", "a#b", "a%2f", "a\\b", "ü", &"x".repeat(257)] {
        assert!(ModelName::new(bad).is_err(), "{bad}");
    }
    assert!(Sampling::default().temperature(2001).is_err() && Sampling::default().top_p(0).is_err());
}

/// What each grammar makes of [`request`], kept so that `sdk.py` can hold it against what the providers' own SDKs send. `EPHOR_KEEP_REQUESTS=1`
/// writes them anew.
#[test]
fn the_kept_requests_are_those_that_are_written() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/requests");
    for grammar in Grammar::ALL {
        let (encoded, body) = of(grammar);
        let headers: std::collections::BTreeMap<_, _> = encoded.headers.into_iter().collect();
        let auth = format!("{}: {}", grammar.auth().header, grammar.auth().before);
        let written =
            json!({ "path": encoded.path, "query": encoded.query, "headers": headers, "auth": auth, "body": body });
        let path = folder.join(format!("{grammar}.json"));
        if std::env::var_os("EPHOR_KEEP_REQUESTS").is_some() {
            std::fs::write(&path, format!("{written:#}\n")).unwrap();
        }
        let kept: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!(kept, written, "{grammar}");
    }
}
