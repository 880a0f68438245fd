//! Who may ask what of a node: one table, for everything that can be said on its socket.
//!
//! It names every request, so that a new one does not compile before somebody has said who may make it.

use ephor_chain::Role;

use crate::{operation::Operation, protocol::Request};

/// Whether somebody with this role may make the request. Without a role, nothing.
pub(super) fn check(request: &Request, role: Option<Role>) -> Result<(), String> {
    let needed = needed(request);
    match role {
        Some(role) if role >= needed => Ok(()),
        Some(role) => Err(format!("that takes the role `{}`, and this operator is `{}`", needed.name(), role.name())),
        None => Err("not an operator of this node any more".to_owned()),
    }
}

/// The least role that may make a request.
const fn needed(request: &Request) -> Role {
    match request {
        Request::Authenticate { .. }
        | Request::Derived { .. }
        | Request::Processes {}
        | Request::Space {}
        | Request::Publish {}
        | Request::Ask { .. }
        | Request::Prune { dry_run: true, .. } => Role::Viewer,
        // Who comes back to a session has to be the operator who answers for it; the node looks at that when it knows the session.
        Request::Open { .. } | Request::Attach { .. } | Request::Send { .. } | Request::Cancel { .. } => Role::Operator,
        Request::Rule { .. } => Role::Approver,
        Request::Erase { .. } | Request::Prune { dry_run: false, .. } | Request::Rotate {} => Role::Owner,
        Request::Operate { operation } => needed_to(operation),
    }
}

/// The least role that may do or see something beside conversations.
const fn needed_to(operation: &Operation) -> Role {
    match operation {
        Operation::Survey {}
        | Operation::Inspect { .. }
        | Operation::Approvals {}
        | Operation::Precedents {}
        | Operation::Suspended { .. }
        | Operation::Operators {}
        | Operation::Law {} => Role::Viewer,
        // Also to look: what a dead letter says, and what a schedule sends, was said to an agent.
        Operation::Letter { .. } | Operation::Schedules {} => Role::Operator,
        Operation::Signal { .. }
        | Operation::Budget { .. }
        | Operation::Replay { .. }
        | Operation::Bury { .. }
        | Operation::Schedule { .. }
        | Operation::Unschedule { .. } => Role::Operator,
        Operation::Judge { .. } => Role::Approver,
        Operation::Decree { .. } | Operation::Draft { .. } | Operation::Enact { .. } => Role::Owner,
    }
}
