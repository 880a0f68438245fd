//! Ephor, an operating system for agents: the binary.
//!
//! `cli` says what can be typed, `commands` does it as a client, `serving` is the node itself: it reads the
//! configuration, wires the rooms of the house together and answers clients on a socket. Only this crate reads the
//! environment and the configuration, and only it has real clocks and randomness.

mod bytes;
mod changes;
mod channel;
mod cli;
mod client;
mod commands;
mod config;
mod constitution;
mod failure;
mod files;
mod home;
mod host;
mod node_log;
mod operation;
mod operator;
mod passphrase;
mod progress;
mod projections;
mod protocol;
mod serving;
mod terminal;
mod timetable;
mod undo;
mod written;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A command of an agent begins as this very program.
    if ephor_confine::init::is_called() {
        return ephor_confine::init::main();
    }
    host::keep_little_memory();
    match commands::run() {
        Ok(code) => code,
        // The person knows.
        Err(error) if terminal::was_interrupted(&error) => ExitCode::from(terminal::INTERRUPTED),
        Err(error) => {
            failure::tell(&error);
            ExitCode::FAILURE
        }
    }
}
