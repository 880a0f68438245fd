//! `fs.read`: a page of a text file.

use crate::exports::ephor::tool::guest::{Answer, Description, Failure};
use crate::path::Path;
use crate::text::{boundary, count};
use crate::workspace::{File, Found, Kind, Workspace, kind_of};
use serde::Deserialize;

pub(crate) const NAME: &str = "fs.read";

/// Lines in a page when the caller does not say, and bytes in a page whatever the caller says: about a fifth of the
/// context of a usual model.
const PAGE_LINES: u64 = 2_000;
const PAGE_BYTES: usize = 64 * 1024;

/// How far into a file a page may begin. Lines have to be counted from the start, and this much takes about a second.
const SEEK_BYTES: u64 = 1024 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    path: String,
    offset: Option<u64>,
    limit: Option<u64>,
    byte: Option<u64>,
}

pub(crate) fn description() -> Description {
    Description {
        name: NAME.to_owned(),
        description: "Reads a text file of the workspace and returns its lines as they are. A page ends after `limit` \
                      lines or 65536 bytes; when the file goes on, the answer says with which `offset` to go on, \
                      and within a line longer than a page with which `byte`. Binary files and pictures are named as such and not shown."
            .to_owned(),
        input: r#"{"type":"object","properties":{"path":{"type":"string","minLength":1,"description":"Path of the file, relative to the workspace."},"offset":{"type":"integer","minimum":1,"description":"First line to return, counted from 1. Default 1."},"limit":{"type":"integer","minimum":1,"description":"Number of lines to return. Default 2000."},"byte":{"type":"integer","minimum":0,"description":"Byte of the first line to begin with, counted from 0. Default 0."}},"required":["path"],"additionalProperties":false}"#.to_owned(),
    }
}

pub(crate) fn run(workspace: &Workspace, arguments: Arguments) -> Result<Answer, Failure> {
    let path = Path::parse(&arguments.path)?;
    let first = arguments.offset.unwrap_or(1);
    let limit = arguments.limit.unwrap_or(PAGE_LINES);
    if first == 0 || limit == 0 {
        return Err(Failure::InvalidArguments("`offset` and `limit` count from 1".to_owned()));
    }
    let mut file = match workspace.find(path.as_wasi())? {
        Found::File(file) => file,
        Found::Directory(_) => {
            return Err(Failure::Refused(format!("`{}` is a directory; `fs.list` shows it", path.shown())));
        }
    };
    let io = |code| workspace.explain(path.as_wasi(), code);

    let beginning = file.next_chunk().map_err(io)?;
    let size = file.size().map_err(io)?;
    match kind_of(&beginning) {
        Kind::Text => {}
        Kind::Utf16 => return Ok(unshown(&path, "UTF-16", size)),
        Kind::Image(format) => return Err(pictured(&path, format, size)),
        Kind::Binary => return Ok(unshown(&path, "binary", size)),
    }
    let byte = arguments.byte.unwrap_or_default();
    let page = match seek(&mut file, beginning, first).map_err(io)? {
        Sought::At(rest) => match skip(&mut file, rest, byte).map_err(io)? {
            Some(rest) => fill(&mut file, rest, limit).map_err(io)?,
            None => {
                return Err(Failure::InvalidArguments(format!(
                    "`byte` {byte} is past the end of line {first} of `{}`, or further than {SEEK_BYTES} bytes into it",
                    path.shown()
                )));
            }
        },
        Sought::PastEnd { lines } => {
            return Err(Failure::InvalidArguments(format!(
                "`offset` {first} is past the end: `{}` has {}",
                path.shown(),
                count(lines, "line", "lines")
            )));
        }
        Sought::TooFar => {
            return Err(Failure::Failed(format!(
                "line {first} of `{}` lies more than {SEEK_BYTES} bytes into the file, too far to count lines; \
                 `fs.search` looks through all of it",
                path.shown()
            )));
        }
    };
    Ok(answer(&path, first, byte, page))
}

/// An answer is text, and nothing in it could be a picture.
fn pictured(path: &Path, format: &str, size: u64) -> Failure {
    let (shown, size) = (path.shown(), count(size, "byte", "bytes"));
    Failure::Failed(format!(
        "`{shown}` is a picture in the format {format}, of {size}; pictures cannot be shown, only text"
    ))
}

fn unshown(path: &Path, what: &str, size: u64) -> Answer {
    let shown = path.shown();
    let size = count(size, "byte", "bytes");
    Answer {
        content: format!("`{shown}` is a {what} file of {size}."),
        summary: format!("`{shown}` is {what}, {size}"),
        omitted: vec![format!("The content of `{shown}` is not text in UTF-8 and is not shown.")],
    }
}

enum Sought {
    /// The bytes read so far from the sought line on.
    At(Vec<u8>),
    PastEnd {
        lines: u64,
    },
    TooFar,
}

fn seek(file: &mut File, mut chunk: Vec<u8>, first: u64) -> Result<Sought, crate::workspace::ErrorCode> {
    let mut passed = 0_u64;
    let mut read = 0_u64;
    let mut ends_in_newline = true;
    loop {
        if passed + 1 == first && (first == 1 || !chunk.is_empty()) {
            return Ok(Sought::At(chunk));
        }
        let Some(last) = chunk.last() else {
            return Ok(Sought::PastEnd { lines: passed + u64::from(!ends_in_newline) });
        };
        ends_in_newline = *last == b'\n';
        read += chunk.len() as u64;
        for newline in memchr::memchr_iter(b'\n', &chunk) {
            passed += 1;
            if passed + 1 == first {
                chunk.drain(..=newline);
                break;
            }
        }
        if passed + 1 < first || chunk.is_empty() {
            if read >= SEEK_BYTES {
                return Ok(Sought::TooFar);
            }
            chunk = file.next_chunk()?;
        }
    }
}

/// Passes over the first `count` bytes of a line; none if it has fewer, or they are too many.
fn skip(file: &mut File, mut bytes: Vec<u8>, count: u64) -> Result<Option<Vec<u8>>, crate::workspace::ErrorCode> {
    if count > SEEK_BYTES {
        return Ok(None);
    }
    let mut left = count as usize;
    loop {
        let passed = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        if memchr::memchr(b'\n', passed).is_some() {
            return Ok(None);
        }
        if left <= bytes.len() {
            return Ok(Some(bytes.split_off(left)));
        }
        left -= bytes.len();
        bytes = file.next_chunk()?;
        if bytes.is_empty() {
            return Ok(None);
        }
    }
}

struct Page {
    text: Vec<u8>,
    lines: u64,
    /// Whether it is the beginning of one line, which goes on behind it.
    cut: bool,
    /// The file goes on after this page.
    more: bool,
}

fn fill(file: &mut File, mut bytes: Vec<u8>, limit: u64) -> Result<Page, crate::workspace::ErrorCode> {
    while bytes.len() <= PAGE_BYTES {
        let chunk = file.next_chunk()?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
    }
    let page_full = bytes.len() > PAGE_BYTES;
    let mut end = 0;
    let mut lines = 0;
    for newline in memchr::memchr_iter(b'\n', &bytes).take_while(|newline| *newline < PAGE_BYTES) {
        if lines == limit {
            break;
        }
        lines += 1;
        end = newline + 1;
    }
    if !page_full && lines < limit && end < bytes.len() {
        // The last line of the file, without a newline.
        lines += 1;
        end = bytes.len();
    }
    if lines > 0 {
        let more = end < bytes.len() || !file.next_chunk()?.is_empty();
        bytes.truncate(end);
        return Ok(Page { text: bytes, lines, cut: false, more });
    }
    if bytes.is_empty() {
        return Ok(Page { text: bytes, lines: 0, cut: false, more: false });
    }
    // One line that is longer than a page.
    bytes.truncate(boundary(&bytes, PAGE_BYTES));
    Ok(Page { text: bytes, lines: 1, cut: true, more: false })
}

fn answer(path: &Path, first: u64, byte: u64, page: Page) -> Answer {
    let shown = path.shown();
    let next = first + page.lines;
    let mut omitted = Vec::new();
    if page.cut {
        let next = byte + page.text.len() as u64;
        omitted.push(format!(
            "Line {first} of `{shown}` goes on at byte {next}: call `fs.read` again with `offset` {first} and `byte` {next}."
        ));
    }
    if page.more {
        omitted.push(format!("`{shown}` goes on at line {next}: call `fs.read` again with `offset` {next}."));
    }
    let content = match String::from_utf8(page.text) {
        Ok(content) => content,
        Err(error) => {
            omitted.push(format!("Some bytes of `{shown}` are not UTF-8; each stands as U+FFFD."));
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        }
    };
    let summary = match page.lines {
        0 => format!("`{shown}` is empty"),
        1 if page.cut => format!("a part of line {first} of `{shown}`, from byte {byte}"),
        1 => format!("line {first} of `{shown}`"),
        _ => format!("lines {first} to {} of `{shown}`", next - 1),
    };
    Answer { content, summary, omitted }
}
