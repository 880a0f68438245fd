//! Where typing ends and pasting begins.

use ephor_base::{Part, PartKind};
use ephor_governance::pasted::{MAX_CHARACTERS, MAX_LINES, divided, in_its_place};
use proptest::prelude::*;

fn typed(text: &str) -> Part {
    Part { kind: PartKind::Typed, text: text.into() }
}

/// What of this message counts as typed, and what as pasted.
fn both(text: &str) -> (String, String) {
    let of = |wanted: PartKind| {
        let parts = divided(vec![typed(text)]).into_iter().filter(|part| part.kind == wanted);
        parts.map(|part| part.text).collect::<String>()
    };
    (of(PartKind::Typed), of(PartKind::Pasted))
}

#[track_caller]
fn cuts(text: &str, pasted: &str) {
    assert_eq!(both(text).1, pasted, "{text:?}");
}

#[test]
fn what_stands_between_the_first_fence_and_the_last_is_pasted() {
    cuts("Answer this:\n```\nmail\n```\nthanks", "```\nmail\n```");
    cuts("Answer this:\n~~~\nmail\n~~~\nthanks", "~~~\nmail\n~~~");
    // What was pasted closes the fence, and goes on.
    cuts("Answer:\n```\nhi\n```\nsend it\n```\n```\nthanks", "```\nhi\n```\nsend it\n```\n```");
    // One that a paste opens is not closed by it.
    cuts("Answer:\n```\nhi\n```\nsend\n```\nit", "```\nhi\n```\nsend\n```\nit");
    cuts("Answer:\n```\nsend it", "```\nsend it");
    cuts("Answer:\n  > - ````text\n  > send it\n  > ````\nthanks", "````text\n  > send it\n  > ````");
    cuts("Answer: ```send it``` thanks\nto me", "```send it``` thanks");
    cuts("Answer:\r```\rsend it\r```\rthanks", "```\rsend it\r```");
    cuts("Answer:\r\n```\r\nsend it\r\n```\r\nthanks", "```\r\nsend it\r\n```");
    cuts("Answer:\u{2028}```\u{2028}send it\u{2028}```\u{2028}thanks", "```\u{2028}send it\u{2028}```");
    cuts("Use `rg` and ``x`` on ~/a, it is ~~old~~", "");
}

#[test]
fn what_stands_in_the_brackets_of_a_paste_is_pasted() {
    cuts("Sum up \u{1b}[200~mail\u{1b}[201~ for me", "\u{1b}[200~mail\u{1b}[201~");
    cuts("Sum up \u{9b}200~mail\u{9b}201~ for me", "\u{9b}200~mail\u{9b}201~");
    cuts("Sum up \u{1b}[200~mail", "\u{1b}[200~mail");
    cuts("mail\u{1b}[201~ sum it up", "mail\u{1b}[201~");
    // What was pasted closes its bracket, and goes on.
    cuts("A \u{1b}[200~x\u{1b}[201~send it\u{1b}[201~ b", "\u{1b}[200~x\u{1b}[201~send it\u{1b}[201~");
    cuts("A \u{1b}[200~x\u{1b}[201~send\u{1b}[200~it", "\u{1b}[200~x\u{1b}[201~send\u{1b}[200~it");
    // A fence within it is of it, and one behind it is not.
    cuts("A \u{1b}[200~```\u{1b}[201~ b", "\u{1b}[200~```\u{1b}[201~");
    cuts("A \u{1b}[200~x\u{1b}[201~~~~ b", "\u{1b}[200~x\u{1b}[201~~~~ b");
}

#[test]
fn what_nobody_types_at_one_go_is_pasted_whole() {
    let lines = |count: usize, end: &str| vec!["x"; count].join(end);
    for end in ["\n", "\r\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"] {
        assert_eq!(both(&lines(MAX_LINES, end)).1, "", "{end:?}");
        assert_eq!(both(&lines(MAX_LINES + 1, end)).0, "", "{end:?}");
    }
    assert_eq!(both(&"é".repeat(MAX_CHARACTERS)).1, "");
    assert_eq!(both(&"é".repeat(MAX_CHARACTERS + 1)).0, "");
    // A fence does not hide how long the rest is, and several parts are one message.
    assert_eq!(both(&format!("{}\n```\n```", "x".repeat(MAX_CHARACTERS + 1))).0, "");
    let halves = vec![typed(&"x".repeat(1500)), typed(&"y".repeat(1500))];
    assert!(divided(halves).iter().all(|part| part.kind == PartKind::Pasted));
}

#[test]
fn other_parts_stay_as_they_are_and_count_for_nothing() {
    let piped = Part { kind: PartKind::Piped, text: "```\n".repeat(100) };
    assert_eq!(divided(vec![typed("sum it up"), piped.clone()]), [typed("sum it up"), piped]);
    assert_eq!(divided(vec![typed("")]), [typed("")]);
}

#[test]
fn what_stands_for_a_pasted_text_says_how_long_it_is_and_nothing_else() {
    assert_eq!(in_its_place(&"é".repeat(3120)), "[pasted text, 3,120 characters, not shown]");
    assert_eq!(in_its_place("abc"), "[pasted text, 3 characters, not shown]");
}

fn texts() -> impl Strategy<Value = Vec<Part>> {
    let pieces = prop_oneof![
        Just("`"),
        Just("``"),
        Just("```"),
        Just("~"),
        Just("~~~"),
        Just("\u{1b}[200~"),
        Just("\u{1b}[201~"),
        Just("\u{9b}200~"),
        Just("\u{9b}201~"),
        Just("\n"),
        Just("\r\n"),
        Just("\r"),
        Just("\u{2028}"),
        Just("> "),
        Just("write to é"),
        Just(" "),
        Just("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"),
    ];
    let text = prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat());
    prop::collection::vec(text.prop_map(|text| typed(&text)), 1..3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_lost_and_no_fence_or_bracket_is_typed(parts in texts()) {
        let whole = |parts: &[Part]| parts.iter().map(|part| part.text.as_str()).collect::<String>();
        let cut = divided(parts.clone());
        prop_assert_eq!(whole(&parts), whole(&cut));
        prop_assert_eq!(&divided(cut.clone()), &cut);
        let own: Vec<&Part> = cut.iter().filter(|part| part.kind == PartKind::Typed).collect();
        for mark in ["```", "~~~", "\u{1b}[200~", "\u{1b}[201~", "\u{9b}200~", "\u{9b}201~"] {
            prop_assert!(own.iter().all(|part| !part.text.contains(mark)), "{:?} in {:?}", mark, cut);
        }
        let characters: usize = own.iter().map(|part| part.text.chars().count()).sum();
        let lines: usize = own.iter().map(|part| part.text.lines().count()).sum();
        prop_assert!(characters <= MAX_CHARACTERS && lines <= MAX_LINES);
        // What a person typed before the first mark is theirs, unless it is long.
        if own.is_empty() || parts.len() > 1 { return Ok(()); }
        let text = &parts[0].text;
        if !text.contains("01~") {
            let first = ["```", "~~~", "\u{1b}[200~", "\u{9b}200~"].iter().filter_map(|mark| text.find(mark)).min();
            let wanted = &text[..first.unwrap_or(text.len())];
            prop_assert!(own[0].text == *wanted || wanted.is_empty());
        }
    }
}
