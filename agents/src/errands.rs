//! Messages that are no requests: what they want done is known, so no model is asked.

use std::future::Future;
use std::pin::Pin;

use ephor_base::{Arguments, MessageId, ToolName};

/// What an errand has done, in this order. What became of one does not keep the next from being done.
pub type Calls = Vec<Chain>;

/// A tool call: the tool, and its arguments.
pub type Called = (ToolName, Arguments);

/// Tool calls of which some depend on others.
#[derive(Default, Debug)]
pub struct Chain {
    /// These are made each, in this order.
    pub first: Vec<Called>,
    /// These are made only if every one of the first was done.
    pub then: Vec<Called>,
}

/// Where an agent learns that a message is an errand.
pub trait Errands: Send + Sync + 'static {
    /// The calls of a message; none if it is a request. Each errand is given once.
    fn take(&self, message: MessageId) -> Pin<Box<dyn Future<Output = Option<Calls>> + Send + '_>>;
}
