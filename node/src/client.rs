//! A connection to the node of a home; starts one if none runs.

mod starting;

use std::{collections::VecDeque, os::unix::net::UnixStream as StdStream, path::PathBuf, sync::Arc, time::Duration};

use anyhow::bail;
use ed25519_dalek::Signer;
use ephor_base::{Decision, Seq};
use ephor_kernel::Statement;
use ephor_record::{Decree, Judgment};
use tokio::net::UnixStream;

use self::starting::{Attempt, Starter};
use crate::{
    channel::{Channel, Lost, Unwelcome},
    failure::Refused,
    home::{Home, Wait},
    operation::{Done, Operation, Roster, Wanted},
    operator::Operator,
    passphrase,
    protocol::{Answer, Request, to_hex},
    serving::only_looks,
};

/// How long a node that another client started, or that ends, may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often a client looks where the keys do not fit, and when it looks again.
const TRIES: u32 = 5;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// How long whatever answers on the socket may take to say who it is.
const INTRODUCTION: Duration = Duration::from_secs(10);

/// An authenticated connection.
pub(crate) struct Client {
    channel: Channel,
    home: Home,
    /// Whether a node is started where none runs.
    starts: bool,
    /// Whether a session belongs to this connection.
    has_session: bool,
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
        let mut operator = known(home)?;
        let mut starter = Starter::new(home);
        let mut wait = Wait::new(home, PATIENCE);
        loop {
            match Self::reach_surely(home, &mut operator).await {
                Ok(client) => return Ok(Self { starts: true, ..client }),
                Err(Unreached::NotThere) => {}
                Err(Unreached::Doubtful(error) | Unreached::Final(error)) => return Err(error),
            }
            match starter.start().await? {
                // It may take long to start, and takes its clients at once.
                Attempt::Started => wait = Wait::new(home, PATIENCE),
                Attempt::InUse if wait.goes_on() => {}
                Attempt::InUse => bail!(InUse { home: home.path().to_owned(), log: home.log() }),
            }
            tokio::time::sleep(wait.pause()).await;
        }
    }

    /// Connects to the node that runs on `home`, if one does.
    pub(crate) async fn reach_running(home: &Home) -> anyhow::Result<Option<Self>> {
        if !home.socket().exists() {
            return Ok(None);
        }
        match Self::reach_surely(home, &mut known(home)?).await {
            Ok(client) => Ok(Some(client)),
            Err(Unreached::NotThere) => Ok(None),
            Err(Unreached::Doubtful(error) | Unreached::Final(error)) => Err(error),
        }
    }

    /// Tries again for a moment where the keys do not fit: those of the node may have changed between two looks.
    async fn reach_surely(home: &Home, operator: &mut Option<Arc<Operator>>) -> Result<Self, Unreached> {
        for _ in 1..TRIES {
            match Self::try_reach(home, operator).await {
                Err(Unreached::Doubtful(_)) => tokio::time::sleep(LOOK_AGAIN).await,
                reached => return reached,
            }
        }
        Self::try_reach(home, operator).await
    }

    /// The credential is had once, since a person may have to type its passphrase; on a new home the node makes it.
    async fn try_reach(home: &Home, operator: &mut Option<Arc<Operator>>) -> Result<Self, Unreached> {
        let socket = crate::serving::short_path(&home.socket(), |path| StdStream::connect(path));
        let socket = socket.map_err(|_| Unreached::NotThere)?;
        socket.set_nonblocking(true).map_err(|_| Unreached::NotThere)?;
        let stream = UnixStream::from_std(socket).map_err(|_| Unreached::NotThere)?;
        let wanted = &mut *operator;
        let known = || match wanted {
            Some(operator) => Ok(operator.clone()),
            None => passphrase::credential(home).map(|read| wanted.insert(Arc::new(read)).clone()),
        };
        let opened = tokio::time::timeout(INTRODUCTION, Channel::open(stream, home, known)).await;
        match opened.unwrap_or(Err(Unwelcome::Gone)) {
            Ok(channel) => {
                let (home, starts, has_session, seen) = (home.clone(), false, false, VecDeque::new());
                Ok(Self { channel, home, starts, has_session, seen })
            }
            Err(Unwelcome::Gone) => Err(Unreached::NotThere),
            Err(why @ Unwelcome::Impostor { .. }) => Err(Unreached::Doubtful(why.into())),
            Err(Unwelcome::Credential(why)) => Err(Unreached::Final(why)),
            Err(why) => Err(Unreached::Final(why.into())),
        }
    }

    /// The home whose node it is.
    pub(crate) const fn home(&self) -> &Home {
        &self.home
    }

    /// Says something.
    pub(crate) async fn say(&mut self, request: &Request) -> anyhow::Result<()> {
        self.channel.say(request).await.map_err(lost)
    }

    /// Hears the next thing. Safe to drop while it waits.
    pub(crate) async fn hear(&mut self) -> anyhow::Result<Answer> {
        match self.seen.pop_front() {
            Some(seen) => Ok(seen),
            None => self.listen().await,
        }
    }

    async fn listen(&mut self) -> anyhow::Result<Answer> {
        self.channel.hear().await.map_err(lost)
    }

    /// Says something and hears what it is answered. What is seen in a session meanwhile is heard afterwards.
    pub(crate) async fn ask(&mut self, request: &Request) -> anyhow::Result<Answer> {
        let mut tries = 1..TRIES;
        self.say(request).await?;
        loop {
            let answer = match self.listen().await {
                // A node that is at its end does not wait for a look that takes long.
                Err(error) if error.is::<NodeGone>() && only_looks(request) => {
                    if self.has_session || tries.next().is_none() || !self.goes_on().await? {
                        return Err(error);
                    }
                    self.say(request).await?;
                    continue;
                }
                answer => answer?,
            };
            match answer {
                Answer::Refused { why } => bail!(Refused(why)),
                // It was not begun, so the next node is asked the same.
                Answer::Stopping { why } => {
                    if self.has_session || tries.next().is_none() || !self.goes_on().await? {
                        bail!(Refused(why));
                    }
                    self.say(request).await?;
                }
                seen @ Answer::Seen { .. } => self.seen.push_back(seen),
                answer => {
                    self.has_session |= matches!(answer, Answer::Opened { .. } | Answer::Attached { .. });
                    return Ok(answer);
                }
            }
        }
    }

    /// Goes on with the next node; false where there is none, and none is to be started.
    async fn goes_on(&mut self) -> anyhow::Result<bool> {
        let home = self.home.clone();
        let next =
            if self.starts { Some(Box::pin(Self::reach(&home)).await?) } else { Self::reach_running(&home).await? };
        let Some(next) = next else { return Ok(false) };
        *self = next;
        Ok(true)
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
        to_hex(&self.channel.operator().key().sign(message).to_bytes())
    }

    /// Has the node record a decree with this operator's signature.
    pub(crate) async fn decree(&mut self, roster: &Roster, wanted: Wanted) -> anyhow::Result<Done> {
        let message = Decree::from(wanted.clone()).signed_bytes(&roster.origin, roster.latest);
        let signature = self.sign(&message);
        self.operate(Operation::Decree { decree: wanted, signature }).await
    }

    /// A ruling with this operator's signature.
    pub(crate) fn ruling(&self, statement: Statement) -> Request {
        let signed = statement.sign(self.channel.operator().key());
        let Statement { session, on, decision, arguments, policy, call, registration, always, note, shown } =
            signed.statement;
        let (permit, signature) = (decision == Decision::Permit, to_hex(&signed.signature));
        let always = always.map(Box::new);
        Request::Rule { session, on, permit, arguments, policy, call, registration, always, note, shown, signature }
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

/// A home stays locked, and no node answers on it.
#[derive(Debug, thiserror::Error)]
#[error(
    "another process uses the home `{}` and takes no clients: wait for it, or end it; `{}` may say what it does",
    .home.display(), .log.display()
)]
pub(crate) struct InUse {
    home: PathBuf,
    log: PathBuf,
}

fn lost(lost: Lost) -> anyhow::Error {
    if lost == Lost::Gone { NodeGone.into() } else { lost.into() }
}

/// The credential, if there is one yet.
fn known(home: &Home) -> anyhow::Result<Option<Arc<Operator>>> {
    let there = home.credential().exists();
    if there { passphrase::credential(home).map(|operator| Some(Arc::new(operator))) } else { Ok(None) }
}

enum Unreached {
    /// No node, or one that is going.
    NotThere,
    /// Something that does not show the keys of the home: a stranger, or the node while it changes its keys.
    Doubtful(anyhow::Error),
    /// There is one, and it will not do.
    Final(anyhow::Error),
}
