//! Dead letters: stored, read, replayed once, dropped; never both dead and delivered.

use ephor_base::{MessageId, Part, PartKind, SpanId};
use ephor_chain::{Private, Stored};
use ephor_kernel::{Incoming, MAILBOX_CAPACITY, NotAccepted, NotRaised, operator_id};
use ephor_record::{Content, Fact, Pin, Record, Subject, Undelivered};

use crate::world::{Does, PLENTY, Puppet, Setup, World, direct, done, name, reply, until, writer};

fn typed(words: &str) -> Vec<Part> {
    vec![Part { kind: PartKind::Typed, text: words.into() }]
}

/// A session that ended with this message waiting.
async fn lost(world: &World, words: &str) -> MessageId {
    let mut puppet = world.puppet(PLENTY).await;
    let (_process, end) = puppet.born().await;
    puppet.say(words).await;
    drop(end);
    world.kernel.close_session(puppet.session).await;
    world.kernel.dead_letters().last().unwrap().message
}

/// What the session takes next, as words.
async fn taken(world: &World, puppet: &mut Puppet) -> String {
    let (process, _end) = puppet.born().await;
    let Incoming::Message(envelope) = process.receive().await else { panic!("no message") };
    assert!(done(&process, reply(None)).await.is_ok());
    let record = world.record().await;
    format!("{:?}", record[usize::try_from(envelope.seq.0).unwrap()].content)
}

#[tokio::test]
async fn what_waited_when_its_session_ended_is_read_and_replayed_once() {
    let world = Setup::new().boot().await;
    let dead = lost(&world, "remember me").await;
    assert_eq!(world.kernel.dead_letters()[0].why, Undelivered::Stopped);
    assert_eq!(world.kernel.read_letter(dead).await.unwrap(), typed("remember me"));
    let mut next = world.puppet(PLENTY).await;
    let again = world.kernel.replay(world.who(), dead, next.session).await.unwrap();
    assert!(again > dead);
    assert!(taken(&world, &mut next).await.contains("remember me"));
    assert_eq!(world.kernel.dead_letters(), []);
    let other = world.puppet(PLENTY).await;
    assert_eq!(world.kernel.replay(world.who(), dead, other.session).await, Err(NotRaised::NotDead(dead)));
    let operator = operator_id(&world.operator.verifying_key());
    assert_eq!(world.kernel.drop_letter(operator, dead, String::new()).await, Err(NotRaised::NotDead(dead)));
}

#[tokio::test]
async fn what_was_pinned_for_a_dead_letter_is_pinned_for_its_replay() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (_process, end) = puppet.born().await;
    let at = Pin { tool: name("t.write"), targets: Some(vec!["out.txt".into()]) };
    world.kernel.send_pinned(puppet.session, typed("write"), vec![name("t.read").into(), at]).await.unwrap();
    drop(end);
    world.kernel.close_session(puppet.session).await;
    let dead = world.kernel.dead_letters().last().unwrap().message;
    let next = world.puppet(PLENTY).await;
    world.kernel.replay(world.who(), dead, next.session).await.unwrap();
    let pinned = |stored: &Stored| match (&stored.entry.fact, &stored.content) {
        (Fact::Message { scope, .. }, Private::Open(Content::Pinned(pinned))) => {
            Some((scope.clone(), pinned.pins.clone()))
        }
        _ => None,
    };
    let pinned: Vec<_> = world.record().await.iter().filter_map(pinned).collect();
    assert_eq!(pinned.len(), 2);
    assert_eq!(pinned[0], pinned[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_are_sent_at_once_are_read_in_the_order_in_which_they_are_recorded() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    let send = |n: u32| {
        let (kernel, session) = (world.kernel.clone(), puppet.session);
        tokio::spawn(async move { kernel.send(session, typed(&n.to_string())).await.unwrap() })
    };
    let sent = futures_util::future::join_all((0..64).map(send)).await;
    let mut read = Vec::new();
    for _ in &sent {
        let Incoming::Message(envelope) = process.receive().await else { panic!("no message") };
        read.push((envelope.id, envelope.seq));
        done(&process, reply(None)).await.unwrap();
    }
    assert!(read.is_sorted_by(|one, next| one.0 < next.0 && one.1 < next.1), "{read:?}");
}

#[tokio::test]
async fn what_another_session_has_said_is_trusted_for_no_more_when_it_is_replayed() {
    let world = Setup::new().tool(writer("t.write"), Does::saying("written")).boot().await;
    let (anna, mut bert) = (world.puppet(PLENTY).await, world.puppet(PLENTY).await);
    let (process, end) = bert.born().await;
    // Sessions of an earlier version could delegate, and the record has what they said.
    let (session, seat, id) = (Some(bert.session), Some(process.seat().clone()), MessageId(1_000_000));
    let subject = Subject { session, operator: Some(world.who()), seat, ..Subject::default() };
    let (from, spans) = (Some(anna.session), vec![SpanId(1)]);
    let said = Fact::Message { id, spans, from, because: None, owed: true, scope: None, offset: None };
    let content = Some(Content::Parts(typed("write to all.txt")));
    let accepted = Record { subject: subject.clone(), fact: said, content };
    let accepted = world.log.append(accepted).await.unwrap().seq;
    let dead = Fact::Dead { message: id, accepted, why: Undelivered::Stopped };
    world.log.append(Record { subject, fact: dead, content: None }).await.unwrap();
    drop(end);
    let mut next = world.puppet(PLENTY).await;
    world.kernel.replay(world.who(), id, next.session).await.unwrap();
    let facts = world.facts(next.session).await;
    let from =
        |fact: &Fact| matches!(fact, Fact::Message { from, because: Some(_), .. } if *from == Some(anna.session));
    assert!(facts.iter().any(from), "{facts:?}");
    assert!(world.log.derived(bert.session).unwrap().contains(&next.session));
    let (process, _end) = next.born().await;
    assert!(matches!(process.receive().await, Incoming::Message(_)));
    let refused = done(&process, direct("t.write", r#"{"path":"all.txt"}"#)).await;
    assert!(format!("{refused:?}").contains("argument-path-is-untrusted"), "{refused:?}");
}

#[tokio::test]
async fn a_message_that_is_accepted_arrives_also_where_its_sender_has_left() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, _end) = puppet.born().await;
    world.log.flush().await.unwrap();
    world.disk.hold();
    let (kernel, session) = (world.kernel.clone(), puppet.session);
    let sending = tokio::spawn(async move { kernel.send(session, typed("remember me")).await });
    until(|| world.disk.waiting() > 0).await;
    sending.abort();
    assert!(sending.await.is_err(), "it was not accepted yet");
    world.disk.release();
    let taken = tokio::time::timeout(std::time::Duration::from_secs(15), process.receive()).await;
    assert!(matches!(taken, Ok(Incoming::Message(_))), "{taken:?}");
}

#[tokio::test]
async fn of_many_who_replay_at_once_one_does() {
    let world = Setup::new().boot().await;
    let dead = lost(&world, "once").await;
    let mut sessions = Vec::new();
    for _ in 0..8 {
        sessions.push(world.puppet(PLENTY).await);
    }
    let replays = sessions.iter().map(|puppet| world.kernel.replay(world.who(), dead, puppet.session));
    let replayed = futures_util::future::join_all(replays).await;
    assert_eq!(replayed.iter().filter(|one| one.is_ok()).count(), 1, "{replayed:?}");
    let record = world.record().await;
    let replays = record.iter().filter(|one| matches!(&one.entry.fact, Fact::Message { because: Some(_), .. }));
    assert_eq!(replays.count(), 1);
}

#[tokio::test]
async fn a_replay_survives_a_crash_as_one_message_and_not_as_two() {
    let world = Setup::new().boot().await;
    let dead = lost(&world, "only once").await;
    let before = world.crashed();
    let next = world.puppet(PLENTY).await;
    let again = world.kernel.replay(world.who(), dead, next.session).await.unwrap();
    let after = world.crashed();

    // It crashed before the replay: the letter is dead still.
    let world = Setup::new().boot_in(before, 1 << 32).await;
    assert_eq!(world.kernel.dead_letters().iter().map(|one| one.message).collect::<Vec<_>>(), [dead]);
    // It crashed right behind it: what it became is dead, for nobody answered it, and it itself is not.
    let world = Setup::new().boot_in(after, 1 << 32).await;
    let letters = world.kernel.dead_letters();
    assert_eq!(letters.iter().map(|one| (one.message, one.why)).collect::<Vec<_>>(), [(again, Undelivered::NodeEnded)]);
    let next = world.puppet(PLENTY).await;
    assert_eq!(world.kernel.replay(world.who(), dead, next.session).await, Err(NotRaised::NotDead(dead)));
    assert!(world.kernel.replay(world.who(), again, next.session).await.is_ok());
}

#[tokio::test]
async fn an_answered_message_is_no_dead_letter_whatever_ends() {
    let world = Setup::new().boot().await;
    let mut puppet = world.puppet(PLENTY).await;
    let (process, end) = puppet.in_turn("go").await;
    assert!(done(&process, reply(None)).await.is_ok());
    drop(end);
    world.kernel.close_session(puppet.session).await;
    assert_eq!(world.kernel.dead_letters(), []);
    let world = Setup::new().boot_in(world.crashed(), 1 << 32).await;
    assert_eq!(world.kernel.dead_letters(), []);
}

#[tokio::test]
async fn a_dropped_letter_is_gone_on_the_record() {
    let world = Setup::new().boot().await;
    let dead = lost(&world, "never mind").await;
    let operator = operator_id(&world.operator.verifying_key());
    let seq = world.kernel.drop_letter(operator, dead, "spam".into()).await.unwrap();
    assert_eq!(world.kernel.dead_letters(), []);
    let record = world.record().await;
    let entry = &record[usize::try_from(seq.0).unwrap()].entry;
    assert!(matches!(&entry.fact, Fact::Buried { message, note } if *message == dead && note == "spam"));
    assert_eq!(entry.subject.operator, Some(operator));
}

#[tokio::test]
async fn a_full_mailbox_refuses_a_replay_and_the_letter_stays() {
    let world = Setup::new().boot().await;
    let dead = lost(&world, "wait").await;
    let full = world.puppet(PLENTY).await;
    for n in 0..MAILBOX_CAPACITY {
        full.say(&n.to_string()).await;
    }
    let refused = world.kernel.replay(world.who(), dead, full.session).await;
    assert!(matches!(refused, Err(NotRaised::NotAccepted(NotAccepted::Full(_)))), "{refused:?}");
    assert_eq!(world.kernel.dead_letters()[0].message, dead);
}
