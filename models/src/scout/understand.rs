//! From the clauses of a request to what it asks for.

use super::{
    clause::{Clause, clauses, has},
    count,
    intent::{Content, File, Filter, Intent, Part, Piped, Scope, Search, Unit, View},
    needle, part,
    place::{self, FOLDER, is_word, take_scope},
    question,
    token::{Kind, Token},
    verb::Verb,
    write,
};

/// What is known beside the request itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Circumstances<'a> {
    /// Text was piped in.
    pub(super) piped: bool,
    /// The request before this one, which "them" may mean.
    pub(super) before: Option<&'a str>,
}

/// Words that point at what was said before, and what may stand around them.
const POINTERS: [&str; 34] = [
    "them",
    "it",
    "those",
    "these",
    "that",
    "this",
    "results",
    "result",
    "findings",
    "everything",
    "all",
    "the",
    "for",
    "me",
    "us",
    "by",
    "per",
    "file",
    "grouped",
    "briefly",
    "short",
    "up",
    "in",
    "a",
    "list",
    "summary",
    "report",
    "of",
    "each",
    "which",
    "down",
    "out",
    "together",
    "what",
];

/// Everything that `request` asks for, in order.
pub(super) fn intents(request: &str, around: Circumstances<'_>) -> Vec<Intent> {
    let is_empty = request.trim().is_empty();
    if is_empty {
        return vec![if around.piped { Intent::Piped(Piped::Summarise) } else { Intent::Unknown(None) }];
    }
    if is_about(request) {
        return vec![Intent::About];
    }
    let clauses = clauses(request);
    if clauses.is_empty() {
        return vec![Intent::Greeting];
    }
    let mut intents: Vec<Intent> = Vec::new();
    for clause in &clauses {
        if follows_up(clause, &mut intents) {
            continue;
        }
        let mut understood = of_clause(clause, request, &intents, around);
        // Whatever the sentence is, TODOs are to be found; unless something is to be done to them that scout cannot do.
        if matches!(understood.as_slice(), [Intent::Unknown(None)]) && needle::marks(&clause.words).is_some() {
            understood = searches(&clause.words, View::Lines);
        }
        // "show x and tell me how many TODOs it has"
        if clause.has(&["it", "its"])
            && let Some(
                Intent::Read { file: File::Path(path), .. }
                | Intent::Summarise(File::Path(path))
                | Intent::Measure { file: File::Path(path), .. },
            ) = intents.last()
        {
            for intent in &mut understood {
                if let Intent::Search(Search { scope, .. }) = intent {
                    scope.path.get_or_insert_with(|| path.clone());
                }
            }
        }
        // A verb without its object before another clause adds nothing: "search and summarise TODOs".
        let is_bare =
            clause.object().is_empty() && clauses.len() > 1 && matches!(understood.as_slice(), [Intent::Unknown(None)]);
        if !is_bare {
            intents.extend(understood);
        }
    }
    if intents.is_empty() { vec![Intent::Unknown(None)] } else { intents.into_iter().flat_map(each_place).collect() }
}

/// A search in several places as a search in each.
fn each_place(intent: Intent) -> Vec<Intent> {
    match intent {
        Intent::Search(search) => {
            search.scope.each().into_iter().map(|scope| Intent::Search(Search { scope, ..search.clone() })).collect()
        }
        Intent::Define { name, scope } => {
            scope.each().into_iter().map(|scope| Intent::Define { name: name.clone(), scope }).collect()
        }
        Intent::Files { filter, scope, count } => {
            scope.each().into_iter().map(|scope| Intent::Files { filter: filter.clone(), scope, count }).collect()
        }
        other => vec![other],
    }
}

/// Whether `clause` only says what to do with what was asked before; then that is changed.
fn follows_up(clause: &Clause, intents: &mut [Intent]) -> bool {
    let Some(last) = intents.last_mut() else { return false };
    let points = clause.object().iter().all(|token| is_word(token, &POINTERS));
    let counting = ["many", "are", "there", "were", "is", "you", "found", "did", "find", "do", "i", "we", "have"];
    let names_number = clause.verb == Some(Verb::Ask)
        && clause.has(&["many"])
        && clause.object().iter().all(|token| is_word(token, &counting) || is_word(token, &POINTERS));
    if !points && !names_number {
        return false;
    }
    match (clause.verb, &mut *last) {
        (Some(Verb::Summarise), Intent::Read { file, .. }) => *last = Intent::Summarise(file.clone()),
        (Some(Verb::Count), Intent::Read { file, .. }) => {
            *last = Intent::Measure { file: file.clone(), unit: Unit::Lines }
        }
        (Some(Verb::Read | Verb::Show), Intent::Files { .. }) => return false,
        (Some(Verb::Summarise | Verb::Count | Verb::List | Verb::Show | Verb::Find | Verb::Read | Verb::Ask), _) => {}
        _ => return false,
    }
    true
}

/// What one clause asks for.
fn of_clause(clause: &Clause, request: &str, earlier: &[Intent], around: Circumstances<'_>) -> Vec<Intent> {
    if let Some(clause) = without_place_in_front(clause) {
        return of_clause(&clause, request, earlier, around);
    }
    if around.piped
        && let Some(piped) = piped(clause)
    {
        return vec![Intent::Piped(piped)];
    }
    let object = clause.object();
    let one = |intent: Option<Intent>| vec![intent.unwrap_or(Intent::Unknown(None))];
    match clause.verb {
        // "pull together all TODOs" is no "pull".
        Some(Verb::Cannot) if clause.has(&["pull"]) && clause.has(&["together", "out", "up"]) => find(
            &object.iter().filter(|token| !is_word(token, &["together", "out", "up"])).cloned().collect::<Vec<_>>(),
        ),
        Some(Verb::Cannot) => {
            vec![Intent::Unknown(clause.words.first().map(|verb| verb.lower.clone()))]
        }
        Some(Verb::Write) => one(write::intent(clause, request, &antecedent(earlier, around))),
        Some(Verb::Copy) => one(write::copy(object)),
        Some(Verb::Compare) => {
            one(Some(compare(object).unwrap_or(Intent::Missing("Which two files shall I compare?"))))
        }
        Some(Verb::Head) => one(read_part(object, Part::First(part::number(object).unwrap_or(10)))),
        Some(Verb::Tail) => one(read_part(object, Part::Last(part::number(object).unwrap_or(10)))),
        Some(Verb::Count) => one(count::intent(object)),
        Some(Verb::Summarise) => summarise(object, around),
        Some(Verb::List) => list(object),
        Some(Verb::Read) => read(object),
        Some(Verb::Grep) => grep(object),
        // "look at x" is no search.
        Some(Verb::Find) if object.first().is_some_and(|first| is_word(first, &["at"])) => {
            let object = object.get(1..).unwrap_or_default();
            thing(object).unwrap_or_else(|| look(object))
        }
        Some(Verb::Find) => find(object),
        Some(Verb::Show) => thing(object).unwrap_or_else(|| look(object)),
        Some(Verb::Ask) => question::intents(clause),
        None => thing(&clause.words).unwrap_or_else(|| vec![Intent::Unknown(None)]),
    }
}

/// The search or reading that "them" or "it" means.
fn antecedent(earlier: &[Intent], around: Circumstances<'_>) -> Vec<Intent> {
    if !earlier.is_empty() {
        return earlier.to_vec();
    }
    let circumstances = Circumstances { piped: false, before: None };
    around.before.map(|before| intents(before, circumstances)).unwrap_or_default()
}

/// "In src, find x" as "find x in src".
fn without_place_in_front(clause: &Clause) -> Option<Clause> {
    if clause.verb.is_some()
        || !clause.words.first().is_some_and(|word| is_word(word, &["in", "under", "inside", "within"]))
    {
        return None;
    }
    let verb = clause.words.iter().position(|token| token.kind == Kind::Word && Verb::meant(&token.lower).is_some())?;
    let (place, words) = clause.words.split_at_checked(verb)?;
    let moved: Vec<Token> = words.iter().chain(place).cloned().collect();
    let verb = words.first().and_then(|word| Verb::meant(&word.lower));
    Some(Clause { verb, words: moved })
}

/// What is asked of the text that was piped in, if it is meant.
fn piped(clause: &Clause) -> Option<Piped> {
    let object = clause.object();
    let pointed = clause.has(&[
        "this",
        "it",
        "that",
        "these",
        "input",
        "stdin",
        "piped",
        "above",
        "below",
        "attached",
        "following",
        "here",
    ]);
    let names_place = !place::paths(&clause.words).is_empty() || take_scope(&clause.words).0.path.is_some();
    if names_place || !(pointed || object.iter().all(needle::is_filler)) {
        return None;
    }
    let content: Vec<Token> = object
        .iter()
        .filter(|token| {
            !is_word(token, &["this", "it", "that", "input", "stdin", "piped", "log", "output", "document", "here"])
        })
        .cloned()
        .collect();
    match clause.verb {
        Some(Verb::Summarise) => Some(Piped::Summarise),
        Some(Verb::Ask) if clause.has(&["about", "is"]) && needle::needles(&content).is_empty() => {
            Some(Piped::Summarise)
        }
        Some(Verb::Count) => {
            Some(count::unit(object).map_or_else(|| found(&content, View::Count), |unit| Some(Piped::Measure(unit)))?)
        }
        Some(Verb::Ask) if clause.has(&["many", "long"]) => {
            count::unit(object).map_or_else(|| found(&content, View::Count), |unit| Some(Piped::Measure(unit)))
        }
        Some(Verb::Head) => Some(Piped::Show(Part::First(part::number(object).unwrap_or(10)))),
        Some(Verb::Tail) => Some(Piped::Show(Part::Last(part::number(object).unwrap_or(10)))),
        Some(Verb::Show | Verb::Read) | None if part::part(&clause.words).is_some() => {
            part::part(&clause.words).map(Piped::Show)
        }
        Some(Verb::Show | Verb::Read) if needle::needles(&content).is_empty() => Some(Piped::Show(Part::All)),
        Some(Verb::Find | Verb::Grep | Verb::Show | Verb::List | Verb::Ask) => found(&content, View::Lines),
        _ => None,
    }
}

fn found(tokens: &[Token], view: View) -> Option<Piped> {
    needle::needles(tokens).into_iter().next().map(|needle| Piped::Find(needle, view))
}

/// The searches for what `tokens` say.
pub(super) fn searches(tokens: &[Token], view: View) -> Vec<Intent> {
    let (scope, rest) = take_scope(tokens);
    let needles = needle::needles(&rest);
    needles.into_iter().map(|needle| Intent::Search(Search { needle, scope: scope.clone(), view })).collect()
}

/// Two files, if two are named.
pub(super) fn compare(tokens: &[Token]) -> Option<Intent> {
    let paths = place::paths(tokens);
    if let [one, two] = paths.as_slice() {
        return Some(Intent::Compare(File::Path(one.clone()), File::Path(two.clone())));
    }
    // Names that do not look like paths: "compare alpha and beta".
    let names: Vec<_> = tokens
        .iter()
        .filter(|token| {
            !needle::is_filler(token)
                && !is_word(
                    token,
                    &["and", "with", "to", "against", "between", "from", "versus", "vs", "contents", "content"],
                )
        })
        .collect();
    match names.as_slice() {
        [one, two] => Some(Intent::Compare(File::Path(place::clean(&one.text)), File::Path(place::clean(&two.text)))),
        _ => None,
    }
}

fn read_part(tokens: &[Token], part: Part) -> Option<Intent> {
    place::file(tokens).map(|file| Intent::Read { file, part })
}

fn summarise(tokens: &[Token], around: Circumstances<'_>) -> Vec<Intent> {
    if let Some(needle) = needle::marks(tokens) {
        let (scope, _) = take_scope(tokens);
        return vec![Intent::Search(Search { needle, scope, view: View::Lines })];
    }
    let paths = place::paths(tokens);
    if !paths.is_empty() {
        return paths.into_iter().map(|path| Intent::Summarise(File::Path(path))).collect();
    }
    if let Some(file) = place::file(tokens) {
        return vec![Intent::Summarise(file)];
    }
    if has(tokens, &FOLDER) || has(tokens, &["project", "workspace", "repo", "repository"]) {
        return list(tokens);
    }
    let named: Vec<_> = tokens.iter().filter(|token| !needle::is_filler(token)).collect();
    match named.as_slice() {
        [one] => vec![Intent::Look(place::clean(&one.text))],
        [] if around.piped => vec![Intent::Piped(Piped::Summarise)],
        [] => vec![Intent::Missing("What shall I summarise? Name a file, or pipe the text in.")],
        _ => {
            let found = searches(tokens, View::Lines);
            if place::paths(tokens).is_empty() && take_scope(tokens).0 == Scope::default() {
                vec![Intent::Unknown(None)]
            } else {
                found
            }
        }
    }
}

/// "list …": a folder, files of a kind, or lines.
fn list(tokens: &[Token]) -> Vec<Intent> {
    if needle::marks(tokens).is_some() || tokens.iter().any(|token| token.kind == Kind::Regex) {
        return searches(tokens, View::Lines);
    }
    if let Some(intents) = files(tokens) {
        return intents;
    }
    let (scope, rest) = take_scope(tokens);
    let options = |token: &&Token| !token.text.starts_with('-') && !needle::is_filler(token);
    let named: Vec<_> =
        rest.iter().filter(options).filter(|token| !is_word(token, &["contents", "content", "and"])).collect();
    let nouns = [
        "folder",
        "directory",
        "dir",
        "project",
        "workspace",
        "repo",
        "repository",
        "folders",
        "directories",
        "subfolders",
        "subdirectories",
        "listing",
        "contents",
        "structure",
        "layout",
    ];
    match named.as_slice() {
        [] => vec![Intent::List(scope.path.unwrap_or_else(|| ".".to_owned()))],
        _ if named.iter().all(|token| is_word(token, &nouns)) => {
            vec![Intent::List(scope.path.unwrap_or_else(|| ".".to_owned()))]
        }
        [one, noun] | [noun, one] if is_word(noun, &nouns) && scope.path.is_none() => {
            vec![Intent::List(place::clean(&one.text))]
        }
        _ if scope.path.is_none() && named.iter().all(|token| place::path(token).is_some()) => {
            named.iter().map(|token| Intent::List(place::clean(&token.text))).collect()
        }
        [one] if scope.path.is_none() && one.kind == Kind::Word && !has(tokens, &["all", "every"]) => {
            vec![Intent::List(place::clean(&one.text))]
        }
        _ => searches(tokens, View::Lines),
    }
}

/// Files by kind or name, if that is what `tokens` ask for: "all rust files", "the file called x", "*.md".
pub(super) fn files(tokens: &[Token]) -> Option<Vec<Intent>> {
    let (scope, rest) = take_scope(tokens);
    let filter = rest.iter().enumerate().find_map(|(at, token)| {
        let is_kind =
            rest.get(at + 1).is_some_and(|next| is_word(next, &["files", "file", "sources", "scripts", "documents"]));
        place::filter(token).filter(|_| is_kind || token.text.contains('*') || token.text.starts_with('.'))
    });
    let called =
        rest.iter().position(|token| is_word(token, &["called", "named"])).filter(|_| has(&rest, &["file", "files"]));
    let named = called.and_then(|at| rest.get(at + 1)).map(|token| {
        if token.text.contains('*') { Filter::Glob(token.text.clone()) } else { Filter::Named(token.text.clone()) }
    });
    if let Some(filter) = named.or(filter) {
        return Some(vec![Intent::Files { filter, scope, count: false }]);
    }
    if let Some(only) = scope.only.clone().filter(|_| needle::needles(&rest).is_empty()) {
        return Some(vec![Intent::Files { filter: only, scope: Scope { only: None, ..scope }, count: false }]);
    }
    None
}

fn read(tokens: &[Token]) -> Vec<Intent> {
    if let Some(intents) = thing(tokens) {
        return intents;
    }
    // After "read" or "open" any name is a file's.
    let names: Vec<_> = tokens.iter().filter(|token| !needle::is_filler(token) && !is_word(token, &["and"])).collect();
    match names.as_slice() {
        [] => vec![Intent::Missing("Which file shall I read?")],
        [one] => vec![Intent::Look(place::clean(&one.text))],
        [one, noun] | [noun, one] if is_word(noun, &FOLDER) => vec![Intent::List(place::clean(&one.text))],
        _ => vec![Intent::Unknown(None)],
    }
}

/// `grep [-options] needle [place]`.
fn grep(tokens: &[Token]) -> Vec<Intent> {
    let ignores_case = tokens
        .iter()
        .any(|token| token.text.starts_with('-') && !token.text.starts_with("--") && token.text.contains('i'));
    let words: Vec<Token> = tokens.iter().filter(|token| !token.text.starts_with('-')).cloned().collect();
    let plain = |token: &Token| !needle::is_filler(token) && !is_word(token, &["in", "and", "under"]);
    let mut intents = match words.as_slice() {
        [needle, place] if plain(needle) && plain(place) => {
            let path = if place.text == "*" { None } else { Some(place::clean(&place.text)) };
            let scope = Scope { path, ..Scope::default() };
            needle::needles(std::slice::from_ref(needle))
                .into_iter()
                .map(|needle| Intent::Search(Search { needle, scope: scope.clone(), view: View::Lines }))
                .collect()
        }
        _ => find(&words),
    };
    for intent in &mut intents {
        if let Intent::Search(search) = intent
            && ignores_case
            && !search.needle.pattern.starts_with("(?i)")
        {
            search.needle.pattern.insert_str(0, "(?i)");
        }
    }
    intents
}

/// "find …": files, a definition, or lines.
fn find(tokens: &[Token]) -> Vec<Intent> {
    if let Some(define) = define(tokens) {
        return vec![define];
    }
    let asks_for_lines = has(tokens, &["containing", "mentioning", "contain", "mention", "matching", "lines", "with"]);
    if !asks_for_lines && let Some(intents) = files(tokens) {
        return intents;
    }
    let names_file = has(tokens, &["file", "files"]) && !asks_for_lines;
    if names_file && let Some(path) = tokens.iter().find_map(place::path) {
        return vec![Intent::Files { filter: Filter::Named(path), scope: Scope::default(), count: false }];
    }
    // "search the src directory for x": the place comes first.
    let needle = tokens.iter().rposition(|token| is_word(token, &["for", "containing", "mentioning"]));
    if let Some((place, needle)) =
        needle.and_then(|at| tokens.split_at_checked(at)).filter(|(place, _)| is_place(place))
    {
        let (scope, _) = take_scope(place);
        let path = scope
            .path
            .or_else(|| place.iter().find_map(place::path))
            .or_else(|| named_place(place))
            .or_else(|| bare_place(place));
        let scope = Scope { path, ..scope };
        let (own, rest) = take_scope(needle);
        let scope = if own == Scope::default() { scope } else { own };
        let needles = needle::needles(&rest);
        if !needles.is_empty() {
            return needles
                .into_iter()
                .map(|needle| Intent::Search(Search { needle, scope: scope.clone(), view: View::Lines }))
                .collect();
        }
    }
    if let [only] = tokens
        && let Some(path) = place::path(only)
    {
        return vec![Intent::Files { filter: Filter::Named(path), scope: Scope::default(), count: false }];
    }
    let view = if has(tokens, &["files"]) && asks_for_lines { View::Files } else { View::Lines };
    let found = searches(tokens, view);
    if found.is_empty() { vec![Intent::Missing("What shall I look for?")] } else { found }
}

/// Whether `tokens` name a place and nothing else.
fn is_place(tokens: &[Token]) -> bool {
    let named = tokens.iter().filter(|token| {
        !place::is_determiner(token)
            && !needle::is_filler(token)
            && !is_word(token, &FOLDER)
            && !is_word(
                token,
                &["in", "through", "inside", "under", "project", "files", "code", "codebase", "repo", "workspace"],
            )
    });
    !tokens.is_empty()
        && named.count() <= 1
        && needle::marks(tokens).is_none()
        && tokens.iter().all(|token| token.kind != Kind::Quoted)
}

/// "the docs" in "search the docs for x".
fn bare_place(tokens: &[Token]) -> Option<String> {
    let whole = [
        "project",
        "files",
        "code",
        "codebase",
        "repo",
        "repository",
        "workspace",
        "in",
        "through",
        "inside",
        "under",
        "over",
        "around",
        "sources",
        "source",
        "tree",
    ];
    let is_name = |token: &&Token| {
        !place::is_determiner(token)
            && !needle::is_filler(token)
            && !is_word(token, &FOLDER)
            && !is_word(token, &whole)
            && place::filter(token).is_none()
    };
    tokens.iter().find(is_name).map(|token| place::clean(&token.text))
}

fn named_place(tokens: &[Token]) -> Option<String> {
    let at = tokens.iter().position(|token| is_word(token, &FOLDER))?;
    let before = at
        .checked_sub(1)
        .and_then(|at| tokens.get(at))
        .filter(|token| !place::is_determiner(token) && !needle::is_filler(token));
    before.map(|token| place::clean(&token.text))
}

/// "the definition of x", "where x is defined".
pub(super) fn define(tokens: &[Token]) -> Option<Intent> {
    let says = [
        "defined",
        "define",
        "declared",
        "declare",
        "implemented",
        "definition",
        "definitions",
        "declaration",
        "defines",
    ];
    if !has(tokens, &says) {
        return None;
    }
    let (scope, rest) = take_scope(tokens);
    let name = rest.iter().find(|token| {
        !is_word(token, &says)
            && (token.kind == Kind::Quoted || !needle::is_filler(token))
            && !is_word(token, &["enum", "trait", "module", "interface", "const"])
    })?;
    let name = name.text.trim_end_matches("()").to_owned();
    Some(Intent::Define { name, scope })
}

/// A word on its own, which may be a folder or a file.
fn look(tokens: &[Token]) -> Vec<Intent> {
    let names: Vec<_> = tokens.iter().filter(|token| !needle::is_filler(token)).collect();
    match names.as_slice() {
        [] if tokens.is_empty() || has(tokens, &["everything", "files", "list"]) => vec![Intent::List(".".to_owned())],
        [one] if one.kind == Kind::Word => vec![Intent::Look(place::clean(&one.text))],
        _ => vec![Intent::Unknown(None)],
    }
}

/// What a noun phrase asks for: "the first ten lines of x", "all TODOs in src", "README.md".
pub(super) fn thing(tokens: &[Token]) -> Option<Vec<Intent>> {
    let summary = ["summary", "overview", "gist", "tldr", "tl;dr", "outline", "recap", "digest"];
    let sameness = ["same", "identical", "equal", "differ", "differs", "different"];
    if has(tokens, &sameness) && place::paths(tokens).len() == 2 {
        return compare(tokens).map(|intent| vec![intent]);
    }
    if has(tokens, &["difference", "differences", "diff", "comparison"]) {
        return compare(tokens).map(|intent| vec![intent]);
    }
    if let Some(define) = define(tokens) {
        return Some(vec![define]);
    }
    if has(tokens, &["number", "count", "amount", "total", "length"]) && has(tokens, &["of"]) {
        return count::intent(tokens).map(|intent| vec![intent]);
    }
    if has(tokens, &summary) {
        let rest: Vec<Token> = tokens.iter().filter(|token| !is_word(token, &summary)).cloned().collect();
        return Some(summarise(&rest, Circumstances { piped: false, before: None }));
    }
    if let Some(part) = part::part(tokens)
        && let Some(file) = place::file(tokens).or_else(|| take_scope(tokens).0.path.map(File::Path))
    {
        return Some(vec![Intent::Read { file, part }]);
    }
    if needle::marks(tokens).is_some() {
        return Some(searches(tokens, View::Lines));
    }
    let (scope, rest) = take_scope(tokens);
    let quantified = has(
        tokens,
        &[
            "all",
            "every",
            "each",
            "any",
            "lines",
            "occurrences",
            "mentions",
            "usages",
            "uses",
            "references",
            "matches",
            "places",
            "calls",
        ],
    );
    if quantified
        && needle::needles(&rest).iter().any(|_| true)
        && files(tokens).is_none()
        && !has(&rest, &FOLDER)
        && place::paths(&rest).is_empty()
    {
        return Some(searches(tokens, View::Lines));
    }
    if let Some(intents) = files(tokens) {
        return Some(intents);
    }
    if has(tokens, &FOLDER) {
        return Some(list(tokens));
    }
    if has(&rest, &["files"]) && place::paths(&rest).is_empty() {
        return Some(vec![Intent::List(scope.path.unwrap_or_else(|| ".".to_owned()))]);
    }
    let paths: Vec<(&Token, String)> = tokens.iter().filter_map(|token| Some((token, place::path(token)?))).collect();
    if !paths.is_empty() && rest.iter().all(|token| place::path(token).is_some() || token.kind == Kind::Word) {
        let intent = |(token, path): (&Token, String)| {
            if token.text.ends_with('/') || path == "." {
                Intent::List(path)
            } else {
                Intent::Read { file: File::Path(path), part: Part::All }
            }
        };
        let needs_search = rest.iter().any(|token| {
            !needle::is_filler(token)
                && place::path(token).is_none()
                && !is_word(token, &["and", "file", "files", "contents", "content", "whole", "entire", "both", "full"])
        });
        return (!needs_search || paths.len() == rest.len()).then(|| paths.into_iter().map(intent).collect());
    }
    place::file(tokens).map(|file| vec![Intent::Read { file, part: Part::All }])
}

/// What an intent finds or reads, as the content of a file.
pub(super) fn content_of(intent: &Intent) -> Option<Content> {
    match intent {
        Intent::Search(search) => Some(Content::Found(Search { view: View::Lines, ..search.clone() })),
        Intent::Read { file: File::Path(path), .. } | Intent::Summarise(File::Path(path)) => {
            Some(Content::Copy(path.clone()))
        }
        _ => None,
    }
}

/// Whether the request is about scout itself.
fn is_about(request: &str) -> bool {
    let words: Vec<String> = request
        .to_lowercase()
        .replace('’', "'")
        .split(|c: char| !c.is_alphanumeric() && c != '\'')
        .filter(|word| {
            !word.is_empty()
                && !["please", "hey", "hi", "hello", "scout", "so", "and", "ok", "exactly", "actually", "well"]
                    .contains(word)
        })
        .map(|word| if word == "what're" { "what are".to_owned() } else { word.to_owned() })
        .collect();
    let text = words.join(" ");
    let has = |words: &[&str]| words.iter().any(|word| text.split(' ').any(|found| found == *word));
    let starts =
        |openings: &[&str]| openings.iter().any(|opening| text == *opening || text.starts_with(&format!("{opening} ")));
    let of_itself = starts(&[
        "who are you",
        "what are you",
        "what can you",
        "what do you do",
        "what are your",
        "what is your name",
        "what's your name",
        "are you",
        "how do you work",
        "how can you help",
        "what kind of",
        "which model am i",
        "what model am i",
        "what am i talking",
        "who am i talking",
        "which model are you",
        "what model are you",
        "which model is this",
        "what model is this",
        "is this an ai",
        "is this a language model",
        "tell me about yourself",
        "introduce yourself",
        "describe yourself",
        "what should i ask",
        "what can i ask",
        "what can i do",
        "how do i use you",
        "how does this work",
        "what is this program",
        "what is scout",
        "who is scout",
        "who made you",
        "explain yourself",
        "what commands",
        "do you use ai",
        "is there a language model",
        "can you do",
        "show me what you can do",
        "show me your",
        "tell me what you can do",
        "list your",
        "what do you understand",
        "what do you know",
    ]);
    let of_models = has(&["model", "models", "llm", "gpt", "openai"])
        && has(&["another", "different", "other", "switch", "choose", "pick", "select", "change", "real", "available"]);
    let is_help = matches!(
        text.as_str(),
        "help"
            | "help me"
            | "usage"
            | "commands"
            | "man"
            | "i need help"
            | "can you help me"
            | "can you help"
            | "could you help me"
            | "what now"
    );
    of_itself || of_models || is_help
}
