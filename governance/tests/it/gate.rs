//! The branches together: the strictest wins, and nothing that makes a case worse makes its verdict better.

use ephor_base::{CallId, Capability, Confidentiality, Decision};
use ephor_governance::{
    Ask, Case, Constitution, Environment, Evidence, Gate, OperatorPolicy, Planned, Registry, Rights, Ruled, SpanTable,
    TurnState,
};
use proptest::prelude::*;

use crate::world::{DECISIONS, Given, Known, LEVELS, Pinned, RULINGS, law, said};

#[test]
fn the_strictest_branch_wins_and_a_ruling_answers_only_a_question() {
    let mut cases = 0;
    for law in DECISIONS {
        let gate = Given::good().gate(&crate::world::law(law));
        let spans = said("write to notes.txt");
        for effects in [[0; 5], [0, 900, 0, 0, 0]] {
            for (to, doubtful) in [("notes.txt", false), ("other.txt", true)] {
                for bits in 0..64_u8 {
                    for ruled in RULINGS {
                        for scope in [Pinned::Nothing, Pinned::This, Pinned::Other] {
                            let on = |bit: u8| bits & (1 << bit) != 0;
                            let given = Given {
                                law,
                                entitled: !on(0),
                                known: if on(1) { Known::Unfit } else { Known::Fits },
                                arguments: format!("{{\"to\":\"{to}\"}}"),
                                effects,
                                spent: on(2),
                                bad_calls: if on(3) { 12 } else { 1 },
                                suspended: on(4),
                                context: if on(5) { Confidentiality::Confidential } else { Confidentiality::Public },
                                scope,
                                ruled,
                                ..Given::good()
                            };
                            let denied = bits & 31 != 0
                                || law == Decision::Deny
                                || ruled.is_some_and(|ruled| ruled != Ruled::Permit);
                            let deferred =
                                law == Decision::Defer || doubtful || effects != [0; 5] || scope == Pinned::Other;
                            let wanted = match (denied, deferred) {
                                (true, _) => Decision::Deny,
                                (false, true) if ruled.is_none() => Decision::Defer,
                                (false, _) => Decision::Permit,
                            };
                            let verdict = given.decide_at(&gate, &spans).verdict;
                            assert_eq!(verdict.decision, wanted, "{given:?} {verdict:?}");
                            assert_eq!(
                                verdict,
                                given.decide_at(&gate, &spans).verdict,
                                "the same case, the same verdict"
                            );
                            cases += 1;
                        }
                    }
                }
            }
        }
    }
    assert_eq!(cases, 3 * 2 * 2 * 64 * RULINGS.len() * 3);
}

#[test]
fn a_tool_is_called_from_no_context_above_its_clearance() {
    for clearance in LEVELS {
        for context in LEVELS {
            let verdict = Given { clearance, context, ..Given::good() }.decide().verdict;
            assert_eq!(verdict.decision == Decision::Permit, context <= clearance, "{verdict:?}");
        }
    }
}

#[test]
fn a_model_sees_nothing_confidential_and_no_law_permits_nothing() {
    for environment in Environment::ALL {
        for (ask, highest) in [(Ask::Model, Confidentiality::Internal), (Ask::Reply, Confidentiality::Confidential)] {
            for context in LEVELS {
                for ruled in RULINGS {
                    let decide = |law: &str| {
                        let policy = OperatorPolicy { environment, ..OperatorPolicy::default() };
                        let gate = Gate::new(Constitution::parse(law).unwrap(), policy, Registry::default()).unwrap();
                        let who = gate.principal("node/a", "agent", "default").unwrap();
                        gate.decide(&Case {
                            ask,
                            who: &who,
                            rights: &Rights::of(Capability::ALL),
                            spans: &SpanTable::default(),
                            turn: &TurnState::default(),
                            call: CallId(0),
                            tainted: false,
                            kept: 0,
                            plan: Planned::NoPlanner,
                            familiar: false,
                            context,
                            budget: Ok(()),
                            evidence: Evidence::default(),
                            suspended: false,
                            approvers: 1,
                            precedent: None,
                            ruled,
                        })
                    };
                    let denied = context > highest || ruled.is_some_and(|ruled| ruled != Ruled::Permit);
                    let verdict = decide(Constitution::default_text(environment)).verdict;
                    assert_eq!(verdict.decision == Decision::Deny, denied, "{verdict:?}");
                    assert_eq!(decide("").verdict.decision, Decision::Deny);
                }
            }
        }
    }
}

#[test]
fn a_path_that_strays_or_cannot_be_looked_at_is_denied() {
    let decide = |path: &str| {
        let arguments = format!("{{\"path\":{path}}}");
        Given { arguments, ruled: Some(Ruled::Permit), ..Given::good() }.decide().verdict.decision
    };
    for bad in [
        r#""/etc/passwd""#,
        r#""../x""#,
        r#""a/../../x""#,
        r#""\\x""#,
        r#""C:x""#,
        r#""a\u0000""#,
        r#"["../x"]"#,
        r#"{"a":"/x"}"#,
        "7",
        "true",
    ] {
        assert_eq!(decide(bad), Decision::Deny, "{bad}");
    }
    for good in [r#""""#, r#"".""#, r#""a/../b""#, "null"] {
        assert_eq!(decide(good), Decision::Permit, "{good}");
    }
}

#[test]
fn without_scope_and_arguments_nothing_is_done_after_untrusted_content() {
    let bare = Given { arguments: "{}".into(), scope: Pinned::Nothing, ..Given::good() };
    assert_eq!(bare.decide().verdict.decision, Decision::Defer);
    assert_eq!(Given { tainted: false, ..bare.clone() }.decide().verdict.decision, Decision::Permit);
    assert_eq!(Given { scope: Pinned::This, ..bare }.decide().verdict.decision, Decision::Permit);
}

#[test]
fn no_hostile_value_is_permitted() {
    let long = format!("{{\"to\":\"{}\"}}", "a".repeat(200_000));
    let deep = format!("{{\"to\":{}1{}}}", "[".repeat(100), "]".repeat(100));
    let hostile = [
        r#"{"to":""}"#,
        r#"{"to":" "}"#,
        r#"{"to":"\u0000"}"#,
        r#"{"to":"\u202e"}"#,
        r#"{"to":"notes.txt\u200b"}"#,
        r#"{"to":"n\u043etes.txt"}"#,
        r#"{"to":"notes.txt\u0301"}"#,
        r#"{"to":["notes.txt","x@evil.example"]}"#,
        r#"{"to":{"notes.txt":"notes.txt"}}"#,
        r#"{"to":{"evil":"notes.txt"}}"#,
        r#"{"to":true}"#,
        r#"{"to":0}"#,
        r#"{"to":-9223372036854775808}"#,
        r#"{"to":18446744073709551615}"#,
        r#"{"to":1e308}"#,
        r#"{"to":-0.0}"#,
        r#"{"to":"notes.txt","cc":"x@evil.example"}"#,
        r#"{"to":"notes.txt, x@evil.example"}"#,
        r#"{"n":1e-320}"#,
        r#"{"to":"ｎotes.txt"}"#,
        r#"{"to":"notes.txt/../x"}"#,
        &long,
        &deep,
    ];
    for arguments in hostile {
        let given = Given { arguments: arguments.to_owned(), ..Given::good() };
        let verdict = given.decide().verdict;
        assert_ne!(verdict.decision, Decision::Permit, "{arguments:.80} {verdict:?}");
        for known in [Known::Unregistered, Known::Malformed, Known::Unfit] {
            let ruled = Some(Ruled::Permit);
            assert_eq!(Given { known, ruled, ..given.clone() }.decide().verdict.decision, Decision::Deny);
        }
    }
    assert_eq!(Given::good().decide().verdict.decision, Decision::Permit, "the twin is permitted");
}

pub(crate) fn given() -> impl Strategy<Value = Given> {
    let flags = prop::array::uniform8(any::<bool>());
    let arguments = vec!["{}", r#"{"to":"notes.txt"}"#, r#"{"to":"x"}"#, r#"{"path":".git/x"}"#, r#"{"n":7}"#];
    let levels = (prop::sample::select(LEVELS.to_vec()), prop::sample::select(LEVELS.to_vec()));
    let known =
        prop::sample::select(vec![Known::Fits, Known::Fits, Known::Unfit, Known::Malformed, Known::Unregistered]);
    let scope = prop::sample::select(vec![Pinned::This, Pinned::Nothing, Pinned::Other]);
    let environment = prop::sample::select(Environment::ALL.to_vec());
    let rest = (prop::array::uniform5(0..1001u16), 0..14u32, prop::sample::select(RULINGS.to_vec()));
    let first = (prop::sample::select(DECISIONS.to_vec()), flags, prop::sample::select(arguments), levels);
    (first, known, scope, environment, rest).prop_map(
        |(
            (
                law,
                [never, stranger, tainted, familiar, spent, suspended, reversible, kept],
                arguments,
                (clearance, context),
            ),
            known,
            scope,
            environment,
            (effects, bad_calls, ruled),
        )| Given {
            workspace: "/home/a",
            reversible,
            keeps: kept.then_some(7),
            who: Given::good().who,
            law,
            environment,
            never,
            entitled: !stranger,
            known,
            arguments: arguments.into(),
            effects,
            clearance,
            context,
            scope,
            tainted,
            familiar,
            spent,
            bad_calls,
            suspended,
            approvers: 1,
            precedent: None,
            ruled,
        },
    )
}

/// Every way to make a case worse.
pub(crate) fn worse(given: &Given, at: usize, more: u16, level: Confidentiality, bad: u32) -> Vec<Given> {
    let mut effects = given.effects;
    if let Some(component) = effects.get_mut(at) {
        *component = (*component).max(more);
    }
    vec![
        Given { never: true, ..given.clone() },
        Given { entitled: false, ..given.clone() },
        Given { known: if given.known == Known::Fits { Known::Unfit } else { given.known }, ..given.clone() },
        Given { spent: true, ..given.clone() },
        Given { suspended: true, ..given.clone() },
        Given { tainted: true, ..given.clone() },
        Given { reversible: false, ..given.clone() },
        Given { keeps: None, ..given.clone() },
        Given { familiar: false, ..given.clone() },
        Given { effects, ..given.clone() },
        Given { context: given.context.max(level), ..given.clone() },
        Given { clearance: given.clearance.min(level), ..given.clone() },
        Given { bad_calls: given.bad_calls + bad, ..given.clone() },
        Given { law: given.law.max(Decision::Defer), ..given.clone() },
        Given { scope: Pinned::Other, ..given.clone() },
    ]
}

/// How many cases the long run takes; each is held against all its worse ones.
const MANY: u32 = 80_000;

fn nothing_worse_is_better(cases: u32) {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let strategy = (given(), 0..5usize, 0..1001u16, prop::sample::select(LEVELS.to_vec()), 0..14u32);
    let run = runner.run(&strategy, |(given, at, more, level, bad)| {
        let before = given.decide().verdict.decision;
        for worse in worse(&given, at, more, level, bad) {
            prop_assert!(worse.decide().verdict.decision >= before, "{worse:?}");
        }
        let more_law = format!(
            "{} @id(\"more\") forbid (principal, action, resource) when {{ context.risk > {} }};",
            law(given.law),
            more / 100 * 100
        );
        prop_assert!(given.decide_under(&more_law).verdict.decision >= before);
        Ok(())
    });
    run.unwrap();
}

#[test]
fn nothing_that_makes_a_case_worse_makes_its_verdict_better() {
    nothing_worse_is_better(300);
}

/// A million comparisons.
#[test]
#[ignore = "minutes; `just monotone`"]
fn nothing_that_makes_a_case_worse_makes_its_verdict_better_a_million_times() {
    nothing_worse_is_better(MANY);
}
