//! The lines of a trace.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use ephor_base::{Confidentiality, Destinations, EffectVector, Format, Integrity, Paging, PerMille, arguments::Value};
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, MapAccess, Visitor},
};

/// A line that is not of a trace. Nothing after it is read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct BadLine {
    /// Which line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub reason: String,
}

#[derive(Deserialize, Debug)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Line {
    Tool {
        name: String,
        description: Option<String>,
        input_schema: Option<serde_json::Value>,
        registration: Option<Box<Registered>>,
    },
    User {
        text: String,
        time: Option<String>,
    },
    /// It is read from the line itself, so that its numbers stay as they are.
    #[serde(skip)]
    Plan,
    Scope {
        tools: Vec<String>,
        /// Where these tools may act, and nowhere else.
        #[serde(default, deserialize_with = "each_once")]
        targets: BTreeMap<String, BTreeSet<String>>,
    },
    Call {
        id: String,
        tool: String,
        arguments: Option<Value>,
    },
    Result {
        id: String,
        content: Option<serde_json::Value>,
        parts: Option<Vec<Part>>,
    },
}

/// A map that names nothing twice: the second would otherwise count in the place of the first.
fn each_once<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, BTreeSet<String>>, D::Error> {
    struct Once;
    impl<'de> Visitor<'de> for Once {
        type Value = BTreeMap<String, BTreeSet<String>>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a map from tools to lists of targets")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = BTreeMap::new();
            while let Some((tool, targets)) = map.next_entry::<String, _>()? {
                if found.insert(tool, targets).is_some() {
                    return Err(A::Error::custom("a tool has targets twice"));
                }
            }
            Ok(found)
        }
    }
    from.deserialize_map(Once)
}

/// What a registration says; what it leaves out is taken at its strictest.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Registered {
    pub(super) consequential: Option<bool>,
    pub(super) critical: Option<Vec<String>>,
    pub(super) result: Option<Integrity>,
    pub(super) trusted_for: Option<Vec<String>>,
    pub(super) clearance: Option<Confidentiality>,
    pub(super) confidential: Option<bool>,
    pub(super) effects: Option<Effects>,
    pub(super) identifies: Option<Vec<String>>,
    #[serde(default)]
    pub(super) destinations: Destinations,
    pub(super) format: Option<Format>,
    pub(super) paging: Option<Paging>,
    pub(super) reversible: Option<bool>,
    pub(super) keys: Option<Vec<String>>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct Effects {
    risk: Option<PerMille>,
    fairness: Option<PerMille>,
    privacy: Option<PerMille>,
    novelty: Option<PerMille>,
    security: Option<PerMille>,
}

impl Effects {
    pub(super) fn vector(self) -> EffectVector {
        let most = |given: Option<PerMille>| given.unwrap_or(PerMille::MAX);
        EffectVector {
            risk: most(self.risk),
            fairness: most(self.fairness),
            privacy: most(self.privacy),
            novelty: most(self.novelty),
            security: most(self.security),
        }
    }
}

/// A part of a result with a label of its own.
#[derive(Deserialize, Debug)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub(super) text: String,
    pub(super) integrity: Option<Integrity>,
    pub(super) confidentiality: Option<Confidentiality>,
}

impl Line {
    /// Reads a line. A key twice, at any depth, is an error.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // Our own reader knows keys that appear twice; the typed one would take the last.
        let checked: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let is_plan =
            matches!(&checked, Value::Object(map) if map.get("type") == Some(&Value::Text("plan".to_owned())));
        if is_plan {
            return Ok(Self::Plan);
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
