//! Where a text is cut: before headings, between paragraphs, and only where a paragraph is too long, within it.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::ChunkError;

/// The longest text, in bytes.
pub const MOST_BODY: usize = 1 << 20;

/// The longest chunk, in bytes: some 300 words, so that five fit beside a conversation.
pub const MOST_CHUNK: usize = 1_600;

/// A heading begins a chunk only behind one of this length at least, in bytes: a text of nothing but headings is not cut to dust.
const LEAST_BEFORE_HEADING: usize = MOST_CHUNK / 4;

/// The most chunks of one text. A chunk has 400 bytes at least, or is longer than [`MOST_CHUNK`] together with
/// the next one; only the last may be shorter.
pub const MOST_PIECES: usize = MOST_BODY / LEAST_BEFORE_HEADING + 1;

/// Cuts a text into ranges of bytes. They are in order, do not overlap, hold every character that is not a space, begin and
/// end with such a character, and none is longer than [`MOST_CHUNK`]. There are [`MOST_PIECES`] at most. The time that it takes
/// grows with the length alone.
///
/// A heading (ATX, as in CommonMark 0.31, section 4.2, outside of fenced code) begins a chunk if the one before is long enough.
/// Paragraphs are put together as long as they fit. A longer one is cut between sentences, or between words, or, where a word is
/// longer, between characters.
///
/// # Errors
/// [`ChunkError::TooLong`] above [`MOST_BODY`].
pub fn cut(body: &str) -> Result<Vec<Range<usize>>, ChunkError> {
    if body.len() > MOST_BODY {
        return Err(ChunkError::TooLong(body.len()));
    }
    let mut ranges = Vec::new();
    let mut open: Option<Range<usize>> = None;
    for block in blocks(body) {
        let mut is_heading = block.is_heading;
        for piece in pieces(body, block.range) {
            let begins = std::mem::take(&mut is_heading);
            let before = open.as_ref().filter(|open| !begins || open.len() < LEAST_BEFORE_HEADING);
            match before.map(|open| open.start..piece.end).filter(|joined| joined.len() <= MOST_CHUNK) {
                Some(joined) => open = Some(joined),
                None => ranges.extend(open.replace(piece)),
            }
        }
    }
    ranges.extend(open);
    Ok(ranges)
}

struct Block {
    range: Range<usize>,
    is_heading: bool,
}

/// The paragraphs and headings, without the spaces around them.
fn blocks(body: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let (mut at, mut is_fenced, mut is_open) = (0, false, false);
    for line in body.split_inclusive('\n') {
        let range = trimmed(body, at..at + line.len());
        at += line.len();
        let text = line.trim();
        let is_heading = !is_fenced && is_heading(text);
        if text.starts_with("```") || text.starts_with("~~~") {
            is_fenced = !is_fenced;
        }
        match (range, blocks.last_mut()) {
            (None, _) => is_open = false,
            (Some(range), Some(block)) if is_open && !is_heading => block.range.end = range.end,
            (Some(range), _) => {
                blocks.push(Block { range, is_heading });
                is_open = !is_heading;
            }
        }
    }
    blocks
}

fn is_heading(line: &str) -> bool {
    let rest = line.trim_start_matches('#');
    let level = line.len() - rest.len();
    (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']))
}

/// A block as it is, or cut where it is too long: as much as fits, again and again.
fn pieces(body: &str, block: Range<usize>) -> Vec<Range<usize>> {
    let mut pieces = Vec::new();
    let mut rest = Some(block);
    while let Some(range) = rest.take() {
        let text = body.get(range.clone()).unwrap_or_default();
        let end = range.start + if text.len() > MOST_CHUNK { fitting(text) } else { text.len() };
        pieces.extend(trimmed(body, range.start..end));
        rest = trimmed(body, end..range.end);
    }
    pieces
}

/// How many bytes of a longer text make a piece: up to the last end of a sentence, or of a word, or of a character that fits. Looks at
/// nothing behind what fits, so that a text without an end of a sentence takes no longer than another.
fn fitting(text: &str) -> usize {
    let window = text.get(..text.floor_char_boundary(MOST_CHUNK)).unwrap_or_default();
    sentence_end(window)
        .or_else(|| window.split_word_bound_indices().map(|(at, _)| at).max().filter(|at| *at > 0))
        .unwrap_or(window.len())
}

/// Behind the last full stop, question mark or exclamation mark that a space follows; the ideographic ones need none.
fn sentence_end(window: &str) -> Option<usize> {
    let mut characters = window.char_indices().rev();
    let (_, mut next) = characters.next()?;
    for (at, c) in characters {
        if matches!(c, '。' | '！' | '？') || (matches!(c, '.' | '!' | '?') && next.is_whitespace()) {
            return Some(at + c.len_utf8());
        }
        next = c;
    }
    None
}

/// A range without the spaces at its ends; none if it holds nothing else.
fn trimmed(body: &str, range: Range<usize>) -> Option<Range<usize>> {
    let text = body.get(range.clone())?;
    let start = range.start + (text.len() - text.trim_start().len());
    let end = range.end - (text.len() - text.trim_end().len());
    (start < end).then_some(start..end)
}
