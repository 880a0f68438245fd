//! What `ephor approvals --json` prints: one shape, whether a node runs or not.

use ephor_base::{CallId, Digest, Seat, SessionId, TicketId, Timestamp, Verdict};
use ephor_chain::state::Waiting;
use ephor_kernel::{Question, Rendering, Suspended};
use serde::Serialize;

use crate::{
    host,
    operation::{AnswerView, Approval},
};

/// What waits for people.
#[derive(Serialize)]
pub(super) struct Waits {
    /// Whether a node runs. Only one that does knows what is null without it.
    node: bool,
    /// The oldest first.
    tickets: Vec<Ticket>,
    /// The seats of open sessions that their conduct suspended.
    suspended: Vec<Suspended>,
}

/// A question that waits for an answer.
#[derive(Serialize)]
struct Ticket {
    ticket: TicketId,
    session: SessionId,
    seat: Option<Seat>,
    call: Option<CallId>,
    tool: String,
    expires: Timestamp,
    left_ms: u64,
    quorum: u32,
    answers: Vec<AnswerView>,
    /// The names of those who may answer, and have not.
    may: Option<Vec<String>>,
    asked: Option<Timestamp>,
    text: Option<Rendering>,
    arguments: Option<String>,
    digest: Option<Digest>,
    registration: Option<Digest>,
    verdict: Option<Verdict>,
}

impl Waits {
    /// On a node that runs.
    pub(super) fn running(approvals: Vec<Approval>, suspended: Vec<Suspended>) -> Self {
        Self { node: true, tickets: approvals.into_iter().map(Ticket::from).collect(), suspended }
    }

    /// As the record has it. Without a node no session is open.
    pub(super) fn resting(waiting: Vec<Waiting>) -> Self {
        Self { node: false, tickets: waiting.into_iter().map(Ticket::from).collect(), suspended: Vec::new() }
    }

    /// As a line of JSON.
    pub(super) fn line(&self) -> anyhow::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
}

impl From<Approval> for Ticket {
    fn from(Approval { question, left_ms, answers, may }: Approval) -> Self {
        let Question {
            ticket,
            session,
            seat,
            call,
            tool,
            arguments,
            text,
            digest,
            registration,
            verdict,
            expires,
            asked,
            quorum,
            repeatable: _,
        } = question;
        Self {
            ticket,
            session,
            seat: Some(seat),
            call: Some(call),
            tool: tool.to_string(),
            expires,
            left_ms,
            quorum,
            answers,
            may: Some(may),
            asked: Some(asked),
            text: Some(text),
            arguments,
            digest: Some(digest),
            registration: Some(registration),
            verdict: Some(verdict),
        }
    }
}

impl From<Waiting> for Ticket {
    fn from(Waiting { ticket, session, seat, call, tool, expires, quorum, permitted }: Waiting) -> Self {
        let left_ms = u64::try_from(expires.since(host::now()).as_millis()).unwrap_or(u64::MAX);
        let permits = |operator| AnswerView { name: None, operator, permits: true, note: None };
        let answers = permitted.into_iter().map(permits).collect();
        Self {
            ticket,
            session,
            seat,
            call,
            tool,
            expires,
            left_ms,
            quorum,
            answers,
            may: None,
            asked: None,
            text: None,
            arguments: None,
            digest: None,
            registration: None,
            verdict: None,
        }
    }
}
