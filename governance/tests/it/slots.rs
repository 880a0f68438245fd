//! Values in the wrong place: what a person said for one argument is not taken for another. Attacks first.

use ephor_base::{Arguments, Confidentiality, Flow, Integrity, Label, Registration, Source};
use ephor_governance::{Carried, SpanTable, Tool, TurnTime};

use crate::world::{said, tool};

/// A tool with these critical arguments.
fn with(arguments: &[&str]) -> Tool {
    let properties: Vec<String> = arguments.iter().map(|name| format!("\"{name}\":{{}}")).collect();
    let schema = format!("{{\"type\":\"object\",\"properties\":{{{}}}}}", properties.join(","));
    let consequential = arguments.iter().map(|name| (*name).to_owned()).collect();
    Tool::new(Registration { schema, consequential, paths: Vec::new(), ..tool() }).unwrap()
}

/// The critical arguments of a call that are not trusted.
fn doubted(spans: &SpanTable, tool: &Tool, call: &str) -> Vec<String> {
    let findings = spans.findings(tool, &Arguments::parse(call).unwrap());
    findings.into_iter().filter(|finding| !finding.trusted).map(|finding| finding.argument).collect()
}

fn directory(spans: &mut SpanTable, entry: &str, text: &str) {
    let flow = Flow { trusted_for: vec![entry.to_owned()], ..Flow::looks() };
    let label = Label::new(Source::Tool, Integrity::Trusted, Confidentiality::Public);
    let source = Registration { name: "t.source".parse().unwrap(), flow, integrity: Integrity::Trusted, ..tool() };
    spans.enter_result(label, text, &source, Carried::default());
}

#[test]
fn a_day_is_not_the_number_of_a_thing() {
    let (spans, booking) = (said("a room from 4 March 2027, number 2027-9"), with(&["hotel_id", "check_in"]));
    assert_eq!(doubted(&spans, &booking, r#"{"hotel_id":"2027-03-04"}"#), ["hotel_id"]);
    assert_eq!(doubted(&spans, &booking, r#"{"hotel_id":"2027-9","check_in":"2027-03-04"}"#), [""; 0]);
    // A source that is declared for it may have such numbers.
    let mut spans = said("take the first one");
    directory(&mut spans, "hotel_id", "2027-03-04 Pension Sonne");
    assert_eq!(doubted(&spans, &booking, r#"{"hotel_id":"2027-03-04"}"#), [""; 0]);
}

#[test]
fn a_word_directly_before_a_value_keeps_it_from_the_other_arguments() {
    let (spans, poll) = (said("Ask 'Where to?' with the options 'Rome' and 'Oslo'."), with(&["question", "options"]));
    assert_eq!(doubted(&spans, &poll, r#"{"question":"Rome","options":["Oslo"]}"#), ["question"]);
    assert_eq!(doubted(&spans, &poll, r#"{"question":"Where to?","options":["Rome","Oslo"]}"#), [""; 0]);
    // A short name such as `to` binds nothing.
    let (spans, mail) = (said("write to the branch at Hauptplatz"), with(&["to", "at", "place"]));
    assert_eq!(doubted(&spans, &mail, r#"{"place":"Hauptplatz"}"#), [""; 0]);
}

#[test]
fn one_mention_serves_one_argument() {
    let (mut spans, flight) = (said("OF-9110 for Ada Byron"), with(&["offer_id", "passengers", "out", "back"]));
    assert_eq!(doubted(&spans, &flight, r#"{"offer_id":"OF-9110","passengers":["Ada Byron"]}"#), [""; 0]);
    assert_eq!(
        doubted(&spans, &flight, r#"{"offer_id":"OF-9110","passengers":["of-9110"]}"#),
        ["offer_id", "passengers"]
    );
    assert_eq!(
        doubted(&said("OF-9110, OF-9110"), &flight, r#"{"offer_id":"OF-9110","passengers":["OF-9110"]}"#),
        [""; 0]
    );
    // What a source is declared for stays trusted, and the other does not become so.
    directory(&mut spans, "offer_id", "OF-9110 134 EUR");
    assert_eq!(doubted(&spans, &flight, r#"{"offer_id":"OF-9110","passengers":["OF-9110"]}"#), ["passengers"]);
    // Days may be alike.
    let spans = said("there and back on 4 March 2027");
    assert_eq!(doubted(&spans, &flight, r#"{"out":"2027-03-04","back":"2027-03-04"}"#), [""; 0]);
}

#[test]
fn a_quotation_is_what_is_said_and_not_where_or_what_of() {
    let topic = with(&["channel", "topic"]);
    let mut spans = said("Set the one of #release to 'Release 3.2 is out'.");
    assert_eq!(doubted(&spans, &topic, r##"{"channel":"#release","topic":"Release 3.2 is out"}"##), [""; 0]);
    directory(&mut spans, "channel", "#release, #general");
    let swapped = r##"{"channel":"Release 3.2 is out","topic":"#general"}"##;
    assert_eq!(doubted(&spans, &topic, swapped), ["channel", "topic"]);
    let (spans, setting) = (said("note my seat preference as 'aisle'"), with(&["name", "value"]));
    assert_eq!(doubted(&spans, &setting, r#"{"name":"aisle","value":"seat"}"#), ["name"]);
    assert_eq!(doubted(&spans, &setting, r#"{"name":"seat","value":"aisle"}"#), [""; 0]);
}

#[test]
fn a_channel_is_no_person() {
    let (spans, message) = (said("tell #release and @ada"), with(&["user"]));
    assert_eq!(doubted(&spans, &message, r##"{"user":"#release"}"##), ["user"]);
    assert_eq!(doubted(&spans, &message, r#"{"user":"@ada"}"#), [""; 0]);
}

#[test]
fn an_ending_does_not_hide_the_name_of_an_argument() {
    let train = with(&["class", "cart"]);
    assert_eq!(doubted(&said("un billet en classe 2"), &train, r#"{"class":"2"}"#), [""; 0]);
    assert_eq!(doubted(&said("un billet en classement 2"), &train, r#"{"class":"2"}"#), ["class"]);
    assert_eq!(doubted(&said("carton 2"), &train, r#"{"cart":"2"}"#), ["cart"]);
}

#[test]
fn a_number_of_people_is_one() {
    let table = with(&["party", "level"]);
    for text in ["a table for 4 on Saturday", "einen Tisch für 4", "we are 4 people"] {
        assert_eq!(doubted(&said(text), &table, r#"{"party":4}"#), [""; 0], "{text}");
    }
    for (text, call) in [
        ("a table for 4", r#"{"level":4}"#),
        ("a table for 4 €", r#"{"party":4}"#),
        ("room 4", r#"{"party":4}"#),
        ("a table for 4", r#"{"party":5}"#),
    ] {
        assert_eq!(doubted(&said(text), &table, call).len(), 1, "{text}");
    }
}

#[test]
fn how_long_something_lasts_says_when_it_ends() {
    let room = with(&["from", "until"]);
    for text in [
        "three nights from 12 December 2026",
        "12 December 2026 for 3 nights",
        "for 3 days starting on 2026-12-12",
        "drei Nächte ab dem 12. Dezember 2026",
        "from December 12 for three nights",
    ] {
        assert_eq!(doubted(&said(text), &room, r#"{"from":"2026-12-12","until":"2026-12-15"}"#), [""; 0], "{text}");
    }
    for text in ["three nights, and call me on 12 December 2026", "3 rooms from 12 December 2026", "12 December 2026"] {
        assert_eq!(doubted(&said(text), &room, r#"{"until":"2026-12-15"}"#), ["until"], "{text}");
    }
    assert_eq!(doubted(&said("3 nights from 12 December"), &room, r#"{"until":"2026-12-16"}"#), ["until"]);
}

#[test]
fn a_time_alone_is_the_next_one_to_come() {
    let call = with(&["until"]);
    let when = |text: &str, until: &str| doubted(&said(text), &call, &format!("{{\"until\":\"{until}\"}}")).is_empty();
    assert!(when("away until 17:30", "2026-11-21T17:30:00+01:00"));
    assert!(when("away until 8:15", "2026-11-22T08:15:00"), "it is nine o'clock");
    assert!(!when("away until 17:30", "2026-11-22T17:30:00"));
    assert!(!when("away until 17:30", "2026-11-21T17:31:00"));
    assert!(!when("away on 3 December until 17:30", "2026-11-21T17:30:00"), "another day is spoken of");
    let mut spans = SpanTable::default();
    spans.enter(Label::new(Source::User, Integrity::Trusted, Confidentiality::Public), "away until 17:30");
    assert_eq!(doubted(&spans, &call, r#"{"until":"2026-11-21T17:30:00"}"#), ["until"], "nobody knows the time");
    spans.begin_turn(TurnTime::parse("2026-11-21T09:00:00+01:00"));
    assert_eq!(doubted(&spans, &call, r#"{"until":"2026-11-21T17:30:00"}"#), [""; 0]);
}

#[test]
fn scripts_without_spaces_have_words_too() {
    let status = with(&["text", "until"]);
    let spans = said("ステータスを「外出中」にして、17:30まで。");
    assert_eq!(doubted(&spans, &status, r#"{"text":"外出中","until":"2026-11-21T17:30:00"}"#), [""; 0]);
    for call in [r#"{"text":"外出"}"#, r#"{"text":"中"}"#, r#"{"text":"出中"}"#] {
        assert_eq!(doubted(&spans, &status, call), ["text"], "{call}");
    }
}

#[test]
fn a_time_goes_with_a_day_of_its_own_sentence() {
    let call = with(&["when"]);
    let spans = said("Remind me at 4 this afternoon. And write that the lift is out until tomorrow.");
    assert_eq!(doubted(&spans, &call, r#"{"when":"2026-11-22T16:00:00"}"#), ["when"], "two things are mixed");
    assert_eq!(doubted(&spans, &call, r#"{"when":"2026-11-21T04:00:00"}"#), ["when"], "it is not the night");
    assert_eq!(doubted(&spans, &call, r#"{"when":"2026-11-21T16:00:00"}"#), [""; 0]);
    // A time in an answer goes with the day that was spoken of before.
    let mut spans = said("Move it to 3 December.");
    spans.enter(Label::new(Source::User, Integrity::Trusted, Confidentiality::Public), "15:00 is fine");
    assert_eq!(doubted(&spans, &call, r#"{"when":"2026-12-03T15:00:00"}"#), [""; 0]);
}

#[test]
fn days_and_times_are_read_in_many_languages() {
    let call = with(&["when"]);
    for (text, when) in [
        ("giovedì 3 dicembre alle 15:30", "2026-12-03T15:30"),
        ("el miércoles 25 de noviembre de 2026 a las 18:15", "2026-11-25T18:15"),
        ("dinsdag 8 december om half vier", "2026-12-08T15:30"),
        ("zaterdag 5 december om 19.30 uur", "2026-12-05T19:30"),
        ("w piątek 4 grudnia o 17", "2026-12-04T17:00"),
        ("na amanhã às 9", "2026-11-22T09:00"),
        ("domani alle 4 del pomeriggio", "2026-11-22T16:00"),
        ("12月4日下午3点", "2026-12-04T15:00"),
        ("明天上午9点半", "2026-11-22T09:30"),
        ("2026年12月4日15:00", "2026-12-04T15:00"),
        ("٣ ديسمبر الساعة ١٤:٣٠", "2026-12-03T14:30"),
        ("from 9am on the 3rd of December till 6pm on the 7th", "2026-12-07T18:00"),
        ("dal 12 al 15 marzo 2027 alle 10:00", "2027-03-12T10:00"),
    ] {
        assert_eq!(doubted(&said(text), &call, &format!("{{\"when\":\"{when}\"}}")), [""; 0], "{text}");
        assert_eq!(doubted(&said(text), &call, r#"{"when":"2026-12-24T03:07"}"#), ["when"], "{text}");
    }
}

#[test]
fn half_an_hour_is_before_or_after_as_the_language_has_it() {
    let call = with(&["when"]);
    let is =
        |text: &str, when: &str| doubted(&said(text), &call, &format!("{{\"when\":\"2026-12-08T{when}\"}}")).is_empty();
    for (text, is_meant, is_not) in
        [("dinsdag 8 december om half 4", "15:30", "16:30"), ("am 8. Dezember um halb 9", "08:30", "09:30")]
    {
        assert!(is(text, is_meant), "{text}");
        assert!(!is(text, is_not), "{text}");
    }
    // In English some mean the one by it and some the other, so it vouches for neither.
    assert!(!is("on 8 December at half 4", "16:30") && !is("on 8 December at half 4", "15:30"));
}

#[test]
fn numbers_count_what_is_beside_them() {
    let call = with(&["durationMin", "adults", "children", "qty", "eur", "usd"]);
    for (text, call_of) in [
        ("45 minuti", r#"{"durationMin":45}"#),
        ("90分钟", r#"{"durationMin":90}"#),
        ("1 adulto y 2 niños", r#"{"adults":1,"children":2}"#),
        ("买3张", r#"{"qty":3}"#),
        ("paga 87,40 €", r#"{"eur":87.4}"#),
        ("把 200 美元换成欧元", r#"{"usd":200}"#),
    ] {
        assert_eq!(doubted(&said(text), &call, call_of), [""; 0], "{text}");
    }
    for (text, call_of) in [
        ("45 minuti", r#"{"qty":45}"#),
        ("1 adulto y 2 niños", r#"{"adults":2}"#),
        ("paga 87,40 €", r#"{"usd":87.4}"#),
        ("paga $87", r#"{"eur":87}"#),
        ("room 8740", r#"{"eur":8740}"#),
    ] {
        assert_eq!(doubted(&said(text), &call, call_of).len(), 1, "{text} {call_of}");
    }
}

#[test]
fn an_account_is_one_number_and_nothing_else_is_one() {
    let pay = with(&["creditor_iban"]);
    for text in ["IE29 AIBK 9311 5212 3456 78", "to Ada — ie29aibk93115212345678."] {
        assert_eq!(doubted(&said(text), &pay, r#"{"creditor_iban":"IE29AIBK93115212345678"}"#), [""; 0], "{text}");
    }
    let spans = said("pay IE29 AIBK 9311 5212 3456 78 on 3 December 2026, see bill-nov.pdf and order7788990011");
    for value in ["2026-12-03", "bill-nov.pdf", "IE29AIBK931152123456", "AIBK 9311 5212", "order7788990011"] {
        assert_eq!(doubted(&spans, &pay, &format!("{{\"creditor_iban\":\"{value}\"}}")), ["creditor_iban"], "{value}");
    }
}

#[test]
fn whoever_writes_one_person_with_a_sign_writes_all_so() {
    let (spans, send) = (said("send @kasia.w 20 for kino-0412"), with(&["handle"]));
    assert_eq!(doubted(&spans, &send, r#"{"handle":"kino-0412"}"#), ["handle"]);
    assert_eq!(doubted(&spans, &send, r#"{"handle":"@kasia.w"}"#), [""; 0]);
    assert_eq!(doubted(&said("send kasia.w 20"), &send, r#"{"handle":"kasia.w"}"#), [""; 0]);
}
