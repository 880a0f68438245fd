//! What it takes to put back what a session has written: worked out from the record, where each write stands with what it replaced.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_agents::{Calls, Chain};
use ephor_base::{Arguments, Digest, Kept, Seq, ToolName};
use ephor_chain::Stored;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::written::{Begun, Ended, Recorded, Step, WRITES};

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
    /// Which files belong together: what took one of them away made the others, as a move does.
    pub(crate) chain: usize,
    /// Whether it is put back only once those of its chain are back that were taken away.
    pub(crate) then: bool,
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
    /// Each file, and the call that puts it back, by chains: in each first what is not [`PutBack::then`].
    pub(crate) chains: Vec<Vec<(PutBack, Arguments)>>,
    pub(crate) left: Vec<Left>,
}

/// The writes of a session from some entry on, as they stand on the record.
pub(crate) struct Writes {
    from: Seq,
    recorded: Recorded,
    /// By the file, each in the order of the record.
    files: BTreeMap<String, Vec<Write>>,
    /// Which files an intent is about.
    intents: BTreeMap<Seq, Vec<String>>,
    /// What some call took away while it made another file: that may hold the only copy.
    taken: BTreeSet<String>,
}

/// One write of one file.
struct Write {
    intent: Seq,
    /// What the file was before, of the first write alone; none where that was not kept.
    before: Option<Kept>,
    /// What it held before; none if there was no file.
    held: Option<Digest>,
    /// What it held afterwards; none if it was removed.
    after: Option<Digest>,
    ended: Ended,
}

impl Writes {
    /// Those from the entry `from` on.
    pub(crate) fn from(from: Seq) -> Self {
        Self {
            from,
            recorded: Recorded::default(),
            files: BTreeMap::new(),
            intents: BTreeMap::new(),
            taken: BTreeSet::new(),
        }
    }

    /// Takes in the next entry of the session.
    pub(crate) fn take(&mut self, stored: Stored) {
        match self.recorded.take(stored) {
            Some(Step::Begins(begun)) if begun.intent >= self.from => self.begins(&begun),
            Some(Step::Ends { intent, ended }) => {
                for path in self.intents.get(&intent).into_iter().flatten() {
                    let mut writes = self.files.get_mut(path).into_iter().flatten();
                    if let Some(write) = writes.find(|write| write.intent == intent) {
                        write.ended = ended;
                    }
                }
            }
            _ => {}
        }
    }

    fn begins(&mut self, begun: &Begun) {
        let Begun { intent, kept, .. } = begun;
        for (place, after) in begun.files() {
            let writes = self.files.entry(place.path.clone()).or_default();
            let is_first = writes.iter().all(|write| write.ended == Ended::Undone);
            let before = kept.iter().find(|kept| kept.path == place.path).filter(|_| is_first).cloned();
            writes.push(Write { intent: *intent, before, held: place.content, after, ended: Ended::Unknown });
            self.intents.entry(*intent).or_default().push(place.path.clone());
        }
        let taken = begun.files().filter(|(place, after)| place.exists && after.is_none());
        self.taken.extend(taken.map(|(place, _)| place.path.clone()));
    }

    /// What it takes to have each file as it was, what was written last first: a folder may have taken the place of a file.
    ///
    /// What a call made while it took other files away may be the only copy of these. So they belong to one chain, in which nothing is
    /// replaced or removed before all that was taken away is back.
    pub(crate) fn undo(mut self) -> Undo {
        self.files.values_mut().for_each(|writes| writes.retain(|write| write.ended != Ended::Undone));
        let mut undo = Undo::default();
        for paths in self.chains() {
            let (files, left) = self.chain(&paths);
            undo.left.extend(left);
            undo.chains.extend(Some(files).filter(|files| !files.is_empty()));
        }
        undo.chains.sort_by_key(|files| files.iter().map(|(file, _)| Reverse(file.last)).min());
        for (number, files) in undo.chains.iter_mut().enumerate() {
            files.iter_mut().for_each(|(file, _)| file.chain = number);
        }
        undo
    }

    /// What it takes to have the files of one chain as they were, and what of them stays.
    fn chain(&self, paths: &BTreeSet<String>) -> (Vec<(PutBack, Arguments)>, Vec<Left>) {
        let (mut files, mut left) = (Vec::new(), Vec::new());
        for path in paths {
            let then = !self.taken.contains(path);
            match put_back(path, self.files.get(path).map(Vec::as_slice).unwrap_or_default()) {
                Ok(Some((file, call))) => files.push((PutBack { then, ..file }, call)),
                Ok(None) => {}
                Err(why) => left.push(Left { path: path.clone(), why }),
            }
        }
        let lost = left.iter().map(|left| &left.path).find(|path| self.taken.contains(*path)).cloned();
        if let Some(lost) = lost {
            let why = format!("it may be all that there is of `{lost}`, which cannot be put back");
            let then = files.extract_if(.., |(file, _)| file.then);
            left.extend(then.map(|(file, _)| Left { path: file.path, why: why.clone() }));
        }
        files.sort_by_key(|(file, _)| (file.then, Reverse(file.last)));
        (files, left)
    }

    /// The files that belong together.
    fn chains(&self) -> Vec<BTreeSet<String>> {
        let mut chains: Vec<_> = self.files.keys().map(|path| BTreeSet::from([path.clone()])).collect();
        for paths in self.intents.values().filter(|paths| paths.iter().any(|path| self.taken.contains(path))) {
            let touched = chains.extract_if(.., |chain| paths.iter().any(|path| chain.contains(path)));
            let together = touched.flatten().collect();
            chains.push(together);
        }
        chains
    }
}

/// The call that undoes these writes of one file; none if there is nothing to undo.
fn put_back(path: &str, writes: &[Write]) -> Result<Option<(PutBack, Arguments)>, String> {
    let (Some(first), Some(last)) = (writes.first(), writes.last()) else { return Ok(None) };
    let Some(kept) = &first.before else {
        return Err(format!("what entry {} replaced was not kept, so it cannot be put back", first.intent));
    };
    // What the file may hold now: what was written last, or what was there before, where it is not known whether it was.
    let mut may_hold = BTreeSet::from([first.held]);
    for write in writes {
        if !may_hold.contains(&write.held) {
            return Err(format!(
                "something else changed it before entry {0}; `--to {0}` undoes what was written from there on",
                write.intent
            ));
        }
        may_hold = match write.ended {
            Ended::Done => BTreeSet::from([write.after]),
            Ended::Undone | Ended::Unknown => BTreeSet::from([write.held, write.after]),
        };
    }
    if may_hold == BTreeSet::from([first.held]) {
        return Ok(None);
    }
    may_hold.insert(first.held);
    let bytes = kept.held.as_ref().map(|held| held.len() as u64);
    let file = PutBack { path: path.to_owned(), bytes, first: first.intent, last: last.intent, chain: 0, then: false };
    Ok(Some((file, arguments(path, kept, &may_hold)?)))
}

/// The arguments of the write that puts it back, if the file holds one of these now.
fn arguments(path: &str, kept: &Kept, expected: &BTreeSet<Option<Digest>>) -> Result<Arguments, String> {
    let digest = |digest: &Option<Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
    let expected: Vec<String> = expected.iter().map(digest).collect();
    let mode = kept.mode;
    let value = match kept.held.as_deref().map(|held| str::from_utf8(held).map_err(|_| STANDARD.encode(held))) {
        None => json!({ "path": path, "content": null, "expected": expected }),
        Some(Ok(text)) => json!({ "path": path, "content": text, "expected": expected, "mode": mode }),
        Some(Err(bytes)) => {
            json!({ "path": path, "content": bytes, "encoding": "base64", "expected": expected, "mode": mode })
        }
    };
    Arguments::parse(&value.to_string()).map_err(|error| error.to_string())
}

impl Undo {
    /// What is put back, in order, and the calls that do it.
    pub(crate) fn calls(chains: Vec<Vec<(PutBack, Arguments)>>) -> anyhow::Result<(Vec<PutBack>, Calls)> {
        let tool: ToolName = WRITES.parse()?;
        let (mut files, mut calls) = (Vec::new(), Calls::new());
        for chain in chains {
            let mut called = Chain::default();
            for (file, arguments) in chain {
                let into = if file.then { &mut called.then } else { &mut called.first };
                into.push((tool.clone(), arguments));
                files.push(file);
            }
            calls.push(called);
        }
        Ok((files, calls))
    }
}
