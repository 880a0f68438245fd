//! `ephor chain erase`, `rotate` and `passphrase`: what an operator does to the record and its keys.

use std::{future::Future, path::Path, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use ephor_base::{OperatorId, Seq, SessionId};
use ephor_chain::{Protection, disk::Disk, protection::relock};
use serde_json::json;

use super::used;
use crate::{
    client::Client,
    home::{Home, Lock, Locked, PATIENCE, Wait},
    host::SystemRandom,
    passphrase,
    protocol::{Answer, Request},
    serving::Upkeep,
    terminal,
};

/// The process that writes the record of a home: its node, or this one.
pub(super) enum Keeper {
    Node(Box<Client>),
    Here { upkeep: Upkeep, operator: OperatorId, _lock: Lock },
}

impl Keeper {
    pub(super) async fn reach(home: &Home) -> anyhow::Result<Self> {
        let mut wait = Wait::new(home, PATIENCE);
        let lock = loop {
            if let Some(client) = Client::reach_running(home).await? {
                return Ok(Self::Node(Box::new(client)));
            }
            match home.try_lock() {
                Err(error) if error.is::<Locked>() && wait.goes_on() => tokio::time::sleep(wait.pause()).await,
                lock => break lock?,
            }
        };
        let operator = passphrase::credential(home)?.id();
        let upkeep = Upkeep::alone(home, passphrase::unlock(home)?.protection)?;
        upkeep.check_owner(operator)?;
        Ok(Self::Here { upkeep, operator, _lock: lock })
    }

    async fn derived(&mut self, session: SessionId) -> anyhow::Result<Vec<SessionId>> {
        match self {
            Self::Here { upkeep, .. } => upkeep.derived(session).await,
            Self::Node(client) => match client.ask(&Request::Derived { session }).await? {
                Answer::Derived { sessions } => Ok(sessions),
                _ => bail!(OTHER),
            },
        }
    }

    async fn erase(&mut self, session: SessionId, reason: &str) -> anyhow::Result<Seq> {
        let reason = reason.to_owned();
        match self {
            Self::Here { upkeep, operator, .. } => upkeep.erase(*operator, session, reason).await,
            Self::Node(client) => match client.ask(&Request::Erase { session, reason }).await? {
                Answer::Erased { seq } => Ok(seq),
                _ => bail!(OTHER),
            },
        }
    }

    async fn rotate(&mut self) -> anyhow::Result<(Seq, String)> {
        match self {
            Self::Here { upkeep, operator, .. } => {
                upkeep.rotate(*operator).await.map(|(seq, keys)| (seq, keys.to_string()))
            }
            Self::Node(client) => match client.ask(&Request::Rotate {}).await? {
                Answer::Rotated { seq, keys } => Ok((seq, keys)),
                _ => bail!(OTHER),
            },
        }
    }

    pub(super) async fn leave(self) -> anyhow::Result<()> {
        match self {
            Self::Node(_) => Ok(()),
            Self::Here { upkeep, .. } => upkeep.close().await,
        }
    }
}

pub(super) const OTHER: &str = "the node answered something else";

/// What to erase.
pub(super) struct Erasure {
    pub(super) session: SessionId,
    pub(super) derived: bool,
    pub(super) reason: String,
    pub(super) yes: bool,
    pub(super) json: bool,
}

pub(super) async fn erase(home: &Home, erasure: Erasure) -> anyhow::Result<ExitCode> {
    let mut keeper = Keeper::reach(used(home)?).await?;
    let done = erase_by(&mut keeper, &erasure).await;
    keeper.leave().await?;
    terminal::write(&done?).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

async fn erase_by(keeper: &mut Keeper, erasure: &Erasure) -> anyhow::Result<String> {
    let Erasure { session, derived: all, ref reason, yes, json } = *erasure;
    let derived = patiently("reading the record", keeper.derived(session)).await?;
    let also = if all { derived.clone() } else { Vec::new() };
    let why = format!(
        "Nobody will be able to read again what was said in session {session}{}. This cannot be undone.",
        match also.len() {
            0 => String::new(),
            1 => " and in 1 that was delegated from it".to_owned(),
            more => format!(" and in {more} that were delegated from it"),
        }
    );
    if !yes && !terminal::confirm(&why)? {
        bail!("nothing was erased; answer `yes` at a terminal, or pass --yes");
    }
    let mut erased = Vec::new();
    for session in [session].into_iter().chain(also) {
        match patiently("erasing", keeper.erase(session, reason)).await {
            Ok(seq) => erased.push((session, seq)),
            // What was delegated may hold nothing, or have been erased before.
            Err(error) if !erased.is_empty() => {
                terminal::tell(&format!("ephor: session {session} was not erased: {error:#}\n"));
            }
            Err(error) => return Err(error),
        }
    }
    let left: Vec<_> = derived.into_iter().filter(|left| erased.iter().all(|(erased, _)| erased != left)).collect();
    if json {
        let erased: Vec<_> = erased.iter().map(|(session, seq)| json!({ "session": session, "seq": seq })).collect();
        return Ok(format!("{}\n", json!({ "erased": erased, "derived": left })));
    }
    let mut text = String::new();
    for (session, seq) in erased {
        text.push_str(&format!("Session {session} is erased (entry {seq}).\n"));
    }
    for session in left {
        text.push_str(&format!("Session {session} came out of it, and is as it was; --derived erases such as well.\n"));
    }
    Ok(text)
}

pub(super) async fn rotate(home: &Home, yes: bool, json: bool) -> anyhow::Result<ExitCode> {
    let mut keeper = Keeper::reach(used(home)?).await?;
    let why = "The log of this home will be signed with new keys. Whoever verifies it with the old ones still can; give \
               the new ones to whoever should trust those alone.";
    let done = if yes || terminal::confirm(why)? {
        patiently("changing the keys", keeper.rotate()).await
    } else {
        Err(anyhow::anyhow!("nothing was changed; answer `yes` at a terminal, or pass --yes"))
    };
    keeper.leave().await?;
    let (seq, keys) = done?;
    let text = if json {
        format!("{}\n", json!({ "seq": seq, "keys": keys.lines().collect::<Vec<_>>() }))
    } else {
        format!("New keys sign the log from entry {seq} on. Their public halves:\n{keys}")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn passphrase(home: &Home, new_file: Option<&Path>, remove: bool) -> anyhow::Result<ExitCode> {
    let home = used(home)?;
    // A node that runs would go on locking new keys with the old passphrase.
    let _lock = home.lock()?;
    let from = passphrase::unlock(home)?.protection;
    let to = if remove { Protection::none() } else { passphrase::new(new_file)? };
    relock(&passphrase::key_files(home), &Disk, &from, &to, &SystemRandom)?;
    let text = if remove {
        "The keys are no longer locked: whoever can read the files has them.\n"
    } else {
        "The keys are locked. Without the passphrase nobody can start the node or read what was said; keep it safe.\n"
    };
    terminal::write(text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// Says what is being done, once it has taken a second.
pub(super) async fn patiently<T>(what: &str, done: impl Future<Output = T>) -> T {
    tokio::pin!(done);
    tokio::select! {
        done = &mut done => done,
        () = tokio::time::sleep(Duration::from_secs(1)) => {
            terminal::tell(&format!("ephor: {what} …\n"));
            done.await
        }
    }
}
