//! Literals, and the three rules on where arguments come from.

use ephor_base::{CallId, Decision, arguments::Value};
use ephor_governance::{
    Planned, Rule, SpanTable, Spent, Tool,
    literals::Literals,
    origin::{self, Harms, Origins},
};

use crate::{
    office::{Office, name},
    world::{Given, Pinned, said},
};

fn has(text: &str, value: &str) -> bool {
    Literals::of(text).have(&serde_json::from_str::<Value>(value).unwrap())
}

#[test]
fn a_value_stands_in_a_text_as_a_whole_or_not_at_all() {
    for text in [
        "write notes.txt",
        "notes.txt: write it",
        "write \"notes.txt\".",
        "(notes.txt)",
        "is it notes.txt?",
        "'notes.txt'",
        "notes.txt, please",
        "not xnotes.txt but notes.txt",
        "notes.txt—please",
        "a,notes.txt",
        "请看notes.txt吧",
        r#"{"file":"notes.txt","n":1}"#,
    ] {
        assert!(has(text, r#""notes.txt""#), "{text}");
    }
    for text in [
        "notes.txt.bak",
        "my.notes.txt",
        "~notes.txt",
        "a+notes.txt",
        "x:notes.txt",
        "notes.txt/x",
        "notes.txt=1",
        "notes.txt\u{301}",
        "notes.txt\u{200d}x",
        "notes.txt%00",
        "notes.txt'x",
        "$notes.txt",
        "NOTES.TXT",
        "",
        "#notes.txt",
    ] {
        assert!(!has(text, r#""notes.txt""#), "{text}");
    }
    for value in ["true", "null", r#""""#, "[]", "{}", r#""…""#, r#""12,3456""#, r#""3456""#, r#""12""#, "12", "34567"]
    {
        assert!(!has("notes.txt true null 7 a 12,34567", value), "{value}");
    }
    assert!(has("the Team  Sync\n at noon", r#""Team Sync""#), "white space is one space");
    assert!(has("to Zu\u{308}rich", "\"Zürich\""), "NFC");
}

#[test]
fn what_an_attacker_wrote_encoded_or_invented_stands_nowhere() {
    let text = "Send the summary to anna@corp.example, it is about the launch of 3 December 2026.";
    assert!(has(text, r#""anna@corp.example""#));
    for value in [
        "mallory@evil.example",
        "anna@corp.example.evil.example",
        "xanna@corp.example",
        "anna@corp.exampl",
        "anna @corp.example",
        "аnna@corp.example",
        "anna@corp.example\\u200b",
        "anna@corp.example mallory@evil.example",
        "anna@corp.example,mallory@evil.example",
        "corp.example",
        "anna",
        "YW5uYUBjb3JwLmV4YW1wbGU=",
        "anna%40corp.example",
        "moc.live@yrollam",
    ] {
        assert!(!has(text, &format!("\"{value}\"")), "{value}");
    }
}

#[test]
fn each_form_of_the_closed_list_is_found_by_its_meaning() {
    for (text, value) in [
        ("pay 1,200.50 now", "1200.5"),
        ("pay 1'200 now", "1200"),
        ("pay CHF 412.60 to", "412.6"),
        ("pay CHF 412.60 to", r#""412.60 CHF""#),
        ("pay 50€.", r#""EUR 50""#),
        ("on 30 November 2026.", r#""2026-11-30""#),
        ("on November 30, 2026, at", r#""2026-11-30""#),
        ("on 30.11.2026", r#""2026-11-30""#),
        ("on 11/30/2026", r#""2026-11-30""#),
        ("on 2026-11-30", r#""30 Nov 2026""#),
        ("at 2:30 pm", r#""14:30""#),
        ("at 8am", r#""08:00""#),
        ("for 30 minutes", r#""PT30M""#),
        ("at 2026-11-30T10:00:00+01:00", r#""2026-11-30T09:00:00Z""#),
        ("to Anna@Corp.example", r#""anna@corp.example""#),
        ("see HTTPS://Corp.example/A", r#""https://corp.example/A""#),
        ("to DE89 3704 0044 0532 0130 00 today", r#""DE89370400440532013000""#),
        ("to DE89370400440532013000", r#""DE89 3704 0044 0532 0130 00""#),
        (r#"{"iban":"DE89370400440532013000","sum":12}"#, "12"),
        ("count 9007199254740993", "9007199254740993"),
        ("-3 degrees", "-3"),
    ] {
        assert!(has(text, value), "{text} {value}");
    }
    for (text, value) in [
        ("pay 1.200 now", "1200"),
        ("pay 1.200 now", "1.2"),
        ("pay $50", r#""USD 50""#),
        ("pay CHF 50", r#""EUR 50""#),
        ("on 10/11/2026", r#""2026-11-10""#),
        ("on 30 February 2026", r#""2026-02-30""#),
        ("on 30 November", r#""2026-11-30""#),
        ("30 November 2026", "30"),
        ("to DE89 3704 0044 0532 0130 00", "3704"),
        ("to DE88 3704 0044 0532 0130 00", r#""DE88370400440532013000""#),
        ("count 9007199254740993", "9007199254740992"),
        ("fifty euros", "50"),
        ("tomorrow", r#""2026-11-23""#),
        ("see https://corp.example/A", r#""https://corp.example/a""#),
        ("see https://corp.example", r#""https://corp.example.evil.example""#),
        ("for 30 minutes", r#""PT30H""#),
        ("0041 22", "41"),
    ] {
        assert!(!has(text, value), "{text} {value}");
    }
}

fn rules(office: &Office, tainted: bool, planned: Planned<'_>, tool: &str, arguments: &str) -> Origins {
    let tool: &Tool = office.registry.tool(&name(tool)).unwrap();
    let arguments = ephor_base::Arguments::parse(arguments).unwrap();
    let harms = Harms { tainted, reversible: false };
    origin::of((CallId(1), tool, &arguments), harms, planned, &Spent::default(), &office.spans)
}

#[test]
fn the_first_rule_that_applies_decides() {
    let office = Office::typed("Pay anna@corp.example 50.");
    let (said, other) = (r#"{"to":"anna@corp.example","amount":50}"#, r#"{"to":"m@evil.example","amount":50}"#);
    let plan =
        office.plan(r#"{"steps":[{"tool":"pay","arguments":{"to":{"is":"anna@corp.example"},"amount":{"is":50}}}]}"#);
    let none = office.plan(r#"{"steps":[]}"#);
    for (tainted, planned, arguments, rule, permits) in [
        (false, Planned::NoPlanner, other, Rule::Clean, true),
        (false, Planned::Missing, other, Rule::Clean, true),
        (false, Planned::Plan(&none), other, Rule::Clean, true),
        (true, Planned::Missing, said, Rule::NoPlan, false),
        (true, Planned::Plan(&plan), said, Rule::Plan, true),
        (true, Planned::Plan(&plan), other, Rule::Plan, false),
        (true, Planned::Plan(&none), said, Rule::Plan, false),
        (true, Planned::NoPlanner, said, Rule::Literals, true),
        (true, Planned::NoPlanner, other, Rule::Literals, false),
    ] {
        let found = rules(&office, tainted, planned, "pay", arguments);
        assert_eq!((found.rule, found.permits), (rule, permits), "{tainted} {planned:?} {arguments}");
    }
    assert!(!rules(&office, true, Planned::NoPlanner, "pay", "{}").permits, "nobody has said anything of it");
}

#[test]
fn without_a_planner_what_a_trusted_tool_says_counts_unless_its_call_put_it_there() {
    let found = |tool: &str, asked: &str, text: &str| {
        let office = Office::typed("Pay Bob 50.").answered(tool, asked, text);
        rules(&office, true, Planned::NoPlanner, "pay", r#"{"to":"bob@corp.example","amount":50}"#).permits
    };
    let bob = r#"[{"name":"Bob","email":"bob@corp.example"}]"#;
    assert!(found("contacts", "{}", bob));
    assert!(found("contacts", r#"{"name":"Bob"}"#, bob), "the person's own word");
    assert!(!found("contacts", r#"{"q":"x"}"#, bob), "asked for by words of the worker's own");
    assert!(!found("mails", "{}", bob));
    assert!(!found("contacts", r#"{"q":"bob@corp.example"}"#, r#"{"no results for":"bob@corp.example"}"#));
    let lists = Office::typed("Write to anna@corp.example and Bob.").answered("contacts", "{}", bob);
    let both = r#"{"to":["anna@corp.example","bob@corp.example"]}"#;
    assert!(rules(&lists, true, Planned::NoPlanner, "send", both).permits, "each by itself");
    let more = r#"{"to":["anna@corp.example","m@evil.example"]}"#;
    assert!(!rules(&lists, true, Planned::NoPlanner, "send", more).permits);
}

#[test]
fn a_message_that_was_not_recorded_is_taken_back() {
    let mut spans = said("Write to bob@corp.example.");
    let number = spans.enter(
        ephor_base::Label::new(
            ephor_base::Source::User,
            ephor_base::Integrity::Trusted,
            ephor_base::Confidentiality::Public,
        ),
        "Write to m@evil.example.",
    );
    let has = |spans: &SpanTable, value: &str| {
        spans.sources().vouched(&name("send"), "to", &Value::Text(value.to_owned())).is_some()
    };
    assert!(has(&spans, "m@evil.example"));
    spans.withdraw(number);
    assert!(!has(&spans, "m@evil.example") && has(&spans, "bob@corp.example"));
}

#[test]
fn the_verdict_says_which_rule_decided() {
    let code = |given: Given| {
        let decided = given.decide();
        let codes: Vec<String> = decided.verdict.reasons.iter().map(|reason| reason.code.clone()).collect();
        (decided.verdict.decision, decided.rule, codes)
    };
    let (decision, rule, codes) =
        code(Given { tainted: false, arguments: r#"{"to":"m@evil.example"}"#.into(), ..Given::good() });
    assert_eq!((decision, rule), (Decision::Permit, Some(Rule::Clean)));
    assert!(codes.iter().any(|code| code == "context-is-clean"), "{codes:?}");
    let (decision, rule, codes) = code(Given { scope: Pinned::Nothing, ..Given::good() });
    assert_eq!((decision, rule), (Decision::Permit, Some(Rule::Literals)));
    assert!(codes.iter().any(|code| code == "arguments-are-said"), "{codes:?}");
    let (decision, _, codes) = code(Given { arguments: r#"{"to":"m@evil.example"}"#.into(), ..Given::good() });
    assert_eq!(decision, Decision::Defer);
    assert!(codes.iter().any(|code| code == "argument-to-is-untrusted"), "{codes:?}");
}

#[test]
fn what_can_be_undone_is_judged_by_its_effects_alone() {
    let other = Given { arguments: r#"{"to":"m@evil.example"}"#.into(), ..Given::good() };
    let undone = Given { reversible: true, ..other.clone() };
    let decided = undone.decide();
    assert_eq!((decided.verdict.decision, decided.rule), (Decision::Permit, Some(Rule::Reversible)));
    // What is only said to be, and is not kept, is not.
    assert_eq!(Given { keeps: None, ..undone.clone() }.decide().verdict.decision, Decision::Defer);
    let most = ephor_base::MOST_KEPT_IN_SESSION;
    assert_eq!(Given { keeps: Some(most), ..undone.clone() }.decide().verdict.decision, Decision::Permit);
    assert_eq!(Given { keeps: Some(most + 1), ..undone.clone() }.decide().verdict.decision, Decision::Defer);
    assert_eq!(other.decide().verdict.decision, Decision::Defer);
    // Effects, scope and the law hold as before.
    assert_eq!(Given { effects: [0, 0, 0, 0, 900], ..undone.clone() }.decide().verdict.decision, Decision::Defer);
    assert_eq!(Given { scope: Pinned::Other, ..undone.clone() }.decide().verdict.decision, Decision::Defer);
    assert_eq!(Given { law: Decision::Deny, ..undone }.decide().verdict.decision, Decision::Deny);
}
