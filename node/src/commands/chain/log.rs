//! `ephor chain log`: the entries.

use std::{collections::BTreeSet, path::Path, process::ExitCode, sync::Arc};

use anyhow::{Context, bail};
use ephor_base::{Budget, CallId, Pid, Seq, ToolName, files::Files};
use ephor_chain::{Entries, Private, Stored, Vault, VaultKey, disk::Disk, read};
use ephor_record::{Appointment, Because, Entry, Fact, Terms, standing::StandingPart};
use serde_json::{Value, json};

use super::used;
use crate::{
    cli::ChainLog,
    home::Home,
    passphrase,
    projections::{Answering, Filter},
    terminal::{self, plain},
};

pub(crate) fn log(home: &Home, args: &ChainLog) -> anyhow::Result<ExitCode> {
    let ChainLog { session, pid, call, kind, since, last, json, content, of: aside } = args;
    let entries = |content| entries_of(home, aside.as_deref(), content);
    let of = Filter { session: *session, pid: pid.map(Pid), call: call.map(CallId), kind: kind.clone(), since: *since };
    used(home)?;
    // The index is of the chain that goes on.
    let mut found = if aside.is_some() { None } else { found(home, &of, *last) };
    if last.is_some() && found.is_none() {
        // Whatever keeps the index from being asked: the record itself can still be read, twice.
        let places = entries(false)?.filter_map(|stored| stored.ok().filter(|stored| is_wanted(stored, &of)));
        let places: Vec<Seq> = places.map(|stored| stored.entry.seq).collect();
        found = Some(places.into_iter().rev().take(last.unwrap_or(usize::MAX)).collect());
    }
    let wanted = |stored: &Stored| {
        found.as_ref().is_none_or(|found| found.contains(&stored.entry.seq)) && is_wanted(stored, &of)
    };
    let end = found.as_ref().map_or(u64::MAX, |found| found.last().map_or(0, |last| last.0.saturating_add(1)));
    let begin = found.as_ref().and_then(BTreeSet::first).copied().unwrap_or(Seq(0));
    let line = |stored: Stored| match *json {
        true => as_json(&stored, *content).map(|json| json.to_string()),
        false => Ok(as_text(&stored, *content)),
    };
    let entries = entries(*content)?.from(begin).up_to(end);
    let mut any = false;
    terminal::write_lines(entries.filter_map(|stored| match stored {
        Ok(stored) => wanted(&stored).then(|| {
            any = true;
            line(stored)
        }),
        Err(error) => Some(Err(error).context("the chain cannot be read any further; see `ephor chain verify`")),
    }))?;
    if let (false, Some(kind)) = (any, kind) {
        check_kind(entries_of(home, aside.as_deref(), false)?, kind)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A kind that no entry has may be misspelt.
fn check_kind(entries: Entries, kind: &str) -> anyhow::Result<()> {
    let kinds: BTreeSet<_> = entries.filter_map(|stored| stored.ok().map(|one| one.entry.fact.kind())).collect();
    if !kinds.contains(kind) {
        let kinds: Vec<&str> = kinds.into_iter().collect();
        bail!("no entry is of the kind `{}`; this record has {}", plain(kind), kinds.join(", "));
    }
    Ok(())
}

/// The entries from the first on.
pub(crate) fn entries(home: &Home, content: bool) -> anyhow::Result<Entries> {
    entries_of(home, None, content)
}

/// The same, of a chain that was moved aside. Its sessions keep their keys in the vault.
fn entries_of(home: &Home, aside: Option<&Path>, content: bool) -> anyhow::Result<Entries> {
    let files: Arc<dyn Files> = Arc::new(Disk);
    let chain = aside.map_or_else(|| home.chain(), |aside| aside.join("chain"));
    if !chain.is_dir() {
        bail!(
            "there is no chain in `{}`; a chain that was moved aside lies in `quarantine/N` of its home",
            chain.display()
        );
    }
    let entries = read(&chain, &files);
    if !content {
        return Ok(entries);
    }
    let key = VaultKey::load_with(&home.vault_key(), &*files, &passphrase::unlock(home)?.protection)?;
    let vault = Vault::new(&home.vault(), Arc::new(key), files.clone());
    Ok(entries.unsealing(Arc::new(match aside {
        Some(aside) => vault.with_contents(aside),
        None => vault,
    })))
}

/// What the index says. Nothing if all of the record is wanted, or where the index cannot be asked: then the record is
/// read from its first entry on, and a quarantined one up to the damage.
fn found(home: &Home, of: &Filter, last: Option<usize>) -> Option<BTreeSet<Seq>> {
    if of.is_everything() && last.is_none() {
        return None;
    }
    let places = Answering::at_once(home).ok()?.entries(of, last.unwrap_or(usize::MAX));
    places.ok().map(|places| places.into_iter().collect())
}

fn is_wanted(stored: &Stored, of: &Filter) -> bool {
    let Entry { subject, fact, time, .. } = &stored.entry;
    let is = [
        of.session.is_none_or(|session| subject.session == Some(session)),
        of.pid.is_none_or(|pid| subject.pid == Some(pid)),
        of.call.is_none_or(|call| subject.call == Some(call)),
        of.kind.as_ref().is_none_or(|kind| fact.kind() == kind),
        of.since.is_none_or(|since| *time >= since),
    ];
    is.into_iter().all(|is| is)
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
            format!("{}\n                {}", plain(line.trim_end()), plain(&private))
        }
        _ => plain(line.trim_end()),
    }
}

fn names(tools: &[ToolName]) -> String {
    tools.iter().map(ToolName::as_str).collect::<Vec<_>>().join(", ")
}

fn noted(note: &str) -> String {
    if note.is_empty() { String::new() } else { format!(": {}", plain(note)) }
}

/// As `ephor policy check` names a constitution.
fn law_of(terms: &Terms) -> String {
    format!("constitution {}", terms.constitution)
}

/// A fact in a few words.
pub(super) fn told(fact: &Fact) -> String {
    match fact {
        Fact::Origin { follows: Some(old), .. } => {
            format!("follows {} at {} entries: {}", old.origin, old.size, old.reason)
        }
        Fact::Origin { follows: None, .. } => String::new(),
        Fact::Boot { number, version, clean, trimmed_bytes, .. } => {
            let before = if *clean { "" } else { ", not stopped cleanly before" };
            let torn = if *trimmed_bytes > 0 { format!(", {trimmed_bytes} torn bytes trimmed") } else { String::new() };
            format!("number {number}, version {version}{before}{torn}")
        }
        Fact::Stop { number } => format!("of boot {number}"),
        Fact::Operator { .. } => String::new(),
        Fact::Policy { digest, environment, terms } => {
            let constitution = terms.as_ref().map_or_else(String::new, |terms| format!(", {}", law_of(terms)));
            format!("{environment} {}{constitution}", digest.short())
        }
        Fact::Tool { name, code, .. } => format!("{name}, code {}", code.short()),
        Fact::Spawn { incarnation, parent } => {
            let parent = parent.map_or_else(|| "nobody".to_owned(), |pid| pid.to_string());
            format!("incarnation {incarnation}, supervised by {parent}")
        }
        Fact::Exit { reason } => reason.clone(),
        Fact::Message { id, spans, from, because, owed: _, scope, offset } => {
            let from = from.map_or_else(String::new, |from| format!(", from session {from}"));
            let because = match because {
                None => String::new(),
                Some(Because::Replay(dead)) => format!(", replays dead letter {dead}"),
                Some(Because::Fire { name, at }) => format!(", schedule {}, due {at}", plain(name)),
            };
            let scope = scope.as_ref().map_or_else(String::new, |tools| format!(", scope [{}]", names(tools)));
            let offset = offset.map_or_else(String::new, |offset| format!(", {offset}"));
            format!("{id} in {} spans{from}{because}{scope}{offset}", spans.len())
        }
        Fact::Verdict { action, target, verdict, .. } => {
            format!("{:?} {action:?} {target}: {}", verdict.decision, verdict.why()).to_lowercase()
        }
        Fact::Intent { action, attempt, .. } => format!("{action:?}, attempt {attempt}").to_lowercase(),
        Fact::Outcome { intent, end, used } => {
            format!("{end} of {intent}, {} tokens, {} ms", used.tokens, used.wall_ms)
        }
        Fact::Ticket { id, target, expires, .. } => format!("{id} on {target}, expires {expires}"),
        Fact::Ruling { decision, how, note, always, .. } => {
            let again = always.as_ref().map(|always| format!(", for {} and below until {}", always.seat, always.until));
            let said = format!("{decision:?}, {how}").to_lowercase();
            said + &again.unwrap_or_default() + &noted(note.as_deref().unwrap_or_default())
        }
        Fact::Revoked { ruling, note, .. } => format!("the answer of entry {ruling}{}", noted(note)),
        Fact::Lifted { since, note, .. } => format!("the suspension since entry {since}{}", noted(note)),
        Fact::Lease { secret } => secret.clone(),
        Fact::Keys { ed25519, .. } => format!("the log is signed by {ed25519} from here on"),
        Fact::Erase { session, derived, reason } => {
            format!("session {session}, {} derived from it: {}", derived.len(), plain(reason))
        }
        Fact::Restarts { restarts } => {
            let first = restarts.first().map(|one| format!(": {} ({})", plain(&one.name), one.reason));
            format!("{} children started again{}", restarts.len(), first.unwrap_or_default())
        }
        Fact::Signal { signal, tree, cause, note } => {
            let tree = if *tree { " and all below" } else { "" };
            format!("{signal:?}{tree}, by {cause:?}").to_lowercase() + &noted(note)
        }
        Fact::Limit { limit, note } => {
            let Budget { tokens, micro_usd, tool_calls, .. } = limit;
            format!("{tokens} tokens, {micro_usd} micro-USD, {tool_calls} tool calls{}", noted(note))
        }
        Fact::Dead { message, why, .. } => format!("letter {message}, {why:?}").to_lowercase(),
        Fact::Buried { message, note } => format!("letter {message}{}", noted(note)),
        Fact::Schedule { name, cron, zone, .. } => format!("{} at {} in {}", plain(name), plain(cron), plain(zone)),
        Fact::Skipped { name, at } => format!("{}, due {at}", plain(name)),
        Fact::Unscheduled { name } | Fact::Withheld { name } => plain(name),
        Fact::Inherited(StandingPart { holds, operators, law, .. }) => {
            let operators = operators.as_ref().map_or(0, Vec::len);
            let law =
                law.map_or("no law of an owner".to_owned(), |law| format!("the law {}", law.constitution.short()));
            format!("{operators} operators, {} holds, {law}", holds.len())
        }
        Fact::Opened { rights, role, namespace, agent, p0: _, tools, zone: _, planned } => {
            let rights: Vec<&str> = rights.iter().map(|right| right.name()).collect();
            let agent = agent.as_ref().map_or_else(String::new, |agent| format!("{}, ", plain(agent)));
            let of = tools.as_ref().map_or_else(String::new, |tools| format!(", of [{}]", names(tools)));
            let planned = if *planned { ", planned" } else { "" };
            format!("{agent}as {} in {}: {}{of}{planned}", plain(role), plain(namespace), rights.join(", "))
        }
        Fact::Appointed(Appointment { agent, role, namespace, p0, tools, zone, planned }) => {
            let of = tools.as_ref().map_or_else(|| "every tool".to_owned(), |tools| format!("[{}]", names(tools)));
            let zone = plain(zone.as_deref().unwrap_or("UTC"));
            let planned = if *planned { ", planned" } else { "" };
            let is = format!("{} is {} in {} by now", plain(agent), plain(role), plain(namespace));
            format!("{is}, with {of}, p0 {p0}, {zone}{planned}")
        }
        Fact::Document { digest, part, of, bytes } => {
            format!("{}, part {} of {of}, {} bytes", digest.short(), part.saturating_add(1), bytes.len())
        }
        Fact::Enrolled { name, role, .. } => format!("{} as {}", plain(name), role.name()),
        Fact::Forbidden { act, why } => format!("{}: {}", plain(act), plain(why)),
        Fact::Ranked { operator, role, .. } => format!("{operator} is {}", role.name()),
        Fact::Dismissed { operator, .. } => operator.to_string(),
        Fact::Enacted { policy, environment, terms, .. } => {
            format!("{environment} {}, {}", policy.short(), law_of(terms))
        }
        Fact::TurnEnd { message, end, report } => {
            format!("of message {message}: {}, {} cycles, {} ms", end.code(), report.cycles, report.duration_ms)
        }
        Fact::Prune(pruning) => {
            let days = pruning.keep_seconds / 86_400;
            format!("entries before {}, all of them kept for {days} days", pruning.minimum)
        }
        Fact::Snapshot(snapshot) => {
            format!("part {} of {}, {} open intents", snapshot.part.saturating_add(1), snapshot.of, snapshot.open.len())
        }
    }
}
