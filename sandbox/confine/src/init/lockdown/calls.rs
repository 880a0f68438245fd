//! The system calls that are refused, by seccomp(2).
//!
//! All others are allowed. The filter stands behind the namespaces: it refuses calls that reach far into the kernel or around a
//! namespace. It compares numbers alone, so nothing here depends on a path.

use std::{collections::BTreeMap, io};

use libc::{
    SYS_acct, SYS_add_key, SYS_adjtimex, SYS_bpf, SYS_chroot, SYS_clock_adjtime, SYS_clock_settime, SYS_clone,
    SYS_clone3, SYS_delete_module, SYS_fanotify_init, SYS_finit_module, SYS_fsconfig, SYS_fsmount, SYS_fsopen,
    SYS_fspick, SYS_init_module, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_ioctl, SYS_kcmp,
    SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_migrate_pages, SYS_mount, SYS_mount_setattr, SYS_move_mount,
    SYS_move_pages, SYS_nfsservctl, SYS_open_by_handle_at, SYS_open_tree, SYS_perf_event_open, SYS_pidfd_getfd,
    SYS_pivot_root, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace, SYS_quotactl, SYS_reboot, SYS_request_key,
    SYS_setdomainname, SYS_sethostname, SYS_setns, SYS_settimeofday, SYS_socket, SYS_socketpair, SYS_swapoff,
    SYS_swapon, SYS_syslog, SYS_umount2, SYS_unshare, SYS_userfaultfd, SYS_vhangup,
};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter, sock_filter,
};

/// Refused with EPERM, whatever the arguments.
const DENIED: [i64; 51] = [
    SYS_acct,
    SYS_add_key,
    SYS_adjtimex,
    SYS_bpf,
    SYS_chroot,
    SYS_clock_adjtime,
    SYS_clock_settime,
    SYS_delete_module,
    SYS_fanotify_init,
    SYS_finit_module,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fsopen,
    SYS_fspick,
    SYS_init_module,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_io_uring_setup,
    SYS_kcmp,
    SYS_kexec_load,
    SYS_keyctl,
    SYS_lookup_dcookie,
    SYS_migrate_pages,
    SYS_mount,
    SYS_mount_setattr,
    SYS_move_mount,
    SYS_move_pages,
    SYS_nfsservctl,
    SYS_open_by_handle_at,
    SYS_open_tree,
    SYS_perf_event_open,
    SYS_pidfd_getfd,
    SYS_pivot_root,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_ptrace,
    SYS_quotactl,
    SYS_reboot,
    SYS_request_key,
    SYS_setdomainname,
    SYS_sethostname,
    SYS_setns,
    SYS_settimeofday,
    SYS_swapoff,
    SYS_swapon,
    SYS_syslog,
    SYS_umount2,
    SYS_unshare,
    SYS_userfaultfd,
    SYS_vhangup,
    SYS_QUOTACTL_FD,
];

/// `quotactl_fd`, which libc does not name on every architecture; the number is the same on all.
const SYS_QUOTACTL_FD: i64 = 443;

/// The flags of `clone` that make namespaces.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
    libc::CLONE_PTRACE,
];

/// Calls of the x32 ABI have numbers from here on, and the same architecture in a filter.
const X32: u32 = 0x4000_0000;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Installs the filters on this process and its future children.
pub(super) fn restrict() -> io::Result<()> {
    let programs = [
        program(denied().map_err(io::Error::other)?, libc::EPERM)?,
        program(families().map_err(io::Error::other)?, libc::EAFNOSUPPORT)?,
        // A filter cannot read its flags, which lie in memory. On ENOSYS libraries use `clone`.
        program(Rules::from([(SYS_clone3, Vec::new())]), libc::ENOSYS)?,
        foreign(),
    ];
    programs.iter().try_for_each(|program| apply_filter(program).map_err(io::Error::other))
}

fn program(rules: Rules, refused: i32) -> io::Result<BpfProgram> {
    let architecture = TargetArch::try_from(std::env::consts::ARCH).map_err(io::Error::other)?;
    let refused = SeccompAction::Errno(refused.unsigned_abs());
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, architecture).map_err(io::Error::other)?;
    filter.try_into().map_err(io::Error::other)
}

/// Refused with EPERM.
fn denied() -> Result<Rules, seccompiler::BackendError> {
    let mut rules: Rules = DENIED.into_iter().map(|call| (call, Vec::new())).collect();
    #[cfg(target_arch = "x86_64")]
    for call in [libc::SYS_iopl, libc::SYS_ioperm, libc::SYS_kexec_file_load, libc::SYS_modify_ldt] {
        rules.insert(call, Vec::new());
    }
    let flags = NAMESPACES.into_iter().map(|flag| u64::from(flag.unsigned_abs()));
    let flags = flags.map(|flag| when(0, SeccompCmpOp::MaskedEq(flag), flag));
    rules.insert(SYS_clone, flags.collect::<Result<_, _>>()?);
    // These put characters into the input of a terminal.
    let typing =
        [libc::TIOCSTI, libc::TIOCLINUX].into_iter().map(|request| when(1, SeccompCmpOp::Eq, request & 0xffff_ffff));
    rules.insert(SYS_ioctl, typing.collect::<Result<_, _>>()?);
    // A socket of a datagram pair can send to any named socket. One of a stream pair cannot.
    let datagram = u64::from(libc::SOCK_DGRAM.unsigned_abs());
    rules.insert(SYS_socketpair, vec![when(1, SeccompCmpOp::MaskedEq(0xf), datagram)?]);
    Ok(rules)
}

/// TCP and UDP alone, which end at the loopback of the command's own namespace; of pairs, those of Unix alone.
fn families() -> Result<Rules, seccompiler::BackendError> {
    let not = |family: i32| condition(0, SeccompCmpOp::Ne, u64::from(family.unsigned_abs()));
    let family = SeccompRule::new(vec![not(libc::AF_INET)?, not(libc::AF_INET6)?])?;
    let neither = |protocol: i32| condition(2, SeccompCmpOp::Ne, u64::from(protocol.unsigned_abs()));
    let protocols = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP].map(neither);
    let protocol = SeccompRule::new(protocols.into_iter().collect::<Result<_, _>>()?)?;
    let pair = SeccompRule::new(vec![not(libc::AF_UNIX)?])?;
    Ok(Rules::from([(SYS_socket, vec![family, protocol]), (SYS_socketpair, vec![pair])]))
}

fn when(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(vec![condition(argument, is, value)?])
}

/// A condition on the lower 32 bits of an argument, which is all that the kernel uses of these.
fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Result<SeccompCondition, seccompiler::BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value)
}

/// Refuses every call of the x32 ABI. Written by hand: the library compares no ranges of call numbers.
fn foreign() -> BpfProgram {
    let code = |code: u32| u16::try_from(code).unwrap_or_default();
    let line = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let give = code(libc::BPF_RET | libc::BPF_K);
    vec![
        line(code(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS), 0, 0, 0),
        line(code(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K), 0, 1, X32),
        line(give, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs()),
        line(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}
