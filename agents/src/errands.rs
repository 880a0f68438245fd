//! Messages that are no requests: what they want done is known, so no model is asked.

use std::future::Future;
use std::pin::Pin;

use ephor_base::{Arguments, MessageId, ToolName};

/// Tool calls, in the order in which they are made.
pub type Calls = Vec<(ToolName, Arguments)>;

/// Where an agent learns that a message is an errand.
pub trait Errands: Send + Sync + 'static {
    /// The calls of a message; none if it is a request. Each errand is given once.
    fn take(&self, message: MessageId) -> Pin<Box<dyn Future<Output = Option<Calls>> + Send + '_>>;
}
