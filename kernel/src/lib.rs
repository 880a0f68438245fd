//! Owns the process table, supervisors, mailboxes, budgets and the one door.
