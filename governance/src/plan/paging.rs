//! Whether the answers of a tool were read from the first page to the last.

use ephor_base::{Arguments, Paging, arguments::Value};

use super::answer::Answer;
use crate::{datum::Datum, literals::Number};

/// Whether `answers`, of one tool and of calls that differ in nothing but their page, are all that there is.
///
/// The first call leaves the page out or names the declared first one, each other asks for the one behind it, and the last says that
/// none follows, or has fewer records than a page would hold.
pub(super) fn are_complete(answers: &[&Answer]) -> bool {
    let (Some(first), Some(last)) = (answers.first(), answers.last()) else { return false };
    let paging = &first.registration().flow.paging;
    if *paging == Paging::default() {
        return true;
    }
    let begins = match page(paging, first) {
        None => true,
        Some(page) => paging.first.is_some() && number(page) == paging.first,
    };
    let follow = answers.windows(2).all(|pair| match pair {
        [before, answer] => !is_last(paging, before) && follows(paging, before, answer),
        _ => true,
    });
    let alike = answers.iter().all(|answer| size(paging, answer) == size(paging, first));
    begins && follow && alike && is_last(paging, last)
}

fn page<'a>(paging: &Paging, answer: &'a Answer) -> Option<&'a Value> {
    answer.arguments().value(paging.page.as_ref()?)
}

/// Whether an answer is the page behind the one before.
fn follows(paging: &Paging, before: &Answer, answer: &Answer) -> bool {
    let Some(wanted) = page(paging, answer) else { return false };
    match &paging.next {
        Some(key) => before.top(key).is_some_and(|next| next.is(&Datum::of(wanted))),
        None => {
            let last = page(paging, before).map_or(paging.first, number);
            last.and_then(|last| last.checked_add(1)).is_some_and(|next| number(wanted) == Some(next))
        }
    }
}

/// Whether an answer says that it is the last.
fn is_last(paging: &Paging, answer: &Answer) -> bool {
    match &paging.next {
        Some(key) => match answer.top(key) {
            None | Some(Datum::Null | Datum::Bool(false)) => true,
            Some(next) => next.as_text() == Some(""),
        },
        None => answer.count() == 0 || believed(paging, answer).is_some_and(|size| (answer.count() as u64) < size),
    }
}

/// The size of a page, as far as the tool keeps to it: one that gives 100 at most may be asked for 1,000, and a page of 100 would look like
/// the last.
fn believed(paging: &Paging, answer: &Answer) -> Option<u64> {
    let usual = number(answer.usual_size()?)?;
    size(paging, answer).filter(|size| *size <= usual)
}

/// How many records the call asked for, or gets where it does not say.
fn size(paging: &Paging, answer: &Answer) -> Option<u64> {
    let name = paging.size.as_ref()?;
    number(answer.arguments().value(name).or(answer.usual_size())?)
}

fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Integer(number) => Number::whole(*number)?.to_u64(),
        _ => None,
    }
}

/// The arguments of a call but for those that say which page it is: calls that have the same read one list.
pub(super) fn list_of(answer: &Answer) -> Arguments {
    let paging = &answer.registration().flow.paging;
    let names: Vec<String> = paging.page.iter().chain(&paging.size).cloned().collect();
    answer.arguments().without(&names)
}
