//! Every outgoing connection, each with a permit.
//!
//! [`Egress`] is built once, by `node`, from a [`Policy`]: the origins that may be reached, and how. Each request takes
//! a [`ephor_kernel::Permit`], so that nothing is sent that is not on the record.
//!
//! What never happens here: a redirect is never followed, the environment's proxies are never used, no connection is
//! kept for the next call, and no address is connected to that the policy does not allow. The last is checked on the
//! addresses that are really connected to, after the name is resolved, so a name that changes its address in between
//! gains nothing.
//!
//! [`Reader`] is apart from that: it reads published files for a command that an operator gave, and no process has one.
//!
//! [`address`] says which addresses are public, [`BaseUrl`] what may be configured, [`Egress`] does the rest.

pub mod address;
mod body;
mod error;
mod guard;
mod origin;
mod policy;
mod reader;
mod request;

pub use body::Body;
pub use error::Error;
pub use origin::{BadBaseUrl, BadProxyUrl, BaseUrl, ProxyUrl};
pub use policy::{Authorities, BadAuthority, Limits, Policy};
pub use reader::Reader;
pub use request::{Egress, Key, Post, Response};
