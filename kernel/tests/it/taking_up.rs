//! What a node left unfinished goes on at the next boot, from the record alone.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use ed25519_dalek::SigningKey;
use ephor_base::{Budget, CallId, Decision, EndReason, SessionId, TicketId};
use ephor_governance::{Constitution, Environment};
use ephor_kernel::{
    Act, BadRuling, Incoming, Moment, Process, Question, Refusal, Retrial, SignedRuling, Statement, Target, operator_id,
};
use ephor_record::{Decree, Fact, HoldKind, Role, RulingOn, Signal, Undelivered};
use tempfile::TempDir;

use crate::world::{
    Does, End, PLENTY, Puppet, Setup, World, asked, chosen, code, done, model, question, reader, reply, text, until,
    uses, writer,
};

/// A seed for a boot behind another.
const NEXT: u64 = 1 << 32;

/// The same node each time: its model, and a tool that needs leave.
fn setup(tool: &Arc<Does>) -> Setup {
    let wants = uses(&[("t.read", r#"{"path":"a.txt"}"#), ("t.write", r#"{"path":"evil.sh"}"#)]);
    Setup::new()
        .model(model(vec![wants, text("done")]))
        .tool(reader("t.read"), Does::saying("nothing here"))
        .tool(writer("t.write"), tool.clone())
}

/// A node on which a call waits for a person.
struct Waiting {
    world: World,
    puppet: Puppet,
    process: Process,
    of: CallId,
    asked: Question,
    end: tokio::sync::oneshot::Sender<End>,
}

async fn waiting(tool: &Arc<Does>) -> Waiting {
    waiting_in(setup(tool)).await
}

async fn waiting_in(setup: Setup) -> Waiting {
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, end) = puppet.in_turn("write something").await;
    let of = asked(&process).await;
    assert_eq!(code(&done(&process, chosen(of, 0)).await), "done");
    let call = process.call(chosen(of, 1)).unwrap();
    let asked = question(&mut seen).await;
    // The call goes on by itself, as long as its world does.
    tokio::spawn(call.ended());
    Waiting { world, puppet, process, of, asked, end }
}

/// The node that follows on this home, and the agent of the session there.
async fn next(home: Arc<TempDir>, setup: Setup, session: SessionId) -> (World, Puppet) {
    let world = setup.take_up_in(home, NEXT).await;
    assert_eq!(world.gone_on, [session]);
    let puppet = world.taken_up(session);
    (world, puppet)
}

fn yes(world: &World, asked: &Question) -> SignedRuling {
    permit(asked, &world.operator)
}

fn permit(asked: &Question, key: &SigningKey) -> SignedRuling {
    Statement::on_ticket(asked, Decision::Permit).sign(key)
}

/// The same node under a law by which a write takes two people.
fn two_people(tool: &Arc<Does>) -> Setup {
    static LAW: LazyLock<String> = LazyLock::new(|| {
        let more = r#"@id("two-people") @decision("defer") @quorum("2") forbid (principal, action == Action::"run", resource == Tool::"t.write");"#;
        format!("{}\n{more}\n", Constitution::default_text(Environment::Dev))
    });
    Setup { law: Some(&LAW), ..setup(tool) }
}

fn other_law(setup: Setup) -> Setup {
    Setup { law: Some(Constitution::default_text(Environment::Staging)), ..setup }
}

fn other_tool(setup: Setup) -> Setup {
    let mut tools = setup.tools;
    tools[1].0.description.push_str(", changed");
    Setup { tools, ..setup }
}

/// What a question is bound to and may be another at the next boot.
const CHANGES: [fn(Setup) -> Setup; 2] = [other_law, other_tool];

/// Every verdict on the record is decided again, and comes out the same.
async fn assert_all_same(world: &World) {
    let mut retrial = Retrial::default();
    for stored in world.record().await {
        if let Some(one) = retrial.take(&stored) {
            assert!(one.is_same(), "entry {}: {:?} came out as {:?}", one.seq, one.recorded, one.again);
        }
    }
}

async fn hows(world: &World, session: SessionId) -> Vec<String> {
    let facts = world.facts(session).await.into_iter();
    facts.filter_map(|fact| if let Fact::Ruling { how, .. } = fact { Some(how) } else { None }).collect()
}

/// Ends the turn with the next answer of the model.
async fn finish(process: &Process) {
    let of = asked(process).await;
    assert_eq!(code(&done(process, reply(Some(of))).await), "done");
    assert!(!process.is_in_turn());
}

#[tokio::test]
async fn a_ticket_outlives_its_node_and_its_call_runs_once() {
    let tool = Does::saying("written");
    let Waiting { world, puppet, of, asked, process: _process, end: _end } = waiting(&tool).await;
    let early = yes(&world, &asked);
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let (world, mut puppet) = next(home, setup(&tool), session).await;
    let (again, left) = world.kernel.questions().remove(0);
    assert_eq!((again.ticket, again.call, again.digest), (asked.ticket, asked.call, asked.digest));
    assert_eq!((&again.arguments, again.expires), (&asked.arguments, asked.expires));
    assert!(left <= Duration::from_secs(300));
    // Attacks: another key, another call, other arguments, another registration.
    let forger = SigningKey::from_bytes(&[9; 32]);
    let good = Statement::on_ticket(&again, Decision::Permit);
    assert_eq!(world.kernel.rule(good.clone().sign(&forger)).await, Err(BadRuling::NotAnOperator));
    for bad in [
        Statement { call: Some(CallId(99)), ..good.clone() },
        Statement { call: None, ..good.clone() },
        Statement { registration: Some(ephor_base::Digest::of(b"other")), ..good.clone() },
        Statement { arguments: ephor_base::Digest::of(b"other"), ..good.clone() },
        Statement { policy: ephor_base::Digest::of(b"other"), ..good.clone() },
        Statement { decision: Decision::Defer, ..good.clone() },
    ] {
        assert_eq!(world.kernel.rule(bad.sign(&world.operator)).await, Err(BadRuling::OtherCall));
    }
    assert_eq!(tool.runs(), 0);
    // It was signed for exactly this before the crash, and counts.
    world.kernel.rule(early.clone()).await.unwrap();
    assert_eq!(world.kernel.rule(early.clone()).await, Err(BadRuling::NotOpen(asked.ticket)));
    let (process, _end) = puppet.born().await;
    assert!(process.is_in_turn());
    assert!(matches!(process.transcript()[..], [Moment::Said(_), Moment::Answered { .. }, Moment::Result { .. }]));
    assert!(matches!(done(&process, chosen(of, 0)).await, Err(Refusal::Repeated(_))));
    assert_eq!(code(&done(&process, chosen(of, 1)).await), "done");
    assert_eq!(tool.runs(), 1);
    assert_eq!(world.kernel.rule(early.clone()).await, Err(BadRuling::NotOpen(asked.ticket)));
    assert!(matches!(done(&process, chosen(of, 1)).await, Err(Refusal::Repeated(_))));
    finish(&process).await;
    assert_eq!((tool.runs(), hows(&world, session).await), (1, vec!["answered".to_owned()]));
    assert_all_same(&world).await;
    // Nothing is left for another boot.
    let home = world.crashed();
    drop(world);
    let world = setup(&tool).take_up_in(home, NEXT << 1).await;
    assert_eq!((world.gone_on.len(), world.kernel.questions().len()), (0, 0));
    assert_eq!(world.kernel.rule(early).await, Err(BadRuling::NotOpen(asked.ticket)));
}

#[tokio::test]
async fn a_no_to_a_ticket_of_an_earlier_node_is_told_to_the_model() {
    let tool = Does::saying("written");
    let Waiting { world, puppet, of, asked, process: _process, end: _end } = waiting(&tool).await;
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let (world, mut puppet) = next(home, setup(&tool), session).await;
    let (process, _end) = puppet.born().await;
    let call = process.call(chosen(of, 1)).unwrap();
    let no = Statement::on_ticket(&asked, Decision::Deny).sign(&world.operator);
    world.kernel.rule(no).await.unwrap();
    assert_eq!(code(&call.ended().await), "Denied");
    assert_eq!(world.kernel.rule(yes(&world, &asked)).await, Err(BadRuling::NotOpen(asked.ticket)));
    finish(&process).await;
    assert_eq!(tool.runs(), 0);
    assert_all_same(&world).await;
}

#[tokio::test]
async fn a_ticket_whose_time_passed_while_no_node_ran_is_refused() {
    let tool = Does::saying("written");
    let Waiting { world, puppet, of, asked, process: _process, end: _end } = waiting(&tool).await;
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let later = Setup { later: Duration::from_secs(301), ..setup(&tool) };
    let (world, mut puppet) = next(home, later, session).await;
    assert_eq!(world.kernel.questions().len(), 0);
    assert_eq!(world.kernel.rule(yes(&world, &asked)).await, Err(BadRuling::NotOpen(asked.ticket)));
    let (process, _end) = puppet.born().await;
    assert_eq!(code(&done(&process, chosen(of, 1)).await), "Denied");
    finish(&process).await;
    assert_eq!((tool.runs(), hows(&world, session).await), (0, vec!["expired".to_owned()]));
    assert_all_same(&world).await;
}

#[tokio::test]
async fn a_clock_that_is_set_forward_ends_a_ticket_and_no_answer_counts_behind_that() {
    let tool = Does::saying("written");
    let Waiting { world, puppet, of: _, asked, process, end: _end } = waiting(&tool).await;
    world.clock.advance(Duration::from_secs(301));
    let late = world.kernel.rule(yes(&world, &asked)).await;
    assert!(matches!(late, Err(BadRuling::Expired(_) | BadRuling::NotOpen(_))), "{late:?}");
    until(|| process.transcript().len() == 4).await;
    assert_eq!((tool.runs(), hows(&world, puppet.session).await), (0, vec!["expired".to_owned()]));
}

#[tokio::test]
async fn an_answer_that_was_recorded_before_the_crash_is_used_once_behind_it() {
    let tool = Does::saying("written");
    let Waiting { world, mut puppet, of, asked, process, end: _end } = waiting(&tool).await;
    let session = puppet.session;
    // The incarnation that waited is gone, and the next has not come so far.
    assert!(world.kernel.kill(process.pid()));
    let (process, _end) = puppet.born().await;
    world.kernel.rule(yes(&world, &asked)).await.unwrap();
    let home = world.crashed();
    assert_eq!(code(&done(&process, chosen(of, 1)).await), "done");
    assert_eq!(tool.runs(), 1);
    assert_all_same(&world).await;
    drop(world);
    let (world, mut puppet) = next(home, setup(&tool), session).await;
    assert_eq!(world.kernel.questions().len(), 0);
    let (process, _end) = puppet.born().await;
    assert_eq!(code(&done(&process, chosen(of, 1)).await), "done");
    assert!(matches!(done(&process, chosen(of, 1)).await, Err(Refusal::Repeated(_))));
    finish(&process).await;
    assert_eq!(tool.runs(), 2, "once on each of the two copies");
    assert_all_same(&world).await;
}

#[tokio::test]
async fn a_quorum_that_was_half_met_goes_on_where_it_was() {
    let tool = Does::saying("written");
    let Waiting { world, puppet, of, asked, process: _process, end: _end } = waiting_in(two_people(&tool)).await;
    let (one, two) = (world.enrol(50, Role::Approver).await, world.enrol(51, Role::Approver).await);
    assert_eq!(world.kernel.rule(permit(&asked, &one)).await, Ok(1));
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let (world, mut puppet) = next(home, two_people(&tool), session).await;
    let (again, _) = world.kernel.questions().remove(0);
    assert_eq!((again.ticket, again.quorum), (asked.ticket, 2));
    let (process, _end) = puppet.born().await;
    let call = process.call(chosen(of, 1)).unwrap();
    assert_eq!(world.kernel.rule(permit(&again, &one)).await, Ok(1), "the same person on both sides of the boot");
    assert_eq!(tool.runs(), 0);
    assert_eq!(world.kernel.rule(permit(&again, &two)).await, Ok(0));
    assert_eq!((code(&call.ended().await).as_str(), tool.runs()), ("done", 1));
    assert_eq!(world.kernel.rule(permit(&again, &two)).await, Err(BadRuling::NotOpen(asked.ticket)));
    finish(&process).await;
    assert_eq!(hows(&world, session).await, vec!["answered"; 3]);
    assert_all_same(&world).await;
}

#[tokio::test]
async fn whoever_was_removed_before_the_boot_counts_no_more_behind_it() {
    let tool = Does::saying("written");
    let Waiting { world, mut puppet, of, asked, process, end: _end } = waiting_in(two_people(&tool)).await;
    let (one, two) = (world.enrol(50, Role::Approver).await, world.enrol(51, Role::Approver).await);
    let session = puppet.session;
    // Both said yes, and nobody has made use of it.
    assert!(world.kernel.kill(process.pid()));
    let (_process, _end) = puppet.born().await;
    assert_eq!(world.kernel.rule(permit(&asked, &one)).await, Ok(1));
    assert_eq!(world.kernel.rule(permit(&asked, &two)).await, Ok(0));
    world.decree(Decree::Dismiss { operator: operator_id(&one.verifying_key()) }).await.unwrap();
    let home = world.crashed();
    drop(world);
    let (world, mut puppet) = next(home, two_people(&tool), session).await;
    assert_eq!(world.kernel.questions().remove(0).0.ticket, asked.ticket);
    let (process, _end) = puppet.born().await;
    let call = process.call(chosen(of, 1)).unwrap();
    assert_eq!(world.kernel.rule(permit(&asked, &one)).await, Err(BadRuling::NotAnOperator));
    assert_eq!(tool.runs(), 0);
    assert_eq!(world.kernel.rule(yes(&world, &asked)).await, Ok(0), "the owner and the other one");
    assert_eq!((code(&call.ended().await).as_str(), tool.runs()), ("done", 1));
    finish(&process).await;
    assert_all_same(&world).await;
}

#[tokio::test]
async fn a_yes_that_nobody_used_lapses_with_its_law_or_its_tool() {
    for change in CHANGES {
        let tool = Does::saying("written");
        let Waiting { world, mut puppet, of, asked, process, end: _end } = waiting(&tool).await;
        let session = puppet.session;
        assert!(world.kernel.kill(process.pid()));
        let (_process, _end) = puppet.born().await;
        world.kernel.rule(yes(&world, &asked)).await.unwrap();
        let home = world.crashed();
        drop(world);
        let (world, mut puppet) = next(home, change(setup(&tool)), session).await;
        let (process, _end) = puppet.born().await;
        let mut seen = world.kernel.watch(session, true);
        let call = process.call(chosen(of, 1)).unwrap();
        let anew = question(&mut seen).await;
        assert_ne!(anew.ticket, asked.ticket);
        assert_eq!(tool.runs(), 0);
        world.kernel.rule(yes(&world, &anew)).await.unwrap();
        assert_eq!((code(&call.ended().await).as_str(), tool.runs()), ("done", 1));
        assert_eq!(hows(&world, session).await, ["answered", "lapsed", "answered"]);
        finish(&process).await;
        assert_all_same(&world).await;
    }
}

#[tokio::test]
async fn under_another_law_or_another_registration_a_ticket_lapses_and_its_call_is_decided_anew() {
    for change in CHANGES {
        let tool = Does::saying("written");
        let Waiting { world, puppet, of, asked, process: _process, end: _end } = waiting(&tool).await;
        let (session, home, early) = (puppet.session, world.crashed(), yes(&world, &asked));
        drop(world);
        let (world, mut puppet) = next(home, change(setup(&tool)), session).await;
        assert_eq!(world.kernel.questions().len(), 0);
        assert_eq!(world.kernel.rule(early.clone()).await, Err(BadRuling::NotOpen(asked.ticket)));
        let (process, _end) = puppet.born().await;
        let mut seen = world.kernel.watch(session, true);
        let call = process.call(chosen(of, 1)).unwrap();
        let anew = question(&mut seen).await;
        assert_ne!(anew.ticket, asked.ticket);
        assert_eq!((anew.call, anew.digest), (asked.call, asked.digest));
        let replayed = SignedRuling {
            statement: Statement { on: RulingOn::Ticket(anew.ticket), ..early.statement.clone() },
            ..early.clone()
        };
        assert_eq!(world.kernel.rule(replayed).await, Err(BadRuling::NotAnOperator));
        let bound = Statement { on: RulingOn::Ticket(anew.ticket), ..early.statement };
        assert_eq!(world.kernel.rule(bound.sign(&world.operator)).await, Err(BadRuling::OtherCall));
        world.kernel.rule(yes(&world, &anew)).await.unwrap();
        assert_eq!(code(&call.ended().await), "done");
        assert_eq!((tool.runs(), hows(&world, session).await), (1, vec!["lapsed".into(), "answered".into()]));
        finish(&process).await;
        assert_all_same(&world).await;
    }
}

#[tokio::test]
async fn what_was_cut_off_is_made_again_under_its_call_and_what_was_finished_is_not() {
    let slow = Does::new(|_, context| async move {
        context.cancelled().await;
        crate::world::said("late")
    });
    let quick = Does::saying("read");
    let wants = || model(vec![uses(&[("t.quick", "{}"), ("t.slow", "{}")]), text("done")]);
    let node = |slow: &Arc<Does>, quick: &Arc<Does>| {
        Setup::new().model(wants()).tool(reader("t.quick"), quick.clone()).tool(reader("t.slow"), slow.clone())
    };
    let world = node(&slow, &quick).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("go").await;
    let of = asked(&process).await;
    done(&process, chosen(of, 0)).await.unwrap();
    let mut call = process.call(chosen(of, 1)).unwrap();
    crate::world::running(&mut call).await;
    let (session, home) = (puppet.session, world.crashed());
    let used = world.account(&process).used;
    drop(world);
    let again = Does::saying("at last");
    let (world, mut puppet) = next(home, node(&again, &quick), session).await;
    let (process, _end) = puppet.born().await;
    assert!(process.is_in_turn());
    assert!(world.account(&process).used.tool_calls > used.tool_calls, "what was cut off counts as used");
    assert_eq!(world.account(&process).used.messages, 1);
    assert!(matches!(done(&process, chosen(of, 0)).await, Err(Refusal::Repeated(_))));
    assert_eq!(code(&done(&process, chosen(of, 1)).await), "done");
    finish(&process).await;
    assert_eq!((slow.runs(), quick.runs(), again.runs()), (1, 1, 1));
    let attempts: Vec<u32> = world
        .facts(session)
        .await
        .iter()
        .filter_map(|fact| match fact {
            Fact::Verdict { target, attempt, .. } if target == "t.slow" => Some(*attempt),
            _ => None,
        })
        .collect();
    assert_eq!(attempts, [1, 2]);
    assert_all_same(&world).await;
}

#[tokio::test]
async fn what_may_not_be_done_twice_is_not_made_again_after_it_was_cut_off_and_the_model_is_told() {
    let hangs = || Does::new(|_, _| std::future::pending());
    let node = |tool: &Arc<Does>| {
        Setup::new()
            .model(model(vec![uses(&[("t.write", r#"{"path":"a"}"#)]), text("done")]))
            .tool(writer("t.write"), tool.clone())
    };
    let world = node(&hangs()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    world.kernel.rule(world.allow(puppet.session, &["t.write"])).await.unwrap();
    let (process, _end) = puppet.in_turn("go").await;
    let of = asked(&process).await;
    let mut call = process.call(chosen(of, 0)).unwrap();
    crate::world::running(&mut call).await;
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let again = Does::saying("twice");
    let (world, mut puppet) = next(home, node(&again), session).await;
    let (process, _end) = puppet.born().await;
    let told = process.transcript();
    assert!(told.iter().any(|moment| matches!(moment, Moment::Result { index: 0, ok: false, .. })), "{told:?}");
    assert!(
        matches!(done(&process, chosen(of, 0)).await, Err(Refusal::Repeated(_))),
        "it is permitted, and not made again"
    );
    finish(&process).await;
    assert_eq!(again.runs(), 0);
    assert_all_same(&world).await;
}

#[tokio::test]
async fn what_may_not_be_done_twice_is_not_made_again_by_the_next_incarnation() {
    let hangs = Does::new(|_, _| std::future::pending());
    let world = Setup::new()
        .model(model(vec![uses(&[("t.write", r#"{"path":"a"}"#)]), text("done")]))
        .tool(writer("t.write"), hangs.clone())
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    world.kernel.rule(world.allow(puppet.session, &["t.write"])).await.unwrap();
    let (process, end) = puppet.in_turn("go").await;
    let of = asked(&process).await;
    let mut call = process.call(chosen(of, 0)).unwrap();
    crate::world::running(&mut call).await;
    end.send(End::Panic).unwrap();
    let (process, _end) = puppet.born().await;
    assert!(matches!(done(&process, chosen(of, 0)).await, Err(Refusal::Repeated(_))));
    assert_eq!((code(&call.ended().await).as_str(), hangs.runs()), ("cancelled", 1));
    assert_all_same(&world).await;
}

#[tokio::test]
async fn messages_that_waited_are_answered_in_their_order_each_once() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("one").await;
    asked(&process).await;
    puppet.say("two").await;
    puppet.say("three").await;
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let (world, mut puppet) = next(home, Setup::new(), session).await;
    let (process, _end) = puppet.born().await;
    assert!(matches!(process.transcript()[..], [Moment::Said(_), Moment::Answered { .. }]));
    assert_eq!(code(&done(&process, reply(None)).await), "done");
    for _ in 0..2 {
        assert!(matches!(process.receive().await, Incoming::Message(_)));
        assert_eq!(code(&done(&process, reply(None)).await), "done");
    }
    world.kernel.at_rest().await;
    let ends = |fact: &&Fact| matches!(fact, Fact::TurnEnd { .. });
    assert_eq!(world.facts(session).await.iter().filter(ends).count(), 3);
    assert_eq!(world.kernel.dead_letters(), []);
    // Whoever comes back finds the last answer, also once the session was put away, or its node has ended.
    assert!(!world.kernel.leave(session).await);
    assert!(world.agent_of(session).is_none());
    let (_puppet, attached) = world.attach(session).await;
    let last = attached.last.unwrap();
    assert!(!attached.works && last.end == EndReason::Replied && last.session == session);
    let home = world.crashed();
    let world = Setup::new().take_up_in(home, NEXT << 1).await;
    assert!(world.gone_on.is_empty());
    let (puppet, attached) = world.attach(session).await;
    assert_eq!(attached.last.map(|reply| reply.text), Some(last.text));
    puppet.say("four").await;
    assert_all_same(&world).await;
}

#[tokio::test]
async fn a_suspended_seat_stays_so_behind_a_boot() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("one").await;
    asked(&process).await;
    let operator = operator_id(&world.operator.verifying_key());
    let act = |signal, seat| Act { operator, signal, target: Target::Seat(seat), tree: true, note: String::new() };
    let (session, seat) = (puppet.session, process.seat().clone());
    world.kernel.signal(act(Signal::Suspend, seat.clone())).await.unwrap();
    let home = world.crashed();
    drop(world);
    let (world, mut puppet) = next(home, Setup::new(), session).await;
    assert_eq!(world.kernel.held(&seat), Some(HoldKind::Suspended));
    // Nothing works, as long as it is held.
    world.kernel.at_rest().await;
    let (process, _end) = puppet.born().await;
    let call = process.call(reply(None)).unwrap();
    world.kernel.signal(act(Signal::Resume, seat)).await.unwrap();
    assert_eq!(code(&call.ended().await), "done");
}

#[tokio::test]
async fn what_nobody_takes_up_is_given_up_on_the_record() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.in_turn("one").await;
    asked(&process).await;
    let world = Setup::new().boot_in(world.crashed(), NEXT).await;
    assert!(world.gone_on.is_empty());
    let letters = world.kernel.dead_letters();
    assert_eq!(letters.iter().map(|letter| letter.why).collect::<Vec<_>>(), [Undelivered::NodeEnded]);
}

#[tokio::test]
async fn a_spent_budget_is_spent_behind_a_boot() {
    let spends = || {
        Does::costing(Budget { tokens: 60, ..Budget::ZERO }, |_, _| async {
            let used = Budget { tokens: 60, ..Budget::ZERO };
            ephor_kernel::DriverResult::done(ephor_base::Product::Model(text("hello")), used)
        })
    };
    let world = Setup::new().model(spends()).boot().await;
    let mut puppet = world.puppet(Budget { tokens: 100, ..PLENTY }).await;
    let (process, _end) = puppet.in_turn("one").await;
    asked(&process).await;
    let (session, home) = (puppet.session, world.crashed());
    drop(world);
    let (_world, mut puppet) = next(home, Setup::new().model(spends()), session).await;
    let (process, _end) = puppet.born().await;
    let again = done(&process, crate::world::ask(vec![ephor_base::SpanId(1)])).await;
    assert!(matches!(again, Err(Refusal::BudgetSpent { .. })), "{again:?}");
}

#[tokio::test]
async fn a_ticket_that_never_was_is_not_open() {
    let tool = Does::saying("written");
    let Waiting { world, asked, puppet: _puppet, process: _process, end: _end, .. } = waiting(&tool).await;
    let never = Statement { on: RulingOn::Ticket(TicketId(999)), ..Statement::on_ticket(&asked, Decision::Permit) };
    assert_eq!(world.kernel.rule(never.sign(&world.operator)).await, Err(BadRuling::NotOpen(TicketId(999))));
}
