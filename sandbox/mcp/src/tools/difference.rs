//! What has changed between the tools that an owner accepted and those that a server offers now.

use ephor_base::{Digest, ToolName};

use super::{list::ToolList, tool::Tool};
use crate::untrusted::Untrusted;

/// How a tool differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// It is new.
    Added(ToolName),
    /// It is gone.
    Removed(ToolName),
    /// It has another digest.
    Changed {
        /// Which tool.
        name: ToolName,
        /// In what; never empty.
        aspects: Vec<Aspect>,
    },
}

/// In what a tool has changed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Aspect {
    /// What its server calls it.
    Wire {
        /// Before.
        from: Untrusted<String>,
        /// Now.
        to: Untrusted<String>,
    },
    /// What its server says that it does.
    Description {
        /// Before; none where there was none.
        from: Untrusted<Option<String>>,
        /// Now.
        to: Untrusted<Option<String>>,
    },
    /// The schema of its arguments.
    Schema {
        /// The digest of the one before.
        from: Digest,
        /// The digest of the one now.
        to: Digest,
    },
}

impl ToolList {
    /// What is different in `now`, sorted by name. Empty exactly where every tool has the digest that it had.
    #[must_use]
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let removed = self.tools().filter(|tool| now.tool(tool.name()).is_none());
        let mut all: Vec<Difference> = removed.map(|tool| Difference::Removed(tool.name().clone())).collect();
        for tool in now.tools() {
            match self.tool(tool.name()) {
                None => all.push(Difference::Added(tool.name().clone())),
                Some(before) if before.digest() != tool.digest() => {
                    all.push(Difference::Changed { name: tool.name().clone(), aspects: aspects(before, tool) });
                }
                Some(_) => {}
            }
        }
        all.sort_by(|one, other| one.name().cmp(other.name()));
        all
    }
}

impl Difference {
    /// Which tool.
    #[must_use]
    pub const fn name(&self) -> &ToolName {
        match self {
            Self::Added(name) | Self::Removed(name) | Self::Changed { name, .. } => name,
        }
    }
}

fn aspects(before: &Tool, now: &Tool) -> Vec<Aspect> {
    let wire = (before.wire() != now.wire()).then(|| Aspect::Wire {
        from: Untrusted::new(before.wire().to_owned()),
        to: Untrusted::new(now.wire().to_owned()),
    });
    let description = (before.own_description() != now.own_description()).then(|| Aspect::Description {
        from: Untrusted::new(before.own_description().cloned()),
        to: Untrusted::new(now.own_description().cloned()),
    });
    let (from, to) = (before.schema_digest(), now.schema_digest());
    let schema = (from != to).then_some(Aspect::Schema { from, to });
    [wire, description, schema].into_iter().flatten().collect()
}
