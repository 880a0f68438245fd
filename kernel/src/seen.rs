//! What the watcher of a session gets to see while it works.

mod ring;

use std::{collections::HashMap, sync::Mutex};

use ephor_base::{ActionKind, CallId, Digest, Reply, Seq, SessionId};
use ephor_record::HoldKind;
use serde::{Deserialize, Serialize};

use ring::Ring;
pub use ring::Subscription;

use crate::question::Question;

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
        /// The codes of the reasons that decided; none where the call failed before a verdict counted.
        #[serde(default)]
        reasons: Vec<String>,
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
    /// The watcher was too slow: so many things are not shown to it any more. The record has them.
    Missed {
        /// How many.
        count: u64,
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
    /// A model request failed, and is made again after a while.
    Retrying {
        /// After how many milliseconds.
        wait_ms: u64,
        /// Which attempt comes next.
        next: u32,
        /// How many there are at most.
        of: u32,
    },
}

/// Who watches which session. Showing never waits: a watcher that is slow or stopped misses something and is told so
/// ([`Seen::Missed`]), and what is shown costs an agent no time.
#[derive(Debug, Default)]
pub struct Watchers(Mutex<HashMap<SessionId, Watcher>>);

#[derive(Debug)]
enum Watcher {
    /// A watcher is there.
    Here { ring: Ring, answers: bool },
    /// None is, and the session goes on. Operators answer from elsewhere.
    Left,
}

impl Watchers {
    /// Watches `session` from here on; a watcher before this one gets nothing more. `answers` says whether a person is
    /// there who can be asked.
    pub fn watch(&self, session: SessionId, answers: bool) -> Subscription {
        let (ring, subscription) = ring::ring();
        self.watchers().insert(session, Watcher::Here { ring, answers });
        subscription
    }

    /// Shows `seen` to the watcher of `session`; says whether there is one.
    pub fn show(&self, session: SessionId, seen: Seen) -> bool {
        match self.watchers().get(&session) {
            Some(Watcher::Here { ring, .. }) => ring.push(seen),
            Some(Watcher::Left) | None => false,
        }
    }

    /// Shows `seen` to the watcher of `session`, as the last thing, and lets go of it.
    pub(crate) fn part(&self, session: SessionId, seen: Seen) {
        let _is_watched = self.show(session, seen);
        self.forget(session);
    }

    /// Lets go of the watcher of `session`.
    pub(crate) fn forget(&self, session: SessionId) {
        self.watchers().remove(&session);
    }

    /// The session goes on, and has no watcher.
    pub(crate) fn leave(&self, session: SessionId) {
        self.watchers().insert(session, Watcher::Left);
    }

    /// Whether `session` is watched now.
    pub(crate) fn is_watched(&self, session: SessionId) -> bool {
        let watchers = self.watchers();
        matches!(watchers.get(&session), Some(Watcher::Here { ring, .. }) if ring.is_read())
    }

    /// Whether a person can be asked: one who watches `session`, however slowly, or those who look after what goes on unwatched.
    pub(crate) fn can_answer(&self, session: SessionId) -> bool {
        match self.watchers().get(&session) {
            Some(Watcher::Here { ring, answers }) => *answers && ring.is_read(),
            Some(Watcher::Left) => true,
            None => false,
        }
    }

    fn watchers(&self) -> std::sync::MutexGuard<'_, HashMap<SessionId, Watcher>> {
        ephor_runtime::lock::enter(&self.0)
    }
}
