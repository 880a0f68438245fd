//! Chat Completions, kept to what OpenAI, Ollama, llama.cpp and vLLM all understand, but for what a dialect has.

use super::{arguments, data_url, pictures_of, sampling, told};
use crate::{
    Cache, Dialect, Feature, Grammar, Message, Output, Part, Request, Shown, Thinking, ToolResult,
    json::{List, Object},
    request::{images, joined, wire_id, wire_name},
};

pub(super) fn write(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    body.text("model", request.model.as_str());
    if !request.tools.is_empty() {
        body.list("tools", |list| tools(request, list));
    }
    body.list("messages", |list| {
        if !request.instructions.is_empty() {
            list.object(|message| {
                message.text("role", "system");
                message.text("content", &request.instructions);
            });
        }
        for message in &request.messages {
            write_message(message, dialect, list);
        }
    });
    let is_new = dialect.has(Feature::MaxCompletionTokens);
    let limit = if is_new { "max_completion_tokens" } else { "max_tokens" };
    body.number(limit, request.max_output_tokens.into());
    let (temperature, top_p) = sampling(request, dialect);
    temperature.into_iter().for_each(|number| body.thousandths("temperature", number));
    top_p.into_iter().for_each(|number| body.thousandths("top_p", number));
    output(request, dialect, body);
    if let Some(word) = effort(request.thinking).filter(|_| dialect.has(Feature::Effort)) {
        body.text("reasoning_effort", word);
    }
    if let Cache::Conversation(key) = &request.cache
        && dialect.has(Feature::CacheKey)
    {
        body.text("prompt_cache_key", key.as_str());
    }
    body.truth("stream", request.streams());
    if request.streams() && dialect.has(Feature::UsageInStream) {
        body.object("stream_options", |options| options.truth("include_usage", true));
    }
}

/// The word for how hard the model thinks. A number of tokens has none.
pub(super) const fn effort(thinking: Thinking) -> Option<&'static str> {
    match thinking {
        Thinking::Unsaid | Thinking::Budget(_) => None,
        Thinking::Off => Some("none"),
        Thinking::Effort(effort) => Some(effort.word()),
    }
}

pub(super) fn tools(request: &Request, list: &mut List<'_>) {
    for tool in &request.tools {
        list.object(|object| {
            object.text("type", "function");
            object.object("function", |function| {
                function.text("name", &wire_name(tool.name.as_str()));
                function.text("description", &tool.description);
                function.raw("parameters", &tool.schema);
            });
        });
    }
}

fn output(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    match &request.output {
        Output::Json(schema) if dialect.has(Feature::JsonSchema) => body.object("response_format", |format| {
            format.text("type", "json_schema");
            format.object("json_schema", |of| {
                of.text("name", schema.name());
                of.raw("schema", schema.json());
            });
        }),
        Output::Json(_) | Output::JsonObject if dialect.has(Feature::JsonObject) => {
            body.object("response_format", |format| format.text("type", "json_object"));
        }
        _ => {}
    }
}

fn write_message(message: &Message, dialect: Dialect, list: &mut List<'_>) {
    match message {
        Message::User(shown) => list.object(|message| {
            message.text("role", "user");
            content(shown, message);
        }),
        Message::Assistant(parts) => list.object(|message| assistant(parts, dialect, message)),
        Message::Results(results) => {
            for result in results {
                list.object(|message| {
                    message.text("role", "tool");
                    message.text("tool_call_id", &wire_id(&result.id));
                    message.text("content", &told(result));
                });
            }
            // A tool's message holds text alone, and nothing may stand between the results of one answer.
            results.iter().filter(|result| result.images().next().is_some()).for_each(|result| pictures(result, list));
        }
    }
}

fn pictures(result: &ToolResult, list: &mut List<'_>) {
    let mut shown = vec![Shown::Text(pictures_of(result))];
    shown.extend(result.images().cloned().map(Shown::Image));
    list.object(|message| {
        message.text("role", "user");
        content(&shown, message);
    });
}

/// A string where there is text alone: not every server takes a list.
fn content(shown: &[Shown], message: &mut Object<'_>) {
    if images(shown).next().is_none() {
        return message.text("content", &joined(shown));
    }
    message.list("content", |list| {
        for part in shown {
            list.object(|object| match part {
                Shown::Text(text) => {
                    object.text("type", "text");
                    object.text("text", text);
                }
                Shown::Image(image) => {
                    object.text("type", "image_url");
                    object.object("image_url", |url| url.text("url", &data_url(image)));
                }
            });
        }
    });
}

fn assistant(parts: &[Part], dialect: Dialect, message: &mut Object<'_>) {
    let text: String =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None }).collect();
    let calls: Vec<_> =
        parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect();
    message.text("role", "assistant");
    if text.is_empty() && !calls.is_empty() {
        message.raw("content", "null");
    } else {
        message.text("content", &text);
    }
    if !calls.is_empty() {
        message.list("tool_calls", |list| {
            for call in &calls {
                list.object(|object| {
                    object.text("id", &wire_id(&call.id));
                    object.text("type", "function");
                    object.object("function", |function| {
                        function.text("name", &wire_name(&call.name));
                        function.text("arguments", &arguments(&call.arguments));
                    });
                });
            }
        });
    }
    thought(parts, dialect, message);
}

/// What goes back of what the model thought.
fn thought(parts: &[Part], dialect: Dialect, message: &mut Object<'_>) {
    for part in parts {
        if let Part::State(state) = part
            && state.grammar() == Grammar::Chat
        {
            message.fields_of(state.json());
        }
    }
    let thoughts = parts.iter().filter_map(|part| if let Part::Thinking(text) = part { Some(&**text) } else { None });
    let thought: String = thoughts.collect();
    if dialect.has(Feature::ReasoningContent) && !thought.is_empty() {
        message.text("reasoning_content", &thought);
    }
}
