//! A ruling is reused only where it was meant, and answers no more than was asked.

use ephor_base::{Arguments, Confidentiality, Decision, Digest, EffectVector, OperatorId, Seat, Seq, Timestamp};
use ephor_governance::{Decided, Environment, Evidence, Precedent, Ruled};
use proptest::{prelude::*, test_runner::TestRunner};

use crate::{
    gate::{given, worse},
    world::{Given, Known, LEVELS, law, tool},
};

fn seat() -> Seat {
    Seat::root("node").child("agents")
}

fn ruling(number: u64, decision: Decision) -> Precedent {
    let pattern = Arguments::parse(r#"{"to":"a@b.example"}"#).unwrap();
    Precedent {
        ruling: Seq(number),
        by: OperatorId([1; 16]),
        seat: seat(),
        tool: "t.tool".parse().unwrap(),
        registration: tool().digest(),
        workspace: "/home/a".into(),
        arguments: pattern.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        free: ["body".to_owned()].into(),
        reasons: ["argument-to-is-untrusted".to_owned()].into(),
        effects: EffectVector::MAX,
        decision,
        policy: Digest::of(b"law"),
        until: Timestamp(100),
    }
}

#[test]
fn it_speaks_of_its_seat_time_tool_and_arguments_and_of_nothing_else() {
    let arguments = |text: &str| Arguments::parse(text).unwrap();
    let good = arguments(r#"{"to":"a@b.example"}"#);
    let precedent = ruling(1, Decision::Permit);
    let (name, registration) = (precedent.tool.clone(), precedent.registration);
    assert!(precedent.is_for(&seat(), Timestamp(99)) && precedent.is_for(&seat().child("a"), Timestamp(0)));
    assert!(!precedent.is_for(&seat(), Timestamp(100)), "it has ended");
    for other in [Seat::root("node"), Seat::root("node").child("agentsx"), Seat::root("agents")] {
        assert!(!precedent.is_for(&other, Timestamp(1)), "{other}");
    }
    assert!(precedent.speaks_of(&name, registration, "/home/a", &good));
    assert!(precedent.speaks_of(&name, registration, "/home/a", &arguments(r#"{"to":"a@b.example","body":"x"}"#)));
    assert!(!precedent.speaks_of(&"t.other".parse().unwrap(), registration, "/home/a", &good));
    assert!(!precedent.speaks_of(&name, Digest::of(b"another"), "/home/a", &good), "another registration");
    assert!(!precedent.speaks_of(&name, registration, "/home/b", &good), "another folder");
    for bad in [
        "{}",
        r#"{"to":"A@b.example"}"#,
        r#"{"to":"a@b.example","cc":"x"}"#,
        r#"{"to":["a@b.example"]}"#,
        r#"{"to":"a@b.example "}"#,
        r#"{"to":null}"#,
    ] {
        assert!(!precedent.speaks_of(&name, registration, "/home/a", &arguments(bad)), "{bad}");
    }
}

#[test]
fn a_refusal_comes_first_and_then_the_oldest() {
    let all = [ruling(2, Decision::Permit), ruling(3, Decision::Deny), ruling(1, Decision::Permit)];
    let first = |all: &[Precedent]| Precedent::first(all.iter()).map(|one| one.ruling);
    assert_eq!(first(&all), Some(Seq(3)));
    assert_eq!(first(&[all[0].clone(), all[2].clone()]), Some(Seq(1)));
    assert_eq!(first(&[]), None);
}

/// What was asked, as it is answered for good.
fn answered(given: &Given, asked: &Decided, decision: Decision) -> Precedent {
    let deferred = asked.verdict.reasons.iter().filter(|reason| reason.decision == Decision::Defer);
    let arguments = Arguments::parse(&given.arguments).unwrap_or_default();
    Precedent {
        arguments: arguments.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect(),
        free: Default::default(),
        reasons: deferred.map(|reason| reason.code.clone()).collect(),
        effects: asked.verdict.effects,
        policy: asked.verdict.policy,
        registration: given.tool().registration().digest(),
        ..ruling(1, decision)
    }
}

fn with(given: &Given, precedent: &Precedent) -> Decided {
    Given { precedent: Some(precedent.clone()), ..given.clone() }.decide()
}

#[test]
fn it_answers_the_same_question_and_no_other() {
    let asked = Given { arguments: r#"{"to":"evil.txt"}"#.into(), ..Given::good() };
    let question = asked.decide();
    assert_eq!(question.verdict.decision, Decision::Defer);
    let yes = answered(&asked, &question, Decision::Permit);
    let again = with(&asked, &yes).verdict;
    assert_eq!(again.decision, Decision::Permit);
    assert!(again.reasons.iter().any(|reason| reason.code == "precedent-permits"));
    assert_eq!(with(&asked, &answered(&asked, &question, Decision::Deny)).verdict.decision, Decision::Deny);
    // What nobody has to be asked about is not refused by it either.
    assert_eq!(with(&Given::good(), &answered(&asked, &question, Decision::Deny)).verdict.decision, Decision::Permit);
    // More of anything, and it is asked.
    for (name, more) in [
        (
            "another reason",
            Given { context: Confidentiality::Confidential, clearance: Confidentiality::Internal, ..asked.clone() },
        ),
        ("another effect", Given { effects: [0, 0, 900, 0, 0], ..asked.clone() }),
        ("another value", Given { arguments: r#"{"to":"other.txt"}"#.into(), ..asked.clone() }),
        ("one more argument", Given { arguments: r#"{"to":"evil.txt","body":"x"}"#.into(), ..asked.clone() }),
        ("another folder", Given { workspace: "/home/b", ..asked.clone() }),
        ("another law", Given { environment: Environment::Production, ..asked.clone() }),
    ] {
        assert_ne!(with(&more, &yes).verdict.decision, Decision::Permit, "{name}");
    }
    // An effect that was not shown, of a call that is the same otherwise.
    let less = Precedent { effects: EffectVector::NONE, ..yes.clone() };
    let tainted = Given { familiar: false, ..asked.clone() };
    assert_ne!(tainted.decide().verdict.effects, EffectVector::NONE);
    assert_eq!(with(&tainted, &less).verdict.decision, Decision::Defer);
    // An argument that was left free, and that nobody trusts.
    let free = Precedent { arguments: Default::default(), free: ["to".to_owned()].into(), ..yes };
    assert_eq!(with(&asked, &free).verdict.decision, Decision::Defer);
}

#[test]
fn it_overrides_no_denial_and_is_never_the_word_of_several() {
    let asked = Given { arguments: r#"{"to":"evil.txt"}"#.into(), ..Given::good() };
    let question = asked.decide();
    let yes = answered(&asked, &question, Decision::Permit);
    for (name, denied) in [
        ("the law", Given { law: Decision::Deny, ..asked.clone() }),
        ("the operator", Given { never: true, ..asked.clone() }),
        ("rights", Given { entitled: false, ..asked.clone() }),
        ("sense", Given { known: Known::Unfit, ..asked.clone() }),
        ("the budget", Given { spent: true, ..asked.clone() }),
        ("conduct", Given { bad_calls: 400, ..asked.clone() }),
        ("an operator's suspension", Given { suspended: true, ..asked.clone() }),
        ("a refusal", Given { ruled: Some(Ruled::Refuse), ..asked.clone() }),
        ("time", Given { ruled: Some(Ruled::Expired), ..asked.clone() }),
    ] {
        // Also where it was given under that very law.
        let policy = denied.decide().verdict.policy;
        let decided = with(&denied, &Precedent { policy, ..yes.clone() }).verdict;
        assert_eq!(decided.decision, Decision::Deny, "{name}");
    }
    assert!((0..400).fold(Evidence::default(), |sum, _| sum.after(true)).alarms());
    let two = format!(
        "{} @id(\"two\") @decision(\"defer\") @quorum(\"2\") forbid (principal, action, resource);",
        law(Decision::Permit)
    );
    let several = asked.decide_under(&two);
    assert_eq!(several.verdict.decision, Decision::Defer);
    let one = Given { precedent: Some(answered(&asked, &several, Decision::Permit)), ..asked.clone() };
    assert_eq!(one.decide_under(&two).verdict.decision, Decision::Defer);
    let no = Given { precedent: Some(answered(&asked, &several, Decision::Deny)), ..asked };
    assert_eq!(no.decide_under(&two).verdict.decision, Decision::Deny, "one refusal is enough");
}

#[test]
fn whatever_the_case_it_turns_a_question_alone_into_a_permission() {
    let strategy = (given(), 0..5usize, 0..1001u16, prop::sample::select(LEVELS.to_vec()), 0..14u32);
    let mut runner = TestRunner::new(ProptestConfig { cases: 300, ..ProptestConfig::default() });
    let run = runner.run(&strategy, |(given, at, more, level, bad)| {
        let given = Given { ruled: None, ..given };
        let plain = given.decide();
        let yes = answered(&given, &plain, Decision::Permit);
        let expected = if plain.verdict.decision == Decision::Deny { Decision::Deny } else { Decision::Permit };
        prop_assert_eq!(with(&given, &yes).verdict.decision, expected);
        for worse in worse(&given, at, more, level, bad) {
            let (before, after) = (worse.decide(), with(&worse, &yes).verdict);
            if after.decision == Decision::Permit && before.verdict.decision != Decision::Permit {
                prop_assert_eq!(before.verdict.decision, Decision::Defer);
                prop_assert!(yes.was_shown(&before.verdict.reasons, &before.verdict.effects));
                prop_assert_eq!(before.verdict.policy, yes.policy);
            }
        }
        Ok(())
    });
    run.unwrap();
}
