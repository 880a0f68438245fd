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
        None | Some(Value::Null | Value::Bool(_)) => false,
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
    span.match_indices(&value).any(|(at, found)| {
        let before = span.get(..at).and_then(|text| text.chars().next_back());
        let after = span.get(at + found.len()..).and_then(|text| text.chars().next());
        !before.is_some_and(joins) && !after.is_some_and(joins)
    })
}

/// Characters that make a longer token out of two shorter ones.
fn joins(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '\\' | '@')
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
