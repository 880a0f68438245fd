//! How long a decision takes, how many there are in a second, and that none leaves anything behind.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at the first surprise")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    collections::HashSet,
    fmt::Write as _,
    hint::black_box,
    str::FromStr,
    time::{Duration, Instant},
};

use cedar_policy::{Authorizer, Context, Entities, Entity, EntityUid, PolicySet, Request, RestrictedExpression};
use ephor_base::{
    Arguments, CallId, Capability, Confidentiality, Digest, EffectVector, Flow, Format, Integrity, Label, Limits,
    Registration, Source,
};
use ephor_governance::{
    Ask, Case, Constitution, Evidence, Gate, OperatorPolicy, Plan, Planned, Principal, Registry, Rights, SpanTable,
    ToolAsk, TurnState, plan::Records,
};

/// Counts what this thread has allocated and not yet given back. Threads do not wait for each other's counts.
struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
}

fn count(more: i64) {
    // A thread that ends has nobody left who asks.
    let _gone = HELD.try_with(|held| held.set(held.get() + more));
}

// SAFETY: every call goes to the system's allocator unchanged; only a number is kept beside it.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the caller promises what the system's allocator wants.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(i64::try_from(layout.size()).unwrap_or(0));
        // SAFETY: the caller's promise is the one that the system's allocator wants.
        unsafe { System.alloc(layout) }
    }
    // SAFETY: the caller promises what the system's allocator wants.
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-i64::try_from(layout.size()).unwrap_or(0));
        // SAFETY: the caller's promise is the one that the system's allocator wants.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TOOLS: usize = 100;
/// Rules that concern other tools, seats and roles, beside those of the default constitution.
const RULES: usize = 1000;

fn tool(name: &str) -> Registration {
    Registration {
        name: name.parse().unwrap(),
        description: String::new(),
        schema: r#"{"type":"object","properties":{"to":{"type":"string"},"amount":{"type":"number"},"body":{"type":"string"}}}"#.into(),
        code: Digest::of(b"code"),
        capability: Capability::OutsideAct,
        effects: EffectVector::new(100, 0, 100, 0, 0),
        paths: Vec::new(),
        consequential: vec!["to".into(), "amount".into()],
        integrity: Integrity::Untrusted,
        confidentiality: Confidentiality::Internal,
        limits: Limits { fuel: 1, deadline_ms: 1, memory_bytes: 1, output_bytes: 1 },
        nested: Vec::new(),
        flow: Flow { clearance: Confidentiality::Internal, ..Flow::acts() },
        reach: ephor_base::Reach::default(),
    }
}

fn law() -> String {
    let mut law = Constitution::default_text(ephor_governance::Environment::Dev).to_owned();
    for number in 0..RULES {
        let scope = match number % 4 {
            0 => format!("principal, action == Action::\"run\", resource == Tool::\"t.{}\"", 1 + number % (TOOLS - 1)),
            1 => format!("principal == Seat::\"node/agents/{number}\", action, resource"),
            2 => format!("principal in Role::\"role-{number}\", action == Action::\"run\", resource"),
            _ => format!("principal in Namespace::\"space-{number}\", action, resource"),
        };
        writeln!(law, "@id(\"rule-{number}\") forbid ({scope}) when {{ context.risk > {} }};", number % 900).unwrap();
    }
    // Two that concern the call.
    law.push_str("@id(\"mine\") forbid (principal in Role::\"agent\", action == Action::\"run\", resource == Tool::\"t.0\") when { context.risk > 800 };");
    law.push_str("@id(\"mine-too\") @decision(\"defer\") forbid (principal, action == Action::\"run\", resource == Tool::\"t.0\") when { context.privacy > 800 };");
    law
}

fn gate() -> Gate {
    let registry = Registry::new((0..TOOLS).map(|number| tool(&format!("t.{number}")))).unwrap();
    Gate::new(Constitution::parse(&law()).unwrap(), OperatorPolicy::default(), registry).unwrap()
}

fn small() -> SpanTable {
    let mut spans = SpanTable::default();
    spans.begin_turn();
    let label = Label::new(Source::User, Integrity::Trusted, Confidentiality::Internal);
    spans.enter(label, "Pay CHF 412.60 to anna@corp.example and tell her so.");
    let page = Label::new(Source::Tool, Integrity::Untrusted, Confidentiality::Internal);
    spans.enter(page, &"Some page that says this and that, and mallory@evil.example too. ".repeat(20));
    spans
}

struct Bench {
    gate: Gate,
    who: Principal,
    spans: SpanTable,
    turn: TurnState,
    rights: Rights,
    arguments: Arguments,
}

impl Bench {
    fn new() -> Self {
        let gate = gate();
        let who = gate.principal("node/agents/a", "agent", "default").unwrap();
        let arguments =
            Arguments::parse(r#"{"to":"anna@corp.example","amount":412.6,"body":"Here you are."}"#).unwrap();
        Self { who, gate, spans: small(), turn: TurnState::default(), rights: Rights::of(Capability::ALL), arguments }
    }

    fn once(&self, plan: Planned<'_>) {
        let tool = self.gate.registry().tool(&"t.0".parse().unwrap()).unwrap();
        let decided = self.gate.decide(&Case {
            ask: Ask::Tool(ToolAsk::Known {
                tool,
                arguments: &self.arguments,
                reached: Some(&self.arguments),
                workspace: "/home/a/work",
                keeps: Some(0),
                fit: Ok(()),
            }),
            who: &self.who,
            rights: &self.rights,
            spans: &self.spans,
            turn: &self.turn,
            call: CallId(1),
            tainted: true,
            kept: 0,
            plan,
            familiar: true,
            context: Confidentiality::Internal,
            budget: Ok(()),
            evidence: Evidence::default(),
            suspended: false,
            approvers: 1,
            precedent: None,
            ruled: None,
        });
        assert_eq!(decided.verdict.decision, ephor_base::Decision::Permit, "{decided:?}");
        black_box(decided);
    }
}

fn quantiles(count: usize, mut once: impl FnMut()) -> (Duration, Duration) {
    (0..count / 10).for_each(|_| once());
    let mut times: Vec<Duration> = (0..count)
        .map(|_| {
            let start = Instant::now();
            once();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    (times[count / 2], times[count * 99 / 100])
}

/// Cedar by itself, over the policies of the slice.
fn plain() -> impl Fn() {
    let uid = |text: &str| EntityUid::from_str(text).unwrap();
    let slice = r#"
        @id("a") permit (principal, action == Action::"run", resource in Capability::"outside.act");
        @id("b") forbid (principal in Role::"agent", action == Action::"run", resource == Tool::"t.0") when { context.risk > 800 };
        @id("c") forbid (principal, action == Action::"run", resource == Tool::"t.0") when { context.privacy > 800 };"#;
    let policies = PolicySet::from_str(slice).unwrap();
    let (seat, role, tool, capability) =
        (uid("Seat::\"s\""), uid("Role::\"agent\""), uid("Tool::\"t.0\""), uid("Capability::\"outside.act\""));
    let entities = Entities::from_entities(
        [
            Entity::new_no_attrs(seat.clone(), HashSet::from([role.clone()])),
            Entity::with_uid(role),
            Entity::new_no_attrs(tool.clone(), HashSet::from([capability.clone()])),
            Entity::with_uid(capability),
        ],
        None,
    )
    .unwrap();
    let (authorizer, action) = (Authorizer::new(), uid("Action::\"run\""));
    move || {
        let pairs = [("risk", 100), ("privacy", 100)]
            .map(|(name, value)| (name.to_owned(), RestrictedExpression::new_long(value)));
        let context = Context::from_pairs(pairs).unwrap();
        let request = Request::new(seat.clone(), action.clone(), tool.clone(), context, None).unwrap();
        black_box(authorizer.is_authorized(&request, &policies, &entities));
    }
}

#[test]
#[ignore = "`just bench-governance`"]
fn a_decision_among_a_thousand_rules() {
    let bench = Bench::new();
    let cedar = quantiles(50_000, plain());
    let ours = quantiles(50_000, || bench.once(Planned::NoPlanner));
    println!("plain Cedar on the slice: p50 {:?}, p99 {:?}", cedar.0, cedar.1);
    println!("a decision, 1,000 rules:  p50 {:?}, p99 {:?} (wanted: 8 µs, 30 µs)", ours.0, ours.1);
    println!("over plain Cedar:         {:?} (wanted: 5 µs)", ours.0.saturating_sub(cedar.0));
    let (start, each) = (Instant::now(), 200_000);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..each).for_each(|_| bench.once(Planned::NoPlanner)));
        }
    });
    println!("two threads: {:.0} decisions/s (wanted: 150,000)", 2.0 * f64::from(each) / start.elapsed().as_secs_f64());
}

/// A plan of fifty steps of the tool, of which the last permits the call, with values of a plan and of an answer.
fn fifty_steps(last: &str) -> Plan {
    let step = |number: u32| {
        format!(
            r#"{{"tool":"t.0","arguments":{{"to":{{"is":"other{number}@corp.example"}},"amount":{{"is":{number}}}}}}}"#
        )
    };
    let steps: Vec<String> = (0..49).map(step).chain([last.to_owned()]).collect();
    Plan::parse(&format!("{{\"steps\":[{}]}}", steps.join(",")), &|name| name.parse().ok()).unwrap()
}

#[test]
#[ignore = "`just bench-governance`"]
fn a_decision_with_a_plan_of_fifty_steps() {
    let mut bench = Bench::new();
    let contacts = Registration {
        integrity: Integrity::Trusted,
        flow: Flow { format: Format::Json, ..Flow::looks() },
        ..tool("t.1")
    };
    let people: Vec<String> = (0..20).map(|at| format!(r#"{{"name":"P{at}","email":"p{at}@corp.example"}}"#)).collect();
    let text = format!(r#"[{},{{"name":"Anna","email":"anna@corp.example"}}]"#, people.join(","));
    let label = Label::new(Source::Tool, Integrity::Trusted, Confidentiality::Internal);
    bench.spans.enter_result(label, &text, &contacts, ephor_governance::Carried::default());
    for (what, to) in [
        ("a value", r#"{"is":"anna@corp.example"}"#),
        ("a field of 21 records", r#"{"from":"t.1","field":"email","where":{"name":"Anna"}}"#),
    ] {
        let plan = fifty_steps(&format!(
            r#"{{"tool":"t.0","arguments":{{"to":{to},"amount":{{"is":412.6}},"body":{{"text":true}}}}}}"#
        ));
        let (p50, p99) = quantiles(50_000, || bench.once(Planned::Plan(&plan)));
        println!("a decision, 50 steps, {what}: p50 {p50:?}, p99 {p99:?} (wanted: 8 µs)");
    }
    let (p50, p99) = quantiles(50_000, || bench.once(Planned::NoPlanner));
    println!("a decision, literals: p50 {p50:?}, p99 {p99:?}");
}

#[test]
#[ignore = "`just bench-governance`"]
fn a_result_of_a_megabyte() {
    let record = |at: usize| (at, format!("name{at}@host{}.example", at % 91), format!("12.{}", at % 100));
    let (mut json, mut yaml, mut csv) = (String::from("["), String::new(), String::from("id,email,sum\n"));
    for at in 0.. {
        let (id, email, sum) = record(at);
        if json.len() < 1 << 20 {
            write!(
                json,
                r#"{}{{"id":{id},"email":"{email}","sum":{sum},"tags":["a","b"]}}"#,
                if at == 0 { "" } else { "," }
            )
            .unwrap();
        }
        if yaml.len() < 1 << 20 {
            write!(yaml, "- id: {id}\n  email: {email}\n  sum: {sum}\n").unwrap();
        }
        if csv.len() < 1 << 20 {
            writeln!(csv, "{id},{email},{sum}").unwrap();
        } else if json.len() >= 1 << 20 && yaml.len() >= 1 << 20 {
            break;
        }
    }
    json.push(']');
    for (format, text) in [(Format::Json, &json), (Format::Yaml, &yaml), (Format::Csv, &csv), (Format::Text, &yaml)] {
        let (p50, p99) = quantiles(20, || drop(black_box(Records::read(format, text).unwrap())));
        let source =
            Registration { integrity: Integrity::Trusted, flow: Flow { format, ..Flow::looks() }, ..tool("t.1") };
        let label = Label::new(Source::Tool, Integrity::Trusted, Confidentiality::Internal);
        let (trusted, _) = quantiles(10, || {
            SpanTable::default().enter_result(label, text, &source, ephor_governance::Carried::default());
        });
        println!("1 MB of {format:?} read: p50 {p50:?}, p99 {p99:?} (wanted: 20 ms); entered as trusted: {trusted:?}");
    }
}

#[test]
#[ignore = "`just bench-governance`"]
fn ten_million_decisions_leave_nothing_behind() {
    let bench = Bench::new();
    (0..1000).for_each(|_| bench.once(Planned::NoPlanner));
    let before = HELD.get();
    let count = 10_000_000_u32;
    (0..count).for_each(|_| bench.once(Planned::NoPlanner));
    let grown = HELD.get() - before;
    println!("{count} decisions: {grown} bytes more are held");
    assert_eq!(grown, 0);
}
