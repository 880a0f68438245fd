//! Ephor, an operating system for agents.
fn main() {}
