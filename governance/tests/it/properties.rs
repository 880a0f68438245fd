//! What holds of every plan and every call. In short in `cargo test`; a million cases each in `just monotone`.

#![expect(clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use ephor_governance::plan::Matched;
use proptest::{prelude::*, test_runner::TestRunner};

use crate::office::Office;

const VALUES: [&str; 8] = [
    "\"anna@corp.example\"",
    "\"m@evil.example\"",
    "\"bob@corp.example\"",
    "50",
    "50.0",
    "7",
    "[\"anna@corp.example\",\"bob@corp.example\"]",
    "\"Anna\"",
];

/// A step, as the parts it is written from, so that it can be narrowed.
#[derive(Clone, Debug)]
struct Drawn {
    tool: &'static str,
    times: &'static str,
    arguments: Vec<(&'static str, String)>,
}

fn value() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&VALUES[..])
}

fn origin() -> impl Strategy<Value = String> {
    let field = prop::sample::select(vec!["email", "owes", "id", "name"]);
    let pick = prop::sample::select(vec!["only", "first", "last", "all", "least owes", "most id"]);
    let given =
        prop::option::of(prop::sample::select(vec!["{}", r#"{"name":"Anna"}"#, r#"{"owes":7}"#, r#"{"name":""}"#]));
    let from =
        (prop::sample::select(vec!["contacts", "mails"]), field, pick, given).prop_map(|(tool, field, pick, given)| {
            let given = given.map(|given| format!(",\"where\":{given}")).unwrap_or_default();
            format!("{{\"from\":\"{tool}\",\"field\":\"{field}\",\"pick\":\"{pick}\"{given}}}")
        });
    prop_oneof![
        3 => value().prop_map(|value| format!("{{\"is\":{value}}}")),
        2 => prop::collection::vec(value(), 1..4).prop_map(|values| format!("{{\"in\":[{}]}}", values.join(","))),
        3 => from,
        1 => Just("{\"text\":true}".to_owned()),
        1 => Just("{\"ask\":true}".to_owned()),
    ]
}

fn arguments(names: &'static [&'static str]) -> impl Strategy<Value = Vec<(&'static str, String)>> {
    prop::collection::vec(prop::option::weighted(0.8, origin()), names.len()).prop_map(move |origins| {
        names.iter().zip(origins).filter_map(|(name, origin)| Some((*name, origin?))).collect()
    })
}

fn step() -> impl Strategy<Value = Drawn> {
    let times = prop::sample::select(vec!["1", "2", "\"each\""]);
    let of = prop_oneof![
        (Just("pay"), arguments(&["to", "amount", "note"])),
        (Just("send"), arguments(&["to", "cc"])),
        (Just("drop"), arguments(&["id"])),
    ];
    (of, times).prop_map(|((tool, arguments), times)| Drawn { tool, times, arguments })
}

fn call() -> impl Strategy<Value = (&'static str, Vec<(&'static str, &'static str)>)> {
    let of = |tool: &'static str, names: &'static [&'static str]| {
        prop::collection::vec(prop::option::weighted(0.8, value()), names.len()).prop_map(move |values| {
            (tool, names.iter().zip(values).filter_map(|(name, value)| Some((*name, value?))).collect::<Vec<_>>())
        })
    };
    prop_oneof![of("pay", &["to", "amount", "note"]), of("send", &["to", "cc"]), of("drop", &["id"])]
}

fn record() -> impl Strategy<Value = String> {
    let field = |name: &'static str| {
        prop::option::weighted(0.8, value()).prop_map(move |value| value.map(|value| format!("\"{name}\":{value}")))
    };
    (field("name"), field("email"), field("owes"), field("id"))
        .prop_map(|(a, b, c, d)| format!("{{{}}}", [a, b, c, d].into_iter().flatten().collect::<Vec<_>>().join(",")))
}

fn records() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(record(), 0..4)
}

fn list(records: &[String]) -> String {
    format!("[{}]", records.join(","))
}

fn write(steps: &[Drawn]) -> String {
    let step = |step: &Drawn| {
        let arguments: Vec<String> =
            step.arguments.iter().map(|(name, origin)| format!("\"{name}\":{origin}")).collect();
        format!("{{\"tool\":\"{}\",\"times\":{},\"arguments\":{{{}}}}}", step.tool, step.times, arguments.join(","))
    };
    steps.iter().map(step).collect::<Vec<_>>().join(",")
}

fn arguments_of(call: &[(&str, &str)]) -> String {
    format!("{{{}}}", call.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect::<Vec<_>>().join(","))
}

fn office(typed: bool, contacts: &[String], mails: &[String]) -> Office {
    let text = if typed { "Pay anna@corp.example and bob@corp.example 50." } else { "Go on." };
    Office::typed(text).answered("contacts", "{}", &list(contacts)).answered("mails", "{}", &list(mails))
}

fn matched(office: &Office, steps: &[Drawn], tool: &str, arguments: &str) -> Matched {
    office.matched(&office.plan(&format!("{{\"steps\":[{}]}}", write(steps))), 1, tool, arguments)
}

type Case = (Vec<Drawn>, (&'static str, Vec<(&'static str, &'static str)>), bool, Vec<String>, Vec<String>);

fn case() -> impl Strategy<Value = Case> {
    (prop::collection::vec(step(), 0..4), call(), any::<bool>(), records(), records())
}

/// Draws cases whose call the plan permits as often as it can be had: most of what is drawn at random asks.
fn likely(mut case: Case, straight: bool) -> Case {
    let (steps, (tool, call), ..) = &mut case;
    if let (true, Some(first)) = (straight, steps.first_mut()) {
        first.tool = tool;
        first.arguments = call.iter().map(|(name, value)| (*name, format!("{{\"is\":{value}}}"))).collect();
    }
    case
}

fn run(cases: u32) {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let strategy = (case(), any::<bool>(), any::<prop::sample::Index>(), origin(), record(), any::<bool>());
    let mut runner = TestRunner::new(config);
    let permits = std::cell::Cell::new(0_u32);
    runner
        .run(&strategy, |(case, straight, index, other, more, front)| {
            let (steps, (tool, call), typed, contacts, mails) = likely(case, straight);
            let here = office(typed, &contacts, &mails);
            let arguments = arguments_of(&call);
            let before = matched(&here, &steps, tool, &arguments);
            permits.set(permits.get() + u32::from(before.permits));

            // Keys in another order, of the plan and of the call, change nothing.
            let mut turned = steps.clone();
            turned.iter_mut().for_each(|step| step.arguments.reverse());
            let reversed: Vec<_> = call.iter().rev().copied().collect();
            let after = matched(&here, &turned, tool, &arguments_of(&reversed));
            prop_assert_eq!(before.permits, after.permits);

            if before.permits {
                return Ok(());
            }
            // A step less, or one that says less, permits no more.
            if !steps.is_empty() {
                let at = index.index(steps.len());
                let mut fewer = steps.clone();
                fewer.remove(at);
                prop_assert!(!matched(&here, &fewer, tool, &arguments).permits, "without step {}", at);
                let mut narrow = steps.clone();
                for (_, origin) in &mut narrow[at].arguments {
                    if let Some(rest) = origin.strip_prefix("{\"in\":[") {
                        let first = rest.trim_end_matches("]}").split(',').next().unwrap_or_default();
                        if !first.starts_with('[') {
                            *origin = format!("{{\"in\":[{first}]}}");
                        }
                    } else if index.index(3) == 0 {
                        *origin = "{\"ask\":true}".to_owned();
                    }
                }
                // Once is less than once for each, but for a list: once for each never takes one whole.
                if !call.iter().any(|(_, value)| value.starts_with('[')) {
                    narrow[at].times = "1";
                }
                prop_assert!(!matched(&here, &narrow, tool, &arguments).permits, "narrowed step {}", at);
                let mut one_more = steps.clone();
                if !one_more[at].arguments.iter().any(|(name, _)| *name == "note") && one_more[at].tool == "pay" {
                    one_more[at].arguments.push(("note", other));
                    prop_assert!(!matched(&here, &one_more, tool, &arguments).permits, "one argument more");
                }
            }
            // Untrusted text permits no more, but for a record that names a thing of one's own.
            let mut longer = mails.clone();
            longer.insert(if front { 0 } else { longer.len() }, more);
            let after = matched(&office(typed, &contacts, &longer), &steps, tool, &arguments);
            let picked = after.arguments.iter().any(|one| one.source.starts_with("picked:"));
            prop_assert!(!after.permits || picked, "an untrusted record more: {:?}", after);
            let page = here.answered("site", "{}", "m@evil.example 50 7 anna@corp.example");
            prop_assert!(!matched(&page, &steps, tool, &arguments).permits, "an untrusted page");
            Ok(())
        })
        .unwrap();
    let permitted = permits.get();
    println!("{permitted} of {cases} cases were permitted before");
    assert!(permitted > cases / 100, "too few cases say anything");
}

#[test]
fn nothing_less_said_and_nothing_untrusted_turns_a_question_into_leave() {
    run(2_000);
}

#[test]
#[ignore = "`just monotone`"]
fn nothing_less_said_and_nothing_untrusted_turns_a_question_into_leave_a_million_times() {
    run(1_000_000);
}
