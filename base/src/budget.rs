//! What may be used, and what was.

use std::time::Duration;

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

/// An amount of each thing that runs out. Zero means zero, never "unlimited". In JSON what is as great as can be counted is
/// `null`, since few readers of JSON know numbers beyond 2⁵³.
///
/// The last three are of seats rather than of calls. Encoded, zeros of them at the end are left out, so that the budget of
/// a call reads as it did before there were any.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Model tokens, in and out together.
    #[n(0)]
    #[serde(with = "counted")]
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    #[n(1)]
    #[serde(with = "counted")]
    pub micro_usd: u64,
    /// Time in drivers, in milliseconds.
    #[n(2)]
    #[serde(with = "counted")]
    pub wall_ms: u64,
    /// Calls of tools.
    #[n(3)]
    #[serde(with = "counted")]
    pub tool_calls: u64,
    /// Messages taken into mailboxes.
    #[cbor(n(4), with = "sparse", has_nil)]
    #[serde(with = "counted")]
    pub messages: u64,
    /// Seats below, however deep, that are there at the same time.
    #[cbor(n(5), with = "sparse", has_nil)]
    #[serde(with = "counted")]
    pub children: u64,
    /// How many generations there may be below. It is not used up: a child has one less than its parent.
    #[cbor(n(6), with = "sparse", has_nil)]
    #[serde(with = "counted")]
    pub depth: u64,
}

/// A number that is absent where it is zero.
pub(crate) mod sparse {
    use minicbor::{
        Decoder, Encoder,
        decode::Error as Malformed,
        encode::{Error as Unwritten, Write},
    };

    pub(crate) fn encode<C, W: Write>(number: &u64, to: &mut Encoder<W>, _: &mut C) -> Result<(), Unwritten<W::Error>> {
        to.u64(*number)?.ok()
    }

    pub(crate) fn decode<C>(from: &mut Decoder<'_>, _: &mut C) -> Result<u64, Malformed> {
        from.u64()
    }

    #[expect(clippy::unnecessary_wraps, reason = "the encoding asks for it")]
    pub(crate) const fn nil() -> Option<u64> {
        Some(0)
    }

    pub(crate) const fn is_nil(number: &u64) -> bool {
        *number == 0
    }
}

/// A number in JSON, with `null` for the greatest.
mod counted {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    pub(super) fn serialize<S: Serializer>(number: &u64, to: S) -> Result<S::Ok, S::Error> {
        Some(*number).filter(|number| *number < u64::MAX).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        Ok(Option::deserialize(from)?.unwrap_or(u64::MAX))
    }
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
    /// Messages.
    #[n(4)]
    Messages,
    /// Seats below.
    #[n(5)]
    Children,
    /// Generations below.
    #[n(6)]
    Depth,
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
            Self::Messages => "messages",
            Self::Children => "children",
            Self::Depth => "depth",
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
    pub const ZERO: Self =
        Self { tokens: 0, micro_usd: 0, wall_ms: 0, tool_calls: 0, messages: 0, children: 0, depth: 0 };

    /// As much of everything as can be counted.
    pub const MAX: Self = Self {
        tokens: u64::MAX,
        micro_usd: u64::MAX,
        wall_ms: u64::MAX,
        tool_calls: u64::MAX,
        messages: u64::MAX,
        children: u64::MAX,
        depth: u64::MAX,
    };

    /// So much of one thing, and nothing of the others.
    #[must_use]
    pub const fn of(resource: Resource, amount: u64) -> Self {
        let nothing = Self::ZERO;
        match resource {
            Resource::Tokens => Self { tokens: amount, ..nothing },
            Resource::Cost => Self { micro_usd: amount, ..nothing },
            Resource::WallTime => Self { wall_ms: amount, ..nothing },
            Resource::ToolCalls => Self { tool_calls: amount, ..nothing },
            Resource::Messages => Self { messages: amount, ..nothing },
            Resource::Children => Self { children: amount, ..nothing },
            Resource::Depth => Self { depth: amount, ..nothing },
        }
    }

    /// The sum.
    ///
    /// # Errors
    /// [`Exhausted`] names the first thing of which the sum is more than can be counted.
    pub fn plus(&self, other: &Self) -> Result<Self, Exhausted> {
        let sum = |resource, one: u64, more: u64| {
            one.checked_add(more).ok_or(Exhausted { resource, needed: more, left: u64::MAX.abs_diff(one) })
        };
        Ok(Self {
            tokens: sum(Resource::Tokens, self.tokens, other.tokens)?,
            micro_usd: sum(Resource::Cost, self.micro_usd, other.micro_usd)?,
            wall_ms: sum(Resource::WallTime, self.wall_ms, other.wall_ms)?,
            tool_calls: sum(Resource::ToolCalls, self.tool_calls, other.tool_calls)?,
            messages: sum(Resource::Messages, self.messages, other.messages)?,
            children: sum(Resource::Children, self.children, other.children)?,
            depth: sum(Resource::Depth, self.depth, other.depth)?,
        })
    }

    /// What remains after `other` is taken away; a dimension that is overdrawn is zero.
    #[must_use]
    pub const fn minus(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.saturating_sub(other.tokens),
            micro_usd: self.micro_usd.saturating_sub(other.micro_usd),
            wall_ms: self.wall_ms.saturating_sub(other.wall_ms),
            tool_calls: self.tool_calls.saturating_sub(other.tool_calls),
            messages: self.messages.saturating_sub(other.messages),
            children: self.children.saturating_sub(other.children),
            depth: self.depth.saturating_sub(other.depth),
        }
    }

    /// What both have, of each thing the smaller amount.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            tokens: self.tokens.min(other.tokens),
            micro_usd: self.micro_usd.min(other.micro_usd),
            wall_ms: self.wall_ms.min(other.wall_ms),
            tool_calls: self.tool_calls.min(other.tool_calls),
            messages: self.messages.min(other.messages),
            children: self.children.min(other.children),
            depth: self.depth.min(other.depth),
        }
    }

    /// How much of each thing, by its name.
    #[must_use]
    pub const fn amounts(&self) -> [(Resource, u64); 7] {
        [
            (Resource::Tokens, self.tokens),
            (Resource::Cost, self.micro_usd),
            (Resource::WallTime, self.wall_ms),
            (Resource::ToolCalls, self.tool_calls),
            (Resource::Messages, self.messages),
            (Resource::Children, self.children),
            (Resource::Depth, self.depth),
        ]
    }

    /// The first dimension in which `needed` is more than this.
    ///
    /// # Errors
    /// [`Exhausted`] names that dimension.
    pub fn covers(&self, needed: &Self) -> Result<(), Exhausted> {
        let pairs = self.amounts().into_iter().zip(needed.amounts());
        match pairs.into_iter().find(|((_, left), (_, needed))| needed > left) {
            Some(((resource, left), (_, needed))) => Err(Exhausted { resource, needed, left }),
            None => Ok(()),
        }
    }

    /// The wall time as a duration.
    #[must_use]
    pub const fn wall(&self) -> Duration {
        Duration::from_millis(self.wall_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Exhausted, Resource};
    use crate::cbor;

    #[test]
    fn zeros_at_the_end_are_left_out_and_one_budget_has_one_encoding() {
        let call = Budget { tokens: 1, micro_usd: 2, wall_ms: 3, tool_calls: 4, ..Budget::ZERO };
        assert_eq!(cbor::to_vec(&call), [0x84, 1, 2, 3, 4], "as it was when there were four");
        let seat = Budget { children: 6, ..call };
        assert_eq!(cbor::to_vec(&seat), [0x86, 1, 2, 3, 4, 0, 6]);
        for budget in [call, seat, Budget::ZERO, Budget { depth: 1, ..call }, Budget { messages: 9, ..call }] {
            assert_eq!(cbor::from_slice::<Budget>(&cbor::to_vec(&budget)).unwrap(), budget);
        }
        assert!(cbor::from_slice::<Budget>(&[0x85, 1, 2, 3, 4, 0]).is_err(), "a zero at the end");
        assert!(cbor::from_slice::<Budget>(&[0x86, 1, 2, 3, 4, 0xf6, 6]).is_err(), "null is no number");
    }

    #[test]
    fn a_sum_beyond_what_can_be_counted_is_refused_and_never_wraps_or_saturates() {
        let (one, most) = (Budget { tokens: 1, ..Budget::ZERO }, Budget { tokens: u64::MAX, ..Budget::ZERO });
        assert_eq!(one.plus(&one).unwrap().tokens, 2);
        assert_eq!(most.plus(&Budget { messages: 1, ..Budget::ZERO }).unwrap().tokens, u64::MAX);
        assert_eq!(most.plus(&one).unwrap_err(), Exhausted { resource: Resource::Tokens, needed: 1, left: 0 });
        assert!(Budget::MAX.plus(&Budget::MAX).is_err());
    }

    #[test]
    fn in_json_null_is_as_much_as_can_be_counted_and_nothing_may_be_missing() {
        let text = serde_json::to_string(&Budget { tokens: 0, micro_usd: 7, ..Budget::MAX }).unwrap();
        assert!(
            text.contains(r#""tokens":0"#) && text.contains(r#""wall_ms":null"#) && !text.contains("1844"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Budget>(&text).unwrap(), Budget { tokens: 0, micro_usd: 7, ..Budget::MAX });
        let without = text.replace(r#""wall_ms":null,"#, "");
        assert!(serde_json::from_str::<Budget>(&without).is_err(), "{without}");
    }
}
