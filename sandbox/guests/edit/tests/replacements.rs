//! Exact replacements, and what is said of a place that is not found.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

use ephor_edit::{
    BadEdit, Differing, MOST_BYTES, MOST_EDITS, MOST_LINES, Nearest, Replacement, Replacements, Text, TooLarge,
    Unedited,
};
use proptest::prelude::{any, prop, prop_assert, prop_assert_eq, proptest};

fn one(old: &str, new: &str) -> Replacement {
    Replacement::new(old.to_owned(), new.to_owned(), false).unwrap()
}

fn apply(text: &str, edits: Vec<Replacement>) -> Result<String, Unedited> {
    Replacements::new(edits).unwrap().apply(Text::new(text).unwrap())
}

fn misses(text: &str, old: &str) -> Nearest {
    match apply(text, vec![one(old, "(new)")]).unwrap_err() {
        Unedited::Missing(nearest) => nearest,
        other => panic!("{other}"),
    }
}

fn differing(line: usize, sought: &str, found: &str) -> Differing {
    Differing { line, sought: sought.to_owned(), found: Some(found.to_owned()) }
}

#[test]
fn one_text_takes_the_place_of_another() {
    assert_eq!(apply("a\r\nb\r\nc", vec![one("b\r\n", "ä\n")]).unwrap(), "a\r\nä\nc");
    assert_eq!(apply("one two", vec![one(" two", "")]).unwrap(), "one");
    // Each sees what the one before left.
    assert_eq!(apply("a", vec![one("a", "b"), one("b", "c")]).unwrap(), "c");
    let all = Replacement::new("x".to_owned(), "yy".to_owned(), true).unwrap();
    assert_eq!(apply("x.x.x", vec![all]).unwrap(), "yy.yy.yy");
}

#[test]
fn of_several_edits_all_are_made_or_none() {
    let why = apply("a b c", vec![one("a", "1"), one("z", "2"), one("c", "3")]).unwrap_err();
    assert!(matches!(&why, Unedited::One { number: 2, of: 3, why } if matches!(**why, Unedited::Missing(_))), "{why}");
    assert!(why.to_string().starts_with("edit 2 of 3: `old` was not found."), "{why}");
    let why = apply("a b", vec![one("a", "1"), one("a b", "2")]).unwrap_err();
    assert!(matches!(&why, Unedited::One { number: 2, why, .. } if **why == Unedited::Gone), "{why}");
}

#[test]
fn what_stands_there_several_times_is_not_guessed() {
    let text = "fn a() {\n    x();\n}\nfn b() {\n    x();\n}\n";
    let why = apply(text, vec![one("    x();\n", "")]).unwrap_err();
    assert_eq!(why, Unedited::Ambiguous { times: 2, lines: vec![2, 5] });
    assert_eq!(
        why.to_string(),
        "`old` stands there 2 times, at lines 2, 5; give more of what is around it, or set `all`"
    );
    assert_eq!(apply("aaa", vec![one("aa", "b")]).unwrap_err(), Unedited::Ambiguous { times: 2, lines: vec![1] });
    let why = apply(&"x\n".repeat(50), vec![one("x", "y")]).unwrap_err();
    assert!(why.to_string().contains("50 times, at lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"), "{why}");
}

#[test]
fn a_miss_says_what_is_there_instead() {
    let text = "fn main() {\r\n\tlet one = 1;\r\n\tlet two = 2;\r\n}\r\n";
    let nearest = misses(text, "fn main() {\n\tlet one = 1;\n");
    assert_eq!(nearest, Nearest::LineEnds { line: 1, has_crlf: true });
    assert_eq!(misses("a\nb\n", "a\r\nb"), Nearest::LineEnds { line: 1, has_crlf: false });
    let text = text.replace('\r', "");
    let nearest = misses(&text, "    let one = 1;\n    let two = 2;");
    assert_eq!(nearest, Nearest::Whitespace(differing(2, "    let one = 1;", "\\tlet one = 1;")));
    assert!(nearest.to_string().starts_with("Whitespace alone differs: line 2 is"), "{nearest}");
    let nearest = misses(&text, "fn main() {\n\tlet one = 1;\n\tlet two = 3;\n}\n");
    assert_eq!(nearest, Nearest::Lines { same: 3, of: 4, first: differing(3, "\\tlet two = 3;", "\\tlet two = 2;") });
    let nearest = misses(&text, "let two = 2.0;");
    assert_eq!(nearest, Nearest::Line(differing(3, "let two = 2.0;", "\\tlet two = 2;")));
    let nearest = misses("a\nb\n", "b\nc\n");
    let end = Differing { line: 3, sought: "c".to_owned(), found: None };
    assert_eq!(nearest, Nearest::Lines { same: 1, of: 2, first: end });
    assert!(nearest.to_string().contains("the file ends before line 3"), "{nearest}");
    assert_eq!(misses("nothing of the kind", "zzz"), Nearest::Nowhere);
    assert_eq!(misses("", "zzz"), Nearest::Empty);
    // The lines that are missing are above the file.
    let nearest = misses("b\nc\n", "a\nb\nc\n");
    assert_eq!(nearest, Nearest::Lines { same: 2, of: 3, first: differing(1, "a", "b") });
}

#[test]
fn what_is_told_of_a_line_is_short_and_legible() {
    let nearest =
        misses(&format!("{}\u{1b}[2J{}\n", "x".repeat(100), "y".repeat(1000)), &format!("{}z", "x".repeat(700)));
    assert_eq!(nearest, Nearest::Nowhere);
    let long = format!("\u{1b}[2J{}", "ü".repeat(1000));
    let said = misses(&format!("{long}\n"), &format!("{long}!")).to_string();
    assert!(said.len() < 800 && !said.contains('\u{1b}') && said.contains("\\u{1b}[2J"), "{said}");
}

#[test]
fn edits_that_make_no_sense_are_refused() {
    let new = |old: &str, new: &str| Replacement::new(old.to_owned(), new.to_owned(), false).unwrap_err();
    assert_eq!(new("", "x"), BadEdit::Empty);
    assert_eq!(new("x", "x"), BadEdit::Same);
    assert_eq!(new(&"x".repeat(MOST_BYTES + 1), "x"), BadEdit::TooLarge(TooLarge::Bytes(MOST_BYTES + 1)));
    assert_eq!(Replacements::new(Vec::new()).unwrap_err(), BadEdit::None);
    assert_eq!(Replacements::new(vec![one("a", "b"); MOST_EDITS + 1]).unwrap_err(), BadEdit::Many(MOST_EDITS + 1));
    assert!(Replacements::new(vec![one("a", "b"); MOST_EDITS]).is_ok());
}

#[test]
fn nothing_grows_beyond_its_bound() {
    assert_eq!(Text::new(&"x".repeat(MOST_BYTES + 1)), Err(TooLarge::Bytes(MOST_BYTES + 1)));
    assert_eq!(Text::new(&"\n".repeat(MOST_LINES + 1)), Err(TooLarge::Lines(MOST_LINES + 1)));
    assert!(Text::new(&"\n".repeat(MOST_LINES)).is_ok());
    // A thousand times a thousand times a thousand.
    let grows = |old: &str| Replacement::new(old.to_owned(), "x".repeat(5000), true).unwrap();
    let why = apply("xxxx", vec![grows("x"), grows("x"), grows("x")]).unwrap_err();
    assert!(why.to_string().contains("too large"), "{why}");
    let lines = Replacement::new("x".to_owned(), "\n".to_owned(), true).unwrap();
    let why = apply(&"x".repeat(MOST_LINES + 1), vec![lines]).unwrap_err();
    assert_eq!(why, Unedited::TooLarge(TooLarge::Lines(MOST_LINES + 1)));
    // A text that overlaps itself everywhere costs no more than any other.
    let why = apply(&"a".repeat(MOST_BYTES), vec![one(&"a".repeat(MOST_BYTES / 2), "b")]).unwrap_err();
    assert!(matches!(why, Unedited::Ambiguous { times: 2, .. }), "{why}");
    assert!(matches!(misses(&"a\n".repeat(100_000), &"a \n".repeat(100_000)), Nearest::Whitespace(_)));
    assert!(matches!(misses(&"a\n".repeat(100_000), &"a\nb\n".repeat(50_000)), Nearest::Lines { .. }));
}

proptest! {
    /// Against the definition: an edit of a text that stands there once is that text taken out and the other put in.
    #[test]
    fn a_unique_place_is_replaced_and_any_other_is_not(
        text in "[ab\n ü]{0,30}", old in "[ab\n ü]{1,4}", new in "[abc\r\n]{0,4}", all in any::<bool>(),
    ) {
        let Ok(edit) = Replacement::new(old.clone(), new.clone(), all) else { return Ok(()) };
        let places = (0..text.len()).filter(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(&old))).count();
        match apply(&text, vec![edit]) {
            Ok(made) if all => prop_assert_eq!(made, text.replace(&old, &new)),
            Ok(made) => {
                prop_assert_eq!(places, 1);
                let (before, behind) = text.split_once(&old).unwrap();
                prop_assert_eq!(made, format!("{before}{new}{behind}"));
            }
            Err(Unedited::Missing(nearest)) => {
                prop_assert_eq!(places, 0);
                prop_assert!(!nearest.to_string().is_empty());
            }
            Err(Unedited::Ambiguous { .. }) => prop_assert!(places > 1 && !all),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn a_line_that_a_miss_names_is_that_line(lines in prop::collection::vec("[ab ]{0,5}", 1..12), old in "[ab \n]{1,12}") {
        let text = lines.join("\n");
        let Ok(edit) = Replacement::new(old, "new".to_owned(), false) else { return Ok(()) };
        let Err(Unedited::Missing(nearest)) = apply(&text, vec![edit]) else { return Ok(()) };
        if let Nearest::Whitespace(it) | Nearest::Line(it) | Nearest::Lines { first: it, .. } = nearest {
            let there = text.lines().nth(it.line - 1).map(str::to_owned);
            prop_assert!(it.found == there, "{:?} {:?}", it, text);
        }
    }
}
