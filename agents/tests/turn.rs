//! The turn machine, without a runtime.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ephor_agents::{Interrupt, Step, Turn, TurnLimits, Work};
use ephor_base::{
    AnswerEnd, CallId, Digest, EndReason, Failure, FailureKind, ModelAnswer, PromptMessage, Resource, SpanId, ToolUse,
    TurnLimit,
};
use ephor_kernel::{Moment, TurnState};
use proptest::prelude::*;

fn said() -> Moment {
    Moment::Said(vec![SpanId(1)])
}

fn answer(call: u64, tools: &[(&str, &str)]) -> Moment {
    let tool_use = |(name, arguments): &(&str, &str)| ToolUse {
        id: "x".into(),
        name: (*name).into(),
        arguments: (*arguments).into(),
    };
    let tool_uses = tools.iter().map(tool_use).collect();
    let answer = ModelAnswer { text: "a".into(), tool_uses, ..ModelAnswer::default() };
    Moment::Answered { call: CallId(call), answer: Arc::new(answer) }
}

fn result(of: u64, index: u32, known: bool, text: &str) -> Moment {
    Moment::Result {
        of: CallId(of),
        index,
        spans: vec![SpanId(9)],
        known,
        ok: known,
        digest: Digest::of(text.as_bytes()),
    }
}

fn failed(kind: FailureKind) -> Moment {
    Moment::ModelFailed { call: CallId(1), failure: Arc::new(Failure::new(kind, "")) }
}

fn step(transcript: &[Moment]) -> Step {
    Turn::new(TurnLimits::default(), SpanId(0)).step(transcript, None)
}

fn ends(step: &Step) -> Option<EndReason> {
    if let Work::Reply { end, .. } = step.work { Some(end) } else { None }
}

/// `n` rounds of one tool call each, each with another result.
fn rounds(n: u64) -> Vec<Moment> {
    let round = |call| [answer(call, &[("t", "{}")]), result(call, 0, true, &call.to_string())];
    std::iter::once(said()).chain((1..=n).flat_map(round)).collect()
}

#[test]
fn a_message_is_answered_by_model_tools_and_model() {
    let mut transcript = vec![said()];
    assert!(matches!(
        step(&transcript),
        Step { state: TurnState::SendingRequest, work: Work::Ask { offer_tools: true, .. } }
    ));
    transcript.push(answer(1, &[("a", "{}"), ("b", "{}")]));
    let tools =
        Step { state: TurnState::PendingToolUseResults, work: Work::CallTools { of: CallId(1), uses: vec![0, 1] } };
    assert_eq!(step(&transcript), tools);
    transcript.push(result(1, 0, true, "x"));
    assert!(
        matches!(step(&transcript).work, Work::CallTools { uses, .. } if uses == [1]),
        "what is done is not done again"
    );
    transcript.push(result(1, 1, true, "y"));
    assert!(matches!(step(&transcript).work, Work::Ask { .. }));
    transcript.push(answer(2, &[]));
    let end = Work::Reply { answer: Some(CallId(2)), end: EndReason::Replied };
    assert_eq!(step(&transcript), Step { state: TurnState::UserTurnEnded, work: end });
}

#[test]
fn at_the_limit_the_model_has_one_last_round_without_tools() {
    let limit = TurnLimits::default().rounds as u64;
    for (n, offers) in [(limit - 1, true), (limit, false)] {
        assert!(matches!(step(&rounds(n)).work, Work::Ask { offer_tools, .. } if offer_tools == offers), "{n}");
    }
    let (mut summary, mut stubborn) = (rounds(limit), rounds(limit));
    summary.push(answer(99, &[]));
    assert_eq!(
        step(&summary).work,
        Work::Reply { answer: Some(CallId(99)), end: EndReason::LimitHit(TurnLimit::Rounds) }
    );
    stubborn.push(answer(99, &[("t", "{}")]));
    assert_eq!(ends(&step(&stubborn)), Some(EndReason::LimitHit(TurnLimit::Rounds)), "and no tool is called");
}

#[test]
fn three_unknown_tools_or_five_repeats_end_the_turn() {
    for (n, end) in [(2, None), (3, Some(EndReason::LimitHit(TurnLimit::UnknownTools)))] {
        let round = |call| [answer(call, &[("none", &call.to_string())]), result(call, 0, false, &call.to_string())];
        let transcript: Vec<_> = std::iter::once(said()).chain((1..=n).flat_map(round)).collect();
        assert_eq!(ends(&step(&transcript)), end, "{n}");
    }
    for (n, end) in [(4, None), (5, Some(EndReason::LimitHit(TurnLimit::Repeats)))] {
        let round = |call| [answer(call, &[("t", "{}")]), result(call, 0, true, "same")];
        let transcript: Vec<_> = std::iter::once(said()).chain((1..=n).flat_map(round)).collect();
        assert_eq!(ends(&step(&transcript)), end, "{n}");
    }
    assert_eq!(ends(&step(&rounds(20))), None, "another result is no repeat");
}

#[test]
fn a_plan_that_is_made_in_the_middle_of_a_call_interrupts_nothing() {
    let mut transcript = vec![said(), answer(1, &[("t", "{}")])];
    let before = step(&transcript);
    transcript.push(Moment::Planned(vec![SpanId(9)]));
    assert_eq!(step(&transcript), before, "the call goes on");
    transcript.push(result(1, 0, true, "done"));
    let Work::Ask { prompt, .. } = step(&transcript).work else { panic!("{:?}", step(&transcript)) };
    // It stands behind what came of the calls.
    let last = prompt.messages.iter().rev().take(2).collect::<Vec<_>>();
    assert_eq!(last[0], &PromptMessage::User(vec![SpanId(9)]));
    assert!(matches!(last[1], PromptMessage::Result { .. }));
}

#[test]
fn a_failure_that_may_pass_is_tried_again_a_bounded_number_of_times() {
    for (kind, retries) in [
        (FailureKind::Throttled, 2),
        (FailureKind::Timeout, 2),
        (FailureKind::Interrupted, 2),
        (FailureKind::InvalidJson, 1),
        (FailureKind::Overflow, 0),
        (FailureKind::Unauthorized, 0),
        (FailureKind::Crashed, 0),
        (FailureKind::ServerError, 2),
        (FailureKind::Quota, 0),
        (FailureKind::Forbidden, 0),
        (FailureKind::Rejected, 0),
    ] {
        let mut turn = Turn::new(TurnLimits::default(), SpanId(0));
        let mut transcript = vec![said()];
        let mut waits = Vec::new();
        for _ in 0..retries {
            transcript.push(failed(kind));
            let Step { state: TurnState::Retrying { wait_ms, next, of }, work: Work::Wait(time) } =
                turn.step(&transcript, None)
            else {
                panic!("{kind:?} is tried again after a wait")
            };
            waits.push(time);
            let told = (Duration::from_millis(wait_ms), next as usize, of as usize);
            assert_eq!(told, (time, waits.len() + 1, retries + 1));
            assert!(matches!(turn.step(&transcript, None).work, Work::Ask { .. }));
        }
        assert!(waits.windows(2).all(|pair| pair[1] == pair[0] * 2) && waits.iter().all(|wait| *wait > Duration::ZERO));
        transcript.push(failed(kind));
        assert_eq!(ends(&turn.step(&transcript, None)), Some(EndReason::Failed(kind)));
    }
}

#[test]
fn a_provider_is_waited_for_as_long_as_it_asks_and_no_longer_than_a_minute() {
    for (asks, waits) in [(0, Some(500)), (4, Some(4000)), (60, Some(60_000)), (61, None), (u32::MAX, None)] {
        let mut failure = Failure::new(FailureKind::Throttled, "");
        failure.retry_after = Some(asks);
        let transcript = [said(), Moment::ModelFailed { call: CallId(1), failure: Arc::new(failure) }];
        let step = step(&transcript);
        match waits {
            Some(ms) => assert_eq!(step.work, Work::Wait(Duration::from_millis(ms))),
            None => assert_eq!(ends(&step), Some(EndReason::Failed(FailureKind::Throttled))),
        }
    }
}

#[test]
fn an_answer_that_is_not_complete_ends_the_turn_as_what_it_is_and_no_tool_of_it_is_called() {
    for (end, ended) in [(AnswerEnd::CutOff, EndReason::CutOff), (AnswerEnd::Refused, EndReason::ModelRefused)] {
        for tools in [&[][..], &[("t", "{}")]] {
            let Moment::Answered { call, answer } = answer(7, tools) else { unreachable!() };
            let answer = Arc::new(ModelAnswer { end, ..(*answer).clone() });
            let step = step(&[said(), Moment::Answered { call, answer }]);
            assert_eq!(step.work, Work::Reply { answer: Some(CallId(7)), end: ended });
        }
    }
}

#[test]
fn an_interrupt_ends_the_turn_wherever_it_stands() {
    let ways = [
        (Interrupt::Cancelled, EndReason::Cancelled),
        (Interrupt::TimeUp, EndReason::LimitHit(TurnLimit::Time)),
        (Interrupt::Refused, EndReason::Refused),
        (Interrupt::BudgetSpent(Resource::Tokens), EndReason::BudgetSpent(Resource::Tokens)),
    ];
    let transcript = rounds(3);
    for length in 1..=transcript.len() {
        for (interrupt, end) in ways {
            let step = Turn::new(TurnLimits::default(), SpanId(0)).step(&transcript[..length], Some(interrupt));
            assert_eq!((step.state, ends(&step)), (TurnState::UserTurnEnded, Some(end)));
        }
    }
}

/// Histories as crashes, cancellations and late results may leave them.
fn history() -> impl Strategy<Value = Vec<Moment>> {
    let event = (0..6u8, 0..4usize, prop::collection::vec((0..3u64, 0..4u32), 0..5));
    prop::collection::vec(event, 1..30).prop_map(|events| {
        let (mut moments, mut next) = (vec![said()], 1u64);
        for (kind, tools, results) in events {
            match kind {
                0 => moments.push(said()),
                1 => moments.push(failed(FailureKind::Timeout)),
                2 => moments.push(Moment::TurnEnded(EndReason::Cancelled)),
                _ => {
                    moments.push(answer(next, &vec![("t", "{}"); tools]));
                    next += 1;
                }
            }
            for (back, index) in results {
                if let Some(of) = next.checked_sub(back + 1) {
                    moments.push(result(of, index, true, "r"));
                }
            }
        }
        moments
    })
}

proptest! {
    #[test]
    fn a_turn_goes_on_from_any_history_and_never_splits_a_call_from_its_result(moments in history(), cut in 0..40usize) {
        let prefix = &moments[..(cut + 1).min(moments.len())];
        let Work::Ask { prompt, .. } = step(prefix).work else { return Ok(()) };
        prop_assert_eq!(&prompt.messages[0], &PromptMessage::System(vec![SpanId(0)]));
        let count = |call: CallId| prefix.iter().find_map(|moment| match moment {
            Moment::Answered { call: of, answer } if *of == call => Some(answer.tool_uses.len()),
            _ => None,
        }).unwrap();
        let mut answers = BTreeSet::new();
        let mut messages = prompt.messages.iter().peekable();
        while let Some(message) = messages.next() {
            match message {
                PromptMessage::Answer(call) => {
                    prop_assert!(answers.insert(*call), "an answer stands once");
                    for at in 0..count(*call) {
                        let next = messages.next();
                        let fits = matches!(next, Some(PromptMessage::Result { of, index, .. }) if of == call && *index as usize == at);
                        prop_assert!(fits, "use {at} of {call}: {next:?}");
                    }
                }
                PromptMessage::Result { .. } => prop_assert!(false, "a result without its call"),
                PromptMessage::System(_) | PromptMessage::User(_) => {}
            }
        }
    }
}
