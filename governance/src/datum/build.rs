//! Values from the events of a parser, within the bounds.

use super::{Datum, MAX_DEPTH, MAX_VALUES, Unreadable, object};
use crate::literals::nfc;

/// What has been read so far.
#[derive(Debug, Default)]
pub(super) struct Builder {
    open: Vec<Open>,
    whole: Option<Datum>,
    values: usize,
}

/// A list or an object that has not ended; of an object also the key whose value is awaited.
#[derive(Debug)]
enum Open {
    List(Vec<Datum>),
    Object(Vec<(Box<str>, Datum)>, Option<Box<str>>),
}

impl Builder {
    /// A list or an object begins.
    pub(super) fn begin(&mut self, is_object: bool) -> Result<(), Unreadable> {
        self.count()?;
        if self.open.len() >= MAX_DEPTH {
            return Err(Unreadable(format!("its values nest more than {MAX_DEPTH} deep")));
        }
        self.open.push(if is_object { Open::Object(Vec::new(), None) } else { Open::List(Vec::new()) });
        Ok(())
    }

    /// The last list or object ends.
    pub(super) fn end(&mut self) -> Result<(), Unreadable> {
        match self.open.pop() {
            Some(Open::List(values)) => self.put(Datum::List(values)),
            Some(Open::Object(entries, None)) => self.put(object(entries)?),
            Some(Open::Object(_, Some(_))) | None => Err(broken()),
        }
    }

    /// Whether a key comes next.
    pub(super) fn wants_a_key(&self) -> bool {
        matches!(self.open.last(), Some(Open::Object(_, None)))
    }

    /// A key of the last object.
    pub(super) fn key(&mut self, key: &str) {
        if let Some(Open::Object(_, pending)) = self.open.last_mut() {
            *pending = Some(nfc(key).into());
        }
    }

    /// A value that has none within it.
    pub(super) fn value(&mut self, value: Datum) -> Result<(), Unreadable> {
        self.count()?;
        self.put(value)
    }

    /// The whole.
    pub(super) fn finish(self) -> Result<Datum, Unreadable> {
        self.whole.filter(|_| self.open.is_empty()).ok_or_else(broken)
    }

    fn count(&mut self) -> Result<(), Unreadable> {
        self.values = self.values.saturating_add(1);
        if self.values > MAX_VALUES {
            return Err(Unreadable(format!("it has more than {MAX_VALUES} values")));
        }
        Ok(())
    }

    fn put(&mut self, value: Datum) -> Result<(), Unreadable> {
        match self.open.last_mut() {
            Some(Open::List(values)) => values.push(value),
            Some(Open::Object(entries, pending)) => entries.push((pending.take().ok_or_else(broken)?, value)),
            None if self.whole.is_some() => return Err(broken()),
            None => self.whole = Some(value),
        }
        Ok(())
    }
}

fn broken() -> Unreadable {
    Unreadable("it is not one value whose keys are texts".to_owned())
}
