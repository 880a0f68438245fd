//! What someone who watches a session gets to see while it works.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use ephor_base::{
    ActionKind, CallId, Decision, Digest, Reply, Seat, Seq, SessionId, TicketId, Timestamp, ToolName, Verdict,
};
use ephor_chain::{Always, HoldKind};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

/// How many items may wait for a watcher.
const DEPTH: usize = 256;

/// A watcher that takes nothing for this long is given up, so that it cannot hold a call for ever.
const PATIENCE: Duration = Duration::from_secs(30);

/// One thing seen. Only what has a receipt is a fact.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Seen {
    /// The turn entered a state.
    State {
        /// Which.
        state: TurnState,
    },
    /// A call got its permit and runs.
    Started {
        /// The call.
        call: CallId,
        /// What kind.
        action: ActionKind,
        /// The tool, the model, or the end of the turn.
        target: String,
        /// The tool's arguments, as JSON text; empty for other kinds.
        arguments: String,
        /// The entry of its intent.
        intent: Seq,
    },
    /// More of a model's text.
    Text {
        /// The call.
        call: CallId,
        /// The text.
        text: String,
    },
    /// How far a call is, in words.
    Progress {
        /// The call.
        call: CallId,
        /// The words.
        text: String,
    },
    /// A call waits for a person.
    Deferred(Box<Question>),
    /// A call was refused; nothing ran.
    Refused {
        /// The call.
        call: CallId,
        /// The tool, the model, or the end of the turn.
        target: String,
        /// Why, in words.
        why: String,
    },
    /// A call ended.
    Ended {
        /// The call.
        call: CallId,
        /// What kind.
        action: ActionKind,
        /// The tool, the model, or the end of the turn.
        target: String,
        /// `done`, `tool_error`, `cancelled` or a kind of failure.
        end: String,
        /// What it came to, for a person: a tool's answer, or why it failed.
        text: String,
        /// The entry of its outcome.
        outcome: Seq,
    },
    /// The process crashed; its supervisor starts it again and the turn goes on.
    Restarted {
        /// How it ended.
        reason: String,
    },
    /// The agent is held, or goes on: by an operator, or for its budget.
    Held {
        /// What holds it now.
        by: Option<HoldKind>,
    },
    /// The reply.
    Reply(Box<Reply>),
    /// The session is over, and what was not answered in it is dead. Nothing more follows.
    Over {
        /// Why, in words.
        why: String,
    },
    /// The turn is over and durable.
    TurnEnded {
        /// How many entries the chain has.
        size: u64,
        /// The RFC 6962 root over them.
        root: Digest,
    },
}

/// A deferred action, with everything a person needs to answer it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Question {
    /// The ticket.
    pub ticket: TicketId,
    /// The session.
    pub session: SessionId,
    /// The seat whose agent asks.
    pub seat: Seat,
    /// The call.
    pub call: CallId,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments, as JSON text.
    pub arguments: String,
    /// The digest of the arguments, that an answer is bound to.
    pub digest: Digest,
    /// The digest of the tool's registration, that an answer is bound to.
    pub registration: Digest,
    /// The verdict that deferred it.
    pub verdict: Verdict,
    /// After this it is denied.
    pub expires: Timestamp,
    /// How many different people have to permit it.
    pub quorum: u32,
}

impl Question {
    /// For what an answer is to be used again: what is asked here, for `seat` and those below it, whatever the arguments `free` are,
    /// before `until`.
    #[must_use]
    pub fn always(&self, seat: Seat, free: Vec<String>, until: Timestamp) -> Always {
        let deferred = self.verdict.reasons.iter().filter(|reason| reason.decision == Decision::Defer);
        let reasons = deferred.map(|reason| reason.code.clone()).collect();
        let (tool, registration, effects) = (self.tool.clone(), self.registration, self.verdict.effects);
        Always { seat, tool, registration, free, reasons, effects, until }
    }
}

/// The states of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TurnState {
    /// Waiting for a message.
    Idle,
    /// A model request is on its way.
    SendingRequest,
    /// The model answers.
    ConsumingResponse,
    /// Tools run.
    PendingToolUseResults,
    /// The turn is over.
    UserTurnEnded,
    /// A model request failed.
    Errored,
}

/// Who watches which session.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<HashMap<SessionId, Watcher>>);

#[derive(Clone, Debug)]
enum Watcher {
    /// Somebody is there.
    Here { sender: mpsc::Sender<Seen>, answers: bool },
    /// Nobody is, and the session goes on. Operators answer from elsewhere.
    Left,
}

impl Watchers {
    /// Watches `session` from here on; a watcher before this one gets nothing more. `answers` says whether a person is
    /// there who can be asked.
    pub fn watch(&self, session: SessionId, answers: bool) -> mpsc::Receiver<Seen> {
        let (sender, receiver) = mpsc::channel(DEPTH);
        self.watchers().insert(session, Watcher::Here { sender, answers });
        receiver
    }

    /// Shows `seen` to whoever watches `session`; says whether someone does.
    pub async fn show(&self, session: SessionId, seen: Seen) -> bool {
        let Some(Watcher::Here { sender, .. }) = self.watchers().get(&session).cloned() else { return false };
        if sender.send_timeout(seen, PATIENCE).await.is_ok() {
            return true;
        }
        let mut watchers = self.watchers();
        // Another may watch by now.
        if watchers.get(&session).is_some_and(|now| now.is(&sender)) {
            watchers.remove(&session);
        }
        false
    }

    /// Shows `seen` if whoever watches `session` takes it at once; gives it back if somebody does and is busy.
    pub(crate) fn show_at_once(&self, session: SessionId, seen: Seen) -> Option<Seen> {
        match self.watchers().get(&session) {
            Some(Watcher::Here { sender, .. }) => match sender.try_send(seen) {
                Err(mpsc::error::TrySendError::Full(seen)) => Some(seen),
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => None,
            },
            Some(Watcher::Left) | None => None,
        }
    }

    /// Shows `seen` to whoever watches `session`, as the last thing, and lets go of them.
    pub(crate) async fn part(&self, session: SessionId, seen: Seen) {
        let watcher = self.watchers().remove(&session);
        if let Some(Watcher::Here { sender, .. }) = watcher {
            // One that is gone need not know.
            let _gone: Result<(), _> = sender.send_timeout(seen, PATIENCE).await;
        }
    }

    /// Lets go of whoever watches `session`.
    pub(crate) fn forget(&self, session: SessionId) {
        self.watchers().remove(&session);
    }

    /// The session goes on, and nobody watches it.
    pub(crate) fn leave(&self, session: SessionId) {
        self.watchers().insert(session, Watcher::Left);
    }

    /// Whether somebody watches `session` now.
    pub(crate) fn is_watched(&self, session: SessionId) -> bool {
        let watchers = self.watchers();
        matches!(watchers.get(&session), Some(Watcher::Here { sender, .. }) if !sender.is_closed())
    }

    /// Whether a person can be asked: one who watches `session`, or those who look after what goes on unwatched.
    pub(crate) fn can_answer(&self, session: SessionId) -> bool {
        match self.watchers().get(&session) {
            Some(Watcher::Here { sender, answers }) => *answers && !sender.is_closed(),
            Some(Watcher::Left) => true,
            None => false,
        }
    }

    fn watchers(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Watcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watcher {
    fn is(&self, other: &mpsc::Sender<Seen>) -> bool {
        matches!(self, Self::Here { sender, .. } if sender.same_channel(other))
    }
}
