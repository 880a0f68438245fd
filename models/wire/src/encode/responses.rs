//! OpenAI Responses. Nothing is stored at the provider: each request holds the whole conversation, encrypted reasoning included.

use super::{arguments, chat::effort, data_url, sampling, told};
use crate::{
    Cache, Dialect, Feature, Grammar, Message, Output, Part, Request, Shown, Thinking, ToolResult,
    json::{List, Object},
    request::{wire_id, wire_name},
};

pub(super) fn write(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    body.text("model", request.model.as_str());
    if !request.tools.is_empty() {
        body.list("tools", |list| tools(request, list));
    }
    if !request.instructions.is_empty() {
        body.text("instructions", &request.instructions);
    }
    body.list("input", |list| {
        for message in &request.messages {
            write_message(message, list);
        }
    });
    body.number("max_output_tokens", request.max_output_tokens.into());
    body.truth("store", false);
    if dialect.has(Feature::EncryptedReasoning) && !matches!(request.thinking, Thinking::Unsaid | Thinking::Off) {
        body.list("include", |list| list.text("reasoning.encrypted_content"));
    }
    if let Some(word) = effort(request.thinking).filter(|_| dialect.has(Feature::Effort)) {
        body.object("reasoning", |reasoning| {
            reasoning.text("effort", word);
            if request.thinking != Thinking::Off {
                reasoning.text("summary", "auto");
            }
        });
    }
    let (temperature, top_p) = sampling(request, dialect);
    temperature.into_iter().for_each(|number| body.thousandths("temperature", number));
    top_p.into_iter().for_each(|number| body.thousandths("top_p", number));
    output(request, dialect, body);
    if let Cache::Conversation(key) = &request.cache
        && dialect.has(Feature::CacheKey)
    {
        body.text("prompt_cache_key", key.as_str());
    }
    body.truth("stream", request.streams());
}

fn tools(request: &Request, list: &mut List<'_>) {
    for tool in &request.tools {
        list.object(|object| {
            object.text("type", "function");
            object.text("name", &wire_name(tool.name.as_str()));
            object.text("description", &tool.description);
            object.raw("parameters", &tool.schema);
            // Unless this is said the provider takes every schema for a strict one, and refuses those with optional fields.
            object.truth("strict", false);
        });
    }
}

fn output(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    match &request.output {
        Output::Json(schema) if dialect.has(Feature::JsonSchema) => body.object("text", |text| {
            text.object("format", |format| {
                format.text("type", "json_schema");
                format.text("name", schema.name());
                format.raw("schema", schema.json());
            });
        }),
        Output::Json(_) | Output::JsonObject if dialect.has(Feature::JsonObject) => body.object("text", |text| {
            text.object("format", |format| format.text("type", "json_object"));
        }),
        _ => {}
    }
}

fn write_message(message: &Message, list: &mut List<'_>) {
    match message {
        Message::User(shown) => list.object(|item| {
            item.text("role", "user");
            item.list("content", |list| show(shown, list));
        }),
        Message::Assistant(parts) => parts.iter().for_each(|part| write_part(part, list)),
        Message::Results(results) => results.iter().for_each(|result| write_result(result, list)),
    }
}

fn show(shown: &[Shown], list: &mut List<'_>) {
    for part in shown {
        list.object(|object| match part {
            Shown::Text(text) => {
                object.text("type", "input_text");
                object.text("text", text);
            }
            Shown::Image(image) => {
                object.text("type", "input_image");
                object.text("image_url", &data_url(image));
                object.text("detail", "auto");
            }
        });
    }
}

fn write_part(part: &Part, list: &mut List<'_>) {
    match part {
        Part::Text(text) => list.object(|item| {
            item.text("role", "assistant");
            item.text("content", text);
        }),
        Part::Call(call) => list.object(|item| {
            item.text("type", "function_call");
            item.text("call_id", &wire_id(&call.id));
            item.text("name", &wire_name(&call.name));
            item.text("arguments", &arguments(&call.arguments));
        }),
        Part::State(state) if state.grammar() == Grammar::Responses => list.raw(state.json()),
        Part::State(_) | Part::Thinking(_) => {}
    }
}

fn write_result(result: &ToolResult, list: &mut List<'_>) {
    list.object(|item| {
        item.text("type", "function_call_output");
        item.text("call_id", &wire_id(&result.id));
        if result.images().next().is_none() {
            return item.text("output", &told(result));
        }
        let mut shown = vec![Shown::Text(told(result))];
        shown.extend(result.images().cloned().map(Shown::Image));
        item.list("output", |list| show(&shown, list));
    });
}
