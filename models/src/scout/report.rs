//! What scout writes: only what the tools returned, in order, with what is missing.

use std::fmt::Write as _;

use super::{
    difference::{Line, difference},
    intent::{Filter, Needle, Part, Scope, Search, Unit, View},
    results::{Found, Listing, Match, ToolText},
};

/// The most characters of one line that are shown.
const LINE: usize = 240;

/// The most lines of a difference, and the most names of a list, that are shown.
const MOST_LINES: usize = 200;

/// Lines of a text that stand for it in a summary.
const SAMPLE: usize = 5;

/// `text`, no longer than so many tokens, and whether something was cut off.
pub(super) fn bounded(text: String, max_output_tokens: u64) -> (String, bool) {
    const NOTE: &str = "\n\n(Cut off here: the answer is limited to its length. Ask for less at once to see the rest.)";
    let most = usize::try_from(max_output_tokens.saturating_mul(3)).unwrap_or(usize::MAX);
    if text.len() <= most {
        return (text, false);
    }
    let room = text.floor_char_boundary(most.saturating_sub(NOTE.len()));
    let kept = text.get(..room).unwrap_or_default();
    let whole_lines = kept.rfind('\n').map_or(kept, |end| kept.get(..end).unwrap_or_default());
    let mut cut = whole_lines.to_owned();
    if most > NOTE.len() {
        // A code block that is cut open is closed.
        if let Some(fence) = open_fence(&cut) {
            let _ = write!(cut, "\n{fence}");
        }
        cut.push_str(NOTE);
    }
    (cut, true)
}

fn open_fence(text: &str) -> Option<String> {
    let mut open: Option<String> = None;
    for line in text.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match &open {
            None if ticks >= 3 => open = line.get(..ticks).map(str::to_owned),
            Some(fence) if line == fence => open = None,
            _ => {}
        }
    }
    open
}

/// `1 line`, `2 lines`.
fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// A line as it is shown: trimmed, without control characters, not longer than a screen is wide.
fn shown(line: &str) -> String {
    let visible: String = line.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let cut = visible.char_indices().nth(LINE).map(|(at, _)| at);
    match cut.and_then(|at| visible.get(..at)) {
        Some(beginning) => format!("{beginning}…"),
        None => visible,
    }
}

/// What was left out, as the tool says it.
fn left_out(sentences: &[&str]) -> String {
    match sentences {
        [] => String::new(),
        sentences => {
            let mut text = "\n\nNot included:".to_owned();
            for sentence in sentences {
                let _ = write!(text, "\n- {}", shown(sentence));
            }
            text
        }
    }
}

fn place(scope: &Scope) -> String {
    let only = scope.only.as_ref().map(|only| format!(" in {}", only.words())).unwrap_or_default();
    let path = scope.path.as_ref().map(|path| format!(" in `{path}`")).unwrap_or_default();
    format!("{only}{path}")
}

pub(super) fn failed(what: &str, why: &str) -> String {
    format!("{what} did not work: {}", shown(&why.lines().take(3).collect::<Vec<_>>().join(" ")))
}

pub(super) fn not_offered(tool: &str) -> String {
    format!("I would have to call `{tool}` for this, and it is not offered to me now. So I cannot say.")
}

pub(super) fn too_many_calls() -> String {
    "I made as many tool calls as I make for one request, and stopped. Ask for less at once.".to_owned()
}

/// The matches of a search, by file.
fn by_file<'a>(matches: &[Match<'a>]) -> Vec<(&'a str, Vec<Match<'a>>)> {
    let mut files: Vec<(&str, Vec<Match<'_>>)> = Vec::new();
    for found in matches {
        match files.last_mut() {
            Some((path, lines)) if *path == found.path => lines.push(found.clone()),
            _ => files.push((found.path, vec![found.clone()])),
        }
    }
    files
}

/// Only the matches in files that the scope means.
fn wanted<'a>(scope: &Scope, found: &Found<'a>) -> Vec<Match<'a>> {
    let fits = |found: &&Match<'_>| scope.only.as_ref().is_none_or(|only| only.fits(found.path));
    found.matches.iter().filter(fits).cloned().collect()
}

pub(super) fn search(search: &Search, found: &Found<'_>) -> String {
    let Search { needle, scope, view } = search;
    let matches = wanted(scope, found);
    let files = by_file(&matches);
    let alike = if needle.pattern.starts_with("(?i)") { " (capitals or not)" } else { "" };
    let place = place(scope);
    let searched =
        found.searched.map(|files| format!(" I searched {}.", count(files, "file", "files"))).unwrap_or_default();
    if matches.is_empty() {
        return format!("I found no {}{alike}{place}.{searched}{}", needle.words, left_out(&found.left_out));
    }
    // With a filter only what was returned can be counted.
    let total = if scope.only.is_some() { matches.len() as u64 } else { found.total };
    let mut text = format!(
        "{} {} on {}{place}, in {}{alike}.",
        if *view == View::Count { "I counted" } else { "I found" },
        needle.words,
        count(total, "line", "lines"),
        count(files.len() as u64, "file", "files"),
    );
    if total > matches.len() as u64 {
        let _ = write!(text, " {} of them are shown.", matches.len());
    }
    text.push('\n');
    for (path, lines) in &files {
        match view {
            View::Lines => {
                let _ = write!(text, "\n**{path}** ({})\n", lines.len());
                for line in lines {
                    let _ = writeln!(text, "- {path}:{}: {}", line.line, shown(line.text));
                }
            }
            View::Files | View::Count => {
                let _ = write!(text, "\n- {path} ({})", count(lines.len() as u64, "line", "lines"));
            }
        }
    }
    format!("{}{}", text.trim_end(), left_out(&found.left_out))
}

pub(super) fn definitions(name: &str, scope: &Scope, found: &Found<'_>) -> String {
    let matches = wanted(scope, found);
    let mut text = match matches.len() {
        1 => format!("`{name}` is defined here:\n"),
        many => format!("`{name}` may be defined in {many} places:\n"),
    };
    for found in matches {
        let _ = write!(text, "\n- {}:{}: {}", found.path, found.line, shown(found.text));
    }
    format!("{text}{}", left_out(&found.left_out))
}

/// The found lines as the content of a file.
pub(super) fn plain_lines(search: &Search, found: &Found<'_>) -> String {
    wanted(&search.scope, found)
        .iter()
        .map(|found| format!("{}:{}: {}\n", found.path, found.line, found.text.trim()))
        .collect()
}

pub(super) fn files(filter: &Filter, scope: &Scope, counts: bool, found: &Found<'_>) -> String {
    let place = place(scope);
    let paths: Vec<&str> = found.paths().into_iter().filter(|path| filter.fits(path)).collect();
    let note = "(Folders within are included. Files that are binary, empty or ignored by .gitignore are not.)";
    if counts && *filter == Filter::Any {
        let total = found.searched.unwrap_or(paths.len() as u64);
        let note = "(Folders within are included. Files that are binary or ignored by .gitignore are not.)";
        return format!("There are {}{place}. {note}", count(total, "text file", "text files"));
    }
    let is_whole = found.total <= found.matches.len() as u64;
    let more = if is_whole { "" } else { " at least" };
    if paths.is_empty() {
        return format!("I found no {}{place}. {note}{}", filter.words(), left_out(&found.left_out));
    }
    let mut text =
        format!("I found{more} {}: {}{place}.\n", count(paths.len() as u64, "file", "files"), filter.words());
    for path in paths.iter().take(MOST_LINES) {
        let _ = write!(text, "\n- {path}");
    }
    if paths.len() > MOST_LINES {
        let _ = write!(text, "\n- … and {} more", paths.len() - MOST_LINES);
    }
    format!("{text}\n\n{note}{}", if is_whole { String::new() } else { left_out(&found.left_out) })
}

pub(super) fn which(path: &str, candidates: &[&str]) -> String {
    let mut text = format!("There is no `{path}` here, but several files end like that. Which one do you mean?\n");
    for candidate in candidates.iter().take(MOST_LINES) {
        let _ = write!(text, "\n- {candidate}");
    }
    text
}

pub(super) fn listing(path: &str, listing: &Listing<'_>) -> String {
    let place = if path == "." { "This folder".to_owned() } else { format!("`{path}`") };
    if listing.entries.is_empty() {
        return format!("{place} is empty.{}", left_out(&listing.left_out));
    }
    let folders = listing.folders() as u64;
    let files = listing.entries.len() as u64 - folders;
    let mut text =
        format!("{place} holds {} and {}:\n", count(folders, "folder", "folders"), count(files, "file", "files"));
    for entry in &listing.entries {
        let _ = write!(text, "\n- {}", shown(entry));
    }
    format!("{text}{}", left_out(&listing.left_out))
}

/// A text as it is, between marks that it does not hold.
fn block(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let visible: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    format!("{fence}\n{}\n{fence}", visible.trim_end_matches('\n'))
}

pub(super) fn text(path: &str, page: &ToolText<'_>) -> String {
    if page.content.is_empty() {
        return format!("`{path}` is empty.{}", left_out(&page.left_out));
    }
    let what = if page.summary.is_empty() { format!("`{path}`") } else { shown(page.summary) };
    format!("{}:\n\n{}{}", capital(&what), block(page.content), left_out(&page.left_out))
}

fn capital(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

pub(super) fn lines(path: &str, found: &Found<'_>) -> String {
    format!("`{path}` has {}.", count(found.total, "line", "lines"))
}

pub(super) fn measure(what: &str, unit: Unit, text: &str, is_complete: bool) -> String {
    let what = if what.contains(' ') { what.to_owned() } else { format!("`{what}`") };
    let least = if is_complete { "" } else { "at least " };
    let amount = match unit {
        Unit::Lines => count(text.lines().count() as u64, "line", "lines"),
        Unit::Words => count(text.split_whitespace().count() as u64, "word", "words"),
        Unit::Characters => {
            format!(
                "{} ({})",
                count(text.chars().count() as u64, "character", "characters"),
                count(text.len() as u64, "byte", "bytes")
            )
        }
    };
    format!("{what} has {least}{amount}.")
}

/// How long a text is, its headings and its first lines.
pub(super) fn summary(what: &str, text: &str, is_complete: bool) -> String {
    let filled: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if filled.is_empty() {
        return format!("{what} is empty.");
    }
    let least = if is_complete { "" } else { "at least " };
    let mut report = format!(
        "{what} has {least}{} and {}.",
        count(text.lines().count() as u64, "line", "lines"),
        count(text.split_whitespace().count() as u64, "word", "words")
    );
    let headings: Vec<&str> = filled.iter().copied().filter(|line| is_heading(line)).collect();
    let definitions: Vec<&str> = filled.iter().copied().filter(|line| is_definition(line)).collect();
    let complaints: Vec<&str> = filled.iter().copied().filter(|line| is_complaint(line)).collect();
    excerpt(&mut report, "Headings", &headings);
    if headings.len() < 2 {
        excerpt(&mut report, "Definitions", &definitions);
        excerpt(&mut report, "Lines that speak of an error or a warning", &complaints);
    }
    let sample: Vec<&str> = filled.iter().copied().filter(|line| !is_heading(line)).take(SAMPLE).collect();
    if !sample.is_empty() {
        let _ = write!(
            report,
            "\n\nIt begins:\n\n{}",
            block(&sample.iter().map(|line| shown(line)).collect::<Vec<_>>().join("\n"))
        );
    }
    report.push_str("\n\n(I count and quote; I am no language model and cannot tell what it means.)");
    report
}

fn excerpt(report: &mut String, title: &str, lines: &[&str]) {
    const MOST: usize = 20;
    if lines.is_empty() {
        return;
    }
    let _ = write!(report, "\n\n{title} ({}):", lines.len());
    for line in lines.iter().take(MOST) {
        let _ = write!(report, "\n- {}", shown(line.trim_start_matches('#')));
    }
    if lines.len() > MOST {
        let _ = write!(report, "\n- … and {} more", lines.len() - MOST);
    }
}

fn is_heading(line: &str) -> bool {
    let after = line.trim_start_matches('#');
    let level = line.len() - after.len();
    (1..=6).contains(&level) && after.starts_with(' ')
}

fn is_definition(line: &str) -> bool {
    let words = ["fn ", "struct ", "enum ", "trait ", "class ", "def ", "function ", "interface ", "type ", "mod "];
    let line = line.strip_prefix("pub(crate) ").or_else(|| line.strip_prefix("pub ")).unwrap_or(line);
    let line = line.strip_prefix("export ").unwrap_or(line);
    let line = line.strip_prefix("async ").unwrap_or(line);
    words.iter().any(|word| line.starts_with(word)) && line.contains(['(', '{', ':', '<', ';'])
}

fn is_complaint(line: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric()).any(|word| {
        matches!(
            word.to_ascii_lowercase().as_str(),
            "error" | "errors" | "warning" | "warn" | "fatal" | "panic" | "failed" | "failure"
        )
    })
}

/// Two texts side by side.
pub(super) fn comparison([one, two]: [&str; 2], [first, second]: [&str; 2], is_complete: bool) -> String {
    let part =
        if is_complete { "" } else { "\n\n(They are too long to read whole; only their beginnings were compared.)" };
    if first == second {
        let lines = count(first.lines().count() as u64, "line", "lines");
        return format!("`{one}` and `{two}` are the same, line for line ({lines}).{part}");
    }
    let Some(lines) = difference(first, second) else {
        return format!("`{one}` and `{two}` differ, in more lines than I can list.{part}");
    };
    let (mut body, mut removed, mut added) = (String::new(), 0, 0);
    for line in &lines {
        let (mark, text) = match line {
            Line::Both(_) => continue,
            Line::First(text) => {
                removed += 1;
                ('-', text)
            }
            Line::Second(text) => {
                added += 1;
                ('+', text)
            }
        };
        if removed + added <= MOST_LINES as u64 {
            let _ = writeln!(body, "{mark} {}", shown(text));
        }
    }
    if removed + added == 0 {
        return format!("`{one}` and `{two}` differ only in how their lines end.{part}");
    }
    let more = (removed + added).saturating_sub(MOST_LINES as u64);
    let rest =
        if more > 0 { format!("\n\nNot included: {} more.", count(more, "line", "lines")) } else { String::new() };
    format!(
        "`{one}` and `{two}` differ: {} only in the first (-), {} only in the second (+).\n\n{}{rest}{part}",
        count(removed, "line is", "lines are"),
        count(added, "line is", "lines are"),
        block(&body)
    )
}

pub(super) fn written(path: &str, page: &ToolText<'_>) -> String {
    let said = if page.summary.is_empty() { format!("`{path}` was written") } else { page.summary.to_owned() };
    format!("Done: {}.", shown(&said).trim_end_matches('.'))
}

// What was piped in.

pub(super) fn piped_lines(text: &str) -> String {
    format!("What you piped in has {}.", count(text.lines().count() as u64, "line", "lines"))
}

pub(super) fn piped_part(part: Part, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let total = lines.len() as u64;
    let (from, to) = match part {
        Part::All => (1, total),
        Part::First(count) => (1, count.min(total)),
        Part::Last(count) => (total.saturating_sub(count) + 1, total),
        Part::Lines(from, to) => (from, to.min(total)),
    };
    let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let Some(some) = lines.get(index(from.saturating_sub(1))..index(to)).filter(|some| !some.is_empty()) else {
        return format!("What you piped in has only {}.", count(total, "line", "lines"));
    };
    format!("Lines {from} to {to} of the {total} you piped in:\n\n{}", block(&some.join("\n")))
}

pub(super) fn piped_search(needle: &Needle, view: View, text: &str) -> String {
    let Ok(regex) = regex::Regex::new(&needle.pattern) else {
        return format!("{} is not a regular expression that I can use.", needle.words);
    };
    let found: Vec<(usize, &str)> = text.lines().enumerate().filter(|(_, line)| regex.is_match(line)).collect();
    if found.is_empty() {
        return format!(
            "I found no {} in what you piped in ({}).",
            needle.words,
            count(text.lines().count() as u64, "line", "lines")
        );
    }
    let mut report =
        format!("I found {} on {} of what you piped in.", needle.words, count(found.len() as u64, "line", "lines"));
    if view != View::Count {
        report.push('\n');
        for (at, line) in found {
            let _ = write!(report, "\n- line {}: {}", at + 1, shown(line));
        }
    }
    report
}
