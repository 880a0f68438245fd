//! Ollama's `/api/chat`.

use super::{arguments, base64, chat::tools, pictures_of, sampling, told};
use crate::{
    Dialect, Message, Output, Part, Request, Thinking, ToolResult,
    json::{List, Object},
    request::{images, joined, wire_name},
};

pub(super) fn write(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    body.text("model", request.model.as_str());
    if !request.tools.is_empty() {
        body.list("tools", |list| tools(request, list));
    }
    body.list("messages", |list| {
        if !request.instructions.is_empty() {
            list.object(|message| said("system", &request.instructions, message));
        }
        for message in &request.messages {
            write_message(message, list);
        }
    });
    body.object("options", |options| {
        options.number("num_predict", request.max_output_tokens.into());
        let (temperature, top_p) = sampling(request, dialect);
        temperature.into_iter().for_each(|number| options.thousandths("temperature", number));
        top_p.into_iter().for_each(|number| options.thousandths("top_p", number));
    });
    match &request.output {
        Output::Free => {}
        Output::JsonObject => body.text("format", "json"),
        Output::Json(schema) => body.raw("format", schema.json()),
    }
    match request.thinking {
        Thinking::Unsaid => {}
        Thinking::Off => body.truth("think", false),
        Thinking::Effort(effort) => body.text("think", effort.word()),
        Thinking::Budget(_) => body.truth("think", true),
    }
    body.truth("stream", request.streams());
}

fn said(role: &str, content: &str, message: &mut Object<'_>) {
    message.text("role", role);
    message.text("content", content);
}

fn write_message(message: &Message, list: &mut List<'_>) {
    match message {
        Message::User(shown) => list.object(|message| {
            said("user", &joined(shown), message);
            if images(shown).next().is_some() {
                message.list("images", |list| images(shown).for_each(|image| list.text(&base64(image))));
            }
        }),
        Message::Assistant(parts) => list.object(|message| assistant(parts, message)),
        Message::Results(results) => {
            for result in results {
                list.object(|message| {
                    said("tool", &told(result), message);
                    message.text("tool_name", &wire_name(&result.name));
                });
            }
            results.iter().filter(|result| result.images().next().is_some()).for_each(|result| pictures(result, list));
        }
    }
}

fn pictures(result: &ToolResult, list: &mut List<'_>) {
    list.object(|message| {
        said("user", &pictures_of(result), message);
        message.list("images", |list| result.images().for_each(|image| list.text(&base64(image))));
    });
}

fn assistant(parts: &[Part], message: &mut Object<'_>) {
    let text: String =
        parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None }).collect();
    let calls: Vec<_> =
        parts.iter().filter_map(|part| if let Part::Call(call) = part { Some(call) } else { None }).collect();
    said("assistant", &text, message);
    let thoughts = parts.iter().filter_map(|part| if let Part::Thinking(text) = part { Some(&**text) } else { None });
    let thought: String = thoughts.collect();
    // Its templates show what was thought in the turn that goes on, and leave out the rest.
    if !thought.is_empty() {
        message.text("thinking", &thought);
    }
    if !calls.is_empty() {
        message.list("tool_calls", |list| {
            for call in &calls {
                list.object(|object| {
                    object.object("function", |function| {
                        function.text("name", &wire_name(&call.name));
                        function.raw("arguments", &arguments(&call.arguments));
                    });
                });
            }
        });
    }
}
