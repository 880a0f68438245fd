//! The spans of a session as governance sees them: each read once, when it enters.

use std::sync::Arc;

use ephor_base::{Arguments, Confidentiality, Integrity, Label, Registration, Source};

use crate::{
    datum::Unreadable,
    literals::Literals,
    plan::{Answer, Carried, Records, Sources, Trust},
    registry::Tool,
};

/// All spans of a session, as far as a decision depends on them: what people typed, what tools answered in the turn, and the highest
/// confidentiality. What a person's message said before it was recorded is withdrawn.
#[derive(Clone, Debug, Default)]
pub struct SpanTable {
    entered: usize,
    highest: Option<Confidentiality>,
    /// What people typed, each with the number of its span.
    typed: Vec<Arc<Literals>>,
    numbers: Vec<usize>,
    answers: Vec<Answer>,
}

impl SpanTable {
    /// A turn begins: what tools answered before is no source of it.
    pub fn begin_turn(&mut self) {
        self.answers.clear();
    }

    /// Takes in a span that no tool wrote. Its number is how many entered before it.
    pub fn enter(&mut self, label: Label, text: &str) -> usize {
        let number = self.count(label);
        if label.integrity == Integrity::Trusted && label.source == Source::User {
            self.typed.push(Arc::new(Literals::of(text)));
            self.numbers.push(number);
        }
        number
    }

    /// Takes in what the tool of `registration` gave, as `label` has it, for a call that brought `carried`.
    pub fn enter_result(&mut self, label: Label, text: &str, registration: &Registration, carried: Carried) -> usize {
        let records = Records::read(registration.flow.format, text);
        self.enter_read(label, text, registration, carried, records)
    }

    /// The same, with the records of the text read before: reading takes no part of the session.
    pub fn enter_read(
        &mut self,
        label: Label,
        text: &str,
        registration: &Registration,
        carried: Carried,
        records: Result<Records, Unreadable>,
    ) -> usize {
        let parts = [(trust(label.integrity, registration), text)];
        self.answers.push(Answer::of(Arc::new(registration.clone()), carried, &parts, records));
        self.count(label)
    }

    /// Takes in a result whose parts have labels of their own. A part that is labelled untrusted is not what its tool is declared
    /// trusted for.
    pub fn enter_parts(&mut self, parts: &[(Label, &str)], registration: &Registration, carried: Carried) -> usize {
        let trusted = |label: &Label| match label.integrity {
            Integrity::Trusted => trust(Integrity::Trusted, registration),
            Integrity::Untrusted => Trust::Nothing,
        };
        let trusts: Vec<(Trust, &str)> = parts.iter().map(|(label, text)| (trusted(label), *text)).collect();
        self.answers.push(Answer::new(Arc::new(registration.clone()), carried, &trusts));
        parts.iter().map(|(label, _)| self.count(*label)).last().unwrap_or(self.entered)
    }

    /// Takes back what a span says: it was not recorded. Its number stays used.
    pub fn withdraw(&mut self, number: usize) {
        if let Some(at) = self.numbers.iter().position(|own| *own == number) {
            self.numbers.remove(at);
            self.typed.remove(at);
        }
    }

    fn count(&mut self, label: Label) -> usize {
        let number = self.entered;
        self.entered = self.entered.saturating_add(1);
        self.highest = self.highest.max(Some(label.confidentiality));
        number
    }

    /// The most confidential span.
    #[must_use]
    pub fn highest(&self) -> Confidentiality {
        self.highest.unwrap_or(Confidentiality::Public)
    }

    /// What a call of `tool` brings it, which its result vouches for in no case.
    #[must_use]
    pub fn carried(&self, tool: &Tool, arguments: &Arguments) -> Carried {
        let size = tool.registration().flow.paging.size.as_ref();
        Carried {
            arguments: arguments.clone(),
            usual_size: size.and_then(|name| tool.usual(name)).cloned(),
            named_freely: arguments.iter().any(|(name, _)| !tool.names(name)),
        }
    }

    /// What a value may be taken from.
    #[must_use]
    pub fn sources(&self) -> Sources<'_> {
        Sources { typed: &self.typed, answers: &self.answers }
    }
}

/// What a result vouches for. A source that is declared trusted for some arguments is trusted for no others.
fn trust(integrity: Integrity, registration: &Registration) -> Trust {
    match integrity {
        _ if !registration.flow.trusted_for.is_empty() => Trust::For(registration.flow.trusted_for.clone()),
        Integrity::Trusted => Trust::Everything,
        Integrity::Untrusted => Trust::Nothing,
    }
}
