//! The loopback of the new network namespace, brought up by netlink (RFC 3549, rtnetlink(7)).

use std::{
    fs::File,
    io::{self, Read, Write},
};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

/// The loopback's index in every new namespace.
const LOOPBACK: i32 = 1;

/// Brings up the loopback. Returns the failed step and the kernel's error.
pub(super) fn up() -> Result<(), (&'static str, io::Error)> {
    // Protocol 0 is NETLINK_ROUTE.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|why| ("opening a netlink socket", why.into()))?;
    let mut socket = File::from(socket);
    let mut answer = [0; 1_024];
    let asked = socket.write_all(&request()).and_then(|()| socket.read(&mut answer));
    let length = asked.map_err(|why| ("asking for the loopback", why))?;
    // struct nlmsghdr (16 bytes), then the error of struct nlmsgerr: 0 or a negative number.
    let error = answer.get(..length).and_then(|answer| answer.get(16..20)).and_then(|error| error.first_chunk::<4>());
    match error.map(|error| i32::from_ne_bytes(*error)) {
        Some(0) => Ok(()),
        Some(error) => Err(("bringing up the loopback", io::Error::from_raw_os_error(error.saturating_neg()))),
        None => Err(("bringing up the loopback", io::ErrorKind::UnexpectedEof.into())),
    }
}

/// struct nlmsghdr and struct ifinfomsg.
fn request() -> Vec<u8> {
    let up = libc::IFF_UP.unsigned_abs();
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK).unsigned_abs();
    let flags = u16::try_from(flags).unwrap_or_default();
    [
        &32_u32.to_ne_bytes()[..],
        &libc::RTM_NEWLINK.to_ne_bytes(),
        &flags.to_ne_bytes(),
        &1_u32.to_ne_bytes(),
        &0_u32.to_ne_bytes(),
        &[0; 4],
        &LOOPBACK.to_ne_bytes(),
        &up.to_ne_bytes(),
        &up.to_ne_bytes(),
    ]
    .concat()
}
