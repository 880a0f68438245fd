//! Gemini `generateContent`.

use super::{arguments, base64, sampling};
use crate::{
    Dialect, Grammar, Image, Message, ModelName, Output, Part, Request, Shown, Thinking, ToolEnd, ToolResult,
    json::{List, Object, object},
    request::{wire_id, wire_name},
};

/// The path of `method` of a model. A tuned model is named with its collection, any other without.
pub(super) fn path(model: &ModelName, method: &str) -> String {
    let (collection, name) = match model.as_str().split_once('/') {
        Some((collection @ ("models" | "tunedModels"), name)) => (collection, name),
        _ => ("models", model.as_str()),
    };
    let escaped = |byte: u8| match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    format!("v1beta/{collection}/{}:{method}", name.bytes().map(escaped).collect::<String>())
}

pub(super) fn write(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    if !request.tools.is_empty() {
        body.list("tools", |list| {
            list.object(|tools| tools.list("functionDeclarations", |list| declare(request, list)))
        });
    }
    if !request.instructions.is_empty() {
        body.object("systemInstruction", |content| {
            content.list("parts", |parts| text_part(&request.instructions, parts));
        });
    }
    body.list("contents", |list| {
        for message in &request.messages {
            write_message(message, list);
        }
    });
    body.object("generationConfig", |config| configure(request, dialect, config));
}

fn declare(request: &Request, list: &mut List<'_>) {
    for tool in &request.tools {
        list.object(|object| {
            object.text("name", &wire_name(tool.name.as_str()));
            object.text("description", &tool.description);
            object.raw("parametersJsonSchema", &tool.schema);
        });
    }
}

fn configure(request: &Request, dialect: Dialect, config: &mut Object<'_>) {
    config.number("maxOutputTokens", request.max_output_tokens.into());
    let (temperature, top_p) = sampling(request, dialect);
    temperature.into_iter().for_each(|number| config.thousandths("temperature", number));
    top_p.into_iter().for_each(|number| config.thousandths("topP", number));
    match &request.output {
        Output::Free => {}
        Output::JsonObject => config.text("responseMimeType", "application/json"),
        Output::Json(schema) => {
            config.text("responseMimeType", "application/json");
            config.raw("responseJsonSchema", schema.json());
        }
    }
    match request.thinking {
        Thinking::Unsaid => {}
        Thinking::Off => config.object("thinkingConfig", |thinking| thinking.number("thinkingBudget", 0)),
        Thinking::Effort(effort) => config.object("thinkingConfig", |thinking| {
            thinking.truth("includeThoughts", true);
            thinking.text("thinkingLevel", &effort.word().to_uppercase());
        }),
        Thinking::Budget(tokens) => config.object("thinkingConfig", |thinking| {
            thinking.truth("includeThoughts", true);
            thinking.number("thinkingBudget", tokens.into());
        }),
    }
}

fn write_message(message: &Message, list: &mut List<'_>) {
    let role = if matches!(message, Message::Assistant(_)) { "model" } else { "user" };
    let parts = object(|content| {
        content.text("role", role);
        content.list("parts", |parts| match message {
            Message::User(shown) => shown.iter().for_each(|part| show(part, parts)),
            Message::Assistant(answered) => answer(answered, parts),
            Message::Results(results) => results.iter().for_each(|result| write_result(result, parts)),
        });
    });
    // A content without a part is refused.
    if !parts.ends_with(b"\"parts\":[]}") {
        list.raw(&String::from_utf8_lossy(&parts));
    }
}

/// The parts of an answer, each with the signature that came with it.
fn answer(answered: &[Part], parts: &mut List<'_>) {
    let mut signature = None;
    for part in answered {
        let signed = |object: &mut Object<'_>, state: &Option<&str>| {
            state.iter().for_each(|json| object.fields_of(json));
        };
        match part {
            Part::State(state) if state.grammar() == Grammar::Gemini => {
                flush(signature.replace(state.json()), parts);
            }
            Part::State(_) => {}
            Part::Text(text) => {
                let state = signature.take();
                parts.object(|object| {
                    object.text("text", text);
                    signed(object, &state);
                });
            }
            // Thoughts without a signature say nothing to the model.
            Part::Thinking(text) => {
                if let Some(state) = signature.take() {
                    parts.object(|object| {
                        object.text("text", text);
                        object.truth("thought", true);
                        object.fields_of(state);
                    });
                }
            }
            Part::Call(call) => {
                let state = signature.take();
                parts.object(|object| {
                    object.object("functionCall", |function| {
                        function.text("id", &wire_id(&call.id));
                        function.text("name", &wire_name(&call.name));
                        function.raw("args", &arguments(&call.arguments));
                    });
                    signed(object, &state);
                });
            }
        }
    }
    flush(signature, parts);
}

/// A signature that no other part carries came on an empty text, and goes back on one.
fn flush(signature: Option<&str>, parts: &mut List<'_>) {
    if let Some(state) = signature {
        parts.object(|object| {
            object.text("text", "");
            object.fields_of(state);
        });
    }
}

fn write_result(result: &ToolResult, parts: &mut List<'_>) {
    parts.object(|object| {
        object.object("functionResponse", |response| {
            response.text("id", &wire_id(&result.id));
            response.text("name", &wire_name(&result.name));
            let key = if result.end == ToolEnd::Failed { "error" } else { "output" };
            response.object("response", |said| said.text(key, &result.text()));
        });
    });
    result.images().for_each(|image| picture(image, parts));
}

fn show(shown: &Shown, parts: &mut List<'_>) {
    match shown {
        Shown::Text(text) => text_part(text, parts),
        Shown::Image(image) => picture(image, parts),
    }
}

fn text_part(text: &str, parts: &mut List<'_>) {
    parts.object(|part| part.text("text", text));
}

fn picture(image: &Image, parts: &mut List<'_>) {
    parts.object(|part| {
        part.object("inlineData", |data| {
            data.text("mimeType", image.media_type());
            data.text("data", &base64(image));
        });
    });
}
