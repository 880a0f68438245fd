//! What may be used, and what was.

use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// An amount of each thing that runs out. Zero means zero, never "unlimited".
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Model tokens, in and out together.
    #[n(0)]
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    #[n(1)]
    pub micro_usd: u64,
    /// Time in drivers, in milliseconds.
    #[n(2)]
    pub wall_ms: u64,
    /// Calls of tools.
    #[n(3)]
    pub tool_calls: u64,
}

/// One of the things a [`Budget`] counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Model tokens.
    #[n(0)]
    Tokens,
    /// Money.
    #[n(1)]
    Cost,
    /// Time in drivers.
    #[n(2)]
    WallTime,
    /// Calls of tools.
    #[n(3)]
    ToolCalls,
}

impl Resource {
    /// Its name, for people.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::WallTime => "wall time",
            Self::ToolCalls => "tool calls",
        }
    }
}

/// A reservation was refused: nothing was reserved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error, Serialize, Deserialize, Encode, Decode)]
#[error("the budget is spent: {needed} more of {} needed, {left} left", resource.name(), needed = needed, left = left)]
pub struct Exhausted {
    /// What ran out.
    #[n(0)]
    pub resource: Resource,
    /// How much the call could use.
    #[n(1)]
    pub needed: u64,
    /// How much is left.
    #[n(2)]
    pub left: u64,
}

impl Budget {
    /// Nothing.
    pub const ZERO: Self = Self { tokens: 0, micro_usd: 0, wall_ms: 0, tool_calls: 0 };

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_add(other.tokens),
            micro_usd: self.micro_usd.saturating_add(other.micro_usd),
            wall_ms: self.wall_ms.saturating_add(other.wall_ms),
            tool_calls: self.tool_calls.saturating_add(other.tool_calls),
        }
    }

    /// What remains after `other` is taken away; a dimension that is overdrawn is zero.
    #[must_use]
    pub const fn minus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
            wall_ms: self.wall_ms.saturating_sub(other.wall_ms),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
        }
    }

    /// The first dimension in which `needed` is more than this.
    ///
    /// # Errors
    /// [`Exhausted`] names that dimension.
    pub fn covers(&self, needed: &Self) -> Result<(), Exhausted> {
        let pairs = [
            (Resource::Tokens, needed.tokens, self.tokens),
            (Resource::Cost, needed.micro_usd, self.micro_usd),
            (Resource::WallTime, needed.wall_ms, self.wall_ms),
            (Resource::ToolCalls, needed.tool_calls, self.tool_calls),
        ];
        match pairs.into_iter().find(|(_, needed, left)| needed > left) {
            Some((resource, needed, left)) => Err(Exhausted { resource, needed, left }),
            None => Ok(()),
        }
    }

    /// The wall time as a duration.
    #[must_use]
    pub const fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms)
    }
}
