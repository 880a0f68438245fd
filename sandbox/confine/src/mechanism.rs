//! The mechanisms that confine a command.

use std::{fmt, io};

use minicbor::{Decode, Encode};

/// A mechanism of Linux that a run needs.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum Mechanism {
    /// User namespaces, and with them PID, IPC, UTS, mount, cgroup and network namespaces.
    #[n(0)]
    Namespaces,
    /// Mounting within the user namespace.
    #[n(1)]
    Mounts,
    /// The overlay over the workspace (Linux 5.11).
    #[n(2)]
    Overlay,
    /// A `/proc` of the command's own PID namespace.
    #[n(3)]
    Proc,
    /// The loopback of the command's own network namespace.
    #[n(4)]
    Loopback,
    /// Landlock (Linux 5.13).
    #[n(5)]
    Landlock,
    /// Seccomp with filters.
    #[n(6)]
    Seccomp,
    /// A delegated cgroup v2 with the controllers for memory and for the number of processes.
    #[n(7)]
    Cgroup,
}

impl Mechanism {
    /// All mechanisms, in the order in which a run needs them.
    pub const ALL: [Self; 8] = [
        Self::Cgroup,
        Self::Namespaces,
        Self::Mounts,
        Self::Proc,
        Self::Overlay,
        Self::Loopback,
        Self::Landlock,
        Self::Seccomp,
    ];

    /// What an operator can do where the mechanism is missing.
    #[must_use]
    pub const fn mend(self) -> &'static str {
        match self {
            Self::Namespaces => {
                "allow user namespaces: sysctl user.max_user_namespaces above 0, \
                 kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, a seccomp profile that permits unshare in a container"
            }
            Self::Mounts => {
                "allow mounts in user namespaces: kernel.apparmor_restrict_unprivileged_userns=0 on Ubuntu, \
                 an AppArmor profile for ephor, or a container without a profile that denies mount"
            }
            Self::Overlay => {
                "use Linux 5.11 or later with overlayfs, and keep scratch folders on ext4, xfs, btrfs or tmpfs, not on an overlay"
            }
            Self::Proc => {
                "run where /proc is not masked (docker: --security-opt systempaths=unconfined), or accept `proc`"
            }
            Self::Loopback => "permit a netlink socket in the new network namespace, or accept `loopback`",
            Self::Landlock => {
                "use Linux 5.13 or later with `landlock` among the security modules (lsm=), or accept `landlock`"
            }
            Self::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER, or accept `seccomp`",
            Self::Cgroup => {
                "delegate a cgroup v2 with the controllers memory and pids and no process of its own \
                 (systemd: Delegate=yes, DelegateSubgroup=node) and name it, or accept `cgroup`"
            }
        }
    }

    /// The lack that a request may accept; none for a mechanism without which nothing is confined.
    #[must_use]
    pub const fn lack(self) -> Option<Lack> {
        match self {
            Self::Namespaces | Self::Mounts | Self::Overlay => None,
            Self::Proc => Some(Lack::Proc),
            Self::Loopback => Some(Lack::Loopback),
            Self::Landlock => Some(Lack::Landlock),
            Self::Seccomp => Some(Lack::Seccomp),
            Self::Cgroup => Some(Lack::Cgroup),
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Namespaces => "namespaces",
            Self::Mounts => "mounts",
            Self::Overlay => "overlay",
            Self::Proc => "proc",
            Self::Loopback => "loopback",
            Self::Landlock => "landlock",
            Self::Seccomp => "seccomp",
            Self::Cgroup => "cgroup",
        })
    }
}

/// A missing mechanism that a request may accept. Each variant says what that leaves open.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Encode, Decode)]
#[cbor(index_only)]
pub enum Lack {
    /// The command has no `/proc`, and many programs fail. As root without a cgroup, the number of processes is not bounded.
    #[n(0)]
    Proc,
    /// The command has no loopback. Nothing is left open.
    #[n(1)]
    Loopback,
    /// Mounts alone decide what can be read and written.
    #[n(2)]
    Landlock,
    /// Every system call is within reach, and so are Unix sockets in the declared folders.
    #[n(3)]
    Seccomp,
    /// Only the private data of each process is bounded, not the memory of all processes together nor shared memory. If the host
    /// runs out, the kernel kills the command first. As root before Linux 6.14, the number of processes is not bounded.
    #[n(4)]
    Cgroup,
}

/// A missing mechanism, with the kernel's error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lacking {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The step that failed.
    pub step: String,
    /// The kernel's error number; absent if it was not the kernel that refused.
    pub errno: Option<i32>,
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the mechanism `{}` is missing: {}", self.mechanism, self.step)?;
        if let Some(errno) = self.errno {
            write!(f, ": {}", io::Error::from_raw_os_error(errno))?;
        }
        write!(f, "; {}", self.mechanism.mend())
    }
}
