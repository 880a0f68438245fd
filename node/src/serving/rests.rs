//! The process that puts a session away which nobody watches, once it has answered everything.

use std::sync::Arc;

use ephor_base::SessionId;
use ephor_kernel::{Body, Kernel, Life, Process};

/// Waits for one session.
struct Rest {
    kernel: Kernel,
    session: SessionId,
}

impl Body for Rest {
    fn run(&self, process: Process) -> Life {
        let (kernel, session) = (self.kernel.clone(), self.session);
        Life::new(async move {
            tokio::select! {
                () = kernel.rest(session) => {}
                () = process.stopping() => {}
            }
            Ok(())
        })
    }
}

/// Has a session put away when it has nothing to do and nobody watches it.
pub(super) async fn look_after(kernel: &Kernel, session: SessionId) {
    let name = format!("rest-{session}");
    let rest = Rest { kernel: kernel.clone(), session };
    // One that waits for it already will do; a node that stops needs none.
    if let Err(refused) = kernel.start_task(&name, Arc::new(rest)).await {
        tracing::debug!(%session, %refused, "nobody was started to put a session away");
    }
}
