//! Delivery between two nodes: each message has one fate, and none is handed on twice.

use std::time::Duration;

use ephor_base::SessionId;
use ephor_mesh::delivery::{
    Answer, DeadReason, Delivery, DeliveryError, DeliveryEvent, Fate, Handed, MOST_BODY, MemoryId, Number, Reason,
    Unsendable, Unsettled, WINDOW,
};
use proptest::prelude::*;

const SESSION: SessionId = SessionId([7; 16]);
const NOW: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_secs(60);

fn pair() -> (Delivery, Delivery) {
    let (mut a, mut b) = (Delivery::new(MemoryId([1; 16])), Delivery::new(MemoryId([2; 16])));
    link(&mut a, &mut b);
    (a, b)
}

fn link(a: &mut Delivery, b: &mut Delivery) {
    a.linked();
    b.linked();
    carry(a, b);
}

/// Moves letters both ways until both are quiet.
fn carry(a: &mut Delivery, b: &mut Delivery) {
    loop {
        let (from_a, from_b) = (a.transmit(), b.transmit());
        if from_a.is_none() && from_b.is_none() {
            return;
        }
        from_a.into_iter().for_each(|letter| b.receive(&letter).unwrap());
        from_b.into_iter().for_each(|letter| a.receive(&letter).unwrap());
    }
}

fn events(of: &mut Delivery, now: Duration) -> Vec<DeliveryEvent> {
    std::iter::from_fn(|| of.poll(now)).collect()
}

/// What was handed on.
fn handed(of: &mut Delivery) -> Vec<(Handed, Number, Vec<u8>)> {
    let delivered = |event| match event {
        DeliveryEvent::Deliver { handed, session: SESSION, number, body } => (handed, number, body),
        other => panic!("{other:?}"),
    };
    events(of, NOW).into_iter().map(delivered).collect()
}

fn fates(of: &mut Delivery, now: Duration) -> Vec<(u64, Fate)> {
    let settled = |event| match event {
        DeliveryEvent::Settled { session: SESSION, number, fate } => (number.0, fate),
        other => panic!("{other:?}"),
    };
    events(of, now).into_iter().map(settled).collect()
}

#[test]
fn a_message_is_accepted_or_refused_with_its_reason() {
    let (mut a, mut b) = pair();
    assert_eq!(a.send(SESSION, b"one".to_vec(), LATER), Ok(Number(1)));
    assert_eq!(a.send(SESSION, b"two".to_vec(), LATER), Ok(Number(2)));
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    assert_eq!(
        came.iter().map(|(_, number, body)| (number.0, &**body)).collect::<Vec<_>>(),
        [(1, b"one".as_slice()), (2, b"two")]
    );
    assert!(fates(&mut a, NOW).is_empty(), "nothing is settled before the receiver has decided");
    assert_eq!(b.decide(came[1].0, Answer::Refused(Reason::NotAllowed)), Some((SESSION, Number(2))));
    assert_eq!(b.decide(came[0].0, Answer::Accepted), Some((SESSION, Number(1))));
    assert_eq!(b.decide(came[0].0, Answer::Accepted), None, "an answer is given once");
    carry(&mut a, &mut b);
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Accepted), (2, Fate::Refused(Reason::NotAllowed))]);
}

#[test]
fn what_the_link_lost_goes_again_and_is_handed_on_once() {
    let (mut a, mut b) = pair();
    // The message is lost with the link.
    a.send(SESSION, b"one".to_vec(), LATER).unwrap();
    assert!(a.transmit().is_some());
    link(&mut a, &mut b);
    let came = handed(&mut b);
    assert_eq!(came.len(), 1);
    // The link goes while the receiver decides, and the answer is lost with the next.
    link(&mut a, &mut b);
    b.decide(came[0].0, Answer::Accepted).unwrap();
    assert!(b.transmit().is_some());
    link(&mut a, &mut b);
    assert!(handed(&mut b).is_empty());
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Accepted)]);
}

#[test]
fn back_pressure_reaches_the_sender() {
    let (mut a, mut b) = pair();
    for _ in 0..WINDOW {
        a.send(SESSION, Vec::new(), LATER).unwrap();
    }
    assert_eq!(a.send(SESSION, Vec::new(), LATER), Err(Unsendable::Window));
    a.send(SessionId([8; 16]), Vec::new(), LATER).unwrap();
    carry(&mut a, &mut b);
    let first = b.poll(NOW).unwrap();
    let DeliveryEvent::Deliver { handed, session: SESSION, number: Number(1), .. } = first else { panic!("{first:?}") };
    b.decide(handed, Answer::Accepted).unwrap();
    carry(&mut a, &mut b);
    a.send(SESSION, Vec::new(), LATER).unwrap();
    assert_eq!(a.send(SESSION, Vec::new(), LATER), Err(Unsendable::Window));
    assert_eq!(a.send(SESSION, vec![0; MOST_BODY + 1], LATER), Err(Unsendable::TooLong(MOST_BODY + 1)));
}

#[test]
fn the_bytes_that_wait_for_a_peer_are_bounded() {
    let mut a = Delivery::new(MemoryId([1; 16]));
    let sent = (0..100_u8).take_while(|at| a.send(SessionId([*at; 16]), vec![0; MOST_BODY], LATER).is_ok()).count();
    assert_eq!(sent, 16);
    assert_eq!(a.send(SESSION, vec![0; 1], LATER), Err(Unsendable::Backlog));
}

#[test]
fn a_message_whose_time_is_up_is_a_dead_letter_that_says_whether_it_was_sent() {
    let (mut a, mut b) = pair();
    a.send(SESSION, b"sent".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    a.unlinked();
    a.send(SESSION, b"kept".to_vec(), LATER).unwrap();
    assert_eq!(a.deadline(), Some(LATER));
    assert!(fates(&mut a, LATER - Duration::from_nanos(1)).is_empty());
    let dead = fates(&mut a, LATER);
    assert_eq!(dead, [(1, Fate::Dead(DeadReason::Unanswered)), (2, Fate::Dead(DeadReason::Expired))]);
    assert_eq!(a.deadline(), None);
    // An answer that comes after all changes nothing: a message has one fate.
    let came = handed(&mut b);
    b.decide(came[0].0, Answer::Accepted);
    link(&mut a, &mut b);
    assert!(fates(&mut a, NOW).is_empty());
    assert!(handed(&mut b).is_empty(), "what was given up is not sent");
}

#[test]
fn a_peer_that_lost_its_memory_gets_nothing_twice() {
    let (mut a, mut b) = pair();
    a.send(SESSION, b"sent".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    a.unlinked();
    a.send(SESSION, b"kept".to_vec(), LATER).unwrap();
    let mut anew = Delivery::new(MemoryId([3; 16]));
    link(&mut a, &mut anew);
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Dead(DeadReason::PeerForgot))]);
    let came = handed(&mut anew);
    assert_eq!(came.iter().map(|(_, number, body)| (number.0, &**body)).collect::<Vec<_>>(), [(2, b"kept".as_slice())]);
}

#[test]
fn a_sender_that_lost_its_memory_is_not_given_old_answers() {
    let (mut a, mut b) = pair();
    a.send(SESSION, b"old".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    let old = handed(&mut b);
    let mut anew = Delivery::new(MemoryId([3; 16]));
    anew.send(SESSION, b"new".to_vec(), LATER).unwrap();
    link(&mut anew, &mut b);
    let new = handed(&mut b);
    assert_eq!(new[0].2, b"new");
    assert_eq!(b.decide(old[0].0, Answer::Accepted), None, "the answer to the old one is no answer to the new one");
    b.decide(new[0].0, Answer::Refused(Reason::NoSuchProcess)).unwrap();
    carry(&mut anew, &mut b);
    assert_eq!(fates(&mut anew, NOW), [(1, Fate::Refused(Reason::NoSuchProcess))]);
}

#[test]
fn both_sides_go_on_from_their_records() {
    let (mut a, mut b) = pair();
    for body in [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()] {
        a.send(SESSION, body, LATER).unwrap();
    }
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    // The third is decided on, on the record, and its answer never sent; then both nodes stop.
    b.decide(came[2].0, Answer::Accepted).unwrap();
    let unsettled = |number, body: &[u8]| Unsettled {
        session: SESSION,
        number: Number(number),
        body: body.to_vec(),
        deadline: LATER,
    };
    let mut a2 = Delivery::resumed(MemoryId([1; 16]), a.theirs());
    a2.restore_sent(SESSION, Number(4), vec![unsettled(1, b"one"), unsettled(2, b"two"), unsettled(3, b"three")]);
    let mut b2 = Delivery::resumed(MemoryId([2; 16]), b.theirs());
    b2.restore_answers(SESSION, [(Number(3), Answer::Accepted)]);
    link(&mut a2, &mut b2);
    assert_eq!(handed(&mut b2).iter().map(|(_, number, _)| number.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(fates(&mut a2, NOW), [(3, Fate::Accepted)]);
    assert_eq!(a2.send(SESSION, Vec::new(), LATER), Ok(Number(4)));
}

#[test]
fn a_number_from_long_ago_is_refused_and_not_handed_on() {
    let (mut a, mut b) = pair();
    for _ in 0..=WINDOW {
        a.send(SESSION, Vec::new(), LATER).unwrap();
        carry(&mut a, &mut b);
        let came = handed(&mut b);
        b.decide(came[0].0, Answer::Accepted).unwrap();
        carry(&mut a, &mut b);
    }
    // A peer that lost its memory and kept its id sends the first one again.
    let mut broken = Delivery::new(MemoryId([1; 16]));
    broken.send(SESSION, Vec::new(), LATER).unwrap();
    link(&mut broken, &mut b);
    assert!(handed(&mut b).is_empty());
    assert_eq!(fates(&mut broken, NOW), [(1, Fate::Dead(DeadReason::PeerForgot))]);
}

#[test]
fn letters_out_of_turn_and_malformed_ones_end_the_link() {
    let (mut a, mut b) = pair();
    a.send(SESSION, b"one".to_vec(), LATER).unwrap();
    let letter = a.transmit().unwrap();
    b.linked();
    assert_eq!(b.receive(&letter), Err(DeliveryError::OutOfTurn), "before hello");
    a.linked();
    let hello = a.transmit().unwrap();
    b.receive(&hello).unwrap();
    assert_eq!(b.receive(&hello), Err(DeliveryError::OutOfTurn), "hello twice");
    let mut zero = letter.clone();
    zero[17..25].fill(0);
    for bad in [&[][..], &[9], &letter[..20], &zero, &[&[3], &letter[1..25], &[5]].concat()] {
        assert!(matches!(b.receive(bad), Err(DeliveryError::Malformed(_))), "{bad:?}");
    }
    b.unlinked();
    assert_eq!(b.receive(&letter), Err(DeliveryError::NoLink));
}

#[test]
fn a_session_is_forgotten_only_when_nothing_is_on_its_way() {
    let (mut a, mut b) = pair();
    a.send(SESSION, Vec::new(), LATER).unwrap();
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    assert!(!a.forget(SESSION) && !b.forget(SESSION));
    b.decide(came[0].0, Answer::Accepted).unwrap();
    carry(&mut a, &mut b);
    assert!(a.forget(SESSION) && b.forget(SESSION));
}

proptest! {
    /// Links break at any point, in either direction; every message is handed on at most once, and what is accepted was handed on.
    #[test]
    fn every_message_has_one_fate_and_is_handed_on_at_most_once(steps in prop::collection::vec(0..6_u8, 1..300)) {
        let (mut a, mut b) = pair();
        let (mut sent, mut undecided, mut seen, mut accepted) = (0_u64, Vec::new(), Vec::new(), Vec::new());
        let mut fated: Vec<(u64, Fate)> = Vec::new();
        for step in steps {
            match step {
                0 => sent += u64::from(a.send(SESSION, sent.to_be_bytes().to_vec(), LATER).is_ok()),
                1 => a.transmit().into_iter().for_each(|letter| b.receive(&letter).unwrap()),
                2 => b.transmit().into_iter().for_each(|letter| a.receive(&letter).unwrap()),
                3 => {
                    a.linked();
                    b.linked();
                }
                4 => {
                    if let Some((handed, number)) = undecided.pop() {
                        b.decide(handed, Answer::Accepted).unwrap();
                        accepted.push(number);
                    }
                }
                _ => {
                    let new = handed(&mut b);
                    seen.extend(new.iter().map(|(_, number, _)| number.0));
                    undecided.extend(new.iter().map(|(handed, number, _)| (*handed, number.0)));
                }
            }
            fated.extend(fates(&mut a, NOW));
        }
        link(&mut a, &mut b);
        for (handed, number, _) in handed(&mut b) {
            seen.push(number.0);
            undecided.push((handed, number.0));
        }
        for (handed, number) in undecided {
            b.decide(handed, Answer::Accepted).unwrap();
            accepted.push(number);
        }
        carry(&mut a, &mut b);
        fated.extend(fates(&mut a, NOW));
        fated.sort_by_key(|(number, _)| *number);
        seen.sort_unstable();
        let all: Vec<u64> = (1..=sent).collect();
        prop_assert_eq!(&seen, &all, "each is handed on exactly once, since the last link held");
        prop_assert_eq!(fated, all.iter().map(|number| (*number, Fate::Accepted)).collect::<Vec<_>>());
    }
}
