//! What can be typed about what was written.

use clap::Args;
use ephor_base::SessionId;

#[derive(Args, Debug)]
pub(crate) struct Undo {
    /// The session, as `ephor sessions` names it.
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// Undo what was written from this entry on [default: everything that the session has written].
    #[arg(long, value_name = "ENTRY")]
    pub(crate) to: Option<u64>,
    /// Only say what would be put back.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Permit each of these writes, where the constitution asks; recorded as your ruling on that write. An approver does this.
    #[arg(long, conflicts_with = "dry_run")]
    pub(crate) allow: bool,
    /// Print events as JSON lines.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The session, as `ephor sessions` names it.
    #[arg(value_name = "SESSION")]
    pub(crate) session: SessionId,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
