//! A request as clauses: one for each thing that is asked.

use super::{
    place::is_word,
    token::{Kind, Stop, Token, tokens},
    verb::Verb,
};

/// One thing that is asked, without the politeness around it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Clause {
    /// What it asks to be done, where it begins with a verb.
    pub(super) verb: Option<Verb>,
    /// The verb as it was typed, and everything after it.
    pub(super) words: Vec<Token>,
}

/// Words that may stand before what is asked and add nothing to it.
const LEAD: &[&str] = &[
    "please",
    "pls",
    "plz",
    "kindly",
    "hey",
    "hi",
    "hello",
    "scout",
    "ok",
    "okay",
    "so",
    "well",
    "now",
    "just",
    "quickly",
    "maybe",
    "perhaps",
    "also",
    "then",
    "and",
    "next",
    "finally",
    "afterwards",
    "after",
    "can",
    "could",
    "would",
    "will",
    "may",
    "might",
    "shall",
    "should",
    "you",
    "we",
    "i",
    "am",
    "like",
    "love",
    "want",
    "need",
    "to",
    "me",
    "let",
    "us",
    "help",
    "go",
    "ahead",
    "try",
    "trying",
    "be",
    "kind",
    "enough",
    "mind",
    "wondering",
    "wonder",
    "was",
    "if",
    "tell",
    "say",
    "know",
    "thanks",
    "thank",
    "too",
];

/// Words that join two clauses.
const JOINS: [&str; 5] = ["and", "then", "also", "plus", "but"];

/// Cuts a request into clauses.
pub(super) fn clauses(request: &str) -> Vec<Clause> {
    let tokens = tokens(request);
    let mut clauses = Vec::new();
    let mut rest = tokens.as_slice();
    while !rest.is_empty() {
        let length = clause_length(rest);
        let (words, after) = rest.split_at(length.clamp(1, rest.len()));
        clauses.extend(Clause::of(words));
        rest = after;
    }
    clauses
}

/// How many tokens belong to the first clause of `tokens`.
fn clause_length(tokens: &[Token]) -> usize {
    let lead = lead(tokens);
    if holds_text_to_write(tokens.get(lead..).unwrap_or_default()) {
        return tokens.len();
    }
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1..).unwrap_or_default();
        if token.stop == Stop::Sentence {
            return at + 1;
        }
        let joins = at >= lead && token.kind == Kind::Word && JOINS.contains(&token.lower.as_str());
        // "In src, find x": the place comes first.
        let place_first = tokens.get(lead).is_some_and(|first| is_word(first, &["in", "under", "inside", "within"]));
        let pauses = at >= lead && token.stop == Stop::Comma && !place_first;
        if (joins || pauses) && begins_clause(next) {
            return at + 1;
        }
    }
    tokens.len()
}

/// Whether a new thing is asked here: politeness, then a verb.
fn begins_clause(tokens: &[Token]) -> bool {
    let Some((first, after)) = tokens.get(lead(tokens)..).and_then(<[Token]>::split_first) else { return false };
    if first.kind != Kind::Word {
        return false;
    }
    match Verb::meant(&first.lower) {
        None => false,
        // "…, is it" and "… and any other" go on with what was said.
        Some(Verb::Ask) => matches!(first.lower.as_str(), "what" | "where" | "how" | "which" | "who"),
        // A noun as often as a verb: only with something after it.
        Some(Verb::Cannot) => !after.is_empty() || first.lower.len() > 4,
        Some(_) => true,
    }
}

/// Whether this is a request to write text that is not quoted, after a colon: all that follows is that text.
fn holds_text_to_write(tokens: &[Token]) -> bool {
    let Some((first, rest)) = tokens.split_first() else { return false };
    if Verb::meant(&first.lower) != Some(Verb::Write) || first.kind != Kind::Word {
        return false;
    }
    let mut before = first;
    for token in rest {
        if before.stop == Stop::Colon {
            return token.kind == Kind::Word;
        }
        if before.stop == Stop::Sentence {
            return false;
        }
        before = token;
    }
    false
}

/// How many tokens at the beginning add nothing.
fn lead(tokens: &[Token]) -> usize {
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1).map_or("", |token| token.lower.as_str());
        let second = tokens.get(at + 2).map_or("", |token| token.lower.as_str());
        let skipped = match token.lower.as_str() {
            _ if token.kind != Kind::Word => 0,
            "do" if next == "you" && matches!(second, "know" | "mind" | "think") => 3,
            "is" if next == "it" && second == "possible" => 3,
            "i" if next == "have" => 0,
            "take" | "have" if next == "a" => look_ahead(tokens, at),
            // "first, list …" but not "first 20 lines".
            "first" if token.stop == Stop::Comma => 1,
            "first" => usize::from(Verb::meant(next).is_some_and(|verb| verb != Verb::Ask)),
            "good" => 2 * usize::from(matches!(next, "morning" | "afternoon" | "evening" | "day")),
            "like" | "love" | "mind" | "kind" if at == 0 => 0,
            word => usize::from(LEAD.contains(&word)),
        };
        if skipped == 0 {
            break;
        }
        at += skipped;
    }
    at
}

/// "take a quick look at": how many tokens come before "look", if it comes soon.
fn look_ahead(tokens: &[Token], at: usize) -> usize {
    tokens.iter().skip(at).take(5).position(|token| is_word(token, &["look"])).unwrap_or(0)
}

impl Clause {
    /// The clause in `tokens`, or nothing if they are all politeness.
    fn of(tokens: &[Token]) -> Option<Self> {
        let lead = lead(tokens);
        let mut words = tokens.get(lead..)?.to_vec();
        while words.last().is_some_and(|last| last.kind == Kind::Word && is_tail(&last.lower)) {
            words.pop();
        }
        let first = words.first()?;
        let verb = if first.kind == Kind::Word { Verb::meant(&first.lower) } else { None };
        Some(Self { verb, words })
    }

    /// What comes after the verb.
    pub(super) fn object(&self) -> &[Token] {
        if self.verb.is_some() { self.words.get(1..).unwrap_or_default() } else { &self.words }
    }

    /// Whether one of `words` stands in it.
    pub(super) fn has(&self, words: &[&str]) -> bool {
        has(&self.words, words)
    }
}

/// Whether one of `words` stands in `tokens`, unquoted.
pub(super) fn has(tokens: &[Token], words: &[&str]) -> bool {
    tokens.iter().any(|token| token.kind == Kind::Word && words.contains(&token.lower.as_str()))
}

/// Words that may stand at the end and add nothing.
fn is_tail(word: &str) -> bool {
    matches!(
        word,
        "please"
            | "pls"
            | "plz"
            | "thanks"
            | "thank"
            | "then"
            | "and"
            | "again"
            | "too"
            | "now"
            | "scout"
            | "quickly"
            | "ok"
    )
}

#[cfg(test)]
mod tests {
    use super::clauses;

    fn texts(request: &str) -> Vec<String> {
        let text =
            |clause: super::Clause| clause.words.into_iter().map(|token| token.text).collect::<Vec<_>>().join(" ");
        clauses(request).into_iter().map(text).collect()
    }

    #[test]
    fn politeness_is_taken_off_and_each_thing_asked_is_a_clause() {
        assert_eq!(
            texts("Hey, could you please list src and then read README.md? Thanks!"),
            ["list src", "read README.md"]
        );
        assert_eq!(texts("I'd like you to find TODOs and FIXMEs"), ["find TODOs and FIXMEs"]);
        assert_eq!(texts("Find my TODOs. Also count the lines in x.md."), ["Find my TODOs", "count the lines in x.md"]);
        assert!(texts("thanks!").is_empty());
    }

    #[test]
    fn text_to_write_is_one_clause_whatever_it_holds() {
        assert_eq!(texts("write to a.txt: list this. And read that.").len(), 1);
        assert_eq!(texts("write to a.txt: 'list this' and list src").len(), 2);
    }
}
