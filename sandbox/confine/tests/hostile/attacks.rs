//! What is tried inside, by system calls.

use std::{io, process::ExitCode};

use libc::c_long;

/// Each call with what it is tried with.
type Calls = &'static [(&'static str, c_long, [c_long; 5])];

pub(crate) const MOUNTS: Calls = &[
    ("mount", libc::SYS_mount, [0; 5]),
    ("umount2", libc::SYS_umount2, [0; 5]),
    ("pivot_root", libc::SYS_pivot_root, [0; 5]),
    ("chroot", libc::SYS_chroot, [0; 5]),
    ("open_tree", libc::SYS_open_tree, [0; 5]),
    ("move_mount", libc::SYS_move_mount, [0; 5]),
    ("fsopen", libc::SYS_fsopen, [0; 5]),
    ("mount_setattr", libc::SYS_mount_setattr, [0; 5]),
    ("setns", libc::SYS_setns, [0; 5]),
    ("unshare", libc::SYS_unshare, [libc::CLONE_NEWUSER as c_long, 0, 0, 0, 0]),
    ("clone", libc::SYS_clone, [(libc::CLONE_NEWUSER | libc::SIGCHLD) as c_long, 0, 0, 0, 0]),
    // The upper half of the flags says nothing to the kernel.
    ("clone", libc::SYS_clone, [(libc::CLONE_NEWNS | libc::SIGCHLD) as c_long | 1 << 40, 0, 0, 0, 0]),
    ("open_by_handle_at", libc::SYS_open_by_handle_at, [0; 5]),
    ("sethostname", libc::SYS_sethostname, [0; 5]),
];

pub(crate) const TRACE: Calls = &[
    ("ptrace", libc::SYS_ptrace, [libc::PTRACE_TRACEME as c_long, 0, 0, 0, 0]),
    ("ptrace", libc::SYS_ptrace, [libc::PTRACE_ATTACH as c_long, 1, 0, 0, 0]),
    ("ptrace", libc::SYS_ptrace, [libc::PTRACE_SEIZE as c_long, 1, 0, 0, 0]),
    ("process_vm_readv", libc::SYS_process_vm_readv, [1, 0, 0, 0, 0]),
    ("process_vm_writev", libc::SYS_process_vm_writev, [1, 0, 0, 0, 0]),
    ("pidfd_getfd", libc::SYS_pidfd_getfd, [0; 5]),
    ("kcmp", libc::SYS_kcmp, [1, 1, 0, 0, 0]),
];

pub(crate) const KERNEL: Calls = &[
    ("keyctl", libc::SYS_keyctl, [0; 5]),
    ("add_key", libc::SYS_add_key, [0; 5]),
    ("request_key", libc::SYS_request_key, [0; 5]),
    ("bpf", libc::SYS_bpf, [0; 5]),
    ("perf_event_open", libc::SYS_perf_event_open, [0; 5]),
    ("userfaultfd", libc::SYS_userfaultfd, [0; 5]),
    ("io_uring_setup", libc::SYS_io_uring_setup, [1, 0, 0, 0, 0]),
    ("io_uring_enter", libc::SYS_io_uring_enter, [0; 5]),
    ("kexec_load", libc::SYS_kexec_load, [0; 5]),
    ("init_module", libc::SYS_init_module, [0; 5]),
    ("finit_module", libc::SYS_finit_module, [0; 5]),
    ("delete_module", libc::SYS_delete_module, [0; 5]),
    ("reboot", libc::SYS_reboot, [0; 5]),
    ("swapon", libc::SYS_swapon, [0; 5]),
    ("syslog", libc::SYS_syslog, [3, 0, 0, 0, 0]),
    ("clock_settime", libc::SYS_clock_settime, [0; 5]),
    ("fanotify_init", libc::SYS_fanotify_init, [0; 5]),
    ("ioctl", libc::SYS_ioctl, [0, libc::TIOCSTI as c_long, 0, 0, 0]),
];

/// What the attack on sockets is to say.
pub(crate) const SOCKETS: &str = "unix: EAFNOSUPPORT\nnetlink: EAFNOSUPPORT\npacket: EAFNOSUPPORT\nvsock: EAFNOSUPPORT\nalg: EAFNOSUPPORT\n\
                           unix with more bits: EAFNOSUPPORT\nsctp: EAFNOSUPPORT\nraw: EAFNOSUPPORT\nany raw: EPROTONOSUPPORT\ninet: ok\ninet6: ok\npair: ok\npair of datagrams: EPERM\n";

/// What calls say that all fail alike.
pub(crate) fn all(error: &str, calls: Calls) -> String {
    calls.iter().map(|(name, ..)| format!("{name}: {error}\n")).collect()
}

fn call(number: c_long, [a, b, c, d, e]: [c_long; 5]) -> Result<c_long, io::Error> {
    // SAFETY: each address among the arguments is 0 or that of a value that lives throughout the call.
    let done = unsafe { libc::syscall(number, a, b, c, d, e) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(done) }
}

fn name(result: Result<c_long, io::Error>) -> String {
    let known = [
        (libc::EPERM, "EPERM"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
        (libc::EAGAIN, "EAGAIN"),
        (libc::ENOMEM, "ENOMEM"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::EADDRINUSE, "EADDRINUSE"),
        (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    ];
    match result {
        Ok(_) => "ok".into(),
        Err(error) => {
            let known = known.iter().find(|(number, _)| error.raw_os_error() == Some(*number));
            known.map_or_else(|| error.to_string(), |(_, name)| (*name).into())
        }
    }
}

pub(crate) fn run(attack: &str) -> ExitCode {
    match attack {
        "mounts" => {
            tell(MOUNTS);
            println!("clone3: {}", name(call(libc::SYS_clone3, [0; 5])));
        }
        "trace" => tell(TRACE),
        "kernel" => tell(KERNEL),
        "sockets" => sockets(),
        "unix" => unix(),
        "connect" => connect(),
        "fetch" => fetch(),
        "bomb" => bomb(),
        "daemon" => daemon(),
        "descriptors" => descriptors(),
        "memory" => memory(),
        "files" => files(),
        "deep" => deep(),
        "names" => names(),
        _ => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

fn tell(calls: Calls) {
    for (what, number, arguments) in calls {
        println!("{what}: {}", name(call(*number, *arguments)));
    }
}

fn sockets() {
    let stream = libc::SOCK_STREAM as c_long;
    let socket = |what: &str, family: c_long, kind: c_long| {
        println!("{what}: {}", name(call(libc::SYS_socket, [family, kind, 0, 0, 0])));
    };
    socket("unix", libc::AF_UNIX as c_long, stream);
    socket("netlink", libc::AF_NETLINK as c_long, libc::SOCK_RAW as c_long);
    socket("packet", libc::AF_PACKET as c_long, libc::SOCK_RAW as c_long);
    socket("vsock", libc::AF_VSOCK as c_long, stream);
    socket("alg", libc::AF_ALG as c_long, libc::SOCK_SEQPACKET as c_long);
    socket("unix with more bits", libc::AF_UNIX as c_long | 1 << 40, stream);
    let inet = |what: &str, kind: i32, protocol: i32| {
        let arguments = [libc::AF_INET as c_long, kind as c_long, protocol as c_long, 0, 0];
        println!("{what}: {}", name(call(libc::SYS_socket, arguments)));
    };
    inet("sctp", libc::SOCK_STREAM, libc::IPPROTO_SCTP);
    inet("raw", libc::SOCK_RAW, libc::IPPROTO_ICMP);
    inet("any raw", libc::SOCK_RAW, 0);
    socket("inet", libc::AF_INET as c_long, stream);
    socket("inet6", libc::AF_INET6 as c_long, libc::SOCK_DGRAM as c_long);
    let mut pair = [0_i32; 2];
    let at = (&raw mut pair) as c_long;
    let flags = stream | libc::SOCK_CLOEXEC as c_long;
    println!("pair: {}", name(call(libc::SYS_socketpair, [libc::AF_UNIX as c_long, flags, 0, at, 0])));
    let datagrams = libc::SOCK_DGRAM as c_long | libc::SOCK_CLOEXEC as c_long;
    println!("pair of datagrams: {}", name(call(libc::SYS_socketpair, [libc::AF_UNIX as c_long, datagrams, 0, at, 0])));
}

fn unix() {
    use std::os::{linux::net::SocketAddrExt, unix::net};
    let shared = std::path::PathBuf::from(std::env::var_os("SHARED").unwrap());
    let say = |what: &str, error: Option<io::Error>| println!("{what}: {}", name(error.map_or(Ok(0), Err)));
    say("stream", net::UnixStream::connect(shared.join("socket")).err());
    let hidden = net::SocketAddr::from_abstract_name(std::env::var("NAME").unwrap()).unwrap();
    say("abstract", net::UnixStream::connect_addr(&hidden).err());
    let pair = net::UnixDatagram::pair().and_then(|(one, _)| one.send_to(b"x", shared.join("datagrams")));
    say("pair", pair.err());
}

fn connect() {
    use std::net::{TcpListener, TcpStream, UdpSocket};
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    let say = |what: &str, error: Option<io::Error>| println!("{what}: {}", name(error.map_or(Ok(0), Err)));
    say("host", TcpStream::connect(("127.0.0.1", port)).err());
    let outside = UdpSocket::bind("0.0.0.0:0").and_then(|socket| socket.connect("192.0.2.1:53"));
    say("other host", outside.err());
    let own = TcpListener::bind("127.0.0.1:0").and_then(|listener| TcpStream::connect(listener.local_addr()?));
    say("own", own.err());
}

/// Asks the caller, at the one port that leads to it.
fn fetch() {
    use std::{
        io::{Read, Write},
        net::{TcpListener, TcpStream},
    };
    let port: u16 = std::env::var("PORT").unwrap().parse().unwrap();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"question\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    print!("{answer}");
    let say = |what: &str, error: Option<io::Error>| println!("{what}: {}", name(error.map_or(Ok(0), Err)));
    say("another port", TcpStream::connect(("127.0.0.1", port + 1)).err());
    say("to listen there too", TcpListener::bind(("127.0.0.1", port)).err());
}

fn bomb() {
    let mut said = false;
    loop {
        // A fork by its number alone: nothing of this process's locks is needed in the child.
        if let Err(error) = call(libc::SYS_clone, [libc::SIGCHLD as c_long, 0, 0, 0, 0])
            && !said
        {
            said = true;
            println!("fork: {}", name(Err(error)));
        }
    }
}

fn fork() -> bool {
    call(libc::SYS_clone, [libc::SIGCHLD as c_long, 0, 0, 0, 0]).unwrap() == 0
}

fn daemon() {
    if fork() {
        rustix::process::setsid().unwrap();
        if fork() {
            std::thread::sleep(std::time::Duration::from_millis(500));
            std::fs::write("lives", "").unwrap();
        }
        std::process::exit(0);
    }
    // The one between is over: the daemon has no parent but the first process.
    let between = rustix::process::wait(rustix::process::WaitOptions::empty());
    assert!(between.is_ok());
    println!("started");
}

fn descriptors() {
    let mut open: Vec<u32> = (0..4_096)
        .filter(|number| call(libc::SYS_fcntl, [*number as c_long, libc::F_GETFD as c_long, 0, 0, 0]).is_ok())
        .collect();
    open.sort_unstable();
    println!("{}", open.iter().map(u32::to_string).collect::<Vec<_>>().join(" "));
}

fn memory() {
    let mut held = Vec::new();
    loop {
        let mut piece: Vec<u8> = Vec::new();
        if piece.try_reserve_exact(1 << 20).is_err() {
            drop(held);
            return println!("ENOMEM");
        }
        piece.resize(1 << 20, 1);
        held.push(piece);
    }
}

/// As many as the test says.
fn files() {
    let many: u32 = std::env::var("MANY").unwrap().parse().unwrap();
    for number in 0..many {
        let folder = format!("folder-{}", number / 1_000);
        if number % 1_000 == 0 {
            std::fs::create_dir(&folder).unwrap();
        }
        std::fs::write(format!("{folder}/{number}"), number.to_string()).unwrap();
    }
}

/// Deeper than any path can say.
fn deep() {
    let name = "d".repeat(255);
    for _ in 0..300 {
        std::fs::create_dir(&name).unwrap();
        std::env::set_current_dir(&name).unwrap();
    }
    std::fs::write("bottom", "").unwrap();
}

/// Names of bytes that are no text.
fn names() {
    use std::{ffi::OsString, os::unix::ffi::OsStringExt};
    for first in (1..=255).filter(|byte| ![b'.', b'/'].contains(byte)) {
        std::fs::write(OsString::from_vec(vec![first, 0xff, first]), [first]).unwrap();
    }
}
