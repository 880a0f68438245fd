//! `ephor up`: a node.

use std::{os::unix::process::CommandExt, process::ExitCode};

use anyhow::Context;
use ephor_kernel::{install_panic_hook, runtime::LOST_THREADS};
use tracing_subscriber::EnvFilter;

use crate::{
    cli::Up,
    home::{Home, Locked},
    serving::{self, Ended, Report, Stay},
};

pub(crate) fn up(home: Home, args: &Up) -> anyhow::Result<ExitCode> {
    let stay = if args.until_idle { Stay::UntilIdle } else { Stay::UntilStopped };
    if stay == Stay::UntilIdle {
        // Ctrl-C at the terminal is for the client; the node hears of it from there.
        let _already = rustix::process::setsid();
    }
    home.create()?;
    let filter = EnvFilter::try_from_env("EPHOR_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter).with_ansi(false).init();
    quiet_panics();
    install_panic_hook();
    // So many that some are left when the watchdog says that too many are lost.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).saturating_add(LOST_THREADS);
    let runtime = super::runtime(threads)?;
    let served = runtime.block_on(serving::serve(home, stay));
    if matches!(served, Ok(Ended::ThreadsLost)) {
        return begin_anew();
    }
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    match (served, stay) {
        (Ok(_), _) => Ok(ExitCode::SUCCESS),
        (Err(error), Stay::UntilStopped) => Err(error),
        (Err(error), Stay::UntilIdle) => {
            let report = if error.is::<Locked>() { Report::Locked } else { Report::Failed(format!("{error:#}")) };
            // If nobody listens, nobody needs to know.
            let _heard = serving::report(&report);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Becomes a new node in the place of this one. The threads that do not come back end with it.
fn begin_anew() -> anyhow::Result<ExitCode> {
    tracing::error!("processes that do not yield hold too many threads: the node begins anew");
    let mut same = std::process::Command::new(std::env::current_exe().context("the program is not there any more")?);
    same.args(std::env::args_os().skip(1));
    Err(same.exec()).context("the node could not begin anew")
}

/// A panic is one line in the log. That of a process is an exit reason, on the record.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}
