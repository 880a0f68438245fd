//! What a client and a node say to each other, as JSON, over the channel between them (`channel`).
//!
//! Nothing is taken until the client has said which operator it speaks for, and each request is signed by that operator. A session belongs to the connection that opened it or came back to it last, and goes on without one as long as
//! it has anything to do.

use std::path::PathBuf;

use ephor_base::{
    CallId, Digest, MessageId, ModelRef, OperatorId, Part, Pid, Reply, Seq, SessionId, Timestamp, ToolName,
};
use ephor_chain::{Plan, Space, state::Progress};
use ephor_kernel::{ProcessInfo, Seen};
use ephor_record::{Always, Pin, RulingOn};
use serde::{Deserialize, Serialize};

use crate::{
    changes::Changed,
    operation::{Done, Operation},
    projections::{Found, Question},
    undo::{Left, PutBack},
};

/// The version of this protocol: a number that the build makes of all sources. Client and node must have the same.
pub(crate) const PROTOCOL: u32 = match u32::from_str_radix(env!("EPHOR_PROTOCOL"), 16) {
    Ok(number) => number,
    Err(_) => 0,
};

/// What a client says.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Request {
    /// Says who speaks, before anything else.
    Authenticate {
        /// Who.
        operator: OperatorId,
    },
    /// Opens a session with an agent.
    Open {
        /// The folder it works in; absolute. Only for a dead letter it need not be named.
        workspace: Option<PathBuf>,
        /// The model; the configured one if none is named.
        model: Option<ModelRef>,
        /// The agent, as the configuration of the node names it; the default one if none is named.
        #[serde(default)]
        agent: Option<String>,
        /// The dead letter that it is for: what is not named is as in the session in which that was said.
        #[serde(default)]
        letter: Option<MessageId>,
        /// The tools that the operator is going to permit in it.
        #[serde(default)]
        allow: Vec<ToolName>,
        /// The tools that the operator is going to pin in it.
        #[serde(default)]
        pins: Vec<ToolName>,
        /// Whether a person is there who can be asked.
        answers: bool,
    },
    /// Comes back to a session.
    Attach {
        /// The session.
        session: SessionId,
        /// Whether a person is there who can be asked.
        answers: bool,
    },
    /// A signed ruling.
    Rule {
        /// The session.
        session: SessionId,
        /// What it answers.
        on: RulingOn,
        /// Whether it permits.
        permit: bool,
        /// The digest of the arguments.
        arguments: Digest,
        /// The digest of the policy.
        policy: Digest,
        /// The call, on a ticket.
        call: Option<CallId>,
        /// The digest of the registration of its tool, on a ticket.
        registration: Option<Digest>,
        /// For what it is to be used again.
        #[serde(default)]
        always: Option<Box<Always>>,
        /// The operator's words.
        #[serde(default)]
        note: Option<String>,
        /// The digest of the question as it was shown, on a ticket.
        #[serde(default)]
        shown: Option<Digest>,
        /// Ed25519 over the statement, in hexadecimal digits.
        signature: String,
    },
    /// A message for the agent.
    Send {
        /// The session.
        session: SessionId,
        /// The message.
        parts: Vec<Part>,
        /// The tools that it needs, and where they may act, if they are pinned: nothing else may act in its turn unasked.
        #[serde(default)]
        scope: Option<Vec<Pin>>,
        /// Whether a person is asked, with the plan, before anything acts.
        #[serde(default)]
        looks: bool,
    },
    /// Has a session put back what it has written.
    Undo {
        /// The session.
        session: SessionId,
        /// What was written from this entry on; everything, if none is named.
        to: Option<Seq>,
        /// Only say what would be put back.
        dry_run: bool,
    },
    /// Asks what a session has changed in its files.
    Changes {
        /// The session.
        session: SessionId,
        /// How many of the changes are known already.
        behind: usize,
    },
    /// Cancels the turn under way.
    Cancel {
        /// The session.
        session: SessionId,
    },
    /// Asks which sessions were delegated from one, however far.
    Derived {
        /// The session.
        session: SessionId,
    },
    /// Erases a session that is not open.
    Erase {
        /// The session.
        session: SessionId,
        /// Why; public for good.
        reason: String,
    },
    /// Asks what of the record is old enough to go, and has it pruned.
    Prune {
        /// Keep entries of so many days, if that is more than the configuration says.
        keep_days: Option<u64>,
        /// Keep entries of this time and later.
        before: Option<Timestamp>,
        /// Only say what would go.
        dry_run: bool,
    },
    /// Has new keys sign the log. The braces are there for serde.
    Rotate {},
    /// Asks for the processes. The braces are there for serde: without them other keys would pass.
    Processes {},
    /// Asks how much of the quota of the record is used.
    Space {},
    /// Asks that everything recorded so far is published now.
    Publish {},
    /// Does or shows something beside conversations.
    Operate {
        /// What.
        operation: Operation,
    },
    /// Asks something of the projections of the record.
    Ask {
        /// What.
        question: Question,
    },
}

/// What a node says.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "say", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The client is known.
    Welcome {
        /// The version of the node.
        version: String,
    },
    /// A session was opened.
    Opened {
        /// The session.
        session: SessionId,
        /// Its process.
        pid: Option<Pid>,
        /// Who answers, for a person.
        model: String,
        /// The host that will be asked; nothing where no network is used.
        host: Option<String>,
        /// The digest a ruling on tools is bound to.
        policy: Digest,
    },
    /// The client is back.
    Attached {
        /// The session.
        session: SessionId,
        /// Its process.
        pid: Option<Pid>,
        /// The digest a ruling on tools is bound to.
        policy: Digest,
        /// Whether a turn is under way, or a message waits for one.
        works: bool,
        /// How the last turn that ended did.
        last: Option<Box<Reply>>,
    },
    /// The ruling counts.
    Ruled {
        /// How many more people have to permit what it answers.
        missing: u32,
    },
    /// The message is on the record.
    Accepted {
        /// Its number.
        message: MessageId,
    },
    /// What is put back; the turn that does it follows.
    Undoing {
        /// The files.
        files: Vec<PutBack>,
        /// What stays as it is.
        left: Vec<Left>,
        /// The message that has it done; nothing if nothing is done.
        message: Option<MessageId>,
    },
    /// What a session has changed.
    Changes {
        /// Some of it, in the order in which the files were first written.
        changes: Vec<Changed>,
        /// Whether these are the last.
        all: bool,
        /// Calls of the session of which nothing can be read any more, so that it is not known what they changed.
        unreadable: u64,
    },
    /// Something seen in the session.
    Seen {
        /// What.
        #[serde(flatten)]
        seen: Seen,
    },
    /// The sessions that were delegated from the one asked for.
    Derived {
        /// In order of their ids.
        sessions: Vec<SessionId>,
    },
    /// The session is erased.
    Erased {
        /// Where the record says so.
        seq: Seq,
    },
    /// What was pruned, or could be.
    Pruned {
        /// What.
        plan: Plan,
        /// Where the record says so; nothing if nothing was done.
        seq: Option<Seq>,
    },
    /// The log is signed with new keys.
    Rotated {
        /// Where the record names them.
        seq: Seq,
        /// Them, as `ephor chain key` prints them.
        keys: String,
    },
    /// The processes.
    Processes {
        /// By PID.
        processes: Vec<ProcessInfo>,
    },
    /// How much of the quota is used.
    Space {
        /// Nothing if there is no quota.
        space: Option<Space>,
        /// Why the chain cannot be published; nothing while it can.
        trouble: Option<String>,
    },
    /// Everything up to here is published.
    Published {
        /// How many entries that are.
        size: u64,
    },
    /// How far the projections are; more follows.
    Progress {
        /// How far.
        progress: Progress,
    },
    /// What the projections say.
    Found {
        /// What.
        found: Found,
    },
    /// Something beside conversations was done.
    Operated {
        /// What.
        done: Done,
    },
    /// The node stops. What it was asked and has not answered was not begun.
    Stopping {
        /// Why.
        why: String,
    },
    /// It was not done, and why, with what to do.
    Refused {
        /// The words.
        why: String,
    },
}

/// Bytes as hexadecimal digits.
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks_exact(2).map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | digit)).collect())
}
