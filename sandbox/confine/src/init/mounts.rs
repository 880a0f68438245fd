//! The command's root file system.
//!
//! Everything is mounted below a `tmpfs` in the scratch folder, which then becomes the root; the host's root is detached. A folder
//! is bound first and then compared with the one that the request was made for, since a mount cannot be exchanged any more.

use std::{
    ffi::{CString, OsStr},
    fs::{self, DirBuilder, File, Permissions},
    io,
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, MetadataExt, PermissionsExt, symlink},
        },
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, openat2},
    io::Errno,
    mount::{
        MountAttrFlags, MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
        mount_change, unmount,
    },
    process::{chdir, getegid, geteuid, pivot_root},
};

use super::{Control, GivenUp};
use crate::{
    mechanism::Mechanism,
    plan::{self, Folder, How, Plan, Report},
    request::UPPER,
    sys,
};

/// Programs and libraries. Where one is a link, as with a merged `/usr`, the same link is made.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// The part of `/etc` that programs need to start and that names no person, host or secret.
const SETTINGS: [&str; 11] = [
    "alternatives",
    "ca-certificates.conf",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "protocols",
    "services",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// The devices without state.
const DEVICES: [&str; 5] = ["full", "null", "random", "urandom", "zero"];

/// The first version of Linux in which each PID namespace has a `pid_max` of its own. Before, it is the host's.
const OWN_PID_MAX: (u32, u32) = (6, 14);
/// The kernel does not reuse PIDs below this number (RESERVED_PIDS).
const NOT_AGAIN: u64 = 300;

/// `/tmp` has one inode for so many bytes: an empty file takes kernel memory too.
const BYTES_A_FILE: u64 = 4_096;
/// The fewest inodes of `/tmp`.
const FEWEST_FILES: u64 = 1_024;

/// Mounts the new root and enters it.
pub(super) fn make(control: &Control, plan: &Plan) -> Result<(), GivenUp> {
    let lacks = |step: &'static str| move |why: io::Error| control.lacks(Mechanism::Mounts, step, &why);
    let scratch = plan::path(&plan.scratch);
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|why| lacks("making mounts private")(why.into()))?;
    chdir(&scratch).map_err(|why| control.failed("going to the scratch folder", &why.into()))?;
    let root = Root(scratch.join("root"));
    root.make(plan).map_err(lacks("mounting the root"))?;
    match root.proc() {
        Ok(()) => root.limit_proc(plan).map_err(lacks("limiting /proc"))?,
        Err(why) => control.without(plan, Mechanism::Proc, "mounting /proc", &why)?,
    }
    for folder in &plan.folders {
        root.folder(control, folder)?;
    }
    root.folder(control, &plan.workspace)?;
    root.hide(plan).map_err(lacks("hiding files of the workspace"))?;
    root.enter().map_err(lacks("exchanging the root"))
}

/// The folder that becomes `/`.
struct Root(PathBuf);

impl Root {
    fn at(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.0.join(path.strip_prefix("/").unwrap_or(path))
    }

    fn make(&self, plan: &Plan) -> io::Result<()> {
        fs::create_dir(&self.0)?;
        temporary(&self.0, "mode=755,size=1m")?;
        for folder in ["/dev", "/etc", "/proc", "/tmp"] {
            fs::create_dir(self.at(folder))?;
        }
        let size = plan.bounds.temporary;
        let files = (size / BYTES_A_FILE).max(FEWEST_FILES);
        temporary(&self.at("/tmp"), &format!("mode=1777,size={size},nr_inodes={files}"))?;
        SYSTEM.iter().try_for_each(|folder| self.system(Path::new(folder)))?;
        SETTINGS.iter().try_for_each(|name| self.setting(&Path::new("/etc").join(name)))?;
        self.names()?;
        self.devices()
    }

    fn system(&self, folder: &Path) -> io::Result<()> {
        match fs::symlink_metadata(folder) {
            Ok(found) if found.is_symlink() => symlink(fs::read_link(folder)?, self.at(folder)),
            Ok(found) if found.is_dir() => {
                fs::create_dir(self.at(folder))?;
                bind(folder, &self.at(folder), &READ_ONLY)
            }
            _ => Ok(()),
        }
    }

    fn setting(&self, path: &Path) -> io::Result<()> {
        let Ok(found) = fs::metadata(path) else { return Ok(()) };
        let here = self.at(path);
        if let Some(parent) = here.parent() {
            fs::create_dir_all(parent)?;
        }
        if found.is_dir() {
            fs::create_dir(&here)?
        } else {
            drop(File::create_new(&here)?)
        }
        bind(path, &here, &READ_ONLY)
    }

    /// The files in which programs look up users and hosts. The host's own ones name people and other hosts.
    fn names(&self) -> io::Result<()> {
        let (user, group) = (geteuid().as_raw(), getegid().as_raw());
        let name = if user == 0 { "root" } else { "ephor" };
        let files = [
            ("passwd", format!("{name}:x:{user}:{group}::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n")),
            ("group", format!("{name}:x:{group}:\nnogroup:x:65534:\n")),
            ("hosts", "127.0.0.1 localhost ephor\n::1 localhost\n".into()),
            ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n".into()),
        ];
        files.into_iter().try_for_each(|(file, text)| fs::write(self.at("/etc").join(file), text))
    }

    fn devices(&self) -> io::Result<()> {
        let dev = self.at("/dev");
        for device in DEVICES {
            File::create_new(dev.join(device))?;
            let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
            bind(&Path::new("/dev").join(device), &dev.join(device), &attributes)?;
        }
        let links =
            [("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("shm", "/tmp")];
        links.into_iter().try_for_each(|(name, target)| symlink(target, dev.join(name)))
    }

    fn proc(&self) -> io::Result<()> {
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount("proc", self.at("/proc"), "proc", flags, None)?)
    }

    /// Read-only: `/proc/sys` holds settings of the host, which user 0 may write without any capability.
    fn limit_proc(&self, plan: &Plan) -> io::Result<()> {
        let here = self.at("/proc");
        if linux() >= OWN_PID_MAX {
            let most = plan.bounds.processes.saturating_add(NOT_AGAIN);
            fs::write(here.join("sys/kernel/pid_max"), most.to_string())?;
        }
        attribute(&here, &MountAttrFlags::MOUNT_ATTR_RDONLY, false)
    }

    /// Binds a folder of the request, or mounts the overlay over it.
    fn folder(&self, control: &Control, folder: &Folder) -> Result<(), GivenUp> {
        let path = plan::path(&folder.path);
        let lacks = |step: &'static str| move |why: io::Error| control.lacks(Mechanism::Mounts, step, &why);
        let here = self.at(&path);
        fs::create_dir_all(&here).map_err(|why| control.failed("making a folder to mount on", &why))?;
        let on = if folder.how == How::Overlay { Path::new(LOWER) } else { &here };
        if folder.how == How::Overlay {
            fs::create_dir(on).map_err(|why| control.failed("making a folder to mount on", &why))?;
        }
        let attributes = match folder.how {
            How::ReadOnly | How::Overlay => READ_ONLY,
            How::ReadWrite => READ_WRITE,
        };
        bind(&path, on, &attributes).map_err(lacks("binding a folder"))?;
        let found = fs::metadata(on).map_err(|why| control.failed("looking at a folder", &why))?;
        if (found.dev(), found.ino()) != (folder.device, folder.inode) {
            control.tell(&Report::Other(folder.path.clone()));
            return Err(GivenUp);
        }
        if folder.how == How::Overlay {
            overlay(&here, found.mode())
                .map_err(|why| control.lacks(Mechanism::Overlay, "mounting the overlay", &why))?;
        }
        Ok(())
    }

    /// Mounts something empty and closed over each hidden path. What is held by its handle is what is hidden, so no link that is put on
    /// the way leads elsewhere.
    fn hide(&self, plan: &Plan) -> io::Result<()> {
        if plan.hidden.is_empty() {
            return Ok(());
        }
        let (file, folder) = (self.at("/dev/.hidden-file"), self.at("/dev/.hidden-folder"));
        DirBuilder::new().mode(0o000).create(&folder)?;
        File::create_new(&file)?.set_permissions(Permissions::from_mode(0o000))?;
        let workspace = File::open(self.at(plan::path(&plan.workspace.path)))?;
        for path in &plan.hidden {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
            let held = match openat2(&workspace, plan::path(path), flags, Mode::empty(), within) {
                Ok(held) => held,
                // Gone, or a link by now.
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                Err(why) => return Err(why.into()),
            };
            let cover = match FileType::from_raw_mode(fstat(&held)?.st_mode) {
                FileType::Directory => &folder,
                FileType::Symlink => continue,
                _ => &file,
            };
            let on = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
            mount_bind(cover, &on)?;
            // The handle is of what lies below; the name now leads to the mount.
            let covered = openat2(&workspace, plan::path(path), flags, Mode::empty(), within)?;
            sys::restrict(covered.as_fd(), u64::from(READ_ONLY.bits()), false)?;
        }
        Ok(())
    }

    fn enter(&self) -> io::Result<()> {
        attribute(&self.0, &MountAttrFlags::MOUNT_ATTR_RDONLY, false)?;
        chdir(&self.0)?;
        // The old root is stacked on the new one, and detached there (pivot_root(2)).
        pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        chdir("/")?;
        Ok(())
    }
}

/// Where the workspace is bound, in the scratch folder, as the lower layer. It is detached with the host's root.
const LOWER: &str = "lower";

const READ_WRITE: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_NOSUID.union(MountAttrFlags::MOUNT_ATTR_NODEV);
const READ_ONLY: MountAttrFlags = READ_WRITE.union(MountAttrFlags::MOUNT_ATTR_RDONLY);

/// Mounts the overlay. The names in its options are relative and fixed, since options cannot hold every character of a path.
fn overlay(on: &Path, mode: u32) -> io::Result<()> {
    for folder in [UPPER, "work"] {
        DirBuilder::new().mode(0o700).create(folder)?;
    }
    fs::set_permissions(UPPER, Permissions::from_mode(mode & 0o7777))?;
    // Volatile: the upper layer need not survive a crash of the host.
    let options = CString::new(format!("lowerdir={LOWER},upperdir={UPPER},workdir=work,userxattr,volatile"))?;
    mount("overlay", on, "overlay", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
    Ok(())
}

fn temporary(on: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    mount("tmpfs", on, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options.as_c_str())?;
    Ok(())
}

/// Binds a folder with the mounts below it, or a file.
fn bind(from: &Path, to: &Path, attributes: &MountAttrFlags) -> io::Result<()> {
    let folder = fs::metadata(from)?.is_dir();
    if folder { mount_bind_recursive(from, to) } else { mount_bind(from, to) }?;
    attribute(to, attributes, folder)
}

fn attribute(on: &Path, attributes: &MountAttrFlags, recursive: bool) -> io::Result<()> {
    let on = rustix::fs::open(on, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    sys::restrict(on.as_fd(), u64::from(attributes.bits()), recursive)
}

/// The running kernel's version.
fn linux() -> (u32, u32) {
    let name = rustix::system::uname();
    let release = OsStr::from_bytes(name.release().to_bytes()).to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map_while(|number| number.parse().ok());
    (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default())
}
