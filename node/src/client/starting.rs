//! Starts a node for a client: one client of a home at a time, and only while nobody else uses the home.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, bail};
use zeroize::Zeroizing;

use crate::{
    home::{Home, Locked},
    host, passphrase,
    serving::Report,
};

/// How long a node may take until it says how its start went. The first start on a home compiles the tools.
const PATIENCE: Duration = Duration::from_secs(60);

/// What it takes to start nodes on one home.
pub(super) struct Starter<'a> {
    home: &'a Home,
    /// The passphrase of its keys, if they have one; asked for once.
    words: Option<Option<Zeroizing<Vec<u8>>>>,
}

/// How an attempt went.
pub(super) enum Attempt {
    /// A node takes clients.
    Started,
    /// Another process uses the home, or starts a node on it.
    InUse,
}

impl<'a> Starter<'a> {
    pub(super) fn new(home: &'a Home) -> Self {
        Self { home, words: None }
    }

    /// Starts a node, unless the home is in use.
    pub(super) async fn start(&mut self) -> anyhow::Result<Attempt> {
        self.home.create()?;
        if self.words.is_none() {
            self.words = Some(passphrase::unlock(self.home)?.words);
        }
        let _starting = match self.home.try_start() {
            Err(error) if error.is::<Locked>() => return Ok(Attempt::InUse),
            starting => starting?,
        };
        match self.home.try_look() {
            Err(error) if error.is::<Locked>() => return Ok(Attempt::InUse),
            free => drop(free?),
        }
        let child = self.spawn()?;
        let said = tokio::task::spawn_blocking(move || said(child));
        let said = tokio::time::timeout(PATIENCE, said).await.context("the node that was started says nothing")??;
        let report = serde_json::from_str(&said);
        let log = self.home.log();
        match report.with_context(|| format!("the node that was started died; see `{}`", log.display()))? {
            Report::Ready => Ok(Attempt::Started),
            Report::Locked => Ok(Attempt::InUse),
            Report::Failed(why) => bail!("{why}"),
        }
    }

    fn spawn(&self) -> anyhow::Result<Child> {
        let words = self.words.as_ref().and_then(Option::as_ref);
        let program = host::program()?;
        keep_descriptors()?;
        let child = Command::new(program)
            .arg("--home")
            .arg(self.home.path())
            .args(["up", "--until-idle"])
            .args(words.map(|_| ["--passphrase-file", "/dev/stdin"]).into_iter().flatten())
            .env_remove("EPHOR_AS")
            // The workspace may be removed while the node runs.
            .current_dir("/")
            .stdin(if words.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            // It opens its log itself.
            .stderr(Stdio::null())
            .spawn();
        let mut child = child.context("a node cannot be started")?;
        if let (Some(words), Some(mut input)) = (words, child.stdin.take()) {
            // A node that died is heard of when it says nothing.
            let _died = input.write_all(words);
        }
        Ok(child)
    }
}

/// The line that a node says when it takes clients, or ends. One that ends is waited for, so that it leaves no zombie.
fn said(mut child: Child) -> String {
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        // What was said so far has to do.
        let _cut = BufReader::new(out).read_line(&mut line);
    }
    if !matches!(serde_json::from_str(&line), Ok(Report::Ready)) {
        let _gone = child.wait();
    }
    line
}

/// Has a program that is started from here on get none of this process's descriptors but its standard three: those that the
/// client's own starter left open would stay open as long as the node.
fn keep_descriptors() -> anyhow::Result<()> {
    const FIRST: u32 = 3;
    let flags = i32::try_from(libc::CLOSE_RANGE_CLOEXEC).unwrap_or(0);
    // SAFETY: no descriptor is closed here; they are marked to be closed in programs that this process starts.
    match unsafe { libc::close_range(FIRST, u32::MAX, flags) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()).context("the node would inherit open files (Linux 5.11 is needed)"),
    }
}
