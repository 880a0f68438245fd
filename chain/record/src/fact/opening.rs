//! What an agent works with, and what it is sent to do.

use ephor_base::{Budget, Part};
use minicbor::{Decode, Encode};
use serde::Serialize;

use super::Pin;

/// What a session works with, besides its rights.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Opening {
    /// What every prompt begins with; the operator's words.
    #[n(0)]
    pub instructions: String,
    /// Who serves its model.
    #[n(1)]
    pub provider: String,
    /// The name of its model there.
    #[n(2)]
    pub model: String,
    /// The folder that its tools see.
    #[n(3)]
    pub workspace: String,
    /// The lines of its model, if it is a script.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// What its seat may use in all. Sessions of earlier versions do not have it, and are not taken up again.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
}

/// What a schedule sends, and where to.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Errand {
    /// The message.
    #[n(0)]
    pub parts: Vec<Part>,
    /// The folder its agent works in.
    #[n(1)]
    pub workspace: String,
    /// The model it asks, as it is typed; nothing for the configured one.
    #[n(2)]
    pub model: Option<String>,
    /// The name of its agent in the configuration; nothing for the default one.
    #[n(3)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tools that the message needs, if they are pinned.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Vec<Pin>>,
}
