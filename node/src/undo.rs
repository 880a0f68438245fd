//! What it takes to put back what a session has written: worked out from the record, where each write stands with what it replaced.

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_base::{Arguments, CallId, Digest, Kept, Leads, Located, Seq, ToolName};
use ephor_chain::{Fact, Private, Stored, record::Content};
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The tool that writes, and that puts back what was written over.
pub(crate) const WRITES: &str = "fs.write";

/// A file that is put back.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct PutBack {
    /// From the workspace on.
    pub(crate) path: String,
    /// The bytes that it held; none if there was no file, so that what was written is removed.
    pub(crate) bytes: Option<u64>,
    /// The first write that is undone.
    pub(crate) first: Seq,
    /// The last one.
    pub(crate) last: Seq,
}

/// A file that stays as it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Left {
    /// From the workspace on.
    pub(crate) path: String,
    /// Why, and what to do.
    pub(crate) why: String,
}

/// What undoing comes to.
#[derive(Default, Debug)]
pub(crate) struct Undo {
    /// Each file, and the call that puts it back.
    pub(crate) files: Vec<(PutBack, Arguments)>,
    pub(crate) left: Vec<Left>,
}

/// The writes of a session, as they stand on the record.
#[derive(Default)]
pub(crate) struct Writes {
    /// By the file, each in the order of the record.
    files: BTreeMap<String, Vec<Write>>,
    /// What the calls are that were permitted, and have no intent yet.
    calls: BTreeMap<CallId, (Arguments, Vec<Located>)>,
    /// Which file an intent is about.
    intents: BTreeMap<Seq, String>,
}

/// One write of one file.
struct Write {
    intent: Seq,
    /// What the file held before: the outer `None` where it was not kept.
    before: Option<Option<Vec<u8>>>,
    /// What it held afterwards; none if it was removed.
    after: Option<Digest>,
    /// Whether it is known to have been done.
    done: bool,
}

impl Write {
    fn before_digest(&self) -> Option<Option<Digest>> {
        self.before.as_ref().map(|held| held.as_deref().map(Digest::of))
    }
}

impl Writes {
    /// Takes in the next entry of the session.
    pub(crate) fn take(&mut self, stored: Stored) {
        let (seq, call) = (stored.entry.seq, stored.entry.subject.call);
        match (stored.entry.fact, stored.content, call) {
            (Fact::Verdict { target, .. }, Private::Open(Content::Call { arguments, files }), Some(call))
                if target == WRITES =>
            {
                self.calls.insert(call, (arguments, files));
            }
            (Fact::Intent { .. }, content, Some(call)) => {
                let Some((arguments, files)) = self.calls.remove(&call) else { return };
                let kept = match content {
                    Private::Open(Content::Kept(kept)) => kept,
                    _ => Vec::new(),
                };
                self.begins(seq, &arguments, &files, &kept);
            }
            (Fact::Outcome { intent, end, .. }, _, _) if end == "done" => {
                let writes = self.intents.get(&intent).and_then(|path| self.files.get_mut(path));
                writes.into_iter().flatten().filter(|write| write.intent == intent).for_each(|write| write.done = true);
            }
            _ => {}
        }
    }

    fn begins(&mut self, intent: Seq, arguments: &Arguments, files: &[Located], kept: &[Kept]) {
        for file in files {
            let Leads::To(place) = &file.leads else { continue };
            let before = kept.iter().find(|kept| kept.path == place.path).map(|kept| kept.held.clone());
            let write =
                Write { intent, before, after: content(arguments).map(|bytes| Digest::of(&bytes)), done: false };
            self.files.entry(place.path.clone()).or_default().push(write);
            self.intents.insert(intent, place.path.clone());
        }
    }

    /// What it takes to have each file as it was before the entry `to`.
    pub(crate) fn undo(self, to: Seq) -> Undo {
        let mut undo = Undo::default();
        for (path, writes) in self.files {
            let writes: Vec<Write> = writes.into_iter().filter(|write| write.intent >= to).collect();
            match put_back(&path, &writes) {
                Ok(Some(file)) => undo.files.push(file),
                Ok(None) => {}
                Err(why) => undo.left.push(Left { path, why }),
            }
        }
        undo
    }
}

/// The call that undoes these writes of one file; none if there is nothing to undo.
fn put_back(path: &str, writes: &[Write]) -> Result<Option<(PutBack, Arguments)>, String> {
    let (Some(first), Some(last)) = (writes.first(), writes.last()) else { return Ok(None) };
    let Some(held) = &first.before else {
        return Err(format!(
            "entry {} replaced more than is kept, or was written before anything was; nothing can be put back",
            first.intent
        ));
    };
    // What the file may hold now: what was written last, or what was there before, where nobody knows whether it was.
    let mut may_hold: BTreeSet<Option<Digest>> = BTreeSet::new();
    for (number, write) in writes.iter().enumerate() {
        if let Some(before) = write.before_digest() {
            if number > 0 && !may_hold.contains(&before) {
                return Err(format!(
                    "something else changed it before entry {}; `--to {}` undoes what was written from there on",
                    write.intent, write.intent
                ));
            }
            may_hold = BTreeSet::from([before]);
        }
        if write.done {
            may_hold.clear();
        }
        may_hold.insert(write.after);
    }
    let target = held.as_deref().map(Digest::of);
    if may_hold == BTreeSet::from([target]) {
        return Ok(None);
    }
    may_hold.insert(target);
    let file = PutBack {
        path: path.to_owned(),
        bytes: held.as_ref().map(|held| held.len() as u64),
        first: first.intent,
        last: last.intent,
    };
    Ok(Some((file, arguments(path, held.as_deref(), &may_hold)?)))
}

/// The arguments of the write that puts `held` back, if the file holds one of these now.
fn arguments(path: &str, held: Option<&[u8]>, expected: &BTreeSet<Option<Digest>>) -> Result<Arguments, String> {
    let expected: Vec<String> =
        expected.iter().map(|digest| digest.map_or_else(String::new, |it| it.to_string())).collect();
    let value = match held.map(std::str::from_utf8) {
        None => json!({ "path": path, "content": null, "expected": expected }),
        Some(Ok(text)) => json!({ "path": path, "content": text, "expected": expected }),
        Some(Err(_)) => {
            let content = STANDARD.encode(held.unwrap_or_default());
            json!({ "path": path, "content": content, "encoding": "base64", "expected": expected })
        }
    };
    Arguments::parse(&value.to_string()).map_err(|error| error.to_string())
}

/// The bytes that a write puts into its file; none if it removes it.
fn content(arguments: &Arguments) -> Option<Vec<u8>> {
    let text = arguments.text("content")?;
    match arguments.text("encoding") {
        Some("base64") => STANDARD.decode(text).ok(),
        _ => Some(text.as_bytes().to_vec()),
    }
}

/// The name of the tool that writes.
pub(crate) fn tool() -> anyhow::Result<ToolName> {
    Ok(WRITES.parse()?)
}
