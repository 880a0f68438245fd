//! The plan: which acting calls a request needs, and where each of their arguments comes from, in typed form.
//!
//! A planner makes it that has seen what people typed and the descriptions of tools, and nothing else. It narrows and never
//! vouches. [`Plan::parse`] reads it, [`Judge::call`] compares a call with it, [`Spent`] keeps which steps are used up. All of it is
//! pure; nothing here reads a sentence.

mod answer;
mod form;
mod judge;
mod paging;
mod pick;
mod sources;
mod spent;
mod words;

use std::collections::BTreeMap;

use ephor_base::{Digest, ToolName, cbor};

pub use answer::{Answer, Carried, Records, Trust};
pub use form::BadPlan;
pub use judge::{Asked, Call, Judge, Matched};
pub use sources::Sources;
pub use spent::{Act, Spent, Use};

use crate::datum::Datum;

/// How many steps a plan has at most.
pub const MAX_STEPS: usize = 64;
/// How many arguments a step, values an `in`, or keys a `where` have at most.
pub const MAX_ENTRIES: usize = 64;
/// How often one step may be done at most, where it says a number.
pub const MAX_TIMES: u16 = 100;
/// How many `with` lie within one another at most.
pub const MAX_WITHIN: usize = 2;
/// How long a name or a text in a plan is at most, in bytes.
pub const MAX_TEXT: usize = 4096;
/// How long a plan is at most, in bytes of JSON.
pub const MAX_PLAN: usize = 64 << 10;

/// A plan of one turn. Within its bounds by construction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    steps: Vec<Step>,
    digests: Vec<Digest>,
}

/// An acting call that a request needs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A call of this tool.
    Call {
        /// The tool.
        tool: ToolName,
        /// How often.
        times: Times,
        /// Where its arguments come from.
        arguments: BTreeMap<Box<str>, Origin>,
    },
    /// What is to be done is only written in the answers of these tools.
    Anything {
        /// The tools.
        from: Vec<ToolName>,
    },
}

/// How often a step may be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Times {
    /// So often.
    Number(u16),
    /// Once for each record that its arguments pick, and once for each set of critical values.
    Each,
}

/// Where an argument comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This value.
    Is(Datum),
    /// One of these.
    In(Vec<Datum>),
    /// What tools answer.
    From(Box<Source>),
    /// Words of the agent's own.
    Text,
    /// A person.
    Ask,
}

/// A value in what tools answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The tools.
    pub(crate) tools: Vec<ToolName>,
    /// The key of the record that has it. Without one the answer is plain text.
    pub(crate) field: Option<Box<str>>,
    /// What other keys of the record have. Empty picks nothing.
    pub(crate) given: Option<BTreeMap<Box<str>, Datum>>,
    /// Which of the records it is.
    pub(crate) pick: Pick,
    /// Where the arguments of the call came from that was answered.
    pub(crate) with: BTreeMap<Box<str>, Origin>,
}

/// Which of several records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Pick {
    /// The only one.
    Only,
    /// The first.
    First,
    /// The last.
    Last,
    /// The one that has the least of this key.
    Least(Box<str>),
    /// The one that has the most of this key.
    Most(Box<str>),
    /// Each of them.
    All,
}

impl Plan {
    /// Reads a plan as a model writes it. `known` is the tool of a name, if there is one.
    ///
    /// # Errors
    /// [`BadPlan`] says what is wrong, and with which step.
    pub fn parse(json: &str, known: &dyn Fn(&str) -> Option<ToolName>) -> Result<Self, BadPlan> {
        if json.len() > MAX_PLAN {
            return Err(BadPlan::whole(format!("it has {} bytes; write at most {MAX_PLAN}", json.len())));
        }
        let datum = Datum::json(json).map_err(|error| BadPlan::whole(error.to_string()))?;
        form::read(&datum, &["steps"], known)
    }

    /// Reads the line of a trace: the same, with a `type` that says that it is a plan.
    pub(crate) fn of_line(line: &str, known: &dyn Fn(&str) -> Option<ToolName>) -> Result<Self, BadPlan> {
        let datum = Datum::json(line).map_err(|error| BadPlan::whole(error.to_string()))?;
        form::read(&datum, &["type", "steps"], known)
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Those of these steps, which are within the bounds.
    fn of(steps: Vec<Step>) -> Self {
        let digests = steps.iter().map(Step::digest).collect();
        Self { steps, digests }
    }

    /// What step `at` is known by in another plan.
    fn step_digest(&self, at: usize) -> Option<Digest> {
        self.digests.get(at).copied()
    }

    /// SHA-256 over its canonical encoding.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}

impl Step {
    /// The tool that it is a call of, if it is of one.
    #[must_use]
    pub const fn tool(&self) -> Option<&ToolName> {
        match self {
            Self::Call { tool, .. } => Some(tool),
            Self::Anything { .. } => None,
        }
    }

    /// SHA-256 over its canonical encoding: what it is known by in another plan.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&cbor::to_vec(self))
    }
}
