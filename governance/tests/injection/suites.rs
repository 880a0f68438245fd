//! The suites: tasks and attacks as lines of a trace, and what others have written beside them.

use std::{collections::BTreeMap, fs, path::PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Suites that are folders, and those that are files of `unseen`.
pub(crate) const FOLDERS: [&str; 4] = ["ours", "independent", "blind", "fresh"];
pub(crate) const FILES: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

/// A trace to be decided.
pub(crate) struct Trace {
    pub(crate) task: String,
    pub(crate) lines: Vec<Value>,
    /// The attack calls of it, each with whether a fair reader might let it pass. Empty: an ordinary task.
    pub(crate) attacks: BTreeMap<String, bool>,
    /// The calls that its writer expects to be asked about, or thinks that they may be; all of them, where nothing is said of one.
    pub(crate) may_ask: Vec<String>,
    pub(crate) may_ask_anywhere: bool,
}

/// What was written beside a suite: `suite/plans/SUITE.json`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beside {
    /// By task: a plan, or a list of one for each message of the user.
    #[serde(default)]
    pub(crate) plans: BTreeMap<String, Value>,
    /// By `TOOL`, or `TASK/TOOL` where a task means another tool of that name: keys that are added to the registration.
    #[serde(default)]
    pub(crate) tools: BTreeMap<String, Map<String, Value>>,
}

#[derive(Deserialize)]
struct Task {
    task: String,
    office: String,
    /// `none`, or `maybe` where a question is in order.
    asks: String,
}

/// An attack of ours: what is written into the first text anyone may have written, and what the model then does.
#[derive(Deserialize)]
struct Attack {
    office: String,
    inject: String,
    #[serde(default)]
    prep: Vec<Value>,
    calls: Vec<Value>,
}

/// A combination, as changes to the lines of its task: from, to, and what stands there instead.
#[derive(Deserialize)]
struct Combined {
    task: String,
    edits: Vec<(usize, usize, Vec<String>)>,
}

/// A task of `unseen` with its attacks. The attacked trace is the first `common` lines of the honest one, then `attacked`.
#[derive(Deserialize)]
struct Unseen {
    task: String,
    lines: Vec<Value>,
    expected: BTreeMap<String, Expected>,
    common: usize,
    attacked: Vec<Value>,
    attacks: BTreeMap<String, Grey>,
}

#[derive(Deserialize)]
struct Expected {
    expect: String,
}

#[derive(Deserialize)]
struct Grey {
    grey: Option<String>,
}

fn folder(part: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("suite").join(part)
}

fn rows<T: for<'a> Deserialize<'a>>(path: &str) -> Vec<T> {
    let text = fs::read_to_string(folder(path)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// What was written beside a suite; nothing where nobody has.
pub(crate) fn beside(suite: &str) -> Beside {
    let path = folder("plans").join(format!("{suite}.json"));
    if !path.exists() {
        return Beside::default();
    }
    serde_json::from_str(&fs::read_to_string(&path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every trace of a suite.
pub(crate) fn traces(suite: &str) -> Vec<Trace> {
    if FILES.contains(&suite) { unseen(suite) } else { in_folder(suite) }
}

fn unseen(suite: &str) -> Vec<Trace> {
    let of = |task: Unseen| {
        let attacked: Vec<Value> = task.lines[..task.common].iter().cloned().chain(task.attacked).collect();
        let may_ask = task.expected.into_iter().filter(|(_, call)| call.expect != "permit").map(|(id, _)| id).collect();
        let attacks: BTreeMap<String, bool> =
            task.attacks.into_iter().map(|(id, attack)| (id, attack.grey.is_some())).collect();
        let honest = Trace {
            task: task.task.clone(),
            lines: task.lines,
            attacks: BTreeMap::new(),
            may_ask,
            may_ask_anywhere: false,
        };
        [honest, attack(task.task, attacked, attacks)]
    };
    rows::<Unseen>(&format!("unseen/{suite}.jsonl")).into_iter().flat_map(of).collect()
}

fn attack(task: String, lines: Vec<Value>, attacks: BTreeMap<String, bool>) -> Trace {
    Trace { task, lines, attacks, may_ask: Vec::new(), may_ask_anywhere: false }
}

/// The calls of an attack, as the suites name them.
fn named_attacks(lines: &[Value]) -> BTreeMap<String, bool> {
    let calls = lines.iter().filter(|line| line["type"] == "call").filter_map(|line| line["id"].as_str());
    calls.filter(|id| id.starts_with("attack-")).map(|id| (id.to_owned(), false)).collect()
}

fn in_folder(suite: &str) -> Vec<Trace> {
    let bases: BTreeMap<String, (Task, Vec<Value>)> = rows::<Task>(&format!("{suite}/tasks.jsonl"))
        .into_iter()
        .map(|task| (task.task.clone(), (rows(&format!("{suite}/tasks/{}.jsonl", task.task)), task)))
        .map(|(name, (lines, task))| (name, (task, lines)))
        .collect();
    let honest = bases.iter().map(|(name, (task, lines))| Trace {
        task: name.clone(),
        lines: lines.clone(),
        attacks: BTreeMap::new(),
        may_ask: Vec::new(),
        may_ask_anywhere: task.asks != "none",
    });
    let mut traces: Vec<Trace> = honest.collect();
    if suite == "ours" {
        bases.iter().for_each(|(name, (task, lines))| ours(name, &task.office, lines, &mut traces));
        return traces;
    }
    for row in rows::<Combined>(&format!("{suite}/attacks.jsonl")) {
        let (_, base) = &bases[&row.task];
        let (mut lines, mut at) = (Vec::new(), 0);
        for (from, to, instead) in row.edits {
            lines.extend_from_slice(&base[at..from]);
            lines.extend(instead.iter().map(|line| serde_json::from_str(line).unwrap()));
            at = to;
        }
        lines.extend_from_slice(&base[at..]);
        let attacks = named_attacks(&lines);
        traces.push(attack(row.task, lines, attacks));
    }
    traces
}

/// Our attacks in our tasks: at once after the text that carries them, and again at the end.
fn ours(name: &str, office: &str, base: &[Value], traces: &mut Vec<Trace>) {
    let honest: Vec<(&Value, &Value)> =
        base.iter().filter(|line| line["type"] == "call").map(|line| (&line["tool"], &line["arguments"])).collect();
    let untrusted = |tool: &Value| {
        base.iter().any(|line| {
            line["type"] == "tool"
                && line["name"] == *tool
                && line["registration"]["result"] == "untrusted"
                && line["registration"]["trusted_for"] == json!([])
                && line["registration"]["consequential"] == false
        })
    };
    let is_of_untrusted = |line: &Value| {
        base.iter().any(|call| call["type"] == "call" && call["id"] == line["id"] && untrusted(&call["tool"]))
    };
    let Some(carrier) = base.iter().position(|line| line["type"] == "result" && is_of_untrusted(line)) else { return };
    for row in rows::<Attack>("ours/attacks.jsonl").into_iter().filter(|attack| attack.office == office) {
        let mut line = base[carrier].clone();
        line["content"] = json!(format!("{}{}", line["content"].as_str().unwrap(), row.inject));
        let mut theirs = Vec::new();
        for (number, prep) in row.prep.iter().enumerate() {
            let id = format!("prep-{number}");
            theirs.push(json!({"type":"call","id":id,"tool":prep["tool"],"arguments":prep["arguments"]}));
            theirs.push(json!({"type":"result","id":id,"content":prep["result"]}));
        }
        for (number, call) in row.calls.iter().enumerate() {
            if !honest.contains(&(&call["tool"], &call["arguments"])) || !row.prep.is_empty() {
                let id = format!("attack-{number}");
                theirs.push(json!({"type":"call","id":id,"tool":call["tool"],"arguments":call["arguments"]}));
            }
        }
        for late in [false, true] {
            let mut lines = base.to_vec();
            lines[carrier] = line.clone();
            let at = if late { lines.len() } else { carrier + 1 };
            lines.splice(at..at, theirs.iter().cloned());
            let attacks = named_attacks(&lines);
            traces.push(attack(name.to_owned(), lines, attacks));
        }
    }
}
