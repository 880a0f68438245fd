//! A message on its way to a process.

use minicbor::{Decode, Encode};
use serde::{Deserialize, Serialize};

use crate::{MessageId, OperatorId, Seq, SessionId, SpanId, Timestamp};

/// A message with the session it belongs to and the operator who answers for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Envelope {
    /// Its number on this node.
    pub id: MessageId,
    /// The conversation.
    pub session: SessionId,
    /// The operator who let it in.
    pub operator: OperatorId,
    /// When it was accepted.
    pub accepted: Timestamp,
    /// Where the record says so.
    pub seq: Seq,
    /// The spans its parts became, in order. The text stays at the door.
    pub spans: Vec<SpanId>,
}

/// A part of a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
pub struct Part {
    /// How it got in; the door derives its label from this.
    #[n(0)]
    pub kind: PartKind,
    /// The text.
    #[n(1)]
    pub text: String,
}

/// How a part of a message got in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, Encode, Decode)]
#[cbor(index_only)]
#[serde(rename_all = "snake_case")]
pub enum PartKind {
    /// The person wrote it as the request: trusted.
    #[n(0)]
    Typed,
    /// It was piped in: anyone may have written it.
    #[n(1)]
    Piped,
    /// It was pasted into what the person wrote: anyone may have written it. The door divides it from that.
    #[n(2)]
    Pasted,
    /// An operator vouches for it as for what they write themselves, however long it is: trusted.
    #[n(3)]
    Vouched,
    /// The operator's own plan for the turn that answers it, as JSON: trusted, and in force in the place of the planner's.
    #[n(4)]
    Plan,
    /// What an operator has done in the turn that answers it, in the node's own words: trusted, and no request.
    #[n(5)]
    Errand,
}
