//! What a home says while no node runs on it, read from the record: to look begins nothing and writes nothing.

use std::sync::Arc;

use anyhow::{Context, bail};
use ephor_base::{Digest, files::Files};
use ephor_chain::{Config, disk::Disk, state::Waiting};

use super::sessions::short;
use crate::{
    client::Client,
    files,
    home::{Home, Lock, Locked, PATIENCE, Wait},
    host,
    operation::OperatorView,
    projections::Answering,
    terminal::plain,
};

/// What waits for a person on a home on which no node runs; nothing if one does.
pub(crate) fn waiting(home: &Home) -> anyhow::Result<Option<Vec<Waiting>>> {
    if !home.exists() {
        return Ok(Some(Vec::new()));
    }
    let now = host::now();
    let waiting = Answering::find(home)?.waiting()?;
    Ok(waiting.map(|all| all.into_iter().filter(|one| one.expires > now).collect()))
}

/// For a person.
pub(crate) fn told(waiting: &[Waiting]) -> String {
    if waiting.is_empty() {
        return "Nothing waits for an answer.\n".to_owned();
    }
    let one = |one: &Waiting| {
        let Waiting { ticket, session, tool, expires, .. } = one;
        format!("ticket {ticket}, until {}: {}\n  asked in   session {session}\n", short(*expires), plain(tool))
    };
    let all: String = waiting.iter().map(one).collect();
    all + "no node runs: `ephor up` starts one, which goes on with what waits, and shows what is asked\n"
}

/// Those in office on a home on which no node runs; nothing if one does.
pub(crate) async fn operators(home: &Home) -> anyhow::Result<Option<Vec<OperatorView>>> {
    if !home.exists() {
        bail!(
            "nobody is enrolled yet on `{}`; `ephor run` begins a chain, whose first owner you are",
            home.path().display()
        );
    }
    let Some(_lock) = lock(home).await? else { return Ok(None) };
    let path = home.public_keys();
    let keys = files::public_keys(&path)?;
    let files: Arc<dyn Files> = Arc::new(Disk);
    let standing = ephor_chain::what_stands(&Config::in_home(home.path()), &files, &keys);
    let standing = standing.context("the chain cannot be read; see `ephor chain verify`")?;
    let view = |(operator, one): (_, &ephor_record::Credential)| {
        let (name, key, since) = (one.name.clone(), Digest(one.key), one.since);
        Some(OperatorView { name, role: one.role?, operator, key, since })
    };
    let mut operators: Vec<_> = standing.operators().iter().filter_map(view).collect();
    operators.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(operators))
}

/// The lock of a home on which no node runs. One that is leaving, or begins, is waited for.
async fn lock(home: &Home) -> anyhow::Result<Option<Lock>> {
    let mut wait = Wait::new(home, PATIENCE);
    loop {
        match home.try_look() {
            Ok(lock) => return Ok(Some(lock)),
            Err(error) if !error.is::<Locked>() => return Err(error),
            Err(_) if Client::reach_running(home).await?.is_some() => return Ok(None),
            Err(error) if !wait.goes_on() => return Err(error),
            Err(_) => tokio::time::sleep(wait.pause()).await,
        }
    }
}
