//! Whether an argument was really meant by someone who is trusted.
//!
//! A consequential argument is trusted only if it is wholly derivable from trusted spans by a closed list, which stands in
//! `derive`. All else is untrusted: what an attacker wrote, what is encoded, invented or paraphrased, however fair.
//! Spans are indexed once, when they enter ([`SpanTable`]); a decision only looks up.

mod access;
mod bare;
mod behind;
mod call;
mod carried;
mod clauses;
mod date;
mod denials;
mod derive;
mod extremes;
mod former;
mod forms;
mod index;
mod length;
mod measures;
mod moments;
mod names;
mod number;
mod numerals;
mod phrases;
mod picks;
mod records;
mod roles;
mod rows;
mod signs;
mod slots;
mod sums;
mod table;
mod text;
mod tongues;
mod typed;
mod when;

pub use carried::Carried;
pub use date::{Date, TurnTime};
pub use derive::Finding;
pub use number::Number;
pub use table::SpanTable;
