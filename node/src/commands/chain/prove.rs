//! `ephor chain prove`: a proof that an entry is in the log, as a file that needs nothing else.

use std::process::ExitCode;

use anyhow::Context;
use ephor_base::Seq;
use serde_json::json;

use super::place::{Place, unproven};
use crate::{cli::Prove, home::Home, terminal};

pub(super) fn prove(home: &Home, args: &Prove) -> anyhow::Result<ExitCode> {
    let seq = args.seq;
    let place = Place::find(home, args.directory.as_deref())?;
    let mut prover = place.prover(|size| size > seq)?;
    let (origin, head) = (prover.checkpoint().origin.clone(), prover.checkpoint().head);
    if seq >= head.size {
        return Err(place.beyond(seq, head.size));
    }
    let proof = prover.prove(Seq(seq)).map_err(unproven)?;
    let proof = String::from_utf8_lossy(&proof.to_bytes()).into_owned();
    let text = if args.json {
        format!("{}\n", json!({"log": origin, "seq": seq, "size": head.size, "root": head.root, "proof": proof}))
    } else {
        proof
    };
    terminal::write(&text).context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}
