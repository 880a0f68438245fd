//! What a seat is entitled to.

use std::collections::BTreeSet;

use ephor_base::{Capability, ToolName};

/// A set of capabilities, and perhaps the only tools that they are for. It can only be made smaller.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rights {
    capabilities: BTreeSet<Capability>,
    /// Every tool, where none are named.
    tools: Option<BTreeSet<ToolName>>,
}

impl Rights {
    /// Exactly these, for every tool.
    #[must_use]
    pub fn of(capabilities: impl IntoIterator<Item = Capability>) -> Self {
        Self { capabilities: capabilities.into_iter().collect(), tools: None }
    }

    /// The same for these tools alone, as far as it was for them before.
    #[must_use]
    pub fn only(self, tools: impl IntoIterator<Item = ToolName>) -> Self {
        let narrower = Self { capabilities: self.capabilities.clone(), tools: Some(tools.into_iter().collect()) };
        self.intersect(&narrower)
    }

    /// What both allow.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let tools = match (&self.tools, &other.tools) {
            (Some(own), Some(others)) => Some(own.intersection(others).cloned().collect()),
            (Some(tools), None) | (None, Some(tools)) => Some(tools.clone()),
            (None, None) => None,
        };
        Self { capabilities: self.capabilities.intersection(&other.capabilities).copied().collect(), tools }
    }

    /// Whether `capability` is among them.
    #[must_use]
    pub fn allow(&self, capability: Capability) -> bool {
        self.capabilities.contains(&capability)
    }

    /// Whether they are for the tool of this name.
    #[must_use]
    pub fn are_for(&self, tool: &ToolName) -> bool {
        self.tools.as_ref().is_none_or(|tools| tools.contains(tool))
    }

    /// The only tools that they are for, in order; none where they are for every tool.
    #[must_use]
    pub const fn tools(&self) -> Option<&BTreeSet<ToolName>> {
        self.tools.as_ref()
    }

    /// The capabilities, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = Capability> {
        self.capabilities.iter().copied()
    }
}
