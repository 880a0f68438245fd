//! What a call passes, and what is seen of it while it runs.

use ephor_base::{ActionKind, CallId, Confidentiality, MessageId, Seq};
use ephor_record::HoldKind;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Serving;
use crate::{
    door::{CallState, Flight, Refusal, Session, asked::Asked},
    driver::PreviewItem,
    holds::Passage,
    seen::Seen,
};

/// The clock of a turn stands: of the one in which this was begun, and of no other.
pub(super) struct Pause<'a>(&'a Serving, Option<MessageId>);

impl Drop for Pause<'_> {
    fn drop(&mut self) {
        let Self(serving, Some(begun)) = self else { return };
        let now = serving.door.clock().monotonic();
        serving.door.with_session(serving.caller.session, |session| {
            session.turn.as_mut().filter(|turn| turn.message == *begun).map(|turn| turn.end_wait(now))
        });
    }
}

impl Serving {
    /// Waits while the seat is held, and lets the call through. What was stopped does nothing more; a reply may still end its
    /// turn, also where a budget is spent.
    pub(super) async fn let_go(&self, kind: ActionKind) -> Result<Passage, Refusal> {
        let may = |hold| kind == ActionKind::Reply && hold != HoldKind::Suspended;
        let mut changes = self.door.holds.changes();
        let mut _pause = None;
        loop {
            match self.door.holds.pass(&self.caller.seat, may) {
                Ok(passage) => return Ok(passage),
                Err(HoldKind::Stopped) => return Err(Refusal::Fenced),
                Err(_) => _pause = _pause.or_else(|| Some(self.pause())),
            }
            tokio::select! {
                () = changes.changed() => {}
                () = self.stopped() => return Err(Refusal::Fenced),
            }
        }
    }

    /// Stops the clock of the turn, until what is given is dropped.
    pub(super) fn pause(&self) -> Pause<'_> {
        let now = self.door.clock().monotonic();
        let begin = |session: &mut Session| {
            session.turn.as_mut().map(|turn| {
                turn.begin_wait(now);
                turn.message
            })
        };
        Pause(self, self.door.with_session(self.caller.session, begin).flatten())
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
        shown: Option<Confidentiality>,
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
            match item {
                PreviewItem::Text(text) if shown.is_some() => self.show(Seen::Text { call, text }),
                PreviewItem::Progress(text) if self.is_cleared(call, shown) => self.show(Seen::Progress { call, text }),
                PreviewItem::Text(_) | PreviewItem::ToolUse(_) | PreviewItem::Progress(_) => {}
            }
        }
    }

    /// Whether what a running call makes may be shown that was cleared up to the level `shown`: it may have read more meanwhile.
    pub(super) fn is_cleared(&self, call: CallId, shown: Option<Confidentiality>) -> bool {
        let read = |session: &mut Session| session.read_by(call);
        shown.is_some_and(|level| self.door.with_session(self.caller.session, read).is_some_and(|read| read <= level))
    }
}
