//! The reports of the init stage, and the descriptor that comes with one.

use std::{
    io::{self, IoSliceMut},
    mem::MaybeUninit,
    net::TcpListener,
    os::fd::OwnedFd,
};

use rustix::{
    cmsg_space,
    net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg},
};
use tokio::{io::Interest, net::UnixStream};

use crate::plan::{self, LONGEST, Report};

/// Bytes that are read at a time. All reports of a run have fewer.
const PIECE: usize = 4_096;

/// Reads the reports until the init stage has ended. Hands on the listener as soon as it comes.
pub(super) async fn hear(from: &UnixStream, listening: &(dyn Fn(TcpListener) + Sync)) -> io::Result<Vec<Report>> {
    let mut bytes = Vec::new();
    loop {
        let (piece, descriptor) = match from.async_io(Interest::READABLE, || receive(from)).await {
            // The init stage ended before it had read the caller's last word.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            received => received?,
        };
        if let Some(descriptor) = descriptor {
            let listener = TcpListener::from(descriptor);
            listener.set_nonblocking(true)?;
            listening(listener);
        }
        if piece.is_empty() {
            break;
        }
        bytes.extend_from_slice(&piece);
        if bytes.len() > LONGEST {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let (mut rest, mut reports) = (&*bytes, Vec::new());
    while let Some((report, more)) = plan::unframed(rest)? {
        reports.push(report);
        rest = more;
    }
    Ok(reports)
}

/// Some bytes, none at the end, and the descriptor that came with them.
fn receive(from: &UnixStream) -> io::Result<(Vec<u8>, Option<OwnedFd>)> {
    let mut piece = vec![0; PIECE];
    let mut room = [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))];
    let mut beside = RecvAncillaryBuffer::new(&mut room);
    let received = recvmsg(from, &mut [IoSliceMut::new(&mut piece)], &mut beside, RecvFlags::CMSG_CLOEXEC)?;
    let descriptors = beside.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    let descriptor = descriptors.flatten().next();
    piece.truncate(received.bytes);
    Ok((piece, descriptor))
}
