//! Anthropic Messages.

use super::{arguments, base64, sampling};
use crate::{
    Cache, Dialect, Grammar, Image, Message, Output, Part, Request, Shown, Thinking, ToolEnd, ToolResult,
    json::{List, Object},
    request::{wire_id, wire_name},
};

/// How many of the last turns of the user are marked for the cache: the last one, and the one before it, where the request before this one ended.
const MARKED_TURNS: usize = 2;

/// A run of messages of one side. The roles alternate, and all results of an answer stand together.
struct Turn<'a> {
    is_user: bool,
    messages: Vec<&'a Message>,
}

pub(super) fn write(request: &Request, dialect: Dialect, body: &mut Object<'_>) {
    let caches = request.cache != Cache::Unsaid;
    body.text("model", request.model.as_str());
    body.number("max_tokens", request.max_output_tokens.into());
    if !request.tools.is_empty() {
        body.list("tools", |list| tools(request, caches, list));
    }
    if !request.instructions.is_empty() {
        body.list("system", |list| {
            list.object(|block| {
                block.text("type", "text");
                block.text("text", &request.instructions);
                mark(block, caches);
            });
        });
    }
    body.list("messages", |list| {
        let turns = turns(&request.messages);
        let of_user = turns.iter().filter(|turn| turn.is_user).count();
        let mut number = 0;
        for turn in &turns {
            number += usize::from(turn.is_user);
            let marked = caches && turn.is_user && number + MARKED_TURNS > of_user;
            write_turn(turn, marked, list);
        }
    });
    let (temperature, top_p) = sampling(request, dialect);
    temperature.into_iter().for_each(|number| body.thousandths("temperature", number));
    top_p.into_iter().for_each(|number| body.thousandths("top_p", number));
    thinking(request, body);
    body.truth("stream", request.streams());
}

fn tools(request: &Request, caches: bool, list: &mut List<'_>) {
    let last = request.tools.len().saturating_sub(1);
    for (at, tool) in request.tools.iter().enumerate() {
        list.object(|object| {
            object.text("name", &wire_name(tool.name.as_str()));
            object.text("description", &tool.description);
            object.raw("input_schema", &tool.schema);
            mark(object, caches && at == last);
        });
    }
}

fn mark(block: &mut Object<'_>, marked: bool) {
    if marked {
        block.object("cache_control", |control| control.text("type", "ephemeral"));
    }
}

fn thinking(request: &Request, body: &mut Object<'_>) {
    match request.thinking {
        Thinking::Unsaid => {}
        Thinking::Off => body.object("thinking", |thinking| thinking.text("type", "disabled")),
        Thinking::Effort(_) => body.object("thinking", |thinking| thinking.text("type", "adaptive")),
        Thinking::Budget(tokens) => body.object("thinking", |thinking| {
            thinking.text("type", "enabled");
            thinking.number("budget_tokens", tokens.into());
        }),
    }
    let schema = if let Output::Json(schema) = &request.output { Some(schema) } else { None };
    let effort = if let Thinking::Effort(effort) = request.thinking { Some(effort) } else { None };
    if schema.is_none() && effort.is_none() {
        return;
    }
    body.object("output_config", |config| {
        effort.into_iter().for_each(|effort| config.text("effort", effort.word()));
        if let Some(schema) = schema {
            config.object("format", |format| {
                format.text("type", "json_schema");
                format.raw("schema", schema.json());
            });
        }
    });
}

fn turns(messages: &[Message]) -> Vec<Turn<'_>> {
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let is_user = !matches!(message, Message::Assistant(_));
        match turns.last_mut() {
            Some(turn) if turn.is_user == is_user => turn.messages.push(message),
            _ => turns.push(Turn { is_user, messages: vec![message] }),
        }
    }
    turns
}

fn write_turn(turn: &Turn<'_>, marked: bool, list: &mut List<'_>) {
    let mut blocks = Vec::new();
    for message in &turn.messages {
        match message {
            Message::User(shown) => blocks.extend(shown.iter().filter(is_block).map(Block::Shown)),
            Message::Results(results) => blocks.extend(results.iter().map(Block::Result)),
            Message::Assistant(parts) => blocks.extend(parts.iter().filter_map(Block::of)),
        }
    }
    // A turn without a block is refused; and results come first in theirs, or they are refused.
    if blocks.is_empty() {
        return;
    }
    blocks.sort_by_key(|block| !matches!(block, Block::Result(_)) && turn.is_user);
    let last = blocks.len() - 1;
    list.object(|message| {
        message.text("role", if turn.is_user { "user" } else { "assistant" });
        message.list("content", |content| {
            for (at, block) in blocks.iter().enumerate() {
                block.write(marked && at == last, content);
            }
        });
    });
}

/// An empty text is refused.
fn is_block(shown: &&Shown) -> bool {
    !matches!(shown, Shown::Text(text) if text.is_empty())
}

/// A block of a message.
enum Block<'a> {
    Shown(&'a Shown),
    Result(&'a ToolResult),
    Part(&'a Part),
}

impl<'a> Block<'a> {
    /// A part that goes back.
    fn of(part: &'a Part) -> Option<Self> {
        match part {
            Part::Text(text) if text.is_empty() => None,
            Part::Thinking(_) => None,
            Part::State(state) if state.grammar() != Grammar::Anthropic => None,
            part => Some(Self::Part(part)),
        }
    }

    fn write(&self, marked: bool, list: &mut List<'_>) {
        match self {
            Self::Shown(shown) => show(shown, marked, list),
            Self::Part(Part::Text(text)) => text_block(text, marked, list),
            Self::Part(Part::State(state)) => list.raw(state.json()),
            Self::Part(Part::Call(call)) => list.object(|block| {
                block.text("type", "tool_use");
                block.text("id", &wire_id(&call.id));
                block.text("name", &wire_name(&call.name));
                block.raw("input", &arguments(&call.arguments));
            }),
            Self::Part(Part::Thinking(_)) => {}
            Self::Result(result) => list.object(|block| {
                block.text("type", "tool_result");
                block.text("tool_use_id", &wire_id(&result.id));
                block.list("content", |content| {
                    result.shown.iter().filter(is_block).for_each(|shown| show(shown, false, content));
                });
                if result.end == ToolEnd::Failed {
                    block.truth("is_error", true);
                }
                mark(block, marked);
            }),
        }
    }
}

fn show(shown: &Shown, marked: bool, list: &mut List<'_>) {
    match shown {
        Shown::Text(text) => text_block(text, marked, list),
        Shown::Image(image) => list.object(|block| {
            block.text("type", "image");
            block.object("source", |source| write_image(image, source));
            mark(block, marked);
        }),
    }
}

fn text_block(text: &str, marked: bool, list: &mut List<'_>) {
    list.object(|block| {
        block.text("type", "text");
        block.text("text", text);
        mark(block, marked);
    });
}

fn write_image(image: &Image, source: &mut Object<'_>) {
    source.text("type", "base64");
    source.text("media_type", image.media_type());
    source.text("data", &base64(image));
}
