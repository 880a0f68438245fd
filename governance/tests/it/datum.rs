//! What tools answer is read strictly, within bounds, and by no parser that falls over.

use ephor_base::Format;
use ephor_governance::{
    datum::{Datum, MAX_BYTES, MAX_DEPTH, MAX_VALUES},
    literals::Literals,
    plan::Records,
};
use proptest::prelude::*;

const FORMATS: [Format; 5] = [Format::None, Format::Json, Format::Yaml, Format::Csv, Format::Text];

#[test]
fn what_is_too_long_too_deep_or_too_much_is_not_read() {
    let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Datum::json(&nested(MAX_DEPTH)).is_ok());
    for bad in [nested(MAX_DEPTH + 1), nested(1_000_000), "[".repeat(1_000_000), "{\"a\":".repeat(100_000)] {
        assert!(Datum::json(&bad).is_err());
        assert!(Datum::read(Format::Yaml, &bad).is_err());
    }
    let many = |count: usize| format!("[{}]", vec!["1"; count].join(","));
    assert!(Datum::json(&many(MAX_VALUES - 1)).is_ok());
    assert!(Datum::json(&many(MAX_VALUES)).is_err());
    assert!(Datum::read(Format::Csv, &format!("a\n{}", "1\n".repeat(MAX_VALUES))).is_err());
    assert!(Datum::read(Format::Text, &" ".repeat(MAX_BYTES + 1)).is_err());
}

#[test]
fn json_has_one_reading() {
    for bad in [
        "",
        "[1,]",
        "{\"a\":1,}",
        "{a:1}",
        "{'a':1}",
        "01",
        "+1",
        "1.",
        ".5",
        "NaN",
        "[1] [2]",
        "{\"a\":1} x",
        "\"\t\"",
        "// x\n1",
        "{\"a\":1,\"a\":1}",
        "{\"a\":1,\"\\u0061\":1}",
        "{\"a\":1,\"a_\":1}",
        "{\"\u{e9}\":1,\"e\u{301}\":2}",
        "[{\"b\":{\"a\":1,\"a\":2}}]",
    ] {
        assert!(Datum::json(bad).is_err(), "{bad}");
    }
    let wide = Datum::json(&"9".repeat(39)).unwrap();
    assert!(!wide.is(&wide), "what is not compared is equal to nothing");
}

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        ",",
        ":",
        "\n",
        " ",
        "  ",
        "- ",
        "a",
        "b_",
        "1",
        "0",
        "-",
        ".",
        "e",
        "true",
        "null",
        "\\u0061",
        "\\",
        "&a",
        "*a",
        "!t",
        "|",
        ">",
        "#",
        "?",
        "%",
        "'",
        "---",
        "é",
        "\u{0}",
        "\u{feff}",
        "\t",
        "\r",
        "2026-11-30",
        "DE89370400440532013000",
        "EUR",
        "@",
        "://",
    ]);
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_brings_a_parser_down(text in text()) {
        for format in FORMATS {
            drop(Records::read(format, &text));
        }
        let literals = Literals::of(&text);
        prop_assert!(!literals.have_text(""));
        if let Ok(read) = Datum::json(&text) {
            let known = serde_json::from_str::<serde_json::Value>(text.trim_start_matches('\u{feff}'));
            let fits = known.as_ref().err().is_none_or(|error| error.to_string().contains("out of range"));
            prop_assert!(fits, "{:?} {:?} {:?}", text, read, known);
        }
    }
}
