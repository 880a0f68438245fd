//! `ephor chain export`: entries for an auditor, as JSON lines that can be held against the signed root.

use std::process::ExitCode;

use anyhow::{Context, bail};
use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use ephor_base::{Digest, Seq, cbor};
use ephor_record::Entry;
use ephor_signatures::Signatures;
use ephor_tlog::{EntryProof, VerifierKeys};
use ephor_verify::Folder;
use ephor_verify::{Change, Prover, lineage};
use serde_json::{Value, json};

use super::place::{Place, unproven};
use crate::{cli::Export, home::Home, progress::Bar, terminal};

pub(super) fn export(home: &Home, args: &Export) -> anyhow::Result<ExitCode> {
    let place = Place::find(home, args.directory.as_deref())?;
    let keys = place.keys(&args.key)?;
    let mut prover = place.prover(|size| args.to.is_some_and(|to| to < size))?;
    let (checkpoint, size) = (prover.checkpoint(), prover.checkpoint().head.size);
    let signers = lineage::signers(&Folder::source(&place.folder, &place.files), &keys)
        .context("the checkpoint of the log does not hold under these keys, or any that they lead to")?;
    checkpoint
        .check(&signers, &Signatures)
        .context("the log goes on, and its keys were changed just now; export it again")?;
    let changes =
        lineage::changes(&Folder::source(&place.folder, &place.files)).map_err(|error| unproven(error.into()))?;
    let first = place.first()?;
    let (from, to) = (args.from.unwrap_or(first), args.to.unwrap_or(size.saturating_sub(1)));
    if from > to {
        bail!("the entries {from} to {to} are none: --from comes before --to");
    }
    if from < first {
        bail!("entry {from} was pruned: the log begins at entry {first}, so --from is that or more");
    }
    if to >= size {
        return Err(place.beyond(to, size));
    }
    let mut bar = Bar::new("entries exported");
    let first = first_line(&signers, &changes, &prover, (from, to), args.proofs).to_string();
    let lines = (1..).zip(from..=to).map(|(done, seq)| {
        let proof = prover.prove(Seq(seq)).map_err(unproven)?;
        bar.show(done, to.saturating_sub(from).saturating_add(1));
        Ok(line(&proof, args.proofs)?.to_string())
    });
    terminal::write_lines(std::iter::once(Ok(first)).chain(lines))?;
    Ok(ExitCode::SUCCESS)
}

/// What everything behind it is held against.
fn first_line(keys: &VerifierKeys, changes: &[Change], prover: &Prover, (from, to): (u64, u64), proofs: bool) -> Value {
    let checkpoint = prover.checkpoint();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    json!({
        "log": checkpoint.origin,
        "keys": [keys.ed25519(), keys.ml_dsa_65()],
        "changes": changes.iter().map(|change| text(change.to_bytes())).collect::<Vec<_>>(),
        "checkpoint": text(checkpoint.note.to_bytes()),
        "size": checkpoint.head.size,
        "root": checkpoint.head.root,
        "from": from,
        "to": to,
        "proofs": proofs,
    })
}

/// An entry: in words, and as the bytes that its leaf hash is made of.
fn line(proof: &EntryProof, proofs: bool) -> anyhow::Result<Value> {
    let bytes = proof.extra.as_deref().unwrap_or_default();
    let entry: Entry = cbor::from_slice(bytes)
        .with_context(|| format!("entry {} is of a version that this one does not know: upgrade Ephor", proof.index))?;
    let mut line = json!({
        "seq": proof.index,
        "leaf": ephor_tlog::tree::leaf_hash(bytes),
        "cbor": BASE64.encode(bytes),
        "entry": serde_json::to_value(&entry)?,
    });
    if let (true, Value::Object(fields)) = (proofs, &mut line) {
        let path: Vec<String> = proof.path.iter().map(|Digest(hash)| BASE64.encode(hash)).collect();
        fields.insert("inclusion".to_owned(), json!(path));
    }
    Ok(line)
}
