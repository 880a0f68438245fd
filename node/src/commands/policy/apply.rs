//! `ephor policy apply`: an owner puts a constitution in force.

use std::{path::Path, process::ExitCode};

use anyhow::{Context, bail};
use ephor_base::Digest;
use ephor_chain::{Decree, record::Terms};
use serde_json::json;

use super::{backtest, diff, in_force};
use crate::{
    client::Client,
    constitution,
    home::Home,
    operation::{Done, DraftView, Operation},
    terminal,
};

pub(super) async fn apply(home: &Home, file: &Path, yes: bool, json: bool) -> anyhow::Result<ExitCode> {
    let new = constitution::of_file(file)?;
    let changes = diff(&in_force(home)?, &new);
    let summary = if home.chain().exists() {
        backtest::backtest(home, new.clone(), None, false)?
    } else {
        "Nothing is recorded yet that it could be held against.\n".to_owned()
    };
    if !json {
        terminal::write(&format!("{changes}\n{summary}")).context(terminal::UNWRITTEN)?;
    }
    if !yes
        && !terminal::confirm(
            "From here on this decides, for everything that runs. What waits for an answer is refused.",
        )?
    {
        bail!("nothing was changed; answer `yes` at a terminal, or pass --yes");
    }
    let mut client = Client::reach(home).await?;
    let text = new.text().to_owned();
    let Done::Drafted { draft } = client.operate(Operation::Draft { text: text.clone() }).await? else {
        bail!("the node answered something else");
    };
    let DraftView { origin, latest, policy, environment, capabilities, never } = draft;
    // What is signed names the text that was read here, whatever the node has made of it.
    let terms = Terms { constitution: Digest::of(text.as_bytes()), capabilities, never };
    let signature = client.sign(&Decree::Enact { policy, terms, environment }.signed_bytes(&origin, latest));
    let Done::Recorded { seq } = client.operate(Operation::Enact { text, signature }).await? else {
        bail!("the node answered something else");
    };
    let text = if json {
        format!("{}\n", json!({"policy": policy, "seq": seq}))
    } else {
        format!("It is in force from entry {seq} on; its policy is {policy}.\n")
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}
