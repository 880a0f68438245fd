//! JSON as the grammars need it: an object is read leniently, and written in the order of its fields.

mod read;
mod write;

pub(crate) use read::{Fields, is_object};
pub(crate) use write::{List, Object, object};
