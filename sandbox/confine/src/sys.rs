//! System calls that no library offers safely. This is the only file of the crate with `unsafe`.
#![expect(unsafe_code, reason = "fork, unshare and the like have no safe form")]

use std::{
    ffi::CStr,
    io,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
};

use rustix::{
    process::{Pid, Signal},
    thread::UnshareFlags,
};

/// Which side of a fork this is.
pub(crate) enum Forked {
    /// The new process.
    Child,
    /// The old process, with the PID of the new one.
    Parent(Pid),
}

/// Moves this process into new namespaces; of a PID namespace, only its children.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    // SAFETY: `FILES` is never among the flags, so the table of descriptors stays as it is.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(Into::into)
}

/// Forks. The caller must have one thread: a lock that another thread holds would never be released in the child.
pub(crate) fn fork() -> io::Result<Forked> {
    // SAFETY: the init stage has one thread (the kernel refuses to unshare a user namespace with more), so the child is a
    // whole copy of it.
    let number = unsafe { libc::fork() };
    match Pid::from_raw(number) {
        _ if number < 0 => Err(io::Error::last_os_error()),
        Some(pid) => Ok(Forked::Parent(pid)),
        None => Ok(Forked::Child),
    }
}

/// Closes every descriptor from 3 on.
pub(crate) fn close_the_rest() -> io::Result<()> {
    // SAFETY: this is the first thing that the init stage does, so that no value of this process owns any of them.
    let done = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Blocks SIGCHLD and SIGTERM and returns a descriptor that reads them.
pub(crate) fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is made by `sigemptyset` before it is read, and lives throughout the calls. The descriptor is new, and
    // nothing else owns it.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        if libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) < 0 {
            return Err(io::Error::last_os_error());
        }
        let number = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if number < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(number)) }
    }
}

/// Sends a signal to every process that this one may send it to, but itself. In the first process of a namespace: to all others.
pub(crate) fn signal_all(signal: Signal) {
    // SAFETY: the call takes two numbers and touches no memory.
    unsafe { libc::kill(-1, signal.as_raw()) };
}

/// Used by all reaped children and those that they reaped: microseconds in user mode, microseconds in the kernel, and the resident
/// bytes of the largest.
pub(crate) fn used() -> (u64, u64, u64) {
    // SAFETY: numbers that are all 0 are a whole structure, which lives throughout the call.
    let used = unsafe {
        let mut used: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used);
        used
    };
    // None of these is negative, nor near the largest number.
    let number = |number: i64| u64::try_from(number).unwrap_or_default();
    let micros =
        |time: libc::timeval| number(time.tv_sec).saturating_mul(1_000_000).saturating_add(number(time.tv_usec));
    (micros(used.ru_utime), micros(used.ru_stime), number(used.ru_maxrss).saturating_mul(1_024))
}

/// Sets attributes on a mount and, if `recursive`, on all mounts below it.
pub(crate) fn restrict(folder: BorrowedFd<'_>, attributes: u64, recursive: bool) -> io::Result<()> {
    let attributes = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    let path: &CStr = c"";
    let flags = if recursive { libc::AT_EMPTY_PATH | libc::AT_RECURSIVE } else { libc::AT_EMPTY_PATH };
    // SAFETY: path and structure live throughout the call, the size is the structure's, and the kernel only reads them.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
