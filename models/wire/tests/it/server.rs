//! The server's side of each grammar: an answer as the stream that a real server would send.

use ephor_wire::{Grammar, Reported};
use serde_json::{Value, json};

/// An answer to send.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    pub(crate) thinking: Vec<String>,
    /// What the provider wants back of its thinking; none where empty.
    pub(crate) signature: String,
    pub(crate) text: Vec<String>,
    /// Id, name on the wire, and pieces of the arguments.
    pub(crate) calls: Vec<(String, String, Vec<String>)>,
    pub(crate) end: Ending,
    pub(crate) reported: Reported,
}

/// How it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Complete,
    Length,
    Filtered,
}

/// The stream of `said` in `grammar`.
pub(crate) fn stream(grammar: Grammar, said: &Said) -> Vec<u8> {
    match grammar {
        Grammar::Anthropic => named(anthropic(said)),
        Grammar::Chat => format!("{}data: [DONE]\n\n", events(chat(said))).into_bytes(),
        Grammar::Responses => named(responses(said)),
        Grammar::Gemini => events(gemini(said)).into_bytes(),
        Grammar::Ollama => {
            ollama(said).into_iter().map(|object| format!("{object}\n")).collect::<String>().into_bytes()
        }
    }
}

fn events(objects: Vec<Value>) -> String {
    objects.into_iter().map(|object| format!("data: {object}\n\n")).collect()
}

fn named(objects: Vec<Value>) -> Vec<u8> {
    let event = |object: Value| format!("event: {}\ndata: {object}\n\n", object["type"].as_str().unwrap());
    objects.into_iter().map(event).collect::<String>().into_bytes()
}

fn anthropic(said: &Said) -> Vec<Value> {
    let Reported { input, output, cached, cache_written, reasoning } = said.reported;
    let (cached, written) = (cached.unwrap(), cache_written.unwrap());
    let usage = json!({ "input_tokens": input.unwrap() - cached - written, "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": written, "output_tokens": 1 });
    let mut all =
        vec![json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage } })];
    let mut index = 0;
    let mut block = |all: &mut Vec<Value>, begun: Value, deltas: Vec<Value>| {
        all.push(json!({ "type": "content_block_start", "index": index, "content_block": begun }));
        all.extend(
            deltas.into_iter().map(|delta| json!({ "type": "content_block_delta", "index": index, "delta": delta })),
        );
        all.push(json!({ "type": "content_block_stop", "index": index }));
        index += 1;
    };
    if !said.thinking.is_empty() {
        let mut deltas: Vec<_> =
            said.thinking.iter().map(|text| json!({ "type": "thinking_delta", "thinking": text })).collect();
        deltas.push(json!({ "type": "signature_delta", "signature": said.signature }));
        block(&mut all, json!({ "type": "thinking", "thinking": "", "signature": "" }), deltas);
    }
    if !said.text.is_empty() {
        let deltas = said.text.iter().map(|text| json!({ "type": "text_delta", "text": text })).collect();
        block(&mut all, json!({ "type": "text", "text": "" }), deltas);
    }
    for (id, name, arguments) in &said.calls {
        let deltas = arguments.iter().map(|text| json!({ "type": "input_json_delta", "partial_json": text })).collect();
        block(&mut all, json!({ "type": "tool_use", "id": id, "name": name, "input": {} }), deltas);
    }
    let reason = match said.end {
        Ending::Complete if said.calls.is_empty() => "end_turn",
        Ending::Complete => "tool_use",
        Ending::Length => "max_tokens",
        Ending::Filtered => "refusal",
    };
    all.push(json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
        "usage": { "output_tokens": output, "output_tokens_details": { "thinking_tokens": reasoning } } }));
    all.push(json!({ "type": "message_stop" }));
    all
}

fn chat(said: &Said) -> Vec<Value> {
    let chunk = |delta: Value, reason: Option<&str>| {
        json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": reason }], "usage": null })
    };
    let mut all = vec![chunk(json!({ "role": "assistant", "content": "" }), None)];
    all.extend(said.thinking.iter().map(|text| chunk(json!({ "reasoning_content": text }), None)));
    all.extend(said.text.iter().map(|text| chunk(json!({ "content": text }), None)));
    for (index, (id, name, arguments)) in said.calls.iter().enumerate() {
        let call =
            json!({ "index": index, "id": id, "type": "function", "function": { "name": name, "arguments": "" } });
        all.push(chunk(json!({ "tool_calls": [call] }), None));
        all.extend(
            arguments.iter().map(|text| {
                chunk(json!({ "tool_calls": [{ "index": index, "function": { "arguments": text } }] }), None)
            }),
        );
    }
    let reason = match said.end {
        Ending::Complete if said.calls.is_empty() => "stop",
        Ending::Complete => "tool_calls",
        Ending::Length => "length",
        Ending::Filtered => "content_filter",
    };
    all.push(chunk(json!({}), Some(reason)));
    let Reported { input, output, cached, cache_written, reasoning } = said.reported;
    all.push(json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input.unwrap() + output.unwrap(),
            "prompt_tokens_details": { "cached_tokens": cached, "cache_write_tokens": cache_written },
            "completion_tokens_details": { "reasoning_tokens": reasoning } } }));
    all
}

/// The item of a response that holds what was thought.
pub(crate) fn reasoning_item(said: &Said) -> Value {
    json!({ "id": "rs_1", "type": "reasoning", "encrypted_content": said.signature,
        "summary": [{ "type": "summary_text", "text": said.thinking.concat() }] })
}

fn responses(said: &Said) -> Vec<Value> {
    let mut all = vec![
        json!({ "type": "response.created", "response": { "id": "r", "object": "response", "status": "in_progress", "output": [] } }),
    ];
    let mut output = Vec::new();
    let mut item = |all: &mut Vec<Value>, begun: Value, deltas: &[String], kind: &str, done: Value| {
        let index = output.len();
        all.push(json!({ "type": "response.output_item.added", "output_index": index, "item": begun }));
        all.extend(
            deltas.iter().map(|text| json!({ "type": kind, "output_index": index, "item_id": "i", "delta": text })),
        );
        all.push(json!({ "type": "response.output_item.done", "output_index": index, "item": done.clone() }));
        output.push(done);
    };
    if !said.thinking.is_empty() {
        let begun = json!({ "id": "rs_1", "type": "reasoning", "summary": [] });
        item(&mut all, begun, &said.thinking, "response.reasoning_summary_text.delta", reasoning_item(said));
    }
    if !said.text.is_empty() {
        let message = |content: Value| json!({ "id": "m", "type": "message", "role": "assistant", "content": content });
        let done = message(json!([{ "type": "output_text", "text": said.text.concat(), "annotations": [] }]));
        item(&mut all, message(json!([])), &said.text, "response.output_text.delta", done);
    }
    for (id, name, arguments) in &said.calls {
        let call = |arguments: &str| json!({ "id": "fc", "type": "function_call", "call_id": id, "name": name, "arguments": arguments });
        let done = call(&arguments.concat());
        item(&mut all, call(""), arguments, "response.function_call_arguments.delta", done);
    }
    let (kind, status, details) = match said.end {
        Ending::Complete => ("response.completed", "completed", Value::Null),
        Ending::Length => ("response.incomplete", "incomplete", json!({ "reason": "max_output_tokens" })),
        Ending::Filtered => ("response.incomplete", "incomplete", json!({ "reason": "content_filter" })),
    };
    let Reported { input, output: written, cached, cache_written, reasoning } = said.reported;
    all.push(json!({ "type": kind, "response": { "id": "r", "object": "response", "status": status, "error": null,
        "incomplete_details": details, "output": output, "usage": { "input_tokens": input, "output_tokens": written,
            "input_tokens_details": { "cached_tokens": cached, "cache_write_tokens": cache_written },
            "output_tokens_details": { "reasoning_tokens": reasoning } } } }));
    all
}

fn gemini(said: &Said) -> Vec<Value> {
    let Reported { input, output, cached, reasoning, .. } = said.reported;
    let usage = json!({ "promptTokenCount": input, "candidatesTokenCount": output.unwrap() - reasoning.unwrap(),
        "thoughtsTokenCount": reasoning, "cachedContentTokenCount": cached });
    let chunk = |parts: Value| json!({ "candidates": [{ "content": { "parts": parts, "role": "model" }, "index": 0 }], "usageMetadata": usage });
    let mut all: Vec<_> = said.thinking.iter().map(|text| chunk(json!([{ "text": text, "thought": true }]))).collect();
    all.extend(said.text.iter().map(|text| chunk(json!([{ "text": text }]))));
    // Calls that are made together come in one chunk, the signature on the first of them.
    let calls = said.calls.iter().enumerate().map(|(at, (id, name, arguments))| {
        let arguments: Value = serde_json::from_str(&arguments.concat()).unwrap();
        let mut part = json!({ "functionCall": { "id": id, "name": name, "args": arguments } });
        if at == 0 && !said.signature.is_empty() {
            part["thoughtSignature"] = said.signature.clone().into();
        }
        part
    });
    all.push(chunk(Value::Array(calls.collect())));
    let reason = match said.end {
        Ending::Complete => "STOP",
        Ending::Length => "MAX_TOKENS",
        Ending::Filtered => "SAFETY",
    };
    all.push(json!({ "candidates": [{ "content": { "parts": [{ "text": "" }], "role": "model" }, "finishReason": reason, "index": 0 }] }));
    all
}

fn ollama(said: &Said) -> Vec<Value> {
    let object = |message: Value| json!({ "model": "m", "created_at": "2026-11-23T13:05:00Z", "message": message, "done": false });
    let mut all: Vec<_> = said
        .thinking
        .iter()
        .map(|text| object(json!({ "role": "assistant", "content": "", "thinking": text })))
        .collect();
    all.extend(said.text.iter().map(|text| object(json!({ "role": "assistant", "content": text }))));
    all.extend(said.calls.iter().map(|(id, name, arguments)| {
        let arguments: Value = serde_json::from_str(&arguments.concat()).unwrap();
        let call = json!({ "id": id, "function": { "name": name, "arguments": arguments } });
        object(json!({ "role": "assistant", "content": "", "tool_calls": [call] }))
    }));
    let reason = if said.end == Ending::Length { "length" } else { "stop" };
    all.push(json!({ "model": "m", "created_at": "2026-11-23T13:05:00Z", "message": { "role": "assistant", "content": "" },
        "done": true, "done_reason": reason, "prompt_eval_count": said.reported.input, "eval_count": said.reported.output }));
    all
}
