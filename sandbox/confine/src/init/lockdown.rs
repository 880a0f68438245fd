//! What the processes of the namespace give up before the command starts: new privileges, capabilities, files (Landlock), system
//! calls (seccomp) and resources (limits).

mod calls;

use std::io;

use landlock::{
    ABI, Access as _, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
    path_beneath_rules,
};
use rustix::{
    io::Errno,
    process::{Resource, Rlimit, getrlimit, setrlimit},
    thread::{
        CapabilitiesSecureBits, CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_capabilities_secure_bits, set_no_new_privs,
    },
};

use super::{Control, GivenUp};
use crate::{
    mechanism::Mechanism,
    plan::{self, Bounds, How, Plan},
};

/// The newest version of Landlock that is asked for. An older kernel enforces the part that it knows.
const NEWEST: ABI = ABI::V7;

/// With 0 the kernel still pipes a core to the program that `core_pattern` names, which runs on the host. With 1 it does not
/// (`do_coredump` in fs/coredump.c).
const NO_CORE: u64 = 1;

/// Processes of the run that are not the command's: the outer and the first.
const OURS: u64 = 2;

/// Gives up everything but resources, which [`limit`] bounds in the command itself.
pub(super) fn lock(control: &Control, plan: &Plan) -> Result<(), GivenUp> {
    set_no_new_privs(true).map_err(|why| control.failed("giving up new privileges", &why.into()))?;
    capabilities().map_err(|why| control.failed("giving up capabilities", &why))?;
    let enforced = files(plan).map_err(io::Error::other);
    let enforced = enforced.and_then(|enforced| enforced.then_some(()).ok_or_else(|| Errno::NOSYS.into()));
    if let Err(why) = enforced {
        control.without(plan, Mechanism::Landlock, "restricting files", &why)?;
    }
    if let Err(why) = calls::restrict() {
        control.without(plan, Mechanism::Seccomp, "restricting system calls", &why)?;
    }
    Ok(())
}

fn capabilities() -> io::Result<()> {
    clear_ambient_capability_set()?;
    for number in 0..u64::BITS {
        match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
            Ok(()) => {}
            // The kernel has no capability of this number, nor a higher one.
            Err(Errno::INVAL) => break,
            Err(why) => return Err(why.into()),
        }
    }
    let bits = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    set_capabilities_secure_bits(bits)?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Lets everything be read, and the declared folders, `/tmp` and the devices be written. Returns whether the kernel enforces it.
fn files(plan: &Plan) -> Result<bool, RulesetError> {
    let all = AccessFs::from_all(NEWEST);
    let devices = AccessFs::from_read(NEWEST) | AccessFs::WriteFile | AccessFs::IoctlDev;
    let declared = plan.folders.iter().chain([&plan.workspace]).filter(|folder| folder.how != How::ReadOnly);
    let written: Vec<_> = declared.map(|folder| plan::path(&folder.path)).chain(["/tmp".into()]).collect();
    let status = Ruleset::default()
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rules(path_beneath_rules(["/"], AccessFs::from_read(NEWEST)))?
        .add_rules(path_beneath_rules(["/dev"], devices))?
        .add_rules(path_beneath_rules(written, all))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

/// Bounds what this process and its children use.
pub(super) fn limit(bounds: &Bounds) -> io::Result<()> {
    let processes = bounds.processes.saturating_add(OURS);
    let limits = [
        (Resource::Core, NO_CORE),
        (Resource::Data, bounds.memory),
        (Resource::Nproc, processes),
        (Resource::Fsize, bounds.file),
        (Resource::Nofile, bounds.open_files),
    ];
    for (resource, most) in limits {
        // A lower limit of the caller cannot be raised.
        let most = getrlimit(resource).maximum.map_or(most, |held| held.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}
