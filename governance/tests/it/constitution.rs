//! The constitution: read strictly, cut without a change of meaning.

use std::collections::{BTreeSet, HashMap, HashSet};

use cedar_policy::{
    Authorizer, Context, Effect, Entities, Entity, Policy, PolicySet, Request, RestrictedExpression, Schema,
};
use ephor_base::{Branch, Capability, Decision, EffectVector};
use ephor_governance::{BadConstitution, Constitution, Environment, Ruled};
use proptest::{prelude::ProptestConfig, proptest, sample::subsequence};

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

/// A policy whose condition goes `times` deep, of every way to do that.
fn deep(times: usize) -> Vec<String> {
    let nested =
        |open: &str, within: &str, close: &str| format!("{}{within}{}", open.repeat(times), close.repeat(times));
    let conditions = [
        nested("(", "true", ")"),
        nested("!", "true", ""),
        nested("if true then ", "true", " else false"),
        nested("", "true", " && true"),
        nested("", "false", " || true"),
        nested("[", "1", "]") + " == [1]",
        nested("{a: ", "1", "}") + " == {a: 1}",
        nested("", "1", " + 1") + " == 2",
        nested("-", "1", "") + " == 1",
        nested("", "context", ".risk") + " == 2",
        nested("", "context", "[\"risk\"]") + " == 2",
        nested("", "[1]", ".contains(1)"),
        nested("(true && ", "true", ")"),
    ];
    conditions
        .map(|condition| format!("@id(\"a\") permit (principal, action, resource) when {{ {condition} }};"))
        .into()
}

#[test]
fn what_is_nested_a_thousand_times_is_refused_and_ends_nothing() {
    // The smallest stack that a thread of a node has is twice as large.
    let on_a_small_stack = |run: fn()| {
        std::thread::Builder::new().stack_size(1 << 20).spawn(run).unwrap().join().unwrap();
    };
    on_a_small_stack(|| {
        for times in [1_000, 100_000] {
            for text in deep(times).into_iter().filter(|text| !text.is_empty()) {
                let refused = Constitution::parse(&text).unwrap_err();
                let is_bounded = matches!(refused, BadConstitution::Bounds(_));
                assert!(is_bounded, "{}: {refused}", &text[..100]);
            }
        }
    });
    // As deep as may be: read, cut, asked and dropped on such a stack.
    on_a_small_stack(|| {
        for times in [30, 84, 120, 250] {
            for text in deep(times) {
                if let Ok(constitution) = Constitution::parse(&text) {
                    let said = Given::good().decide_under(&text).verdict;
                    assert!(!said.reasons.is_empty() && constitution.articles().count() == 1);
                }
            }
        }
    });
    let quoted =
        "@id(\"a\") permit (principal, action, resource) when { context.environment == \"((((\\\"((((\" }; // (((("
            .to_owned();
    let quoted = quoted.replace("((((", &"(".repeat(100));
    Constitution::parse(&quoted).unwrap();
    let long = Constitution::default_text(Environment::Dev).to_owned() + &" ".repeat(300_000);
    assert!(matches!(Constitution::parse(&long), Err(BadConstitution::Bounds(_))));
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
fn what_is_joined_for_one_is_not_taken_for_another() {
    let mut everybody = Vec::new();
    for seat in ["node/a", "node/b", "node/c"] {
        for role in ["agent", "clerk", "guest"] {
            everybody.extend(["default", "other", "third"].map(|namespace| [seat, role, namespace]));
        }
    }
    // The kind, its place in what somebody is, and the name.
    let some = [("Seat", 0, "node/a"), ("Seat", 0, "node/b"), ("Role", 1, "agent"), ("Role", 1, "clerk")];
    let some = some.into_iter().chain([("Namespace", 2, "default"), ("Namespace", 2, "other")]);
    let some: Vec<_> = some.collect();
    let asks = |(kind, at, name): &(&str, usize, &str)| {
        let limit = if *at == 1 { "" } else { "when { context.risk > 5 }" };
        let id = name.replace('/', "-");
        format!(
            "@id(\"x-{id}\") @decision(\"defer\") forbid (principal in {kind}::\"{name}\", action, resource) {limit};"
        )
    };
    let together = format!("{} {}", law(Decision::Permit), some.iter().map(asks).collect::<String>());
    let said = |who| {
        let given = Given { who, effects: [7, 0, 0, 0, 0], ..Given::good() };
        let reasons = given.decide_under(&together).verdict.reasons;
        let codes = reasons.into_iter().map(|reason| reason.code).filter(|code| code.starts_with("x-"));
        codes.collect::<BTreeSet<_>>()
    };
    let meant = |who: [&str; 3]| {
        let meant = some.iter().filter(|(_, at, name)| who.get(*at) == Some(name));
        meant.map(|(_, _, name)| format!("x-{}", name.replace('/', "-"))).collect::<BTreeSet<_>>()
    };
    for who in everybody.iter().chain(everybody.iter().rev()) {
        assert_eq!(said(*who), meant(*who), "{who:?}");
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

const SCOPES: [&str; 18] = [
    "principal, action, resource",
    r#"principal == Seat::"node/a", action, resource"#,
    r#"principal == Seat::"node/b", action, resource"#,
    r#"principal in Seat::"node/a", action, resource"#,
    r#"principal in Role::"agent", action, resource"#,
    r#"principal in Role::"clerk", action, resource"#,
    r#"principal in Namespace::"default", action == Action::"run", resource"#,
    r#"principal in Namespace::"other", action, resource"#,
    r#"principal is Seat, action, resource"#,
    r#"principal is Seat in Role::"agent", action, resource"#,
    r#"principal is Seat in Namespace::"other", action, resource"#,
    r#"principal, action in [Action::"ask", Action::"run"], resource"#,
    r#"principal, action == Action::"ask", resource"#,
    r#"principal, action, resource == Tool::"t.tool""#,
    r#"principal, action, resource == Tool::"t.other""#,
    r#"principal, action, resource in Capability::"outside.act""#,
    r#"principal, action, resource in Capability::"fs.read""#,
    r#"principal in Role::"agent", action == Action::"run", resource is Tool in Capability::"outside.act""#,
];
const CONDITIONS: [&str; 6] = [
    "",
    "when { context.risk > 5 }",
    "unless { context.tainted }",
    r#"when { principal in Role::"clerk" }"#,
    r#"when { context has privacy && context["privacy"] < 100 }"#,
    "when { context.security + 9223372036854775807 > 0 }",
];

/// Every policy of these parts, each with a name of its own.
fn articles() -> Vec<String> {
    let heads = ["permit", "forbid", "@decision(\"defer\") forbid"];
    let all = SCOPES.iter().flat_map(|scope| CONDITIONS.map(|condition| (*scope, condition)));
    let all = all.flat_map(|(scope, condition)| heads.map(|head| (head, scope, condition)));
    let policy = |(number, (head, scope, condition))| match head {
        "permit" | "forbid" => format!("@id(\"a-{number}\") {head} ({scope}) {condition};"),
        _ => format!("@id(\"a-{number}\") @decision(\"defer\") forbid ({scope}) {condition};"),
    };
    all.enumerate().map(policy).collect()
}

/// What Cedar by itself says of a case, one policy after another over the whole world.
fn by_cedar(law: &str, effects: &EffectVector) -> BTreeSet<(Decision, String)> {
    let uid = |text: &str| text.parse().unwrap();
    let seat = HashSet::from([uid("Role::\"agent\""), uid("Namespace::\"default\"")]);
    let tool = HashSet::from([uid("Capability::\"outside.act\"")]);
    let attributes = HashMap::from([
        ("consequential".to_owned(), RestrictedExpression::new_bool(true)),
        ("clearance".to_owned(), RestrictedExpression::new_long(2)),
    ]);
    let world = [
        Entity::new_no_attrs(uid("Seat::\"node/a\""), seat),
        Entity::new(uid("Tool::\"t.tool\""), attributes, tool).unwrap(),
    ];
    let (schema, _) = Schema::from_cedarschema_str(Constitution::schema_text()).unwrap();
    let world = schema.action_entities().unwrap().add_entities(world, None).unwrap();
    let world: &Entities = &world;
    let long = |name: &str, value: u16| (name.to_owned(), RestrictedExpression::new_long(value.into()));
    let known = |name: &str, value| (name.to_owned(), RestrictedExpression::new_bool(value));
    let context = effects.components().map(|(name, value)| long(name, value.value())).into_iter().chain([
        ("environment".to_owned(), RestrictedExpression::new_string("dev".to_owned())),
        long("confidentiality", 0),
        known("untrusted", false),
        known("tainted", true),
        known("pinned", true),
    ]);
    let context = Context::from_pairs(context).unwrap();
    let (who, what) = (uid("Seat::\"node/a\""), uid("Tool::\"t.tool\""));
    let request = Request::new(who, uid("Action::\"run\""), what, context, None).unwrap();
    let says = |policy: &Policy| {
        let alone = PolicySet::from_policies([policy.clone()]).unwrap();
        let answer = Authorizer::new().is_authorized(&request, &alone, world);
        if answer.diagnostics().errors().next().is_some() {
            return Some((Decision::Deny, "law-cannot-be-applied".to_owned()));
        }
        let decision = match (policy.effect(), policy.annotation("decision")) {
            (Effect::Permit, _) => Decision::Permit,
            (Effect::Forbid, None) => Decision::Deny,
            (Effect::Forbid, Some(_)) => Decision::Defer,
        };
        let name = policy.annotation("id").unwrap().to_owned();
        answer.diagnostics().reason().next().map(|_| (decision, name))
    };
    let law: PolicySet = law.parse().unwrap();
    let mut said: BTreeSet<(Decision, String)> = law.policies().filter_map(says).collect();
    if said.iter().all(|(decision, _)| *decision == Decision::Defer) {
        said.insert((Decision::Deny, "no-article-allows-it".to_owned()));
    }
    said
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_law_in_slices_says_what_cedar_says_of_the_whole(articles in subsequence(articles(), 0..24), risk in 0..12_u16) {
        let law = articles.join("\n");
        let given = Given { effects: [risk, 0, 0, 0, 0], ..Given::good() };
        let verdict = given.decide_under(&law).verdict;
        let legislative = verdict.reasons.iter().filter(|reason| reason.branch == Branch::Legislative);
        let said: BTreeSet<_> = legislative.map(|reason| (reason.decision, reason.code.clone())).collect();
        assert_eq!(said, by_cedar(&law, &verdict.effects), "{law}");
    }
}
