//! No way round the door: for every surface and every kind of permit that does not count, the test that shows it refused.
//!
//! A surface is where something comes in that may end in an effect. All of them lead to one system call; this table is to
//! notice when one does not, or when a test that stands for a cell goes away.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ephor_base::{Budget, Capability, Part, PartKind, SpanId, Timestamp};
use ephor_governance::{OperatorPolicy, Rights};
use ephor_kernel::{AgentSpec, Incoming, NotAccepted, NotStarted, SessionSpec, operator_id};
use ephor_record::{Decree, Errand, Fact, Missed, Role};

use crate::world::{Does, End, PLENTY, Setup, ask, code, direct, done, reader, writer};

const SURFACES: [&str; 7] = ["cli", "socket", "spawn", "message", "schedule", "hook", "model"];
const CASES: [&str; 6] = ["none", "another's", "changed", "used", "expired", "older law"];

/// Surface, case, the file of the test and its name. Where the type system covers a cell, the test is of what must not compile.
const CELLS: [(&str, &str, &str, &str); 42] = [
    ("cli", "none", "node/tests/story/gate.rs", "without_a_terminal_a_write_is_refused_at_once_with_a_ticket"),
    (
        "cli",
        "another's",
        "node/tests/story/operators.rs",
        "each_command_takes_its_role_and_the_record_names_who_gave_it",
    ),
    ("cli", "changed", "node/tests/story/gate.rs", "what_policy_rules_out_nobody_can_allow"),
    (
        "cli",
        "used",
        "node/tests/story/signals.rs",
        "a_message_that_died_with_its_node_is_read_and_replayed_once_whatever_is_killed",
    ),
    ("cli", "expired", "node/tests/story/approvals.rs", "a_question_whose_time_is_up_is_answered_by_nobody"),
    (
        "cli",
        "older law",
        "node/tests/story/operators.rs",
        "a_constitution_is_applied_at_once_and_the_record_rules_after_a_kill",
    ),
    ("socket", "none", "node/tests/story/socket.rs", "a_client_that_does_not_prove_a_credential_gets_nothing"),
    ("socket", "another's", "node/tests/story/socket.rs", "a_ruling_of_one_session_does_not_count_in_another"),
    ("socket", "changed", "node/tests/story/socket.rs", "a_ruling_that_is_not_the_operators_counts_for_nothing"),
    ("socket", "used", "node/tests/story/socket.rs", "a_signed_ruling_lets_one_call_run_and_no_other"),
    ("socket", "expired", "kernel/tests/it/rulings.rs", "a_ticket_that_nobody_answers_in_time_is_denied_and_stays_so"),
    (
        "socket",
        "older law",
        "kernel/tests/it/laws.rs",
        "what_was_asked_and_allowed_under_an_older_constitution_counts_no_more",
    ),
    ("spawn", "none", "kernel/tests/it/way.rs", "a_seat_that_was_given_no_rights_may_ask_for_nothing"),
    ("spawn", "another's", "kernel/tests/it/rulings.rs", "a_standing_ruling_covers_only_its_tools_and_its_session"),
    ("spawn", "changed", "kernel/tests/it/way.rs", "a_seat_is_opened_with_no_more_rights_than_the_seats_above_it"),
    ("spawn", "used", "kernel/tests/it/way.rs", "what_an_incarnation_has_used_is_used_for_the_one_spawned_after_it"),
    ("spawn", "expired", "kernel/tests/it/ends.rs", "a_fenced_incarnation_can_do_nothing"),
    ("spawn", "older law", "kernel/tests/it/laws.rs", "no_surface_keeps_an_older_constitution"),
    ("message", "none", "kernel/tests/compile_fail.rs", "no_process_ends_another_or_speaks_to_it"),
    ("message", "another's", "kernel/tests/it/spine.rs", "a_session_names_only_its_own_spans_answers_and_uses"),
    (
        "message",
        "changed",
        "kernel/tests/it/letters.rs",
        "what_another_session_has_said_is_trusted_for_no_more_when_it_is_replayed",
    ),
    ("message", "used", "kernel/tests/it/letters.rs", "of_many_who_replay_at_once_one_does"),
    ("message", "expired", "kernel/tests/it/letters.rs", "an_answered_message_is_no_dead_letter_whatever_ends"),
    ("message", "older law", "kernel/tests/it/laws.rs", "no_surface_keeps_an_older_constitution"),
    ("schedule", "none", "kernel/tests/it/way.rs", "a_schedule_fires_once_at_each_of_its_instants_and_permits_nothing"),
    (
        "schedule",
        "another's",
        "kernel/tests/it/way.rs",
        "a_schedule_fires_once_at_each_of_its_instants_and_permits_nothing",
    ),
    (
        "schedule",
        "changed",
        "kernel/tests/it/way.rs",
        "a_schedule_fires_once_at_each_of_its_instants_and_permits_nothing",
    ),
    (
        "schedule",
        "used",
        "node/tests/story/signals.rs",
        "a_schedule_sends_its_message_once_also_when_the_node_is_killed_right_behind_it",
    ),
    (
        "schedule",
        "expired",
        "kernel/tests/it/way.rs",
        "a_schedule_fires_once_at_each_of_its_instants_and_permits_nothing",
    ),
    ("schedule", "older law", "kernel/tests/it/laws.rs", "no_surface_keeps_an_older_constitution"),
    ("hook", "none", "kernel/tests/it/spine.rs", "a_nested_action_has_a_verdict_of_its_own"),
    ("hook", "another's", "kernel/tests/it/spine.rs", "a_guest_has_no_more_rights_two_calls_deep_than_one"),
    ("hook", "changed", "kernel/tests/compile_fail.rs", "there_is_no_way_to_a_permit_but_the_door"),
    ("hook", "used", "kernel/tests/it/ends.rs", "a_driver_that_keeps_its_context_can_do_nothing_with_it_afterwards"),
    ("hook", "expired", "kernel/tests/it/ends.rs", "a_driver_that_overruns_or_ignores_its_cancellation_is_ended"),
    ("hook", "older law", "kernel/tests/it/laws.rs", "no_surface_keeps_an_older_constitution"),
    ("model", "none", "kernel/tests/it/spine.rs", "what_makes_no_sense_is_denied_on_the_record_and_never_runs"),
    ("model", "another's", "kernel/tests/it/spine.rs", "a_session_names_only_its_own_spans_answers_and_uses"),
    (
        "model",
        "changed",
        "kernel/tests/it/rulings.rs",
        "a_deferred_call_runs_only_once_its_own_operator_permits_exactly_it",
    ),
    ("model", "used", "kernel/tests/it/spine.rs", "a_tool_use_runs_once_however_often_it_is_called_at_once"),
    ("model", "expired", "kernel/tests/it/rulings.rs", "a_ruling_after_the_turn_was_cancelled_lets_nothing_run"),
    ("model", "older law", "kernel/tests/it/laws.rs", "no_permit_is_made_under_a_law_that_is_over"),
];

#[test]
fn every_surface_has_a_test_for_every_permit_that_does_not_count() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut cells = BTreeSet::new();
    for (surface, case, file, test) in CELLS {
        assert!(cells.insert((surface, case)), "{surface}, {case}: twice");
        let source = fs::read_to_string(root.join(file)).unwrap();
        let (before, _) =
            source.split_once(&format!("fn {test}(")).unwrap_or_else(|| panic!("{file} has no test {test}"));
        let attribute = before.rsplit("\n\n").next().unwrap();
        assert!(attribute.contains("#[test]") || attribute.contains("#[tokio::test"), "{test} is no test");
        assert!(!attribute.contains("ignore"), "{test} is not run");
    }
    let all: BTreeSet<_> = SURFACES.into_iter().flat_map(|surface| CASES.map(|case| (surface, case))).collect();
    assert_eq!(cells, all);
}

#[tokio::test]
async fn a_seat_is_opened_with_no_more_rights_than_the_seats_above_it() {
    let tool = Does::saying("written");
    let capabilities = Capability::ALL.into_iter().filter(|one| *one != Capability::FsWrite).collect();
    let policy = OperatorPolicy { capabilities, ..OperatorPolicy::default() };
    let world = Setup { policy, ..Setup::new() }.tool(writer("t.write"), tool.clone()).boot().await;
    let spec = SessionSpec { rights: Rights::of(Capability::ALL), ..world.spec() };
    let mut puppet = world.puppet_with(PLENTY, spec).await;
    world.kernel.rule(world.allow(puppet.session, &["t.write"])).await.unwrap();
    let (process, _end) = puppet.in_turn("write to a").await;
    assert_eq!(code(&done(&process, direct("t.write", r#"{"path":"a"}"#)).await), "Denied");
    assert_eq!(tool.runs(), 0);
    let facts = world.facts(puppet.session).await;
    let rights = facts.iter().find_map(|fact| if let Fact::Opened { rights, .. } = fact { Some(rights) } else { None });
    assert!(!rights.unwrap().contains(&Capability::FsWrite), "the record has what it got, not what it asked for");
}

#[tokio::test]
async fn a_seat_that_was_given_no_rights_may_ask_for_nothing() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let spec = SessionSpec { rights: Rights::default(), ..world.spec() };
    let mut puppet = world.puppet_with(PLENTY, spec).await;
    let (process, _end) = puppet.in_turn("go").await;
    for action in [direct("t.read", "{}"), ask(vec![SpanId(1)])] {
        assert_eq!(code(&done(&process, action).await), "Denied");
    }
    assert_eq!(tool.runs(), 0);
}

#[tokio::test]
async fn what_an_incarnation_has_used_is_used_for_the_one_spawned_after_it() {
    let tool = Does::saying("x");
    let world = Setup::new().tool(reader("t.read"), tool.clone()).boot().await;
    let mut puppet = world.puppet(Budget { tool_calls: 1, ..PLENTY }).await;
    let (first, end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&first, direct("t.read", "{}")).await), "done");
    end.send(End::Error).unwrap();
    let (second, _end) = puppet.born().await;
    assert_eq!(code(&done(&second, direct("t.read", "{}")).await), "BudgetSpent");
    assert_eq!(tool.runs(), 1);
}

#[tokio::test]
async fn a_schedule_fires_once_at_each_of_its_instants_and_permits_nothing() {
    let tool = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let part = || vec![Part { kind: PartKind::Typed, text: "write to a".into() }];
    let fire = |name: &'static str, at| world.kernel.fire(puppet.session, part(), None, name, Timestamp(at));
    assert!(matches!(fire("daily", 10).await, Err(NotAccepted::Again(_))), "there is none of that name");
    let errand = Errand { parts: part(), workspace: "/tmp".into(), model: None, agent: None, scope: None };
    world.kernel.schedule(world.who(), "daily", "0 7 * * *".into(), "UTC".into(), Missed::Once, errand).await.unwrap();
    assert!(matches!(fire("weekly", 10).await, Err(NotAccepted::Again(_))), "another's instant");
    fire("daily", 10).await.unwrap();
    assert!(matches!(fire("daily", 10).await, Err(NotAccepted::Again(_))), "used");
    assert!(matches!(fire("daily", 9).await, Err(NotAccepted::Again(_))), "over");
    world.kernel.unschedule(world.who(), "daily").await.unwrap();
    assert!(matches!(fire("daily", 11).await, Err(NotAccepted::Again(_))), "taken off");
    let (process, _end) = puppet.born().await;
    assert!(matches!(process.receive().await, Incoming::Message(_)));
    assert_eq!(code(&done(&process, direct("t.write", r#"{"path":"a"}"#)).await), "Denied", "nobody is there to ask");
    assert_eq!(tool.runs(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_for_an_operator_behind_their_dismissal_however_close() {
    let world = Setup::new().boot().await;
    let part = || vec![Part { kind: PartKind::Typed, text: "write to a".into() }];
    let mut sent = 0;
    for round in 0..40u8 {
        let operator = operator_id(&world.enrol(100 + round, Role::Operator).await.verifying_key());
        let puppet = world.puppet_with(PLENTY, SessionSpec { operator, ..world.spec() }).await;
        let (name, errand) = (
            format!("s{round}"),
            Errand { parts: part(), workspace: "/tmp".into(), model: None, agent: None, scope: None },
        );
        world.kernel.schedule(operator, &name, "* * * * *".into(), "UTC".into(), Missed::Once, errand).await.unwrap();
        let many = Arc::new(AtomicU64::new(0));
        let fires = {
            let (kernel, name, session, many) = (world.kernel.clone(), name.clone(), puppet.session, many.clone());
            tokio::spawn(async move {
                let mut at = 0;
                loop {
                    at += 1;
                    match kernel.fire(session, part(), None, &name, Timestamp(at)).await {
                        Ok(_) => drop(many.fetch_add(1, Ordering::SeqCst)),
                        Err(NotAccepted::Full(_)) => tokio::task::yield_now().await,
                        Err(refused) => return refused,
                    }
                }
            })
        };
        // In the middle of one.
        while many.load(Ordering::SeqCst) < u64::from(round) {
            tokio::task::yield_now().await;
        }
        world.decree(Decree::Dismiss { operator }).await.unwrap();
        let refused = fires.await.unwrap();
        assert!(matches!(refused, NotAccepted::Again(_) | NotAccepted::NoSession(_)), "{refused:?}");
        sent += many.load(Ordering::SeqCst);
        let behind =
            world.record().await.into_iter().skip_while(
                |one| !matches!(&one.entry.fact, Fact::Dismissed { operator: gone, .. } if *gone == operator),
            );
        let fired = |one: &ephor_chain::Stored| {
            one.entry.subject.operator == Some(operator) && matches!(one.entry.fact, Fact::Message { .. })
        };
        assert_eq!(behind.filter(fired).count(), 0, "it was sent behind their dismissal");
    }
    println!("{sent} were sent before their operators were dismissed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dismissal_ends_the_sessions_of_its_operator_and_no_others() {
    let world = Setup::new().boot().await;
    let part = || vec![Part { kind: PartKind::Typed, text: "write to a".into() }];
    let operator = operator_id(&world.enrol(90, Role::Operator).await.verifying_key());
    let theirs = world.puppet_with(PLENTY, SessionSpec { operator, ..world.spec() }).await;
    let own = world.puppet_with(PLENTY, world.spec()).await;
    let message = world.kernel.send(theirs.session, part()).await.unwrap();
    world.decree(Decree::Dismiss { operator }).await.unwrap();
    let refused = world.kernel.send(theirs.session, part()).await;
    assert!(matches!(refused, Err(NotAccepted::NoSession(_))), "{refused:?}");
    assert!(world.kernel.dead_letters().iter().any(|letter| letter.message == message), "what was asked is not lost");
    world.kernel.send(own.session, part()).await.unwrap();
    // Nothing begins in their name, however it was on its way.
    let session = SessionSpec { operator, ..world.spec() };
    let spec = AgentSpec { session, budget: PLENTY, body: world.no_body() };
    assert_eq!(world.kernel.open_session(spec).await, Err(NotStarted::Dismissed));
}
