//! The lines of a trace.

use ephor_base::{Confidentiality, EffectVector, Integrity, PerMille, arguments::Value};
use serde::Deserialize;

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
        registration: Option<Registered>,
    },
    User {
        text: String,
        time: Option<String>,
    },
    Scope {
        tools: Vec<String>,
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
        let _checked: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}
