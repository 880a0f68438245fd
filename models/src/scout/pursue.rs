//! From what is asked to what is done: which calls are still needed, or what to say.

use serde_json::json;

use super::{
    about,
    conversation::{Call, Conversation, Done},
    intent::{Content, File, Filter, Intent, Part, Piped, Scope, Search, Unit, View},
    needle, report,
    results::{Found, Listing, ToolText},
    understand::{Circumstances, intents},
};

/// What scout does next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Call(Vec<Call>),
    Say(String),
}

/// Calls that must be made before anything can be said.
#[derive(Debug)]
struct Needs(Vec<Call>);

/// The most calls for one request. No request that scout understands needs as many.
const MOST_CALLS: usize = 100;

/// The most pages read of one file.
const MOST_PAGES: usize = 8;

/// The most things done for one request.
const MOST_INTENTS: usize = 12;

/// Matches the beginning of a file and nothing else: a search for it finds each file once.
const EVERY_FILE: &str = r"\A";

/// Matches every line.
const EVERY_LINE: &str = "^";

/// Decides what to do next in `conversation`.
pub(super) fn step(conversation: &Conversation) -> Step {
    let mut asked = asked(conversation);
    let dropped = asked.len().saturating_sub(MOST_INTENTS);
    asked.truncate(MOST_INTENTS);
    let mut calls: Vec<Call> = Vec::new();
    let mut sections: Vec<String> = Vec::new();
    for intent in &asked {
        match pursue(intent, conversation) {
            Ok(section) => sections.push(section),
            Err(Needs(needed)) => match needed.iter().find(|call| !conversation.offers(call.tool)) {
                Some(call) => sections.push(report::not_offered(call.tool)),
                None if conversation.calls() >= MOST_CALLS => sections.push(report::too_many_calls()),
                None => calls.extend(needed),
            },
        }
    }
    if !calls.is_empty() {
        let mut once: Vec<Call> = Vec::new();
        for call in calls {
            if !once.contains(&call) {
                once.push(call);
            }
        }
        return Step::Call(once);
    }
    if dropped > 0 {
        sections
            .push(format!("You asked for more than {MOST_INTENTS} things at once; the last {dropped} were left out."));
    }
    Step::Say(sections.join("\n\n"))
}

/// Everything that the request asks for.
pub(super) fn asked(conversation: &Conversation) -> Vec<Intent> {
    let circumstances = Circumstances { piped: conversation.piped.is_some(), before: conversation.before.as_deref() };
    intents(&conversation.request, circumstances)
}

fn pursue(intent: &Intent, done: &Conversation) -> Result<String, Needs> {
    match intent {
        Intent::Search(search) => run_search(search, done),
        Intent::Define { name, scope } => define(name, scope, done),
        Intent::Files { filter, scope, count } => files(filter, scope, *count, done),
        Intent::List(path) => list(path, done),
        Intent::Look(word) => look(word, done),
        Intent::Read { file, part } => each_file(file, done, |path| read(path, *part, done)),
        Intent::Measure { file, unit } => each_file(file, done, |path| measure(path, *unit, done)),
        Intent::Summarise(file) => each_file(file, done, |path| summarise(path, done)),
        Intent::Compare(one, two) => compare(one, two, done),
        Intent::Write { path, content } => write(path, content, done),
        Intent::Piped(piped) => Ok(of_piped(piped, done.piped.as_deref().unwrap_or_default())),
        Intent::About => Ok(about::itself()),
        Intent::Greeting => Ok(about::greeting()),
        Intent::Missing(question) => Ok((*question).to_owned()),
        Intent::Unknown(verb) => Ok(about::not_understood(verb.as_deref())),
    }
}

// The calls.

fn search_call(pattern: &str, path: Option<&str>) -> Call {
    let arguments = match path {
        Some(path) => json!({ "pattern": pattern, "path": path }),
        None => json!({ "pattern": pattern }),
    };
    Call { tool: "fs.search", arguments: arguments.to_string() }
}

fn list_call(path: &str) -> Call {
    Call { tool: "fs.list", arguments: json!({ "path": path }).to_string() }
}

fn read_call(path: &str, lines: Option<(u64, Option<u64>)>) -> Call {
    let arguments = match lines {
        None => json!({ "path": path }),
        Some((offset, None)) => json!({ "path": path, "offset": offset }),
        Some((offset, Some(limit))) => json!({ "path": path, "offset": offset, "limit": limit }),
    };
    Call { tool: "fs.read", arguments: arguments.to_string() }
}

/// What came of `call`; it is needed if it was not made yet.
fn result(done: &Conversation, call: Call) -> Result<&Done, Needs> {
    match done.result(&call) {
        Some(result) => Ok(result),
        None => Err(Needs(vec![call])),
    }
}

fn is_missing(result: &Done) -> bool {
    result.failed && result.text.contains("does not exist")
}

// The intents.

fn run_search(search: &Search, done: &Conversation) -> Result<String, Needs> {
    let result = result(done, search_call(&search.needle.pattern, search.scope.path.as_deref()))?;
    if is_missing(result)
        && let Some(path) = &search.scope.path
    {
        let everywhere =
            Search { scope: Scope { path: None, only: search.scope.only.clone(), also: Vec::new() }, ..search.clone() };
        let found = run_search(&everywhere, done)?;
        return Ok(format!("There is no `{path}` here, so I looked everywhere. {found}"));
    }
    if result.failed {
        return Ok(report::failed(&format!("The search for {}", search.needle.words), &result.text));
    }
    Ok(report::search(search, &Found::parse(&result.text)))
}

fn define(name: &str, scope: &Scope, done: &Conversation) -> Result<String, Needs> {
    let path = scope.path.as_deref();
    let defined = result(done, search_call(&needle::definition(name), path))?;
    if defined.failed {
        return Ok(report::failed(&format!("The search for the definition of `{name}`"), &defined.text));
    }
    let found = Found::parse(&defined.text);
    if !found.matches.is_empty() {
        return Ok(report::definitions(name, scope, &found));
    }
    let search = Search { needle: needle::name(name), scope: scope.clone(), view: View::Lines };
    let mentions = run_search(&search, done)?;
    Ok(format!(
        "I found no line that defines `{name}` with a keyword such as `fn`, `struct`, `class` or `def`. {mentions}"
    ))
}

fn files(filter: &Filter, scope: &Scope, count: bool, done: &Conversation) -> Result<String, Needs> {
    let result = result(done, search_call(EVERY_FILE, scope.path.as_deref()))?;
    if result.failed {
        return Ok(report::failed("Looking through the files", &result.text));
    }
    Ok(report::files(filter, scope, count, &Found::parse(&result.text)))
}

fn list(path: &str, done: &Conversation) -> Result<String, Needs> {
    let listed = result(done, list_call(path))?;
    if listed.failed && listed.text.contains("is a file") {
        return read(path, Part::All, done);
    }
    if listed.failed {
        return Ok(report::failed(&format!("Listing `{path}`"), &listed.text));
    }
    Ok(report::listing(path, &Listing::parse(&listed.text)))
}

/// A folder, else a file, else a word to search for.
fn look(word: &str, done: &Conversation) -> Result<String, Needs> {
    let listed = result(done, list_call(word))?;
    if !listed.failed || !is_missing(listed) {
        return list(word, done);
    }
    let located = result(done, search_call(EVERY_FILE, None))?;
    let named = Filter::Named(word.to_owned());
    let found = Found::parse(&located.text);
    let stem = |path: &str| {
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name).eq_ignore_ascii_case(word)
    };
    if !located.failed
        && let [path] = found.paths().into_iter().filter(|path| stem(path)).collect::<Vec<_>>().as_slice()
    {
        return read(path, Part::All, done);
    }
    if !located.failed && found.paths().into_iter().any(|path| named.fits(path)) {
        let files = report::files(&named, &Scope::default(), false, &found);
        return Ok(format!("There is no file or folder `{word}`. {files}"));
    }
    let needle = needle::needles(&super::token::tokens(word)).into_iter().next().unwrap_or_else(|| needle::name(word));
    let search = Search { needle, scope: Scope::default(), view: View::Lines };
    Ok(format!("There is no file or folder `{word}`, so I looked for the word. {}", run_search(&search, done)?))
}

/// Does `act` for the file that `file` names, or for each that is called so.
fn each_file(file: &File, done: &Conversation, act: impl Fn(&str) -> Result<String, Needs>) -> Result<String, Needs> {
    let stems = match file {
        File::Path(path) => return act(path),
        File::Called(stems) => stems,
    };
    let listed = result(done, list_call("."))?;
    if listed.failed {
        return Ok(report::failed("Listing the folder", &listed.text));
    }
    let listing = Listing::parse(&listed.text);
    let called = |name: &&str| stems.iter().any(|stem| name.to_lowercase().starts_with(stem));
    let names: Vec<&str> = listing.files().filter(called).take(3).collect();
    if names.is_empty() {
        let words = stems.first().copied().unwrap_or_default();
        return Ok(format!("There is no file here whose name begins with “{words}”."));
    }
    all(names.into_iter().map(act)).map(|sections| sections.join("\n\n"))
}

/// All results, or everything that any of them needs.
fn all(results: impl Iterator<Item = Result<String, Needs>>) -> Result<Vec<String>, Needs> {
    let (mut sections, mut needed) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(section) => sections.push(section),
            Err(Needs(calls)) => needed.extend(calls),
        }
    }
    if needed.is_empty() { Ok(sections) } else { Err(Needs(needed)) }
}

fn read(path: &str, part: Part, done: &Conversation) -> Result<String, Needs> {
    let call = match part {
        Part::All => read_call(path, None),
        Part::First(count) => read_call(path, Some((1, Some(count.max(1))))),
        Part::Lines(from, to) => read_call(path, Some((from, Some(to.saturating_sub(from).saturating_add(1))))),
        Part::Last(count) => {
            let counted = result(done, search_call(EVERY_LINE, Some(path)))?;
            if counted.failed {
                return elsewhere(path, counted, done, |path| read(path, part, done));
            }
            let total = Found::parse(&counted.text).total;
            read_call(path, Some((total.saturating_sub(count).saturating_add(1).min(total.max(1)), Some(count.max(1)))))
        }
    };
    let page = result(done, call)?;
    if page.failed {
        return elsewhere(path, page, done, |path| read(path, part, done));
    }
    Ok(report::text(path, &ToolText::parse(&page.text)))
}

/// A path that could not be read: it may be a folder, or a file's name without its folder.
fn elsewhere(
    path: &str,
    failure: &Done,
    done: &Conversation,
    act: impl Fn(&str) -> Result<String, Needs>,
) -> Result<String, Needs> {
    if failure.text.contains("is a directory") {
        return list(path, done);
    }
    if !is_missing(failure) || path.contains("..") {
        return Ok(report::failed(&format!("Reading `{path}`"), &failure.text));
    }
    let located = result(done, search_call(EVERY_FILE, None))?;
    let found = Found::parse(&located.text);
    let candidates: Vec<&str> = if located.failed {
        Vec::new()
    } else {
        let ending = format!("/{path}").to_lowercase();
        let is_candidate =
            |candidate: &&str| *candidate != path && format!("/{candidate}").to_lowercase().ends_with(&ending);
        found.paths().into_iter().filter(is_candidate).collect()
    };
    match candidates.as_slice() {
        [] => Ok(report::failed(&format!("Reading `{path}`"), &failure.text)),
        [one] => act(one),
        many => Ok(report::which(path, many)),
    }
}

/// A whole text, and whether it is all there is.
struct Whole {
    text: String,
    is_complete: bool,
}

/// Reads `path` page by page; what went wrong, where it could not be read.
fn whole<'a>(path: &str, done: &'a Conversation) -> Result<Result<Whole, &'a Done>, Needs> {
    let mut text = String::new();
    let mut offset = None;
    for _ in 0..MOST_PAGES {
        let page = result(done, read_call(path, offset.map(|offset| (offset, None))))?;
        if page.failed {
            return Ok(Err(page));
        }
        let parts = ToolText::parse(&page.text);
        text.push_str(parts.content);
        if !parts.content.is_empty() {
            text.push('\n');
        }
        let Some(next) = parts.left_out.iter().find_map(|sentence| next_page(sentence)) else {
            return Ok(Ok(Whole { text, is_complete: parts.left_out.is_empty() }));
        };
        if parts.left_out.len() > 1 {
            break;
        }
        offset = Some(next);
    }
    Ok(Ok(Whole { text, is_complete: false }))
}

/// The line after `… goes on at line 2001: …`.
fn next_page(sentence: &str) -> Option<u64> {
    let (_, after) = sentence.split_once(" goes on at line ")?;
    after.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn measure(path: &str, unit: Unit, done: &Conversation) -> Result<String, Needs> {
    if unit == Unit::Lines {
        let counted = result(done, search_call(EVERY_LINE, Some(path)))?;
        if counted.failed {
            return elsewhere(path, counted, done, |path| measure(path, unit, done));
        }
        return Ok(report::lines(path, &Found::parse(&counted.text)));
    }
    match whole(path, done)? {
        Err(failure) => elsewhere(path, failure, done, |path| measure(path, unit, done)),
        Ok(whole) => Ok(report::measure(path, unit, &whole.text, whole.is_complete)),
    }
}

fn summarise(path: &str, done: &Conversation) -> Result<String, Needs> {
    match whole(path, done)? {
        Err(failure) => elsewhere(path, failure, done, |path| summarise(path, done)),
        Ok(whole) => Ok(report::summary(&format!("`{path}`"), &whole.text, whole.is_complete)),
    }
}

fn compare(one: &File, two: &File, done: &Conversation) -> Result<String, Needs> {
    let path = |file: &File| match file {
        File::Path(path) => path.clone(),
        File::Called(stems) => stems.first().copied().unwrap_or_default().to_owned(),
    };
    let (one, two) = (path(one), path(two));
    let (first, second) = match (whole(&one, done), whole(&two, done)) {
        (Ok(first), Ok(second)) => (first, second),
        (first, second) => {
            let calls = [first.err(), second.err()].into_iter().flatten().flat_map(|Needs(calls)| calls);
            return Err(Needs(calls.collect()));
        }
    };
    match (first, second) {
        (Ok(first), Ok(second)) => {
            let is_complete = first.is_complete && second.is_complete;
            Ok(report::comparison([&one, &two], [&first.text, &second.text], is_complete))
        }
        (first, second) => {
            let failed = |path: &str, failure: &Done| report::failed(&format!("Reading `{path}`"), &failure.text);
            let failures = [(&one, first.err()), (&two, second.err())];
            let told: Vec<String> =
                failures.iter().filter_map(|(path, failure)| failure.map(|failure| failed(path, failure))).collect();
            Ok(told.join("\n\n"))
        }
    }
}

fn write(path: &str, content: &Content, done: &Conversation) -> Result<String, Needs> {
    let mut note = String::new();
    let text = match content {
        Content::Text(text) => text.clone(),
        Content::Found(search) => {
            let found = result(done, search_call(&search.needle.pattern, search.scope.path.as_deref()))?;
            if found.failed {
                return Ok(report::failed(&format!("The search for {}", search.needle.words), &found.text));
            }
            let found = Found::parse(&found.text);
            if found.matches.is_empty() {
                return Ok(format!(
                    "{}\n\nSo there was nothing to write, and `{path}` was not touched.",
                    report::search(search, &found)
                ));
            }
            note = format!("\n\n{}", report::search(search, &found));
            report::plain_lines(search, &found)
        }
        Content::Copy(from) => match whole(from, done)? {
            Err(failure) => return Ok(report::failed(&format!("Reading `{from}`"), &failure.text)),
            Ok(whole) if whole.is_complete => whole.text,
            Ok(_) => {
                return Ok(format!(
                    "`{from}` cannot be read whole as text, so a copy would lose something. I did not write `{path}`."
                ));
            }
        },
    };
    let call = Call { tool: "fs.write", arguments: json!({ "path": path, "content": text }).to_string() };
    let written = result(done, call)?;
    if written.failed {
        return Ok(format!("{}{note}", report::failed(&format!("Writing `{path}`"), &written.text)));
    }
    Ok(format!("{}{note}", report::written(path, &ToolText::parse(&written.text))))
}

fn of_piped(piped: &Piped, text: &str) -> String {
    match piped {
        Piped::Summarise => report::summary("What you piped in", text, true),
        Piped::Show(part) => report::piped_part(*part, text),
        Piped::Measure(Unit::Lines) => report::piped_lines(text),
        Piped::Measure(unit) => report::measure("What you piped in", *unit, text, true),
        Piped::Find(needle, view) => report::piped_search(needle, *view, text),
    }
}
