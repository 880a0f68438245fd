//! What a turn needs: pinned before untrusted content enters it.

use std::collections::{BTreeMap, BTreeSet};

use ephor_base::{Arguments, CallId, Digest, ToolName, arguments::Value};

use crate::{
    plan::{Act, Spent, Use},
    registry::Tool,
};

/// The tools, and perhaps the targets, that a request needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Scope {
    /// The tools that may act.
    pub tools: BTreeSet<ToolName>,
    /// The texts that say where a tool may act, for those tools that may not act anywhere. A tool with none acts nowhere.
    pub targets: BTreeMap<ToolName, BTreeSet<String>>,
}

impl Scope {
    /// What both allow.
    fn narrowed(self, other: Self) -> Self {
        let tools = self.tools.intersection(&other.tools).cloned().collect();
        let mut targets = self.targets;
        for (tool, others) in other.targets {
            // Two that have nothing in common leave nothing, and not everything.
            let both = targets.get(&tool).map(|own| own.intersection(&others).cloned().collect());
            targets.insert(tool, both.unwrap_or(others));
        }
        Self { tools, targets }
    }

    /// Whether a call of `tool` acts on its targets alone, if it has any. What a call acts on is what its path arguments say,
    /// and all of them have to be there; of a tool that has no paths, what its critical arguments say.
    #[must_use]
    pub fn reaches(&self, tool: &Tool, arguments: &Arguments) -> bool {
        let registration = tool.registration();
        let Some(targets) = self.targets.get(&registration.name) else { return true };
        if !registration.paths.is_empty() {
            let named = |path: &String| arguments.value(path).is_some_and(|value| is_among(targets, value));
            return registration.paths.iter().all(named);
        }
        let mut critical = arguments.iter().filter(|(name, _)| tool.is_critical(name)).peekable();
        critical.peek().is_some() && critical.all(|(_, value)| is_among(targets, value))
    }
}

/// Whether there is something in `value`, and all of it is among the targets.
fn is_among(targets: &BTreeSet<String>, value: &Value) -> bool {
    let said = match value {
        Value::Null => return false,
        Value::Text(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(yes) => yes.to_string(),
        Value::List(values) => return !values.is_empty() && values.iter().all(|value| is_among(targets, value)),
        Value::Object(map) => return !map.is_empty() && map.values().all(|value| is_among(targets, value)),
    };
    targets.contains(&said)
}

/// What has happened in a turn so far, as far as a decision depends on it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TurnState {
    scope: Option<Scope>,
    /// Whether an operator's scope was there before untrusted content was. A later one, or a model's, still narrows, and
    /// vouches for nothing.
    in_time: bool,
    /// Whether untrusted content has entered this turn, and whether any is in the context at all.
    entered: bool,
    tainted: bool,
    /// Whether a person wants to see the plan before anything acts.
    looked_at: bool,
    spent: Spent,
}

impl TurnState {
    /// Pins what the request needs. Once untrusted content has entered, it can only be narrowed.
    pub fn pin(&mut self, scope: Scope) {
        if self.entered {
            self.narrow(scope);
        } else {
            (self.scope, self.in_time) = (Some(scope), true);
        }
    }

    /// Takes away what is not in `scope` as well, whatever says so: it vouches for nothing.
    pub fn narrow(&mut self, scope: Scope) {
        self.scope = Some(match self.scope.take() {
            None => scope,
            Some(old) => old.narrowed(scope),
        });
    }

    /// The first call that acts is put before a person, who wants to see the plan.
    pub const fn look(&mut self) {
        self.looked_at = true;
    }

    /// Whether nothing has acted yet and a person wants to see the plan before.
    #[must_use]
    pub const fn is_looked_at(&self) -> bool {
        self.looked_at
    }

    /// Untrusted content has entered.
    pub const fn taint(&mut self) {
        (self.entered, self.tainted) = (true, true);
    }

    /// A new request: nothing is pinned for it yet. What was shown before is still in the context.
    pub fn begin(&mut self) {
        *self = Self { tainted: self.tainted, ..Self::default() };
    }

    /// Call `call`, which acts and has this digest, was permitted, and is done once. `step` is what it takes of the plan.
    pub fn permitted(&mut self, call: CallId, digest: Digest, step: Option<Use>) {
        self.looked_at = false;
        self.spent.take(Act { call, digest, step, permitted: true });
    }

    /// The call waits for a person, and no other takes its step.
    pub fn waits(&mut self, call: CallId, digest: Digest, step: Option<Use>) {
        self.spent.take(Act { call, digest, step, permitted: false });
    }

    /// The call waited and was refused.
    pub fn refused(&mut self, call: CallId) {
        self.spent.release(call);
    }

    /// What the turn has done.
    #[must_use]
    pub const fn spent(&self) -> &Spent {
        &self.spent
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

    /// Whether what was pinned says that a tool was asked for: an operator pinned it, in time.
    #[must_use]
    pub const fn vouches(&self) -> bool {
        self.in_time
    }

    /// Whether `tool` was pinned in time.
    #[must_use]
    pub fn has_pinned(&self, tool: &ToolName) -> bool {
        self.in_time && self.scope.as_ref().is_some_and(|scope| scope.tools.contains(tool))
    }
}
