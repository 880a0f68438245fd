//! `[shell]`: what commands find beside the workspace, and what they may use.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use ephor_confine::{Access, Lack, Limits};
use ephor_sandbox::ShellSettings;
use serde::Deserialize;

use crate::bytes::Bytes;

/// The environment of a command, where nothing else is configured. `/tmp` is its own.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
    ("HOME", "/tmp"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("SHELL", "/bin/bash"),
];

/// Bytes of each of a command's two outputs that a model is given.
const OUTPUT: usize = 24 << 10;

#[derive(Deserialize, Clone, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shell {
    /// Folders that commands can read and execute from, such as a toolchain.
    read: Vec<PathBuf>,
    /// Folders that they can also write, in place: a cache.
    write: Vec<PathBuf>,
    /// Variables, beside or instead of the usual ones.
    environment: BTreeMap<String, String>,
    /// The mechanisms that may be missing.
    without: Vec<Without>,
    /// A delegated cgroup v2, which then holds the memory and the processes of each command.
    cgroup: Option<PathBuf>,
    /// Bytes of memory: with a cgroup of all processes of a command together, without of each.
    memory: Option<Bytes>,
    /// Processes and threads of a command at one time.
    processes: Option<u64>,
}

/// A mechanism that may be missing, by name.
#[derive(Deserialize, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum Without {
    Proc,
    Loopback,
    Landlock,
    Seccomp,
}

impl Shell {
    /// For the driver of commands, in a home.
    pub(crate) fn settings(&self, home: &Path) -> ShellSettings {
        let usual = Limits::USUAL;
        let of = |folders: &[PathBuf], access| {
            folders.iter().map(move |folder| (folder.clone(), access)).collect::<Vec<_>>()
        };
        let lack = |without: &Without| match without {
            Without::Proc => Lack::Proc,
            Without::Loopback => Lack::Loopback,
            Without::Landlock => Lack::Landlock,
            Without::Seccomp => Lack::Seccomp,
        };
        let mut environment: BTreeMap<String, String> =
            ENVIRONMENT.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        environment.extend(self.environment.clone());
        let mut without: Vec<Lack> = self.without.iter().map(lack).collect();
        if self.cgroup.is_none() {
            without.push(Lack::Cgroup);
        }
        ShellSettings {
            scratch: home.join("scratch"),
            folders: [of(&self.read, Access::ReadOnly), of(&self.write, Access::ReadWrite)].concat(),
            environment,
            without,
            cgroup: self.cgroup.clone(),
            limits: Limits {
                memory: self.memory.map_or(usual.memory, |memory| memory.0),
                processes: self.processes.unwrap_or(usual.processes),
                output: OUTPUT,
                ..usual
            },
        }
    }
}
