//! Text as it is compared: NFC, case folded, with single spaces; and its words.

use unicode_normalization::UnicodeNormalization as _;

/// May stand before a token, if nothing but a separator stands before it.
const QUOTES: [char; 2] = ['\'', '’'];
/// May stand after a token, if nothing but a separator comes then: the end of a sentence, or of a quotation.
const TRAILERS: [char; 6] = ['.', ':', '!', '?', '\'', '’'];

/// `text` in NFC, case folded, with every run of white space as one space.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return collapsed(text.chars().map(|c| c.to_ascii_lowercase()), text.len());
    }
    // Upper case first: a long s folds to an s only that way.
    let folded = text.nfc().flat_map(char::to_uppercase).flat_map(char::to_lowercase).nfc();
    collapsed(folded, text.len())
}

fn collapsed(chars: impl Iterator<Item = char>, capacity: usize) -> String {
    let mut out = String::with_capacity(capacity);
    let mut space = true;
    for c in chars {
        if !c.is_whitespace() {
            out.push(c);
        } else if !space {
            out.push(' ');
        }
        space = c.is_whitespace();
    }
    out
}

/// A word of a folded text, without the quotes before and the trailers after it. Never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    /// Where it begins, in bytes.
    pub(super) at: usize,
    /// The word.
    pub(super) core: &'a str,
}

/// The words of a folded text. Whatever is not known to separate makes one word of two.
pub(super) fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        while rest < text.len() {
            let tail = text.get(rest..)?;
            let end = tail.char_indices().find(|(at, c)| separates(text, rest.saturating_add(*at), *c));
            let (len, gap) = end.map_or((tail.len(), 0), |(at, c)| (at, c.len_utf8()));
            let (begin, word) = (rest, tail.get(..len)?);
            rest = rest.saturating_add(len).saturating_add(gap);
            let core = word.trim_start_matches(QUOTES);
            let at = begin.saturating_add(word.len().saturating_sub(core.len()));
            let core = core.trim_end_matches(TRAILERS);
            if !core.is_empty() {
                return Some(Word { at, core });
            }
        }
        None
    })
}

/// Whether `text[start..end]` begins and ends where a word does.
pub(super) fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    is_edge(text, text.get(..start).unwrap_or_default().char_indices().rev(), 0, &QUOTES)
        && is_edge(text, text.get(end..).unwrap_or_default().char_indices(), end, &TRAILERS)
}

/// Whether a token ends here, looking outwards.
fn is_edge(text: &str, outwards: impl Iterator<Item = (usize, char)>, base: usize, soft: &[char]) -> bool {
    let mut rest = outwards.skip_while(|(_, c)| soft.contains(c));
    rest.next().is_none_or(|(at, c)| separates(text, base.saturating_add(at), c))
}

/// Whether the character `c` at `at` separates words. A comma between two digits belongs to a number.
fn separates(text: &str, at: usize, c: char) -> bool {
    match c {
        ' ' | '"' | '`' | '“' | '”' | '‘' | '„' | '«' | '»' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ';'
        | '—' | '「' | '」' | '『' | '』' | '（' | '）' | '、' | '。' | '，' | '！' | '？' => true,
        ',' => {
            let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
            let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
            !(digit(before) && digit(text.as_bytes().get(at.saturating_add(1))))
        }
        _ => c.is_whitespace(),
    }
}
