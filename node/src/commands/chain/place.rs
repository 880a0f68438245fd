//! Where a chain lies: in a home, or in a folder that was copied from one.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use ephor_base::files::Files;
use ephor_chain::{disk::Disk, figures};
use ephor_record::ScanError;
use ephor_tlog::VerifierKeys;
use ephor_verify::Folder;
use ephor_verify::{ProveError, Prover};

use crate::{
    client::Client,
    commands::runtime,
    failure::NoChain,
    home::Home,
    protocol::{Answer, Request},
};

/// What a folder of a chain has at least one of.
const PARTS: [&str; 3] = ["journal", "checkpoint", "tile"];

/// Refuses a folder in which nothing of a chain lies.
pub(super) fn check_is_chain(folder: &Path) -> anyhow::Result<()> {
    if PARTS.iter().any(|part| folder.join(part).symlink_metadata().is_ok()) {
        return Ok(());
    }
    bail!(
        "there is no chain in `{}`: name a home, or the `chain` folder of one, such as `ephor chain verify HOME/chain`, or a copy of \
         that with `--key`",
        folder.display()
    )
}

/// A chain, and what lies around it.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    /// The home, or the folder that holds the copy.
    around: PathBuf,
    pub(super) files: Arc<dyn Files>,
}

impl Place {
    /// The chain of `directory`, or else that of the home.
    pub(super) fn find(home: &Home, directory: Option<&Path>) -> anyhow::Result<Self> {
        let root = directory.unwrap_or(home.path());
        // A name alone has no folder around it.
        let root = std::path::absolute(root).with_context(|| format!("`{}` is no path", root.display()))?;
        let inside = root.join("chain");
        let (folder, around) = match directory {
            _ if inside.is_dir() => (inside, root),
            Some(_) if root.is_dir() => (root.clone(), root.parent().map(Path::to_owned).unwrap_or_default()),
            Some(folder) => bail!("`{}` is no folder; DIR is a home, or a copied folder of a chain", folder.display()),
            None => bail!(NoChain(root)),
        };
        check_is_chain(&folder)?;
        Ok(Self { folder, around, files: Arc::new(Disk) })
    }

    /// What makes proofs out of what is published. If that is not `enough` and a node runs, it publishes the rest first.
    pub(super) fn prover(&self, enough: impl Fn(u64) -> bool) -> anyhow::Result<Prover> {
        let open = || {
            Prover::open(&Folder::source(&self.folder, &self.files))
                .context("nothing can be proven; see `ephor chain verify`")
        };
        if let Some(prover) = open()?.filter(|prover| enough(prover.checkpoint().head.size)) {
            return Ok(prover);
        }
        self.have_published()?;
        open()?.with_context(|| {
            format!(
                "nothing is published in `{}`: it holds no `checkpoint`; a node publishes it",
                self.folder.display()
            )
        })
    }

    /// The first entry that there is: 0 unless the chain was pruned.
    pub(super) fn first(&self) -> anyhow::Result<u64> {
        let minimum = ephor_chain::minimum::load(&self.folder, &self.files).context("see `ephor chain verify`")?;
        Ok(minimum.map_or(0, |minimum| minimum.index))
    }

    /// Has the node publish everything, if one runs here.
    fn have_published(&self) -> anyhow::Result<()> {
        let home = Home::find(Some(self.around.clone().into()))?;
        if self.folder != home.chain() || !home.credential().exists() {
            return Ok(());
        }
        let runtime = runtime(1)?;
        runtime.block_on(async {
            let Some(mut client) = Client::reach_running(&home).await? else { return Ok(()) };
            match client.ask(&Request::Publish {}).await? {
                Answer::Published { .. } => Ok(()),
                _ => bail!("the node answered something else"),
            }
        })
    }

    /// Why there is no proof of the entry `seq`, with what to do.
    pub(super) fn beyond(&self, seq: u64, published: u64) -> anyhow::Error {
        let recorded = figures::journal(&self.folder, &self.files).map_or(published, |journal| journal.head.size);
        if seq < recorded {
            return anyhow::anyhow!(
                "entry {seq} is on the record and not published yet, and no node runs that could: `ephor up` starts one"
            );
        }
        let last = recorded.max(published).saturating_sub(1);
        anyhow::anyhow!("there is no entry {seq}: the log in `{}` has the entries 0 to {last}", self.folder.display())
    }

    /// The public keys: those that were named, or else those beside the chain.
    pub(super) fn keys(&self, named: &[String]) -> anyhow::Result<VerifierKeys> {
        if named.is_empty() { super::keys::beside(&self.around) } else { super::keys::pair(named) }
    }
}

/// A proof that could not be made, with what to do.
pub(super) fn unproven(error: ProveError) -> anyhow::Error {
    if let ProveError::Scan(error @ ScanError::Pruned { .. }) = error {
        return anyhow::Error::new(error)
            .context("it cannot be proven any more; a proof that was made before still holds");
    }
    anyhow::Error::new(error).context("it cannot be proven: the published folder is damaged; see `ephor chain verify`")
}
