//! What each command does.

mod chain;
mod ps;
mod run;
mod up;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use crate::{
    cli::{Cli, Command},
    home::Home,
};

/// Parses the command line and does what it says.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    let home = Home::find(cli.home)?;
    match cli.command {
        Command::Run(args) => runtime(1)?.block_on(run::run(&home, args)),
        Command::Up(args) => up::up(home, &args),
        Command::Ps(args) => runtime(1)?.block_on(ps::ps(&home, &args)),
        Command::Chain(args) => chain::chain(&home, args),
    }
}

fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.context("no runtime")
}
