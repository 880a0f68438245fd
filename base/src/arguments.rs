//! Tool arguments: the one place where JSON stays JSON.

use std::{collections::BTreeMap, fmt};

use minicbor::{Decode, Decoder, Encode, Encoder, data::Type};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Digest, cbor};

/// The arguments of a tool call: a JSON object without duplicate keys, in one canonical form.
///
/// Two texts that mean the same object have the same digest; the digest is over canonical CBOR.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Arguments(BTreeMap<String, Value>);

/// A JSON value.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number from −2⁶³ to 2⁶⁴ − 1.
    Integer(i128),
    /// Any other number; finite.
    Float(f64),
    /// A string.
    Text(String),
    /// An array.
    List(Vec<Value>),
    /// An object.
    Object(BTreeMap<String, Value>),
}

/// Text that is not a JSON object, or has a key twice. Nothing was done with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the arguments are not a JSON object: {0}")]
pub struct MalformedArguments(String);

impl Arguments {
    /// Parses what a model wrote. Empty text is the empty object, as some providers send it.
    ///
    /// # Errors
    /// [`MalformedArguments`] says where the text goes wrong.
    pub fn parse(text: &str) -> Result<Self, MalformedArguments> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(Self(map)),
            Ok(_) => Err(MalformedArguments("it is another kind of value".into())),
            Err(error) => Err(MalformedArguments(error.to_string())),
        }
    }

    /// These arguments but for those of these names.
    #[must_use]
    pub fn without(&self, names: &[String]) -> Self {
        let stays = |(name, _): &(&String, &Value)| !names.contains(name);
        Self(self.0.iter().filter(stays).map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// These arguments, but for `key`, which is this text.
    #[must_use]
    pub fn with_text(mut self, key: &str, text: &str) -> Self {
        self.0.insert(key.to_owned(), Value::Text(text.to_owned()));
        self
    }

    /// The strings of `key`, each with its place: `key` itself if its value is a string, `key/0`, `key/1` and so on if it is a list of
    /// strings. None if it is anything else; nothing if there is no such key or it is null.
    #[must_use]
    pub fn texts<'a>(&'a self, key: &str) -> Option<Vec<(String, &'a str)>> {
        let text = |value: &'a Value| if let Value::Text(text) = value { Some(text.as_str()) } else { None };
        match self.0.get(key) {
            None | Some(Value::Null) => Some(Vec::new()),
            Some(Value::List(all)) => {
                all.iter().enumerate().map(|(at, one)| Some((format!("{key}/{at}"), text(one)?))).collect()
            }
            Some(one) => Some(vec![(key.to_owned(), text(one)?)]),
        }
    }

    /// The value of `key`.
    #[must_use]
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// The value of `key`, if it is a string.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(Value::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The string at a place that [`Arguments::texts`] gave.
    #[must_use]
    pub fn text_at(&self, place: &str) -> Option<&str> {
        let key = place.rsplit_once('/').map_or(place, |(key, _)| key);
        self.texts(key)?.into_iter().find(|(at, _)| at == place).map(|(_, text)| text)
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    /// Compact JSON with sorted keys.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A map of finite numbers and strings always serialises.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// SHA-256 of the canonical CBOR.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}

impl fmt::Display for Arguments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Object(map) => Ok(Self(map)),
            _ => Err(de::Error::custom("arguments are an object")),
        }
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Integer(value) => match u64::try_from(*value) {
                Ok(value) => serializer.serialize_u64(value),
                Err(_) => serializer.serialize_i64(i64::try_from(*value).unwrap_or(i64::MIN)),
            },
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(values) => values.serialize(serializer),
            Self::Object(map) => map.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ValueVisitor)
    }
}

struct ValueVisitor;

impl<'de> de::Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Value, E> {
        if value.is_finite() { Ok(Value::Float(value)) } else { Err(E::custom("a number that is not finite")) }
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::Text(value))
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = seq.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = BTreeMap::new();
        while let Some((key, value)) = access.next_entry::<String, Value>()? {
            if map.contains_key(&key) {
                return Err(de::Error::custom(format!("the key `{key}` appears twice")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

impl<C> Encode<C> for Value {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        match self {
            Self::Null => e.null()?.ok(),
            Self::Bool(value) => e.bool(*value)?.ok(),
            Self::Integer(value) => match u64::try_from(*value) {
                Ok(value) => e.u64(value)?.ok(),
                Err(_) => e.i64(i64::try_from(*value).unwrap_or(i64::MIN))?.ok(),
            },
            Self::Float(value) => e.f64(*value)?.ok(),
            Self::Text(value) => e.str(value)?.ok(),
            Self::List(values) => {
                e.array(values.len() as u64)?;
                values.iter().try_for_each(|value| value.encode(e, ctx))
            }
            Self::Object(map) => encode_map(map, e, ctx),
        }
    }
}

/// RFC 8949, section 4.2.1: keys sorted by their encoded bytes, so a shorter key comes before a longer one.
fn encode_map<C, W: minicbor::encode::Write>(
    map: &BTreeMap<String, Value>,
    e: &mut Encoder<W>,
    ctx: &mut C,
) -> Result<(), minicbor::encode::Error<W::Error>> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_by_key(|(key, _)| (key.len(), key.as_bytes()));
    e.map(entries.len() as u64)?;
    for (key, value) in entries {
        e.str(key)?;
        value.encode(e, ctx)?;
    }
    Ok(())
}

/// How deep values may nest when they are read back. JSON text is limited alike.
const MAX_DEPTH: usize = 128;

fn decode_value(d: &mut Decoder<'_>, depth: usize) -> Result<Value, minicbor::decode::Error> {
    if depth > MAX_DEPTH {
        return Err(minicbor::decode::Error::message("nested too deeply"));
    }
    Ok(match d.datatype()? {
        Type::Null => {
            d.null()?;
            Value::Null
        }
        Type::Bool => Value::Bool(d.bool()?),
        Type::F64 => Value::Float(d.f64()?),
        Type::String => Value::Text(d.str()?.to_owned()),
        Type::Array => {
            let length = d.array()?.ok_or_else(|| minicbor::decode::Error::message("indefinite length"))?;
            let mut values = Vec::new();
            for _ in 0..length {
                values.push(decode_value(d, depth + 1)?);
            }
            Value::List(values)
        }
        Type::Map => Value::Object(decode_map(d, depth)?),
        _ => Value::Integer(d.int()?.into()),
    })
}

fn decode_map(d: &mut Decoder<'_>, depth: usize) -> Result<BTreeMap<String, Value>, minicbor::decode::Error> {
    let length = d.map()?.ok_or_else(|| minicbor::decode::Error::message("indefinite length"))?;
    let mut map = BTreeMap::new();
    for _ in 0..length {
        let key = d.str()?.to_owned();
        if map.insert(key, decode_value(d, depth + 1)?).is_some() {
            return Err(minicbor::decode::Error::message("a key appears twice"));
        }
    }
    Ok(map)
}

impl<C> Encode<C> for Arguments {
    fn encode<W: minicbor::encode::Write>(
        &self,
        e: &mut Encoder<W>,
        ctx: &mut C,
    ) -> Result<(), minicbor::encode::Error<W::Error>> {
        encode_map(&self.0, e, ctx)
    }
}

impl<'b, C> Decode<'b, C> for Arguments {
    fn decode(d: &mut Decoder<'b>, _: &mut C) -> Result<Self, minicbor::decode::Error> {
        decode_map(d, 0).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::Arguments;
    use crate::cbor;

    #[test]
    fn texts_that_mean_the_same_have_one_digest() {
        let one = Arguments::parse(r#"{"path":"a","list":[1,2.5,-3,null,true]}"#).unwrap();
        let two = Arguments::parse("{ \"list\" : [1, 2.5, -3, null, true], \"path\": \"\\u0061\" }").unwrap();
        assert_eq!(one.digest(), two.digest());
        assert_ne!(one.digest(), Arguments::parse(r#"{"path":"a","list":[1,2.5,-3,null]}"#).unwrap().digest());
    }

    #[test]
    fn a_key_twice_is_refused_at_every_depth() {
        assert!(Arguments::parse(r#"{"a":1,"a":2}"#).is_err());
        assert!(Arguments::parse(r#"{"b":[{"a":1,"a":1}]}"#).is_err());
    }

    #[test]
    fn what_is_encoded_is_read_back() {
        let arguments =
            Arguments::parse(r#"{"z":{"bb":1,"a":-9223372036854775808},"n":18446744073709551615}"#).unwrap();
        assert_eq!(cbor::from_slice::<Arguments>(&cbor::to_vec(&arguments)).unwrap(), arguments);
        assert_eq!(Arguments::parse(&arguments.to_json()).unwrap(), arguments);
    }

    #[test]
    fn only_an_object_will_do() {
        for text in ["[]", "1", "\"x\"", "{", "{\"a\":}", "null", "{} x"] {
            assert!(Arguments::parse(text).is_err(), "{text}");
        }
        assert_eq!(Arguments::parse("  ").unwrap(), Arguments::default());
    }
}
