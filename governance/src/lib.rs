//! Gives verdicts: permit, defer or deny, with reasons.
