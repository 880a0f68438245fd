//! A request as tokens.

/// A word, a quoted text or a regular expression of the request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Token {
    /// As it was typed, without quotes, closing punctuation and possessive.
    pub(super) text: String,
    /// In lower case.
    pub(super) lower: String,
    pub(super) kind: Kind,
    /// Where it stands in the request, quotes and punctuation included.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The punctuation after it.
    pub(super) stop: Stop,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Word,
    /// Between quotes: taken literally.
    Quoted,
    /// Between slashes.
    Regex,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stop {
    None,
    Comma,
    Colon,
    /// The sentence, or the line, is over.
    Sentence,
}

const QUOTES: [(char, char); 7] =
    [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”'), ('‘', '’'), ('„', '“'), ('«', '»')];

/// Macros of Rust that people search for by name: their `!` is no punctuation.
const MACROS: [&str; 20] = [
    "panic",
    "println",
    "print",
    "eprintln",
    "eprint",
    "format",
    "vec",
    "todo",
    "unimplemented",
    "unreachable",
    "assert",
    "assert_eq",
    "assert_ne",
    "dbg",
    "write",
    "writeln",
    "matches",
    "include_str",
    "debug_assert",
    "macro_rules",
];

/// Cuts `text` into tokens.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let blank = rest.len() - rest.trim_start().len();
        if blank > 0 {
            if rest.get(..blank).is_some_and(|blank| blank.contains('\n')) {
                end_sentence(&mut tokens);
            }
            at += blank;
            continue;
        }
        let length = quoted(rest).or_else(|| regex(rest)).unwrap_or(0);
        if length > 0 {
            at += push_delimited(&mut tokens, rest, at, length);
        } else {
            at += push_word(&mut tokens, rest, at);
        }
    }
    end_sentence(&mut tokens);
    tokens
}

fn end_sentence(tokens: &mut [Token]) {
    if let Some(last) = tokens.last_mut() {
        last.stop = Stop::Sentence;
    }
}

/// The length of the quoted text that `rest` begins with, quotes included, or nothing.
fn quoted(rest: &str) -> Option<usize> {
    let open = rest.chars().next()?;
    let (_, close) = QUOTES.iter().find(|(quote, _)| *quote == open)?;
    let inner = rest.get(open.len_utf8()..)?;
    let ends = inner.match_indices(*close).map(|(at, _)| at);
    // An apostrophe within a word closes nothing.
    let closes = |at: &usize| {
        let after = inner.get(at + close.len_utf8()..).and_then(|after| after.chars().next());
        after.is_none_or(|next| !next.is_alphanumeric())
    };
    let at = ends.into_iter().find(closes).filter(|at| *at > 0)?;
    Some(open.len_utf8() + at + close.len_utf8())
}

/// The length of `/…/` at the beginning of `rest`. A slash within, unless escaped, makes it a path.
fn regex(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('/')?;
    let mut escaped = false;
    for (at, character) in inner.char_indices() {
        match character {
            '\n' => return None,
            '\\' => escaped = !escaped,
            '/' if !escaped => {
                let after = inner.get(at + 1..)?.chars().next();
                let ends = after.is_none_or(|next| next.is_whitespace() || ",;?!.)".contains(next));
                return (at > 0 && ends).then_some(at + 2);
            }
            _ => escaped = false,
        }
    }
    None
}

fn push_delimited(tokens: &mut Vec<Token>, rest: &str, start: usize, length: usize) -> usize {
    let whole = rest.get(..length).unwrap_or_default();
    let open = whole.chars().next().unwrap_or('"');
    let inner: String = {
        let mut characters = whole.chars();
        characters.next();
        characters.next_back();
        characters.collect()
    };
    let punctuation = punctuation(rest.get(length..).unwrap_or_default());
    let kind = if open == '/' { Kind::Regex } else { Kind::Quoted };
    let text = if kind == Kind::Regex { inner.replace("\\/", "/") } else { inner };
    tokens.push(Token {
        lower: text.to_lowercase(),
        text,
        kind,
        start,
        end: start + length,
        stop: stop(rest.get(length..length + punctuation).unwrap_or_default()),
    });
    length + punctuation
}

/// How many bytes of closing punctuation `rest` begins with.
fn punctuation(rest: &str) -> usize {
    rest.len() - rest.trim_start_matches([',', ';', ':', '.', '?', '!', ')']).len()
}

fn stop(punctuation: &str) -> Stop {
    if punctuation.contains(['.', '?', '!', ';']) {
        Stop::Sentence
    } else if punctuation.contains(':') {
        Stop::Colon
    } else if punctuation.contains(',') {
        Stop::Comma
    } else {
        Stop::None
    }
}

fn push_word(tokens: &mut Vec<Token>, rest: &str, start: usize) -> usize {
    let length = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let whole = rest.get(..length).unwrap_or_default();
    let mut word = whole.trim_start_matches(['(', ',', ';']).trim_end_matches([',', ';', ':', '?', '.']);
    // Two dots are a place, and so is one alone.
    if word.is_empty() && (whole.starts_with("..") || whole == ".") {
        word = whole;
    }
    if !is_macro(word) {
        word = word.trim_end_matches(['!', '?', '.', ',']);
    }
    if word.ends_with(')') && !word.contains('(') {
        word = word.trim_end_matches(')').trim_end_matches(['.', ',', '?', '!']);
    }
    let tail = whole.rsplit_once(word).map_or(whole, |(_, tail)| tail);
    let stop = if word == whole { Stop::None } else { stop(tail) };
    if word.is_empty() {
        if let Some(last) = tokens.last_mut()
            && stop != Stop::None
        {
            last.stop = stop;
        }
        return length;
    }
    let parts = parts(word);
    let count = parts.len();
    for (at, part) in parts.into_iter().enumerate() {
        let stop = if at + 1 == count { stop } else { Stop::None };
        tokens.push(Token {
            lower: part.to_lowercase(),
            text: part,
            kind: Kind::Word,
            start,
            end: start + length,
            stop,
        });
    }
    length
}

fn is_macro(word: &str) -> bool {
    let Some(name) = word.strip_suffix('!') else { return false };
    MACROS.contains(&name) || (name.contains('_') && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The words that a contraction stands for; a possessive loses its ending.
fn parts(word: &str) -> Vec<String> {
    let plain = word.replace('’', "'");
    let lower = plain.to_lowercase();
    let short = [("'d", "would"), ("'ll", "will"), ("'re", "are"), ("'ve", "have"), ("'m", "am"), ("n't", "not")];
    for (ending, whole) in short {
        if let Some(stem) = lower.strip_suffix(ending).filter(|stem| !stem.is_empty()) {
            return vec![plain.get(..stem.len()).unwrap_or_default().to_owned(), whole.to_owned()];
        }
    }
    match lower.as_str() {
        "let's" | "lets" => return vec!["let".to_owned(), "us".to_owned()],
        "whats" => return vec!["what".to_owned(), "is".to_owned()],
        "wheres" => return vec!["where".to_owned(), "is".to_owned()],
        _ => {}
    }
    let Some(stem) = lower.strip_suffix("'s") else {
        // "the files' names"
        let stem = lower.strip_suffix("s'").map_or(plain.len(), |stem| stem.len() + 1);
        return vec![plain.get(..stem).unwrap_or_default().to_owned()];
    };
    let stem = plain.get(..stem.len()).unwrap_or_default().to_owned();
    let asks = ["what", "where", "who", "how", "that", "there", "here", "it", "which"];
    if asks.contains(&stem.to_lowercase().as_str()) { vec![stem, "is".to_owned()] } else { vec![stem] }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Stop, tokens};

    fn texts(text: &str) -> Vec<String> {
        tokens(text).into_iter().map(|token| token.text).collect()
    }

    #[test]
    fn words_lose_punctuation_and_contractions_are_spelt_out() {
        assert_eq!(
            texts("What's in src/? I'd say, (please)!"),
            ["What", "is", "in", "src/", "I", "would", "say", "please"]
        );
        assert_eq!(texts("the folder's files' names..."), ["the", "folder", "files", "names"]);
    }

    #[test]
    fn quotes_and_slashes_keep_what_is_between_them() {
        let found = tokens("find 'foo bar', \"it's\" and /^use \\w+/ in /etc/passwd");
        let kinds: Vec<_> = found.iter().map(|token| (token.text.as_str(), token.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("find", Kind::Word),
                ("foo bar", Kind::Quoted),
                ("it's", Kind::Quoted),
                ("and", Kind::Word),
                ("^use \\w+", Kind::Regex),
                ("in", Kind::Word),
                ("/etc/passwd", Kind::Word)
            ]
        );
        assert_eq!(found.get(1).map(|token| token.stop), Some(Stop::Comma));
    }

    #[test]
    fn code_keeps_its_punctuation() {
        assert_eq!(texts("find .unwrap() and panic! in a.rs!"), ["find", ".unwrap()", "and", "panic!", "in", "a.rs"]);
        assert_eq!(texts("foo.bar(baz), *.md; $HOME"), ["foo.bar(baz)", "*.md", "$HOME"]);
    }

    #[test]
    fn nothing_breaks_on_odd_text() {
        for text in ["", " ", "'", "''", "\"", "/", "//", "...", "?!", "((", "日本 'x", "\u{feff}", "'s", "n't", "’"]
        {
            let _tokens = tokens(text);
        }
    }
}
