//! JSON within bounds, and a reader of its objects that says where one lies.

use std::collections::BTreeMap;

use ephor_base::arguments::Value;

use crate::{limits::Limits, untrusted::beginning};

/// Bytes that are no message. Nothing was done with them.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Malformed {
    /// They are no UTF-8.
    #[error("the bytes are not UTF-8")]
    Utf8,
    /// They are longer than a message may be.
    #[error("the message is longer than {most} bytes")]
    Long {
        /// [`Limits::message_bytes`].
        most: usize,
    },
    /// Its values nest too deeply.
    #[error("the message nests deeper than {most}")]
    Deep {
        /// [`Limits::depth`].
        most: usize,
    },
    /// It has too many values.
    #[error("the message has more than {most} values")]
    Values {
        /// [`Limits::values`].
        most: usize,
    },
    /// They are no JSON, or an object has a key twice.
    #[error("not JSON: {0}")]
    Json(String),
    /// They are JSON, and no message of JSON-RPC 2.0.
    #[error("not JSON-RPC 2.0: {0}")]
    Rpc(#[from] Lie),
}

/// A value of another kind than the protocol says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{place}` is not {expected}")]
pub struct Lie {
    /// Where, as a path from the message on.
    pub place: String,
    /// What should be there.
    pub expected: &'static str,
}

impl Lie {
    pub(crate) fn new(place: impl Into<String>, expected: &'static str) -> Self {
        Self { place: place.into(), expected }
    }
}

/// Reads one JSON value. Its size in memory is bounded before any of it is built.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Result<Value, Malformed> {
    if bytes.len() > limits.message_bytes {
        return Err(Malformed::Long { most: limits.message_bytes });
    }
    let text = str::from_utf8(bytes).map_err(|_| Malformed::Utf8)?;
    measure(bytes, limits)?;
    serde_json::from_str(text).map_err(|error| Malformed::Json(beginning(&error.to_string(), limits.text_bytes)))
}

/// Counts what a parser would build. Of text that is no JSON it may count anything; the parser refuses that.
fn measure(bytes: &[u8], limits: &Limits) -> Result<(), Malformed> {
    let (mut depth, mut values, mut quoted, mut escaped) = (0_usize, 1_usize, false, false);
    for byte in bytes {
        if quoted {
            (quoted, escaped) = (escaped || *byte != b'"', !escaped && *byte == b'\\');
            continue;
        }
        match byte {
            b'"' => quoted = true,
            b'[' | b'{' => (depth, values) = (depth.saturating_add(1), values.saturating_add(1)),
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => values = values.saturating_add(1),
            _ => {}
        }
        if depth > limits.depth {
            return Err(Malformed::Deep { most: limits.depth });
        }
        if values > limits.values {
            return Err(Malformed::Values { most: limits.values });
        }
    }
    Ok(())
}

/// An object that is being read. Each field is taken out, so that nothing is copied.
pub(crate) struct Fields {
    place: String,
    map: BTreeMap<String, Value>,
}

impl Fields {
    /// `value`, which stands at `place`, if it is an object.
    pub(crate) fn of(value: Value, place: impl Into<String>) -> Result<Self, Lie> {
        match value {
            Value::Object(map) => Ok(Self { place: place.into(), map }),
            _ => Err(Lie::new(place, "an object")),
        }
    }

    /// Where the object stands.
    pub(crate) fn whole(&self) -> &str {
        &self.place
    }

    /// Where a field of this name stands.
    pub(crate) fn place(&self, name: &str) -> String {
        format!("{}.{name}", self.place)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// A field of any kind; none where it is `null`.
    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|value| *value != Value::Null)
    }

    pub(crate) fn text(&mut self, name: &str) -> Result<Option<String>, Lie> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(Lie::new(self.place(name), "a string")),
        }
    }

    pub(crate) fn required_text(&mut self, name: &str) -> Result<String, Lie> {
        self.text(name)?.ok_or_else(|| Lie::new(self.place(name), "a string"))
    }

    pub(crate) fn flag(&mut self, name: &str) -> Result<Option<bool>, Lie> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(_) => Err(Lie::new(self.place(name), "true or false")),
        }
    }

    pub(crate) fn list(&mut self, name: &str) -> Result<Option<Vec<Value>>, Lie> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::List(values)) => Ok(Some(values)),
            Some(_) => Err(Lie::new(self.place(name), "a list")),
        }
    }

    pub(crate) fn fields(&mut self, name: &str) -> Result<Option<Self>, Lie> {
        self.take(name).map(|value| Self::of(value, self.place(name))).transpose()
    }

    /// What was not taken.
    pub(crate) fn rest(self) -> BTreeMap<String, Value> {
        self.map
    }
}

/// An object of these members.
pub(crate) fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Compact JSON, on one line.
pub(crate) fn to_bytes(value: &Value) -> Vec<u8> {
    // A map of finite numbers and strings always serialises.
    serde_json::to_vec(value).unwrap_or_default()
}
