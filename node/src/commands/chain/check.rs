//! `ephor chain check`: whether a proof holds. It needs the file and the keys: no home, no node, no network.

use std::{
    io::{Read, stdin},
    path::Path,
    process::ExitCode,
};

use anyhow::{Context, bail};
use ephor_base::Timestamp;
use ephor_chain::disk::{self, Whose};
use ephor_signatures::Signatures;
use ephor_tlog::{
    Cosignature, EntryProof, KnownLog, VerifierKeys,
    proof::{file::MAX_PROOF_BYTES, fork::CheckedFork},
};
use ephor_verify::{Checked, CheckedEntry, check as check_proof, lineage};
use rustix::fs::OFlags;
use serde_json::{Value, json};

use super::{keys, log};
use crate::{
    cli::Check,
    terminal::{self, plain},
};

pub(crate) fn check(args: &Check) -> anyhow::Result<ExitCode> {
    let mut logs = keys::pairs(&args.key)?;
    if let Some(file) = &args.changes {
        let changes = keys::changes(file)?;
        logs = logs.iter().flat_map(|keys| lineage::follow(keys, &changes)).collect();
    }
    let known: Vec<KnownLog> = logs.iter().map(KnownLog::of).collect::<Result<_, _>>().context("--key")?;
    let witnesses = keys::witnesses(&args.witness)?;
    let bytes = read(&args.file)?;
    let checked = check_proof(&bytes, None, &known, &witnesses);
    let status = if checked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    let text = match (checked, args.json) {
        (Ok(Checked::Entry(entry)), json) => {
            let keys = signers(&bytes, &logs, &known);
            if json { entry_json(&entry, keys)?.to_string() } else { entry_told(&entry, keys, !witnesses.is_empty()) }
        }
        (Ok(Checked::Fork(fork)), json) => {
            let of_log: Vec<&VerifierKeys> = logs.iter().filter(|keys| keys.origin() == fork.origin).collect();
            if json { fork_json(&fork, &of_log).to_string() } else { fork_told(&fork, &of_log) }
        }
        (Err(error), true) => json!({"ok": false, "why": error.to_string()}).to_string(),
        (Err(_), false) if bytes.is_empty() => "NOT proven: the file is empty".to_owned(),
        (Err(error), false) => format!("NOT proven: {error}. Nothing of what the file says is known to be true"),
    };
    terminal::write(&format!("{text}\n")).context(terminal::UNWRITTEN)?;
    Ok(status)
}

/// The bytes of a proof file, and one more if it is longer than any proof.
fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let (mut bytes, most) = (Vec::new(), MAX_PROOF_BYTES as u64 + 1);
    let show = path.display();
    if path.as_os_str() == "-" {
        stdin().take(most).read_to_end(&mut bytes).context("standard input cannot be read")?;
        return Ok(bytes);
    }
    if path.is_dir() {
        bail!("`{show}` is a folder, and a proof is a file; `ephor chain verify {show}` checks a whole chain");
    }
    let opened = disk::open(path, Whose::Named, OFlags::RDONLY);
    opened.and_then(|file| file.take(most).read_to_end(&mut bytes)).with_context(|| {
        format!("the proof `{show}` cannot be read; `ephor chain prove SEQ > FILE` makes one, and - is standard input")
    })?;
    Ok(bytes)
}

/// The keys whose signatures the checkpoint of a proof carries.
fn signers<'a>(bytes: &[u8], logs: &'a [VerifierKeys], known: &[KnownLog]) -> Option<&'a VerifierKeys> {
    let proof = EntryProof::parse(bytes).ok()?;
    let mut pairs = logs.iter().zip(known);
    pairs.find(|(_, known)| known.check(&proof.checkpoint, &Signatures).is_ok()).map(|(keys, _)| keys)
}

fn entry_json(checked: &CheckedEntry, keys: Option<&VerifierKeys>) -> anyhow::Result<Value> {
    let witness =
        |said: &Cosignature| json!({"name": said.witness, "algorithm": said.algorithm, "seconds": said.seconds});
    Ok(json!({
        "ok": true,
        "proven": "entry",
        "log": checked.origin,
        "seq": checked.seq,
        "entry": serde_json::to_value(&checked.entry)?,
        "head": checked.head,
        "keys": keys.map(|keys| [keys.ed25519(), keys.ml_dsa_65()]),
        "witnesses": checked.witnesses.iter().map(witness).collect::<Vec<_>>(),
    }))
}

fn entry_told(checked: &CheckedEntry, keys: Option<&VerifierKeys>, asked: bool) -> String {
    let CheckedEntry { origin, head, seq, entry, witnesses } = checked;
    let subject = &entry.subject;
    let mut concerns = Vec::new();
    concerns.extend(subject.session.map(|session| format!("session {session}")));
    concerns.extend(subject.seat.as_ref().map(|seat| format!("seat {seat}")));
    concerns.extend(subject.pid.map(|pid| format!("process {pid}")));
    concerns.extend(subject.call.map(|call| format!("call {call}")));
    let mut lines = vec![
        format!("proven: entry {} is in the log {}, and both of its keys have signed that", seq.0, plain(origin)),
        format!("  when     {}", entry.time),
        format!("  what     {}", plain(format!("{} {}", entry.fact.kind(), log::told(&entry.fact)).trim_end())),
    ];
    if !concerns.is_empty() {
        lines.push(format!("  whom     {}", plain(&concerns.join(", "))));
    }
    if let Some(content) = entry.content {
        let bytes = content.length;
        lines.push(format!("  content  {bytes} sealed bytes, which only the vault of the log's owner opens"));
    }
    lines.push(format!("  log      {} entries, root {}", head.size, head.root));
    lines.extend(keys.map(|keys| format!("  keys     {}", names(keys))));
    lines.extend(witnesses.iter().map(|said| {
        let time = Timestamp(said.seconds.saturating_mul(1_000_000));
        format!("  witness  {} saw that log at {time} ({})", plain(&said.witness), said.algorithm)
    }));
    if asked && witnesses.is_empty() {
        lines.push("  witness  none of those named has cosigned it".to_owned());
    }
    lines.join("\n")
}

fn fork_json(fork: &CheckedFork, keys: &[&VerifierKeys]) -> Value {
    let keys: Vec<_> = keys.iter().flat_map(|keys| [keys.ed25519(), keys.ml_dsa_65()]).collect();
    json!({
        "ok": true,
        "proven": "fork",
        "log": fork.origin,
        "smaller": fork.smaller,
        "larger": fork.larger,
        "prefix": fork.prefix,
        "keys": keys,
    })
}

fn fork_told(fork: &CheckedFork, keys: &[&VerifierKeys]) -> String {
    let CheckedFork { origin, smaller, larger, prefix } = fork;
    let mut lines = vec![
        format!("proven: the log {} has two histories; whoever holds its keys has signed both", plain(origin)),
        format!("  one      {} entries, root {}", smaller.size, smaller.root),
        format!("  other    {} entries, root {}", larger.size, larger.root),
    ];
    if smaller.size != larger.size {
        lines.push(format!("           whose first {} have the root {prefix}", smaller.size));
    }
    lines.extend(keys.iter().map(|keys| format!("  keys     {}", names(keys))));
    lines.join("\n")
}

/// Two keys by name and id: their base64 is long, and one of them has 2,600 digits.
fn names(keys: &VerifierKeys) -> String {
    let name = |line: &str| line.splitn(3, '+').take(2).collect::<Vec<_>>().join("+");
    format!("{} (Ed25519), {} (ML-DSA-65)", name(keys.ed25519()), name(keys.ml_dsa_65()))
}
