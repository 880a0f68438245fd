//! What each command does.

mod approvals;
mod backup;
mod budget;
mod chain;
mod dead;
mod diff;
mod doctor;
mod gate;
mod inspect;
mod operator;
mod plan;
mod policy;
mod precedents;
mod ps;
mod resting;
mod run;
mod schedule;
mod sessions;
mod signal;
mod state;
mod tickets;
mod top;
mod up;
mod waits;

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use ephor_base::Decision;
use ephor_record::Signal;

use crate::{
    cli::{Chain, Cli, Command},
    failure::{self, NoNode},
    home::Home,
};

/// The exit status where the command line makes no sense.
const WRONG_USAGE: u8 = 2;

/// Parses the command line and does what it says.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            failure::tell_usage(&error);
            return Ok(ExitCode::from(WRONG_USAGE));
        }
        Err(help) => help.exit(),
    };
    if let Command::Chain(Chain::Check(args)) = &cli.command {
        // To check a proof takes no home.
        return chain::check(args);
    }
    let home = Home::find(cli.home)?.with_passphrase_file(cli.passphrase_file);
    let home = home.with_credential(cli.credential, cli.as_passphrase_file);
    match cli.command {
        Command::Run(args) => runtime(1)?.block_on(run::run(&home, args)),
        Command::Undo(args) => runtime(1)?.block_on(run::undo(&home, args)),
        Command::Diff(args) => runtime(1)?.block_on(diff::diff(&home, &args)),
        Command::Up(args) => up::up(home, &args),
        Command::Top => runtime(1)?.block_on(top::top(&home)),
        Command::Inspect(args) => runtime(1)?.block_on(inspect::inspect(&home, &args)),
        Command::Suspend(args) => runtime(1)?.block_on(signal::signal(&home, Signal::Suspend, args)),
        Command::Resume(args) => runtime(1)?.block_on(signal::signal(&home, Signal::Resume, args)),
        Command::Stop(args) => runtime(1)?.block_on(signal::signal(&home, Signal::Stop, args)),
        Command::Kill(args) => runtime(1)?.block_on(signal::signal(&home, Signal::Kill, args)),
        Command::Approvals(args) => approvals::approvals(&home, &args),
        Command::Approve(args) => approvals::answer(&home, &args, Decision::Permit),
        Command::Refuse(args) => approvals::answer(&home, &args, Decision::Deny),
        Command::Precedents(args) => runtime(1)?.block_on(precedents::precedents(&home, args)),
        Command::Reinstate(args) => runtime(1)?.block_on(precedents::reinstate(&home, args)),
        Command::Budget(args) => runtime(1)?.block_on(budget::budget(&home, args)),
        Command::Dead(args) => dead::dead(&home, args),
        Command::Schedule(args) => runtime(1)?.block_on(schedule::schedule(&home, args)),
        Command::Ps(args) => runtime(1)?.block_on(ps::ps(&home, &args)),
        Command::Sessions(args) => sessions::sessions(&home, &args),
        Command::Plan(args) => plan::plan(&home, &args),
        Command::Tickets(args) => tickets::tickets(&home, &args),
        Command::State(args) => state::state(&home, &args),
        Command::Backup(args) => backup::backup(&home, &args),
        Command::Restore(args) => backup::restore(&home, &args),
        Command::Chain(args) => chain::chain(&home, args),
        Command::Gate(args) => gate::gate(args),
        Command::Policy(args) => policy::policy(&home, args),
        Command::Doctor(args) => runtime(1)?.block_on(doctor::doctor(&home, &args)),
        Command::Operator(args) => runtime(1)?.block_on(operator::operator(&home, args)),
    }
}

/// What is said where only a node that runs can answer.
fn no_node(home: &Home) -> NoNode {
    NoNode(home.path().to_owned())
}

/// A runtime for a command that is otherwise done on this thread.
pub(crate) fn runtime(threads: usize) -> anyhow::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.context("no runtime")
}
