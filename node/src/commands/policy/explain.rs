//! `ephor policy explain`: why something was decided, from the record alone, and whether it comes out the same.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt::Write,
    process::ExitCode,
};

use anyhow::{Context, bail};
use ephor_base::{EffectVector, Reason, Seq, SessionId, Span, ToolName, Verdict};
use ephor_governance::{Ruled, Scope};
use ephor_kernel::{Again, Inputs, Retrial, Retried, Undecidable};
use serde_json::{Value, json};

use super::{in_force, name};
use crate::{
    commands::chain::{entries, used},
    config::Config,
    home::Home,
    progress::Bar,
    projections::{Answering, Filter},
    terminal::plain,
};

/// How many verdicts that come out otherwise are listed.
const FEW: usize = 10;
/// How much of a span is shown.
const SHOWN_CHARS: usize = 120;

/// Everything on the record, decided again; `each` gets them one after another. It is read twice, so that no session is kept for
/// longer than it lasts.
pub(super) fn again(home: &Home, mut retrial: Retrial, mut each: impl FnMut(Retried)) -> anyhow::Result<()> {
    let mut bar = Bar::new("entries read");
    let (mut ends, mut size): (HashMap<SessionId, Seq>, u64) = (HashMap::new(), 0);
    for stored in entries(used(home)?, false)? {
        let entry = stored.context(UNREADABLE)?.entry;
        size = entry.seq.0.saturating_add(1);
        ends.extend(entry.subject.session.map(|session| (session, entry.seq)));
    }
    for stored in entries(home, true)?.up_to(size) {
        let stored = stored.context(UNREADABLE)?;
        let (seq, session) = (stored.entry.seq, stored.entry.subject.session);
        bar.show(seq.0, size);
        retrial.take(&stored).map(&mut each);
        if let Some(session) = session.filter(|session| ends.get(session) == Some(&seq)) {
            retrial.forget(session);
        }
    }
    Ok(())
}

pub(in crate::commands) const UNREADABLE: &str = "the chain cannot be read any further; see `ephor chain verify`";

/// The verdict at `seq`, decided again. Only what it can rest on is read, if there is an index.
fn again_at(home: &Home, seq: Seq, mut retrial: Retrial) -> anyhow::Result<Option<Retried>> {
    let end = seq.0.saturating_add(1);
    let asked = entries(used(home)?, false)?.from(seq).up_to(end).next().transpose().context(UNREADABLE)?;
    let Some(session) = asked.filter(|asked| asked.entry.seq == seq).and_then(|asked| asked.entry.subject.session)
    else {
        return Ok(None);
    };
    let entries = entries(home, true)?.up_to(end);
    let mut entries: Box<dyn Iterator<Item = _>> = match rests_on(home, session, seq) {
        Some(places) => Box::new(entries.at(places)),
        None => Box::new(entries),
    };
    let mut bar = Bar::new("entries read");
    entries.try_fold(None, |_, stored| {
        let stored = stored.context(UNREADABLE)?;
        bar.show(stored.entry.seq.0, end);
        Ok(retrial.take(&stored).filter(|one| one.seq == seq))
    })
}

/// The entries that decisions of a session up to `end` can rest on, as the index has them.
pub(in crate::commands) fn rests_on(home: &Home, session: SessionId, end: Seq) -> Option<BTreeSet<Seq>> {
    let of_kind = |kind: &str| Filter { kind: Some(kind.to_owned()), ..Filter::default() };
    let own = Filter { session: Some(session), ..Filter::default() };
    let mut places = BTreeSet::new();
    let mut answering = Answering::at_once(home).ok()?;
    for of in Retrial::OF_ALL.map(of_kind).into_iter().chain([own]) {
        places.extend(answering.entries(&of, usize::MAX).ok()?);
    }
    places.retain(|place| *place <= end);
    Some(places)
}

/// How many of all verdicts come out the same.
pub(super) fn all(home: &Home, json: bool) -> anyhow::Result<(String, ExitCode)> {
    let (mut same, mut total, mut other) = (0_u64, 0_u64, Vec::new());
    let mut unknown: BTreeMap<String, u64> = BTreeMap::new();
    again(home, Retrial::default(), |one| {
        total = total.saturating_add(1);
        match &one.again {
            Err(why) => *unknown.entry(why.to_string()).or_default() += 1,
            Ok(_) if one.is_same() => same = same.saturating_add(1),
            Ok(again) => {
                other.push((one.seq, one.target.clone(), name(one.recorded.decision), name(again.verdict.decision)))
            }
        }
    })?;
    let code = if other.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if json {
        let other: Vec<Value> = other
            .iter()
            .map(|(seq, target, was, is)| json!({"seq": seq, "target": target, "recorded": was, "again": is}))
            .collect();
        return Ok((
            format!("{}\n", json!({"verdicts": total, "same": same, "otherwise": other, "unknown": unknown})),
            code,
        ));
    }
    let mut out = format!("{same} of {total} verdicts come out the same, bit for bit.\n");
    for (why, count) in &unknown {
        let _infallible = writeln!(out, "{count}: {why}");
    }
    for (seq, target, was, is) in other.iter().take(FEW) {
        let _infallible =
            writeln!(out, "entry {seq} on {}: {was} on the record, {is} when decided again", plain(target));
    }
    if other.len() > FEW {
        let _infallible = writeln!(out, "and {} more", other.len().saturating_sub(FEW));
    }
    Ok((out, code))
}

/// Why the verdict at `seq` was given.
pub(super) fn one(home: &Home, seq: Seq, json: bool) -> anyhow::Result<String> {
    let today = Config::load(&home.config())?.environment;
    let retrial = Retrial::default().explaining(seq).against(in_force(home)?, Some(today));
    let Some(found) = again_at(home, seq, retrial)? else {
        bail!("entry {seq} is no verdict; `ephor chain log --kind verdict` lists those there are");
    };
    if json { Ok(format!("{}\n", as_json(&found))) } else { Ok(as_text(&found)) }
}

fn as_json(one: &Retried) -> Value {
    let head = json!({
        "seq": one.seq,
        "session": one.session,
        "call": one.call,
        "action": one.action,
        "target": one.target,
        "recorded": one.recorded,
        "same": one.is_same(),
    });
    let (Value::Object(mut fields), more) = (head, again_json(one.again.as_ref())) else { return Value::Null };
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    Value::Object(fields)
}

fn again_json(again: Result<&Again, &Undecidable>) -> Value {
    let Again { verdict, findings, other, inputs } = match again {
        Ok(again) => again,
        Err(why) => return json!({"unknown": why.to_string()}),
    };
    let findings = findings
        .iter()
        .map(|finding| json!({"argument": finding.argument, "trusted": finding.trusted, "labels": finding.labels}));
    json!({
        "again": verdict,
        "today": other.as_ref().and_then(|other| other.as_ref().ok()),
        "arguments": findings.collect::<Vec<Value>>(),
        "inputs": inputs.as_deref().map(inputs_json),
    })
}

fn inputs_json(inputs: &Inputs) -> Value {
    json!({
        "environment": inputs.environment,
        "agent": inputs.agent.agent,
        "role": inputs.agent.role,
        "namespace": inputs.agent.namespace,
        "rights": inputs.rights,
        "tools": inputs.agent.tools,
        "registration": inputs.tool,
        "arguments": inputs.arguments,
        "spans": inputs.spans,
        "grounds": inputs.grounds,
        "ruled": inputs.ruled.map(ruled),
        "ruling": inputs.ruling,
        "by_precedent": inputs.by_precedent,
        "note": inputs.note,
        "familiar": inputs.familiar,
        "tainted": inputs.tainted,
        "pinned": inputs.pinned.as_ref().map(
            |scope| json!({"tools": scope.tools, "targets": scope.targets, "vouches": inputs.vouches}),
        ),
        "evidence": {"calls": inputs.evidence.0, "alarms": inputs.evidence.1, "p0": inputs.agent.p0},
        "effects": inputs.effects.iter().map(|(part, adds)| json!({"part": part, "adds": adds})).collect::<Vec<_>>(),
        "policies": inputs.articles.iter().map(|(name, text)| json!({"id": name, "text": text})).collect::<Vec<_>>(),
    })
}

fn as_text(one: &Retried) -> String {
    let mut lines =
        vec![format!("entry {}: {} of {:?} {}", one.seq, name(one.recorded.decision), one.action, plain(&one.target))];
    lines.extend(one.session.map(|session| format!("  session   {session}")));
    lines.extend(one.call.map(|call| format!("  call      {call}")));
    lines.push(format!("  policy    {}", one.recorded.policy));
    match &one.again {
        Err(why) => lines.push(format!("  again     {why}")),
        Ok(again) => {
            let same = if one.is_same() { "the same, bit for bit" } else { "NOT the same" };
            lines.push(format!("  again     {same}"));
            lines.extend(again.other.as_ref().map(today));
        }
    }
    lines.push("reasons".into());
    lines.extend(one.recorded.reasons.iter().map(reason));
    lines.push(format!("effects   {}", effects(&one.recorded.effects)));
    if let Ok(Again { findings, inputs: Some(inputs), verdict, .. }) = &one.again {
        lines.extend(inputs.effects.iter().map(|(part, adds)| format!("  {:<40} {}", plain(part), effects(adds))));
        for finding in findings {
            let trusted = if finding.trusted { "trusted" } else { "NOT trusted" };
            lines.push(format!(
                "argument `{}` is {trusted}: {}",
                plain(&finding.argument),
                plain(&finding.labels.join(", "))
            ));
        }
        told(inputs, &mut lines);
        if !one.is_same() {
            lines.push("decided again".into());
            lines.extend(verdict.reasons.iter().map(reason));
        }
    }
    lines.join("\n") + "\n"
}

/// Every input.
fn told(inputs: &Inputs, lines: &mut Vec<String>) {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let rights: Vec<&str> = inputs.rights.iter().map(|right| right.name()).collect();
    lines.push("decided on".into());
    lines.push(format!(
        "  environment {}, agent {}, role {}, namespace {}",
        inputs.environment.name(),
        plain(&inputs.agent.agent),
        plain(&inputs.agent.role),
        plain(&inputs.agent.namespace)
    ));
    lines.push(format!("  rights      {}", rights.join(", ")));
    if let Some(tools) = &inputs.agent.tools {
        lines.push(format!("  tools       {}", tools.iter().map(ToolName::as_str).collect::<Vec<_>>().join(", ")));
    }
    lines.push(format!("  context     {:?}", inputs.grounds.context).to_lowercase());
    lines.push(format!(
        "  untrusted content in the context: {}; tool called before: {}",
        yes(inputs.tainted),
        yes(inputs.familiar)
    ));
    let (calls, alarms) = inputs.evidence;
    lines.push(format!(
        "  conduct     {calls} calls, alarm: {}; {} of 1,000 may be refused",
        yes(alarms),
        inputs.agent.p0
    ));
    lines.push(format!("  ruling      {}", ruling(inputs)));
    let spent = inputs.grounds.spent.map_or_else(|| "the budget covers it".to_owned(), |spent| spent.to_string());
    lines.push(format!("  budget      {spent}"));
    if let Some(pinned) = &inputs.pinned {
        let of = if inputs.vouches { "" } else { "; it vouches for nothing" };
        lines.push(format!("  pinned      {}{of}", plain(&pins(pinned))));
    }
    if let Some(within) = inputs.grounds.within {
        lines.push(format!("  within      call {within}"));
    }
    for (argument, value) in inputs.arguments.iter().flat_map(|arguments| arguments.iter()) {
        let json = serde_json::to_string(value).unwrap_or_default();
        lines.push(format!("  {} = {}", plain(argument), plain(&json)));
        let text = json.trim_matches('"').to_lowercase();
        let holds = |span: &&Span| !text.is_empty() && span.text.to_lowercase().contains(&text);
        lines.extend(inputs.spans.iter().filter(holds).map(|span| format!("      stands in {}", span_told(span))));
    }
    if !inputs.articles.is_empty() {
        lines.push("policies that decided".into());
        lines.extend(
            inputs
                .articles
                .iter()
                .flat_map(|(_, text)| text.lines().map(|line| format!("  {line}")).collect::<Vec<_>>()),
        );
    }
}

/// The tools that were pinned, each with where it may act.
fn pins(scope: &Scope) -> String {
    let one = |tool: &ToolName| match scope.targets.get(tool) {
        Some(targets) => format!("{tool} on {}", targets.iter().map(String::as_str).collect::<Vec<_>>().join(" or ")),
        None => tool.to_string(),
    };
    if scope.tools.is_empty() {
        "no tool".to_owned()
    } else {
        scope.tools.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// What people have said to it, where that stands, and their words.
fn ruling(inputs: &Inputs) -> String {
    let said = match inputs.ruled.map(ruled) {
        Some(said) => said,
        None if inputs.by_precedent => "a precedent",
        None => return "none".to_owned(),
    };
    let at = inputs.ruling.map(|ruling| format!(" (entry {ruling})")).unwrap_or_default();
    let note = inputs.note.as_ref().map(|note| format!(": {}", plain(note))).unwrap_or_default();
    format!("{said}{at}{note}")
}

fn span_told(span: &Span) -> String {
    let label = span.label;
    let kind = format!("{:?}, {:?}, {:?}", label.source, label.integrity, label.confidentiality).to_lowercase();
    let text: String = span.text.chars().take(SHOWN_CHARS).collect();
    format!("span {} ({kind}): {}", span.id, plain(&text))
}

fn today(other: &Result<Verdict, Undecidable>) -> String {
    match other {
        Ok(verdict) => format!("  today     {}: {}", name(verdict.decision), verdict.why()),
        Err(why) => format!("  today     {why}"),
    }
}

fn reason(reason: &Reason) -> String {
    format!(
        "  {:<12} {:<7} {}",
        format!("{:?}", reason.branch).to_lowercase(),
        name(reason.decision),
        plain(&reason.code)
    )
}

fn effects(vector: &EffectVector) -> String {
    vector
        .components()
        .into_iter()
        .map(|(name, value)| format!("{name} {}", value.value()))
        .collect::<Vec<_>>()
        .join(", ")
}

const fn ruled(ruled: Ruled) -> &'static str {
    match ruled {
        Ruled::Permit => "an operator permits it",
        Ruled::Refuse => "it is refused",
        Ruled::Expired => "nobody answered in time",
        Ruled::NobodyToAsk => "nobody was there to ask",
        Ruled::Withdrawn => "the question was withdrawn",
    }
}
