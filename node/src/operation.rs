//! What an operator asks a running node to do or to show, beside conversations: signals, budgets, dead letters, schedules.

use ephor_base::{
    ActionKind, Arguments, Budget, CallId, Capability, Digest, MessageId, OperatorId, Part, Pid, Reach, Receipt, Seat,
    Seq, SessionId, TicketId, Timestamp, ToolName,
};
use ephor_chain::state::SeatLife;
use ephor_kernel::{ProcessInfo, Question, Suspended};
use ephor_record::{Decree, Hold, HoldKind, Judgment, Missed, Pin, Role, Signal};
use serde::{Deserialize, Serialize};

/// How many rows an answer has at most. Each has a bounded size, so that a page fits a line.
pub(crate) const PAGE: usize = 128;

/// The same, of rows that are short.
pub(crate) const ROWS: usize = 1000;

/// How much of what people wrote is in a page, in bytes: with the first row it fits a line in any case.
pub(crate) const WORDS: usize = 1 << 20;

/// Something to do or to show. The operator is the one who answered the challenge of the connection.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Operation {
    /// Suspends, resumes, stops or kills.
    Signal {
        /// What.
        signal: Signal,
        /// A PID, a seat or the name of a session's seat; every agent if it is nothing.
        target: Option<String>,
        /// Everything below as well.
        tree: bool,
        /// Why, for the record.
        note: String,
    },
    /// Shows the budget of a seat, or gives it another limit.
    Budget {
        /// A PID, a seat or the name of a session's seat.
        target: String,
        /// What changes.
        changes: Changes,
        /// Why, for the record.
        note: String,
    },
    /// Shows everything that runs, a page of processes at a time: at most [`ROWS`], in the order of their PIDs.
    Survey {
        /// Only the processes behind this one.
        #[serde(default)]
        behind: Option<Pid>,
    },
    /// Shows all that is known of one process.
    Inspect {
        /// A PID, a seat or the name of a session's seat.
        target: String,
    },
    /// Shows what a dead letter says.
    Letter {
        /// The message.
        message: MessageId,
    },
    /// Delivers a dead letter into an open session.
    Replay {
        /// The message.
        message: MessageId,
        /// The session.
        session: SessionId,
    },
    /// Drops a dead letter.
    Bury {
        /// The message.
        message: MessageId,
        /// Why, for the record.
        note: String,
    },
    /// Makes a schedule.
    Schedule {
        /// Its name.
        name: String,
        /// A cron expression of five fields.
        cron: String,
        /// A time zone.
        zone: String,
        /// What becomes of missed instants.
        missed: Missed,
        /// The message.
        parts: Vec<Part>,
        /// The folder its agent works in; absolute.
        workspace: String,
        /// The model, as it is typed.
        model: Option<String>,
        /// The agent, as the configuration of the node names it; the default one if none is named.
        #[serde(default)]
        agent: Option<String>,
        /// The tools that it needs, and where they may act, if they are pinned.
        #[serde(default)]
        scope: Option<Vec<Pin>>,
    },
    /// Ends a schedule.
    Unschedule {
        /// Its name.
        name: String,
    },
    /// Lists the schedules, a page at a time: at most [`ROWS`], by name.
    Schedules {
        /// Only those behind this name.
        #[serde(default)]
        behind: Option<String>,
    },
    /// Shows what waits for a person, a page at a time: at most [`PAGE`], in the order of the tickets.
    Approvals {
        /// Only what was asked behind this ticket.
        #[serde(default)]
        behind: Option<TicketId>,
    },
    /// Lists the answers that are used again, a page at a time: at most [`PAGE`], in the order of the record.
    Precedents {
        /// Only those behind this entry.
        #[serde(default)]
        behind: Option<Seq>,
    },
    /// Shows which seats of open sessions their conduct suspended, or whether it has that of one session.
    Suspended {
        /// Which, if one is meant.
        session: Option<SessionId>,
    },
    /// Records what an approver ends.
    Judge {
        /// What.
        judgment: Judgment,
        /// Why, for the record.
        note: String,
        /// The approver's Ed25519 signature over the judgment, in hexadecimal digits.
        signature: String,
    },
    /// Lists the operators in office.
    Operators {},
    /// Says what an owner has to sign so that a constitution comes into force.
    Draft {
        /// Its text.
        text: String,
    },
    /// Puts a constitution in force.
    Enact {
        /// Its text.
        text: String,
        /// The owner's Ed25519 signature over the draft, in hexadecimal digits.
        signature: String,
    },
    /// Shows the constitution in force.
    Law {},
    /// Records what an owner decrees of operators.
    Decree {
        /// What.
        decree: Wanted,
        /// The owner's Ed25519 signature over the decree, in hexadecimal digits.
        signature: String,
    },
}

/// A decree on operators.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(tag = "decree", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Wanted {
    /// A new credential counts.
    Enrol {
        /// The public key, in hexadecimal digits.
        key: Digest,
        name: String,
        role: Role,
    },
    /// An operator gets another role.
    Rank { operator: OperatorId, role: Role },
    /// An operator's credential counts no longer.
    Dismiss { operator: OperatorId },
}

impl From<Wanted> for Decree {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::Enrol { key: Digest(key), name, role } => Self::Enrol { key, name, role },
            Wanted::Rank { operator, role } => Self::Rank { operator, role },
            Wanted::Dismiss { operator } => Self::Dismiss { operator },
        }
    }
}

/// Who is in office, and what the next decree is bound to.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct Roster {
    /// The name of the log.
    pub(crate) origin: String,
    /// Where the latest decree stands.
    pub(crate) latest: Seq,
    /// By name.
    pub(crate) operators: Vec<OperatorView>,
}

/// An operator in office.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct OperatorView {
    pub(crate) name: String,
    pub(crate) role: Role,
    pub(crate) operator: OperatorId,
    /// The public key.
    pub(crate) key: Digest,
    /// The entry that changed it last.
    pub(crate) since: Seq,
}

/// Changes of a limit: each thing as a new amount in all, or as so much more.
#[derive(Clone, Copy, Serialize, Deserialize, Debug, Default)]
#[serde(deny_unknown_fields)]
pub(crate) struct Changes {
    pub(crate) tokens: Option<Change>,
    pub(crate) micro_usd: Option<Change>,
    pub(crate) wall_ms: Option<Change>,
    pub(crate) tool_calls: Option<Change>,
    pub(crate) messages: Option<Change>,
}

/// A change of one amount.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// So much in all.
    To(u64),
    /// So much more.
    By(u64),
}

impl Change {
    fn of(change: Option<Self>, amount: u64) -> u64 {
        match change {
            None => amount,
            Some(Self::To(all)) => all,
            Some(Self::By(more)) => amount.saturating_add(more),
        }
    }
}

impl Changes {
    pub(crate) const fn is_empty(&self) -> bool {
        let Self { tokens, micro_usd, wall_ms, tool_calls, messages } = self;
        tokens.is_none() && micro_usd.is_none() && wall_ms.is_none() && tool_calls.is_none() && messages.is_none()
    }

    /// The limit with these changes.
    pub(crate) fn on(&self, limit: Budget) -> Budget {
        Budget {
            tokens: Change::of(self.tokens, limit.tokens),
            micro_usd: Change::of(self.micro_usd, limit.micro_usd),
            wall_ms: Change::of(self.wall_ms, limit.wall_ms),
            tool_calls: Change::of(self.tool_calls, limit.tool_calls),
            messages: Change::of(self.messages, limit.messages),
            ..limit
        }
    }
}

/// What was done, or is shown.
#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "done", rename_all = "snake_case")]
pub(crate) enum Done {
    /// A signal was given.
    Signalled {
        /// The seat.
        seat: Seat,
        /// Where it stands; nothing where a stop or kill could not be recorded.
        seq: Option<Seq>,
        /// Why it could not.
        unrecorded: Option<String>,
        /// The sessions it concerned.
        sessions: Vec<SessionId>,
        /// What holds the seat still, though it was resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held: Option<Hold>,
    },
    /// A budget.
    Budget {
        /// Of which seat.
        seat: Seat,
        /// It.
        account: AccountView,
        /// Where its new limit stands, if it was given one.
        seq: Option<Seq>,
    },
    /// Everything that runs.
    Survey {
        /// It.
        survey: Survey,
    },
    /// One process.
    Inspected {
        /// It.
        inspection: Box<Inspection>,
    },
    /// What a dead letter says.
    Letter {
        /// The message.
        message: MessageId,
        /// Its parts.
        parts: Vec<Part>,
    },
    /// A dead letter was accepted again.
    Replayed {
        /// As this message.
        message: MessageId,
    },
    /// It stands on the record.
    Recorded {
        /// Where.
        seq: Seq,
    },
    /// The schedules.
    Schedules {
        /// By name.
        schedules: Vec<ScheduleView>,
        /// Whether there are others behind these.
        #[serde(default)]
        more: bool,
    },
    /// What waits for a person.
    Approvals {
        /// The oldest first.
        approvals: Vec<Approval>,
    },
    /// The answers that are used again.
    Precedents {
        /// The name of the log, which judgments are bound to.
        origin: String,
        /// The oldest first.
        precedents: Vec<PrecedentView>,
    },
    /// Seats that their conduct suspended.
    Suspended {
        /// The name of the log, which judgments are bound to.
        origin: String,
        /// They.
        suspended: Vec<Suspended>,
    },
    /// The operators in office.
    Operators {
        /// They.
        roster: Roster,
    },
    /// What an owner has to sign.
    Drafted {
        /// It.
        draft: DraftView,
    },
    /// The constitution in force.
    Law {
        /// Its text.
        text: String,
    },
}

/// What an owner has to sign so that a constitution comes into force, besides its text.
#[derive(Serialize, Deserialize, Clone, Debug)]
pub(crate) struct DraftView {
    /// The name of the log.
    pub(crate) origin: String,
    /// Where the latest decree stands.
    pub(crate) latest: Seq,
    /// The digest that verdicts will name.
    pub(crate) policy: Digest,
    pub(crate) environment: String,
    pub(crate) capabilities: Vec<Capability>,
    pub(crate) never: Vec<ToolName>,
    pub(crate) models: Reach,
}

/// A question that waits for a person.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Approval {
    #[serde(flatten)]
    pub(crate) question: Question,
    /// How long it still waits.
    pub(crate) left_ms: u64,
    /// What people have answered so far.
    pub(crate) answers: Vec<AnswerView>,
    /// The names of those who may answer, and have not.
    pub(crate) may: Vec<String>,
}

/// What one person has answered.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct AnswerView {
    /// Their name; nothing for a person who is no approver any more, and does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) operator: OperatorId,
    pub(crate) permits: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
}

/// An answer that is used again.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct PrecedentView {
    /// The entry of the answer.
    pub(crate) precedent: Seq,
    /// Whether it permits.
    pub(crate) permits: bool,
    pub(crate) tool: ToolName,
    /// The arguments that have to be the same; nothing if they cannot be read any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) arguments: Option<Arguments>,
    /// The arguments that may be anything.
    pub(crate) free: Vec<String>,
    /// For this seat and those below it.
    pub(crate) seat: Seat,
    /// What it was asked for.
    pub(crate) reasons: Vec<String>,
    pub(crate) until: Timestamp,
    /// The name of who gave it; nothing for a person who is no approver any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by: Option<String>,
    pub(crate) operator: OperatorId,
    /// The session whose call was asked about.
    pub(crate) session: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) note: Option<String>,
    /// Why it does not count now; nothing if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) idle: Option<String>,
}

/// An account, as it is shown.
#[derive(Clone, Copy, Serialize, Deserialize, Debug)]
pub(crate) struct AccountView {
    /// What the seat may use.
    pub(crate) limit: Budget,
    /// What it has used.
    pub(crate) used: Budget,
    /// What is set aside for calls in flight.
    pub(crate) reserved: Budget,
}

/// A process in a survey.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct ProcessView {
    #[serde(flatten)]
    pub(crate) info: ProcessInfo,
    /// The last name of its seat.
    pub(crate) name: String,
    /// Its budget, if it has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) account: Option<AccountView>,
    /// What holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) held: Option<HoldKind>,
    /// What it waits for, in words; nothing where it does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) waiting_for: Option<String>,
    /// That its conduct suspended it, and on what evidence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) suspended: Option<Suspended>,
}

/// A call in flight.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct FlightView {
    pub(crate) call: CallId,
    pub(crate) action: ActionKind,
    pub(crate) target: String,
    pub(crate) attempt: u32,
    pub(crate) pid: Pid,
    pub(crate) intent: Seq,
    pub(crate) running_ms: u64,
}

/// A call that ended.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct LandedView {
    pub(crate) call: CallId,
    pub(crate) action: ActionKind,
    pub(crate) target: String,
    pub(crate) end: String,
    pub(crate) receipt: Receipt,
}

/// How an incarnation ended.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct ExitView {
    pub(crate) pid: Option<Pid>,
    pub(crate) time: Timestamp,
    pub(crate) reason: String,
    pub(crate) seq: Seq,
}

/// Everything that runs.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Survey {
    pub(crate) time: Timestamp,
    /// How many entries the chain has.
    pub(crate) entries: u64,
    pub(crate) processes: Vec<ProcessView>,
    /// Whether there are other processes behind these.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) more: bool,
    /// Calls of these processes.
    pub(crate) flights: Vec<FlightView>,
    /// What operators hold, with the first page.
    pub(crate) holds: Vec<Hold>,
    pub(crate) dead_letters: usize,
    pub(crate) schedules: usize,
}

/// All that is known of one process.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Inspection {
    pub(crate) process: ProcessView,
    /// What it may ask of the door.
    pub(crate) rights: Vec<Capability>,
    /// The only tools that these are for, if they are not for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<ToolName>>,
    pub(crate) links: Vec<Pid>,
    /// Those it monitors.
    pub(crate) monitors: Vec<Pid>,
    /// Whether a turn is under way.
    pub(crate) in_turn: bool,
    pub(crate) flights: Vec<FlightView>,
    /// The last calls that ended, the newest last.
    pub(crate) calls: Vec<LandedView>,
    /// How the last incarnations of its seat ended, the newest first.
    pub(crate) exits: Vec<ExitView>,
    /// What the record says of its seat: starts, restarts, failures, the last exit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) life: Option<SeatLife>,
}

/// A schedule, as it is shown.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct ScheduleView {
    pub(crate) name: String,
    pub(crate) cron: String,
    pub(crate) zone: String,
    pub(crate) missed: Missed,
    /// Where it was made.
    pub(crate) made: Seq,
    /// The latest instant that fired or was passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last: Option<Timestamp>,
    /// When it is due next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<Timestamp>,
    /// What it sends, if that can still be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Why it cannot be sent; nothing while all is well, or where no node runs schedules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) last_error: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failing_since: Option<Timestamp>,
}
