//! One tool.

use ephor_base::{Arguments, Digest, ToolName, arguments::Value, cbor};

use super::{
    headers::{self, BadHeader, Repeated},
    name::{self, ServerName},
};
use crate::{
    limits::Limits,
    untrusted::{Untrusted, beginning},
    wire::{Fields, Lie, to_bytes},
};

/// What the digest of a tool is taken over besides the tool, so that no other digest is equal to it.
const CONTEXT: &str = "ephor/mcp/tool/1";

/// A tool that a server offers. Its description and its schema are the server's words.
#[derive(Clone, PartialEq, Debug)]
pub struct Tool {
    name: ToolName,
    wire: String,
    description: Option<String>,
    schema: Value,
    hints: Hints,
    headers: Vec<Repeated>,
}

/// What a server says about the effects of a tool. Nothing may be decided by it: a server can say anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// What it changes may be lost.
    pub destructive: Option<bool>,
    /// A second call does nothing that the first has not done.
    pub idempotent: Option<bool>,
    /// It reaches beyond the server.
    pub open_world: Option<bool>,
}

/// A tool that cannot be registered. The others of its server can.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejected {
    /// What the server calls it, cut to [`Limits::name_bytes`]; empty if it has no name.
    pub wire: Untrusted<String>,
    /// Why.
    pub why: Rejection,
}

/// Why a tool cannot be registered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Rejection {
    /// A field is of another kind than the protocol says.
    #[error(transparent)]
    Lie(#[from] Lie),
    /// Its name is empty, too long, or has characters that are not seen.
    #[error("a tool's name is 1 to {most} bytes of visible characters")]
    Name {
        /// [`Limits::name_bytes`].
        most: usize,
    },
    /// Its description is too long.
    #[error("the description has {bytes} bytes, at most {most} are taken")]
    Description {
        /// Its length.
        bytes: usize,
        /// [`Limits::description_bytes`].
        most: usize,
    },
    /// Its schema is too long.
    #[error("the schema has {bytes} bytes, at most {most} are taken")]
    Schema {
        /// Its length as compact JSON.
        bytes: usize,
        /// [`Limits::schema_bytes`].
        most: usize,
    },
    /// Its schema wants something else than an object.
    #[error("the schema is not that of an object")]
    NoObject,
    /// Its schema marks headers in a way that the protocol forbids.
    #[error("a header of an argument: {0}")]
    Header(#[from] BadHeader),
    /// Another tool of the server would have the same name. Neither can be registered, or the order of a list would decide.
    #[error("`{}` and `{}` would both be called `{told}`", one.legible(), other.legible())]
    Collision {
        /// The name for models.
        told: ToolName,
        /// What the server calls the one.
        one: Untrusted<String>,
        /// What it calls the other; the same, where it names one twice.
        other: Untrusted<String>,
    },
}

impl Tool {
    /// A tool of `server`, from what it says of it: an element of the answer to `tools/list`.
    ///
    /// # Errors
    /// [`Rejected`], with the reason.
    pub fn read(server: &ServerName, offered: Value, limits: &Limits) -> Result<Self, Rejected> {
        let wire = match &offered {
            Value::Object(map) => map.get("name"),
            _ => None,
        };
        let wire = if let Some(Value::Text(name)) = wire { beginning(name, limits.name_bytes) } else { String::new() };
        Self::checked(server, offered, limits).map_err(|why| Rejected { wire: Untrusted::new(wire), why })
    }

    fn checked(server: &ServerName, offered: Value, limits: &Limits) -> Result<Self, Rejection> {
        let mut fields = Fields::of(offered, "tool")?;
        let wire = fields.required_text("name")?;
        let description = fields.text("description")?;
        let schema = fields.take("inputSchema").ok_or_else(|| Lie::new("tool.inputSchema", "an object"))?;
        let hints = fields.fields("annotations")?.map(Hints::read).transpose()?.unwrap_or_default();
        Self::new(server, wire, description, schema, limits).map(|tool| Self { hints, ..tool })
    }

    /// A tool as it was once pinned, to be compared with what its server offers now.
    ///
    /// # Errors
    /// [`Rejection`], as for a tool that is read.
    pub fn new(
        server: &ServerName,
        wire: String,
        description: Option<String>,
        schema: Value,
        limits: &Limits,
    ) -> Result<Self, Rejection> {
        let visible = wire.chars().all(|c| c == ' ' || ephor_base::legible::is_seen(c));
        if !(1..=limits.name_bytes).contains(&wire.len()) || !visible {
            return Err(Rejection::Name { most: limits.name_bytes });
        }
        let length = description.as_ref().map_or(0, String::len);
        if length > limits.description_bytes {
            return Err(Rejection::Description { bytes: length, most: limits.description_bytes });
        }
        check_schema(&schema, limits)?;
        let headers = headers::marked(&schema)?;
        let name = name::told(server, &wire).ok_or(Rejection::Name { most: limits.name_bytes })?;
        Ok(Self { name, wire, description, schema, hints: Hints::default(), headers })
    }

    /// Its name for models: `mcp.SERVER.TOOL`.
    #[must_use]
    pub const fn name(&self) -> &ToolName {
        &self.name
    }

    /// What its server calls it. Characters of it are seen, and it has [`Limits::name_bytes`] bytes at most.
    #[must_use]
    pub fn wire(&self) -> &str {
        &self.wire
    }

    /// What it does, as its server says.
    #[must_use]
    pub fn description(&self) -> Untrusted<&str> {
        Untrusted::new(self.description.as_deref().unwrap_or_default())
    }

    /// JSON Schema of its arguments, which is an object and was not checked further.
    #[must_use]
    pub const fn schema(&self) -> &Value {
        &self.schema
    }

    /// The schema as compact JSON with sorted keys.
    #[must_use]
    pub fn schema_json(&self) -> String {
        String::from_utf8(to_bytes(&self.schema)).unwrap_or_default()
    }

    /// What its server says about its effects.
    #[must_use]
    pub const fn hints(&self) -> Untrusted<Hints> {
        Untrusted::new(self.hints)
    }

    /// SHA-256 over canonical CBOR of what an owner accepts: the server's name for it, its description and its schema. A schema that is
    /// written another way and means the same JSON has the same digest.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(&(CONTEXT, &self.wire, &self.description, &self.schema)))
    }

    pub(super) fn schema_digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(&self.schema))
    }

    pub(super) const fn own_description(&self) -> Option<&String> {
        self.description.as_ref()
    }

    /// The headers that repeat some of these arguments, where the revision has it so.
    pub(crate) fn repeated(&self, arguments: &Arguments) -> Vec<(String, String)> {
        self.headers.iter().filter_map(|repeated| repeated.of(arguments)).collect()
    }
}

impl Hints {
    fn read(mut fields: Fields) -> Result<Self, Lie> {
        Ok(Self {
            read_only: fields.flag("readOnlyHint")?,
            destructive: fields.flag("destructiveHint")?,
            idempotent: fields.flag("idempotentHint")?,
            open_world: fields.flag("openWorldHint")?,
        })
    }
}

/// Arguments are always an object, so a schema has to be one that an object can meet.
fn check_schema(schema: &Value, limits: &Limits) -> Result<(), Rejection> {
    let Value::Object(map) = schema else { return Err(Lie::new("tool.inputSchema", "an object").into()) };
    if !matches!(map.get("type"), None | Some(Value::Text(_))) {
        return Err(Lie::new("tool.inputSchema.type", "a string").into());
    }
    if matches!(map.get("type"), Some(Value::Text(kind)) if kind != "object") {
        return Err(Rejection::NoObject);
    }
    let bytes = to_bytes(schema).len();
    if bytes > limits.schema_bytes {
        return Err(Rejection::Schema { bytes, most: limits.schema_bytes });
    }
    Ok(())
}
