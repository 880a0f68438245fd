//! Every recorded stream is the turn that stands beside it, however its bytes are cut.

use std::{collections::BTreeMap, sync::OnceLock};

use ephor_base::Timestamp;
use ephor_wire::{Complaint, Cut, Decoder, End, Event, Part, Recourse};
use proptest::{prelude::*, test_runner::Config};

use crate::common::{Stream, TURN, limits, read, streams, summed, turn};

/// The corpus, read once.
fn every() -> &'static [Stream] {
    static STREAMS: OnceLock<Vec<Stream>> = OnceLock::new();
    STREAMS.get_or_init(|| streams(|_| true))
}

#[test]
fn every_stream_is_the_turn_beside_it() {
    for Stream { name, grammar, bytes, turn: expected, .. } in every() {
        let (_, answer) = read(*grammar, [bytes.as_slice()]);
        assert_eq!(turn(&answer), *expected, "{name}");
    }
}

#[test]
fn every_grammar_has_eight_streams_at_least() {
    for grammar in ephor_wire::Grammar::ALL {
        assert!(streams(|of| of == grammar).len() >= 8, "{grammar}");
    }
}

#[test]
fn the_events_add_up_to_the_answer() {
    for Stream { name, grammar, bytes, .. } in every() {
        let (events, answer) = read(*grammar, [bytes.as_slice()]);
        let (text, thinking, calls) = summed(&events);
        let thought: String = answer
            .parts
            .iter()
            .filter_map(|part| if let Part::Thinking(text) = part { Some(&**text) } else { None })
            .collect();
        assert_eq!((text, thinking), (answer.text(), thought), "{name}");
        let called: BTreeMap<_, _> =
            answer.calls().iter().map(|call| (call.name.clone(), call.arguments.clone())).enumerate().collect();
        if answer.end == End::Complete {
            assert_eq!(calls, called, "{name}");
        }
        let reported =
            events.iter().rev().find_map(|event| if let Event::Reported(all) = event { Some(*all) } else { None });
        assert_eq!(reported.unwrap_or_default(), answer.reported, "{name}");
    }
}

/// Each byte by itself, and both sides of a cut at every byte.
#[test]
fn cutting_a_stream_at_every_byte_changes_nothing() {
    for Stream { name, grammar, bytes, .. } in every() {
        let whole = read(*grammar, [bytes.as_slice()]);
        assert_eq!(read(*grammar, bytes.chunks(1)), whole, "{name}, byte by byte");
        let mut before = Decoder::new(*grammar, limits(), TURN);
        let mut events = Vec::new();
        for cut in 0..bytes.len() {
            let (mut decoder, mut news) = (before.clone(), events.clone());
            let _ = decoder.push(&bytes[cut..], &mut news);
            let answer = decoder.finish(&mut news);
            assert_eq!((news, answer), whole, "{name}, cut at {cut}");
            let _ = before.push(&bytes[cut..=cut], &mut events);
        }
    }
}

/// A stream that breaks off is complete only where its end had come.
#[test]
fn a_stream_that_breaks_off_is_never_taken_for_whole() {
    for Stream { name, grammar, bytes, .. } in every() {
        let (_, whole) = read(*grammar, [bytes.as_slice()]);
        let mut before = Decoder::new(*grammar, limits(), TURN);
        for cut in 0..bytes.len() {
            let has_ended = before.has_ended() || before.is_done();
            let answer = before.clone().finish(&mut Vec::new());
            if has_ended {
                assert_eq!(answer.end, whole.end, "{name}, broken off at {cut}");
            } else if answer.end != whole.end {
                let lost = matches!(&answer.end, End::CutOff(Cut::Stream))
                    || matches!(&answer.end, End::Failed(why) if why.recourse() == Recourse::Backoff);
                assert!(lost, "{name}, broken off at {cut}: {:?}", answer.end);
            }
            let _ = before.push(&bytes[cut..=cut], &mut Vec::new());
        }
    }
}

#[test]
fn a_refusal_with_a_status_means_the_same_as_in_place_of_an_answer() {
    let mut refusals = 0;
    for Stream { name, grammar, bytes, status, .. } in every() {
        let Some(status) = *status else { continue };
        refusals += 1;
        let complaint = Complaint::of_response(status, &[], bytes, Timestamp(0));
        let (_, answer) = read(*grammar, [bytes.as_slice()]);
        let End::Failed(in_place) = answer.end else { panic!("{name}") };
        assert_eq!((in_place.kind(), in_place.recourse()), (complaint.kind(), complaint.recourse()), "{name}");
        assert_eq!((in_place.message(), complaint.recourse()), (complaint.message(), Recourse::OtherModel), "{name}");
    }
    assert_eq!(refusals, 5);
}

/// How many random splits are tried: `EPHOR_WIRE_SPLITS`, or a few.
fn splits() -> u32 {
    std::env::var("EPHOR_WIRE_SPLITS").ok().and_then(|count| count.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(Config { cases: splits(), failure_persistence: None, ..Config::default() })]

    /// Several streams of a grammar behind one another, cut at random.
    #[test]
    fn splits_of_concatenated_streams_change_nothing(
        first in any::<prop::sample::Index>(),
        others in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
    ) {
        let all = every();
        let first = first.get(all);
        let same: Vec<_> = all.iter().filter(|stream| stream.grammar == first.grammar).collect();
        let mut bytes = first.bytes.clone();
        others.iter().for_each(|other| bytes.extend(&other.get(&same).bytes));
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]);
        prop_assert_eq!(read(first.grammar, pieces), read(first.grammar, [bytes.as_slice()]));
    }
}
