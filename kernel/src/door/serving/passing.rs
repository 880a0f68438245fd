//! What a call passes, and what is seen of it while it runs.

use ephor_base::{ActionKind, CallId, Seq};
use ephor_chain::HoldKind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Serving;
use crate::{
    door::{CallState, Flight, Refusal, asked::Asked, session::Turn},
    driver::PreviewItem,
    holds::Passage,
    seen::Seen,
};

impl Serving {
    /// Waits while the seat is held, and lets the call through. What was stopped does nothing more; a reply may still end its
    /// turn, also where a budget is spent.
    pub(super) async fn let_go(&self, kind: ActionKind) -> Result<Passage, Refusal> {
        let may = |hold| kind == ActionKind::Reply && hold != HoldKind::Suspended;
        let mut changes = self.door.holds.changes();
        let mut waits = false;
        let passed = loop {
            match self.door.holds.pass(&self.caller.seat, may) {
                Ok(passage) => break Ok(passage),
                Err(HoldKind::Stopped) => break Err(Refusal::Fenced),
                Err(_) if !waits => {
                    waits = true;
                    self.wait(Turn::begin_wait);
                }
                Err(_) => {}
            }
            tokio::select! {
                () = changes.changed() => {}
                () = self.stopped() => break Err(Refusal::Fenced),
            }
        };
        if waits {
            self.wait(Turn::end_wait);
        }
        passed
    }

    pub(super) fn flight(&self, asked: &Asked, intent: Seq) -> Flight {
        Flight {
            call: asked.call,
            action: asked.kind,
            target: asked.target.clone(),
            attempt: asked.attempt,
            pid: self.caller.pid,
            seat: self.caller.seat.clone(),
            session: self.caller.session,
            intent,
            since: self.door.clock().monotonic(),
        }
    }

    /// Shows the driver's work until it has no more to show, or is over: a preview that it kept holds nothing up.
    pub(super) async fn forward(
        &self,
        mut items: mpsc::Receiver<PreviewItem>,
        over: &CancellationToken,
        call: CallId,
        shows: bool,
    ) {
        let mut streaming = false;
        loop {
            let item = tokio::select! {
                biased;
                item = items.recv() => item,
                () = over.cancelled(), if !items.is_closed() => {
                    items.close();
                    continue;
                }
            };
            let Some(item) = item else { return };
            if !streaming {
                streaming = true;
                let _left: Result<(), _> = self.states.try_send(CallState::Streaming);
            }
            let seen = match item {
                PreviewItem::Text(text) => Seen::Text { call, text },
                PreviewItem::ToolUse(_) => continue,
                PreviewItem::Progress(text) => Seen::Progress { call, text },
            };
            if shows {
                self.show(seen).await;
            }
        }
    }
}
