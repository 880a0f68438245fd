//! The cgroup v2 of one run, a child of the delegated one.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use crate::{
    mechanism::{Lacking, Mechanism},
    request::Request,
};

/// The controllers that a run needs.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];

/// Killed and removed on drop.
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// Creates one with the limits of the request.
    pub(super) fn make(request: &Request) -> Result<Self, Lacking> {
        let lacking = |step: &str, why: Option<io::Error>| Lacking {
            mechanism: Mechanism::Cgroup,
            step: step.into(),
            errno: why.and_then(|why| why.raw_os_error()),
        };
        let Some(delegated) = request.delegated() else { return Err(lacking("none was named", None)) };
        let read = |file: &str| fs::read_to_string(delegated.join(file));
        let offered = read("cgroup.controllers").map_err(|why| lacking("reading its controllers", Some(why)))?;
        if !CONTROLLERS.iter().all(|name| offered.split_whitespace().any(|offer| offer == *name)) {
            return Err(lacking("it was delegated without the controllers memory and pids", None));
        }
        fs::write(delegated.join("cgroup.subtree_control"), "+memory +pids")
            .map_err(|why| lacking("passing on its controllers", Some(why)))?;
        let (device, inode) = request.scratch();
        let cgroup = Self(delegated.join(format!("ephor-{device}-{inode}")));
        fs::create_dir(&cgroup.0).map_err(|why| lacking("making one for the run", Some(why)))?;
        cgroup.limit(request).map_err(|why| lacking("setting its limits", Some(why)))?;
        Ok(cgroup)
    }

    fn limit(&self, request: &Request) -> io::Result<()> {
        let limits = request.held_to();
        fs::write(self.0.join("memory.max"), limits.memory.to_string())?;
        fs::write(self.0.join("memory.oom.group"), "1")?;
        if self.0.join("memory.swap.max").exists() {
            fs::write(self.0.join("memory.swap.max"), "0")?;
        }
        // And the outer and the first process.
        fs::write(self.0.join("pids.max"), limits.processes.saturating_add(2).to_string())
    }

    /// The file through which a process enters.
    pub(super) fn door(&self) -> PathBuf {
        self.0.join("cgroup.procs")
    }

    /// Whether the kernel has killed a process of it for memory.
    pub(super) fn starved(&self) -> bool {
        let events = fs::read_to_string(self.0.join("memory.events")).unwrap_or_default();
        let kills = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
        kills.is_some_and(|kills| kills != "0")
    }

    fn remove(path: &Path) -> io::Result<()> {
        fs::write(path.join("cgroup.kill"), "1")?;
        fs::remove_dir(path)
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // One whose processes have not all ended stays, empty; the next run has a name of its own.
        let _: io::Result<()> = Self::remove(&self.0);
    }
}
