//! A connection to the node of a home; starts one if none runs.

use std::{
    collections::VecDeque,
    fs::OpenOptions,
    io::{BufRead, BufReader, Write},
    os::unix::{fs::OpenOptionsExt, net::UnixStream as StdStream, process::CommandExt},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use ed25519_dalek::Signer;
use ephor_base::{Decision, Digest, Seq};
use ephor_chain::{Decree, Judgment};
use ephor_kernel::Statement;
use futures_util::{SinkExt, StreamExt};
use tokio::net::UnixStream;
use tokio_util::codec::{Framed, LinesCodec};
use zeroize::Zeroizing;

use crate::{
    home::Home,
    operation::{Done, Operation, Roster, Wanted},
    operator::Operator,
    passphrase,
    protocol::{Answer, MAX_LINE, PROTOCOL, Request, to_hex},
    serving::Report,
};

/// How long a client tries to reach a node that runs or starts. The first start on a home compiles the tools.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two tries.
pub(crate) const PAUSE: Duration = Duration::from_millis(10);

/// An authenticated connection.
pub(crate) struct Client {
    lines: Framed<UnixStream, LinesCodec>,
    operator: Arc<Operator>,
    /// What was seen while an answer was waited for.
    seen: VecDeque<Answer>,
}

/// The node went away.
#[derive(Debug, thiserror::Error)]
#[error("the node ended before the turn did; what happened is on the record: `ephor chain log`")]
pub(crate) struct NodeGone;

impl Client {
    /// Connects to the node that runs on `home`; starts one if none does.
    pub(crate) async fn reach(home: &Home) -> anyhow::Result<Self> {
        let began = Instant::now();
        let mut told = false;
        let mut locked = None;
        let mut operator = known(home)?;
        loop {
            match Self::try_reach(home, &mut operator).await {
                Ok(client) => return Ok(client),
                Err(Unreached::NotThere) => {}
                Err(Unreached::Final(error)) => return Err(error),
            }
            if locked.is_none() {
                locked = Some(passphrase::unlock(home)?.words);
            }
            match start(home, locked.as_ref().and_then(Option::as_ref)).await? {
                Report::Ready => {}
                Report::Locked => tokio::time::sleep(PAUSE).await,
                Report::Failed(why) => bail!("{why}"),
            }
            if began.elapsed() > Duration::from_secs(1) && !told {
                told = true;
                eprintln!("ephor: waiting for the node on `{}` …", home.path().display());
            }
            if began.elapsed() > PATIENCE {
                bail!("the node on `{}` does not answer; see `{}`", home.path().display(), home.log().display());
            }
        }
    }

    /// Connects to the node that runs on `home`, if one does.
    pub(crate) async fn reach_running(home: &Home) -> anyhow::Result<Option<Self>> {
        if !home.socket().exists() {
            return Ok(None);
        }
        match Self::try_reach(home, &mut known(home)?).await {
            Ok(client) => Ok(Some(client)),
            Err(Unreached::NotThere) => Ok(None),
            Err(Unreached::Final(error)) => Err(error),
        }
    }

    /// The credential is had once, since a person may have to type its passphrase; on a new home the node makes it.
    async fn try_reach(home: &Home, operator: &mut Option<Arc<Operator>>) -> Result<Self, Unreached> {
        let socket = crate::serving::short_path(&home.socket(), |path| StdStream::connect(path));
        let socket = socket.map_err(|_| Unreached::NotThere)?;
        socket.set_nonblocking(true).map_err(|_| Unreached::NotThere)?;
        let stream = UnixStream::from_std(socket).map_err(|_| Unreached::NotThere)?;
        let mut lines = Framed::new(stream, LinesCodec::new_with_max_length(MAX_LINE));
        // A node that is stopping may close the connection before it says anything.
        let Some(Ok(first)) = lines.next().await else { return Err(Unreached::NotThere) };
        let Ok(Answer::Challenge { protocol, challenge: Digest(challenge) }) = serde_json::from_str(&first) else {
            return Err(Unreached::Final(anyhow::anyhow!("what answers on the socket of the home is not a node")));
        };
        if protocol != PROTOCOL {
            let why = "the node that runs is another version of Ephor; stop it first";
            return Err(Unreached::Final(anyhow::anyhow!(why)));
        }
        let operator = match operator {
            Some(operator) => operator.clone(),
            None => operator.insert(Arc::new(passphrase::credential(home).map_err(Unreached::Final)?)).clone(),
        };
        let signature = to_hex(&operator.answer(&challenge));
        let mut client = Self { lines, operator, seen: VecDeque::new() };
        let request = Request::Authenticate { operator: client.operator.id(), signature };
        client.say(&request).await.map_err(|_| Unreached::NotThere)?;
        match client.hear().await {
            Ok(Answer::Welcome { .. }) => Ok(client),
            Ok(Answer::Refused { why }) => Err(Unreached::Final(anyhow::anyhow!(why))),
            Ok(_) | Err(_) => Err(Unreached::NotThere),
        }
    }

    /// Says something.
    pub(crate) async fn say(&mut self, request: &Request) -> anyhow::Result<()> {
        self.lines.send(serde_json::to_string(request)?).await.map_err(|_| NodeGone.into())
    }

    /// Hears the next thing. Safe to drop while it waits.
    pub(crate) async fn hear(&mut self) -> anyhow::Result<Answer> {
        match self.seen.pop_front() {
            Some(seen) => Ok(seen),
            None => self.listen().await,
        }
    }

    async fn listen(&mut self) -> anyhow::Result<Answer> {
        match self.lines.next().await {
            Some(Ok(line)) => serde_json::from_str(&line).context("the node says something this version does not know"),
            Some(Err(_)) | None => Err(NodeGone.into()),
        }
    }

    /// Says something and hears what it is answered. What is seen in a session meanwhile is heard afterwards.
    pub(crate) async fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        self.say(request).await?;
        loop {
            match self.listen().await? {
                Answer::Refused { why } => bail!("{why}"),
                seen @ Answer::Seen { .. } => self.seen.push_back(seen),
                answer => return Ok(answer),
            }
        }
    }

    /// Has the node do or show something beside conversations.
    pub(crate) async fn operate(&mut self, operation: Operation) -> anyhow::Result<Done> {
        match self.ask(&Request::Operate { operation }).await? {
            Answer::Operated { done } => Ok(done),
            _ => bail!("the node answered something else"),
        }
    }

    /// Who is in office.
    pub(crate) async fn roster(&mut self) -> anyhow::Result<Roster> {
        match self.operate(Operation::Operators {}).await? {
            Done::Operators { roster } => Ok(roster),
            _ => bail!("the node answered something else"),
        }
    }

    /// This operator's signature, in hexadecimal digits.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        to_hex(&self.operator.key().sign(message).to_bytes())
    }

    /// Has the node record a decree with this operator's signature.
    pub(crate) async fn decree(&mut self, roster: &Roster, wanted: Wanted) -> anyhow::Result<Done> {
        let message = Decree::from(wanted.clone()).signed_bytes(&roster.origin, roster.latest);
        let signature = self.sign(&message);
        self.operate(Operation::Decree { decree: wanted, signature }).await
    }

    /// A ruling with this operator's signature.
    pub(crate) fn ruling(&self, statement: Statement) -> Request {
        let signed = statement.sign(self.operator.key());
        let Statement { session, on, decision, arguments, policy, call, registration, always, note } = signed.statement;
        let (permit, signature) = (decision == Decision::Permit, to_hex(&signed.signature));
        let always = always.map(Box::new);
        Request::Rule { session, on, permit, arguments, policy, call, registration, always, note, signature }
    }

    /// Has the node record what this operator ends, with the signature for the log of this origin.
    pub(crate) async fn judge(&mut self, origin: &str, judgment: Judgment, note: String) -> anyhow::Result<Seq> {
        let signature = self.sign(&judgment.signed_bytes(origin, &note));
        match self.operate(Operation::Judge { judgment, note, signature }).await? {
            Done::Recorded { seq } => Ok(seq),
            _ => bail!("the node answered something else"),
        }
    }
}

/// The credential, if there is one yet.
fn known(home: &Home) -> anyhow::Result<Option<Arc<Operator>>> {
    let there = home.credential().exists();
    if there { passphrase::credential(home).map(|operator| Some(Arc::new(operator))) } else { Ok(None) }
}

enum Unreached {
    /// No node, or one that is going.
    NotThere,
    /// There is one, and it will not do.
    Final(anyhow::Error),
}

/// Starts a node in a process of its own, and hears how that went.
async fn start(home: &Home, words: Option<&Zeroizing<Vec<u8>>>) -> anyhow::Result<Report> {
    home.create()?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(home.log());
    let log = log.with_context(|| {
        format!(
            "`{}` cannot be written; set EPHOR_HOME to a folder you may write, or pass --home",
            home.log().display()
        )
    })?;
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let child = Command::new(program)
        .arg("--home")
        .arg(home.path())
        .args(["up", "--until-idle"])
        .args(words.map(|_| ["--passphrase-file", "/dev/stdin"]).into_iter().flatten())
        .env_remove("EPHOR_AS")
        // The workspace may be removed while the node runs.
        .current_dir("/")
        // What is typed at the client's terminal, as Ctrl-C, is for the client; it says what it means to the node.
        .process_group(0)
        .stdin(if words.is_some() { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn();
    let mut child = child.context("a node cannot be started")?;
    if let (Some(words), Some(mut input)) = (words, child.stdin.take()) {
        // A node that died is heard of below.
        let _died = input.write_all(words);
    }
    let Some(out) = child.stdout.take() else { bail!("the node that was started cannot be heard") };
    let line = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).map(|_| line)
    });
    let line = tokio::time::timeout(PATIENCE, line).await.context("the node that was started says nothing")???;
    let report = serde_json::from_str(&line);
    report.with_context(|| format!("the node that was started died; see `{}`", home.log().display()))
}
