//! What an agent is, as the configuration of its operator has it.

use ephor_base::{Part, ToolName};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use super::{
    Subject,
    forms::{flag, is_false},
};
use crate::entry::Entry;

/// What an agent is: nothing of it is said by a model, a client or a file of a workspace.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Appointment {
    /// Its name in the configuration.
    #[n(0)]
    pub agent: String,
    /// Its role, as the constitution names it.
    #[n(1)]
    pub role: String,
    /// Its namespace, as the constitution names it.
    #[n(2)]
    pub namespace: String,
    /// How many of 1,000 tool calls may be refused: the null of the evidence on its conduct, 1 to 900.
    #[n(3)]
    pub p0: u16,
    /// The only tools that it may have; every tool, where none are named.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolName>>,
    /// The time zone of its person, as the IANA names it: what "tomorrow at nine" is counted in. UTC, where none is named.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// Whether its model is asked what a request needs before a turn does anything. What it says narrows the turn.
    #[cbor(n(6), with = "flag", has_nil)]
    #[serde(skip_serializing_if = "is_false")]
    pub planned: bool,
}

/// A tool that a request needs, as the operator pins it before anything else is read.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The tool.
    #[n(0)]
    pub tool: ToolName,
    /// The texts that say where it may act; anywhere, where none are named.
    #[n(1)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub targets: Option<Vec<String>>,
}

impl From<ToolName> for Pin {
    /// Anywhere.
    fn from(tool: ToolName) -> Self {
        Self { tool, targets: None }
    }
}

/// A message for whose turn it is pinned where tools may act.
#[derive(Clone, PartialEq, Debug, Serialize, Encode, Decode)]
pub struct Pinned {
    /// Its parts.
    #[n(0)]
    pub parts: Vec<Part>,
    /// The tools that may not act anywhere.
    #[n(1)]
    pub pins: Vec<Pin>,
    /// Whether its person sees the plan before anything acts.
    #[cbor(n(2), with = "flag", has_nil)]
    #[serde(skip_serializing_if = "is_false")]
    pub looks: bool,
}

impl Appointment {
    /// Whether an entry may say so of the agent of its session: only the node says it, in no secret.
    pub fn is_said_by(&self, entry: &Entry) -> bool {
        let Subject { session, operator, seat, .. } = &entry.subject;
        let of_session = session.is_some() && seat.is_some() && operator.is_none() && entry.content.is_none();
        of_session && (1..=900).contains(&self.p0)
    }
}
