//! Text of others, written so that a reader sees every character of it.
//!
//! A terminal obeys control characters, turns its writing round at bidirectional ones and shows nothing of those that Unicode
//! lets a display ignore. Which these are, Unicode's own tables say (UAX #44: `General_Category`, `Default_Ignorable_Code_Point`);
//! there is no list here. What a reader would not see is spelt out as JSON does it, `\u202e`: so JSON text stays the same JSON.

use std::fmt::Write;

use icu_properties::{
    CodePointMapData, CodePointSetData,
    props::{DefaultIgnorableCodePoint, GeneralCategory},
};

/// `text` with every character spelt out that is not seen. Its lines, tabs and spaces stay.
#[must_use]
pub fn text(text: &str) -> String {
    spelt(text, |c| matches!(c, '\n' | '\t') || is_space(c) || is_seen(c))
}

/// `text` on one line: line breaks, tabs and spaces other than U+0020 are spelt out as well.
#[must_use]
pub fn line(text: &str) -> String {
    spelt(text, |c| c == ' ' || is_seen(c))
}

/// How many columns of a terminal `text`, a line, takes at most. A character outside of ASCII counts as two, which is the most that
/// terminals give one.
#[must_use]
pub fn columns(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// Whether `c` leaves a mark of its own where it stands. Private and unassigned characters may look like anything, so they do not.
#[must_use]
pub fn is_seen(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_graphic();
    }
    let is_ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>().contains(c);
    let is_markless = matches!(
        category(c),
        GeneralCategory::Control
            | GeneralCategory::Format
            | GeneralCategory::LineSeparator
            | GeneralCategory::ParagraphSeparator
            | GeneralCategory::SpaceSeparator
            | GeneralCategory::PrivateUse
            | GeneralCategory::Surrogate
            | GeneralCategory::Unassigned
    );
    !is_ignorable && !is_markless
}

fn is_space(c: char) -> bool {
    category(c) == GeneralCategory::SpaceSeparator
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}

fn spelt(text: &str, stays: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if stays(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let _infallible = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{line, text};

    #[test]
    fn what_a_terminal_obeys_or_hides_is_spelt_out() {
        assert_eq!(text("a\x1b[2Jb\u{202E}c\rd\ne\tf"), "a\\u001b[2Jb\\u202ec\\u000dd\ne\tf");
        for hidden in [
            '\0',
            '\u{7F}',
            '\u{85}',
            '\u{9B}',
            '\u{AD}',
            '\u{34F}',
            '\u{61C}',
            '\u{115F}',
            '\u{1160}',
            '\u{17B4}',
            '\u{180B}',
            '\u{180E}',
            '\u{200B}',
            '\u{200D}',
            '\u{2028}',
            '\u{2029}',
            '\u{2060}',
            '\u{2066}',
            '\u{206A}',
            '\u{3164}',
            '\u{E000}',
            '\u{FE0F}',
            '\u{FEFF}',
            '\u{FFA0}',
            '\u{FFF9}',
            '\u{FFFE}',
            '\u{13430}',
            '\u{1BCA0}',
            '\u{1D173}',
            '\u{E0001}',
            '\u{E0041}',
            '\u{E01EF}',
            '\u{F0000}',
            '\u{10FFFF}',
        ] {
            let (text, line) = (text(&hidden.to_string()), line(&hidden.to_string()));
            assert_eq!(text, line);
            assert!(text.starts_with("\\u") && text.is_ascii(), "{text}");
        }
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        let written = "Grüße, 你好, مرحبا, नमस्ते, e\u{301}, 5 €, “…”, 👍, 1\u{A0}000, 全\u{3000}角";
        assert_eq!(text(written), written);
        assert_eq!(line("a b\u{A0}c\td\ne"), "a b\\u00a0c\\u0009d\\u000ae");
    }

    #[test]
    fn json_means_the_same_and_has_no_hidden_character() {
        let value = serde_json::json!({"k\u{202E}": "a\u{9B}b\u{E0041}c\nd\u{7F}", "é": ["日本", 1.5, null]});
        for written in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let safe = text(&written);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&safe).unwrap(), value);
            assert!(safe.chars().all(|c| matches!(c, ' ' | '\n') || super::is_seen(c)), "{safe}");
        }
        let safe = line(&value.to_string());
        assert!(safe.contains("\\u009b") && safe.contains("\\udb40\\udc41"), "{safe}");
    }
}
