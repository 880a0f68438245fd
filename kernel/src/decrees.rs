//! What owners decree: who may operate the node, and under which constitution. Each decree is on the disk before it counts, and the record alone says who
//! may do what.

use ed25519_dalek::SigningKey;
use ephor_base::{Digest, OperatorId, Seq, SessionId};
use ephor_chain::{AppendError, Log};
use ephor_governance::{BadConstitution, Constitution, Gate};
use ephor_record::{Credential, Decree, Fact, Record, Role, Subject, Terms};

use crate::{door::operator_id, kernel::Kernel, seen::Seen};

/// A decree was not taken. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotDecreed {
    /// It breaks a rule of the record, such as that the last owner stays. The caller's fault.
    #[error("{0}")]
    Rule(&'static str),
    /// The constitution does not fit the tools of this node. The caller's fault.
    #[error("the constitution does not fit: {0}")]
    Unfit(String),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

impl From<BadConstitution> for NotDecreed {
    fn from(error: BadConstitution) -> Self {
        Self::Unfit(error.to_string())
    }
}

impl From<AppendError> for NotDecreed {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Misplaced(rule) => Self::Rule(rule),
            AppendError::Overtaken => Self::Rule("the law was changed meanwhile; try again"),
            error => Self::Chain(error.to_string()),
        }
    }
}

/// Who is in office, and what the next decree is bound to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Roster {
    /// The name of the log.
    pub origin: String,
    /// Where the latest decree stands; 0 before the first.
    pub latest: Seq,
    /// Those in office, by id.
    pub operators: Vec<(OperatorId, Credential)>,
}

/// Enrols the holder of `key` as the first owner under `name`, if no operator was ever enrolled in this log.
///
/// # Errors
/// [`NotDecreed`].
pub async fn found(log: &Log, key: &SigningKey, name: &str) -> Result<Option<Seq>, NotDecreed> {
    if !log.standing(|standing| standing.operators().is_empty()) {
        return Ok(None);
    }
    let origin = origin(log)?;
    let decree = Decree::Enrol { key: key.verifying_key().to_bytes(), name: name.to_owned(), role: Role::Owner };
    let fact = decree.sign(&origin, Seq(0), key);
    Ok(Some(record(log, operator_id(&key.verifying_key()), fact).await?))
}

/// What an owner signs to put a constitution in force.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Draft {
    /// The name of the log.
    pub origin: String,
    /// Where the latest decree stands.
    pub latest: Seq,
    /// The decree, a [`Decree::Enact`].
    pub decree: Decree,
}

async fn record(log: &Log, operator: OperatorId, fact: Fact) -> Result<Seq, NotDecreed> {
    let subject = Subject { operator: Some(operator), ..Subject::default() };
    Ok(log.append(Record { subject, fact, content: None }).await?.seq)
}

/// The decree that puts the law of `gate` in force.
fn enactment(gate: &Gate) -> Decree {
    let environment = gate.policy().environment.name().to_owned();
    Decree::Enact { policy: gate.digest(), terms: terms(gate), environment }
}

/// What the digest of a law is made of.
pub(crate) fn terms(gate: &Gate) -> Terms {
    let policy = gate.policy();
    Terms {
        constitution: Digest::of(gate.constitution().text().as_bytes()),
        capabilities: policy.capabilities.clone(),
        never: policy.never.clone(),
        models: policy.models.clone(),
    }
}

fn origin(log: &Log) -> Result<String, NotDecreed> {
    let keys = log.keys().ok_or_else(|| NotDecreed::Chain("it has no keys".to_owned()))?;
    Ok(keys.origin().to_owned())
}

impl Kernel {
    /// Who is in office now.
    #[must_use]
    pub fn roster(&self) -> Roster {
        let log = self.door().log();
        let (latest, operators) = log.standing(|standing| {
            let operators = standing.operators();
            (operators.latest(), operators.iter().map(|(id, one)| (id, one.clone())).collect())
        });
        Roster { origin: origin(log).unwrap_or_default(), latest, operators }
    }

    /// What `operator` may do now; nothing if they are not in office.
    #[must_use]
    pub fn role(&self, operator: OperatorId) -> Option<Role> {
        self.door().role(operator)
    }

    /// The operator who answers for an open session.
    #[must_use]
    pub fn operator_of(&self, session: SessionId) -> Option<OperatorId> {
        self.door().with_session(session, |session| session.spec.operator)
    }

    /// The operator who stands as the subject of an entry, if it is there and has one.
    pub async fn author(&self, entry: Seq) -> Option<OperatorId> {
        let log = self.door().log().clone();
        let stored = tokio::task::spawn_blocking(move || log.entry(entry)).await;
        stored.ok()?.ok()??.entry.subject.operator
    }

    /// Records that `operator` asked for what they may not do.
    ///
    /// # Errors
    /// [`NotDecreed::Chain`]; then it stands nowhere.
    pub async fn forbid(&self, operator: OperatorId, act: &str, why: &str) -> Result<Seq, NotDecreed> {
        let subject = Subject { operator: Some(operator), ..Subject::default() };
        let fact = Fact::Forbidden { act: act.to_owned(), why: why.to_owned() };
        Ok(self.door().log().note(Record { subject, fact, content: None }).await?.seq)
    }

    /// Whether `signature` is that of `operator`, who is in office, over `message`.
    #[must_use]
    pub fn is_signed_by(&self, operator: OperatorId, message: &[u8], signature: &[u8]) -> bool {
        self.door().log().standing(|standing| standing.operators().verify(operator, message, signature))
    }

    /// The text of the constitution in force.
    #[must_use]
    pub fn law(&self) -> String {
        self.door().gate().constitution().text().to_owned()
    }

    /// What an owner has to sign so that `constitution` comes into force.
    ///
    /// # Errors
    /// [`NotDecreed::Unfit`].
    pub fn draft(&self, constitution: Constitution) -> Result<Draft, NotDecreed> {
        let gate = self.door().gate().under(constitution)?;
        let Roster { origin, latest, .. } = self.roster();
        Ok(Draft { origin, latest, decree: enactment(&gate) })
    }

    /// Records that an owner puts `constitution` in force, with the owner's signature over its draft. From its place on the record it
    /// decides everything; what was permitted or asked under the one before counts no more.
    ///
    /// # Errors
    /// [`NotDecreed`]: the law is what it was.
    pub async fn enact(
        &self,
        owner: OperatorId,
        constitution: Constitution,
        signature: Vec<u8>,
    ) -> Result<Seq, NotDecreed> {
        let (door, before) = (self.door(), self.door().gate());
        let text = constitution.text().to_owned();
        let gate = before.under(constitution)?;
        let subject = Subject { operator: Some(owner), ..Subject::default() };
        let record = Record { subject, fact: enactment(&gate).signed(signature), content: None };
        for part in Fact::document(text.as_bytes()) {
            door.log().note(Record { subject: Subject::default(), fact: part, content: None }).await?;
        }
        Ok(door.enact(gate, before.digest(), record).await?.seq)
    }

    /// Whether `operator` was in office and is no more.
    pub(crate) fn is_dismissed(&self, operator: OperatorId) -> bool {
        self.door().log().standing(|standing| standing.operators().is_dismissed(operator))
    }

    /// Ends the open sessions that `operator` answered for: nothing more is done in the name of an operator who was dismissed.
    async fn end_sessions_of(&self, operator: OperatorId) {
        let open = self.open_sessions().into_iter().map(|(session, _)| session);
        for session in open.filter(|session| self.operator_of(*session) == Some(operator)) {
            let why = format!(
                "session {session} is over: its operator was dismissed; `ephor dead` has what was not answered"
            );
            self.door().watchers().part(session, Seen::Over { why });
            self.close_session(session).await;
        }
    }

    /// Records what an owner decrees of operators, signed; it counts from that place on. The open sessions of an operator who is dismissed
    /// end.
    ///
    /// # Errors
    /// [`NotDecreed`], also for a fact that is no such decree.
    pub async fn decree(&self, owner: OperatorId, decree: Fact) -> Result<Seq, NotDecreed> {
        if !matches!(decree, Fact::Enrolled { .. } | Fact::Ranked { .. } | Fact::Dismissed { .. }) {
            return Err(NotDecreed::Rule("it is no decree on operators"));
        }
        let subject = Subject { operator: Some(owner), ..Subject::default() };
        let dismissed = if let Fact::Dismissed { operator, .. } = &decree { Some(*operator) } else { None };
        let seq = self.door().decree(Record { subject, fact: decree, content: None }).await?.seq;
        if let Some(operator) = dismissed {
            self.end_sessions_of(operator).await;
        }
        Ok(seq)
    }
}
