//! Takes a key out of what a provider says, so that neither a screen nor the record ever has it.
//!
//! A server, or a proxy before it, may say back what it was sent: as it came, or as it writes URLs, JSON, HTML, base64 or hexadecimal
//! digits. What is found is a part of the key that is long enough to be of use, in any of these, also where they are mixed.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use ephor_base::Secret;

/// What stands in place of a key.
const INSTEAD: &str = "[key]";

/// So many characters of a key in a row are taken out. Fewer can be anything, such as the prefix that all keys of a provider have.
const RUN: usize = 16;

/// What is shorter is no secret but a word, as servers that want no key are given; to blank it would spoil answers.
const SHORTEST: usize = 8;

/// How many backslashes before a character are passed over: texts are escaped more than once.
const BACKSLASHES: usize = 8;

/// Finds keys.
#[derive(Debug, Default)]
pub(crate) struct Scrub(Vec<Secret<Vec<u8>>>);

/// A text that comes in pieces. What may be the beginning of a key is kept until it is clear what it is.
#[derive(Clone, Debug)]
pub(crate) struct Scrubbed<'a> {
    scrub: &'a Scrub,
    held: String,
}

impl Scrub {
    /// Finds these keys.
    pub(crate) fn new<'a>(keys: impl IntoIterator<Item = &'a Secret<String>>) -> Self {
        let keys = keys.into_iter().map(|key| key.expose().trim().as_bytes());
        Self(keys.filter(|key| key.len() >= SHORTEST).flat_map(needles).map(Secret::new).collect())
    }

    /// `text` without the key.
    pub(crate) fn clean(&self, text: &str) -> String {
        let mut pieces = self.pieces();
        let mut clean = pieces.push(text);
        clean.push_str(&pieces.finish());
        clean
    }

    /// For a text in pieces.
    pub(crate) const fn pieces(&self) -> Scrubbed<'_> {
        Scrubbed { scrub: self, held: String::new() }
    }

    /// Looks at the beginning of `text`: how long what is to go is, and whether more of the text may change that.
    fn found(&self, text: &[u8]) -> (usize, bool) {
        let (mut longest, mut is_open) = (0, false);
        for needle in &self.0 {
            let needle = needle.expose();
            let least = RUN.min(needle.len());
            for from in 0..=needle.len() - least {
                let run = needle.get(from..).map_or_else(Run::default, |rest| Run::of(rest, text));
                is_open |= run.is_open;
                if run.matched >= least {
                    longest = longest.max(run.length);
                }
            }
        }
        (longest, is_open)
    }
}

/// A key as servers write it.
fn needles(key: &[u8]) -> Vec<Vec<u8>> {
    let hex = |upper: bool| {
        let digits = key.iter().map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
        digits.collect::<String>().into_bytes()
    };
    let mut needles = vec![key.to_vec(), hex(false), hex(true)];
    for before in 0..3 {
        // What of the text does not depend on what stands around the key.
        let mut padded = vec![0; before];
        padded.extend_from_slice(key);
        let (first, end) = ((before * 8).div_ceil(6), padded.len() * 8 / 6);
        for text in [STANDARD_NO_PAD.encode(&padded), URL_SAFE_NO_PAD.encode(&padded)] {
            needles.extend(text.get(first..end).map(|core| core.as_bytes().to_vec()));
        }
    }
    needles
}

impl Scrubbed<'_> {
    /// Takes more of the text; gives what is clear of it.
    pub(crate) fn push(&mut self, text: &str) -> String {
        if self.scrub.0.is_empty() {
            return text.to_owned();
        }
        self.held.push_str(text);
        self.take(false)
    }

    /// The rest. What could have become more of the key did not.
    pub(crate) fn finish(&mut self) -> String {
        self.take(true)
    }

    fn take(&mut self, is_last: bool) -> String {
        let (mut clean, mut at) = (String::new(), 0);
        while let Some(rest) = self.held.get(at..).filter(|rest| !rest.is_empty()) {
            let (length, is_open) = self.scrub.found(rest.as_bytes());
            if is_open && !is_last {
                break;
            }
            if length > 0 {
                clean.push_str(INSTEAD);
                at += length;
            } else {
                let next = rest.chars().next();
                clean.extend(next);
                at += next.map_or(1, char::len_utf8);
            }
        }
        self.held.drain(..at);
        clean
    }
}

/// How far a text says what a needle does.
#[derive(Debug, Default)]
struct Run {
    /// Bytes of the needle.
    matched: usize,
    /// Bytes of the text.
    length: usize,
    /// The text ended before they differed.
    is_open: bool,
}

impl Run {
    fn of(needle: &[u8], text: &[u8]) -> Self {
        let mut run = Self::default();
        for byte in needle {
            let rest = text.get(run.length..).unwrap_or_default();
            let length = match (rest.first(), escaped(rest)) {
                (Some(first), _) if first == byte => 1,
                (_, Escaped::As(found, length)) if found == *byte => length,
                (None, _) | (_, Escaped::Cut) => {
                    run.is_open = true;
                    return run;
                }
                _ => return run,
            };
            run.matched += 1;
            run.length += length;
        }
        run
    }
}

/// A character that is written otherwise than as itself.
enum Escaped {
    /// It is this one, in so many bytes.
    As(u8, usize),
    /// The text ends in the middle of it.
    Cut,
    No,
}

/// Reads `%2F`, `\/`, `\u002f`, `\x2f`, `&#47;`, `&#x2f;` and `&quot;`.
fn escaped(text: &[u8]) -> Escaped {
    match text.first() {
        Some(b'%') => digits(text, 1, 2, 16),
        Some(b'\\') => {
            let slashes = text.iter().take(BACKSLASHES).take_while(|byte| **byte == b'\\').count();
            match text.get(slashes) {
                None => Escaped::Cut,
                Some(b'u') => digits(text, slashes + 1, 4, 16),
                Some(b'x') => digits(text, slashes + 1, 2, 16),
                Some(byte) => Escaped::As(*byte, slashes + 1),
            }
        }
        Some(b'&') => entity(text),
        _ => Escaped::No,
    }
}

fn digits(text: &[u8], from: usize, count: usize, radix: u32) -> Escaped {
    let found = text.get(from..).unwrap_or_default();
    let digits = found.get(..count).unwrap_or(found);
    if !digits.iter().all(|digit| char::from(*digit).is_digit(radix)) {
        return Escaped::No;
    }
    if digits.len() < count {
        return Escaped::Cut;
    }
    let value = std::str::from_utf8(digits).ok().and_then(|digits| u32::from_str_radix(digits, radix).ok());
    value.and_then(|value| u8::try_from(value).ok()).map_or(Escaped::No, |byte| Escaped::As(byte, from + count))
}

/// The characters that HTML has to write otherwise have names.
fn entity(text: &[u8]) -> Escaped {
    /// The longest of those that mean one byte is `&#x0000ff;`.
    const LONGEST: usize = 10;
    let head = text.get(..text.len().min(LONGEST)).unwrap_or_default();
    let Some(end) = head.iter().position(|byte| *byte == b';') else {
        let is_begun = head.iter().skip(1).all(|byte| byte.is_ascii_alphanumeric() || *byte == b'#');
        return if is_begun && head.len() < LONGEST { Escaped::Cut } else { Escaped::No };
    };
    let name = head.get(1..end).and_then(|name| std::str::from_utf8(name).ok()).unwrap_or_default();
    let byte = match (name, name.strip_prefix('#')) {
        ("quot", _) => Some(b'"'),
        ("amp", _) => Some(b'&'),
        ("apos", _) => Some(b'\''),
        ("lt", _) => Some(b'<'),
        ("gt", _) => Some(b'>'),
        (_, Some(number)) => match number.strip_prefix(['x', 'X']) {
            Some(number) => u8::from_str_radix(number, 16).ok(),
            None => number.parse().ok(),
        },
        _ => None,
    };
    byte.map_or(Escaped::No, |byte| Escaped::As(byte, end + 1))
}

#[cfg(test)]
mod tests {
    use base64::{Engine, engine::general_purpose::STANDARD};
    use ephor_base::Secret;

    use super::Scrub;

    const KEY: &str = "sk-very/secret+\"key\"-0123456789abcdefghij";

    fn scrub() -> Scrub {
        Scrub::new([&Secret::new(KEY.to_owned())])
    }

    fn forms() -> Vec<String> {
        vec![
            KEY.to_owned(),
            KEY.bytes().map(|byte| format!("%{byte:02X}")).collect(),
            KEY.replace('/', "%2f").replace('"', "%22"),
            KEY.replace('"', "\\\"").replace('/', "\\/"),
            KEY.replace('"', "\\\\\\\"").replace('/', "\\\\u002F"),
            KEY.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
            KEY.replace('"', "&quot;").replace('/', "&#x2F;").replace('+', "&#43;"),
            KEY.bytes().map(|byte| format!("{byte:02x}")).collect(),
        ]
    }

    #[test]
    fn a_key_is_found_however_it_is_written() {
        for form in forms() {
            let text = format!("debug: Bearer {form}; {form}.");
            assert_eq!(scrub().clean(&text), "debug: Bearer [key]; [key].", "{form}");
        }
        for before in ["", "a", "ab", "Bearer ", "Authorization: Bearer "] {
            let text = STANDARD.encode(format!("{before}{KEY} and more"));
            let clean = scrub().clean(&text);
            assert!(clean.contains("[key]") && !clean.contains(text.get(40..56).unwrap()), "{clean}");
        }
    }

    #[test]
    fn a_key_is_found_wherever_its_text_is_cut() {
        for form in forms() {
            let text = format!("é {form} ü");
            for (cut, _) in text.char_indices() {
                let (head, tail) = text.split_at(cut);
                let scrub = scrub();
                let mut pieces = scrub.pieces();
                let shown = [pieces.push(head), pieces.push(tail), pieces.finish()].concat();
                assert_eq!(shown, "é [key] ü", "{form} cut at {cut}");
            }
        }
    }

    #[test]
    fn a_part_of_a_key_is_found_and_what_is_common_stays() {
        assert_eq!(scrub().clean("sk-very/secret+\"k and -0123456789abcde"), "[key] and [key]");
        assert_eq!(scrub().clean("sk-very/secret is no key: sk-..."), "sk-very/secret is no key: sk-...");
        let text = "100 % of \\path\\ & more; &#0; %zz \\u12 \u{1f980}";
        assert_eq!(scrub().clean(text), text);
    }

    #[test]
    fn a_word_that_stands_for_no_key_is_left_alone() {
        for word in ["", "ollama", "EMPTY", " none "] {
            let scrub = Scrub::new([&Secret::new(word.to_owned())]);
            assert_eq!(scrub.clean("ask ollama, EMPTY or none"), "ask ollama, EMPTY or none");
        }
        assert_eq!(Scrub::default().clean("x"), "x");
    }
}
