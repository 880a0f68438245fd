//! What a session has changed in its files, worked out from the record: for each file the difference between what it held when the session
//! first wrote it and what the session left. Where others have changed a file between two writes, it has a difference for each.

use std::collections::BTreeMap;

use ephor_base::{Digest, Seq};
use ephor_chain::Stored;
use ephor_edit::{Diff, Text};
use serde::{Deserialize, Serialize};

use crate::written::{Begun, Ended, Recorded, Step};

/// The most bytes of a difference that are shown.
const MOST_SHOWN: usize = 1 << 20;

/// The changes of one file between which nothing else has changed it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
pub(crate) struct Changed {
    /// From the workspace on.
    pub(crate) path: String,
    /// The first write.
    pub(crate) first: Seq,
    /// The last one.
    pub(crate) last: Seq,
    /// The SHA-256 of what it held before; none if there was no file.
    pub(crate) before: Option<Digest>,
    /// The SHA-256 of what it held afterwards; none if there was none.
    pub(crate) after: Option<Digest>,
    /// Writes that have no known end.
    pub(crate) uncertain: Vec<Seq>,
    /// How it differs.
    pub(crate) difference: Shown,
}

/// How a file differs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shown {
    /// As a unified patch.
    Patch(String),
    /// One of the two is not text.
    NotText,
    /// One of the two, or the difference, is too large.
    TooLarge,
    /// What it held before, or afterwards, was not kept.
    NotKept,
}

impl Changed {
    /// About how many bytes it takes to say it.
    pub(crate) const fn bytes(&self) -> usize {
        let shown = match &self.difference {
            Shown::Patch(patch) => patch.len(),
            Shown::NotText | Shown::TooLarge | Shown::NotKept => 0,
        };
        shown.saturating_add(self.path.len()).saturating_add(1024)
    }
}

/// The changes of a session, as they stand on the record.
#[derive(Default)]
pub(crate) struct Changes {
    recorded: Recorded,
    /// In the order of their first writes.
    runs: Vec<Run>,
    /// The run of a file that goes on, by its path.
    current: BTreeMap<String, usize>,
    /// What an intent is to make of files.
    intents: BTreeMap<Seq, Vec<(String, State)>>,
}

/// What a file holds.
#[derive(Clone)]
struct State {
    digest: Option<Digest>,
    /// Its bytes, as far as they are known.
    bytes: Option<Vec<u8>>,
    /// Its permission bits; those of most files where they are not known.
    mode: u32,
}

/// The permission bits of most files.
const MODE: u32 = 0o644;

struct Run {
    path: String,
    first: Seq,
    last: Seq,
    before: State,
    /// What it holds now, or else what it held before a write that is under way or has no known end.
    now: State,
    /// What it may hold instead.
    uncertain: Vec<(Seq, State)>,
}

impl Changes {
    /// Takes in the next entry of the session.
    pub(crate) fn take(&mut self, stored: Stored) {
        match self.recorded.take(stored) {
            Some(Step::Begins(begun)) => self.begins(&begun),
            Some(Step::Ends { intent, ended }) => self.ends(intent, ended),
            None => {}
        }
    }

    fn begins(&mut self, begun: &Begun) {
        for (place, after) in begun.files() {
            let kept = begun.kept.iter().find(|kept| kept.path == place.path).cloned();
            let known = self.run(&place.path).and_then(|run| run.holding(place.content));
            let mode = kept.as_ref().filter(|kept| kept.held.is_some()).map(|kept| kept.mode);
            let mode = mode.or_else(|| known.as_ref().map(|state| state.mode)).unwrap_or(MODE);
            let bytes = kept.and_then(|kept| kept.held);
            let bytes = bytes.or_else(|| known.as_ref().and_then(|state| state.bytes.clone()));
            let held = State { digest: place.content, bytes, mode };
            // Without an end: what it was, unless something else has changed it.
            match (known, self.run(&place.path)) {
                (Some(_), Some(run)) => run.settle(&held),
                _ => {
                    self.current.insert(place.path.clone(), self.runs.len());
                    self.runs.push(Run::new(&place.path, begun.intent, held.clone()));
                }
            }
            let bytes = after.and_then(|after| begun.bytes(after, held.bytes.as_deref()));
            let mode = if place.exists { mode } else { begun.mode(after).unwrap_or(MODE) };
            let state = State { digest: after, bytes, mode };
            if let Some(run) = self.run(&place.path) {
                run.uncertain.push((begun.intent, state.clone()));
            }
            self.intents.entry(begun.intent).or_default().push((place.path.clone(), state));
        }
    }

    fn ends(&mut self, intent: Seq, ended: Ended) {
        for (path, state) in self.intents.remove(&intent).unwrap_or_default() {
            let Some(run) = self.run(&path).filter(|_| ended != Ended::Unknown) else { continue };
            run.uncertain.retain(|(of, _)| *of != intent);
            if ended == Ended::Done {
                (run.now, run.last) = (state, intent);
            }
        }
    }

    fn run(&mut self, path: &str) -> Option<&mut Run> {
        self.current.get(path).copied().and_then(|at| self.runs.get_mut(at))
    }

    /// Each file that is not as it was, in the order in which they were first written. How it differs is worked out when it is its turn.
    pub(crate) fn all(self) -> impl Iterator<Item = impl FnOnce() -> Changed> {
        let is_changed = |run: &Run| run.now.digest != run.before.digest || !run.uncertain.is_empty();
        self.runs.into_iter().filter(is_changed).map(|run| move || run.changed())
    }

    /// Calls of which the record does not say any more what they were about: what was said in the session was erased.
    pub(crate) const fn unreadable(&self) -> u64 {
        self.recorded.unreadable
    }
}

impl Run {
    fn new(path: &str, first: Seq, before: State) -> Self {
        Self { path: path.to_owned(), first, last: first, now: before.clone(), before, uncertain: Vec::new() }
    }

    /// What the session left there that has this digest.
    fn holding(&self, digest: Option<Digest>) -> Option<State> {
        let states = self.uncertain.iter().map(|(_, state)| state).chain([&self.now]);
        states.into_iter().find(|state| state.digest == digest).cloned()
    }

    /// It holds this now, whatever was not known of the writes before.
    fn settle(&mut self, held: &State) {
        if let Some((intent, _)) = self.uncertain.iter().find(|(_, state)| state.digest == held.digest) {
            self.last = self.last.max(*intent);
        }
        (self.now, self.uncertain) = (held.clone(), Vec::new());
    }

    fn changed(self) -> Changed {
        let Self { path, first, last, before, mut now, mut uncertain } = self;
        let seqs = uncertain.iter().map(|(seq, _)| *seq).collect();
        // What may have been done last is what is shown.
        if let Some((_, state)) = uncertain.pop() {
            now = state;
        }
        let difference = difference(&path, &before, &now);
        Changed { path, first, last, before: before.digest, after: now.digest, uncertain: seqs, difference }
    }
}

fn difference(path: &str, before: &State, after: &State) -> Shown {
    let mode = if before.digest.is_some() { before.mode } else { after.mode };
    let is_known = |state: &State| state.bytes.is_some() || state.digest.is_none();
    if !is_known(before) || !is_known(after) {
        return Shown::NotKept;
    }
    let text =
        |state: &'_ State| state.bytes.as_deref().map(str::from_utf8).transpose().map(|text| text.map(str::to_owned));
    let (Ok(before), Ok(after)) = (text(before), text(after)) else { return Shown::NotText };
    let (before, after) = (before.as_deref().map(Text::new).transpose(), after.as_deref().map(Text::new).transpose());
    let (Ok(before), Ok(after)) = (before, after) else { return Shown::TooLarge };
    let patch = Diff::between(before, after).to_patch(path, mode);
    if patch.len() > MOST_SHOWN { Shown::TooLarge } else { Shown::Patch(patch) }
}
