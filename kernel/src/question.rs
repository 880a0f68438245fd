//! A question to a person, and the one form in which it is shown.
//!
//! The door renders a question once, from the call itself. The person who is asked sees that text and nothing else, and an answer
//! is bound to its digest. It fits a terminal of 80 columns and 24 lines whatever a model has written: long values are cut in the
//! middle with their length and digest, what a terminal would obey or hide is spelt out, and what decides stands last.

use ephor_base::{
    Arguments, CallId, Decision, Difference, Digest, Form, Makes, Seat, SessionId, TicketId, Timestamp, ToolName,
    Verdict, Workspace, arguments::Value, cbor, legible,
};
use ephor_governance::{Tool, paths};
use ephor_record::Always;
use serde::{Deserialize, Serialize};

/// How wide a line is at most. A character outside of ASCII counts as two columns, which is the most that terminals give one.
const COLUMNS: usize = 78;
/// How many lines a question has at most.
const LINES: usize = 21;
/// How many of them are for arguments.
const ARGUMENT_LINES: usize = 10;
/// How many lines of what a call makes of files are kept for these, whatever the arguments are.
const CHANGE_LINES: usize = 1 + Difference::LINES / 2;
/// How many of them are for what there is to know of files.
const FILE_LINES: usize = 2;
/// How wide an argument that decides is at most.
const DECIDING: usize = 120;
/// How wide any other argument is at most.
const ORDINARY: usize = 280;
/// How wide the name of the folder is at most.
const FOLDER: usize = 120;
/// How wide the name of an argument is at most.
const NAME: usize = 32;
/// The longest arguments that are also given whole, as JSON text in bytes. So a question has a bounded size.
pub const MAX_WHOLE: usize = 16 * 1024;

/// A deferred action, with everything a person needs to answer it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The ticket.
    pub ticket: TicketId,
    /// The session.
    pub session: SessionId,
    /// The seat whose agent asks.
    pub seat: Seat,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments as JSON text, for programs; nothing if they are longer than [`MAX_WHOLE`].
    pub arguments: Option<String>,
    /// The question as a person is shown it.
    pub text: Rendering,
    /// The digest of the arguments, that an answer is bound to.
    pub digest: Digest,
    /// The digest of the tool's registration, that an answer is bound to.
    pub registration: Digest,
    /// The verdict that deferred it.
    pub verdict: Verdict,
    /// After this it is denied.
    pub expires: Timestamp,
    /// When it was asked, by the time of the record: what is to end on the record is counted from here, or from later.
    pub asked: Timestamp,
    /// How many different people have to permit it.
    pub quorum: u32,
    /// Whether its arguments say all that becomes of files, so that leave may be given for the same call again.
    pub repeatable: bool,
}

/// What the record has of a question; the rest follows from the call.
pub(crate) struct Recorded {
    pub(crate) ticket: TicketId,
    pub(crate) session: SessionId,
    pub(crate) seat: Seat,
    pub(crate) workspace: Workspace,
    pub(crate) call: CallId,
    pub(crate) files: Files,
    pub(crate) digest: Digest,
    pub(crate) verdict: Verdict,
    pub(crate) expires: Timestamp,
    pub(crate) asked: Timestamp,
    pub(crate) quorum: u32,
}

/// What there is to know of the files that the arguments of a call name.
#[derive(Default)]
pub(crate) struct Files {
    /// A sentence each.
    pub(crate) notes: Vec<String>,
    /// What the call makes of each.
    pub(crate) changes: Vec<Change>,
}

/// What a call makes of a file.
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) makes: Makes,
    /// The file that the call takes away, and that is this one afterwards.
    pub(crate) moved: Option<String>,
}

impl Files {
    /// Whether what becomes of each follows from the arguments alone, which hold it.
    fn follow_from(&self, arguments: &Arguments) -> bool {
        let texts = arguments.iter().filter_map(|(_, value)| match value {
            Value::Text(text) => Some(Digest::of(text.as_bytes())),
            _ => None,
        });
        let given: Vec<Digest> = if self.changes.is_empty() { Vec::new() } else { texts.collect() };
        self.changes.iter().all(|change| change.makes.content.is_some_and(|made| given.contains(&made)))
    }
}

impl Question {
    /// Asks whether `tool` may run with `arguments`.
    pub(crate) fn new(recorded: Recorded, tool: &Tool, arguments: &Arguments) -> Self {
        let text = Rendering::of(&recorded, tool, arguments);
        let registration = tool.registration();
        let repeatable = recorded.files.follow_from(arguments);
        let Recorded { ticket, session, seat, call, digest, verdict, expires, asked, quorum, .. } = recorded;
        Self {
            ticket,
            session,
            seat,
            call,
            tool: registration.name.clone(),
            arguments: Some(arguments.to_json()).filter(|json| json.len() <= MAX_WHOLE),
            text,
            digest,
            registration: registration.digest(),
            verdict,
            expires,
            asked,
            quorum,
            repeatable,
        }
    }

    /// The same for a person who may not see what the tool is called with.
    #[must_use]
    pub fn withheld(self) -> Self {
        let Self { ticket, session, tool, quorum, .. } = &self;
        let mut lines = wrapped(&format!("Ticket {ticket} of session {session}."));
        if *quorum > 1 {
            lines.push(format!("It takes {quorum} different people."));
        }
        lines.push("With which arguments is for approvers, and for the operator of the session.".to_owned());
        lines.extend(wrapped(&format!("The agent wants to run {tool}.")));
        let text = Rendering(lines.into_iter().map(|line| line + "\n").collect());
        Self { arguments: None, text, ..self }
    }

    /// For what an answer is to be used again: what is asked here, for `seat` and those below it, whatever the arguments `free` are,
    /// before `until`.
    #[must_use]
    pub fn always(&self, seat: Seat, free: Vec<String>, until: Timestamp) -> Always {
        let deferred = self.verdict.reasons.iter().filter(|reason| reason.decision == Decision::Defer);
        let reasons = deferred.map(|reason| reason.code.clone()).collect();
        let (tool, registration, effects) = (self.tool.clone(), self.registration, self.verdict.effects);
        Always { seat, tool, registration, free, reasons, effects, until }
    }
}

/// A text that fits a screen and holds no hidden character.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rendering(#[serde(deserialize_with = "shown")] String);

impl Rendering {
    /// The text: some lines, each ended.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its SHA-256, that an answer is bound to.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(self.0.as_bytes())
    }

    fn of(asked: &Recorded, tool: &Tool, arguments: &Arguments) -> Self {
        let Recorded { ticket, session, workspace, verdict, quorum, files, .. } = asked;
        let name = &tool.registration().name;
        let (deciding, ordinary): (Vec<_>, Vec<_>) = arguments.iter().partition(|(name, _)| tool.decides(name));
        let effects = verdict.effects.components();
        let effects: Vec<String> = effects.iter().map(|(name, value)| format!("{name} {}", value.value())).collect();
        let mut lines = wrapped(&format!("Ticket {ticket} of session {session}."));
        lines.extend(wrapped(&short(&format!("It was deferred: {}.", verdict.why()), 2 * COLUMNS - 4)));
        if *quorum > 1 {
            lines.push(format!("It takes {quorum} different people."));
        }
        let folder = wrapped(&format!("In the folder {}.", quoted(workspace.as_str(), FOLDER)));
        let last = wrapped(&format!("The agent wants to run {name}."));
        // One for what decides, and one for the effects.
        let room = LINES.saturating_sub(lines.len() + folder.len() + last.len() + 2);
        let changes = changed(&files.changes, room).len().min(CHANGE_LINES);
        let room = ARGUMENT_LINES.min(room.saturating_sub(changes));
        let notes = files.notes.iter().take(FILE_LINES).map(|said| format!("  {}", short(said, COLUMNS - 2)));
        let notes: Vec<String> = notes.collect();
        let room = room.saturating_sub(notes.len());
        let deciding = listed(tool, &deciding, DECIDING, room);
        lines.extend(listed(tool, &ordinary, ORDINARY, room.saturating_sub(deciding.len())));
        lines.extend(folder);
        if !deciding.is_empty() {
            lines.push("What decides:".to_owned());
            lines.extend(deciding);
        }
        lines.extend(notes);
        // What is written to a file has all the room that is left.
        let room = LINES.saturating_sub(lines.len() + last.len() + 1);
        lines.extend(changed(&files.changes, room));
        lines.push(format!("Effects: {}", effects.join(", ")));
        lines.extend(last);
        Self(lines.into_iter().map(|line| line + "\n").collect())
    }
}

/// Takes a text only if it could have been rendered: what a stranger sends reaches a terminal through this.
fn shown<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_legible = text.split('\n').all(|line| legible::columns(line) <= COLUMNS && legible::line(line) == line);
    if text.matches('\n').count() <= LINES && is_legible {
        Ok(text)
    } else {
        Err(serde::de::Error::custom("a question that does not fit a terminal"))
    }
}

/// Arguments in at most `most` lines, each at most `columns` wide; of those for which there is no room, how long they are.
fn listed(tool: &Tool, arguments: &[(&str, &Value)], columns: usize, most: usize) -> Vec<String> {
    let (mut lines, mut left) = (Vec::new(), Vec::new());
    for (name, value) in arguments {
        let text = wrapped(&format!("  {}: {}", named(name), value_of(tool, name, value, columns)));
        // One line is kept for those that are left out.
        if left.is_empty() && lines.len() + text.len() < most {
            lines.extend(text);
        } else {
            left.push((*name, *value));
        }
    }
    if !left.is_empty() {
        let whole = cbor::to_vec(&left);
        lines.push(format!("  and {} more: {}", left.len(), sized(whole.len(), &whole)));
    }
    lines
}

/// What a call makes of files, in at most `most` lines: what of each, and how it differs, as far as there is room.
fn changed(changes: &[Change], most: usize) -> Vec<String> {
    // Of those for which there is no line it is said how many they are.
    let fit = if changes.len() > most { most.saturating_sub(1) } else { changes.len() };
    let mut lines = Vec::new();
    for (at, change) in changes.iter().take(fit).enumerate() {
        // A line each is kept for the files behind it.
        let room = most.saturating_sub(lines.len() + changes.len() - at);
        lines.push(short(&format!("  {} {}", quoted(&change.path, COLUMNS / 2), becomes(change)), COLUMNS));
        lines.extend(change.makes.difference.shown(room).into_iter().map(|line| format!("  {line}")));
    }
    if fit < changes.len() && most > 0 {
        lines.push(format!("  and {} more files", changes.len() - fit));
    }
    lines
}

/// What becomes of a file, in words.
fn becomes(Change { makes: Makes { content, difference, form }, moved, .. }: &Change) -> String {
    match (form, content, difference.is_empty()) {
        (Some(Form::Link(to)), ..) => format!("becomes a link to {}", quoted(to, COLUMNS / 4)),
        (Some(Form::Folder(mode)), ..) => format!("is a folder with the permissions {mode:o}"),
        (_, None, _) => "is removed".to_owned(),
        (Some(Form::File(mode)), Some(_), true) => {
            format!("is written, with the permissions {mode:o}; not shown as text")
        }
        (Some(Form::File(mode)), Some(_), false) => format!("changes, to the permissions {mode:o}:"),
        (None, Some(_), empty) if moved.is_some() => {
            let from = quoted(moved.as_deref().unwrap_or_default(), COLUMNS / 4);
            format!("is {from}, moved there{}", if empty { "; not shown as text" } else { ":" })
        }
        (None, Some(_), true) => "is written; how it differs cannot be shown as text".to_owned(),
        (None, Some(_), false) => "changes:".to_owned(),
    }
}

/// The name of an argument, which a model may have made up.
fn named(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.is_empty() && name.len() <= NAME && name.chars().all(is_plain) {
        name.to_owned()
    } else {
        quoted(name, NAME)
    }
}

/// A value, in at most `columns` or a little more for what is said of it.
fn value_of(tool: &Tool, name: &str, value: &Value, columns: usize) -> String {
    let is_path = tool.registration().paths.iter().any(|path| path == name);
    match value {
        Value::Text(path) if is_path && paths::resolved(path) != *path => {
            let written = sized(path.len(), path.as_bytes());
            format!("{} (written otherwise: {written})", quoted(&paths::resolved(path), columns))
        }
        Value::Text(text) => quoted(text, columns),
        other => {
            let json = legible::line(&serde_json::to_string(other).unwrap_or_default());
            let whole = cbor::to_vec(other);
            cut(&json, columns, |head, tail| format!("{head} … {} … {tail}", sized(json.len(), &whole)))
        }
    }
}

/// A text in quotation marks, cut outside of them: nothing within can pass for what is said of it.
fn quoted(text: &str, columns: usize) -> String {
    let mark = |text: &str| legible::line(&serde_json::to_string(text).unwrap_or_default());
    if legible::columns(&mark(text)) <= columns {
        return mark(text);
    }
    // What is escaped is up to twelve times as wide: it is taken character by character.
    let (front, back) = (columns * 2 / 5, columns / 5);
    let head: String = fitting(text.chars(), front, mark).collect();
    let tail: Vec<char> = fitting(text.chars().rev(), back, mark).collect();
    let tail: String = tail.into_iter().rev().collect();
    format!("{} … {} … {}", mark(&head), sized(text.len(), text.as_bytes()), mark(&tail))
}

/// As many of `chars` as are at most `columns` wide once each is written by `mark`.
fn fitting(
    chars: impl Iterator<Item = char>,
    columns: usize,
    mark: impl Fn(&str) -> String,
) -> impl Iterator<Item = char> {
    let mut used = 0_usize;
    chars.take_while(move |c| {
        used = used.saturating_add(legible::columns(&mark(c.encode_utf8(&mut [0; 4]))).saturating_sub(2));
        used <= columns
    })
}

fn sized(bytes: usize, whole: &[u8]) -> String {
    let digest: String = Digest::of(whole).to_string().chars().take(32).collect();
    format!("{bytes} bytes, sha256 {digest}")
}

/// One line of plain words, cut in the middle.
fn short(text: &str, columns: usize) -> String {
    cut(&legible::line(text), columns, |head, tail| format!("{head} … {tail}"))
}

/// `text`, or its beginning and end put together by `with`.
fn cut(text: &str, columns: usize, with: impl Fn(&str, &str) -> String) -> String {
    if legible::columns(text) <= columns {
        return text.to_owned();
    }
    let (front, back) = (columns * 2 / 5, columns / 5);
    let head: String = fitting(text.chars(), front, |c| format!("\"{c}\"")).collect();
    let tail: Vec<char> = fitting(text.chars().rev(), back, |c| format!("\"{c}\"")).collect();
    with(&head, &tail.into_iter().rev().collect::<String>())
}

/// The lines that `text` takes. One that goes on says so where nothing that is quoted can stand.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0_usize;
    for c in text.chars() {
        let wide = if c.is_ascii() { 1 } else { 2 };
        if used + wide > COLUMNS {
            lines.push("  | ".to_owned());
            used = 4;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}
