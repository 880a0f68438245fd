//! Reads an object as servers really write it: a field that is missing, null or of another kind counts as absent.
//!
//! Nothing is taken apart before it is asked for. So what has to go on as it came (tool arguments, a provider's state) does, to the byte.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// A view of one object.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    source: &'a str,
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

/// The fields of an object, in their order.
struct Entries<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Entries<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Map;
        impl<'de> Visitor<'de> for Map {
            type Value = Entries<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries<'de>, A::Error> {
                let mut fields = Vec::new();
                while let Some((Key(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(Entries(fields))
            }
        }
        from.deserialize_map(Map)
    }
}

/// A key, which is seldom escaped.
#[derive(Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// A string in which half a surrogate pair counts as U+FFFD, since servers cut characters in two.
struct Lossy(String);

impl<'de> Deserialize<'de> for Lossy {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Bytes;
        impl Visitor<'_> for Bytes {
            type Value = Lossy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Lossy, E> {
                Ok(Lossy(String::from_utf8_lossy(bytes).into_owned()))
            }
        }
        from.deserialize_bytes(Bytes)
    }
}

/// Whether `text` is one JSON object.
pub(crate) fn is_object(text: &str) -> bool {
    text.trim_start().starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// The string that `raw` is.
fn text_of(raw: &str) -> Option<String> {
    raw.starts_with('"').then(|| serde_json::from_str::<Lossy>(raw).ok())?.map(|Lossy(text)| text)
}

/// A count, however it is written: `5` or `5.0`. Nothing for what is negative, has a fraction, or is no number.
fn count_of(raw: &str) -> Option<u64> {
    /// From here on not every whole number is a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || raw.parse::<f64>().ok().filter(|number| number.fract() == 0.0 && (0.0..=EXACT).contains(number));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is whole, not negative and exact")]
    let exact = || float().map(|number| number as u64);
    raw.parse::<u64>().ok().or_else(exact)
}

impl<'a> Fields<'a> {
    /// Reads an object.
    ///
    /// # Errors
    /// Where `text` is no JSON, or no object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let Entries(fields) = serde_json::from_str(text)?;
        Ok(Self { source: text, fields })
    }

    /// The object as it came.
    pub(crate) const fn source(&self) -> &'a str {
        self.source
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Whether there is a field of this name, null or not.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.fields.iter().any(|(name, _)| name == key)
    }

    /// A field as it came, unless it is null. Of several of one name the last counts.
    pub(crate) fn raw(&self, key: &str) -> Option<&'a str> {
        let field = self.fields.iter().rfind(|(name, _)| name == key);
        field.map(|(_, raw)| raw.get()).filter(|raw| *raw != "null")
    }

    pub(crate) fn text(&self, key: &str) -> Option<String> {
        text_of(self.raw(key)?)
    }

    /// A string, or any other value as it came: for what servers write either way.
    pub(crate) fn text_or_raw(&self, key: &str) -> Option<String> {
        let raw = self.raw(key)?;
        text_of(raw).or_else(|| Some(raw.to_owned()))
    }

    pub(crate) fn count(&self, key: &str) -> Option<u64> {
        count_of(self.raw(key)?)
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.raw(key) == Some("true")
    }

    pub(crate) fn object(&self, key: &str) -> Option<Self> {
        Self::parse(self.raw(key)?).ok()
    }

    /// The items of a list; none where there is no list.
    pub(crate) fn list(&self, key: &str) -> Vec<&'a str> {
        let items = self.raw(key).and_then(|raw| serde_json::from_str::<Vec<&'a RawValue>>(raw).ok());
        items.unwrap_or_default().into_iter().map(RawValue::get).collect()
    }

    /// Whether the field is a list.
    pub(crate) fn is_list(&self, key: &str) -> bool {
        self.raw(key).is_some_and(|raw| raw.starts_with('['))
    }

    /// Those items of a list that are objects.
    pub(crate) fn objects(&self, key: &str) -> Vec<Self> {
        self.list(key).into_iter().filter_map(|item| Self::parse(item).ok()).collect()
    }

    /// A string, or those items of a list that are strings or text parts.
    pub(crate) fn spoken(&self, key: &str) -> String {
        let part = |raw: &'a str| {
            text_of(raw).or_else(|| {
                let part = Self::parse(raw).ok()?;
                let kind = part.text("type").unwrap_or_else(|| "text".to_owned());
                let text = || part.text("text").or_else(|| part.object("text")?.text("value"));
                kind.ends_with("text").then(text)?
            })
        };
        self.text(key).unwrap_or_else(|| self.list(key).into_iter().filter_map(part).collect())
    }

    /// The bytes of all strings right in this object but those of these names: what a server says in fields that are not known.
    pub(crate) fn others(&self, known: &[&str]) -> usize {
        let others = self.fields.iter().filter(|(name, _)| !known.contains(&&**name));
        others.filter_map(|(_, raw)| text_of(raw.get())).map(|text| text.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn what_is_of_another_kind_is_absent() {
        let read = Fields::parse(r#"{"a":1,"b":"x","c":null,"d":[1,{"e":2}],"f":{"g":true}}"#).unwrap();
        assert_eq!((read.text("a"), read.text("b").as_deref(), read.text("z")), (None, Some("x"), None));
        assert_eq!((read.has("c"), read.raw("c")), (true, None));
        assert_eq!((read.count("a"), read.count("b"), read.objects("d").len()), (Some(1), None, 1));
        assert!(read.object("f").unwrap().is_true("g") && read.object("d").is_none());
        assert!(Fields::parse("[1]").is_err() && Fields::parse("{").is_err());
    }

    #[test]
    fn a_count_is_a_whole_number_however_it_is_written() {
        for (raw, count) in [
            ("5", Some(5)),
            ("5.0", Some(5)),
            ("5e2", Some(500)),
            ("18446744073709551615", Some(u64::MAX)),
            ("-1", None),
            ("1.5", None),
            ("1e300", None),
            ("\"7\"", None),
            ("[]", None),
        ] {
            let text = format!(r#"{{"n":{raw}}}"#);
            assert_eq!(Fields::parse(&text).unwrap().count("n"), count, "{raw}");
        }
    }

    #[test]
    fn half_a_character_does_not_cost_the_text() {
        let read = Fields::parse(r#"{"a":"so \ud83e","b":"\ud83e\udd80"}"#).unwrap();
        assert!(read.text("a").unwrap().starts_with("so \u{fffd}"));
        assert_eq!(read.text("b").as_deref(), Some("🦀"));
    }
}
