//! CSV (RFC 4180), by `csv`: a list of objects, with the keys in the first row.

use super::{Datum, MAX_VALUES, Unreadable, object};
use crate::literals::nfc;

pub(super) fn read(text: &str) -> Result<Datum, Unreadable> {
    let broken = |error: csv::Error| Unreadable(format!("it is not CSV: {error}"));
    let mut reader = csv::ReaderBuilder::new().flexible(false).from_reader(text.as_bytes());
    let keys: Vec<Box<str>> = reader.headers().map_err(broken)?.iter().map(|name| nfc(name.trim()).into()).collect();
    let (mut values, mut rows) = (0_usize, Vec::new());
    for record in reader.records() {
        let record = record.map_err(broken)?;
        values = values.saturating_add(record.len()).saturating_add(1);
        if values > MAX_VALUES {
            return Err(Unreadable(format!("it has more than {MAX_VALUES} values")));
        }
        let cells = keys.iter().zip(&record).map(|(key, cell)| (key.clone(), Datum::Cell(nfc(cell).into())));
        rows.push(object(cells.collect())?);
    }
    Ok(Datum::List(rows))
}
