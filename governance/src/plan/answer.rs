//! Answers of tools: parsed once, when they enter, by the format that the registration of their tool declares.

use std::sync::Arc;

use ephor_base::{Arguments, Format, Registration, ToolName, arguments::Value};

use crate::{
    datum::{Datum, Unreadable},
    literals::Literals,
};

/// What an answer of a tool may vouch for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Trust {
    /// Every argument.
    Everything,
    /// The arguments that its source is declared trusted for, as `argument` or `tool.argument`.
    For(Vec<String>),
    /// Nothing.
    Nothing,
}

impl Trust {
    /// Whether it vouches for the argument of this name.
    #[must_use]
    pub fn covers(&self, tool: &ToolName, argument: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::For(entries) => entries.iter().any(|entry| match entry.rsplit_once('.') {
                Some((of, name)) if of == tool.as_str() => name == argument,
                _ => entry == argument,
            }),
            Self::Nothing => false,
        }
    }
}

/// What a call brought its tool: its arguments, and how many records a page has where they do not say.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Carried {
    pub(crate) arguments: Arguments,
    pub(crate) usual_size: Option<Value>,
    /// Whether an argument has a name that the schema does not: then the call wrote the name itself.
    pub(crate) named_freely: bool,
}

/// What a tool answered in this turn, read once.
#[derive(Clone, Debug)]
pub struct Answer {
    registration: Arc<Registration>,
    carried: Carried,
    trust: Trust,
    records: Result<Arc<Records>, Unreadable>,
    /// What those parts of it say that vouch for anything.
    literals: Vec<(Trust, Arc<Literals>)>,
}

/// The objects of a document, in order, each without those within it.
#[derive(Debug, Default)]
pub struct Records {
    rows: Vec<Row>,
    /// The size of the whole, if it is a list, or of the longest list in it.
    count: usize,
}

/// An object, and how deep it lies.
#[derive(PartialEq, Debug)]
pub(super) struct Row {
    pub(super) depth: usize,
    pub(super) fields: Datum,
}

impl Records {
    /// Reads an answer in `format`. It is pure and needs nothing but the text, so that it can be done before the answer enters.
    ///
    /// # Errors
    /// [`Unreadable`] says why nothing is taken from it.
    pub fn read(format: Format, text: &str) -> Result<Self, Unreadable> {
        if format == Format::Text {
            return Ok(Self::default());
        }
        let whole = Datum::read(format, text)?;
        let count = match &whole {
            Datum::List(values) => values.len(),
            Datum::Object(entries) => entries.iter().filter_map(length).max().unwrap_or(1),
            _ => 0,
        };
        let mut records = Self { rows: Vec::new(), count };
        records.flatten(whole, 0);
        Ok(records)
    }

    /// Takes the objects out of a value. What is left in their place is equal to nothing.
    fn flatten(&mut self, value: Datum, depth: usize) -> Datum {
        let below = depth.saturating_add(1);
        match value {
            Datum::List(values) if values.iter().all(|value| !matches!(value, Datum::List(_) | Datum::Object(_))) => {
                Datum::List(values)
            }
            Datum::List(values) => Datum::List(values.into_iter().map(|value| self.flatten(value, below)).collect()),
            Datum::Object(entries) => {
                let at = self.rows.len();
                self.rows.push(Row { depth, fields: Datum::Null });
                let fields = entries.into_iter().map(|(key, value)| (key, self.flatten(value, below))).collect();
                if let Some(row) = self.rows.get_mut(at) {
                    row.fields = Datum::Object(fields);
                }
                Datum::Wide
            }
            other => other,
        }
    }

    /// Every text and number, one line each.
    fn lines(&self) -> String {
        let mut lines = String::new();
        let mut line = |leaf: &str| {
            lines.push_str(leaf);
            // No value reaches over this sign.
            lines.push_str(" \u{1f} ");
        };
        self.rows.iter().for_each(|row| row.fields.leaves(&mut line));
        lines
    }
}

fn length((_, value): &(Box<str>, Datum)) -> Option<usize> {
    if let Datum::List(values) = value { Some(values.len()) } else { None }
}

impl Answer {
    /// An answer to a call that brought `carried`, in parts that each vouch for what their trust says. As a whole it vouches for what
    /// each of its parts does.
    #[must_use]
    pub fn new(registration: Arc<Registration>, carried: Carried, parts: &[(Trust, &str)]) -> Self {
        let text: String = parts.iter().map(|(_, text)| *text).collect();
        let records = Records::read(registration.flow.format, &text);
        Self::of(registration, carried, parts, records)
    }

    /// The same, with the records of its whole text read before.
    #[must_use]
    pub fn of(
        registration: Arc<Registration>,
        carried: Carried,
        parts: &[(Trust, &str)],
        records: Result<Records, Unreadable>,
    ) -> Self {
        let said = parts.iter().filter(|(_, text)| !text.is_empty());
        let mut trusts = said.map(|(trust, _)| trust);
        let first = trusts.next().cloned().unwrap_or(Trust::Nothing);
        let trust = if trusts.all(|trust| *trust == first) { first } else { Trust::Nothing };
        let structured = !matches!(registration.flow.format, Format::Text | Format::None);
        let lines = match (&records, parts) {
            (Ok(records), [(whole, _)]) if structured && *whole != Trust::Nothing => Some(records.lines()),
            _ => None,
        };
        let vouching = parts.iter().filter(|(trust, _)| *trust != Trust::Nothing);
        let literals =
            vouching.map(|(trust, text)| (trust.clone(), Arc::new(Literals::of(lines.as_deref().unwrap_or(text)))));
        let literals = literals.collect();
        Self { registration, carried, trust, records: records.map(Arc::new), literals }
    }

    /// Its tool.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.registration.name
    }

    pub(super) fn registration(&self) -> &Registration {
        &self.registration
    }

    pub(super) const fn arguments(&self) -> &Arguments {
        &self.carried.arguments
    }

    pub(super) const fn is_named_freely(&self) -> bool {
        self.carried.named_freely
    }

    pub(super) const fn usual_size(&self) -> Option<&Value> {
        self.carried.usual_size.as_ref()
    }

    /// Whether it vouches for the value of an argument, by what it says and by its label.
    pub(super) fn says(&self, tool: &ToolName, argument: &str, value: &Value) -> bool {
        self.literals.iter().any(|(trust, literals)| trust.covers(tool, argument) && literals.have(value))
    }

    pub(super) fn covers(&self, tool: &ToolName, argument: &str) -> bool {
        self.trust.covers(tool, argument)
    }

    /// Whether it was read, in the format of its registration.
    pub(super) const fn is_read(&self) -> bool {
        self.records.is_ok()
    }

    /// How many records it has.
    pub(super) fn count(&self) -> usize {
        self.records.as_ref().map_or(0, |records| records.count)
    }

    /// The value of a key, wherever it stands first.
    pub(super) fn top(&self, key: &str) -> Option<&Datum> {
        self.rows().iter().find_map(|row| row.fields.value(key))
    }

    pub(super) fn rows(&self) -> &[Row] {
        self.records.as_ref().map_or(&[], |records| &records.rows)
    }

    /// Whether it says the same as another answer to the same call.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        self.tool() == other.tool()
            && self.carried == other.carried
            && self.trust == other.trust
            && self.rows() == other.rows()
    }
}
