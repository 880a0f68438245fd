//! Questions: what, where, which, how, who, is, are, do, does, any.

use super::{
    clause::{Clause, has},
    count,
    intent::{File, Filter, Intent, Scope, Unit, View},
    needle,
    place::{self, FOLDER, is_word, take_scope},
    token::Token,
    understand::{compare, define, files, searches, thing},
};

/// Verbs that say what is in a file.
const HOLDS: [&str; 33] = [
    "contain",
    "contains",
    "containing",
    "mention",
    "mentions",
    "mentioning",
    "use",
    "uses",
    "using",
    "used",
    "include",
    "includes",
    "including",
    "reference",
    "references",
    "import",
    "imports",
    "call",
    "calls",
    "match",
    "matches",
    "mentioned",
    "appear",
    "appears",
    "occur",
    "occurs",
    "say",
    "says",
    "talk",
    "referenced",
    "called",
    "found",
    "have",
];

/// What a question asks for.
pub(super) fn intents(clause: &Clause) -> Vec<Intent> {
    let Some((first, rest)) = clause.words.split_first() else { return vec![Intent::Unknown(None)] };
    if has(
        rest,
        &[
            "same",
            "identical",
            "equal",
            "differ",
            "differs",
            "different",
            "difference",
            "differences",
            "changed",
            "changes",
            "change",
            "compare",
            "compared",
            "compares",
        ],
    ) && let Some(compare) = compare_named(rest)
    {
        return vec![compare];
    }
    if let Some(define) = define(rest) {
        return vec![define];
    }
    let found = match first.lower.as_str() {
        "how" => how(rest),
        "where" => where_is(rest),
        "which" | "what" => what(rest),
        "who" => who(rest),
        _ => whether(first, rest),
    };
    found.filter(|found| !found.is_empty()).unwrap_or_else(|| vec![Intent::Unknown(None)])
}

fn compare_named(tokens: &[Token]) -> Option<Intent> {
    (place::paths(tokens).len() == 2).then(|| compare(tokens)).flatten()
}

fn how(rest: &[Token]) -> Option<Vec<Intent>> {
    let (first, after) = rest.split_first()?;
    match first.lower.as_str() {
        "many" | "often" | "much" => count::intent(after).map(|intent| vec![intent]),
        "long" | "big" | "large" => {
            let file = place::file(after)?;
            Some(vec![Intent::Measure { file, unit: Unit::Lines }])
        }
        _ => None,
    }
}

fn where_is(rest: &[Token]) -> Option<Vec<Intent>> {
    // "where can I find x" looks for x.
    let rest: Vec<Token> =
        rest.iter().filter(|token| !is_word(token, &["find", "locate", "see", "get"])).cloned().collect();
    let rest = rest.as_slice();
    if needle::marks(rest).is_some() {
        return Some(searches(rest, View::Lines));
    }
    let says_use = has(rest, &HOLDS) || has(rest, &["we", "everything"]);
    let named: Vec<_> = rest.iter().filter(|token| !needle::is_filler(token)).collect();
    if let [only] = named.as_slice()
        && let Some(path) = place::path(only).filter(|_| !says_use)
    {
        return Some(vec![Intent::Files { filter: Filter::Named(path), scope: Scope::default(), count: false }]);
    }
    Some(searches(rest, View::Lines))
}

fn who(rest: &[Token]) -> Option<Vec<Intent>> {
    has(rest.get(..1)?, &HOLDS).then(|| searches(rest, View::Lines))
}

fn what(rest: &[Token]) -> Option<Vec<Intent>> {
    if has(rest, &["left", "remains", "remaining", "still", "outstanding", "open"])
        && has(rest, &["do", "done", "todo", "todos"])
    {
        let (scope, _) = take_scope(rest);
        let needle = super::intent::Needle { pattern: r"\bTODO\b".to_owned(), words: "`TODO`".to_owned() };
        return Some(vec![Intent::Search(super::intent::Search { needle, scope, view: View::Lines })]);
    }
    if needle::marks(rest).is_some() {
        return Some(searches(rest, View::Lines));
    }
    if has(rest, &["directories", "folders", "subfolders", "subdirectories"]) {
        return Some(vec![Intent::List(take_scope(rest).0.path.unwrap_or_else(|| ".".to_owned()))]);
    }
    if has(rest, &["count", "number", "length"]) && has(rest, &["of"]) {
        return count::intent(rest).map(|intent| vec![intent]);
    }
    if has(rest, &["file", "files", "documents", "scripts", "sources"]) {
        return what_files(rest);
    }
    if has(rest, &["lines", "line", "code", "functions", "modules"]) && has(rest, &HOLDS) {
        return Some(searches(rest, View::Lines));
    }
    // "what does x say", "what is in x", "what is x about", "what do we have in x"
    let file = place::file(rest);
    if has(rest, &["about", "for"])
        && let Some(file) = file.clone()
    {
        return Some(vec![Intent::Summarise(file)]);
    }
    let (scope, after) = take_scope(rest);
    let asks_content = has(
        rest,
        &[
            "in", "inside", "under", "say", "says", "contain", "contains", "hold", "holds", "have", "within",
            "contents", "content", "look", "there", "here", "written",
        ],
    );
    if !asks_content {
        return None;
    }
    if let Some(file) = file.filter(|file| !is_folder(file, rest)) {
        return Some(vec![Intent::Read { file, part: super::intent::Part::All }]);
    }
    let named: Vec<_> = after.iter().filter(|token| !needle::is_filler(token)).collect();
    let places = [
        "project",
        "workspace",
        "repo",
        "repository",
        "contents",
        "content",
        "folder",
        "directory",
        "dir",
        "inside",
        "hold",
        "holds",
        "look",
        "like",
    ];
    // "what is the weather in x" is about the weather.
    if let Some(path) = scope.path {
        return named.iter().all(|token| is_word(token, &places)).then(|| vec![Intent::Look(path)]);
    }
    match named.as_slice() {
        _ if named.iter().all(|token| is_word(token, &places)) && points_here(rest) => {
            Some(vec![Intent::List(".".to_owned())])
        }
        [one] => Some(vec![Intent::Look(place::clean(&one.text))]),
        [one, noun] if is_word(noun, &FOLDER) || is_word(noun, &places) => {
            Some(vec![Intent::List(place::clean(&one.text))])
        }
        _ => None,
    }
}

/// Whether the question is about the workspace, and not about nothing at all.
fn points_here(tokens: &[Token]) -> bool {
    has(tokens, &["here", "this", "the", "my", "project", "workspace", "folder", "directory", "there"])
}

/// A folder by its look: a trailing slash, or no ending at all.
fn is_folder(file: &File, tokens: &[Token]) -> bool {
    match file {
        File::Path(path) => {
            let name = path.rsplit('/').next().unwrap_or(path);
            has(tokens, &FOLDER)
                || tokens.iter().any(|token| token.text.ends_with('/'))
                || !name.contains('.') && path.contains('/')
        }
        File::Called(_) => false,
    }
}

/// "which files …".
fn what_files(rest: &[Token]) -> Option<Vec<Intent>> {
    let noun = rest.iter().position(|token| is_word(token, &["file", "files", "documents", "scripts", "sources"]))?;
    let after = rest.get(noun + 1..).unwrap_or_default();
    let said: Vec<Token> =
        after.iter().filter(|token| !is_word(token, &["are", "is", "do", "does"])).cloned().collect();
    let names = has(&said, &["called", "named"]);
    let says = said.iter().any(|token| is_word(token, &HOLDS) && !is_word(token, &["have", "found"]));
    let holds = (says && !names) || has(&said, &["word", "string", "phrase"]);
    let kind = noun.checked_sub(1).and_then(|at| rest.get(at)).and_then(place::filter);
    if holds {
        let mut intents = searches(after, View::Files);
        for intent in &mut intents {
            if let Intent::Search(search) = intent
                && search.scope.only.is_none()
            {
                search.scope.only.clone_from(&kind);
            }
        }
        return Some(intents);
    }
    if let Some(intents) = files(rest) {
        return Some(intents);
    }
    let (scope, _) = take_scope(after);
    Some(vec![Intent::List(scope.path.unwrap_or_else(|| ".".to_owned()))])
}

/// "is there …", "does any file mention …", "do we use …", "any … left".
fn whether(first: &Token, rest: &[Token]) -> Option<Vec<Intent>> {
    let is_there = is_word(first, &["is", "are", "was", "were"]) && has(rest.get(..1).unwrap_or_default(), &["there"]);
    let any = is_word(first, &["any", "anything"]);
    let holds = is_word(first, &["do", "does", "did", "has", "have", "is", "are"]) && has(rest, &HOLDS);
    if needle::marks(rest).is_some() {
        return Some(searches(rest, View::Lines));
    }
    // "is the word 'x' anywhere"
    let names_text =
        is_word(first, &["is", "are", "does", "do"]) && rest.iter().any(|token| token.kind != super::token::Kind::Word);
    if !(is_there || any || holds || names_text) {
        return None;
    }
    let owns = is_word(first, &["do", "have"]) && has(rest.get(..2).unwrap_or_default(), &["have", "we", "i"]);
    if (is_there || owns)
        && let Some(intents) = files(rest).or_else(|| named_file(rest))
    {
        return Some(intents);
    }
    // "does README.md mention x": the place is the subject.
    let (scope, after) = take_scope(rest);
    let subject = after.first().and_then(place::path).filter(|_| scope.path.is_none() && after.len() > 1);
    if let Some(path) = subject {
        let needles = needle::needles(after.get(1..).unwrap_or_default());
        let search = |needle| {
            Intent::Search(super::intent::Search {
                needle,
                scope: Scope { path: Some(path.clone()), ..Scope::default() },
                view: View::Lines,
            })
        };
        return Some(needles.into_iter().map(search).collect());
    }
    let view = if has(rest, &["file", "files"]) { View::Files } else { View::Lines };
    let found = searches(rest, view);
    if found.is_empty() { thing(rest) } else { Some(found) }
}

/// "is there a README", "is there a config.toml".
fn named_file(rest: &[Token]) -> Option<Vec<Intent>> {
    let file = match place::file(take_scope(rest).1.as_slice())? {
        File::Path(path) => path,
        File::Called(stems) => (*stems.first()?).to_owned(),
    };
    let only = rest.iter().filter(|token| !needle::is_filler(token)).count() == 1;
    only.then(|| vec![Intent::Files { filter: Filter::Named(file), scope: Scope::default(), count: false }])
}
