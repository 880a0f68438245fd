//! `ephor up`: a node.

use std::process::ExitCode;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::{
    cli::Up,
    home::{Home, Locked},
    serving::{self, Report, Stay},
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    let served = runtime.block_on(serving::serve(home, stay));
    runtime.shutdown_timeout(std::time::Duration::from_secs(5));
    match (served, stay) {
        (Ok(()), _) => Ok(ExitCode::SUCCESS),
        (Err(error), Stay::UntilStopped) => Err(error),
        (Err(error), Stay::UntilIdle) => {
            let report = if error.is::<Locked>() { Report::Locked } else { Report::Failed(format!("{error:#}")) };
            // If nobody listens, nobody needs to know.
            let _heard = serving::report(&report);
            Ok(ExitCode::FAILURE)
        }
    }
}

/// A panic of a process is an exit reason, on the record; one line in the log is enough beside that.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}
