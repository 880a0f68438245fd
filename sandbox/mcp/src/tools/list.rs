//! All tools of a server.

use std::collections::BTreeMap;

use ephor_base::{ToolName, arguments::Value};

use super::{
    name::ServerName,
    tool::{Rejected, Rejection, Tool},
};
use crate::{limits::Limits, untrusted::Untrusted};

/// The tools of a server that can be registered, by name, and those that cannot.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ToolList {
    tools: BTreeMap<ToolName, Tool>,
    rejected: Vec<Rejected>,
}

impl ToolList {
    /// Takes what `server` offers. The caller bounds how many there are.
    #[must_use]
    pub fn read(server: &ServerName, offered: Vec<Value>, limits: &Limits) -> Self {
        let mut list = Self::default();
        let mut taken = Vec::new();
        for value in offered {
            match Tool::read(server, value, limits) {
                Ok(tool) => taken.push(tool),
                Err(rejected) => list.rejected.push(rejected),
            }
        }
        list.add(taken);
        list
    }

    /// Tools as they were once pinned.
    #[must_use]
    pub fn of(tools: impl IntoIterator<Item = Tool>) -> Self {
        let mut list = Self::default();
        list.add(tools);
        list
    }

    /// Of several that would have one name, none is registered.
    fn add(&mut self, tools: impl IntoIterator<Item = Tool>) {
        let mut named: BTreeMap<ToolName, Vec<Tool>> = BTreeMap::new();
        for tool in tools {
            named.entry(tool.name().clone()).or_default().push(tool);
        }
        for (told, tools) in named {
            let wires: Vec<String> = tools.iter().map(|tool| tool.wire().to_owned()).collect();
            let mut tools = tools.into_iter();
            match (wires.as_slice(), tools.next()) {
                ([_], Some(tool)) => drop(self.tools.insert(told, tool)),
                (wires, _) => self.rejected.extend(collisions(&told, wires)),
            }
        }
    }

    /// Those that can be registered, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Tool> {
        self.tools.values()
    }

    /// The tool of this name.
    #[must_use]
    pub fn tool(&self, name: &ToolName) -> Option<&Tool> {
        self.tools.get(name)
    }

    /// Those that cannot be registered, each with the reason.
    #[must_use]
    pub fn rejected(&self) -> &[Rejected] {
        &self.rejected
    }
}

/// One rejection for each, which names another beside it.
fn collisions(told: &ToolName, wires: &[String]) -> Vec<Rejected> {
    let others = wires.iter().cycle().skip(1);
    let rejected = |(one, other): (&String, &String)| {
        let (one, other) = (Untrusted::new(one.clone()), Untrusted::new(other.clone()));
        Rejected { wire: one.clone(), why: Rejection::Collision { told: told.clone(), one, other } }
    };
    wires.iter().zip(others).map(rejected).collect()
}
