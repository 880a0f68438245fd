//! Text as it is compared: NFC, case folded, with single spaces; and its words.

use unicode_normalization::UnicodeNormalization as _;

/// May stand before a token, if nothing but a separator stands before it: the end of `"id":7` too.
const LEADERS: [char; 3] = ['\'', '’', ':'];
/// May stand after a token, if nothing but a separator comes then: the end of a sentence, or of a quotation.
const TRAILERS: [char; 6] = ['.', ':', '!', '?', '\'', '’'];

/// `text` in NFC, case folded, with every run of white space as one space.
pub(super) fn folded(text: &str) -> String {
    if text.is_ascii() {
        return collapsed(text.chars().map(|c| c.to_ascii_lowercase()), text.len());
    }
    let folded = text.nfc().flat_map(cased).nfc().map(figure);
    collapsed(folded, text.len())
}

/// Case folded. What turns into letters of ASCII only by way of upper case, such as a dotless i or a sharp s, is another
/// letter: a host with it is another host.
fn cased(c: char) -> impl Iterator<Item = char> {
    let folds = c.is_ascii() || !c.to_uppercase().all(|upper| upper.is_ascii());
    let folded = c.to_uppercase().filter(move |_| folds).flat_map(char::to_lowercase);
    folded.chain((!folds).then_some(c))
}

/// The figures of Arabic and Persian are the same figures.
fn figure(c: char) -> char {
    let zero = match c {
        '\u{660}'..='\u{669}' => 0x660,
        '\u{6f0}'..='\u{6f9}' => 0x6f0,
        _ => return c,
    };
    char::from_digit(u32::from(c).saturating_sub(zero), 10).unwrap_or(c)
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

/// How much a text says, in letters: a character of Chinese, Japanese or Korean says as much as two of others.
pub(super) fn weight(text: &str) -> usize {
    text.chars().map(|c| if is_wide(c) { 2 } else { 1 }).sum()
}

/// Whether a character belongs to a script that sets no spaces between words: kana, Han or Hangul.
pub(super) const fn is_wide(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{20000}'..='\u{323af}')
}

/// Whether a word ends between two characters, without a sign of its own there: a figure beside a wide character.
const fn turns(before: char, after: char) -> bool {
    (before.is_ascii_digit() && is_wide(after)) || (is_wide(before) && after.is_ascii_digit())
}

/// A word of a folded text, without the leaders before and the trailers after it. Never empty.
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
            let (len, gap) = end_of_word(text, rest, tail);
            let (begin, word) = (rest, tail.get(..len)?);
            rest = rest.saturating_add(len).saturating_add(gap);
            let core = word.trim_start_matches(LEADERS);
            let at = begin.saturating_add(word.len().saturating_sub(core.len()));
            let core = core.trim_end_matches(TRAILERS);
            if !core.is_empty() {
                return Some(Word { at, core });
            }
        }
        None
    })
}

/// How long the word at the beginning of `tail` is, and the gap after it. `tail` begins at `rest` of `text`.
fn end_of_word(text: &str, rest: usize, tail: &str) -> (usize, usize) {
    let mut before = None;
    for (at, c) in tail.char_indices() {
        if separates(text, rest.saturating_add(at), c) {
            return (at, c.len_utf8());
        }
        if before.is_some_and(|before| turns(before, c)) {
            return (at, 0);
        }
        before = Some(c);
    }
    (tail.len(), 0)
}

/// Whether `text[start..end]` begins and ends where a word does.
pub(super) fn stands_alone(text: &str, start: usize, end: usize) -> bool {
    is_edge(text, text.get(..start).unwrap_or_default().char_indices().rev(), 0, &LEADERS)
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
        | '—' | '「' | '」' | '『' | '』' | '（' | '）' | '、' | '。' | '，' | '！' | '？' | '：' | '；' | '؟'
        | '،' | '؛' | '¿' | '¡' => true,
        ',' => {
            let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
            let before = at.checked_sub(1).and_then(|before| text.as_bytes().get(before));
            !(digit(before) && digit(text.as_bytes().get(at.saturating_add(1))))
        }
        // Behind a name: of "total":4 and of total=4.
        ':' => text.get(..at).is_some_and(|before| before.ends_with('"')),
        '=' => text.get(..at).is_some_and(is_a_name),
        _ => c.is_whitespace(),
    }
}

/// Whether a text ends with a word that is nothing but letters, as a name before a value is.
fn is_a_name(text: &str) -> bool {
    let word = text.rsplit([' ', '"', '{', '[', '(', '|', ';']).next().unwrap_or_default();
    (1..=32).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b'_')
}
