//! The agent loop: turns messages into replies.
