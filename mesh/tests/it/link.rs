//! A link between two nodes: streams, credit, priorities, keys, the pulse, and the ends that broken rules lead to.

use std::time::Duration;

use ephor_mesh::{
    delivery::MOST_LETTER,
    frame::{Farewell, Frame, FrameError, MOST_CHUNK, Priority, Purpose, StreamId},
    handshake::Established,
    link::{FAREWELL_PATIENCE, Limits, Link, LinkError, LinkEvent, MOST_KEY_BYTES, MOST_STREAMS, OpenRefused},
    seal::{MOST_SEALED, Room, Seal, SealError},
    stream::{FIRST_CREDIT, Message, SendRefused, StreamError, charge},
};
use proptest::prelude::*;

use crate::common::{acquainted, establish};

/// An event that owns its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Told {
    Opened(StreamId, Priority, Purpose),
    Chunk(StreamId, Vec<u8>, bool),
    Closed(StreamId),
    Farewell(Farewell),
}

fn told(event: LinkEvent<'_>) -> Told {
    match event {
        LinkEvent::Opened { stream, priority, purpose } => Told::Opened(stream, priority, purpose),
        LinkEvent::Chunk { stream, last, bytes, credit } => {
            assert_eq!(credit, charge(bytes.len()));
            Told::Chunk(stream, bytes.to_vec(), last)
        }
        LinkEvent::Closed { stream } => Told::Closed(stream),
        LinkEvent::Farewell { reason } => Told::Farewell(reason),
    }
}

fn linked(limits: Limits) -> (Link, Link) {
    let (mut alice, mut bob) = acquainted();
    let (ours, theirs) = establish(&mut alice, &mut bob);
    (Link::new(ours, limits, Duration::ZERO), Link::new(theirs, limits, Duration::ZERO))
}

/// One link, and the bare seal of its peer, which says what it wants.
fn against_a_liar() -> (Link, Seal) {
    let (mut alice, mut bob) = acquainted();
    let (ours, Established { seal, .. }) = establish(&mut alice, &mut bob);
    (Link::new(ours, Limits::default(), Duration::ZERO), seal)
}

fn sealed(seal: &mut Seal, frame: &Frame<'_>) -> Vec<u8> {
    let mut plain = Vec::new();
    frame.encode(&mut plain);
    sealed_bytes(seal, &plain)
}

fn sealed_bytes(seal: &mut Seal, plain: &[u8]) -> Vec<u8> {
    let mut room = Room::new(MOST_SEALED);
    seal.seal(plain, &mut room).unwrap();
    room.bytes().to_vec()
}

/// The next frame for the wire.
fn transmit(link: &mut Link, now: Duration) -> Option<Vec<u8>> {
    let bytes = link.transmit(now).unwrap().bytes;
    (!bytes.is_empty()).then(|| bytes.to_vec())
}

fn receive(link: &mut Link, now: Duration, bytes: &[u8]) -> Vec<Told> {
    let (mut events, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let received = link.receive(now, rest).unwrap();
        rest = &rest[received.consumed..];
        events.extend(received.event.map(told));
    }
    events
}

/// Moves frames both ways until both are quiet; what each was told.
fn settle(a: &mut Link, b: &mut Link, now: Duration) -> (Vec<Told>, Vec<Told>) {
    let (mut to_a, mut to_b) = (Vec::new(), Vec::new());
    loop {
        let (from_a, from_b) = (transmit(a, now), transmit(b, now));
        if from_a.is_none() && from_b.is_none() {
            return (to_a, to_b);
        }
        to_b.extend(receive(b, now, &from_a.unwrap_or_default()));
        to_a.extend(receive(a, now, &from_b.unwrap_or_default()));
    }
}

/// The messages of a stream, put together.
fn messages(events: &[Told], stream: StreamId) -> Vec<Vec<u8>> {
    let (mut whole, mut part) = (Vec::new(), Vec::new());
    for event in events {
        if let Told::Chunk(id, bytes, last) = event
            && *id == stream
        {
            part.extend_from_slice(bytes);
            if *last {
                whole.push(std::mem::take(&mut part));
            }
        }
    }
    assert!(part.is_empty(), "a message has no end");
    whole
}

fn say(link: &mut Link, stream: StreamId, message: impl AsRef<[u8]>) -> Result<(), SendRefused> {
    let may = link.may_send(stream, message.as_ref().len());
    let done = link.send(stream, Message::from(message.as_ref()));
    assert_eq!(may, done);
    done
}

/// How many bytes of a stream came.
fn lengths(events: &[Told], stream: StreamId) -> usize {
    let length = |told: &Told| match told {
        Told::Chunk(id, bytes, _) if *id == stream => bytes.len(),
        _ => 0,
    };
    events.iter().map(length).sum()
}

#[test]
fn messages_arrive_whole_and_in_order_both_ways() {
    let (mut a, mut b) = linked(Limits::default());
    let out = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    let back = b.open(Priority::Bulk, Purpose::DELIVERY).unwrap();
    assert_eq!((out, back), (StreamId(1), StreamId(2)));
    let sent = [b"one".to_vec(), Vec::new(), vec![3; 40_000]];
    sent.iter().for_each(|message| say(&mut a, out, message.clone()).unwrap());
    say(&mut b, back, b"hello").unwrap();
    let (to_a, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(to_b[0], Told::Opened(out, Priority::Data, Purpose::DELIVERY));
    assert_eq!(messages(&to_b, out), sent);
    assert_eq!(messages(&to_a, back), [b"hello".to_vec()]);
    // A stream goes both ways.
    say(&mut b, out, b"answer").unwrap();
    let (to_a, _) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(messages(&to_a, out), [b"answer".to_vec()]);
}

#[test]
fn a_slow_reader_stops_its_stream_and_no_other() {
    let limits = Limits::default().with_room(FIRST_CREDIT, 200_000).unwrap();
    let (mut a, mut b) = linked(limits);
    let (slow, quick) =
        (a.open(Priority::Data, Purpose::DELIVERY).unwrap(), a.open(Priority::Data, Purpose::DELIVERY).unwrap());
    say(&mut a, slow, vec![1; 150_000]).unwrap();
    assert_eq!(say(&mut a, slow, vec![1; 60_000]), Err(SendRefused::Full), "back-pressure reaches the sender");
    assert_eq!(say(&mut a, slow, vec![1; 200_001]), Err(SendRefused::TooLong(200_001)));
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    let came = lengths(&to_b, slow);
    assert_eq!(u64::try_from(came), Ok(FIRST_CREDIT));
    assert_eq!(a.stopped().collect::<Vec<_>>(), [slow]);
    say(&mut a, quick, b"still goes").unwrap();
    let (_, more) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(messages(&more, quick), [b"still goes".to_vec()]);
    // As its user takes bytes away, the rest follows, and a sender that was refused hears of it.
    let mut writable = None;
    let mut all = to_b;
    for _ in 0..10 {
        b.consume(slow, lengths(&all, slow)).unwrap();
        b.consume(slow, 1).unwrap_err();
        all.clear();
        while let Some(frame) = transmit(&mut b, Duration::ZERO) {
            receive(&mut a, Duration::ZERO, &frame);
        }
        loop {
            let sent = a.transmit(Duration::ZERO).unwrap();
            writable = writable.or(sent.writable);
            if sent.bytes.is_empty() {
                break;
            }
            all.extend(receive(&mut b, Duration::ZERO, sent.bytes));
        }
    }
    assert_eq!(writable, Some(slow));
    say(&mut a, slow, vec![1; 60_000]).unwrap();
}

#[test]
fn what_is_urgent_goes_first_and_equals_take_turns() {
    let (mut a, mut b) = linked(Limits::default());
    let bulk = a.open(Priority::Bulk, Purpose::DELIVERY).unwrap();
    let (one, other) =
        (a.open(Priority::Data, Purpose::DELIVERY).unwrap(), a.open(Priority::Data, Purpose::DELIVERY).unwrap());
    let control = a.open(Priority::Control, Purpose::DELIVERY).unwrap();
    say(&mut a, bulk, b"bulk").unwrap();
    for _ in 0..2 {
        say(&mut a, one, b"one").unwrap();
        say(&mut a, other, b"other").unwrap();
    }
    say(&mut a, control, b"control").unwrap();
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    let order: Vec<StreamId> =
        to_b.iter().filter_map(|told| if let Told::Chunk(id, ..) = told { Some(*id) } else { None }).collect();
    assert_eq!(order, [control, one, other, one, other, bulk]);
}

#[test]
fn a_stream_closes_when_both_halves_have() {
    let (mut a, mut b) = linked(Limits::default());
    let stream = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    say(&mut a, stream, b"last words").unwrap();
    a.close(stream);
    assert_eq!(say(&mut a, stream, []), Err(SendRefused::Closed));
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(messages(&to_b, stream), [b"last words".to_vec()]);
    assert_eq!(to_b.last(), Some(&Told::Closed(stream)));
    say(&mut b, stream, b"answer").unwrap();
    b.close(stream);
    let (to_a, _) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(to_a, [Told::Chunk(stream, b"answer".to_vec(), true), Told::Closed(stream)]);
    assert_eq!((a.streams().count(), b.streams().count()), (0, 0));
    // The credit for what came before the end changes nothing any more.
    a.consume(stream, 6).unwrap();
    assert_ne!(a.open(Priority::Data, Purpose::DELIVERY).unwrap(), stream);
}

#[test]
fn keys_change_by_bytes_on_both_sides_in_step() {
    let limits = Limits::default().with_key(70_000, Duration::from_secs(600)).unwrap();
    let (mut a, mut b) = linked(limits);
    let stream = a.open(Priority::Bulk, Purpose::DELIVERY).unwrap();
    let mut came = 0;
    for _ in 0..20 {
        say(&mut a, stream, vec![5; 30_000]).unwrap();
        let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
        came += messages(&to_b, stream).len();
        b.consume(stream, 30_000).unwrap();
    }
    assert_eq!(came, 20);
}

/// Whether a message says that the key changes: it is the only frame of five bytes.
fn is_rekey(message: &[u8]) -> bool {
    message.len() == 2 + 5 + 16
}

#[test]
fn keys_change_by_time_on_a_quiet_link() {
    let (mut a, mut b) = linked(Limits::default().with_key(1 << 20, Duration::from_secs(60)).unwrap());
    settle(&mut a, &mut b, Duration::ZERO);
    assert!(a.deadline() <= Duration::from_secs(60));
    let mut changes = 0;
    for second in 1..200 {
        let now = Duration::from_secs(second);
        while let Some(frame) = transmit(&mut a, now) {
            changes += usize::from(is_rekey(&frame));
            receive(&mut b, now, &frame);
        }
        while let Some(frame) = transmit(&mut b, now) {
            receive(&mut a, now, &frame);
        }
    }
    assert_eq!(changes, 3);
}

#[test]
fn a_key_that_is_never_changed_ends_the_link() {
    let (mut link, mut seal) = against_a_liar();
    let late = Duration::from_secs(2 * 3600 + 1);
    let ping = sealed(&mut seal, &Frame::Ping { token: 1 });
    assert!(matches!(link.receive(late, &ping), Err(LinkError::StaleKey)));
}

#[test]
fn a_key_that_does_too_much_ends_the_link() {
    let (mut alice, mut bob) = acquainted();
    let (ours, Established { mut seal, .. }) = establish(&mut alice, &mut bob);
    let mut link = Link::new(ours, Limits::default().with_room(64 << 20, 1).unwrap(), Duration::ZERO);
    let id = StreamId(2);
    let open = Frame::Open { stream: id, priority: Priority::Bulk, purpose: Purpose::DELIVERY };
    link.receive(Duration::ZERO, &sealed(&mut seal, &open)).unwrap();
    let chunk = vec![0; MOST_CHUNK];
    let (mut offset, mut wire) = (0, 0);
    let error = loop {
        let piece = sealed(&mut seal, &Frame::Data { stream: id, offset, last: true, chunk: &chunk });
        offset += chunk.len() as u64;
        wire += piece.len() as u64;
        if let Err(error) = link.receive(Duration::ZERO, &piece) {
            break error;
        }
        link.consume(id, chunk.len()).unwrap();
        while !link.transmit(Duration::ZERO).unwrap().bytes.is_empty() {}
    };
    assert!(matches!(error, LinkError::StaleKey), "{error}");
    assert!((MOST_KEY_BYTES..MOST_KEY_BYTES + 4 * MOST_SEALED as u64).contains(&wire), "{wire}");
}

#[test]
fn a_key_that_does_all_it_may_is_changed_in_time() {
    let limits = Limits::default().with_room(64 << 20, 64 << 20).unwrap();
    let limits = limits.with_key(MOST_KEY_BYTES, Duration::from_secs(3600)).unwrap();
    let (mut a, mut b) = linked(limits);
    let stream = a.open(Priority::Bulk, Purpose::DELIVERY).unwrap();
    // Bytes of a data frame on the wire beside its chunk.
    let around = MOST_SEALED - MOST_CHUNK;
    let (mut wire, mut frames) = (0_u64, 0);
    let mut pass = |a: &mut Link, b: &mut Link| {
        loop {
            let frame = a.transmit(Duration::ZERO).unwrap().bytes;
            if frame.is_empty() {
                break;
            }
            wire += frame.len() as u64;
            frames += 1;
            let chunk = match b.receive(Duration::ZERO, frame).unwrap().event {
                Some(LinkEvent::Chunk { stream, credit, .. }) => Some((stream, credit)),
                _ => None,
            };
            chunk.into_iter().for_each(|(stream, credit)| b.consume(stream, credit).unwrap());
        }
        while let Some(frame) = transmit(b, Duration::ZERO) {
            receive(a, Duration::ZERO, &frame);
        }
        wire
    };
    let mut done = pass(&mut a, &mut b);
    done = done.max(pass(&mut a, &mut b));
    // One byte below the limit, the key is still good for the largest frame.
    while done < MOST_KEY_BYTES - 1 {
        let left = usize::try_from(MOST_KEY_BYTES - 1 - done).unwrap();
        let next = match left {
            _ if left >= 2 * MOST_SEALED => MOST_SEALED,
            _ if left > MOST_SEALED => left / 2,
            _ => left,
        };
        say(&mut a, stream, vec![5; next - around]).unwrap();
        done = pass(&mut a, &mut b);
    }
    assert_eq!(done, MOST_KEY_BYTES - 1);
    for _ in 0..2 {
        say(&mut a, stream, vec![5; MOST_CHUNK]).unwrap();
        pass(&mut a, &mut b);
    }
    assert!(frames > 16_384);
}

#[test]
fn the_pulse_follows_the_round_trip() {
    let (mut a, mut b) = linked(Limits::default());
    let mut now = Duration::ZERO;
    let trip = Duration::from_millis(40);
    for _ in 0..50 {
        now = a.deadline().max(now);
        while let Some(frame) = transmit(&mut a, now) {
            receive(&mut b, now + trip / 2, &frame);
        }
        while let Some(frame) = transmit(&mut b, now + trip / 2) {
            receive(&mut a, now + trip, &frame);
        }
        now += trip;
    }
    assert_eq!(a.round_trip(), Some(trip));
    assert!(now > Duration::from_secs(20), "a quiet link is asked every half second, not more: {now:?}");
}

#[test]
fn a_silent_peer_is_given_up_and_the_link_ends() {
    let (mut a, _b) = linked(Limits::default());
    assert!(!a.transmit(Duration::ZERO).unwrap().bytes.is_empty(), "a ping");
    let until = a.deadline();
    assert!((Duration::from_secs(2)..=Duration::from_secs(30)).contains(&until), "{until:?}");
    let just = until - Duration::from_nanos(1);
    assert!(a.transmit(just).unwrap().bytes.is_empty());
    assert!(matches!(a.transmit(until), Err(LinkError::Silent(_))));
    assert!(matches!(a.transmit(until), Err(LinkError::Ended)));
    assert_eq!(a.open(Priority::Data, Purpose::DELIVERY), Err(OpenRefused::Ended));
}

#[test]
fn a_peer_that_reads_nothing_and_says_nothing_is_given_up() {
    let (mut a, mut b) = linked(Limits::default());
    settle(&mut a, &mut b, Duration::ZERO);
    // The next ping is due, and the wire does not take it.
    let due = a.deadline();
    let until = a.stuck(due).unwrap();
    assert!((due + Duration::from_secs(2)..=due + Duration::from_secs(30)).contains(&until), "{until:?}");
    // A word of the peer shows that it is there.
    let ping = transmit(&mut b, until - Duration::from_nanos(1)).unwrap();
    receive(&mut a, until - Duration::from_nanos(1), &ping);
    let later = a.stuck(until).unwrap();
    assert!(later > until);
    assert!(matches!(a.stuck(later), Err(LinkError::Silent(_))));
    assert!(a.has_ended());
}

#[test]
fn a_farewell_ends_both_sides() {
    let (mut a, mut b) = linked(Limits::default());
    a.leave(Duration::ZERO, Farewell::Revoked);
    let bye = transmit(&mut a, Duration::ZERO).unwrap();
    assert!(a.has_ended());
    assert_eq!(receive(&mut b, Duration::ZERO, &bye), [Told::Farewell(Farewell::Revoked)]);
    assert!(b.has_ended());
    assert_eq!(say(&mut b, StreamId(1), []), Err(SendRefused::Ended));
}

#[test]
fn a_side_that_leaves_takes_nothing_more_in_and_does_not_wait_for_the_line() {
    let (mut link, mut seal) = against_a_liar();
    let from = Duration::from_secs(5);
    link.leave(from, Farewell::Revoked);
    let ends = from + FAREWELL_PATIENCE;
    assert_eq!(link.deadline(), ends);
    let open = Frame::Open { stream: StreamId(2), priority: Priority::Data, purpose: Purpose::DELIVERY };
    let data = Frame::Data { stream: StreamId(2), offset: 0, last: true, chunk: b"still here" };
    let frames = [sealed(&mut seal, &open), sealed(&mut seal, &data)].concat();
    for ago in [500, 100, 1] {
        // The peer goes on sending, and does not read.
        let now = ends - Duration::from_millis(ago);
        let received = link.receive(now, &frames).unwrap();
        assert_eq!((received.consumed, received.event), (frames.len(), None));
        assert_eq!(link.stuck(now).unwrap(), ends);
        assert_eq!(link.streams().count(), 0);
    }
    assert!(matches!(link.stuck(ends), Err(LinkError::Unheard)));
    assert!(link.has_ended());
    let (mut link, _) = against_a_liar();
    link.leave(from, Farewell::Revoked);
    assert!(matches!(link.receive(ends, &[]), Err(LinkError::Unheard)));
    assert!(link.has_ended());
}

#[test]
fn a_sender_that_was_refused_is_told_whatever_is_asked_after_it() {
    let (mut a, _b) = linked(Limits::default().with_room(FIRST_CREDIT, 100).unwrap());
    let stream = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    say(&mut a, stream, [1_u8; 60]).unwrap();
    assert_eq!(a.may_send(stream, 80), Err(SendRefused::Full));
    assert_eq!(a.may_send(stream, 10), Ok(()));
    let mut writable = None;
    loop {
        let sent = a.transmit(Duration::ZERO).unwrap();
        if sent.bytes.is_empty() {
            break;
        }
        writable = writable.or(sent.writable);
    }
    assert_eq!(writable, Some(stream));
    say(&mut a, stream, [1_u8; 80]).unwrap();
}

#[test]
fn empty_messages_take_credit() {
    let (mut a, mut b) = linked(Limits::default().with_room(FIRST_CREDIT, 1 << 20).unwrap());
    let stream = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    let (sent, most) = (9_000, usize::try_from(FIRST_CREDIT).unwrap() / charge(0));
    (0..sent).for_each(|_| say(&mut a, stream, []).unwrap());
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    let mut came = messages(&to_b, stream).len();
    assert_eq!(came, most);
    assert_eq!(a.stopped().collect::<Vec<_>>(), [stream]);
    b.consume(stream, came * charge(0)).unwrap();
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    came += messages(&to_b, stream).len();
    assert_eq!(came, sent);

    let (mut link, mut seal) = against_a_liar();
    let open = Frame::Open { stream: StreamId(2), priority: Priority::Data, purpose: Purpose::DELIVERY };
    link.receive(Duration::ZERO, &sealed(&mut seal, &open)).unwrap();
    let empty = |number: usize| Frame::Data {
        stream: StreamId(2),
        offset: u64::try_from(number * charge(0)).unwrap(),
        last: true,
        chunk: b"",
    };
    for number in 0..most {
        link.receive(Duration::ZERO, &sealed(&mut seal, &empty(number))).unwrap();
    }
    let error = link.receive(Duration::ZERO, &sealed(&mut seal, &empty(most))).map(|_| ()).unwrap_err();
    assert!(matches!(error, LinkError::Stream { cause: StreamError::Overdrawn { .. }, .. }), "{error}");
}

#[test]
fn the_longest_letter_goes_over_a_link_with_its_own_limits() {
    let (mut a, mut b) = linked(Limits::default());
    let stream = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    let letter: Vec<u8> = (0..MOST_LETTER).map(|at| u8::try_from(at % 251).unwrap()).collect();
    say(&mut a, stream, &letter).unwrap();
    let mut events = Vec::new();
    loop {
        let (_, more) = settle(&mut a, &mut b, Duration::ZERO);
        if more.is_empty() {
            break;
        }
        // Credit for each chunk, as it comes.
        for told in &more {
            if let Told::Chunk(stream, bytes, _) = told {
                b.consume(*stream, charge(bytes.len())).unwrap();
            }
        }
        events.extend(more);
    }
    assert!(messages(&events, stream) == [letter]);
}

#[test]
fn what_is_shown_of_messages_is_their_length() {
    let (mut a, mut b) = linked(Limits::default());
    let stream = a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    let message = Message::from([171_u8; 99].as_slice());
    let frame = Frame::Data { stream, offset: 0, last: true, chunk: &[171; 99] };
    a.send(stream, message.clone()).unwrap();
    let mut shown = vec![format!("{message:?}"), format!("{frame:?}"), format!("{a:?}")];
    while let Some(bytes) = transmit(&mut a, Duration::ZERO) {
        let received = b.receive(Duration::ZERO, &bytes).unwrap();
        if matches!(received.event, Some(LinkEvent::Chunk { .. })) {
            shown.push(format!("{received:?}"));
        }
    }
    assert_eq!(shown.len(), 4);
    for shown in shown {
        assert!(shown.contains("99 bytes") && !shown.contains("171, 171"), "{shown}");
    }
    assert!(!format!("{b:?}").contains("171, 171"));
}

#[test]
fn a_side_opens_as_many_streams_as_it_may() {
    let (mut a, mut b) = linked(Limits::default());
    for _ in 0..MOST_STREAMS {
        a.open(Priority::Data, Purpose::DELIVERY).unwrap();
    }
    assert_eq!(a.open(Priority::Data, Purpose::DELIVERY), Err(OpenRefused::TooMany));
    let (_, to_b) = settle(&mut a, &mut b, Duration::ZERO);
    assert_eq!(to_b.len(), MOST_STREAMS);
    b.open(Priority::Data, Purpose::DELIVERY).unwrap();
}

#[test]
fn what_was_changed_cut_doubled_or_reordered_on_the_wire_ends_the_link() {
    let frames = |seal: &mut Seal| {
        let open =
            sealed(seal, &Frame::Open { stream: StreamId(2), priority: Priority::Data, purpose: Purpose::DELIVERY });
        [open, sealed(seal, &Frame::Ping { token: 1 })]
    };
    let not_next = |outcome: Result<_, LinkError>| matches!(outcome, Err(LinkError::Sealed(SealError::NotNext(_))));

    let (mut link, mut seal) = against_a_liar();
    let [open, ping] = frames(&mut seal);
    assert!(not_next(link.receive(Duration::ZERO, &ping).map(|_| ())), "reordered");
    assert!(matches!(link.receive(Duration::ZERO, &open), Err(LinkError::Ended)));

    let (mut link, mut seal) = against_a_liar();
    let [open, _] = frames(&mut seal);
    link.receive(Duration::ZERO, &open).unwrap();
    assert!(not_next(link.receive(Duration::ZERO, &open).map(|_| ())), "doubled");

    let (mut link, mut seal) = against_a_liar();
    let [mut open, _] = frames(&mut seal);
    open[5] ^= 1;
    assert!(not_next(link.receive(Duration::ZERO, &open).map(|_| ())), "changed");

    let (mut link, mut seal) = against_a_liar();
    let [mut open, _] = frames(&mut seal);
    open.pop();
    open[1] -= 1;
    assert!(not_next(link.receive(Duration::ZERO, &open).map(|_| ())), "cut");

    let (mut link, _) = against_a_liar();
    let outcome = link.receive(Duration::ZERO, &[0, 15]);
    assert!(matches!(outcome, Err(LinkError::Sealed(SealError::Truncated(15)))), "too short for a tag");

    // What this side has sent itself does not open here either.
    let (mut a, _b) = linked(Limits::default());
    let own = transmit(&mut a, Duration::ZERO).unwrap();
    assert!(not_next(a.receive(Duration::ZERO, &own).map(|_| ())), "reflected");
}

/// What a link says to frames that its peer has sealed in order.
fn said(frames: &[Frame<'_>]) -> Option<LinkError> {
    let (mut link, mut seal) = against_a_liar();
    frames.iter().find_map(|frame| link.receive(Duration::ZERO, &sealed(&mut seal, frame)).err())
}

#[test]
fn every_broken_rule_of_a_stream_ends_the_link_by_name() {
    let id = StreamId(2);
    let open = Frame::Open { stream: id, priority: Priority::Data, purpose: Purpose::DELIVERY };
    let data = |offset, last, chunk| Frame::Data { stream: id, offset, last, chunk };
    let cause = |frames: &[Frame<'_>]| match said(&[&[open], frames].concat()) {
        Some(LinkError::Stream { stream, cause }) if stream == id => Some(cause),
        other => panic!("{other:?}"),
    };
    let (doubled, missing) = (data(0, false, b"abc"), data(9, true, b"abc"));
    assert_eq!(cause(&[doubled, doubled]), Some(StreamError::Doubled { offset: 0, expected: 3 }));
    assert_eq!(cause(&[doubled, missing]), Some(StreamError::Missing { offset: 9, expected: 3 }));
    let long = vec![0; 40_000];
    let overdrawn = [data(0, false, &long), data(40_000, true, &long)];
    assert_eq!(cause(&overdrawn), Some(StreamError::Overdrawn { reach: 80_000, limit: FIRST_CREDIT }));
    assert_eq!(cause(&[data(0, false, b"")]), Some(StreamError::Empty));
    let low = Frame::Credit { stream: id, limit: FIRST_CREDIT };
    assert_eq!(cause(&[low]), Some(StreamError::NoRaise { limit: FIRST_CREDIT, before: FIRST_CREDIT }));
    let close = Frame::Close { stream: id };
    assert_eq!(cause(&[close, data(0, true, b"x")]), Some(StreamError::AfterClose));
    assert_eq!(cause(&[data(0, false, b"x"), close]), Some(StreamError::CutOff));
}

#[test]
fn every_broken_rule_of_a_link_ends_it_by_name() {
    let open = |id| Frame::Open { stream: StreamId(id), priority: Priority::Bulk, purpose: Purpose::DELIVERY };
    assert!(matches!(said(&[open(1)]), Some(LinkError::BadOpen(StreamId(1)))), "an id of the other side");
    assert!(matches!(said(&[open(0)]), Some(LinkError::BadOpen(StreamId(0)))));
    assert!(matches!(said(&[open(4), open(2)]), Some(LinkError::BadOpen(StreamId(2)))), "an id below the last");
    let many: Vec<Frame<'_>> = (1..66).map(|id| open(id * 2)).collect();
    assert!(matches!(said(&many), Some(LinkError::TooManyStreams)));
    let to_none = Frame::Data { stream: StreamId(2), offset: 0, last: true, chunk: b"x" };
    assert!(matches!(said(&[to_none]), Some(LinkError::NoSuchStream(StreamId(2)))));
    let credit = Frame::Credit { stream: StreamId(1), limit: 1 << 20 };
    assert!(matches!(said(&[credit]), Some(LinkError::NoSuchStream(StreamId(1)))));
    assert!(matches!(said(&[Frame::Pong { token: 1 }]), Some(LinkError::Unasked)));
    let pings = [Frame::Ping { token: 1 }; 5];
    assert!(matches!(said(&pings), Some(LinkError::Flooded)));
    assert!(matches!(said(&[Frame::Rekey { generation: 2 }]), Some(LinkError::OutOfTurn(2))));
    // After a change of key that was only said, the next message does not open.
    let unchanged = said(&[Frame::Rekey { generation: 1 }, Frame::Ping { token: 1 }]);
    assert!(matches!(unchanged, Some(LinkError::Sealed(SealError::NotNext(_)))));
}

#[test]
fn a_message_without_a_frame_ends_the_link() {
    let (mut link, mut seal) = against_a_liar();
    let bytes = sealed_bytes(&mut seal, &[0x77, 1, 2]);
    let error = link.receive(Duration::ZERO, &bytes).map(|_| ()).unwrap_err();
    assert!(matches!(error, LinkError::Frame(FrameError::UnknownKind(0x77))), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// However messages, readers and cuts of the wire fall, what was sent is what arrives.
    #[test]
    fn every_message_arrives_whole_and_in_order(
        lengths in prop::collection::vec((0..3_usize, prop_oneof![0..40_usize, 0..90_000_usize, Just(MOST_CHUNK)]), 1..20),
        cuts in prop::collection::vec(1..70_000_usize, 1..10),
    ) {
        let limits = Limits::default().with_room(FIRST_CREDIT, 4 << 20).unwrap().with_key(100_000, Duration::from_secs(9)).unwrap();
        let (mut a, mut b) = linked(limits);
        let priorities = [Priority::Bulk, Priority::Data, Priority::Control];
        let streams = priorities.map(|priority| a.open(priority, Purpose::DELIVERY).unwrap());
        let mut sent = vec![Vec::new(); 3];
        for (at, (which, length)) in lengths.iter().enumerate() {
            let message = vec![u8::try_from(at).unwrap(); *length];
            say(&mut a, streams[*which], message.clone()).unwrap();
            sent[*which].push(message);
        }
        let (mut wire, mut events, mut cuts) = (Vec::new(), Vec::new(), cuts.into_iter().cycle());
        loop {
            let next = transmit(&mut a, Duration::ZERO);
            let quiet = next.is_none() && wire.is_empty();
            wire.extend(next.unwrap_or_default());
            let cut = cuts.next().unwrap().min(wire.len());
            let new = receive(&mut b, Duration::ZERO, &wire[..cut]);
            wire.drain(..cut);
            for told in &new {
                if let Told::Chunk(stream, bytes, _) = told {
                    b.consume(*stream, charge(bytes.len())).unwrap();
                }
            }
            events.extend(new);
            while let Some(frame) = transmit(&mut b, Duration::ZERO) {
                receive(&mut a, Duration::ZERO, &frame);
            }
            if quiet && transmit(&mut a, Duration::ZERO).map(|frame| wire.extend(frame)).is_none() {
                break;
            }
        }
        for (stream, sent) in streams.iter().zip(sent) {
            prop_assert_eq!(messages(&events, *stream), sent);
        }
    }
}
