//! "How many …".

use super::{
    clause::has,
    intent::{File, Filter, Intent, Scope, Search, Unit, View},
    needle,
    place::{self, is_word, take_scope},
    token::Token,
};

/// What is counted, if it is a unit of text.
pub(super) fn unit(tokens: &[Token]) -> Option<Unit> {
    if has(tokens, &["word"]) && has(tokens, &["count"]) {
        Some(Unit::Words)
    } else if has(tokens, &["lines", "line", "rows", "loc", "long", "length", "-l"]) {
        Some(Unit::Lines)
    } else if has(tokens, &["words", "-w"]) {
        Some(Unit::Words)
    } else if has(tokens, &["characters", "letters", "chars", "bytes", "-c"]) {
        Some(Unit::Characters)
    } else {
        None
    }
}

/// What a count is asked of: `tokens` is what follows "how many" or "count".
pub(super) fn intent(tokens: &[Token]) -> Option<Intent> {
    if let Some(needle) = needle::marks(tokens) {
        let (scope, _) = take_scope(tokens);
        return Some(Intent::Search(Search { needle, scope, view: View::Count }));
    }
    let says_what = has(
        tokens,
        &[
            "contain",
            "contains",
            "containing",
            "mention",
            "mentions",
            "mentioning",
            "use",
            "uses",
            "using",
            "match",
            "matching",
            "with",
            "say",
            "include",
            "including",
        ],
    );
    if let Some(unit) = unit(tokens).filter(|_| !says_what) {
        return Some(measure(tokens, unit).unwrap_or(Intent::Missing("Of which file?")));
    }
    let (scope, rest) = take_scope(tokens);
    if has(&rest, &["files", "file"]) && says_what {
        let found = super::understand::searches(tokens, View::Files);
        return found.into_iter().next();
    }
    let counts_entries = has(&rest, &["files", "file", "folders", "directories", "documents", "scripts"]);
    if counts_entries || scope.only.is_some() && needle::needles(&rest).is_empty() {
        if has(&rest, &["folders", "directories"]) {
            return Some(Intent::List(scope.path.unwrap_or_else(|| ".".to_owned())));
        }
        let filter = rest.iter().find_map(place::filter).or_else(|| scope.only.clone()).unwrap_or(Filter::Any);
        return Some(Intent::Files { filter, scope: Scope { only: None, ..scope }, count: true });
    }
    let needle = needle::needles(&rest).into_iter().next()?;
    Some(Intent::Search(Search { needle, scope, view: View::Count }))
}

fn measure(tokens: &[Token], unit: Unit) -> Option<Intent> {
    let named = place::file(tokens).or_else(|| take_scope(tokens).0.path.map(File::Path));
    let last = tokens.iter().rev().find(|token| {
        !needle::is_filler(token)
            && !is_word(
                token,
                &[
                    "lines",
                    "line",
                    "words",
                    "characters",
                    "letters",
                    "bytes",
                    "chars",
                    "long",
                    "code",
                    "there",
                    "how",
                    "many",
                    "rows",
                ],
            )
    });
    let file = named.or_else(|| last.map(|token| File::Path(place::clean(&token.text))))?;
    Some(Intent::Measure { file, unit })
}
