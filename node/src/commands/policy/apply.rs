//! `ephor policy apply`: an owner puts a constitution in force.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::{Digest, Seq};
use ephor_governance::Constitution;
use ephor_record::{Decree, Terms};
use serde_json::json;

use super::{
    super::runtime,
    backtest::{self, Table},
    diff, digest, in_force,
};
use crate::{
    client::Client,
    constitution,
    home::Home,
    operation::{Done, DraftView, Operation},
    terminal,
};

pub(super) fn apply(home: &Home, file: &Path, yes: bool, json: bool) -> anyhow::Result<ExitCode> {
    let new = constitution::of_file(file)?;
    let changes = diff(&in_force(home)?, &new);
    let past = if home.chain().exists() { Some(backtest::backtest(home, new.clone(), None)?) } else { None };
    if !json {
        let nothing = || "Nothing is recorded yet that it could be held against.\n".to_owned();
        let summary = past.as_ref().map_or_else(nothing, Table::as_text);
        terminal::write(&format!("{changes}\n{summary}")).context(terminal::UNWRITTEN)?;
    }
    if !yes
        && !terminal::confirm(
            "From here on this decides, for everything that runs. What waits for an answer is refused.",
        )?
    {
        bail!("nothing was changed; answer `yes` at a terminal, or pass --yes");
    }
    let (constitution, policy, seq) = runtime(1)?.block_on(enact(home, &new))?;
    let text = if json {
        let past = past.as_ref().map(Table::as_json);
        format!("{}\n", json!({"constitution": constitution, "policy": policy, "seq": seq, "backtest": past}))
    } else {
        format!("The constitution {constitution} is in force from entry {seq} on; its policy is {policy}.\n")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

/// Has the node put a constitution in force. Says its digest, that of the policy, and the entry that says so.
async fn enact(home: &Home, new: &Constitution) -> anyhow::Result<(Digest, Digest, Seq)> {
    let mut client = Client::reach(home).await?;
    let text = new.text().to_owned();
    let Done::Drafted { draft } = client.operate(Operation::Draft { text: text.clone() }).await? else {
        bail!("the node answered something else");
    };
    let DraftView { origin, latest, policy, environment, capabilities, never, models } = draft;
    // What is signed names the text that was read here, whatever the node has made of it.
    let constitution = digest(new);
    let terms = Terms { constitution, capabilities, never, models };
    let signature = client.sign(&Decree::Enact { policy, terms, environment }.signed_bytes(&origin, latest));
    let Done::Recorded { seq } = client.operate(Operation::Enact { text, signature }).await? else {
        bail!("the node answered something else");
    };
    Ok((constitution, policy, seq))
}
