//! `ephor chain log`: the entries.

use std::{
    io::{self, Write},
    process::ExitCode,
    sync::Arc,
};

use anyhow::Context;
use ephor_base::{Pid, files::Files};
use ephor_chain::{Entry, Fact, Private, Stored, Vault, VaultKey, disk::Disk, read};
use serde_json::{Value, json};

use super::used;
use crate::{
    home::Home,
    terminal::{self, plain},
};

pub(crate) fn log(home: &Home, pid: Option<u64>, json: bool, content: bool) -> anyhow::Result<ExitCode> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let mut entries = read(&used(home)?.chain(), &files);
    if content {
        let key = VaultKey::load(&home.vault_key(), &*files)?;
        entries = entries.unsealing(Arc::new(Vault::new(&home.vault(), Arc::new(key), files.clone())));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    for stored in entries {
        let stored = stored.context("the chain cannot be read any further; see `ephor chain verify`")?;
        if pid.is_some_and(|pid| stored.entry.subject.pid != Some(Pid(pid))) {
            continue;
        }
        let line = if json { as_json(&stored, content)?.to_string() } else { as_text(&stored, content) };
        match writeln!(out, "{line}") {
            Ok(()) => {}
            // A reader that closed the pipe has had enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(ExitCode::SUCCESS),
            Err(error) => return Err(error).context(terminal::UNWRITTEN),
        }
    }
    out.flush().context(terminal::UNWRITTEN)?;
    Ok(ExitCode::SUCCESS)
}

fn as_json(stored: &Stored, content: bool) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(&stored.entry)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("leaf".to_owned(), json!(stored.receipt.leaf));
        if let (true, Private::Open(private)) = (content, &stored.content) {
            fields.insert("private".to_owned(), serde_json::to_value(private)?);
        }
    }
    Ok(value)
}

fn as_text(stored: &Stored, content: bool) -> String {
    let Entry { seq, time, subject, fact, .. } = &stored.entry;
    let pid = subject.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let call = subject.call.map_or_else(String::new, |call| format!("call {call} "));
    let line = format!("{:>6}  {time}  {pid:>5}  {:<9} {call}{}", seq.0, fact.kind(), told(fact));
    match (content, &stored.content) {
        (true, Private::Open(private)) => {
            let private = serde_json::to_string(private).unwrap_or_default();
            format!("{}\n                {}", line.trim_end(), plain(&private))
        }
        _ => line.trim_end().to_owned(),
    }
}

/// A fact in a few words.
fn told(fact: &Fact) -> String {
    match fact {
        Fact::Origin { follows: Some(old), .. } => {
            format!("follows {} at {} entries: {}", old.origin, old.size, old.reason)
        }
        Fact::Origin { follows: None, .. } => String::new(),
        Fact::Boot { number, version, clean, trimmed_bytes } => {
            let before = if *clean { "" } else { ", not stopped cleanly before" };
            let torn = if *trimmed_bytes > 0 { format!(", {trimmed_bytes} torn bytes trimmed") } else { String::new() };
            format!("number {number}, version {version}{before}{torn}")
        }
        Fact::Stop { number } => format!("of boot {number}"),
        Fact::Operator { .. } => String::new(),
        Fact::Policy { digest, environment } => format!("{environment} {}", digest.short()),
        Fact::Tool { name, code, .. } => format!("{name}, code {}", code.short()),
        Fact::Spawn { incarnation, parent } => {
            let parent = parent.map_or_else(|| "nobody".to_owned(), |pid| pid.to_string());
            format!("incarnation {incarnation}, supervised by {parent}")
        }
        Fact::Exit { reason } => reason.clone(),
        Fact::Message { id, spans } => format!("{id} in {} spans", spans.len()),
        Fact::Verdict { action, target, verdict, .. } => {
            format!("{:?} {action:?} {target}: {}", verdict.decision, verdict.why()).to_lowercase()
        }
        Fact::Intent { action, attempt, .. } => format!("{action:?}, attempt {attempt}").to_lowercase(),
        Fact::Outcome { intent, end, used } => {
            format!("{end} of {intent}, {} tokens, {} ms", used.tokens, used.wall_ms)
        }
        Fact::Ticket { id, target, expires, .. } => format!("{id} on {target}, expires {expires}"),
        Fact::Ruling { decision, how, .. } => format!("{decision:?}, {how}").to_lowercase(),
        Fact::Lease { secret } => secret.clone(),
        Fact::TurnEnd { message, end, report } => {
            format!("of message {message}: {}, {} cycles, {} ms", end.code(), report.cycles, report.duration_ms)
        }
        Fact::Snapshot(snapshot) => {
            format!("part {} of {}, {} open intents", snapshot.part.saturating_add(1), snapshot.of, snapshot.open.len())
        }
    }
}
