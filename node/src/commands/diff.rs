//! `ephor diff`: what a session has changed in its files.

use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use crate::{
    changes::{Changed, Shown},
    cli::Diff,
    client::Client,
    failure::NoChain,
    home::Home,
    protocol::{Answer, Request},
    terminal::{self, plain},
};

pub(crate) async fn diff(home: &Home, args: &Diff) -> anyhow::Result<ExitCode> {
    // No home is made only to look.
    if !home.exists() {
        bail!(NoChain(home.path().to_owned()));
    }
    let mut client = Client::reach(home).await?;
    let session = args.session;
    let mut changes: Vec<Changed> = Vec::new();
    let unreadable = loop {
        let asked = Request::Changes { session, behind: changes.len() };
        let Answer::Changes { changes: more, all, unreadable: calls } = client.ask(&asked).await? else {
            bail!("the node answered something else")
        };
        changes.extend(more);
        if all {
            break calls;
        }
    };
    if args.json {
        let line = json!({"session": session, "changes": changes, "unreadable": unreadable}).to_string() + "\n";
        terminal::write(&line).context(terminal::UNWRITTEN)?;
        return Ok(ExitCode::SUCCESS);
    }
    if unreadable > 0 {
        terminal::tell(&format!(
            "session {session}: {unreadable} of its calls cannot be read any more, as after `ephor chain erase`; what they changed is unknown\n"
        ));
    } else if changes.is_empty() {
        terminal::tell(&format!("session {session} has changed no file\n"));
    }
    for changed in &changes {
        if let Shown::Patch(patch) = &changed.difference {
            terminal::write_patch(patch).context(terminal::UNWRITTEN)?;
        }
        notes(changed).iter().for_each(|note| terminal::tell(&format!("{note}\n")));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a patch does not say.
fn notes(changed: &Changed) -> Vec<String> {
    let Changed { path, first, last, uncertain, difference, .. } = changed;
    let (path, mut notes) = (plain(path), Vec::new());
    let entries = if first == last { format!("entry {first}") } else { format!("entries {first} to {last}") };
    let why = match difference {
        Shown::Patch(_) => None,
        Shown::NotText => Some("it is not text"),
        Shown::TooLarge => Some("it is too large to be shown"),
        Shown::NotKept => Some("what it held was not kept"),
    };
    notes.extend(why.map(|why| format!("{path}: changed by {entries}, and {why}")));
    notes.extend(
        uncertain
            .iter()
            .map(|seq| format!("{path}: it is not known whether entry {seq} was done; it is shown as if it were")),
    );
    notes
}
