//! Messages that one session sends to another: the record says where they come from, and nobody can say otherwise.

use ephor_base::{Part, PartKind, SessionId};
use ephor_chain::record::Fact;
use ephor_kernel::{Incoming, NotAccepted, Process, Retrial};

use crate::world::{Does, PLENTY, Setup, World, direct, done, writer};

fn words(text: &str) -> Vec<Part> {
    // It says of itself that a person has typed it, which counts for nothing.
    vec![Part { kind: PartKind::Typed, text: text.to_owned() }]
}

/// Where the messages of a session say that they come from, in order.
async fn origins(world: &World, session: SessionId) -> Vec<Option<SessionId>> {
    let facts = world.facts(session).await.into_iter();
    let from = facts.filter_map(|fact| match fact {
        Fact::Message { from, .. } => Some(from),
        _ => None,
    });
    from.collect()
}

#[tokio::test]
async fn whoever_erases_a_session_is_told_of_all_that_came_out_of_it() {
    let world = Setup::new().boot().await;
    let (mut anna, mut bert, mut carl) =
        (world.puppet(PLENTY).await, world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let dora = world.puppet(PLENTY).await;
    let (of_anna, _anna) = anna.in_turn("what nobody else may read").await;
    world.kernel.delegate(&of_anna, bert.session, words("pass it on")).await.unwrap();
    let (of_bert, _bert) = bert.born().await;
    assert!(matches!(of_bert.receive().await, Incoming::Message(_)));
    world.kernel.delegate(&of_bert, carl.session, words("passed on")).await.unwrap();
    carl.say("something else").await;
    dora.say("nothing of that").await;
    let (of_carl, _carl) = carl.born().await;
    assert!(matches!(of_carl.receive().await, Incoming::Message(_)));

    assert_eq!(origins(&world, anna.session).await, [None]);
    assert_eq!(origins(&world, bert.session).await, [Some(anna.session)]);
    assert_eq!(origins(&world, carl.session).await, [Some(bert.session), None]);
    let mut both = vec![bert.session, carl.session];
    both.sort();
    assert_eq!(world.log.derived(anna.session).unwrap(), both);
    assert_eq!(world.log.derived(bert.session).unwrap(), [carl.session]);
    assert_eq!(world.log.derived(dora.session).unwrap(), []);
    world.log.flush().await.unwrap();
    let operator = world.spec().operator;
    let derived = world.log.derived(anna.session).unwrap();
    let erased = world.log.erase(anna.session, derived, "asked for".into(), operator).await.unwrap();
    assert_eq!(erased.derived, both);
}

#[tokio::test]
async fn a_process_that_is_over_or_has_no_session_delegates_nothing() {
    let world = Setup::new().boot().await;
    let (mut anna, bert) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let (process, end) = anna.in_turn("say something").await;
    drop(end);
    let over = async |process: &Process| world.kernel.delegate(process, bert.session, words("late")).await;
    world.kernel.close_session(anna.session).await;
    assert!(matches!(over(&process).await, Err(NotAccepted::NoOrigin(pid)) if pid == process.pid()));
    assert_eq!(origins(&world, bert.session).await, []);
    let nobody = SessionId([9; 16]);
    let (of_bert, _bert) = {
        let mut bert = bert;
        bert.born().await
    };
    assert!(matches!(
        world.kernel.delegate(&of_bert, nobody, words("to nobody")).await,
        Err(NotAccepted::NoSession(session)) if session == nobody
    ));
}

#[tokio::test]
async fn what_another_session_says_vouches_for_nothing_and_is_so_decided_again() {
    let writes = Does::saying("written");
    let world = Setup::new().tool(writer("t.write"), writes.clone()).boot().await;
    let (mut anna, mut bert, mut carl) =
        (world.puppet(PLENTY).await, world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let write = || direct("t.write", r#"{"path":"all.txt"}"#);
    let (of_anna, _anna) = anna.in_turn("pass it on").await;
    // A person's words, and the very same from another session. Both are asked about, for it writes.
    let (of_bert, _bert) = bert.in_turn("write to all.txt").await;
    assert!(done(&of_bert, write()).await.is_err());
    world.kernel.delegate(&of_anna, carl.session, words("write to all.txt")).await.unwrap();
    let (of_carl, _carl) = carl.born().await;
    assert!(matches!(of_carl.receive().await, Incoming::Message(_)));
    assert!(done(&of_carl, write()).await.is_err());
    assert_eq!(writes.runs(), 0);

    let record = world.record().await;
    let mut retrial = Retrial::default();
    let again: Vec<_> = record.iter().filter_map(|stored| retrial.take(stored)).collect();
    assert!(again.iter().all(ephor_kernel::Retried::is_same), "{again:?}");
    let doubted: Vec<bool> = again.iter().map(|one| format!("{:?}", one.again).contains("untrusted:peer")).collect();
    // Each was asked about, and then refused, since nobody was there to ask.
    assert_eq!(doubted, [false, false, true, true], "{again:?}");
}
