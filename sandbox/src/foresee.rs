//! What a call makes of the files that it names, worked out before it is judged: from its arguments, and from what they hold.
//!
//! So a person is shown the very content that will be written, an approval signs its digest, and the record knows what each file became.
//! The guest works it out for itself when it runs, and the host puts in place only what was judged. For an edit both do it with the same
//! pure crate; binding an approval to the digest of the file alone would not show what becomes of it.

use crate::builtin::{self, Making};
use crate::locate::{Held, plain, shown};
use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_base::{Arguments, Difference, Digest, Makes, arguments::Value, legible};
use ephor_edit::{Diff, Look, Patch, Replacement, Replacements, Rows, Text};
use std::borrow::Cow;

/// What a file holds; none if there is none.
type Bytes<'a> = Option<&'a [u8]>;

/// Says of each place in `held`, which goes with the argument beside it, what a call of the built-in tool `tool` makes of it. Where that
/// cannot be said, because the tool will refuse or the file is too large, it stays unsaid.
pub fn foresee(tool: &str, arguments: &Arguments, held: &mut [(&str, &mut Held)]) {
    match builtin::making(tool) {
        Making::Nothing => {}
        Making::Writes => each(held, "path", |_| written(arguments)),
        Making::Removes => each(held, "path", |held| held.place.exists.then_some(None)),
        Making::Moves => moved(held),
        Making::Edits => {
            each(held, "path", |held| edited(arguments, held.content.as_deref()).filter(|_| !is_unseen(held)))
        }
    }
}

/// What a call of the built-in tool `tool` makes of a file that holds `old`, or of none: nothing, if it removes it. Unsaid where the call
/// would be refused, or the tool does not work by content.
#[must_use]
pub fn made(tool: &str, arguments: &Arguments, old: Option<&[u8]>) -> Option<Option<Vec<u8>>> {
    match builtin::making(tool) {
        Making::Nothing | Making::Moves => None,
        Making::Removes => Some(None),
        Making::Writes => written(arguments),
        Making::Edits => edited(arguments, old),
    }
}

/// Refuses a place that was reached through a symbolic link, where the tool moves or removes what it names: of a link, the file behind it
/// is hardly meant, and the link itself is nothing that was judged. So too where the call says what it expects there: another file
/// may hold the same.
pub(crate) fn unlinked(tool: &str, arguments: &Arguments, written: &str, held: Held) -> Result<Held, String> {
    let is_exact = arguments.value("expected").is_some();
    let follows = !matches!(builtin::making(tool), Making::Moves | Making::Removes) && !is_exact;
    if follows || plain(written) == held.place.path {
        return Ok(held);
    }
    Err(format!("`{}` goes through a symbolic link, and `{tool}` follows none; name the file itself", shown(written)))
}

/// Notes what becomes of the file that an argument names. Nothing is said of a folder.
fn each(held: &mut [(&str, &mut Held)], argument: &str, made: impl Fn(&Held) -> Option<Option<Vec<u8>>>) {
    let is_file = |held: &Held| !held.place.exists || held.place.content.is_some();
    for (_, held) in held.iter_mut().filter(|(name, held)| *name == argument && is_file(held)) {
        let Some(new) = made(held) else { continue };
        let difference = difference(held, new.as_deref());
        held.place.makes = Some(Makes { content: new.as_deref().map(Digest::of), difference, form: None });
    }
}

/// What `fs.move` makes of both names: the one is gone, and the other holds the same.
fn moved(held: &mut [(&str, &mut Held)]) {
    let from = held.iter().find(|(name, held)| *name == "from" && held.place.content.is_some());
    let from = from.map(|(_, held)| (held.place.content, held.content.clone()));
    let is_free = held.iter().any(|(name, held)| *name == "to" && !held.place.exists);
    let Some((content, bytes)) = from.filter(|_| is_free) else { return };
    for (name, held) in held {
        let shown = bytes.as_deref().filter(|_| *name == "to");
        let difference = shown.map(|bytes| difference(held, Some(bytes))).unwrap_or_default();
        held.place.makes = Some(Makes { content: content.filter(|_| *name == "to"), difference, form: None });
    }
}

/// Whether there is a file, and what it holds is too much to be held in memory.
fn is_unseen(held: &Held) -> bool {
    held.place.exists && held.content.is_none()
}

/// What `fs.write` makes of a file, whatever it holds.
fn written(arguments: &Arguments) -> Option<Option<Vec<u8>>> {
    match (arguments.value("content")?, arguments.text("encoding")) {
        (Value::Null, _) => Some(None),
        (Value::Text(content), None | Some("utf-8")) => Some(Some(content.clone().into_bytes())),
        (Value::Text(content), Some("base64")) => STANDARD.decode(content).ok().map(Some),
        _ => None,
    }
}

/// What `fs.edit` makes of a file.
fn edited(arguments: &Arguments, old: Bytes<'_>) -> Option<Option<Vec<u8>>> {
    let old = texts(old)?;
    let new = match (arguments.value("edits"), arguments.text("patch")) {
        (Some(Value::List(edits)), None) => {
            let edits = edits.iter().map(replacement).collect::<Option<Vec<_>>>()?;
            Some(Replacements::new(edits).ok()?.apply(old?).ok()?)
        }
        (None, Some(patch)) => {
            let patch = Patch::parse(Text::new(patch).ok()?).ok()?;
            let [section] = patch.sections() else { return None };
            section.apply(old).ok()?
        }
        _ => return None,
    };
    Some(new.map(String::into_bytes))
}

fn replacement(edit: &Value) -> Option<Replacement> {
    let Value::Object(edit) = edit else { return None };
    let text = |key: &str| match edit.get(key) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    let all = match edit.get("all") {
        None => false,
        Some(Value::Bool(all)) => *all,
        Some(_) => return None,
    };
    Replacement::new(text("old")?, text("new")?, all).ok()
}

/// As a person is shown it. What is too large to be compared is shown as what it becomes; if it is removed, as what it was.
pub(crate) fn difference(held: &Held, new: Bytes<'_>) -> Difference {
    const LOOK: Look =
        Look { columns: Difference::COLUMNS, lines: Difference::LINES, context: 1, spell: legible::line };
    let (was, is) = (held.content.as_deref().map(spelt), new.map(spelt));
    let (old, new) = (was.as_deref().map(Text::new).transpose(), is.as_deref().map(Text::new).transpose());
    let rows = match (old, new) {
        (Ok(old), Ok(new)) if !is_unseen(held) => Diff::between(old, new).shown(&LOOK),
        _ => {
            let (sign, text) = is.map_or(('-', was), |is| ('+', Some(is)));
            Rows::of_all(sign, text.as_deref().unwrap_or_default(), &LOOK)
        }
    };
    Difference::new(rows.head, rows.left as u64, rows.tail).unwrap_or_default()
}

/// Bytes as text: those that are no UTF-8 as `\xff`.
fn spelt(bytes: &[u8]) -> Cow<'_, str> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => bytes
            .utf8_chunks()
            .fold(String::new(), |mut text, chunk| {
                text.push_str(chunk.valid());
                chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
                text
            })
            .into(),
    }
}

/// The same as text; none if it is not UTF-8 or too large.
fn texts(bytes: Bytes<'_>) -> Option<Option<Text<'_>>> {
    match bytes {
        Some(bytes) => Text::new(str::from_utf8(bytes).ok()?).ok().map(Some),
        None => Some(None),
    }
}
