//! What a tool answers.

use std::fmt::Write as _;

use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_base::arguments::Value;

use crate::{
    limits::Limits,
    untrusted::{Untrusted, beginning},
    wire::{Fields, Lie, to_bytes},
};

/// What a tool answered, within [`Limits::parts`] and [`Limits::answer_bytes`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// Its parts, in order.
    pub parts: Vec<Part>,
    /// Its structured content. It was not held against a schema.
    pub structured: Option<Value>,
    /// Whether the tool says that it could not do what it was asked.
    pub failed: bool,
    /// What was left out.
    pub omitted: Omitted,
}

/// What of an answer was over the bounds. A text that was cut ends where its last whole character ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Omitted {
    /// The parts that are gone, or were cut.
    pub parts: usize,
    /// The bytes that are gone; of images and sound as they were sent, in base64.
    pub bytes: usize,
    /// Whether the structured content is gone.
    pub structured: bool,
}

impl Omitted {
    /// Whether nothing is.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// A part of an answer. Types of media are what the server says; they were not held against the bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// Sound.
    Audio(Media),
    /// A link to a resource of the server. Nothing follows it.
    Link {
        /// Where.
        uri: String,
        /// What it is called.
        name: String,
        /// What it is.
        description: Option<String>,
    },
    /// A resource, whole, that is text.
    TextResource {
        /// Where it lies.
        uri: String,
        /// Its text.
        text: String,
    },
    /// A resource, whole, that is bytes.
    BinaryResource {
        /// Where it lies.
        uri: String,
        /// Its bytes.
        media: Media,
    },
    /// Something of a kind that the protocol does not have; the kind, as the server says it.
    Unknown(String),
}

/// Bytes, and what the server says they are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Media {
    /// A type such as `image/png`; empty if the server says none.
    pub kind: String,
    /// The bytes, decoded.
    pub bytes: Vec<u8>,
}

impl Answer {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    /// [`Lie`], where something is of another kind than the protocol says. The tool has run all the same.
    pub fn read(result: Value, limits: &Limits) -> Result<Untrusted<Self>, Lie> {
        let mut fields = Fields::of(result, "result")?;
        let failed = fields.flag("isError")?.unwrap_or_default();
        let content = fields.list("content")?.unwrap_or_default();
        let structured = fields.take("structuredContent");
        let mut room = Room { left: limits.answer_bytes, omitted: Omitted::default(), short: limits.text_bytes };
        let mut parts = Vec::new();
        for (at, value) in content.into_iter().enumerate() {
            let fields = Fields::of(value, format!("result.content[{at}]"))?;
            if at < limits.parts {
                parts.extend(room.part(fields)?);
            } else {
                room.omit(0);
            }
        }
        let structured = structured.filter(|value| room.structured(value));
        Ok(Untrusted::new(Self { parts, structured, failed, omitted: room.omitted }))
    }

    /// All of it as one text, for a model that takes text alone: media are named with type and size, and what is left out is said.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            if !text.is_empty() {
                text.push('\n');
            }
            part.say(&mut text);
        }
        if let Some(structured) = self.structured.as_ref().filter(|_| self.parts.is_empty()) {
            text.push_str(&String::from_utf8(to_bytes(structured)).unwrap_or_default());
        }
        if !self.omitted.is_nothing() {
            let Omitted { parts, bytes, structured } = self.omitted;
            let structured = if structured { " and the structured content" } else { "" };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[truncated: {bytes} bytes of {parts} parts{structured} are left out]");
        }
        text
    }
}

impl Part {
    fn say(&self, text: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Self::Text(own) => write!(text, "{own}"),
            Self::Image(media) => write!(text, "[image: {}, {} bytes]", media.kind, media.bytes.len()),
            Self::Audio(media) => write!(text, "[sound: {}, {} bytes]", media.kind, media.bytes.len()),
            Self::Link { uri, name, .. } => write!(text, "[link: {name}, {uri}]"),
            Self::TextResource { uri, text: own } => write!(text, "[resource: {uri}]\n{own}"),
            Self::BinaryResource { uri, media } => {
                write!(text, "[resource: {uri}, {}, {} bytes]", media.kind, media.bytes.len())
            }
            Self::Unknown(kind) => write!(text, "[a part of the unknown kind {kind}]"),
        };
    }
}

/// How much of an answer may still be kept.
struct Room {
    left: usize,
    omitted: Omitted,
    short: usize,
}

impl Room {
    fn omit(&mut self, bytes: usize) {
        self.omitted.parts = self.omitted.parts.saturating_add(1);
        self.omitted.bytes = self.omitted.bytes.saturating_add(bytes);
    }

    fn part(&mut self, mut fields: Fields) -> Result<Option<Part>, Lie> {
        let kind = fields.required_text("type")?;
        Ok(match kind.as_str() {
            "text" => self.text(fields.required_text("text")?).map(Part::Text),
            "image" => self.data(&mut fields)?.map(Part::Image),
            "audio" => self.data(&mut fields)?.map(Part::Audio),
            "resource_link" => self.link(&mut fields)?,
            "resource" => self.resource(&mut fields)?,
            _ => self.whole(beginning(&kind, 64)).map(Part::Unknown),
        })
    }

    /// As much of a text as there is room for.
    fn text(&mut self, text: String) -> Option<String> {
        let kept = text.split_at(text.floor_char_boundary(self.left.min(text.len()))).0;
        let lost = text.len().saturating_sub(kept.len());
        self.left = self.left.saturating_sub(kept.len());
        if lost == 0 {
            return Some(text);
        }
        self.omit(lost);
        Some(kept.to_owned()).filter(|kept| !kept.is_empty())
    }

    /// A text that is of use as a whole alone.
    fn whole(&mut self, text: String) -> Option<String> {
        if text.len() <= self.left {
            self.left = self.left.saturating_sub(text.len());
            return Some(text);
        }
        self.omit(text.len());
        None
    }

    /// The bytes that `data` is, which stands in `fields` as `name`.
    fn media(&mut self, fields: &mut Fields, name: &str, data: &str) -> Result<Option<Media>, Lie> {
        let kind = beginning(&fields.text("mimeType")?.unwrap_or_default(), 128);
        let bytes = STANDARD.decode(data).map_err(|_| Lie::new(fields.place(name), "base64"))?;
        if bytes.len() > self.left {
            self.omit(data.len());
            return Ok(None);
        }
        self.left = self.left.saturating_sub(bytes.len());
        Ok(Some(Media { kind, bytes }))
    }

    fn data(&mut self, fields: &mut Fields) -> Result<Option<Media>, Lie> {
        let data = fields.required_text("data")?;
        self.media(fields, "data", &data)
    }

    fn link(&mut self, fields: &mut Fields) -> Result<Option<Part>, Lie> {
        let uri = fields.required_text("uri")?;
        let name = beginning(&fields.required_text("name")?, self.short);
        let description = fields.text("description")?.map(|text| beginning(&text, self.short));
        Ok(self.whole(uri).map(|uri| Part::Link { uri, name, description }))
    }

    fn resource(&mut self, fields: &mut Fields) -> Result<Option<Part>, Lie> {
        let place = fields.place("resource");
        let mut inner = fields.fields("resource")?.ok_or_else(|| Lie::new(place, "an object"))?;
        let uri = inner.required_text("uri")?;
        let Some(uri) = self.whole(uri) else { return Ok(None) };
        if let Some(data) = inner.text("blob")? {
            return Ok(self.media(&mut inner, "blob", &data)?.map(|media| Part::BinaryResource { uri, media }));
        }
        let text = inner.required_text("text")?;
        Ok(self.text(text).map(|text| Part::TextResource { uri, text }))
    }

    fn structured(&mut self, value: &Value) -> bool {
        let bytes = to_bytes(value).len();
        let fits = bytes <= self.left;
        if fits {
            self.left = self.left.saturating_sub(bytes);
        } else {
            self.omitted.structured = true;
        }
        fits
    }
}
