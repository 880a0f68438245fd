//! Frames: each has one form, and every other is refused.

use ephor_mesh::frame::{DATA_HEADER, Farewell, Frame, FrameError, MOST_CHUNK, Priority, Purpose, StreamId};
use proptest::prelude::*;

fn encoded(frame: &Frame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    bytes
}

fn any_priority() -> impl Strategy<Value = Priority> {
    prop::sample::select(Priority::ALL.to_vec())
}

fn any_frame(chunk: &[u8]) -> impl Strategy<Value = Frame<'_>> {
    let stream = any::<u32>().prop_map(StreamId);
    prop_oneof![
        (stream.clone(), any_priority(), any::<u8>().prop_map(Purpose))
            .prop_map(|(stream, priority, purpose)| Frame::Open { stream, priority, purpose }),
        (stream.clone(), any::<u64>(), any::<bool>()).prop_map(move |(stream, offset, last)| Frame::Data {
            stream,
            offset,
            last,
            chunk
        }),
        (stream.clone(), any::<u64>()).prop_map(|(stream, limit)| Frame::Credit { stream, limit }),
        stream.prop_map(|stream| Frame::Close { stream }),
        any::<u64>().prop_map(|token| Frame::Ping { token }),
        any::<u64>().prop_map(|token| Frame::Pong { token }),
        any::<u32>().prop_map(|generation| Frame::Rekey { generation }),
        prop::sample::select(vec![Farewell::Stopping, Farewell::Replaced, Farewell::Revoked])
            .prop_map(|reason| Frame::Bye { reason }),
    ]
}

#[test]
fn the_longest_data_frame_fills_a_message() {
    let chunk = vec![7; MOST_CHUNK];
    let frame = Frame::Data { stream: StreamId(1), offset: 0, last: true, chunk: &chunk };
    assert_eq!(encoded(&frame).len(), 65_519);
    assert_eq!(DATA_HEADER, 14);
}

#[test]
fn what_means_nothing_is_refused_by_name() {
    assert_eq!(Frame::decode(&[]), Err(FrameError::WrongLength));
    assert_eq!(Frame::decode(&[0x01]), Err(FrameError::UnknownKind(0x01)));
    assert_eq!(Frame::decode(&[0x10, 0, 0, 0, 1, 4, 1]), Err(FrameError::BadValue(4)));
    assert_eq!(Frame::decode(&[0x23, 3]), Err(FrameError::BadValue(3)));
    let mut data = encoded(&Frame::Data { stream: StreamId(1), offset: 0, last: true, chunk: b"x" });
    data[13] = 2;
    assert_eq!(Frame::decode(&data), Err(FrameError::BadValue(2)));
}

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_written(frame in any_frame(b"some bytes")) {
        let bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
    }

    /// A frame that is cut or goes on is none; only a data frame ends where its bytes do.
    #[test]
    fn a_frame_has_one_length(frame in any_frame(b"")) {
        let mut bytes = encoded(&frame);
        prop_assert_eq!(Frame::decode(&bytes[..bytes.len() - 1]), Err(FrameError::WrongLength));
        bytes.push(0);
        let longer = Frame::decode(&bytes);
        let goes_on = matches!(frame, Frame::Data { .. });
        prop_assert!(goes_on || longer == Err(FrameError::WrongLength));
    }

    #[test]
    fn bytes_that_are_a_frame_are_its_one_form(bytes in prop::collection::vec(any::<u8>(), 0..40), kind in 0x0e..0x26_u8) {
        let bytes = [&[kind], &*bytes].concat();
        if let Ok(frame) = Frame::decode(&bytes) {
            prop_assert_eq!(encoded(&frame), bytes);
        }
    }
}
