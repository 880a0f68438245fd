//! Which mechanisms there are, for `ephor doctor`.

use std::{collections::BTreeMap, path::Path, time::Duration};

use crate::{
    mechanism::{Lack, Lacking, Mechanism},
    plan::Report,
    request::{Request, RequestError, Workspace, trial},
    run::{RunError, Running, lacking},
};

/// How long a trial may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a mechanism is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// It works: it was tried.
    Works,
    /// It does not.
    Lacks(Lacking),
    /// It was not tried, because one before it is lacking.
    Untried,
}

/// Why nothing could be tried.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// About the folders.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// About the init stage.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Tries each mechanism, as a run would, on an empty `workspace` with an empty `scratch` folder of mode 700, and with the delegated
/// `cgroup` if there is one. No command runs. The caller discards both folders.
///
/// # Errors
/// [`ProbeError`], if nothing could be tried.
pub async fn probe(
    workspace: &Path,
    scratch: &Path,
    cgroup: Option<&Path>,
) -> Result<BTreeMap<Mechanism, Found>, ProbeError> {
    let mut request = Request::new(vec!["true".into()], workspace, Workspace::Overlay, scratch)?;
    for lack in [Lack::Proc, Lack::Loopback, Lack::Landlock, Lack::Seccomp] {
        request = request.accepting(lack);
    }
    if let Some(cgroup) = cgroup {
        request = request.cgroup(cgroup.into());
    }
    let mut running = Running::start(&trial(&request)).await?;
    running.end(PATIENCE, PATIENCE, std::future::pending()).await?;
    let mut found = judge(running.reports().await?)?;
    let cgroup = crate::run::cgroup(&request).err().map_or(Found::Works, Found::Lacks);
    found.insert(Mechanism::Cgroup, cgroup);
    Ok(found)
}

fn judge(reports: Vec<Report>) -> Result<BTreeMap<Mechanism, Found>, RunError> {
    let (mut lacks, mut over) = (BTreeMap::new(), false);
    for report in reports {
        match report {
            Report::Lacks(mechanism, step, errno) => {
                lacks.insert(mechanism, lacking(mechanism, step, errno));
            }
            Report::Exited(_) => over = true,
            Report::Failed(step, errno) => {
                let source = std::io::Error::from_raw_os_error(errno);
                return Err(RunError::NotStarted { step, source });
            }
            Report::Other(_) | Report::NoProgram(_) | Report::Killed(_) => {}
        }
    }
    let mut reached = true;
    let mut found = BTreeMap::new();
    for mechanism in Mechanism::ALL {
        let here = match lacks.remove(&mechanism) {
            Some(lacking) => {
                // The trial stops at what nothing can go without.
                reached = reached && mechanism.lack().is_some();
                Found::Lacks(lacking)
            }
            None if reached => Found::Works,
            None => Found::Untried,
        };
        found.insert(mechanism, here);
    }
    // A trial that said nothing at all tried nothing.
    if !over && reached {
        found.values_mut().for_each(|here| *here = Found::Untried);
    }
    Ok(found)
}
