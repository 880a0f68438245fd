//! An answer in the making. Every grammar writes it through these few functions, which keep its bounds.

use std::collections::BTreeSet;

use ephor_base::ToolUse;

use super::{Broken, Limits};
use crate::{Answer, Complaint, End, Event, Grammar, Part, Reported, State, request::tool_of};

/// An answer in the making.
#[derive(Clone, Debug)]
pub(super) struct Draft {
    pub(super) limits: Limits,
    turn: u64,
    pub(super) parts: Vec<Part>,
    /// Where in `parts` each call stands, and whether it was announced.
    calls: Vec<(usize, bool)>,
    pub(super) end: Option<End>,
    /// The model refused in words of its own.
    refused: bool,
    reported: Reported,
    pub(super) written: usize,
    /// Bytes of the provider's state, which no model wrote.
    kept: usize,
    /// Nothing more comes.
    pub(super) done: bool,
    pub(super) news: Vec<Event>,
}

impl Draft {
    pub(super) const fn new(limits: Limits, turn: u64) -> Self {
        Self {
            limits,
            turn,
            parts: Vec::new(),
            calls: Vec::new(),
            end: None,
            refused: false,
            reported: Reported { input: None, output: None, cached: None, cache_written: None, reasoning: None },
            written: 0,
            kept: 0,
            done: false,
            news: Vec::new(),
        }
    }

    /// Counts what the model wrote.
    pub(super) const fn wrote(&mut self, bytes: usize) -> Result<(), Broken> {
        let most = self.limits.answer;
        match self.written.checked_add(bytes) {
            Some(written) if written <= most => {
                self.written = written;
                Ok(())
            }
            _ => Err(Broken::AnswerTooLong(most)),
        }
    }

    pub(super) fn text(&mut self, text: String) -> Result<(), Broken> {
        self.wrote(text.len())?;
        if !text.is_empty() {
            match self.parts.last_mut() {
                Some(Part::Text(before)) => before.push_str(&text),
                _ => self.parts.push(Part::Text(text.clone())),
            }
            self.news.push(Event::Text(text));
        }
        Ok(())
    }

    pub(super) fn thinking(&mut self, text: String) -> Result<(), Broken> {
        self.wrote(text.len())?;
        if !text.is_empty() {
            match self.parts.last_mut() {
                Some(Part::Thinking(before)) => before.push_str(&text),
                _ => self.parts.push(Part::Thinking(text.clone())),
            }
            self.news.push(Event::Thinking(text));
        }
        Ok(())
    }

    /// Words of a refusal: they are shown as text.
    pub(super) fn refusal(&mut self, text: String) -> Result<(), Broken> {
        self.refused |= !text.is_empty();
        self.text(text)
    }

    /// What the provider wants back. An object that cannot go back is left out, as it is not whole.
    pub(super) fn state(&mut self, grammar: Grammar, json: impl Into<String>) -> Result<(), Broken> {
        let Ok(state) = State::new(grammar, json) else { return Ok(()) };
        let most = self.limits.event;
        match self.kept.checked_add(state.json().len()) {
            Some(kept) if kept <= most => self.kept = kept,
            _ => return Err(Broken::AnswerTooLong(most)),
        }
        self.parts.push(Part::State(state));
        Ok(())
    }

    /// A call begins; gives its number.
    pub(super) fn call(&mut self, id: String, name: String) -> Result<usize, Broken> {
        if self.calls.len() >= self.limits.calls {
            return Err(Broken::TooManyCalls(self.limits.calls));
        }
        self.wrote(id.len() + name.len())?;
        self.calls.push((self.parts.len(), false));
        self.parts.push(Part::Call(ToolUse { id, name, arguments: String::new() }));
        Ok(self.calls.len() - 1)
    }

    /// The `at`-th call, as far as it came.
    pub(super) fn called(&mut self, at: usize) -> Option<&mut ToolUse> {
        let (part, _) = self.calls.get(at)?;
        if let Some(Part::Call(call)) = self.parts.get_mut(*part) { Some(call) } else { None }
    }

    /// More of the id or the name of a call, before its arguments begin.
    pub(super) fn name(&mut self, at: usize, id: &str, name: &str) -> Result<(), Broken> {
        self.wrote(id.len() + name.len())?;
        if let Some(call) = self.called(at) {
            if call.id.is_empty() {
                call.id.push_str(id);
            }
            // Some servers repeat the name with every piece.
            if name != call.name && call.arguments.is_empty() {
                call.name.push_str(name);
            }
        }
        Ok(())
    }

    /// More of the arguments of a call. Once there are some its name is whole.
    pub(super) fn arguments(&mut self, at: usize, text: &str) -> Result<(), Broken> {
        self.wrote(text.len())?;
        if text.is_empty() {
            return Ok(());
        }
        self.announce(at);
        if let Some(call) = self.called(at) {
            call.arguments.push_str(text);
            self.news.push(Event::Arguments { at, text: text.to_owned() });
        }
        Ok(())
    }

    fn announce(&mut self, at: usize) {
        let Some((_, announced)) = self.calls.get_mut(at) else { return };
        if std::mem::replace(announced, true) {
            return;
        }
        let name = self.called(at).map(|call| tool_of(&call.name)).unwrap_or_default();
        self.news.push(Event::Call { at, name });
    }

    pub(super) fn reported(&mut self, said: Reported) {
        if said != Reported::default() {
            self.reported = self.reported.then(said);
            self.news.push(Event::Reported(self.reported));
        }
    }

    /// What is reported so far.
    pub(super) const fn report(&self) -> Reported {
        self.reported
    }

    /// The provider says how the answer ended. Of several ends the worst counts, since nothing that comes later makes an answer whole; but a failure
    /// takes none back.
    pub(super) fn end(&mut self, end: End) {
        let is_worse = |before: &End| before.rank() < end.rank() && !matches!(end, End::Failed(_));
        if self.end.as_ref().is_none_or(is_worse) {
            self.end = Some(end);
        }
    }

    /// The provider complains instead of going on. That takes no answer back.
    pub(super) fn fail(&mut self, complaint: Complaint) {
        if self.end.is_none() {
            self.end = Some(End::Failed(complaint));
        }
        self.done = true;
    }

    /// Whether anything of an answer came.
    pub(super) const fn has_begun(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Whether the model has said nothing yet, whatever it thought and called.
    pub(super) fn is_silent(&self) -> bool {
        !self.parts.iter().any(|part| matches!(part, Part::Text(_)))
    }

    /// The answer, which ended as `otherwise` says if it does not say so itself.
    pub(super) fn finish(&mut self, otherwise: End, into: &mut Vec<Event>) -> Answer {
        let mut end = self.end.take().unwrap_or(otherwise);
        if self.refused && end == End::Complete {
            end = End::Refused;
        }
        if end == End::Complete {
            (0..self.calls.len()).for_each(|at| self.announce(at));
        }
        into.append(&mut self.news);
        self.settle_calls();
        Answer { parts: std::mem::take(&mut self.parts), end, reported: self.reported }
    }

    /// Gives each call our name of its tool, and an id of its own: a call whose id is missing, or is another's too, could not be answered.
    fn settle_calls(&mut self) {
        let mut ids = BTreeSet::new();
        let turn = self.turn;
        for at in 0..self.calls.len() {
            let Some(call) = self.called(at) else { continue };
            call.name = tool_of(&call.name);
            if call.id.is_empty() || ids.contains(&call.id) {
                call.id = format!("call-{turn}-{at}");
                while ids.contains(&call.id) {
                    call.id.push('-');
                }
            }
            ids.insert(call.id.clone());
        }
    }
}
