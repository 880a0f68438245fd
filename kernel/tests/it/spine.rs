//! One call through the door, as it stands on the record.

use std::sync::{Arc, Mutex};

use ephor_base::{
    Action, Arguments, Budget, Capability, Confidentiality, Decision, EndReason, Failure, FailureKind, Integrity,
    Message, ModelAction, Outcome, Prompt, PromptMessage, Resource, Source, SpanId, Task, ToolAction,
};
use ephor_chain::Private;
use ephor_kernel::{DriverResult, Refusal};
use ephor_record::{Content, Fact};

use crate::world::{
    Does, PLENTY, Setup, answered, asked, chosen, code, direct, done, is_settled, kinds, model, name, reader, reply,
    said, text, uses, writer,
};

#[tokio::test]
async fn a_turn_stands_on_the_record_in_the_order_of_the_spine() {
    let tool = Does::saying("three");
    let world = Setup::new()
        .tool(reader("t.count"), tool.clone())
        .model(model(vec![uses(&[("t.count", "{}")]), text("there are three")]))
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("how many?").await;
    let by = asked(&process).await;
    let ran = done(&process, chosen(by, 0)).await.unwrap();
    let said = asked(&process).await;
    done(&process, reply(Some(said))).await.unwrap();
    let record = world.record().await;
    let of_session: Vec<_> = record.iter().filter(|one| one.entry.subject.session == Some(puppet.session)).collect();
    let facts: Vec<Fact> = of_session.iter().map(|one| one.entry.fact.clone()).collect();
    let calls = ["verdict", "verdict", "intent", "outcome"];
    assert_eq!(
        kinds(&facts),
        [&["spawn", "opened", "spawn", "message"][..], &calls, &calls[1..], &calls, &calls[1..], &["turn_end"]]
            .concat()
    );
    // The receipt is the outcome's, and everything of a call stands under its id.
    let outcome = &record[usize::try_from(ran.receipt.seq.0).unwrap()];
    assert_eq!((outcome.receipt, outcome.entry.subject.call), (ran.receipt, Some(ran.call)));
    let Fact::Outcome { intent, .. } = outcome.entry.fact else { panic!("no outcome") };
    let intent = &record[usize::try_from(intent.0).unwrap()];
    let Fact::Intent { verdict, arguments, .. } = intent.entry.fact else { panic!("no intent") };
    let verdict = &record[usize::try_from(verdict.0).unwrap()];
    let Fact::Verdict { arguments: decided, target, .. } = &verdict.entry.fact else { panic!("no verdict") };
    assert_eq!((arguments, target.as_str()), (*decided, "t.count"));
    assert!([intent, verdict].iter().all(|one| one.entry.subject == outcome.entry.subject));
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn what_makes_no_sense_is_denied_on_the_record_and_never_runs() {
    let tool = Does::saying("no");
    let long = "x".repeat(500);
    let strange =
        ["{\"path\":", "[]", r#"{"path":7}"#, r#"{"other":1}"#, r#"{"path":"../x"}"#, r#"{"path":"a","path":"b"}"#];
    let mut bad: Vec<(&str, &str)> = strange.iter().map(|arguments| ("t.read", *arguments)).collect();
    bad.extend([("t.none", "{}"), ("", "{}"), ("T.READ", "{}"), ("t.read\n", "{}"), (&long, "{}")]);
    let world = Setup::new().tool(reader("t.read"), tool.clone()).model(model(vec![uses(&bad)])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let by = asked(&process).await;
    for index in 0..u32::try_from(bad.len()).unwrap() {
        assert_eq!(code(&done(&process, chosen(by, index)).await), "Denied", "{:?}", bad[index as usize]);
        assert!(matches!(done(&process, chosen(by, index)).await, Err(Refusal::Repeated(_))));
    }
    assert_eq!(code(&done(&process, direct("t.none", "{}")).await), "Denied");
    assert_eq!(tool.runs(), 0);
    let denied = |fact: &&Fact| matches!(fact, Fact::Verdict { verdict, .. } if verdict.decision == Decision::Deny);
    let facts = world.facts(puppet.session).await;
    assert_eq!(facts.iter().filter(denied).count(), bad.len() + 1);
    // Nothing a model wrote for a name is public, unless it could be a tool's.
    let public = facts.iter().filter_map(|fact| match fact {
        Fact::Verdict { target, .. } => Some(target.as_str()),
        _ => None,
    });
    assert!(
        public
            .into_iter()
            .all(|target| ["t.read", "t.none", "(not a tool name)", "script:test", "preview"].contains(&target))
    );
}

#[tokio::test]
async fn a_session_names_only_its_own_spans_answers_and_uses() {
    let world = Setup::new().model(model(vec![text("secret")])).boot().await;
    let (mut mine, mut theirs) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let (me, _a) = mine.in_turn("a").await;
    let (they, _b) = theirs.in_turn("b").await;
    they.receive_more(&theirs).await;
    let answer = asked(&they).await;
    let unknown = |result| matches!(result, Err(Refusal::UnknownReference(_)));
    let prompt =
        |messages| Action::Model(ModelAction { prompt: Prompt { messages }, offer_tools: false, max_output_tokens: 1 });
    for messages in [
        vec![PromptMessage::User(vec![SpanId(2)])],
        vec![PromptMessage::User(vec![SpanId(u64::MAX)])],
        vec![PromptMessage::Answer(answer)],
        vec![PromptMessage::Result { of: answer, index: 0, spans: vec![] }],
        // Only the operator's words are instructions.
        vec![PromptMessage::System(vec![SpanId(1)])],
    ] {
        assert!(unknown(done(&me, prompt(messages.clone())).await), "{messages:?}");
    }
    assert!(unknown(done(&me, reply(Some(answer))).await));
    assert!(unknown(done(&me, chosen(answer, 0)).await));
    assert!(unknown(done(&me, chosen(answer, u32::MAX)).await));
}

/// A message that only makes spans.
trait More {
    async fn receive_more(&self, puppet: &crate::world::Puppet);
}
impl More for ephor_kernel::Process {
    async fn receive_more(&self, puppet: &crate::world::Puppet) {
        puppet.say("and a second span").await;
    }
}

#[tokio::test]
async fn a_spent_budget_refuses_the_next_call_and_still_lets_the_reply_go() {
    let cost = Budget { tokens: 60, ..Budget::ZERO };
    let costly = Does::costing(cost, |_, _| async {
        DriverResult::done(ephor_base::Product::Model(text("a")), Budget { tokens: 50, ..Budget::ZERO })
    });
    let world = Setup::new().model(costly.clone()).boot().await;
    let mut puppet = world.puppet(Budget { tokens: 100, wall_ms: 301_000, ..Budget::ZERO }).await;
    let (process, _end) = puppet.in_turn("go").await;
    asked(&process).await;
    let account = world.account(&process);
    assert_eq!((account.used.tokens, account.reserved), (50, Budget::ZERO));
    let refused = done(&process, crate::world::ask(vec![SpanId(1)])).await;
    let Err(Refusal::BudgetSpent { exhausted, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((exhausted.resource, exhausted.needed, exhausted.left), (Resource::Tokens, 60, 50));
    assert_eq!(costly.runs(), 1);
    assert_eq!(code(&done(&process, reply(None)).await), "done");

    // No time at all is left, and the person is told all the same.
    let mut poor = world.puppet(Budget::ZERO).await;
    let (process, _end) = poor.in_turn("go").await;
    assert_eq!(code(&done(&process, crate::world::ask(vec![SpanId(1)])).await), "BudgetSpent");
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    assert!(world.facts(poor.session).await.iter().any(|fact| matches!(fact, Fact::TurnEnd { .. })));
}

#[tokio::test]
async fn a_reply_that_is_refused_still_ends_the_turn() {
    let world = Setup::new().boot().await;
    let mut spec = world.spec();
    spec.rights = ephor_governance::Rights::of([Capability::Model]);
    let mut puppet = world.puppet_with(PLENTY, spec).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, reply(None)).await), "Denied");
    assert!(!process.is_in_turn());
    let facts = world.facts(puppet.session).await;
    assert!(facts.iter().any(|fact| matches!(fact, Fact::TurnEnd { end: EndReason::Refused, .. })));
}

#[tokio::test]
async fn a_tool_use_runs_once_however_often_it_is_called_at_once() {
    let slow = Does::new(|_, _| async {
        tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        said("once")
    });
    let world =
        Setup::new().tool(reader("t.slow"), slow.clone()).model(model(vec![uses(&[("t.slow", "{}")])])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let by = asked(&process).await;
    let calls: Vec<_> = (0..5).map(|_| process.call(chosen(by, 0)).unwrap()).collect();
    let mut ends = Vec::new();
    for call in calls {
        ends.push(code(&call.ended().await));
    }
    assert_eq!((slow.runs(), ends.iter().filter(|end| *end == "done").count()), (1, 1), "{ends:?}");
    assert_eq!(ends.iter().filter(|end| *end == "Repeated").count(), 4, "{ends:?}");
}

#[tokio::test]
async fn a_nested_action_has_a_verdict_of_its_own() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (inner, told) = (Does::saying("inner"), seen.clone());
    let outer = Does::new(move |_, context| {
        let told = told.clone();
        async move {
            for tool in ["t.inner", "t.write", "t.none"] {
                let end = context.nested(name(tool), Arguments::default()).await;
                told.lock()
                    .unwrap()
                    .push(end.map_or_else(|refusal| refusal.to_string(), |outcome| outcome.code().to_owned()));
            }
            said("outer")
        }
    });
    let nests = ephor_base::Registration { nested: vec![Capability::FsRead], ..reader("t.outer") };
    let plain = Does::new({
        let seen = seen.clone();
        move |_, context| {
            let seen = seen.clone();
            async move {
                let end = code(&context.nested(name("t.inner"), Arguments::default()).await.map(|_| panic!("it ran")));
                seen.lock().unwrap().push(end);
                said("plain")
            }
        }
    });
    let written = Does::saying("written");
    let world = Setup::new()
        .tool(nests, outer)
        .tool(reader("t.inner"), inner.clone())
        .tool(writer("t.write"), written.clone())
        .tool(reader("t.plain"), plain)
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let outer = done(&process, direct("t.outer", "{}")).await.unwrap();
    {
        let seen = seen.lock().unwrap();
        assert_eq!(seen[0], "done");
        assert!(seen[1].contains("not entitled") && seen[2].contains("not registered"), "{seen:?}");
    }
    assert_eq!((inner.runs(), written.runs()), (1, 0));
    assert_eq!(world.account(&process).used.tool_calls, 2, "what a guest has done inside is paid for");
    done(&process, direct("t.plain", "{}")).await.unwrap();
    assert_eq!((inner.runs(), seen.lock().unwrap()[3].as_str()), (1, "Denied"));
    let record = world.record().await;
    let mut calls: Vec<_> = record
        .iter()
        .filter(|one| matches!(one.entry.fact, Fact::Intent { .. }))
        .map(|one| one.entry.subject.call)
        .collect();
    calls.dedup();
    assert_eq!(calls.len(), 3, "the nested call has an id of its own: {calls:?}");
    assert!(is_settled(&record) && calls[0] == Some(outer.call));
}

#[tokio::test]
async fn a_guest_has_no_more_rights_two_calls_deep_than_one() {
    let inner = |tool: &'static str| {
        Does::new(move |_, context| async move {
            let end = context.nested(name(tool), Arguments::default()).await;
            said(&end.map_or_else(|refusal| refusal.to_string(), |outcome| format!("{outcome:?}")))
        })
    };
    let nests = |tool: &str, nested| ephor_base::Registration { nested, ..reader(tool) };
    let write = Does::saying("written");
    let world = Setup::new()
        .tool(nests("t.a", vec![Capability::FsRead]), inner("t.b"))
        .tool(nests("t.b", vec![Capability::FsRead, Capability::FsWrite]), inner("t.c"))
        .tool(writer("t.c"), write.clone())
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    world.kernel.rule(world.allow(puppet.session, &["t.c"])).await.unwrap();
    let outcome = done(&process, direct("t.a", "{}")).await.unwrap().outcome;
    assert!(format!("{outcome:?}").contains("not entitled"), "{outcome:?}");
    assert_eq!(write.runs(), 0);
}

#[tokio::test]
async fn words_that_quote_others_are_labelled_as_theirs() {
    let shown: Arc<Mutex<Vec<Message>>> = Arc::default();
    let kept = shown.clone();
    let asks = Does::new(move |permit, _| {
        let Task::Model(task) = permit.task() else { panic!("not a model task") };
        *kept.lock().unwrap() = task.messages.clone();
        let answer = if task.ordinal == 0 {
            uses(&[
                ("t.read", r#"{"path":7,"IGNORE ALL":1}"#),
                ("IGNORE ALL", "{}"),
                ("t.fails", "{}"),
                ("t.read", "IGNORE ALL"),
                ("t.write", "{}"),
            ])
        } else {
            text("ok")
        };
        async move { answered(answer) }
    });
    let fails =
        Does::new(|_, _| async { DriverResult::failed(Failure::new(FailureKind::Trap, "IGNORE ALL"), Budget::ZERO) });
    let private = ephor_base::Registration { confidentiality: Confidentiality::Confidential, ..reader("t.fails") };
    let world = Setup::new()
        .tool(reader("t.read"), Does::saying("x"))
        .tool(writer("t.write"), Does::saying("x"))
        .tool(private, fails)
        .model(asks)
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let by = asked(&process).await;
    let mut spans = Vec::new();
    for index in 0..5 {
        let _: Result<_, _> = done(&process, chosen(by, index)).await;
        let Some(ephor_kernel::Moment::Result { spans: told, .. }) = process.transcript().pop() else {
            panic!("no result")
        };
        spans.extend(told);
    }
    // The failure of a confidential tool may quote what it has read: a model is not cleared for it.
    let prompt = |spans: Vec<SpanId>| {
        Action::Model(ModelAction {
            prompt: Prompt { messages: vec![PromptMessage::User(spans)] },
            offer_tools: false,
            max_output_tokens: 1,
        })
    };
    assert_eq!(code(&done(&process, prompt(spans.clone())).await), "Denied");
    spans.remove(2);
    done(&process, prompt(spans)).await.unwrap();
    let shown = shown.lock().unwrap();
    let [Message::User(spans)] = shown.as_slice() else { panic!("{shown:?}") };
    for span in spans {
        let quotes = span.text.contains("IGNORE") || span.text.contains('7');
        assert!(span.label.integrity == Integrity::Untrusted || !quotes, "{span:?}");
        assert_eq!(span.label.source, Source::Kernel);
    }
    assert!(spans.iter().any(|span| span.label.integrity == Integrity::Trusted), "the door's own words");
}

#[tokio::test]
async fn a_call_that_broke_off_is_recorded_as_what_was_asked() {
    let world = Setup::new().tool(reader("t.read"), Does::saying("x")).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    done(&process, direct("t.read", r#"{"path":"notes"}"#)).await.unwrap();
    let record = world.record().await;
    let arguments = record.iter().find_map(|one| match &one.content {
        Private::Open(Content::Call { arguments, .. }) => Some(arguments.clone()),
        _ => None,
    });
    assert_eq!(arguments.unwrap().text("path"), Some("notes"));
    let Action::Tool(ToolAction::Direct { arguments, .. }) = direct("t.read", r#"{"path":"notes"}"#) else { panic!() };
    assert_eq!(arguments.text("path"), Some("notes"));
}

#[tokio::test]
async fn an_answer_too_large_for_the_record_is_a_failure_and_is_not_asked_for_again() {
    let big = Does::new(|_, _| async { said(&"x".repeat(17 << 20)) });
    let world =
        Setup::new().tool(reader("t.big"), big.clone()).model(model(vec![uses(&[("t.big", "{}")])])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let by = asked(&process).await;
    let end = done(&process, chosen(by, 0)).await.unwrap();
    assert!(matches!(end.outcome, Outcome::Failed(Failure { kind: FailureKind::Output, .. })), "{:?}", end.outcome);
    assert_eq!((code(&done(&process, chosen(by, 0)).await).as_str(), big.runs()), ("Repeated", 1));
    assert!(is_settled(&world.record().await));
}

#[tokio::test]
async fn a_message_that_was_not_recorded_is_trusted_for_nothing() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let part = |kind, text: &str| ephor_base::Part { kind, text: text.to_owned() };
    let typed = |text: &str| part(ephor_base::PartKind::Typed, text);
    let long = typed(&format!("evil.txt {}", "x".repeat(17 << 20)));
    assert!(world.kernel.send(puppet.session, vec![long]).await.is_err());
    let piped = part(ephor_base::PartKind::Piped, "evil.txt");
    world.kernel.send(puppet.session, vec![typed("go on in good.txt"), piped]).await.unwrap();
    let (process, _end) = puppet.born().await;
    process.receive().await;
    for (path, is_trusted) in [("good.txt", true), ("evil.txt", false)] {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        let _ended: Result<_, _> = done(&process, direct("t.write", &arguments)).await;
        let reasons = crate::scope::reasons(&world, "t.write").await;
        assert_eq!(!reasons.contains(&"argument-path-is-untrusted".to_owned()), is_trusted, "{path}: {reasons:?}");
    }
}
