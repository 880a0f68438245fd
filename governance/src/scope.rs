//! What a turn needs: pinned before untrusted content enters it.

use std::collections::BTreeSet;

use ephor_base::{Digest, ToolName, arguments::Value};

/// The tools, and perhaps the targets, that a request needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    /// The tools that may act.
    pub tools: BTreeSet<ToolName>,
    /// If there are any: the texts that critical arguments may be, and no others.
    pub targets: BTreeSet<String>,
}

impl Scope {
    /// What both allow.
    fn narrowed(self, other: Self) -> Self {
        let tools = self.tools.intersection(&other.tools).cloned().collect();
        let targets = match (self.targets.is_empty(), other.targets.is_empty()) {
            (true, _) => other.targets,
            (false, true) => self.targets,
            (false, false) => self.targets.intersection(&other.targets).cloned().collect(),
        };
        Self { tools, targets }
    }

    /// Whether every text in `value` is one of the targets, if there are any.
    #[must_use]
    pub fn reaches(&self, value: &Value) -> bool {
        self.targets.is_empty()
            || match value {
                Value::Null => true,
                Value::Text(text) => self.targets.contains(text),
                Value::List(values) => values.iter().all(|value| self.reaches(value)),
                Value::Bool(_) | Value::Integer(_) | Value::Float(_) => self.targets.contains(&number_text(value)),
                Value::Object(map) => map.values().all(|value| self.reaches(value)),
            }
    }
}

fn number_text(value: &Value) -> String {
    match value {
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::Null | Value::Text(_) | Value::List(_) | Value::Object(_) => String::new(),
    }
}

/// What has happened in a turn so far, as far as a decision depends on it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TurnState {
    scope: Option<Scope>,
    /// Whether the scope was there before untrusted content was. A later one still narrows, and vouches for nothing.
    in_time: bool,
    /// Whether untrusted content has entered this turn, and whether any is in the context at all.
    entered: bool,
    tainted: bool,
    permitted: BTreeSet<Digest>,
}

impl TurnState {
    /// Pins what the request needs. Once untrusted content has entered, it can only be narrowed.
    pub fn pin(&mut self, scope: Scope) {
        if !self.entered {
            (self.scope, self.in_time) = (Some(scope), true);
            return;
        }
        self.scope = Some(match self.scope.take() {
            None => scope,
            Some(old) => old.narrowed(scope),
        });
    }

    /// Untrusted content has entered.
    pub const fn taint(&mut self) {
        (self.entered, self.tainted) = (true, true);
    }

    /// A new request: nothing is pinned for it yet. What was shown before is still in the context.
    pub fn begin(&mut self) {
        *self = Self { tainted: self.tainted, ..Self::default() };
    }

    /// A call that acts was permitted, and is done once.
    pub fn permitted(&mut self, call: Digest) {
        self.permitted.insert(call);
    }

    /// Whether the context holds untrusted content.
    #[must_use]
    pub const fn is_tainted(&self) -> bool {
        self.tainted
    }

    /// What was pinned.
    #[must_use]
    pub const fn scope(&self) -> Option<&Scope> {
        self.scope.as_ref()
    }

    /// Whether `tool` was pinned in time.
    #[must_use]
    pub fn has_pinned(&self, tool: &ToolName) -> bool {
        self.in_time && self.scope.as_ref().is_some_and(|scope| scope.tools.contains(tool))
    }

    /// Whether this very call was permitted in the turn before.
    #[must_use]
    pub fn was_permitted(&self, call: &Digest) -> bool {
        self.permitted.contains(call)
    }
}
