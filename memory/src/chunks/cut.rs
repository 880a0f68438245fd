//! Where a text is cut: before headings, between paragraphs, and only where a paragraph is too long, within it.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation as _;

use super::ChunkError;

/// The longest text, in bytes.
pub const MOST_BODY: usize = 1 << 20;

/// The longest chunk, in bytes: some 300 words, so that five fit beside a conversation.
pub const MOST_CHUNK: usize = 1_600;

/// Cuts a text into ranges of bytes. They are in order, do not overlap, hold every character that is not a space, begin and
/// end with such a character, and none is longer than [`MOST_CHUNK`].
///
/// A heading (ATX, as in CommonMark 0.31, section 4.2, outside of fenced code) begins a chunk. Paragraphs are put together as
/// long as they fit. A longer one is cut between sentences, or between words, or, where a word is longer, between characters.
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
        for piece in pieces(body, block.range) {
            let joined = open.as_ref().map(|open| open.start..piece.end).filter(fits);
            match joined.filter(|_| !block.is_heading) {
                Some(joined) => open = Some(joined),
                None => ranges.extend(open.replace(piece)),
            }
        }
    }
    ranges.extend(open);
    Ok(ranges)
}

const fn fits(range: &Range<usize>) -> bool {
    range.end - range.start <= MOST_CHUNK
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

/// A block as it is, or cut where it is too long.
fn pieces(body: &str, block: Range<usize>) -> Vec<Range<usize>> {
    if fits(&block) {
        return vec![block];
    }
    let text = body.get(block.clone()).unwrap_or_default();
    let sentences = text.split_sentence_bound_indices().map(|(at, sentence)| (block.start + at, sentence));
    sentences
        .flat_map(|(at, sentence)| {
            let whole = at..at + sentence.len();
            if fits(&whole) { vec![whole] } else { of_words(sentence, at) }
        })
        .filter_map(|range| trimmed(body, range))
        .collect()
}

/// As many words as fit, again and again.
fn of_words(text: &str, start: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, word) in text.split_word_bound_indices() {
        let range = start + at..start + at + word.len();
        match ranges.last_mut() {
            Some(last) if range.end - last.start <= MOST_CHUNK => last.end = range.end,
            _ if fits(&range) => ranges.push(range),
            _ => ranges.extend(of_characters(word, range.start)),
        }
    }
    ranges
}

fn of_characters(word: &str, start: usize) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, c) in word.char_indices() {
        let range = start + at..start + at + c.len_utf8();
        match ranges.last_mut() {
            Some(last) if range.end - last.start <= MOST_CHUNK => last.end = range.end,
            _ => ranges.push(range),
        }
    }
    ranges
}

/// A range without the spaces at its ends; none if it holds nothing else.
fn trimmed(body: &str, range: Range<usize>) -> Option<Range<usize>> {
    let text = body.get(range.clone())?;
    let start = range.start + (text.len() - text.trim_start().len());
    let end = range.end - (text.len() - text.trim_end().len());
    (start < end).then_some(start..end)
}
