//! `fs.search`: every line of the workspace that a regular expression matches.

use crate::ephor::tool::host::{at, emit};
use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::rules::Rules;
use crate::text::{Names, boundary, count, visible};
use crate::workspace::{
    BYTE_ORDER_MARK, DescriptorType, DirectoryEntry, ErrorCode, File, Found, Kind, Workspace, key, kind_of,
};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.search";

/// Bytes of matching lines in an answer: about a fifth of the context of a usual model. What comes after is counted.
const ANSWER_BYTES: usize = 64 * 1024;

/// Bytes shown of one line, and how many of them stand before the match when the line is longer.
const LINE_BYTES: usize = 400;
const LINE_BEFORE: usize = 100;

/// A longer line is searched up to here: one that long is data, and must fit in the guest's memory.
const LONGEST_LINE: usize = 4 * 1024 * 1024;

/// Where a search stops, so that it ends by itself, with an answer, before a limit ends it without one.
const MOST_FILES: u64 = 200_000;
const MOST_BYTES: u64 = 8 * 1024 * 1024 * 1024;

/// A line that goes on for longer than this is passed over no further, and with it the rest of its file.
const ENDLESS_LINE: u64 = 256 * 1024 * 1024;

/// Bytes that a pattern may take when it is compiled, and again while it is searched for.
const AUTOMATON_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that the names of a directory take, for all directories open at once; each has at least the second.
const NAMES_BYTES: usize = 16 * 1024 * 1024;
const LEAST_NAMES_BYTES: usize = 64 * 1024;

/// Directories open at once: one a level.
const DEEPEST: usize = 100;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    pattern: String,
    path: Option<String>,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Searches the files of the workspace for a regular expression (Rust syntax; `(?i)` ignores case), \
                      line by line, and returns `path:line: text` for every match, sorted by path. Leaves out what \
                      .gitignore files ignore, .git, binary files and files that hold secrets, and does not follow symbolic \
                      links. When there are too many matches it says how many it left out."
            .to_owned(),
        input: r#"{"type":"object","properties":{"pattern":{"type":"string","minLength":1,"description":"Regular expression, matched within each line."},"path":{"type":"string","minLength":1,"description":"File or directory to search, relative to the workspace. Default: all of it."}},"required":["pattern"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(arguments.path.as_deref().unwrap_or("."))?;
    let mut search = Search::new(compile(&arguments.pattern)?);
    match workspace.find(path.as_wasi())? {
        Found::File(file) => search.file(path.as_str(), file),
        Found::Directory(directory) => {
            search.rules_above(workspace, &path);
            search.directory(&directory, path.as_str());
        }
    }
    Ok(search.answer())
}

fn compile(pattern: &str) -> Result<RegexMatcher, Failure> {
    let unusable = |error: String| {
        Failure::InvalidArguments(format!("`pattern` is not a regular expression that can be used here: {error}"))
    };
    let pattern = by_line(pattern).map_err(unusable)?;
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).crlf(true).size_limit(AUTOMATON_BYTES).dfa_size_limit(AUTOMATON_BYTES);
    builder.build(&pattern).map_err(|error| unusable(error.to_string()))
}

/// The same pattern for lines: what stands for the beginning or the end of all text stands for that of a line. Otherwise it would match
/// wherever a piece of the file happens to begin.
fn by_line(pattern: &str) -> Result<String, String> {
    let mut parser = ParserBuilder::new().multi_line(true).crlf(true).utf8(false).build();
    let parsed = parser.parse(pattern).map_err(|error| error.to_string())?;
    let looks = parsed.properties().look_set();
    if looks.contains(Look::Start) || looks.contains(Look::End) {
        Ok(lined(parsed).to_string())
    } else {
        Ok(pattern.to_owned())
    }
}

fn lined(part: Hir) -> Hir {
    match part.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(class) => Hir::class(class),
        HirKind::Look(Look::Start) => Hir::look(Look::StartCRLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(repetition) => {
            let sub = Box::new(lined(*repetition.sub));
            Hir::repetition(Repetition { sub, ..repetition })
        }
        HirKind::Capture(capture) => {
            let sub = Box::new(lined(*capture.sub));
            Hir::capture(Capture { sub, ..capture })
        }
        HirKind::Concat(parts) => Hir::concat(parts.into_iter().map(lined).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.into_iter().map(lined).collect()),
    }
}

struct Search {
    matcher: RegexMatcher,
    /// Bytes that are left for the names of directories.
    room: usize,
    rules: Rules,
    found: Matches,
    files: u64,
    bytes: u64,
    ignored: u64,
    left_out: LeftOut,
}

/// The matches, as many as fit, and the count of the others.
#[derive(Default)]
struct Matches {
    lines: String,
    /// Bytes of lines that were emitted before these.
    emitted: usize,
    matches: u64,
    files: u64,
    hidden: u64,
    hidden_files: u64,
    first_hidden: Option<String>,
    last_hidden: String,
    cut: u64,
}

#[derive(Default)]
struct LeftOut {
    binary: Names,
    wide: Names,
    withheld: Names,
    links: Names,
    special: Names,
    unreadable: Names,
    rules: Names,
    deep: Names,
    long: Names,
    endless: Names,
    unnamed: u64,
    /// The first path that was not reached when the search stopped itself.
    stopped_at: Option<String>,
}

impl Search {
    fn new(matcher: RegexMatcher) -> Self {
        Self {
            matcher,
            room: NAMES_BYTES,
            rules: Rules::default(),
            found: Matches::default(),
            files: 0,
            bytes: 0,
            ignored: 0,
            left_out: LeftOut::default(),
        }
    }

    /// The rules that stand above the directory where the search begins hold inside it too.
    fn rules_above(&mut self, workspace: &Workspace, path: &Path) {
        let mut above = String::new();
        for part in path.as_str().split('/').filter(|part| !part.is_empty()) {
            if let Ok(Found::Directory(directory)) = workspace.find(if above.is_empty() { "." } else { &above }) {
                self.read_rules(&directory, &above, true);
            }
            if !above.is_empty() {
                above.push('/');
            }
            above.push_str(part);
        }
    }

    fn read_rules(&mut self, directory: &Workspace, path: &str, listed: bool) {
        if self.rules.push(directory, path, listed).is_err() {
            self.left_out.rules.add(&join(path, ".gitignore"));
        }
    }

    fn directory(&mut self, directory: &Workspace, path: &str) {
        let room = (self.room / 2).max(LEAST_NAMES_BYTES);
        self.room = self.room.saturating_sub(room);
        let mut after = None;
        loop {
            let is_first = after.is_none();
            let entries = match directory.entries(after.as_deref(), room, usize::MAX) {
                Ok(entries) => entries,
                Err(_) => {
                    self.left_out.unreadable.add(if path.is_empty() { "." } else { path });
                    if is_first {
                        self.read_rules(directory, path, false);
                    }
                    break;
                }
            };
            if is_first {
                self.left_out.unnamed += entries.unnamed;
                self.read_rules(directory, path, entries.ignores);
            }
            for entry in &entries.named {
                if self.left_out.stopped_at.is_some() {
                    break;
                }
                self.entry(directory, join(path, &entry.name), entry);
            }
            match entries.named.last() {
                Some(last) if entries.left > 0 && self.left_out.stopped_at.is_none() => after = Some(key(last)),
                _ => break,
            }
        }
        self.rules.pop();
        self.room += room;
    }

    fn entry(&mut self, directory: &Workspace, path: String, entry: &DirectoryEntry) {
        let is_directory = matches!(entry.type_, DescriptorType::Directory);
        if entry.name == ".git" {
            return;
        }
        if self.rules.ignore(&path, is_directory) {
            self.ignored += 1;
            return;
        }
        match entry.type_ {
            DescriptorType::RegularFile => {
                if self.files >= MOST_FILES || self.bytes >= MOST_BYTES {
                    self.left_out.stopped_at = Some(path);
                    return;
                }
                match directory.entry_file(&entry.name) {
                    Ok(file) => self.file(&path, file),
                    Err(code) => self.unopened(&path, code),
                }
            }
            // The path's depth is the number of directories open above it.
            DescriptorType::Directory if path.split('/').count() > DEEPEST => self.left_out.deep.add(&path),
            DescriptorType::Directory => match directory.entry_directory(&entry.name) {
                Ok(inner) => self.directory(&inner, &path),
                Err(code) => self.unopened(&path, code),
            },
            DescriptorType::SymbolicLink => self.left_out.links.add(&path),
            _ => self.left_out.special.add(&path),
        }
    }

    fn unopened(&mut self, path: &str, code: ErrorCode) {
        match code {
            // Removed since the directory was read: it is not there to be searched.
            ErrorCode::NoEntry => {}
            ErrorCode::Loop => self.left_out.links.add(path),
            // The host opens what may hold secrets only for a call that names it.
            ErrorCode::NotPermitted => self.left_out.withheld.add(path),
            ErrorCode::Unsupported => self.left_out.special.add(path),
            _ => self.left_out.unreadable.add(path),
        }
    }

    fn file(&mut self, path: &str, mut file: File) {
        at(path);
        let Ok(mut buffer) = file.next_chunk() else {
            self.left_out.unreadable.add(path);
            return;
        };
        match kind_of(&buffer) {
            Kind::Text => {}
            Kind::Utf16 => return self.left_out.wide.add(path),
            Kind::Binary | Kind::Image(_) => return self.left_out.binary.add(path),
        }
        if buffer.starts_with(BYTE_ORDER_MARK) {
            buffer.drain(..BYTE_ORDER_MARK.len());
        }
        self.files += 1;
        let before = self.found.matches;
        let hidden_before = self.found.hidden;
        let mut line = 1;
        while !buffer.is_empty() {
            let Ok(chunk) = file.next_chunk() else {
                self.left_out.unreadable.add(path);
                break;
            };
            let is_last = chunk.is_empty();
            // Up to the last newline the lines are whole; what follows waits for the next chunk.
            let whole = if is_last { buffer.len() } else { memchr::memrchr(b'\n', &buffer).map_or(0, |end| end + 1) };
            line = self.lines(path, line, buffer.get(..whole).unwrap_or_default());
            self.found.emit();
            self.bytes += whole as u64;
            buffer.drain(..whole);
            buffer.extend_from_slice(&chunk);
            if buffer.len() > LONGEST_LINE && memchr::memchr(b'\n', &buffer).is_none() {
                self.left_out.long.add(&format!("{path}:{line}"));
                self.lines(path, line, &buffer);
                self.bytes += buffer.len() as u64;
                buffer = match after_line(&mut file) {
                    Ok(Some(rest)) => rest,
                    Ok(None) => {
                        self.left_out.endless.add(&format!("{path}:{line}"));
                        break;
                    }
                    Err(_) => {
                        self.left_out.unreadable.add(path);
                        break;
                    }
                };
                line += 1;
            }
        }
        self.found.emit();
        self.found.files += u64::from(self.found.matches > before);
        self.found.hidden_files += u64::from(self.found.hidden > hidden_before);
    }

    /// Searches whole lines, the first of which is line `number`; returns the number of the line after them.
    fn lines(&mut self, path: &str, mut number: u64, text: &[u8]) -> u64 {
        let mut counted = 0;
        let mut position = 0;
        // The matcher is built so that no match spans lines, so the next match begins on the next matching line.
        while position < text.len() {
            let Ok(Some(found)) = self.matcher.find_at(text, position) else { break };
            let before = text.get(..found.start()).unwrap_or_default();
            let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
            let after = text.get(found.start()..).unwrap_or_default();
            let end = memchr::memchr(b'\n', after).map_or(text.len(), |length| found.start() + length);
            if start == text.len() {
                // An empty match after the last newline is on no line.
                break;
            }
            number += newlines(text.get(counted..start).unwrap_or_default());
            counted = start;
            self.found.add(path, number, text.get(start..end).unwrap_or_default(), found.start() - start);
            position = end + 1;
        }
        number + newlines(text.get(counted..).unwrap_or_default())
    }

    fn answer(self) -> Answer {
        let Self { found, left_out, files, ignored, .. } = self;
        let mut summary = format!(
            "{} in {}, {} searched",
            count(found.matches, "match", "matches"),
            count(found.files, "file", "files"),
            files
        );
        if ignored > 0 {
            summary.push_str(&format!(", {} by .gitignore", count(ignored, "entry ignored", "entries ignored")));
        }
        let mut omitted = Vec::new();
        if let Some(first) = &found.first_hidden {
            omitted.push(format!(
                "{} in {} did not fit and are left out, from `{first}` to `{}` in the order of paths: give a narrower \
                 `path` or `pattern` to see them.",
                count(found.hidden, "match", "matches"),
                count(found.hidden_files, "file", "files"),
                found.last_hidden
            ));
        }
        if found.cut > 0 {
            omitted.push(format!(
                "{} shown in part, around the match; `…` marks where.",
                count(found.cut, "long line is", "long lines are")
            ));
        }
        left_out.tell(&mut omitted);
        Answer { content: found.lines, summary, omitted }
    }
}

impl Matches {
    fn add(&mut self, path: &str, number: u64, line: &[u8], at: usize) {
        self.matches += 1;
        let place = format!("{}:{number}", visible(path));
        if self.emitted + self.lines.len() >= ANSWER_BYTES || self.first_hidden.is_some() {
            self.hidden += 1;
            self.last_hidden.clone_from(&place);
            self.first_hidden.get_or_insert(place);
            return;
        }
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (text, cut) = excerpt(line, at);
        self.cut += u64::from(cut);
        self.lines.push_str(&place);
        self.lines.push_str(": ");
        self.lines.push_str(&text);
        self.lines.push('\n');
    }

    /// Hands over what was found, so that it stays whatever comes.
    fn emit(&mut self) {
        if !self.lines.is_empty() {
            emit(&self.lines);
            self.emitted += self.lines.len();
            self.lines.clear();
        }
    }
}

impl LeftOut {
    fn tell(self, omitted: &mut Vec<String>) {
        let sentences = [
            self.binary.sentence("binary file was not searched", "binary files were not searched"),
            self.wide.sentence("file in UTF-16 was not searched", "files in UTF-16 were not searched"),
            self.withheld.sentence(
                "path may hold secrets and was not searched; name it as `path` to ask for it",
                "paths may hold secrets and were not searched; name one as `path` to ask for it",
            ),
            self.links.sentence("symbolic link was not followed", "symbolic links were not followed"),
            self.special.sentence("entry is no regular file", "entries are no regular files"),
            self.unreadable.sentence("path could not be read", "paths could not be read"),
            self.rules.sentence("ignore file could not be read", "ignore files could not be read"),
            self.deep.sentence("directory is nested too deeply", "directories are nested too deeply"),
            self.long.sentence(
                "line is over 4 MiB and only its beginning was searched",
                "lines are over 4 MiB and only their beginnings were searched",
            ),
            self.endless.sentence(
                "line is over 256 MiB, and the rest of its file was not searched",
                "lines are over 256 MiB, and the rests of their files were not searched",
            ),
        ];
        omitted.extend(sentences.into_iter().flatten());
        if self.unnamed > 0 {
            let entries = count(self.unnamed, "entry was", "entries were");
            omitted.push(format!("{entries} not searched: the name is not UTF-8."));
        }
        if let Some(path) = self.stopped_at {
            omitted.push(format!(
                "The search stopped at its limit of {MOST_FILES} files or {MOST_BYTES} bytes: `{}` and all paths after \
                 it were not searched. Give a narrower `path`.",
                visible(&path)
            ));
        }
    }
}

fn join(directory: &str, name: &str) -> String {
    if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") }
}

fn newlines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}

/// Reads on to the end of a line too long to hold, and returns what follows it; nothing, if it goes on and on.
fn after_line(file: &mut File) -> Result<Option<Vec<u8>>, ErrorCode> {
    let mut passed = 0;
    while passed < ENDLESS_LINE {
        let mut chunk = file.next_chunk()?;
        if chunk.is_empty() {
            return Ok(Some(chunk));
        }
        passed += chunk.len() as u64;
        if let Some(newline) = memchr::memchr(b'\n', &chunk) {
            chunk.drain(..=newline);
            return if chunk.is_empty() { file.next_chunk().map(Some) } else { Ok(Some(chunk)) };
        }
    }
    Ok(None)
}

/// What is shown of a line, and whether that is less than all of it.
fn excerpt(line: &[u8], at: usize) -> (String, bool) {
    if line.len() <= LINE_BYTES {
        return (String::from_utf8_lossy(line).into_owned(), false);
    }
    let start = boundary(line, at.saturating_sub(LINE_BEFORE));
    let end = boundary(line, start + LINE_BYTES);
    let shown = String::from_utf8_lossy(line.get(start..end).unwrap_or_default());
    let before = if start > 0 { "…" } else { "" };
    let after = if end < line.len() { "…" } else { "" };
    (format!("{before}{shown}{after}"), true)
}
