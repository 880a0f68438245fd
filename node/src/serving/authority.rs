//! Who may ask what of a node: one table, for everything that can be said on its socket.
//!
//! It names every request, so that a new one does not compile before it is said who may make it: in which role, and whose
//! the things have to be that it concerns.

use std::{
    collections::BTreeMap,
    sync::Mutex,
    time::{Duration, Instant},
};

use ephor_base::{MessageId, OperatorId, SessionId};
use ephor_record::Role;

use super::boot::Node;
use crate::{operation::Operation, projections::Question, protocol::Request};

/// What a request takes.
struct Needed<'a> {
    /// The least role.
    role: Role,
    /// Whose it has to be what it concerns.
    whose: Whose<'a>,
    /// What it does, for the record, where it is refused; nothing for one that only looks.
    act: Option<&'static str>,
}

/// Something that an operator may not do, or see.
pub(super) struct Forbidden {
    /// What, if it is more than a look.
    pub(super) act: Option<&'static str>,
    pub(super) why: String,
}

/// Whose it has to be what a request concerns.
#[derive(Clone, Copy)]
enum Whose<'a> {
    /// Anybody's.
    Anyones,
    /// A session of the operator's own: nobody speaks in that of another, not even an owner of the node.
    Session(SessionId),
    /// Something the operator said, as it is with a dead letter. Owners of the node look after those of others.
    Letter(MessageId),
    /// Such a letter, and a session of the operator's own.
    LetterInto(MessageId, SessionId),
    /// A schedule the operator made. Owners of the node look after those of others.
    Schedule(&'a str),
}

/// A session is another operator's.
#[derive(Debug, thiserror::Error)]
#[error("session {0} belongs to another operator")]
pub(super) struct Anothers(pub(super) SessionId);

/// How many refusals of one operator are recorded within [`WHILE`] each by itself. Of more, those whose number is a power of two are, with
/// that number: so the record tells how many there were within a factor of two, however many, and nobody can fill it.
const SINGLY: u32 = 64;
const WHILE: Duration = Duration::from_secs(3600);

/// How often each operator was refused something, and since when that is counted.
#[derive(Debug, Default)]
pub(crate) struct Refusals(Mutex<BTreeMap<OperatorId, (Instant, u32)>>);

impl Refusals {
    /// Counts a refusal; its number within the hour, if it is to be recorded.
    pub(super) fn number(&self, operator: OperatorId) -> Option<u32> {
        // The lock guards counting alone. Were it poisoned all the same, each would be recorded.
        let Ok(mut counted) = self.0.lock() else { return Some(1) };
        let now = Instant::now();
        let (since, count) = counted.entry(operator).or_insert((now, 0));
        if now.duration_since(*since) > WHILE {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        Some(*count).filter(|number| *number <= SINGLY || number.is_power_of_two())
    }
}

impl Node {
    /// Whether this operator may make the request. Without a role, nothing.
    pub(super) async fn check(&self, operator: OperatorId, request: &Request) -> Result<(), Forbidden> {
        let Needed { role, whose, act } = needed(request);
        let checked = match self.kernel.role(operator) {
            Some(has) if has >= role => self.check_owner(operator, has, whose).await,
            Some(has) => Err(format!("that takes the role `{}`, and this operator is `{}`", role.name(), has.name())),
            None => Err("not an operator of this node any more".to_owned()),
        };
        checked.map_err(|why| Forbidden { act, why })
    }

    /// Whether what a request concerns is this operator's, as far as it has to be.
    async fn check_owner(&self, operator: OperatorId, role: Role, whose: Whose<'_>) -> Result<(), String> {
        match whose {
            Whose::Anyones => Ok(()),
            Whose::Session(session) => self.check_session(operator, session),
            Whose::Letter(message) => self.check_letter(operator, role, message).await,
            Whose::LetterInto(message, session) => {
                self.check_letter(operator, role, message).await?;
                self.check_session(operator, session)
            }
            Whose::Schedule(name) => self.check_schedule_of(operator, role, name).await,
        }
    }

    /// Of a session that is not open, the record says whose it is once it is taken up.
    fn check_session(&self, operator: OperatorId, session: SessionId) -> Result<(), String> {
        match self.kernel.operator_of(session) {
            Some(other) if other != operator => Err(Anothers(session).to_string()),
            Some(_) | None => Ok(()),
        }
    }

    /// One that is no dead letter is nobody's; what is done with it says so.
    async fn check_letter(&self, operator: OperatorId, role: Role, message: MessageId) -> Result<(), String> {
        let letter = self.kernel.dead_letters().into_iter().find(|letter| letter.message == message);
        let Some(letter) = letter.filter(|_| role < Role::Owner) else { return Ok(()) };
        match self.kernel.author(letter.accepted).await {
            Some(author) if author == operator => Ok(()),
            _ => Err(format!(
                "message {message} is of another operator; only they and owners may read, replay or drop it"
            )),
        }
    }

    async fn check_schedule_of(&self, operator: OperatorId, role: Role, name: &str) -> Result<(), String> {
        let schedule = self.kernel.schedules().into_iter().find(|schedule| schedule.name == name);
        let Some(schedule) = schedule.filter(|_| role < Role::Owner) else { return Ok(()) };
        match self.kernel.author(schedule.made).await {
            Some(author) if author == operator => Ok(()),
            _ => Err(format!("the schedule `{name}` is of another operator; only they and owners may end it")),
        }
    }

    /// Whether this operator may see what was said in a session, and with which arguments its agent calls tools: whoever answers its
    /// questions has to, and whose session it is.
    pub(super) fn may_see(&self, operator: OperatorId, session: SessionId) -> bool {
        self.kernel.role(operator) >= Some(Role::Approver) || self.kernel.operator_of(session) == Some(operator)
    }
}

impl<'a> Needed<'a> {
    /// To look takes this role.
    const fn look(role: Role) -> Self {
        Self { role, whose: Whose::Anyones, act: None }
    }

    /// To do this takes this role.
    const fn act(act: &'static str, role: Role) -> Self {
        Self { role, whose: Whose::Anyones, act: Some(act) }
    }

    /// The same, with what is such an operator's.
    const fn with(self, whose: Whose<'a>) -> Self {
        Self { whose, ..self }
    }
}

/// Whether a request changes nothing, so that it can be asked of the next node where one ended before it answered.
pub(crate) const fn only_looks(request: &Request) -> bool {
    needed(request).act.is_none()
}

/// What a request takes.
const fn needed(request: &Request) -> Needed<'_> {
    match request {
        Request::Authenticate { .. }
        | Request::Derived { .. }
        | Request::Processes {}
        | Request::Space {}
        | Request::Publish {}
        | Request::Prune { dry_run: true, .. } => Needed::look(Role::Viewer),
        Request::Ask { question } => needed_to_ask(question),
        Request::Open { letter: Some(message), .. } => {
            Needed::act("open", Role::Operator).with(Whose::Letter(*message))
        }
        // What it could not go on to do opens nothing.
        Request::Open { allow, .. } if !allow.is_empty() => Needed::act("open", Role::Approver),
        Request::Open { .. } => Needed::act("open", Role::Operator),
        Request::Attach { session, .. } => Needed::act("attach", Role::Operator).with(Whose::Session(*session)),
        Request::Send { session, .. } => Needed::act("send", Role::Operator).with(Whose::Session(*session)),
        Request::Changes { session, .. } | Request::Undo { session, dry_run: true, .. } => {
            Needed::look(Role::Operator).with(Whose::Session(*session))
        }
        Request::Undo { session, .. } => Needed::act("undo", Role::Operator).with(Whose::Session(*session)),
        Request::Cancel { session } => Needed::act("cancel", Role::Operator).with(Whose::Session(*session)),
        Request::Rule { .. } => Needed::act("rule", Role::Approver),
        Request::Erase { .. } => Needed::act("erase", Role::Owner),
        Request::Prune { dry_run: false, .. } => Needed::act("prune", Role::Owner),
        Request::Rotate {} => Needed::act("rotate", Role::Owner),
        Request::Operate { operation } => needed_to_operate(operation),
    }
}

/// What it takes to ask something of the projections. They hold nothing that was said.
const fn needed_to_ask(question: &Question) -> Needed<'static> {
    match question {
        Question::Sessions { .. }
        | Question::Tickets { .. }
        | Question::Dead { .. }
        | Question::Seat { .. }
        | Question::Entries { .. }
        | Question::Statistics {}
        | Question::Figures {} => Needed::look(Role::Viewer),
        Question::Rebuild {} => Needed::act("state rebuild", Role::Operator),
    }
}

/// What it takes to do or see something beside conversations.
const fn needed_to_operate(operation: &Operation) -> Needed<'_> {
    match operation {
        // Arguments of calls, and what schedules say, are shown as `Node::may_see` has it.
        Operation::Survey { .. }
        | Operation::Inspect { .. }
        | Operation::Approvals { .. }
        | Operation::Precedents { .. }
        | Operation::Suspended { .. }
        | Operation::Operators {}
        | Operation::Law {} => Needed::look(Role::Viewer),
        Operation::Schedules { .. } => Needed::look(Role::Operator),
        Operation::Signal { .. } => Needed::act("signal", Role::Operator),
        Operation::Budget { .. } => Needed::act("budget", Role::Operator),
        Operation::Schedule { .. } => Needed::act("schedule", Role::Operator),
        Operation::Unschedule { name } => {
            Needed::act("unschedule", Role::Operator).with(Whose::Schedule(name.as_str()))
        }
        Operation::Letter { message } => {
            Needed::act("read a dead letter", Role::Operator).with(Whose::Letter(*message))
        }
        Operation::Bury { message, .. } => {
            Needed::act("drop a dead letter", Role::Operator).with(Whose::Letter(*message))
        }
        Operation::Replay { message, session } => {
            Needed::act("replay a dead letter", Role::Operator).with(Whose::LetterInto(*message, *session))
        }
        Operation::Judge { .. } => Needed::act("judge", Role::Approver),
        Operation::Decree { .. } => Needed::act("decree", Role::Owner),
        Operation::Draft { .. } | Operation::Enact { .. } => Needed::act("enact", Role::Owner),
    }
}
