//! Deferred actions and those who answer them.

use std::time::Duration;

use ed25519_dalek::SigningKey;
use ephor_base::{Decision, Digest, TicketId, TurnLimit};
use ephor_kernel::{BadRuling, Question, Refusal, SignedRuling, Statement};
use ephor_record::{Fact, RulingOn};

use crate::world::{Does, PLENTY, Puppet, Setup, World, code, direct, done, question, reader, writer};

fn permit(world: &World, asked: &Question) -> Statement {
    world.ruling(asked.session, RulingOn::Ticket(asked.ticket), asked.digest)
}

struct Deferred {
    world: World,
    puppet: Puppet,
    tool: std::sync::Arc<Does>,
    process: ephor_kernel::Process,
    seen: ephor_kernel::Subscription,
    _end: tokio::sync::oneshot::Sender<crate::world::End>,
}

async fn deferred() -> Deferred {
    let tool = Does::saying("written");
    let mut setup = Setup::new();
    setup.patience.ticket = Duration::from_secs(100_000);
    let world = setup
        .tool(writer("t.write"), tool.clone())
        .tool(writer("t.other"), tool.clone())
        .tool(reader("t.read"), Does::saying("x"))
        .boot()
        .await;
    let mut puppet = world.puppet(PLENTY).await;
    let seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    Deferred { world, puppet, tool, process, seen, _end }
}

#[tokio::test]
async fn a_deferred_call_runs_only_once_its_own_operator_permits_exactly_it() {
    let Deferred { world, puppet, tool, process, mut seen, _end } = deferred().await;
    let call = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let asked = question(&mut seen).await;
    let good = permit(&world, &asked);
    let forger = SigningKey::from_bytes(&[9; 32]);
    let signed = |statement: Statement| statement.sign(&world.operator);
    let forged = SignedRuling { operator: signed(good.clone()).operator, ..good.clone().sign(&forger) };
    let cut = SignedRuling { signature: Vec::new(), ..signed(good.clone()) };
    let changed =
        SignedRuling { statement: Statement { decision: Decision::Deny, ..good.clone() }, ..signed(good.clone()) };
    let stranger = good.clone().sign(&forger);
    for bad in [forged, cut, changed, stranger] {
        assert_eq!(world.kernel.rule(bad).await, Err(BadRuling::NotAnOperator));
    }
    let other = world.puppet(PLENTY).await;
    for bad in [
        Statement { session: other.session, ..good.clone() },
        Statement { arguments: Digest::of(b"others"), ..good.clone() },
        Statement { policy: Digest::of(b"older"), ..good.clone() },
    ] {
        assert_eq!(world.kernel.rule(signed(bad)).await, Err(BadRuling::OtherCall));
    }
    let never = Statement { on: RulingOn::Ticket(TicketId(999)), ..good.clone() };
    assert_eq!(world.kernel.rule(signed(never)).await, Err(BadRuling::NotOpen(TicketId(999))));
    assert_eq!(tool.runs(), 0);
    world.kernel.rule(signed(good.clone())).await.unwrap();
    assert_eq!(code(&call.ended().await), "done");
    assert_eq!(tool.runs(), 1);
    // It answers one ticket, once: neither again, nor the same call made anew.
    assert_eq!(world.kernel.rule(signed(good.clone())).await, Err(BadRuling::NotOpen(asked.ticket)));
    let again = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let second = question(&mut seen).await;
    assert_ne!(second.ticket, asked.ticket);
    assert_eq!(world.kernel.rule(signed(good)).await, Err(BadRuling::NotOpen(asked.ticket)));
    let no = Statement { decision: Decision::Deny, ..permit(&world, &second) };
    world.kernel.rule(signed(no)).await.unwrap();
    assert_eq!(code(&again.ended().await), "Denied");
    assert_eq!(tool.runs(), 1);
    let facts = world.facts(puppet.session).await;
    let rulings: Vec<_> = facts
        .iter()
        .filter_map(|fact| match fact {
            Fact::Ruling { decision, how, .. } => Some((*decision, how.as_str())),
            _ => None,
        })
        .collect();
    assert_eq!(rulings, [(Decision::Permit, "answered"), (Decision::Deny, "answered")]);
    let resting = facts.iter().any(
        |fact| matches!(fact, Fact::Verdict { verdict, ruling: Some(_), .. } if verdict.decision == Decision::Permit),
    );
    assert!(resting, "the verdict names the ruling it rests on");
}

#[tokio::test]
async fn two_tickets_at_once_are_answered_each_by_its_own() {
    let Deferred { world, puppet: _puppet, tool, process, mut seen, _end } = deferred().await;
    let one = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let first = question(&mut seen).await;
    let two = process.call(direct("t.write", r#"{"path":"b"}"#)).unwrap();
    let second = question(&mut seen).await;
    let crossed = Statement { arguments: second.digest, ..permit(&world, &first) };
    assert_eq!(world.kernel.rule(crossed.sign(&world.operator)).await, Err(BadRuling::OtherCall));
    world.kernel.rule(permit(&world, &second).sign(&world.operator)).await.unwrap();
    assert_eq!(code(&two.ended().await), "done");
    let no = Statement { decision: Decision::Deny, ..permit(&world, &first) };
    world.kernel.rule(no.sign(&world.operator)).await.unwrap();
    assert_eq!((code(&one.ended().await).as_str(), tool.runs()), ("Denied", 1));
}

#[tokio::test]
async fn without_a_person_the_ticket_is_recorded_and_refused() {
    let tool = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), tool.clone()).boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let _watching = world.kernel.watch(puppet.session, false);
    let (process, _end) = puppet.in_turn("go").await;
    assert_eq!(code(&done(&process, direct("t.write", "{}")).await), "Denied");
    assert_eq!(tool.runs(), 0);
    let facts = world.facts(puppet.session).await;
    let id = facts.iter().find_map(|fact| if let Fact::Ticket { id, .. } = fact { Some(*id) } else { None }).unwrap();
    let answered = |fact: &Fact| matches!(fact, Fact::Ruling { on, decision: Decision::Deny, how, signature, .. } if *on == RulingOn::Ticket(id) && how == "nobody-to-ask" && signature.is_empty());
    assert!(facts.iter().any(answered));
    let late = world.ruling(puppet.session, RulingOn::Ticket(id), Digest::of(b"x")).sign(&world.operator);
    assert_eq!(world.kernel.rule(late).await, Err(BadRuling::NotOpen(id)));
}

#[tokio::test]
async fn a_ticket_that_nobody_answers_in_time_is_denied_and_stays_so() {
    let tool = Does::saying("written");
    let mut setup = Setup::new().tool(writer("t.write"), tool.clone());
    setup.patience.ticket = Duration::from_millis(30);
    let world = setup.boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let mut seen = world.kernel.watch(puppet.session, true);
    let (process, _end) = puppet.in_turn("go").await;
    let call = process.call(direct("t.write", "{}")).unwrap();
    let asked = question(&mut seen).await;
    assert_eq!(code(&call.ended().await), "Denied");
    let late = permit(&world, &asked).sign(&world.operator);
    assert_eq!(world.kernel.rule(late).await, Err(BadRuling::NotOpen(asked.ticket)));
    assert_eq!(tool.runs(), 0);
    let facts = world.facts(puppet.session).await;
    assert!(facts.iter().any(|fact| matches!(fact, Fact::Ruling { how, .. } if how == "expired")));
}

#[tokio::test]
async fn a_ruling_after_the_turn_was_cancelled_lets_nothing_run() {
    let Deferred { world, puppet, tool, process, mut seen, _end } = deferred().await;
    let call = process.call(direct("t.write", "{}")).unwrap();
    let asked = question(&mut seen).await;
    assert!(world.kernel.cancel_turn(puppet.session));
    let ruled = world.kernel.rule(permit(&world, &asked).sign(&world.operator)).await;
    let end = code(&call.ended().await);
    assert!(["Denied", "cancelled"].contains(&end.as_str()), "{end}");
    assert_eq!(tool.runs(), 0);
    // What was taken as answered stands on the record as answered.
    let facts = world.facts(puppet.session).await;
    let recorded = facts.iter().any(|fact| matches!(fact, Fact::Ruling { how, .. } if how == "answered"));
    assert_eq!(recorded, ruled.is_ok());
}

#[tokio::test]
async fn a_standing_ruling_covers_only_its_tools_and_its_session() {
    let tool = Does::saying("written");
    let mut policy = ephor_governance::OperatorPolicy::default();
    policy.never.push("t.never".parse().unwrap());
    let mut setup = Setup::new()
        .tool(writer("t.write"), tool.clone())
        .tool(writer("t.other"), tool.clone())
        .tool(writer("t.never"), tool.clone());
    setup.policy = policy;
    let world = setup.boot().await;
    let (mut mine, mut theirs) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let forger = SigningKey::from_bytes(&[9; 32]);
    let tools = || RulingOn::Tools(vec!["t.write".parse().unwrap(), "t.never".parse().unwrap()]);
    let good = world.ruling(mine.session, tools(), Digest::of(&[]));
    assert_eq!(world.kernel.rule(good.clone().sign(&forger)).await, Err(BadRuling::NotAnOperator));
    for bad in [
        Statement { policy: Digest::of(b"older"), ..good.clone() },
        Statement { arguments: Digest::of(b"some"), ..good.clone() },
        Statement { decision: Decision::Deny, ..good.clone() },
        Statement { decision: Decision::Defer, ..good.clone() },
    ] {
        assert_eq!(world.kernel.rule(bad.sign(&world.operator)).await, Err(BadRuling::OtherCall));
    }
    world.kernel.rule(good.sign(&world.operator)).await.unwrap();
    let (me, _a) = mine.in_turn("go").await;
    let (they, _b) = theirs.in_turn("go").await;
    assert_eq!(code(&done(&me, direct("t.write", "{}")).await), "done");
    assert_eq!(code(&done(&me, direct("t.other", "{}")).await), "Denied");
    assert_eq!(code(&done(&me, direct("t.never", "{}")).await), "Denied");
    assert_eq!(code(&done(&they, direct("t.write", "{}")).await), "Denied");
    assert_eq!(tool.runs(), 1);
    world.kernel.close_session(mine.session).await;
    let late = world.allow(mine.session, &["t.other"]);
    assert_eq!(world.kernel.rule(late).await, Err(BadRuling::NoSession(mine.session)));
}

#[tokio::test]
async fn the_clock_of_a_turn_stands_while_a_person_is_asked() {
    let Deferred { world, puppet: _puppet, process, mut seen, tool: _tool, _end } = deferred().await;
    let one = process.call(direct("t.write", r#"{"path":"a"}"#)).unwrap();
    let first = question(&mut seen).await;
    let two = process.call(direct("t.write", r#"{"path":"b"}"#)).unwrap();
    let second = question(&mut seen).await;
    world.clock.advance(Duration::from_secs(1000));
    assert!(process.turn_time() < Duration::from_secs(500), "{:?}", process.turn_time());
    for asked in [first, second] {
        world.kernel.rule(permit(&world, &asked).sign(&world.operator)).await.unwrap();
    }
    assert_eq!((code(&one.ended().await), code(&two.ended().await)), ("done".into(), "done".into()));
    assert!(process.turn_time() < Duration::from_secs(500), "{:?}", process.turn_time());
    // Two questions at once do not stop it twice.
    world.clock.advance(Duration::from_secs(1000));
    assert!(process.turn_time() >= Duration::from_secs(1000), "{:?}", process.turn_time());
    let refused = done(&process, direct("t.none", "{}")).await;
    assert!(matches!(refused, Err(Refusal::TurnLimit(TurnLimit::Time))), "{refused:?}");
}
