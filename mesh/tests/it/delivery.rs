//! Delivery between two nodes: each message has one fate, and none is handed on twice.

use std::time::Duration;

use ephor_mesh::{
    delivery::{
        Answer, DeadReason, Delivery, DeliveryError, DeliveryEvent, Fate, Handed, MOST_BODY, MOST_UNDECIDED, MemoryId,
        Number, Reason, Unsendable, Unsettled, WINDOW,
    },
    links::LinkId,
};
use proptest::prelude::*;

const LINK: LinkId = LinkId(1);
const NOW: Duration = Duration::ZERO;
const LATER: Duration = Duration::from_secs(60);

fn pair() -> (Delivery, Delivery) {
    let (mut a, mut b) = (Delivery::new(MemoryId([1; 16])), Delivery::new(MemoryId([2; 16])));
    link(&mut a, &mut b);
    assert_eq!(a.poll(NOW), Some(DeliveryEvent::Met { memory: MemoryId([2; 16]) }));
    assert_eq!(b.poll(NOW), Some(DeliveryEvent::Met { memory: MemoryId([1; 16]) }));
    (a, b)
}

fn link(a: &mut Delivery, b: &mut Delivery) {
    a.linked(LINK);
    b.linked(LINK);
    carry(a, b);
}

/// Moves letters both ways until both are quiet.
fn carry(a: &mut Delivery, b: &mut Delivery) {
    loop {
        let (from_a, from_b) = (a.transmit(LINK), b.transmit(LINK));
        if from_a.is_none() && from_b.is_none() {
            return;
        }
        from_a.into_iter().for_each(|letter| b.receive(LINK, &letter).unwrap());
        from_b.into_iter().for_each(|letter| a.receive(LINK, &letter).unwrap());
    }
}

/// All that is told, but for the memory of the other side.
fn events(of: &mut Delivery, now: Duration) -> Vec<DeliveryEvent> {
    std::iter::from_fn(|| of.poll(now)).filter(|event| !matches!(event, DeliveryEvent::Met { .. })).collect()
}

/// What was handed on.
fn handed(of: &mut Delivery) -> Vec<(Handed, Number, Vec<u8>)> {
    let delivered = |event| match event {
        DeliveryEvent::Deliver { handed, number, body } => (handed, number, body),
        other => panic!("{other:?}"),
    };
    events(of, NOW).into_iter().map(delivered).collect()
}

fn fates(of: &mut Delivery, now: Duration) -> Vec<(u64, Fate)> {
    let settled = |event| match event {
        DeliveryEvent::Settled { number, fate } => (number.0, fate),
        other => panic!("{other:?}"),
    };
    events(of, now).into_iter().map(settled).collect()
}

#[test]
fn a_message_is_accepted_or_refused_with_its_reason() {
    let (mut a, mut b) = pair();
    assert_eq!(a.send(b"one".to_vec(), LATER), Ok(Number(1)));
    assert_eq!(a.send(b"two".to_vec(), LATER), Ok(Number(2)));
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    assert_eq!(
        came.iter().map(|(_, number, body)| (number.0, &**body)).collect::<Vec<_>>(),
        [(1, b"one".as_slice()), (2, b"two")]
    );
    assert!(fates(&mut a, NOW).is_empty(), "nothing is settled before the receiver has decided");
    assert_eq!(b.decide(came[1].0, Answer::Refused(Reason::NotAllowed)), Some(Number(2)));
    assert_eq!(b.decide(came[0].0, Answer::Accepted), Some(Number(1)));
    assert_eq!(b.decide(came[0].0, Answer::Accepted), None, "an answer is given once");
    carry(&mut a, &mut b);
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Accepted), (2, Fate::Refused(Reason::NotAllowed))]);
}

#[test]
fn what_the_link_lost_goes_again_and_is_handed_on_once() {
    let (mut a, mut b) = pair();
    // The message is lost with the link.
    a.send(b"one".to_vec(), LATER).unwrap();
    assert!(a.transmit(LINK).is_some());
    link(&mut a, &mut b);
    let came = handed(&mut b);
    assert_eq!(came.len(), 1);
    // The link goes while the receiver decides, and the answer is lost with the next.
    link(&mut a, &mut b);
    b.decide(came[0].0, Answer::Accepted).unwrap();
    assert!(b.transmit(LINK).is_some());
    link(&mut a, &mut b);
    assert!(handed(&mut b).is_empty());
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Accepted)]);
}

#[test]
fn back_pressure_reaches_the_sender() {
    let (mut a, mut b) = pair();
    for _ in 0..WINDOW {
        a.send(Vec::new(), LATER).unwrap();
    }
    assert_eq!(a.send(Vec::new(), LATER), Err(Unsendable::Window));
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    assert_eq!(u64::try_from(came.len()), Ok(WINDOW));
    // A later one that has its answer makes no room, the oldest one does.
    b.decide(came[1].0, Answer::Accepted).unwrap();
    carry(&mut a, &mut b);
    assert_eq!(a.send(Vec::new(), LATER), Err(Unsendable::Window));
    b.decide(came[0].0, Answer::Accepted).unwrap();
    carry(&mut a, &mut b);
    a.send(Vec::new(), LATER).unwrap();
    a.send(Vec::new(), LATER).unwrap();
    assert_eq!(a.send(Vec::new(), LATER), Err(Unsendable::Window));
    assert_eq!(a.send(vec![0; MOST_BODY + 1], LATER), Err(Unsendable::TooLong(MOST_BODY + 1)));
}

#[test]
fn the_bytes_that_wait_for_a_peer_are_bounded() {
    let mut a = Delivery::new(MemoryId([1; 16]));
    let sent = (0..100).take_while(|_| a.send(vec![0; MOST_BODY], LATER).is_ok()).count();
    assert_eq!(sent, 16);
    assert_eq!(a.send(vec![0; 1], LATER), Err(Unsendable::Backlog));
}

#[test]
fn a_message_whose_time_is_up_is_a_dead_letter_that_says_whether_it_was_sent() {
    let (mut a, mut b) = pair();
    a.send(b"sent".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    a.unlinked(LINK);
    a.send(b"kept".to_vec(), LATER).unwrap();
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
    a.send(b"sent".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    a.unlinked(LINK);
    a.send(b"kept".to_vec(), LATER).unwrap();
    let mut anew = Delivery::new(MemoryId([3; 16]));
    link(&mut a, &mut anew);
    assert_eq!(fates(&mut a, NOW), [(1, Fate::Dead(DeadReason::PeerForgot))]);
    let came = handed(&mut anew);
    assert_eq!(came.iter().map(|(_, number, body)| (number.0, &**body)).collect::<Vec<_>>(), [(2, b"kept".as_slice())]);
}

#[test]
fn a_sender_that_lost_its_memory_is_not_given_old_answers() {
    let (mut a, mut b) = pair();
    a.send(b"old".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    let old = handed(&mut b);
    let mut anew = Delivery::new(MemoryId([3; 16]));
    anew.send(b"new".to_vec(), LATER).unwrap();
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
        a.send(body, LATER).unwrap();
    }
    carry(&mut a, &mut b);
    let came = handed(&mut b);
    // The third is decided on, on the record, and its answer never sent; then both nodes stop.
    b.decide(came[2].0, Answer::Accepted).unwrap();
    let unsettled = |number, body: &[u8]| Unsettled { number: Number(number), body: body.to_vec(), deadline: LATER };
    let mut a2 = Delivery::resumed(MemoryId([1; 16]), a.theirs());
    a2.restore_sent(Number(4), vec![unsettled(1, b"one"), unsettled(2, b"two"), unsettled(3, b"three")]);
    let mut b2 = Delivery::resumed(MemoryId([2; 16]), b.theirs());
    b2.restore_answers([(Number(3), Answer::Accepted)]);
    link(&mut a2, &mut b2);
    assert_eq!(handed(&mut b2).iter().map(|(_, number, _)| number.0).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(fates(&mut a2, NOW), [(3, Fate::Accepted)]);
    assert_eq!(a2.send(Vec::new(), LATER), Ok(Number(4)));
}

#[test]
fn a_number_below_the_floor_is_refused_and_not_handed_on() {
    let (mut a, mut b) = pair();
    for _ in 0..2 {
        a.send(Vec::new(), LATER).unwrap();
        carry(&mut a, &mut b);
        let came = handed(&mut b);
        b.decide(came[0].0, Answer::Accepted).unwrap();
        carry(&mut a, &mut b);
    }
    // A peer that lost its memory and kept its id sends the first one again.
    let mut broken = Delivery::new(MemoryId([1; 16]));
    broken.send(Vec::new(), LATER).unwrap();
    link(&mut broken, &mut b);
    assert!(handed(&mut b).is_empty());
    assert_eq!(fates(&mut broken, NOW), [(1, Fate::Dead(DeadReason::PeerForgot))]);
}

#[test]
fn every_answer_is_kept_until_the_sender_has_it() {
    let (mut a, mut b) = pair();
    for _ in 0..WINDOW {
        a.send(Vec::new(), LATER).unwrap();
    }
    carry(&mut a, &mut b);
    for (undecided, ..) in handed(&mut b).into_iter().rev() {
        b.decide(undecided, Answer::Accepted).unwrap();
    }
    // All answers are lost with the link: everything is sent again, answered again, and nothing handed on again.
    link(&mut a, &mut b);
    assert!(handed(&mut b).is_empty());
    let fated = fates(&mut a, NOW);
    assert_eq!(u64::try_from(fated.len()), Ok(WINDOW));
    assert!(fated.iter().all(|(_, fate)| *fate == Fate::Accepted));
}

#[test]
fn however_many_messages_go_by_there_is_room_for_the_next() {
    let (mut a, mut b) = pair();
    for number in 1..=5000 {
        assert_eq!(a.send(Vec::new(), LATER), Ok(Number(number)));
        carry(&mut a, &mut b);
        let came = handed(&mut b);
        b.decide(came[0].0, Answer::Accepted).unwrap();
        carry(&mut a, &mut b);
        assert_eq!(fates(&mut a, NOW), [(number, Fate::Accepted)]);
    }
}

#[test]
fn letters_out_of_turn_and_malformed_ones_end_the_link() {
    let (mut a, mut b) = pair();
    a.send(b"one".to_vec(), LATER).unwrap();
    let letter = a.transmit(LINK).unwrap();
    b.linked(LINK);
    assert_eq!(b.receive(LINK, &letter), Err(DeliveryError::OutOfTurn), "before hello");
    a.linked(LINK);
    let hello = a.transmit(LINK).unwrap();
    b.receive(LINK, &hello).unwrap();
    assert_eq!(b.receive(LINK, &hello), Err(DeliveryError::OutOfTurn), "hello twice");
    let mut zero = letter.clone();
    zero[9..17].fill(0);
    let mut ahead = letter.clone();
    ahead[1..9].copy_from_slice(&(1 + WINDOW).to_be_bytes());
    let mut behind = letter.clone();
    behind[16] = 2;
    for bad in [&[][..], &[9], &letter[..16], &zero, &ahead, &behind, &[&[3], &letter[1..9], &[5]].concat()] {
        assert!(matches!(b.receive(LINK, bad), Err(DeliveryError::Malformed(_))), "{bad:?}");
    }
    b.unlinked(LINK);
    assert_eq!(b.receive(LINK, &letter), Err(DeliveryError::OtherLink));
}

/// What the messages came to that were settled.
fn outcomes(of: &mut Delivery) -> Vec<Fate> {
    fates(of, NOW).into_iter().map(|(_, fate)| fate).collect()
}

#[test]
fn undecided_messages_are_weighed() {
    let (mut a, mut b) = pair();
    let most = MOST_UNDECIDED / MOST_BODY;
    for _ in 0..most {
        a.send(vec![0; MOST_BODY], LATER).unwrap();
    }
    carry(&mut a, &mut b);
    // The sender has given them up; the receiver still holds them.
    assert_eq!(events(&mut a, LATER).len(), most);
    let held: Vec<Handed> = events(&mut b, NOW)
        .into_iter()
        .map(|event| if let DeliveryEvent::Deliver { handed, .. } = event { handed } else { panic!("{event:?}") })
        .collect();
    assert_eq!(held.len(), most);
    let full = [Fate::Refused(Reason::Full)];
    a.send(b"one more".to_vec(), 2 * LATER).unwrap();
    carry(&mut a, &mut b);
    assert_eq!((&*outcomes(&mut a), events(&mut b, NOW)), (&full[..], Vec::new()));
    // A sender that loses its memory does not empty the receiver's.
    let mut anew = Delivery::new(MemoryId([3; 16]));
    anew.send(b"one more".to_vec(), LATER).unwrap();
    link(&mut anew, &mut b);
    assert_eq!((&*outcomes(&mut anew), events(&mut b, NOW)), (&full[..], Vec::new()));
    assert_eq!(b.decide(held[0], Answer::Accepted), None);
    anew.send(b"one more".to_vec(), LATER).unwrap();
    carry(&mut anew, &mut b);
    assert_eq!(handed(&mut b).len(), 1);
    assert_eq!(outcomes(&mut anew), []);
}

#[test]
fn a_new_memory_of_the_peer_is_told_before_all_that_follows_from_it() {
    let (mut a, mut b) = pair();
    b.send(b"sent".to_vec(), LATER).unwrap();
    carry(&mut a, &mut b);
    let memory = MemoryId([3; 16]);
    let mut anew = Delivery::new(memory);
    anew.send(b"new".to_vec(), LATER).unwrap();
    link(&mut anew, &mut b);
    let told: Vec<DeliveryEvent> = std::iter::from_fn(|| b.poll(NOW)).collect();
    let forgot = Fate::Dead(DeadReason::PeerForgot);
    assert!(
        matches!(
            &*told,
            [
                DeliveryEvent::Met { memory: met },
                DeliveryEvent::Settled { number: Number(1), fate, .. },
                DeliveryEvent::Deliver { number: Number(1), .. },
            ] if *met == memory && *fate == forgot
        ),
        "{told:?}"
    );
    // The same memory again is nothing new.
    link(&mut anew, &mut b);
    assert_eq!(b.poll(NOW), None);
}

/// A node that stops after what it was told is on its record and before anything follows from it.
#[test]
fn a_node_that_stops_after_its_record_goes_on_from_there() {
    let (mut a, mut b) = pair();
    // The message is on the record and was on no link.
    a.send(b"one".to_vec(), LATER).unwrap();
    let unsettled = Unsettled { number: Number(1), body: b"one".to_vec(), deadline: LATER };
    let mut a = Delivery::resumed(MemoryId([1; 16]), a.theirs());
    a.restore_sent(Number(2), vec![unsettled]);
    link(&mut a, &mut b);
    assert_eq!(handed(&mut b).len(), 1);
    // The answer is on the record and was never sent.
    let mut b = Delivery::resumed(MemoryId([2; 16]), b.theirs());
    b.restore_answers([(Number(1), Answer::Accepted)]);
    link(&mut a, &mut b);
    assert_eq!(outcomes(&mut a), [Fate::Accepted]);
    assert_eq!(handed(&mut b).len(), 0);
    // The fate is on the record, and so is the next number.
    let mut a = Delivery::resumed(MemoryId([1; 16]), a.theirs());
    a.restore_sent(Number(2), Vec::new());
    link(&mut a, &mut b);
    assert_eq!(a.send(b"two".to_vec(), LATER), Ok(Number(2)));
    carry(&mut a, &mut b);
    assert_eq!(handed(&mut b)[0].2, b"two");
}

#[test]
fn a_link_that_was_replaced_says_nothing_more() {
    let (mut a, mut b) = pair();
    a.send(b"one".to_vec(), LATER).unwrap();
    let late = a.transmit(LINK).unwrap();
    let newer = LinkId(2);
    a.linked(newer);
    b.linked(newer);
    let (from_a, from_b) = (a.transmit(newer).unwrap(), b.transmit(newer).unwrap());
    assert_eq!((a.transmit(LINK), b.transmit(LINK)), (None, None));
    // What is still on the old link, and its end, come after the new one is up.
    assert_eq!(b.receive(LINK, &late), Err(DeliveryError::OtherLink));
    assert_eq!(a.receive(LINK, &from_b), Err(DeliveryError::OtherLink));
    a.unlinked(LINK);
    b.unlinked(LINK);
    b.receive(newer, &from_a).unwrap();
    a.receive(newer, &from_b).unwrap();
    let again = a.transmit(newer).unwrap();
    b.receive(newer, &again).unwrap();
    assert_eq!(handed(&mut b).len(), 1);
    a.unlinked(newer);
    assert_eq!(a.transmit(newer), None);
}

#[test]
fn what_is_shown_of_a_message_is_its_length() {
    let (mut a, mut b) = pair();
    a.send(vec![171; 9], LATER).unwrap();
    let unsettled = Unsettled { number: Number(1), body: vec![171; 9], deadline: LATER };
    let shown = format!("{a:?} {unsettled:?}");
    assert!(shown.contains("9 bytes") && !shown.contains("171, 171"), "{shown}");
    carry(&mut a, &mut b);
    let waiting = format!("{b:?}");
    let shown = format!("{waiting} {:?}", b.poll(NOW));
    assert!(shown.contains("9 bytes") && !shown.contains("171, 171"), "{shown}");
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
                0 => sent += u64::from(a.send(sent.to_be_bytes().to_vec(), LATER).is_ok()),
                1 => a.transmit(LINK).into_iter().for_each(|letter| b.receive(LINK, &letter).unwrap()),
                2 => b.transmit(LINK).into_iter().for_each(|letter| a.receive(LINK, &letter).unwrap()),
                3 => {
                    a.linked(LINK);
                    b.linked(LINK);
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
