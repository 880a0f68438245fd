//! Whether an argument was really meant by someone who is trusted.
//!
//! An argument is trusted only if it is wholly found in a trusted span, by a closed list of derivations. The list here
//! has one entry: a whole-token match that ignores case. A paraphrase, however fair, is untrusted.

use ephor_base::{Arguments, arguments::Value};

/// An argument shorter than this is found in too many texts to mean anything.
const MIN_CHARS: usize = 4;

/// The names among `consequential` whose value in `arguments` is not found in any of the `trusted` texts.
#[must_use]
pub fn untrusted<'a>(arguments: &Arguments, consequential: &'a [String], trusted: &[&str]) -> Vec<&'a str> {
    let doubtful = |name: &&String| match arguments.value(name) {
        None | Some(Value::Null) => false,
        Some(Value::Text(text)) => !trusted.iter().any(|span| holds_token(span, text)),
        Some(_) => true,
    };
    consequential.iter().filter(doubtful).map(String::as_str).collect()
}

fn holds_token(span: &str, value: &str) -> bool {
    if value.chars().count() < MIN_CHARS {
        return false;
    }
    let (span, value) = (span.to_lowercase(), value.to_lowercase());
    // Each start is looked at, also one within another match.
    span.char_indices().any(|(at, _)| {
        let found = span.get(at..).is_some_and(|rest| rest.starts_with(&value));
        let before = span.get(..at).unwrap_or_default().chars().rev();
        let after = span.get(at.saturating_add(value.len())..).unwrap_or_default().chars();
        found && is_edge(before, &QUOTES) && is_edge(after, &TRAILERS)
    })
}

/// May stand before a token, if nothing but a separator stands before it.
const QUOTES: [char; 2] = ['\'', '’'];
/// May stand after a token, if nothing but a separator comes then: the end of a sentence, or of a quotation.
const TRAILERS: [char; 6] = ['.', ':', '!', '?', '\'', '’'];

/// Whether a token ends here, looking outwards. Whatever is not known to separate makes a longer token of two.
fn is_edge(outwards: impl Iterator<Item = char>, soft: &[char]) -> bool {
    let mut rest = outwards.skip_while(|c| soft.contains(c));
    rest.next().is_none_or(separates)
}

fn separates(c: char) -> bool {
    c.is_whitespace()
        || matches!(
            c,
            '"' | '`' | '“' | '”' | '‘' | '„' | '«' | '»' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';'
        )
}

#[cfg(test)]
mod tests {
    use super::untrusted;
    use ephor_base::Arguments;

    fn doubtful(path: &str, trusted: &str) -> bool {
        let arguments = Arguments::parse(&format!("{{\"path\":\"{path}\"}}")).unwrap();
        !untrusted(&arguments, &["path".to_owned()], &[trusted]).is_empty()
    }

    #[test]
    fn a_value_is_trusted_only_as_a_whole_token_of_a_trusted_span() {
        assert!(!doubtful("notes.txt", "write it to Notes.txt, please"));
        assert!(doubtful("notes.txt", "write it to my-notes.txt"));
        assert!(doubtful("notes.txt", "write it to old/notes.txt"));
        assert!(doubtful("notes.txt", "write it to a file"));
        assert!(doubtful("a", "write a file a"));
    }
}
