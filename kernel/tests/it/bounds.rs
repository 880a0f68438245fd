//! What an agent asks and what a driver reports is bounded by the kernel, whoever they are.

use ephor_base::{
    Action, Budget, EndReason, ModelAction, ModelAnswer, Product, Prompt, PromptMessage, ReplyAction, SpanId, Usage,
};
use ephor_governance::Rights;
use ephor_kernel::{DriverResult, Incoming, Process};
use ephor_record::Fact;

use crate::world::{Does, PLENTY, Setup, ask, code, direct, done, model, reader, reply, said, text};

fn reports(used: Budget, usage: Usage) -> std::sync::Arc<Does> {
    let estimate = Budget { tokens: 60, micro_usd: 10, ..Budget::ZERO };
    Does::costing(estimate, move |_, _| async move {
        DriverResult::done(Product::Model(ModelAnswer { usage, ..text("a") }), used)
    })
}

#[tokio::test]
async fn a_report_beyond_what_could_be_used_ends_its_own_call_and_costs_no_other() {
    const MOST: u64 = u64::MAX;
    let wild = Usage { input: MOST, output: MOST, ..Usage::default() };
    let reports_of = [
        (Budget { tokens: MOST, ..Budget::ZERO }, Usage::default()),
        (Budget { micro_usd: MOST, ..Budget::ZERO }, Usage::default()),
        (Budget { tool_calls: MOST, messages: MOST, children: MOST, depth: MOST, ..Budget::ZERO }, Usage::default()),
        (Budget { tokens: 121, ..Budget::ZERO }, Usage::default()),
        (Budget::ZERO, wild),
    ];
    for (used, usage) in reports_of {
        let world = Setup::new().model(reports(used, usage)).boot().await;
        let (mut first, mut second) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
        for puppet in [&mut first, &mut second] {
            let (process, _end) = puppet.in_turn("go").await;
            for _ in 0..3 {
                assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "overrun", "{used:?} {usage:?}");
            }
            let account = world.account(&process);
            assert!(account.used.tokens <= 360 && account.used.micro_usd <= 60, "{account:?}");
            assert_eq!(account.reserved, Budget::ZERO);
            assert_eq!(code(&done(&process, reply(None)).await), "done");
        }
    }
}

#[tokio::test]
async fn a_report_that_is_somewhat_more_than_was_set_aside_is_believed() {
    let used = Budget { tokens: 120, micro_usd: 20, ..Budget::ZERO };
    let world = Setup::new().model(reports(used, Usage { input: 100, output: 20, ..Usage::default() })).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "done");
    let account = world.account(&process);
    assert_eq!((account.used.tokens, account.used.micro_usd), (120, 20));
}

#[tokio::test]
async fn a_reply_answers_a_message_and_each_has_one() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    assert_eq!(code(&done(&process, reply(None)).await), "NoTurn");
    puppet.say("go").await;
    assert!(matches!(process.receive().await, Incoming::Message(_)));
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    assert_eq!(code(&done(&process, reply(None)).await), "NoTurn");
    assert_eq!(code(&done(&process, ask(vec![SpanId(1)])).await), "NoTurn");
    assert_eq!(code(&done(&process, direct("t.none", "{}")).await), "NoTurn");
    let intents = world.facts(puppet.session).await;
    assert_eq!(intents.iter().filter(|fact| matches!(fact, Fact::Intent { .. })).count(), 1);
}

/// Asks until something else than `often` comes of it; says what, and how often it was asked.
async fn until_refused(process: &Process, action: impl Fn() -> Action, often: &str) -> (String, usize) {
    for asked in 0..2000 {
        let came = code(&done(process, action()).await);
        if came != often {
            return (came, asked);
        }
    }
    panic!("it is asked for ever");
}

#[tokio::test]
async fn a_turn_asks_a_bounded_number_of_times_also_where_all_is_denied() {
    let mut setup = Setup::new().tool(reader("t.read"), Does::saying("x"));
    setup.turn.calls = 200;
    let world = setup.boot().await;
    let spec = || ephor_kernel::SessionSpec { rights: Rights::of([ephor_base::Capability::Reply]), ..world.spec() };
    let (mut asks, mut calls) = (world.puppet_with(PLENTY, spec()).await, world.puppet_with(PLENTY, spec()).await);
    let (process, _end) = asks.in_turn("go").await;
    let (came, asked) = until_refused(&process, || ask(vec![SpanId(1)]), "Denied").await;
    assert_eq!((came.as_str(), asked), ("TurnLimit", 108));
    assert_eq!(code(&done(&process, reply(None)).await), "done", "the person is told all the same");
    let (process, _end) = calls.in_turn("go").await;
    let (came, asked) = until_refused(&process, || direct("t.read", "{}"), "Denied").await;
    assert_eq!((came.as_str(), asked), ("TurnLimit", 200));
    assert_eq!(code(&done(&process, reply(None)).await), "done");
}

#[tokio::test]
async fn a_reply_that_is_cut_off_again_and_again_is_tried_a_bounded_number_of_times() {
    let mut setup = Setup::new();
    setup.reply = Does::new(|_, _| std::future::pending());
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    for tried in 0..2000 {
        let mut call = process.call(reply(None)).unwrap();
        let mut ended = None;
        while let Some(state) = call.next().await {
            match state {
                ephor_kernel::CallState::Started => call.canceller().cancel(),
                ephor_kernel::CallState::Streaming => {}
                ephor_kernel::CallState::Ended(end) => ended = Some(code(&end)),
            }
        }
        if ended.as_deref() != Some("cancelled") {
            assert_eq!(ended.as_deref(), Some("TurnLimit"), "after {tried}");
            return;
        }
        assert!(tried < 20, "it is tried for ever");
    }
}

fn prompt(messages: Vec<PromptMessage>) -> Action {
    Action::Model(ModelAction { prompt: Prompt { messages }, offer_tools: false, max_output_tokens: 1 })
}

#[tokio::test]
async fn a_prompt_names_each_span_once_and_is_bounded_before_it_is_made() {
    let world = Setup::new().model(model(vec![crate::world::uses(&[("t.none", "{}")]), text("b")])).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let of = done(&process, ask(vec![SpanId(1)])).await.unwrap().call;
    let used = || PromptMessage::Result { of, index: 0, spans: Vec::new() };
    for messages in [
        vec![PromptMessage::User(vec![SpanId(1); 1_000_000])],
        vec![PromptMessage::User(vec![SpanId(1), SpanId(1)])],
        vec![PromptMessage::User(vec![SpanId(1)]), PromptMessage::User(vec![SpanId(1)])],
        vec![PromptMessage::Answer(of), PromptMessage::Answer(of)],
        vec![used(), used()],
        vec![PromptMessage::User(Vec::new()); 1_000_000],
    ] {
        assert_eq!(code(&done(&process, prompt(messages)).await), "Overlong");
    }
    let whole = vec![PromptMessage::User(vec![SpanId(1)]), PromptMessage::Answer(of), used()];
    assert_eq!(code(&done(&process, prompt(whole)).await), "done");
}

#[tokio::test]
async fn a_prompt_has_so_many_bytes_at_most() {
    let big = Does::new(|_, _| async { said(&"x".repeat(6 << 20)) });
    let world = Setup::new()
        .tool(reader("t.big"), big)
        .model(model(vec![crate::world::uses(&[("t.big", "{}"), ("t.big", "{}"), ("t.big", "{}")]), text("b")]))
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let of = done(&process, ask(vec![SpanId(1)])).await.unwrap().call;
    for index in 0..3 {
        assert_eq!(code(&done(&process, crate::world::chosen(of, index)).await), "done");
    }
    let spans = |ids: std::ops::Range<u64>| vec![PromptMessage::User(ids.map(SpanId).collect())];
    // The instructions, the message and the answer come before the results.
    assert_eq!(code(&done(&process, prompt(spans(3..5))).await), "done");
    assert_eq!(code(&done(&process, prompt(spans(3..6))).await), "Overlong");
    let end = EndReason::Failed(ephor_base::FailureKind::Overflow);
    let ended = Action::Reply(ReplyAction { answer: None, end });
    assert_eq!(code(&done(&process, ended).await), "done");
}
