//! A confined command as an attacker would write it, and what it leaves for the host to read.
//!
//! Attacks that take system calls are made by this program itself, started inside with `attack NAME`; the others by a shell.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test stops at the first surprise")]

#[path = "hostile/attacks.rs"]
mod attacks;
mod common;
#[path = "hostile/left.rs"]
mod left;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpListener,
    num::NonZeroU16,
    os::{
        fd::{AsRawFd, OwnedFd},
        linux::net::SocketAddrExt,
        unix::{
            fs::{PermissionsExt, symlink},
            net::{SocketAddr, UnixDatagram, UnixListener},
        },
    },
    path::Path,
    process::ExitCode,
    sync::Mutex,
    thread,
    time::Duration,
};

use common::{Place, descendants, run, said, test, toolchain, wait, with_toolchain, within};
use ephor_confine::{Access, End, Event, Limits, Request, RunError};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some("attack") {
        return attacks::run(&arguments.next().unwrap());
    }
    let mut tests = vec![
        test("the_root_holds_what_it_should", the_root_holds_what_it_should),
        test("no_path_leads_out", no_path_leads_out),
        test("what_is_hidden_is_neither_read_nor_changed", what_is_hidden_is_neither_read_nor_changed),
        test("a_link_leads_to_nothing_of_the_host", a_link_leads_to_nothing_of_the_host),
        test("the_system_cannot_be_written", the_system_cannot_be_written),
        test("proc_is_its_own_and_read_only", proc_is_its_own_and_read_only),
        test("the_first_process_cannot_be_looked_into", the_first_process_cannot_be_looked_into),
        test("mounts_and_namespaces_are_refused", mounts_and_namespaces_are_refused),
        test("other_processes_cannot_be_traced", other_processes_cannot_be_traced),
        test("the_kernel_is_out_of_reach", the_kernel_is_out_of_reach),
        test("no_capability_is_left", no_capability_is_left),
        test("sockets_are_ip_alone", sockets_are_ip_alone),
        test("sockets_of_the_host_are_out_of_reach", sockets_of_the_host_are_out_of_reach),
        test("a_listener_of_the_host_is_out_of_reach", a_listener_of_the_host_is_out_of_reach),
        test("a_port_leads_to_the_caller_alone", a_port_leads_to_the_caller_alone),
        test("a_build_script_cannot_phone_home", a_build_script_cannot_phone_home),
        test("signals_do_not_reach_the_host", signals_do_not_reach_the_host),
        test("a_fork_bomb_ends_at_the_deadline", a_fork_bomb_ends_at_the_deadline),
        test("a_daemon_ends_with_its_command", a_daemon_ends_with_its_command),
        test("a_flood_is_drained_and_counted", a_flood_is_drained_and_counted),
        test("nothing_of_the_host_leaks_by_inheritance", nothing_of_the_host_leaks_by_inheritance),
        test("memory_is_bounded", memory_is_bounded),
        test("the_temporary_folder_is_bounded", the_temporary_folder_is_bounded),
        test("a_file_is_bounded", a_file_is_bounded),
        test("a_spin_ends_at_the_deadline", a_spin_ends_at_the_deadline),
        test("a_command_that_ignores_sigterm_is_killed", a_command_that_ignores_sigterm_is_killed),
        test("a_command_that_handles_sigterm_ends_its_own_way", a_command_that_handles_sigterm_ends_its_own_way),
        test("a_command_goes_on_without_its_output", a_command_goes_on_without_its_output),
        test("a_background_process_does_not_delay_the_end", a_background_process_does_not_delay_the_end),
        test("a_command_that_stops_itself_is_killed", a_command_that_stops_itself_is_killed),
        test("a_caller_can_stop_a_command", a_caller_can_stop_a_command),
        test("a_dropped_run_leaves_no_process", a_dropped_run_leaves_no_process),
        test("an_exchanged_folder_is_noticed", an_exchanged_folder_is_noticed),
        test("one_run_sees_nothing_of_another", one_run_sees_nothing_of_another),
    ];
    tests.extend(left::tests());
    common::main(tests)
}

/// A request to run an attack of this program.
fn attack(place: &Place, name: &str) -> Request {
    let program = std::env::current_exe().unwrap().canonicalize().unwrap();
    let request = place.request(&[program.to_str().unwrap(), "attack", name]);
    request.folder(program.parent().unwrap(), Access::ReadOnly).unwrap()
}

fn the_root_holds_what_it_should() {
    let place = Place::new();
    let expected = ["bin", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "tmp", "usr"];
    let list = said(&place.shell("ls -A /; echo; ls -A /tmp /root /home /var /run /sys 2>/dev/null; ls /dev"));
    let (root, rest) = list.split_once("\n\n").unwrap();
    let top = place.workspace();
    let top = top.components().nth(1).unwrap().as_os_str().to_str().unwrap();
    let beyond: Vec<_> = root.lines().filter(|name| !expected.contains(name) && *name != top).collect();
    assert_eq!(beyond, Vec::<&str>::new());
    assert!(rest.ends_with("fd\nfull\nnull\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n"), "{rest}");
}

fn what_is_hidden_is_neither_read_nor_changed() {
    let place = Place::new();
    place.write(".env", "hunter2");
    place.write("deep/.git/config", "hunter3");
    place.write("plain", "plain");
    symlink("deep/.git", place.workspace().join("link")).unwrap();
    fs::hard_link(place.workspace().join("plain"), place.workspace().join("other")).unwrap();
    let script = "cat .env deep/.git/config link/config; ls deep/.git; cp .env copy; mv .env moved; rm -rf .env deep; \
                  chmod 777 .env deep/.git; echo x > .env; echo x > deep/.git/config; echo x > deep/.git/new; \
                  umount .env; mount -t tmpfs none deep/.git; ln .env hard; cat plain; rm other";
    let mut request = place.shell(script);
    for hidden in [".env", "deep/.git", "gone/since", "link", "link/config"] {
        request = request.hide(Path::new(hidden)).unwrap();
    }
    let ended = run(&request).unwrap();
    let said = [ended.stdout.whole().unwrap(), ended.stderr.whole().unwrap()].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(!said.contains("hunter") && said.contains("plain"), "{said}");
    let changes = common::changes(&request).unwrap();
    assert!(
        changes.list().iter().all(|change| !change.path.starts_with(".env") && !change.path.starts_with("deep/.git"))
    );
    assert!(changes.list().iter().any(|change| change.path == Path::new("other")), "the rest can be changed");
    for path in ["", "..", "/etc", "a/../b"] {
        assert!(place.shell("true").hide(Path::new(path)).is_err(), "{path}");
    }
}

fn no_path_leads_out() {
    let place = Place::new();
    fs::write(place.beside("secret"), "hidden").unwrap();
    let script = format!(
        "for file in ../secret {0} /../../{0} /proc/self/{1}/{0} /proc/self/cwd/../secret /dev/fd/../../..{0} \
         /etc/shadow /etc/machine-id; do cat $file && echo read; done 2>/dev/null; ls /root /home /var; cd ..; ls",
        place.beside("secret").display(),
        "root"
    );
    assert_eq!(said(&place.shell(&script)), "workspace\n");
}

fn a_link_leads_to_nothing_of_the_host() {
    let place = Place::new();
    fs::write(place.beside("secret"), "hidden").unwrap();
    symlink(place.beside("secret"), place.workspace().join("link")).unwrap();
    let script = format!(
        "cat link && echo read; ln -s {0} out; cat out && echo read; echo x > out && echo wrote; \
         ( for i in $(seq 200); do ln -sfn {0} race; ln -sfn . race; done ) & \
         for i in $(seq 200); do cat race && echo read; done; wait",
        place.beside("secret").display()
    );
    // Beside the workspace lies what the command itself puts there, in a `/tmp` of its own.
    let list = said(&place.shell(&format!("({script}) 2>/dev/null; true")));
    assert!(!list.contains("hidden"), "{list}");
    assert_eq!(fs::read_to_string(place.beside("secret")).unwrap(), "hidden");
}

fn the_system_cannot_be_written() {
    let script = "for file in /x /usr/x /usr/bin/x /etc/x /etc/passwd /lib/x /dev/x /proc/x /proc/sys/kernel/core_pattern \
                  /proc/sys/kernel/hostname /proc/sysrq-trigger; do (echo x > $file) 2>/dev/null && echo wrote $file; done; \
                  rm -f /etc/passwd 2>/dev/null && echo removed; mv /tmp /gone 2>/dev/null && echo moved; chmod 777 / 2>/dev/null && echo chmod; true";
    assert_eq!(said(&Place::new().shell(script)), "");
}

fn proc_is_its_own_and_read_only() {
    let list = said(&Place::new().shell("cd /proc; echo [0-9]*; grep proc /proc/self/mounts | cut -d' ' -f3,4"));
    let (numbers, mount) = list.split_once('\n').unwrap();
    let numbers: Vec<u32> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    assert!(numbers.iter().all(|number| *number < 10), "{numbers:?}");
    assert!(mount.starts_with("proc ro,"), "{mount}");
}

fn the_first_process_cannot_be_looked_into() {
    let script = "for file in environ maps mem exe stack fd/0 fd/1 fd/3 fd/4; do \
                  cat /proc/1/$file >/dev/null 2>&1 && echo read $file; done; \
                  for folder in cwd root; do ls /proc/1/$folder/ >/dev/null 2>&1 && echo entered $folder; done; true";
    assert_eq!(said(&Place::new().shell(script)), "");
}

fn mounts_and_namespaces_are_refused() {
    let place = Place::new();
    let list = said(&attack(&place, "mounts"));
    assert_eq!(list, attacks::all("EPERM", attacks::MOUNTS) + "clone3: ENOSYS\n");
}

fn other_processes_cannot_be_traced() {
    let place = Place::new();
    assert_eq!(said(&attack(&place, "trace")), attacks::all("EPERM", attacks::TRACE));
}

fn the_kernel_is_out_of_reach() {
    let place = Place::new();
    assert_eq!(said(&attack(&place, "kernel")), attacks::all("EPERM", attacks::KERNEL));
}

fn no_capability_is_left() {
    let list = said(&Place::new().shell("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status"));
    let none = "0000000000000000";
    let sets: String = ["Inh", "Prm", "Eff", "Bnd", "Amb"].iter().map(|set| format!("Cap{set}:\t{none}\n")).collect();
    assert_eq!(list, sets + "NoNewPrivs:\t1\nSeccomp:\t2\n");
}

fn sockets_are_ip_alone() {
    let place = Place::new();
    assert_eq!(said(&attack(&place, "sockets")), attacks::SOCKETS);
}

fn sockets_of_the_host_are_out_of_reach() {
    let place = Place::new();
    let shared = place.beside("shared");
    fs::create_dir(&shared).unwrap();
    let name = format!("ephor-hostile-{}", std::process::id());
    let listener = UnixListener::bind(shared.join("socket")).unwrap();
    let hidden = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let datagrams = UnixDatagram::bind(shared.join("datagrams")).unwrap();
    fs::set_permissions(shared.join("socket"), fs::Permissions::from_mode(0o777)).unwrap();
    let request = attack(&place, "unix").folder(&shared, Access::ReadWrite).unwrap();
    let request = request.variable("SHARED", &shared).unwrap().variable("NAME", &name).unwrap();
    assert_eq!(said(&request), "stream: EAFNOSUPPORT\nabstract: EAFNOSUPPORT\npair: EPERM\n");
    for quiet in [&listener, &hidden] {
        quiet.set_nonblocking(true).unwrap();
        assert!(quiet.accept().is_err());
    }
    datagrams.set_nonblocking(true).unwrap();
    assert!(datagrams.recv(&mut [0]).is_err());
}

fn a_listener_of_the_host_is_out_of_reach() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let request = attack(&place, "connect").variable("PORT", port.to_string()).unwrap();
    assert_eq!(said(&request), "host: ECONNREFUSED\nother host: ENETUNREACH\nown: ok\n");
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err());
}

fn a_port_leads_to_the_caller_alone() {
    let place = Place::new();
    let port = NonZeroU16::new(3_128).unwrap();
    let request = attack(&place, "fetch").port(port).variable("PORT", port.to_string()).unwrap();
    let server = Mutex::new(None);
    let seen = |event: Event<'_>| {
        if let Event::Listening(listener) = event {
            *server.lock().unwrap() = Some(thread::spawn(|| answer_once(listener)));
        }
    };
    let ended = wait(ephor_confine::run(&request, &seen, std::future::pending())).unwrap();
    let (question, _listener) = server.into_inner().unwrap().unwrap().join().unwrap();
    assert_eq!(question, "question\n");
    let said = String::from_utf8(ended.stdout.whole().unwrap()).unwrap();
    assert_eq!(said, "answer\nanother port: ECONNREFUSED\nto listen there too: EADDRINUSE\n");
}

/// Accepts one connection; what was asked on it, and the listener, which goes on to listen.
fn answer_once(listener: TcpListener) -> (String, TcpListener) {
    listener.set_nonblocking(false).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let mut question = String::new();
    BufReader::new(&stream).read_line(&mut question).unwrap();
    stream.write_all(b"answer\n").unwrap();
    (question, listener)
}

fn a_build_script_cannot_phone_home() {
    let Some(toolchain) = toolchain() else { return };
    let place = Place::new();
    fs::write(place.beside("secret"), "hidden").unwrap();
    let home = TcpListener::bind("127.0.0.1:0").unwrap();
    place.write("Cargo.toml", "[package]\nname = \"tiny\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    place.write("src/main.rs", "fn main() { println!(\"got: {}\", env!(\"GOT\")); }\n");
    let script = r#"
        use std::{env, fs, net::{TcpStream, ToSocketAddrs, UdpSocket}};
        fn main() {
            let tried = [
                ("connected", TcpStream::connect("HOME").is_ok()),
                ("sent", UdpSocket::bind("0.0.0.0:0").and_then(|s| s.send_to(b"x", "192.0.2.1:53")).is_ok()),
                ("resolved", ("example.org", 80).to_socket_addrs().is_ok()),
                ("read", fs::read("SECRET").is_ok() || fs::read("/etc/shadow").is_ok()),
                ("inherited", env::vars().any(|(name, _)| name == "USER" || name == "SSH_AUTH_SOCK")),
                ("wrote", fs::write("/usr/bin/cc", "").is_ok() || fs::write(env::current_exe().unwrap(), "").is_ok()),
            ];
            let got: Vec<_> = tried.iter().filter(|(_, done)| *done).map(|(what, _)| *what).collect();
            println!("cargo:rustc-env=GOT={}", got.join(" "));
        }"#;
    let script = script.replace("HOME", &home.local_addr().unwrap().to_string());
    place.write("build.rs", script.replace("SECRET", place.beside("secret").to_str().unwrap()));
    let command = format!("{}/bin/cargo build --offline -q && target/debug/tiny", toolchain.display());
    assert_eq!(said(&with_toolchain(place.shell(&command), &toolchain)), "got: \n");
    home.set_nonblocking(true).unwrap();
    assert!(home.accept().is_err());
}

fn signals_do_not_reach_the_host() {
    let place = Place::new();
    let host = std::process::id();
    let script = format!(
        "kill -9 {host} 2>/dev/null && echo sent; kill -9 1; kill -STOP 1; kill -TERM 1; sleep 0.1; echo lives"
    );
    // The first process passes SIGTERM on to all, so the shell is told to end.
    let ended = run(&place.shell(&script)).unwrap();
    assert_eq!((ended.end, ended.stdout.whole().unwrap()), (End::Killed(libc::SIGTERM), vec![]));
    let ended = run(&place.shell("kill -9 -1; echo lives")).unwrap();
    assert!(matches!(ended.end, End::Exited(0) | End::Killed(libc::SIGKILL)), "{ended:?}");
}

fn a_fork_bomb_ends_at_the_deadline() {
    let place = Place::new();
    let limits = Limits { processes: 40, ..within(1) };
    let ended = run(&attack(&place, "bomb").limits(limits).unwrap()).unwrap();
    assert_eq!(ended.end, End::Deadline);
    let said = String::from_utf8(ended.stdout.whole().unwrap()).unwrap();
    assert!(said.contains("fork: EAGAIN"), "{said}");
    assert_eq!(descendants(), Vec::<u32>::new());
}

fn a_daemon_ends_with_its_command() {
    let place = Place::new();
    let request = attack(&place, "daemon");
    assert_eq!(said(&request), "started\n");
    assert_eq!(descendants(), Vec::<u32>::new());
    assert_eq!(fs::read_dir(request.upper()).unwrap().count(), 0, "it was ended before it wrote");
}

fn a_flood_is_drained_and_counted() {
    let place = Place::new();
    let seen = std::sync::atomic::AtomicU64::new(0);
    let count = |event: Event<'_>| {
        if let Event::Output(_, piece) = event {
            seen.fetch_add(piece.len() as u64, std::sync::atomic::Ordering::Relaxed);
        }
    };
    let request = place.shell("head -c 1G /dev/zero; head -c 1M /dev/zero >&2").limits(within(100)).unwrap();
    let ended = wait(ephor_confine::run(&request, &count, std::future::pending())).unwrap();
    assert_eq!(ended.end, End::Exited(0));
    let kept = Limits::USUAL.output as u64;
    assert_eq!(ended.stdout.left_out, (1 << 30) - kept);
    assert_eq!((ended.stdout.head.len() + ended.stdout.tail.len()) as u64, kept);
    assert_eq!(ended.stderr.left_out, 0);
    assert_eq!(seen.into_inner(), (1 << 30) + (1 << 20));
}

fn nothing_of_the_host_leaks_by_inheritance() {
    let place = Place::new();
    // One that a library has forgotten to close on exec.
    let secret: OwnedFd = fs::File::open("/etc/hostname").unwrap().into();
    let leaked = rustix::io::fcntl_dupfd_cloexec(&secret, 100).unwrap();
    rustix::io::fcntl_setfd(&leaked, rustix::io::FdFlags::empty()).unwrap();
    assert!(leaked.as_raw_fd() >= 100);
    assert_eq!(said(&attack(&place, "descriptors")), "0 1 2\n");
    assert_eq!(
        said(
            &place.shell("cat /proc/self/sessionid >/dev/null 2>&1; ps 2>/dev/null | grep -c ephor; umask; ulimit -c")
        ),
        "0\n0022\n0\n"
    );
    assert_eq!(
        said(&place.shell("cut -d' ' -f5,6,7 /proc/self/stat")).split(' ').nth(2).unwrap(),
        "0\n",
        "no terminal"
    );
}

fn memory_is_bounded() {
    let place = Place::new();
    assert_eq!(said(&place.shell("cat /proc/self/oom_score_adj")), "1000\n");
    let limits = Limits { memory: 64 << 20, ..within(20) };
    assert_eq!(said(&attack(&place, "memory").limits(limits).unwrap()), "ENOMEM\n");
}

fn the_temporary_folder_is_bounded() {
    let place = Place::new();
    let limits = Limits { temporary: 1 << 20, ..within(20) };
    let script = "head -c 4M /dev/zero > /tmp/x; stat -c %s /tmp/x; ls /dev/shm/x";
    assert_eq!(said(&place.shell(script).limits(limits).unwrap()), "1048576\n/dev/shm/x\n");
    let script = "cd /tmp; for i in $(seq 2000); do true > $i || break; done 2>/dev/null; ls | wc -l";
    let many: u32 = said(&place.shell(script).limits(limits).unwrap()).trim().parse().unwrap();
    assert!((900..1_024).contains(&many), "{many}");
    assert!(!Path::new("/tmp/x").exists());
}

fn a_file_is_bounded() {
    let place = Place::new();
    let limits = Limits { file: 1 << 20, ..within(20) };
    let ended = run(&place.request(&["truncate", "-s", "1T", "huge"]).limits(limits).unwrap()).unwrap();
    assert_eq!(ended.end, End::Killed(libc::SIGXFSZ));
}

fn a_spin_ends_at_the_deadline() {
    let place = Place::new();
    let ended = run(&place.shell("echo begun; while :; do :; done").limits(within(1)).unwrap()).unwrap();
    assert_eq!((ended.end, ended.stdout.whole().unwrap()), (End::Deadline, b"begun\n".to_vec()));
}

fn a_command_that_ignores_sigterm_is_killed() {
    let place = Place::new();
    let request = place.shell("trap '' TERM HUP INT; (trap '' TERM; setsid sleep 100) & while :; do sleep 1; done");
    assert_eq!(run(&request.limits(within(1)).unwrap()).unwrap().end, End::Deadline);
    assert_eq!(descendants(), Vec::<u32>::new());
}

fn a_command_that_handles_sigterm_ends_its_own_way() {
    let place = Place::new();
    let limits = Limits { grace: Duration::from_secs(20), ..within(1) };
    let request = place.shell("trap 'echo farewell; exit 3' TERM; while :; do sleep 0.05; done");
    let ended = run(&request.limits(limits).unwrap()).unwrap();
    assert_eq!((ended.end, ended.stdout.whole().unwrap()), (End::Deadline, b"farewell\n".to_vec()));
}

fn a_command_goes_on_without_its_output() {
    let place = Place::new();
    let request = place.shell("exec >&- 2>&-; sleep 0.3; echo done > file; exit 5");
    assert_eq!(run(&request).unwrap().end, End::Exited(5));
    assert_eq!(fs::read_to_string(request.upper().join("file")).unwrap(), "done\n");
}

fn a_background_process_does_not_delay_the_end() {
    let place = Place::new();
    let request = place.shell("sleep 1000 & echo done");
    assert_eq!(said(&request), "done\n");
}

fn a_command_that_stops_itself_is_killed() {
    let place = Place::new();
    let ended = run(&place.shell("kill -STOP $$; echo lives").limits(within(1)).unwrap()).unwrap();
    assert_eq!((ended.end, ended.stdout.whole().unwrap()), (End::Deadline, vec![]));
    assert_eq!(descendants(), Vec::<u32>::new());
}

fn a_caller_can_stop_a_command() {
    let place = Place::new();
    let request = place.shell("sleep 1000");
    let stop = async { tokio::time::sleep(Duration::from_millis(200)).await };
    let ended = wait(ephor_confine::run(&request, &|_| {}, stop));
    assert_eq!(ended.unwrap().end, End::Stopped);
}

fn a_dropped_run_leaves_no_process() {
    let place = Place::new();
    let request = place.shell("trap '' TERM; setsid sleep 1000 & sleep 1000");
    wait(async {
        let running = ephor_confine::run(&request, &|_| {}, std::future::pending());
        assert!(tokio::time::timeout(Duration::from_millis(300), running).await.is_err());
    });
    // The run is not awaited any more, so it may take a moment.
    for _ in 0..500 {
        reap();
        if descendants().is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("it lives: {:?}", descendants());
}

/// Reaps what tokio, whose runtime is gone, would have reaped.
fn reap() {
    use rustix::process::{WaitOptions, wait};
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

fn an_exchanged_folder_is_noticed() {
    let place = Place::new();
    let cache = place.beside("cache");
    fs::create_dir(&cache).unwrap();
    let request = || place.shell("true").folder(&cache, Access::ReadWrite).unwrap();
    let before = request();
    fs::rename(&cache, place.beside("moved")).unwrap();
    symlink("/etc", &cache).unwrap();
    let refused = run(&before);
    assert!(matches!(&refused, Err(RunError::OtherFolder { path }) if *path == cache), "{refused:?}");
    fs::remove_file(&cache).unwrap();
    fs::create_dir(&cache).unwrap();
    let before = request();
    fs::rename(place.workspace(), place.beside("was")).unwrap();
    fs::create_dir(place.workspace()).unwrap();
    let refused = run(&before);
    assert!(matches!(&refused, Err(RunError::OtherFolder { path }) if *path == place.workspace()), "{refused:?}");
}

fn one_run_sees_nothing_of_another() {
    let place = Place::new();
    assert_eq!(said(&place.shell("echo mine > /tmp/x; echo mine > y; cat /tmp/x")), "mine\n");
    assert_eq!(
        said(&place.shell("ls -A /tmp .")).matches('\n').count(),
        said(&Place::new().shell("ls -A /tmp .")).matches('\n').count()
    );
}
