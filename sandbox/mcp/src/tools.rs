//! The tools of a server, as data for a registration.

mod difference;
mod headers;
mod list;
mod name;
mod tool;

pub use difference::{Aspect, Difference};
pub use headers::BadHeader;
pub(crate) use headers::{encoded, is_token};
pub use list::ToolList;
pub use name::{BadServerName, ServerName};
pub use tool::{Hints, Rejected, Rejection, Tool};
