//! The constitution: read strictly, cut without a change of meaning.

use ephor_base::{Capability, Decision};
use ephor_governance::{BadConstitution, Constitution, Environment, Ruled};

use crate::world::{Given, RULINGS, law};

#[test]
fn the_default_constitutions_are_read_and_are_short() {
    for environment in Environment::ALL {
        let text = Constitution::default_text(environment);
        let constitution = Constitution::parse(text).unwrap();
        assert!(text.lines().count() <= 60, "{environment:?} takes more than a minute to read");
        assert!(constitution.articles().count() >= 8);
        for capability in Capability::ALL {
            let meant = text.contains(&format!("\"{}\"", capability.name()));
            assert!(meant || matches!(capability, Capability::Model | Capability::Reply), "{}", capability.name());
        }
    }
}

#[test]
fn what_does_not_fit_is_not_read() {
    let everything = "(principal, action, resource)";
    let syntax = Constitution::parse("permit (principal").unwrap_err();
    assert!(matches!(syntax, BadConstitution::Syntax(_)), "{syntax}");
    for nameless in [
        format!("permit {everything};"),
        format!("@id(\"\") permit {everything};"),
        format!("@id(\"Not A Name\") permit {everything};"),
        format!("@id(\"a\") permit {everything}; @id(\"a\") forbid {everything};"),
        "@id(\"a\") permit (principal == ?principal, action, resource);".to_owned(),
    ] {
        let error = Constitution::parse(&nameless).unwrap_err();
        assert!(matches!(error, BadConstitution::Name(_)), "{nameless}: {error}");
    }
    for unclear in [
        format!("@id(\"a\") @decision(\"defer\") permit {everything};"),
        format!("@id(\"a\") @decision(\"maybe\") forbid {everything};"),
    ] {
        assert!(matches!(Constitution::parse(&unclear), Err(BadConstitution::Decision(_))), "{unclear}");
    }
    for number in ["", "0", "-1", "two", "02", "17", "1.5", "99999999999"] {
        let quorum = format!("@id(\"a\") @decision(\"defer\") @quorum(\"{number}\") forbid {everything};");
        assert!(matches!(Constitution::parse(&quorum), Err(BadConstitution::Quorum(_))), "{quorum}");
    }
    let alone = format!("@id(\"a\") @quorum(\"2\") forbid {everything};");
    assert!(matches!(Constitution::parse(&alone), Err(BadConstitution::Quorum(_))), "{alone}");
    for foreign in [
        format!("@id(\"a\") permit {everything} when {{ context.weather == 1 }};"),
        format!("@id(\"a\") permit {everything} when {{ context.risk == \"high\" }};"),
        "@id(\"a\") permit (principal, action == Action::\"fly\", resource);".to_owned(),
        "@id(\"a\") permit (principal in Planet::\"x\", action, resource);".to_owned(),
    ] {
        assert!(matches!(Constitution::parse(&foreign), Err(BadConstitution::Schema(_))), "{foreign}");
    }
}

#[test]
fn what_a_quorum_defers_takes_as_many_different_people() {
    let everything = "(principal, action, resource)";
    let asks = |name: &str, more: &str| format!("@id(\"{name}\") @decision(\"defer\") {more} forbid {everything};");
    let (two, three) = (asks("two", "@quorum(\"2\")"), asks("three", "@quorum(\"3\")"));
    for (more, needed) in [
        (asks("one", ""), 1),
        (asks("one", "@quorum(\"1\")"), 1),
        (two.clone(), 2),
        (format!("{two} {three}"), 3),
        (format!("{} {two}", asks("one", "")), 2),
    ] {
        for approvers in 0..=4 {
            for ruled in RULINGS {
                let given = Given { ruled, approvers, ..Given::good() };
                let verdict = given.decide_under(&format!("{} {more}", law(Decision::Permit))).verdict;
                let wanted = match ruled {
                    None => Decision::Defer,
                    Some(Ruled::Permit) if approvers >= needed => Decision::Permit,
                    Some(_) => Decision::Deny,
                };
                assert_eq!(verdict.decision, wanted, "{more} {approvers} {ruled:?}: {verdict:?}");
            }
        }
    }
}

#[test]
fn each_scope_finds_whom_it_means_and_nobody_else() {
    let base = law(Decision::Permit);
    let decide = |more: &str| Given::good().decide_under(&format!("{base} {more}")).verdict.decision;
    for mine in [
        r#"principal == Seat::"node/a", action, resource"#,
        r#"principal in Role::"agent", action, resource"#,
        r#"principal in Namespace::"default", action, resource"#,
        r#"principal is Seat, action, resource"#,
        r#"principal is Seat in Role::"agent", action, resource"#,
        r#"principal, action == Action::"run", resource"#,
        r#"principal, action in [Action::"ask", Action::"run"], resource"#,
        r#"principal, action, resource == Tool::"t.tool""#,
        r#"principal, action, resource in Capability::"outside.act""#,
        r#"principal, action, resource is Tool"#,
    ] {
        assert_eq!(decide(&format!("@id(\"x\") forbid ({mine});")), Decision::Deny, "{mine}");
        let asks = format!("@id(\"x\") @decision(\"defer\") forbid ({mine});");
        assert_eq!(decide(&asks), Decision::Defer, "{mine}");
    }
    for others in [
        r#"principal == Seat::"node/b", action, resource"#,
        r#"principal in Role::"clerk", action, resource"#,
        r#"principal, action == Action::"ask", resource"#,
        r#"principal, action, resource == Tool::"t.other""#,
        r#"principal, action, resource in Capability::"fs.read""#,
        r#"principal, action, resource is Model"#,
    ] {
        assert_eq!(decide(&format!("@id(\"x\") forbid ({others});")), Decision::Permit, "{others}");
    }
}

#[test]
fn a_policy_that_cannot_be_evaluated_denies() {
    let overflow = "@id(\"x\") forbid (principal, action, resource) when { context.risk + 9223372036854775807 > 0 };";
    let given = Given { effects: [5, 0, 0, 0, 0], ..Given::good() };
    let verdict = given.decide_under(&format!("{} {overflow}", law(Decision::Permit))).verdict;
    assert_eq!(verdict.decision, Decision::Deny, "{verdict:?}");
    assert!(verdict.reasons.iter().any(|reason| reason.code == "law-cannot-be-applied"), "{verdict:?}");
}

#[test]
fn the_digest_of_the_constitution_stands_in_every_decision() {
    let one = Given::good().decide_under(&law(Decision::Permit)).verdict;
    let other = Given::good().decide_under(&format!("{} ", law(Decision::Permit))).verdict;
    assert_eq!((one.decision, other.decision), (Decision::Permit, Decision::Permit));
    assert_ne!(one.policy, other.policy);
}
