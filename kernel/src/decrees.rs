//! What owners decree: who may operate the node. Each decree is on the disk before it counts, and the record alone says who
//! may do what.

use ed25519_dalek::SigningKey;
use ephor_base::{OperatorId, Seq};
use ephor_chain::{
    AppendError, Credential, Decree, Log, Role,
    record::{Fact, Record, Subject},
};

use crate::{door::operator_id, kernel::Kernel};

/// A decree was not taken. Nothing was recorded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotDecreed {
    /// It breaks a rule of the record, such as that the last owner stays. The caller's fault.
    #[error("{0}")]
    Rule(&'static str),
    /// The log could not take it.
    #[error("the chain cannot be written: {0}")]
    Chain(String),
}

impl From<AppendError> for NotDecreed {
    fn from(error: AppendError) -> Self {
        match error {
            AppendError::Misplaced(rule) => Self::Rule(rule),
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

/// Enrols the holder of `key` as the first owner under `name`, if nobody was ever enrolled in this log.
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

async fn record(log: &Log, operator: OperatorId, fact: Fact) -> Result<Seq, NotDecreed> {
    let subject = Subject { operator: Some(operator), ..Subject::default() };
    Ok(log.append(Record { subject, fact, content: None }).await?.seq)
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

    /// What `operator` may do now; nothing for whoever is not in office.
    #[must_use]
    pub fn role(&self, operator: OperatorId) -> Option<Role> {
        self.door().log().standing(|standing| standing.operators().role(operator))
    }

    /// Whether `signature` is that of `operator`, who is in office, over `message`.
    #[must_use]
    pub fn is_signed_by(&self, operator: OperatorId, message: &[u8], signature: &[u8]) -> bool {
        self.door().log().standing(|standing| standing.operators().verify(operator, message, signature))
    }

    /// Records what an owner decrees of operators, signed; it counts from that place on.
    ///
    /// # Errors
    /// [`NotDecreed`], also for a fact that is no such decree.
    pub async fn decree(&self, owner: OperatorId, decree: Fact) -> Result<Seq, NotDecreed> {
        if !matches!(decree, Fact::Enrolled { .. } | Fact::Ranked { .. } | Fact::Dismissed { .. }) {
            return Err(NotDecreed::Rule("it is no decree on operators"));
        }
        record(self.door().log(), owner, decree).await
    }
}
