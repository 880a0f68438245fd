//! Arguments that revision 2026-07-28 repeats in headers of a request (`x-mcp-header`).

use std::collections::BTreeSet;

use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_base::{Arguments, arguments::Value};

/// The member of a schema that names a header.
const MARK: &str = "x-mcp-header";

/// The largest number of either sign that a header can repeat: 2⁵³ − 1.
const LARGEST: i128 = (1 << 53) - 1;

/// A mark for a header that breaks the protocol's rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadHeader {
    /// It is no name of a header.
    #[error("a header's name is 1 to 64 characters of a token")]
    Name,
    /// Two arguments have the same.
    #[error("two arguments have the same header")]
    Twice,
    /// The argument is neither a string nor a whole number nor a truth value.
    #[error("the argument of a header is a string, a whole number or a truth value")]
    Kind,
    /// It stands where the argument cannot be found by names alone.
    #[error("a header is marked at an argument that `properties` alone lead to")]
    Place,
}

/// An argument and its header.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Repeated {
    path: Vec<String>,
    header: String,
}

/// The arguments that `schema` marks.
pub(super) fn marked(schema: &Value) -> Result<Vec<Repeated>, BadHeader> {
    let (mut found, mut names) = (Vec::new(), BTreeSet::new());
    if matches!(schema, Value::Object(map) if map.contains_key(MARK)) {
        return Err(BadHeader::Place);
    }
    look(schema, &mut Vec::new(), &mut found)?;
    for repeated in &found {
        if !names.insert(repeated.header.to_ascii_lowercase()) {
            return Err(BadHeader::Twice);
        }
    }
    Ok(found)
}

/// Looks at the schema of an object, and at those of its properties.
fn look(schema: &Value, path: &mut Vec<String>, found: &mut Vec<Repeated>) -> Result<(), BadHeader> {
    let Value::Object(map) = schema else { return Ok(()) };
    for (key, value) in map {
        match value {
            Value::Object(properties) if key == "properties" => {
                for (name, property) in properties {
                    path.push(name.clone());
                    found.extend(mark(property, path)?);
                    look(property, path, found)?;
                    path.pop();
                }
            }
            Value::Object(_) | Value::List(_) if has_mark(value) => return Err(BadHeader::Place),
            _ => {}
        }
    }
    Ok(())
}

fn has_mark(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.contains_key(MARK) || map.values().any(has_mark),
        Value::List(values) => values.iter().any(has_mark),
        _ => false,
    }
}

fn mark(property: &Value, path: &[String]) -> Result<Option<Repeated>, BadHeader> {
    let Value::Object(map) = property else { return Ok(None) };
    let name = match map.get(MARK) {
        None => return Ok(None),
        Some(Value::Text(name)) => name,
        Some(_) => return Err(BadHeader::Name),
    };
    if !(1..=64).contains(&name.len()) || !name.bytes().all(is_token) {
        return Err(BadHeader::Name);
    }
    match map.get("type") {
        Some(Value::Text(kind)) if ["string", "integer", "boolean"].contains(&kind.as_str()) => {}
        _ => return Err(BadHeader::Kind),
    }
    Ok(Some(Repeated { path: path.to_vec(), header: format!("mcp-param-{name}") }))
}

/// RFC 9110, section 5.6.2.
pub(crate) const fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
}

impl Repeated {
    /// The header of a call with these arguments; none where the argument is absent, null, or of another kind than was marked.
    pub(super) fn of(&self, arguments: &Arguments) -> Option<(String, String)> {
        let (first, rest) = self.path.split_first()?;
        let step = |value: Option<&'_ Value>, name: &String| match value {
            Some(Value::Object(map)) => map.get(name).cloned(),
            _ => None,
        };
        let value = rest.iter().fold(arguments.value(first).cloned(), |value, name| step(value.as_ref(), name))?;
        let text = match value {
            Value::Text(text) => text,
            Value::Bool(flag) => flag.to_string(),
            Value::Integer(number) if number.abs() <= LARGEST => number.to_string(),
            _ => return None,
        };
        Some((self.header.clone(), encoded(&text)))
    }
}

/// A text as the value of a header: itself where that is plain, or else in base64 between marks.
pub(crate) fn encoded(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t')) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !looks_encoded { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}
