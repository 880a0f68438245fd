//! What a session has done to files, read off its record: each call with what it replaces, and how it ended.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use ephor_base::{ActionKind, Arguments, CallId, Decision, Digest, Form, Kept, Located, Place, Seq, arguments::Value};
use ephor_chain::{Private, Stored};
use ephor_record::{Content, Fact};

/// The tool that writes, and that puts back what was replaced.
pub(crate) const WRITES: &str = "fs.write";

/// Takes in the entries of one session, in their order.
#[derive(Default)]
pub(crate) struct Recorded {
    /// The calls that were permitted and have no intent yet: tool, arguments, files.
    calls: BTreeMap<CallId, (String, Arguments, Vec<Located>)>,
    /// The intents that have no outcome yet.
    open: Vec<Seq>,
    /// Permitted calls of tools whose content cannot be read.
    pub(crate) unreadable: u64,
}

/// Something that happened to files.
pub(crate) enum Step {
    /// A call begins that may replace files.
    Begins(Begun),
    /// It has ended.
    Ends {
        /// Its intent.
        intent: Seq,
        /// How.
        ended: Ended,
    },
}

/// A call that begins.
pub(crate) struct Begun {
    pub(crate) intent: Seq,
    pub(crate) tool: String,
    pub(crate) arguments: Arguments,
    /// What it replaces, as far as that was kept.
    pub(crate) kept: Vec<Kept>,
    places: Vec<Place>,
}

/// What became of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    Done,
    /// Nothing was written.
    Undone,
    /// It is not known.
    Unknown,
}

impl Recorded {
    /// What the next entry says of files.
    pub(crate) fn take(&mut self, stored: Stored) -> Option<Step> {
        let (seq, call) = (stored.entry.seq, stored.entry.subject.call);
        match (stored.entry.fact, stored.content, call) {
            (Fact::Verdict { target, verdict, .. }, Private::Open(Content::Call { arguments, files }), Some(call))
                if verdict.decision == Decision::Permit && replaces(&target, &files) =>
            {
                self.calls.insert(call, (target, arguments, files));
                None
            }
            (Fact::Verdict { action: ActionKind::Tool, verdict, .. }, content, Some(_))
                if verdict.decision == Decision::Permit && !matches!(content, Private::Open(_)) =>
            {
                self.unreadable = self.unreadable.saturating_add(1);
                None
            }
            (Fact::Intent { .. }, content, Some(call)) => {
                let (tool, arguments, files) = self.calls.remove(&call)?;
                let kept = match content {
                    Private::Open(Content::Kept(kept)) => kept,
                    _ => Vec::new(),
                };
                let places = files.into_iter().filter_map(|file| file.leads.place().cloned());
                self.open.push(seq);
                Some(Step::Begins(Begun { intent: seq, tool, arguments, kept, places: places.collect() }))
            }
            (Fact::Outcome { intent, end, .. }, _, _) => {
                let at = self.open.iter().position(|open| *open == intent)?;
                self.open.swap_remove(at);
                Some(Step::Ends { intent, ended: Ended::of(&end) })
            }
            _ => None,
        }
    }
}

/// Whether a call may replace files: its driver says what it makes of one, or it is a write of a version that did not say.
fn replaces(target: &str, files: &[Located]) -> bool {
    let makes = |file: &Located| file.leads.place().is_some_and(|place| place.makes.is_some());
    target == WRITES || files.iter().any(makes)
}

impl Begun {
    /// Each file that it replaces, and what that holds afterwards; none if it is gone.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Place, Option<Digest>)> {
        self.places.iter().filter_map(|place| match &place.makes {
            Some(makes) => Some((place, makes.content)),
            None => (self.tool == WRITES).then(|| (place, content(&self.arguments).map(|bytes| Digest::of(&bytes)))),
        })
    }

    /// The permission bits of a file that it makes with this digest, if that is known.
    pub(crate) fn mode(&self, made: Option<Digest>) -> Option<u32> {
        let form = self.places.iter().filter_map(|place| place.makes.as_ref()).find_map(|makes| match makes.form {
            Some(Form::File(mode)) if makes.content == made => Some(mode),
            _ => None,
        });
        let source = self.kept.iter().find(|kept| kept.held.is_some() && kept.held.as_deref().map(Digest::of) == made);
        let said = || match self.arguments.value("mode") {
            Some(Value::Integer(mode)) => u32::try_from(*mode).ok(),
            _ => None,
        };
        form.or_else(|| source.map(|kept| kept.mode)).or_else(said)
    }

    /// The bytes that a file holds afterwards which is to have the digest `after`, as far as the record has them.
    pub(crate) fn bytes(&self, after: Digest, before: Option<&[u8]>) -> Option<Vec<u8>> {
        let moved = self.kept.iter().find_map(|kept| kept.held.as_deref().filter(|held| Digest::of(held) == after));
        let made = || ephor_sandbox::made(&self.tool, &self.arguments, before).flatten();
        moved.map(<[u8]>::to_vec).or_else(made).filter(|bytes| Digest::of(bytes) == after)
    }
}

impl Ended {
    /// By the word on the record.
    fn of(end: &str) -> Self {
        match end {
            "done" => Self::Done,
            "tool_error" | "workspace" => Self::Undone,
            _ => Self::Unknown,
        }
    }
}

/// The bytes that a write puts into its file; none if it removes it.
fn content(arguments: &Arguments) -> Option<Vec<u8>> {
    let text = arguments.text("content")?;
    match arguments.text("encoding") {
        Some("base64") => STANDARD.decode(text).ok(),
        _ => Some(text.as_bytes().to_vec()),
    }
}
