//! The one door.
mod permit;
mod refusal;
pub use permit::Permit;
pub use refusal::Refusal;
