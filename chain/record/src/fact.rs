//! What is recorded: a public fact about a subject, and private content beside it.

mod appointed;
mod follows;
mod forms;
mod opening;
mod terms;

use ephor_base::{
    ActionKind, Arguments, Budget, CallId, Capability, Confidentiality, Decision, Digest, EndReason, Exhausted, Kept,
    Located, MessageId, Offset, OperatorId, Outcome, Part, Pid, Seat, Seq, SessionId, SpanId, TicketId, Timestamp,
    ToolName, TurnReport, Verdict,
};
use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

pub use appointed::{Appointment, Pin, Pinned};
pub use follows::{Follows, LastNumbers};
pub use opening::{Errand, Opening};
pub use terms::Terms;

pub(crate) use forms::hex;
use forms::text_or_hex;
pub(crate) use forms::{flag, is_false};

use crate::{
    judgment::Always,
    operators::Role,
    pruning::Pruning,
    snapshot::Snapshot,
    standing::{Because, Cause, Missed, Signal, StandingPart, Undelivered},
};

/// One thing that happened, before it has a place in the chain.
#[derive(Clone, Debug)]
pub struct Record {
    /// What it concerns.
    pub subject: Subject,
    /// What an auditor may read.
    pub fact: Fact,
    /// What only the holder of the session's key may read. Needs a session in the subject.
    pub content: Option<Content>,
}

/// What an entry concerns. Everything here is public.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Encode, Decode)]
#[cbor(map)]
pub struct Subject {
    /// The conversation.
    #[n(0)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionId>,
    /// The operator who answers for it.
    #[n(1)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorId>,
    /// The seat.
    #[n(2)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seat: Option<Seat>,
    /// The incarnation in it.
    #[n(3)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<Pid>,
    /// The call.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
}

/// A public fact. New kinds are added at the end; a number is never used twice.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Fact {
    /// The first entry of every log: under which keys it begins, and what it follows.
    #[n(0)]
    Origin {
        /// The note verifier key of the Ed25519 signer.
        #[n(0)]
        ed25519: String,
        /// The note verifier key of the ML-DSA-65 signer.
        #[n(1)]
        ml_dsa_65: String,
        /// The log that was given up for this one.
        #[n(2)]
        follows: Option<Follows>,
    },
    /// A node took the log over.
    #[n(1)]
    Boot {
        /// Counts the boots of this home, from 1.
        #[n(0)]
        number: u64,
        /// The version of Ephor.
        #[n(1)]
        version: String,
        /// Whether the node before this one stopped cleanly.
        #[n(2)]
        clean: bool,
        /// How many bytes of a torn batch were trimmed.
        #[n(3)]
        trimmed_bytes: u64,
        /// The vault key, by its name: the only one of this log from here on. Logs of earlier
        /// versions do not have it.
        #[n(4)]
        #[serde(skip_serializing_if = "Option::is_none")]
        vault: Option<Digest>,
    },
    /// A node let go of the log, cleanly. Only a boot follows.
    #[n(2)]
    Stop {
        /// The boot it ends.
        #[n(0)]
        number: u64,
    },
    /// An operator's credential is accepted from here on.
    #[n(3)]
    Operator {
        /// Ed25519 public key.
        #[cbor(n(0), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        key: [u8; 32],
    },
    /// The constitution and operator policy that decide from here on.
    #[n(4)]
    Policy {
        /// SHA-256 of both.
        #[n(0)]
        digest: Digest,
        /// `dev`, `staging` or `production`.
        #[n(1)]
        environment: String,
        /// What the digest is made of, so that it can be decided again. Logs of earlier versions do not have it.
        #[n(2)]
        #[serde(skip_serializing_if = "Option::is_none")]
        terms: Option<Terms>,
    },
    /// A tool is registered from here on.
    #[n(5)]
    Tool {
        /// Its name.
        #[n(0)]
        name: ToolName,
        /// SHA-256 of the registration.
        #[n(1)]
        registration: Digest,
        /// SHA-256 of the code.
        #[n(2)]
        code: Digest,
    },
    /// A process started. Content: its specification.
    #[n(6)]
    Spawn {
        /// The process that supervises it.
        #[n(0)]
        parent: Option<Pid>,
        /// Counts the incarnations of the seat, from 1.
        #[n(1)]
        incarnation: u64,
    },
    /// A process ended. Content: the message of a panic or error.
    #[n(7)]
    Exit {
        /// `normal`, `shutdown`, `killed`, `panicked` or `error`.
        #[n(0)]
        reason: String,
    },
    /// A message was accepted. Content: its parts.
    #[n(8)]
    Message {
        /// Its number.
        #[n(0)]
        id: MessageId,
        /// The spans its parts became, in order.
        #[n(1)]
        spans: Vec<SpanId>,
        /// The session it came out of, if an agent delegated it.
        #[n(2)]
        #[serde(skip_serializing_if = "Option::is_none")]
        from: Option<SessionId>,
        /// Why it was accepted, if no person sent it just now.
        #[n(3)]
        #[serde(skip_serializing_if = "Option::is_none")]
        because: Option<Because>,
        /// Whether it is owed an answer: the end of a turn or a dead letter follows, and never both.
        #[cbor(n(4), with = "flag", has_nil)]
        #[serde(skip_serializing_if = "is_false")]
        owed: bool,
        /// The tools that what it asks needs, if the operator pinned them: nothing else may act in its turn unasked.
        #[n(5)]
        #[serde(skip_serializing_if = "Option::is_none")]
        scope: Option<Vec<ToolName>>,
        /// How far the clock of its person was ahead of UTC; UTC where it is not said.
        #[n(6)]
        #[serde(skip_serializing_if = "Option::is_none")]
        offset: Option<Offset>,
    },
    /// Governance decided. Content: the arguments, or the spans of the prompt, or of the question what a request needs.
    #[n(9)]
    Verdict {
        /// What was asked.
        #[n(0)]
        action: ActionKind,
        /// The tool, the model, or the end of the turn.
        #[n(1)]
        target: String,
        /// Which attempt of the call, from 1.
        #[n(2)]
        attempt: u32,
        /// Over the canonical form of what was asked, under the veil of the session.
        #[n(3)]
        arguments: Digest,
        /// The verdict, whole.
        #[n(4)]
        verdict: Verdict,
        /// The ruling it rests on.
        #[n(5)]
        ruling: Option<Seq>,
        /// What it was decided on besides what stands before it. Logs of earlier versions do not have it.
        #[n(6)]
        #[serde(skip_serializing_if = "Option::is_none")]
        grounds: Option<Grounds>,
    },
    /// It is about to be done. Content: what it replaces, if that is kept.
    #[n(10)]
    Intent {
        /// What will be done.
        #[n(0)]
        action: ActionKind,
        /// Which attempt of the call, from 1.
        #[n(1)]
        attempt: u32,
        /// The permitting verdict.
        #[n(2)]
        verdict: Seq,
        /// The same digest as in the verdict.
        #[n(3)]
        arguments: Digest,
        /// What was reserved for it.
        #[n(4)]
        reserved: Budget,
    },
    /// It was done, or not. Content: the outcome.
    #[n(11)]
    Outcome {
        /// The intent it ends.
        #[n(0)]
        intent: Seq,
        /// `done`, `tool_error`, `cancelled`, `indeterminate`, or a kind of failure.
        #[n(1)]
        end: String,
        /// What was used of the reservation.
        #[n(2)]
        used: Budget,
    },
    /// A deferred action waits for a person. Content: what is asked, in words.
    #[n(12)]
    Ticket {
        /// Its number.
        #[n(0)]
        id: TicketId,
        /// The tool, the model, or the end of the turn.
        #[n(1)]
        target: String,
        /// The digest the answer is bound to.
        #[n(2)]
        arguments: Digest,
        /// The policy the answer is bound to.
        #[n(3)]
        policy: Digest,
        /// After this it is denied.
        #[n(4)]
        expires: Timestamp,
        /// How many different people have to permit it, if that is more than one.
        #[n(5)]
        #[serde(skip_serializing_if = "Option::is_none")]
        quorum: Option<u32>,
        /// The digest of the tool's registration, its code in it, that the answer is bound to. Logs of earlier versions do
        /// not have it.
        #[n(6)]
        #[serde(skip_serializing_if = "Option::is_none")]
        registration: Option<Digest>,
    },
    /// A person answered, or none did.
    #[n(13)]
    Ruling {
        /// What it answers.
        #[n(0)]
        on: RulingOn,
        /// Whether it lets the action run.
        #[n(1)]
        decision: Decision,
        /// The operator's Ed25519 signature over the ruling; empty when the ticket expired or no person could be asked.
        #[cbor(n(2), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
        /// `answered`, `expired`, `withdrawn`, `nobody-to-ask`, or `lapsed` where the law or the tool is another one since.
        #[n(3)]
        how: String,
        /// The policy it is bound to: it counts only while that is in force. Logs of earlier versions do not have it.
        #[n(4)]
        #[serde(skip_serializing_if = "Option::is_none")]
        policy: Option<Digest>,
        /// The person's words. Public for good.
        #[n(5)]
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
        /// For what it is to be used again. Content: the arguments that have to be the same.
        #[n(6)]
        #[serde(skip_serializing_if = "Option::is_none")]
        always: Option<Box<Always>>,
    },
    /// A driver was handed a secret.
    #[n(14)]
    Lease {
        /// Its name; never its value.
        #[n(0)]
        secret: String,
    },
    /// A turn ended.
    #[n(15)]
    TurnEnd {
        /// The message it answers.
        #[n(0)]
        message: MessageId,
        /// Why it ended.
        #[n(1)]
        end: EndReason,
        /// Its figures.
        #[n(2)]
        report: TurnReport,
    },
    /// What the entries so far amount to, so that reading can begin here.
    #[n(16)]
    Snapshot(#[n(0)] Snapshot),
    /// The log is signed with other keys from the next checkpoint on. The last entry of its batch. One that names the
    /// keys that already sign confirms them.
    #[n(17)]
    Keys {
        /// The note verifier key of the Ed25519 signer, under the name of this log.
        #[n(0)]
        ed25519: String,
        /// The note verifier key of the ML-DSA-65 signer, under the name of this log.
        #[n(1)]
        ml_dsa_65: String,
    },
    /// The key of a session is destroyed, and its contents with it. Subject: the session, and the operator who wants it.
    #[n(18)]
    Erase {
        /// The session.
        #[n(0)]
        session: SessionId,
        /// The sessions that were delegated from it, however far, and may hold parts of what it held. They are not erased
        /// by this.
        #[n(1)]
        derived: Vec<SessionId>,
        /// Why, in the operator's words. Public for good.
        #[n(2)]
        reason: String,
    },
    /// What lies before some entry may be taken away. Subject: the operator who wants it.
    #[n(19)]
    Prune(#[n(0)] Pruning),
    /// Children of the subject were started again, many at a time. Each stands for an exit and a start.
    #[n(20)]
    Restarts {
        /// At least one, in the order of their starts.
        #[n(0)]
        restarts: Vec<Restart>,
    },
    /// Processes are suspended, resumed, stopped or killed. Subject: the seat, and the operator who wants it.
    #[n(21)]
    Signal {
        /// What is done.
        #[n(0)]
        signal: Signal,
        /// Whether to everything below the seat as well.
        #[n(1)]
        tree: bool,
        /// Why it was given.
        #[n(2)]
        cause: Cause,
        /// The operator's words. Public for good.
        #[n(3)]
        note: String,
    },
    /// An operator gives a seat another limit. Subject: the seat, and the operator.
    #[n(22)]
    Limit {
        /// What it may use in all, with what it has used.
        #[n(0)]
        limit: Budget,
        /// The operator's words. Public for good.
        #[n(1)]
        note: String,
    },
    /// A message could not be delivered. Subject: the session it was for.
    #[n(25)]
    Dead {
        /// The message.
        #[n(0)]
        message: MessageId,
        /// Where its acceptance stands.
        #[n(1)]
        accepted: Seq,
        /// Why it could not.
        #[n(2)]
        why: Undelivered,
    },
    /// A dead letter is dropped. Subject: the operator who drops it.
    #[n(26)]
    Buried {
        /// The message.
        #[n(0)]
        message: MessageId,
        /// The operator's words. Public for good.
        #[n(1)]
        note: String,
    },
    /// A message is to be sent at certain times. Subject: the operator, and the session whose key seals the content: the
    /// message, the folder and the model.
    #[n(27)]
    Schedule {
        /// Its name.
        #[n(0)]
        name: String,
        /// When: a cron expression of five fields.
        #[n(1)]
        cron: String,
        /// The time zone it is read in, as the IANA names it.
        #[n(2)]
        zone: String,
        /// What becomes of instants that pass while they cannot be acted on.
        #[n(3)]
        missed: Missed,
    },
    /// An instant of a schedule, and those before it, are passed over.
    #[n(28)]
    Skipped {
        /// The schedule.
        #[n(0)]
        name: String,
        /// The instant it was due.
        #[n(1)]
        at: Timestamp,
    },
    /// A schedule ends. Subject: the operator.
    #[n(29)]
    Unscheduled {
        /// The schedule.
        #[n(0)]
        name: String,
    },
    /// A session was opened. Content: its opening.
    #[n(30)]
    Opened {
        /// What its seat may ask of the door.
        #[n(0)]
        rights: Vec<Capability>,
        /// The role of the seat, as the constitution names it.
        #[n(1)]
        role: String,
        /// The namespace of the seat, as the constitution names it.
        #[n(2)]
        namespace: String,
        /// The name of its agent in the configuration of its operator. Logs of earlier versions do not have it.
        #[n(3)]
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The null of the evidence on its conduct, per mille. Logs of earlier versions do not have it: 250.
        #[n(4)]
        #[serde(skip_serializing_if = "Option::is_none")]
        p0: Option<u16>,
        /// The only tools that its seat may have, if there are such.
        #[n(5)]
        #[serde(skip_serializing_if = "Option::is_none")]
        tools: Option<Vec<ToolName>>,
        /// The time zone of its person, as the IANA names it, if it is not UTC.
        #[n(6)]
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
        /// Whether its model is asked what a request needs before a turn does anything.
        #[cbor(n(7), with = "flag", has_nil)]
        #[serde(skip_serializing_if = "is_false")]
        planned: bool,
    },
    /// A part of a document that other entries name by its digest: a constitution, or the canonical CBOR of a registration.
    /// Public, because a verifier that holds verdicts against the law has to read it; nothing that was said to an agent is in it.
    #[n(31)]
    Document {
        /// SHA-256 of the whole.
        #[n(0)]
        digest: Digest,
        /// Which part this is, from 0.
        #[n(1)]
        part: u32,
        /// How many parts there are.
        #[n(2)]
        of: u32,
        /// The part.
        #[cbor(n(3), with = "minicbor::bytes")]
        #[serde(serialize_with = "text_or_hex")]
        bytes: Vec<u8>,
    },
    /// An answer is used no more. Subject: the approver who revokes it.
    #[n(32)]
    Revoked {
        /// The entry of the answer.
        #[n(0)]
        ruling: Seq,
        /// The approver's words. Public for good.
        #[n(1)]
        note: String,
        /// The approver's Ed25519 signature over the judgment ([`crate::judgment`]).
        #[cbor(n(2), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// A seat that its conduct suspended may act again. Subject: its session, and the approver who lifts it.
    #[n(33)]
    Lifted {
        /// The entry with which its conduct suspended it.
        #[n(0)]
        since: Seq,
        /// The approver's words. Public for good.
        #[n(1)]
        note: String,
        /// The approver's signature.
        #[cbor(n(2), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// An operator's credential counts from here on. Subject: the owner who decrees it; the first owner decrees their own.
    #[n(36)]
    Enrolled {
        /// Ed25519 public key.
        #[cbor(n(0), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        key: [u8; 32],
        /// The operator's name.
        #[n(1)]
        name: String,
        /// What the operator may do.
        #[n(2)]
        role: Role,
        /// The owner's Ed25519 signature over the decree ([`crate::operators`]).
        #[cbor(n(3), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// An operator has another role from here on. Subject: the owner who decrees it.
    #[n(37)]
    Ranked {
        /// Who.
        #[n(0)]
        operator: OperatorId,
        /// What the operator may do.
        #[n(1)]
        role: Role,
        /// The owner's signature.
        #[cbor(n(2), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// An operator's credential counts no longer. Subject: the owner who decrees it.
    #[n(38)]
    Dismissed {
        /// Who.
        #[n(0)]
        operator: OperatorId,
        /// The owner's signature.
        #[cbor(n(1), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// The constitution that decides from here on. Subject: the owner who decrees it.
    #[n(39)]
    Enacted {
        /// The digest that verdicts name.
        #[n(0)]
        policy: Digest,
        /// What the digest is made of.
        #[n(1)]
        terms: Terms,
        /// `dev`, `staging` or `production`.
        #[n(2)]
        environment: String,
        /// The owner's signature.
        #[cbor(n(3), with = "minicbor::bytes")]
        #[serde(serialize_with = "hex")]
        signature: Vec<u8>,
    },
    /// A schedule is due and is not sent, since the operator who made it may not send anything any more. Recorded once, until it
    /// fires again. Subject: the operator who made it.
    #[n(44)]
    Withheld {
        /// The schedule.
        #[n(0)]
        name: String,
    },
    /// What stood on the log that was given up for this one, and stands on. Behind the origin, before the first boot.
    #[n(45)]
    Inherited(#[n(0)] StandingPart),
    /// A session is taken up, and the configuration of its operator says otherwise by now what its agent is.
    #[n(48)]
    Appointed(#[n(0)] Appointment),
    /// An operator asked for what they may not do, and it was not done. Subject: the operator.
    #[n(49)]
    Forbidden {
        /// What, in a word or two of the node.
        #[n(0)]
        act: String,
        /// Why not, in words of the node. Public for good.
        #[n(1)]
        why: String,
    },
}

/// One of many restarts below one supervisor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Restart {
    /// The last part of its seat.
    #[n(0)]
    pub name: String,
    /// How the incarnation before ended, as in [`Fact::Exit`]; or `start_failed`.
    #[n(1)]
    pub reason: String,
    /// The incarnation before, if it is that which ended.
    #[n(2)]
    pub exited: Option<Pid>,
    /// The incarnation that was started; none, if that failed.
    #[n(3)]
    pub started: Option<Pid>,
}

impl Fact {
    /// The kind in one word, as in the JSON form.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Origin { .. } => "origin",
            Self::Boot { .. } => "boot",
            Self::Stop { .. } => "stop",
            Self::Operator { .. } => "operator",
            Self::Policy { .. } => "policy",
            Self::Tool { .. } => "tool",
            Self::Spawn { .. } => "spawn",
            Self::Exit { .. } => "exit",
            Self::Message { .. } => "message",
            Self::Verdict { .. } => "verdict",
            Self::Intent { .. } => "intent",
            Self::Outcome { .. } => "outcome",
            Self::Ticket { .. } => "ticket",
            Self::Ruling { .. } => "ruling",
            Self::Lease { .. } => "lease",
            Self::TurnEnd { .. } => "turn_end",
            Self::Snapshot(_) => "snapshot",
            Self::Keys { .. } => "keys",
            Self::Erase { .. } => "erase",
            Self::Prune(_) => "prune",
            Self::Restarts { .. } => "restarts",
            Self::Signal { .. } => "signal",
            Self::Limit { .. } => "limit",
            Self::Dead { .. } => "dead",
            Self::Buried { .. } => "buried",
            Self::Schedule { .. } => "schedule",
            Self::Skipped { .. } => "skipped",
            Self::Unscheduled { .. } => "unscheduled",
            Self::Opened { .. } => "opened",
            Self::Document { .. } => "document",
            Self::Revoked { .. } => "revoked",
            Self::Lifted { .. } => "lifted",
            Self::Enrolled { .. } => "enrolled",
            Self::Ranked { .. } => "ranked",
            Self::Dismissed { .. } => "dismissed",
            Self::Enacted { .. } => "enacted",
            Self::Withheld { .. } => "withheld",
            Self::Inherited(_) => "inherited",
            Self::Appointed(_) => "appointed",
            Self::Forbidden { .. } => "forbidden",
        }
    }
}

/// What a verdict was decided on that does not follow from what stands before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Encode, Decode)]
pub struct Grounds {
    /// The most confidential text that the asker had been shown.
    #[n(0)]
    pub context: Confidentiality,
    /// Whether an operator had suspended the seat.
    #[n(1)]
    pub suspended: bool,
    /// Whether the session was over.
    #[n(2)]
    pub over: bool,
    /// The model's answer that the call came out of.
    #[n(3)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen: Option<Chosen>,
    /// The call of the guest that asked.
    #[n(4)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<CallId>,
    /// What of the budget could not cover it.
    #[n(5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Exhausted>,
}

/// A tool use in a model's answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Encode, Decode)]
pub struct Chosen {
    /// The model call.
    #[n(0)]
    pub of: CallId,
    /// Which of its tool uses, from 0.
    #[n(1)]
    pub index: u32,
}

/// What a ruling answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum RulingOn {
    /// One ticket, once.
    #[n(0)]
    Ticket(#[n(0)] TicketId),
    /// Every call of these tools in this session, while it lasts.
    #[n(1)]
    Tools(#[n(0)] Vec<ToolName>),
}

/// Private content, sealed under the session's key.
#[derive(Clone, PartialEq, Debug, Serialize, Encode, Decode)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// The parts of a message.
    #[n(0)]
    Parts(#[n(0)] Vec<Part>),
    /// The spans of a prompt, oldest first.
    #[n(1)]
    Prompt(#[n(0)] Vec<SpanId>),
    /// The arguments of a tool call.
    #[n(2)]
    Arguments(#[n(0)] Arguments),
    /// An outcome.
    #[n(3)]
    Outcome(#[n(0)] Outcome),
    /// Words.
    #[n(4)]
    Text(#[n(0)] String),
    /// What a session works with.
    #[n(5)]
    Opening(#[n(0)] Opening),
    /// What a schedule sends, and where to.
    #[n(6)]
    Errand(#[n(0)] Errand),
    /// The parts of a message, and where tools may act in its turn.
    #[n(7)]
    Pinned(#[n(0)] Pinned),
    /// The spans that a model is shown to say what a request needs, and no more than that.
    #[n(8)]
    Request(#[n(0)] Vec<SpanId>),
    /// A tool call whose arguments name files, and which those are.
    #[n(9)]
    Call {
        /// The arguments.
        #[n(0)]
        arguments: Arguments,
        /// Where those lead that are paths.
        #[n(1)]
        files: Vec<Located>,
    },
    /// What an answer that is used again speaks of.
    #[n(10)]
    Same {
        /// The folder that the tool works in.
        #[n(0)]
        workspace: String,
        /// The arguments that have to be the same.
        #[n(1)]
        arguments: Arguments,
    },
    /// What a call replaces.
    #[n(11)]
    Kept(#[n(0)] Vec<Kept>),
}

impl Content {
    /// The parts of a message, if it is one.
    #[must_use]
    pub fn parts(&self) -> Option<&[Part]> {
        match self {
            Self::Parts(parts) | Self::Pinned(Pinned { parts, .. }) => Some(parts),
            _ => None,
        }
    }
}
