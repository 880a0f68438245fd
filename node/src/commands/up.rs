//! `ephor up`: a node.

use std::{
    ffi::OsString,
    fs::File,
    io::Write,
    os::unix::{ffi::OsStrExt, process::CommandExt},
    process::{Command, ExitCode},
};

use anyhow::Context;
use ephor_kernel::{LOST_THREADS, install_panic_hook};
use rustix::process::{getpid, getsid, setsid};
use tokio::runtime::Runtime;
use tracing_subscriber::EnvFilter;
use zeroize::Zeroizing;

use crate::{
    cli::Up,
    home::{Home, Locked},
    host,
    node_log::NodeLog,
    serving::{self, Ended, Report, Stay},
};

/// The option that names a file with the passphrase.
const PASSPHRASE_FILE: &str = "--passphrase-file";

pub(crate) fn up(home: Home, args: &Up) -> anyhow::Result<ExitCode> {
    let stay = if args.until_idle { Stay::UntilIdle } else { Stay::UntilStopped };
    let ended = begin(&home, stay).and_then(|runtime| {
        let served = runtime.block_on(serving::serve(home, stay));
        if let Ok(Ended::ThreadsLost(words)) = served {
            return begin_anew(words);
        }
        runtime.shutdown_timeout(std::time::Duration::from_secs(5));
        served.map(|_| ())
    });
    match (ended, stay) {
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

/// Everything before the node itself: the home, the log, and the threads.
fn begin(home: &Home, stay: Stay) -> anyhow::Result<Runtime> {
    home.create()?;
    let log = match stay {
        Stay::UntilStopped => NodeLog::Terminal,
        Stay::UntilIdle => leave(home)?,
    };
    let filter = EnvFilter::try_from_env("EPHOR_LOG").unwrap_or_else(|_| EnvFilter::new("warn"));
    tracing_subscriber::fmt().with_writer(move || log.clone()).with_env_filter(filter).with_ansi(false).init();
    quiet_panics();
    install_panic_hook();
    // So many that some are left when the watchdog says that too many are lost.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).saturating_add(LOST_THREADS);
    super::runtime(threads)
}

/// Leaves the client that started this node: its session, and with it its terminal and the signals that are typed there.
fn leave(home: &Home) -> anyhow::Result<NodeLog> {
    // A node that begins anew has left already.
    if getsid(None).ok() != Some(getpid()) {
        setsid().context("the node cannot have a session of its own")?;
    }
    let log = NodeLog::in_file(&home.log());
    log.with_context(|| format!("`{}` cannot be written; remove it if it is no regular file", home.log().display()))
}

/// Becomes a new node in the place of this one. The threads that do not come back end with it.
fn begin_anew(words: Option<Zeroizing<Vec<u8>>>) -> anyhow::Result<()> {
    tracing::error!("processes that do not yield hold too many threads: the node begins anew");
    let mut same = Command::new(host::program()?);
    same.args(again(std::env::args_os().skip(1), words.is_some()));
    if let Some(words) = words {
        let (read, write) = rustix::pipe::pipe().context("the passphrase cannot be handed on")?;
        // It is shorter than what a pipe holds.
        File::from(write).write_all(&words).context("the passphrase cannot be handed on")?;
        same.stdin(read);
    }
    Err(same.exec()).context("the node could not begin anew")
}

/// The arguments of a node that begins anew. A passphrase comes from the node before: what it was read from may be spent, and whoever
/// typed it may be gone.
fn again(args: impl Iterator<Item = OsString>, has_words: bool) -> Vec<OsString> {
    let (mut kept, mut is_value) = (Vec::new(), false);
    for arg in args {
        let (names, says) = (arg == PASSPHRASE_FILE, arg.as_bytes().starts_with(b"--passphrase-file="));
        if has_words && (names || says || is_value) {
            is_value = names;
            continue;
        }
        kept.push(arg);
    }
    if has_words {
        kept.extend([PASSPHRASE_FILE, "/dev/stdin"].map(OsString::from));
    }
    kept
}

/// A panic is one line in the log. That of a process is an exit reason, on the record.
fn quiet_panics() {
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_begins_anew_reads_its_passphrase_where_it_was_not_read_before() {
        let args = |words: &[&str]| words.iter().map(OsString::from).collect::<Vec<_>>();
        let typed =
            args(&["--home", "/h", "--passphrase-file", "/dev/stdin", "up", "--passphrase-file=/x", "--until-idle"]);
        let with = args(&["--home", "/h", "up", "--until-idle", "--passphrase-file", "/dev/stdin"]);
        assert_eq!(again(typed.clone().into_iter(), true), with);
        assert_eq!(again(typed.clone().into_iter(), false), typed);
        assert_eq!(again(args(&["up"]).into_iter(), true), args(&["up", "--passphrase-file", "/dev/stdin"]));
    }
}
