//! What the gate decides, over everything it may be asked.
#![expect(clippy::unwrap_used, reason = "a test may stop at the first surprise")]

use ephor_base::{
    Arguments, Capability, Confidentiality, Decision, Digest, EffectVector, Exhausted, Integrity, Limits, Registration,
    Resource, Verdict,
};
use ephor_governance::{
    Ask, Case, Constitution, Evidence, Gate, OperatorPolicy, Registry, Rights, Ruled, SchemaFault, ToolAsk,
    constitution::Article, provenance,
};
use proptest::prelude::*;

const CAPABILITIES: [Capability; 4] = [Capability::Model, Capability::Reply, Capability::FsRead, Capability::FsWrite];
const DECISIONS: [Decision; 3] = [Decision::Permit, Decision::Defer, Decision::Deny];
const LEVELS: [Confidentiality; 3] =
    [Confidentiality::Public, Confidentiality::Internal, Confidentiality::Confidential];
const RULINGS: [Option<Ruled>; 6] = [
    None,
    Some(Ruled::Permit),
    Some(Ruled::Refuse),
    Some(Ruled::Expired),
    Some(Ruled::NobodyToAsk),
    Some(Ruled::Withdrawn),
];
const SPENT: Exhausted = Exhausted { resource: Resource::Tokens, needed: 1, left: 0 };

fn tool(capability: Capability, effects: EffectVector) -> Registration {
    Registration {
        name: "t.tool".parse().unwrap(),
        description: String::new(),
        schema: r#"{"type":"object","properties":{"path":{},"to":{}}}"#.into(),
        code: Digest::of(b"code"),
        capability,
        effects,
        paths: vec!["path".into()],
        consequential: vec!["to".into()],
        integrity: Integrity::Untrusted,
        confidentiality: Confidentiality::Internal,
        limits: Limits { fuel: 1, deadline_ms: 1, memory_bytes: 1, output_bytes: 1 },
        nested: Vec::new(),
    }
}

fn law(decision: Decision, clearance: Confidentiality) -> Constitution {
    let article = |capability| Article { capability, decision, code: "the-article".into(), clearance };
    Constitution { articles: CAPABILITIES.map(article).to_vec(), ..Constitution::default() }
}

fn gate(law: Constitution, never: bool) -> Gate {
    let never = if never { vec!["t.tool".parse().unwrap()] } else { Vec::new() };
    Gate::new(law, OperatorPolicy { never, ..OperatorPolicy::default() }, Registry::default())
}

/// One case in full.
#[derive(Clone, Debug)]
struct Given {
    law: Decision,
    clearance: Confidentiality,
    never: bool,
    entitled: bool,
    fits: bool,
    arguments: String,
    effects: [u16; 5],
    context: Confidentiality,
    spent: bool,
    bad_calls: u32,
    ruled: Option<Ruled>,
}

impl Given {
    fn decide(&self) -> Verdict {
        let [risk, fairness, privacy, novelty, security] = self.effects;
        let registration = tool(Capability::FsWrite, EffectVector::new(risk, fairness, privacy, novelty, security));
        let arguments = Arguments::parse(&self.arguments).unwrap();
        let rights = if self.entitled { Rights::of(CAPABILITIES) } else { Rights::default() };
        let fault = SchemaFault { at: "/".into(), message: "bad".into() };
        let fit = if self.fits { Ok(()) } else { Err(&fault) };
        let known = ToolAsk::Known {
            registration: &registration,
            arguments: &arguments,
            fit,
            trusted: &["write to notes.txt"],
        };
        gate(law(self.law, self.clearance), self.never).decide(&Case {
            ask: Ask::Tool(known),
            rights: &rights,
            context: self.context,
            budget: if self.spent { Err(SPENT) } else { Ok(()) },
            evidence: (0..self.bad_calls).fold(Evidence::default(), |sum, _| sum.after(true)),
            ruled: self.ruled,
        })
    }
}

#[test]
fn the_strictest_branch_wins_and_a_ruling_answers_only_a_question() {
    let mut cases = 0;
    for law in DECISIONS {
        for effects in [[0; 5], [0, 900, 0, 0, 0]] {
            for (to, doubtful) in [("notes.txt", false), ("other.txt", true)] {
                for bits in 0..32u8 {
                    for ruled in RULINGS {
                        let on = |bit: u8| bits & (1 << bit) != 0;
                        let given = Given {
                            law,
                            clearance: Confidentiality::Internal,
                            never: on(0),
                            entitled: !on(1),
                            fits: !on(2),
                            arguments: format!("{{\"to\":\"{to}\"}}"),
                            effects,
                            context: Confidentiality::Internal,
                            spent: on(3),
                            bad_calls: if on(4) { 10 } else { 1 },
                            ruled,
                        };
                        let denied =
                            bits != 0 || law == Decision::Deny || ruled.is_some_and(|ruled| ruled != Ruled::Permit);
                        let deferred = law == Decision::Defer || doubtful || effects != [0; 5];
                        let wanted = match (denied, deferred) {
                            (true, _) => Decision::Deny,
                            (false, true) if ruled.is_none() => Decision::Defer,
                            (false, _) => Decision::Permit,
                        };
                        let verdict = given.decide();
                        assert_eq!(verdict.decision, wanted, "{given:?} {verdict:?}");
                        assert_eq!(verdict, given.decide(), "the same case has the same verdict");
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, 3 * 2 * 2 * 32 * RULINGS.len());
}

#[test]
fn a_sink_takes_nothing_above_its_clearance_and_what_no_article_speaks_of_is_denied() {
    for ask in [Ask::Model, Ask::Reply] {
        for clearance in LEVELS {
            for context in LEVELS {
                for ruled in RULINGS {
                    let case = Case {
                        ask,
                        rights: &Rights::of(CAPABILITIES),
                        context,
                        budget: Ok(()),
                        evidence: Evidence::default(),
                        ruled,
                    };
                    let denied = context > clearance || ruled.is_some_and(|ruled| ruled != Ruled::Permit);
                    let verdict = gate(law(Decision::Permit, clearance), false).decide(&case);
                    assert_eq!(verdict.decision == Decision::Deny, denied, "{verdict:?}");
                    let lawless = Constitution { articles: Vec::new(), sensitive: Vec::new() };
                    assert_eq!(gate(lawless, false).decide(&case).decision, Decision::Deny);
                    // Of two articles, the lower clearance counts, in whichever order they stand.
                    let mut both = law(Decision::Permit, clearance);
                    both.articles.splice(0..0, law(Decision::Permit, Confidentiality::Public).articles);
                    let strict = gate(both.clone(), false).decide(&case).decision;
                    both.articles.reverse();
                    assert_eq!(gate(both, false).decide(&case).decision, strict);
                    assert_eq!(strict == Decision::Permit, context == Confidentiality::Public && !denied);
                }
            }
        }
    }
}

#[test]
fn a_path_that_strays_or_cannot_be_looked_at_is_denied() {
    let given = |path: &str| Given {
        law: Decision::Permit,
        clearance: Confidentiality::Confidential,
        never: false,
        entitled: true,
        fits: true,
        arguments: format!("{{\"path\":{path}}}"),
        effects: [0; 5],
        context: Confidentiality::Public,
        spent: false,
        bad_calls: 0,
        ruled: Some(Ruled::Permit),
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
        assert_eq!(given(bad).decide().decision, Decision::Deny, "{bad}");
    }
    for good in [r#""""#, r#"".""#, r#""a/../b""#, "null"] {
        assert_eq!(given(good).decide().decision, Decision::Permit, "{good}");
    }
}

#[test]
fn a_sensitive_path_is_known_however_it_is_spelled() {
    let law = Constitution::default();
    for path in [
        ".git",
        "a/.git/config",
        "a\\.GIT\\config",
        ".Git.",
        ".git /x",
        ".g\u{200c}it/config",
        ".\u{17f}sh/id",
        "x/ID_RSA",
        "a.PEM",
        "key.pem.",
    ] {
        assert_eq!(law.effects_of_path(path).privacy.value(), 700, "{path:?}");
    }
    for path in ["git", ".github/x", "a.git/x", "pem", "id_rsa.pub"] {
        assert_eq!(law.effects_of_path(path), EffectVector::NONE, "{path:?}");
    }
}

#[test]
fn only_a_whole_token_of_a_trusted_text_is_trusted() {
    let doubtful = |value: &str, span: &str| {
        let arguments = Arguments::parse(&format!("{{\"to\":{value}}}")).unwrap();
        !provenance::untrusted(&arguments, &["to".to_owned()], &[span]).is_empty()
    };
    for span in [
        "write notes.txt",
        "notes.txt: write it",
        "write \"notes.txt\".",
        "(notes.txt)",
        "is it NOTES.TXT?",
        "'notes.txt'",
        "notes.txt, please",
        "not xnotes.txt but notes.txt",
    ] {
        assert!(!doubtful(r#""notes.txt""#, span), "{span}");
    }
    for span in [
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
        "",
        "#notes.txt",
    ] {
        assert!(doubtful(r#""notes.txt""#, span), "{span}");
    }
    for value in ["true", "7", "[\"notes.txt\"]", r#""""#, r#""a""#] {
        assert!(doubtful(value, "notes.txt true 7 a"), "{value}");
    }
    assert!(!doubtful("null", ""));
}

fn given() -> impl Strategy<Value = Given> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let arguments = prop::sample::select(vec!["{}", r#"{"to":"notes.txt"}"#, r#"{"to":"x"}"#, r#"{"path":".git/x"}"#]);
    let levels = (prop::sample::select(LEVELS.to_vec()), prop::sample::select(LEVELS.to_vec()));
    let rest = (prop::array::uniform5(0..1001u16), 0..12u32, prop::sample::select(RULINGS.to_vec()));
    (prop::sample::select(DECISIONS.to_vec()), flags, arguments, levels, rest).prop_map(
        |(law, (never, entitled, fits, spent), arguments, (clearance, context), (effects, bad_calls, ruled))| Given {
            law,
            clearance,
            never,
            entitled,
            fits,
            arguments: arguments.into(),
            effects,
            context,
            spent,
            bad_calls,
            ruled,
        },
    )
}

proptest! {
    #[test]
    fn nothing_that_makes_a_case_worse_makes_its_verdict_better(
        given in given(), at in 0..5usize, more in 0..1001u16, level in 0..3usize, bad in 0..12u32,
    ) {
        let before = given.decide().decision;
        let mut effects = given.effects;
        let component = effects.get_mut(at).expect("five components");
        *component = (*component).max(more);
        let context = given.context.max(*LEVELS.get(level).expect("three levels"));
        for worse in [
            Given { never: true, ..given.clone() },
            Given { entitled: false, ..given.clone() },
            Given { fits: false, ..given.clone() },
            Given { spent: true, ..given.clone() },
            Given { effects, ..given.clone() },
            Given { context, ..given.clone() },
            Given { bad_calls: given.bad_calls + bad, ..given.clone() },
            Given { law: given.law.max(Decision::Defer), ..given.clone() },
        ] {
            prop_assert!(worse.decide().decision >= before, "{worse:?}");
        }
    }
}
