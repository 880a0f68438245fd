//! Which mechanisms this machine offers.

use std::{collections::BTreeMap, path::Path, time::Duration};

use crate::{
    mechanism::{Lack, Lacking, Mechanism},
    request::{Limits, Request, RequestError, Workspace, trial},
    run::{self, RunError},
};

/// A trial runs no command, so it takes much less.
const TRIAL: Limits = Limits { deadline: Duration::from_secs(10), ..Limits::USUAL };

/// Whether a mechanism is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Found {
    /// It was tried and works.
    Works,
    /// It was tried and does not work.
    Lacks(Lacking),
    /// It was not tried, because one that it needs is missing.
    Untried,
}

/// Why nothing could be tried.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The folders cannot be used.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The init stage failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Tries each mechanism as a run would, on an empty `workspace`, an empty `scratch` folder of mode 700, and the delegated `cgroup`
/// if there is one. Runs no command. The caller discards both folders. [`Mechanism::mend`] says what an operator can do.
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
    let told = run::attempt(&trial(&request), TRIAL).await?;
    if told.end.is_none() && told.lacks.is_none() {
        return Err(RunError::Silent(told.status).into());
    }
    let mut found: BTreeMap<_, _> = Mechanism::ALL.into_iter().map(|mechanism| (mechanism, Found::Works)).collect();
    if let Some(last) = &told.lacks {
        let after = Mechanism::ALL.into_iter().skip_while(|mechanism| *mechanism != last.mechanism);
        found.extend(after.map(|mechanism| (mechanism, Found::Untried)));
    }
    let lacking = told.without.into_iter().chain(told.lacks).chain(run::cgroup(&request).err());
    found.extend(lacking.map(|lacking| (lacking.mechanism, Found::Lacks(lacking))));
    Ok(found)
}
